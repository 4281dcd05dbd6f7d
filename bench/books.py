"""The statement of a month of a thousand GPUs, from cold, and of a tenth and a hundredth of them.

Machines of eight GPUs. Each GPU is rented and idle in turn, thirty stretches a month; a channel says what
each machine earned on each day, a meter what it drew in each hour; machines have prices, the site a tariff
and rent. The bar is the clock's, for the whole command with its start, on the month as recording its last fact
left it: of owners with more than 64 GPUs recording makes the account of a month that is over, and asking tells
it again. What recording that fact took stands beside it, and the same answer from the facts alone, with
nothing kept; processor time and the parts of it, and how fast a core of this machine was in between: on
one that is shared all of them differ by a factor of two and more between runs.

    python -m bench.books [--draw]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench._figure import BLUE, BROWN, GREEN, PURPLE, curves
from bench.overhead import ROOT, Bench
from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY, HOUR, utc_us
from ouvrage.books.period import period_named
from ouvrage.books.pnl import pnl
from ouvrage.books.record import BOOK_KINDS, record_of_lines
from ouvrage.cli.booking import Stated, book
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import keep_everything
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.assets import Asset
from ouvrage.model.earnings import Earning
from ouvrage.model.meters import EnergyRead
from ouvrage.model.occupancy import DeviceState
from ouvrage.model.sites import DevicePlaced, Node, Site, Term
from ouvrage.store.store import open_store

SIZES, GPUS, DAYS, STRETCHES = (1, 12, 125), 8, 30, 30
"""Machines of the three sizes, GPUs of each, days of the month, stretches of each GPU."""
BAR_S = 2.0
ROUNDS = 5
LOAD, FREE = os.getloadavg()[0], 0.5
"""How many programs wanted a core over the minute before, and at how many the machine counts as free."""
PICTURE = ROOT / "docs" / "images" / "books.svg"
BEGINS, MONTH = utc_us("2026-06-01T00:00:00Z"), "2026-06"
SOURCE = "0193a0b0c0d070008fedcba987654321"
TERMS = (("electricity", "0.28"), ("rent", "4000"), ("pue", "1.3"), ("support_price", "30"))
Entry = tuple[Any, int, int | None]


def stated(nodes: int) -> Iterator[Entry]:
    """What the owner, the channel and the meters say, with its period."""
    yield Site(site="hall", currency="EUR", zone="Europe/Paris"), BEGINS - DAY, None
    for name, value in TERMS:
        yield _term("site:hall", name, value), BEGINS - DAY, None
    for number in range(nodes):
        yield from _machine(f"n{number:03}", number)


def _machine(node: str, number: int) -> Iterator[Entry]:
    """One machine: what it is, what it did, earned and drew."""
    yield Node(node=node, site="hall"), BEGINS - DAY, None
    for name, value in (("idle_power_w", "25"), ("load_power_w", "340")):
        yield _term(f"node:{node}", name, value), BEGINS - DAY, None
    yield _bought(node), BEGINS - DAY, None
    for slot in range(GPUS):
        yield (
            DevicePlaced(device=f"{node}-g{slot}", node=node, model="RTX 4090", slot=slot),
            BEGINS - DAY,
            None,
        )
        yield from _stretches(f"{node}-g{slot}", number * GPUS + slot)
    for day in range(DAYS):
        from_us, to_us = BEGINS + day * DAY, BEGINS + (day + 1) * DAY
        yield (
            _earned(node, f"{30 + (number * 7 + day * 3) % 20}.{number % 90 + 10}"),
            from_us,
            to_us,
        )
        for hour in range(from_us, to_us, HOUR):
            yield (
                _drew(node, 4_000_000 + (number * 31 + hour // HOUR * 17) % 900_000),
                hour,
                hour + HOUR,
            )


def _stretches(device: str, number: int) -> Iterator[Entry]:
    """Rented and idle in turn, of lengths that no two GPUs share."""
    at, end = BEGINS, BEGINS + DAYS * DAY
    for index in range(STRETCHES):
        last = index == STRETCHES - 1
        to_us = end if last else at + (6 + (number * 13 + index * 7) % 30) * HOUR
        if at >= end:
            return
        state = "working" if index % 2 else "free"
        yield _was(device, state, f"t{number % 40}"), at, min(to_us, end)
        at = to_us


def _was(device: str, state: str, tenant: str) -> DeviceState:
    rented = state == "working"
    return DeviceState(
        device=device, node=None, count=None, state=state, cause="" if rented else "no demand",
        channel="vast" if rented else None, tenant=tenant if rented else None, lease=None,
    )  # fmt: skip


def _earned(node: str, amount: str) -> Earning:
    return Earning(
        channel="vast", about=f"node:{node}", component="gpu", amount=amount, currency="EUR", fee="1.20",
        sold_us=None, list_price=None, tenant=None, document=None,
    )  # fmt: skip


def _drew(node: str, joules: int) -> EnergyRead:
    return EnergyRead(
        meter=f"plug-{node}", about=f"node:{node}", scope="wall", energy_j=joules, method="counter",
        covered_us=HOUR,
    )  # fmt: skip


def _bought(node: str) -> Asset:
    return Asset(
        asset=f"{node}-all", about=f"node:{node}", what="machine", price="18000", currency="EUR",
        method="straight-line", life_months=48, life_hours=None, declining_share=None, residual="3000",
        warranty_until=None,
    )  # fmt: skip


def _term(about: str, name: str, value: str) -> Term:
    return Term(about=about, name=name, value=value, unit="", said_by="bench")


def facts(nodes: int) -> list[Fact]:
    """Everything stated, as facts."""
    return [
        fact_of(
            value, source=SOURCE, id=f"{number:07}", subject="owner", valid_from=from_us, valid_to=to_us,
            grade=Grade.METERED,
        )
        for number, (value, from_us, to_us) in enumerate(stated(nodes))
    ]  # fmt: skip


def reckoned(home: str, nodes: int) -> dict[str, float]:
    """Seconds of a core, the median of the rounds: reading the facts, decoding them, the statement."""
    keep_everything()  # as the command does
    period, took = period_named(MONTH, "Europe/Paris"), list[tuple[float, ...]]()
    with open_store(Path(home) / "ouvrage.db") as store:
        for _ in range(ROUNDS):
            at = [time.process_time()]
            lines = store.lines(BOOK_KINDS)
            at.append(time.process_time())
            record = record_of_lines(lines)
            at.append(time.process_time())
            statement = pnl(record, "hall", period, "node", payback=False)
            at.append(time.process_time())
            took.append(tuple(after - before for before, after in pairwise(at)))
            assert len(statement.rows) == nodes
    parts = [statistics.median(each) for each in zip(*took, strict=True)]
    return dict(zip(("read", "decode", "reckon"), parts, strict=True))


def commanded(bench: Bench, home: str) -> dict[str, float]:
    """Seconds by the clock, and of a core, of the command from start to end: as recorded, and with nothing kept.

    In turn, so that a busy machine is seen in both; the answers are the same, byte for byte.
    """
    kept, aside = Path(home) / "kept", Path(home) / "kept-aside"
    took: list[tuple[float, ...]] = []
    for _ in range(ROUNDS):
        told, clock, core = answered(bench)
        if kept.exists():
            kept.rename(aside)
        anew, anew_clock, anew_core = answered(bench)
        assert anew == told
        shutil.rmtree(kept, ignore_errors=True)
        if aside.exists():
            aside.rename(kept)
        took.append((clock, core, anew_clock, anew_core))
    names = ("clock", "core", "anew_clock", "anew_core")
    return dict(zip(names, map(statistics.median, zip(*took, strict=True)), strict=True))


def answered(bench: Bench) -> tuple[bytes, float, float]:
    """What the command says, with its seconds by the clock and of a core."""
    words = [sys.executable, "-m", "ouvrage", "books", "pnl", "--month", MONTH, "--json"]
    before, clock = os.times(), time.perf_counter()
    done = subprocess.run(words, env=bench.environment, check=True, stdout=subprocess.PIPE)
    after = os.times()
    return done.stdout, time.perf_counter() - clock, sum(after[2:4]) - sum(before[2:4])


def recorded(home: str) -> float:
    """Seconds of a core that recording one more earning of the month took, as every import records."""
    late = Stated(
        natural="late", value=_earned("n000", "1.25"), subject="node:n000", valid_from=BEGINS,
        valid_to=BEGINS + DAY, grade=Grade.METERED,
    )  # fmt: skip
    with patch.dict(os.environ, {"OUVRAGE_HOME": home}), opened() as ledger:
        begun = time.process_time()
        assert book(ledger, [late]).new == 1
        return time.process_time() - begun


def speed() -> float:
    """Millions of additions a second that a core does now, in Python."""
    begun, total = time.perf_counter(), 0
    for number in range(2_000_000):
        total += number
    return 2 / (time.perf_counter() - begun)


def measured(nodes: int) -> dict[str, float]:
    """One size: everything that is timed of it."""
    with tempfile.TemporaryDirectory(prefix="ouvrage-bench-") as home:
        made = facts(nodes)
        with open_store(Path(home) / "ouvrage.db") as store:
            for start in range(0, len(made), 5000):
                batch = made[start : start + 5000]
                store.append(batch, now_us=BEGINS + 40 * DAY, own_source=SOURCE)
        found: dict[str, float] = {"gpus": nodes * GPUS, "facts": len(made) + 1, "speed": speed()}
        found["late"] = recorded(home)
        return {**found, **commanded(Bench(home), home), **reckoned(home, nodes)}


def drawn(growth: list[dict[str, float]]) -> str:
    """An SVG of how the command and its parts grow."""

    def over(name: str) -> list[tuple[float, float]]:
        return [(each["gpus"], each[name]) for each in growth]

    lines = [
        ("the command, by the clock", BLUE, over("clock")),
        ("with nothing kept, by the clock", BROWN, over("anew_clock")),
        ("reckoning, of a core", GREEN, over("reckon")),
        ("decoding facts, of a core", PURPLE, over("decode")),
    ]
    return curves("A month's statement with hourly meters: seconds, by number of GPUs", lines)


def main() -> int:
    """Measure, print; 1 where the bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.books")
    parser.add_argument("--draw", action="store_true", help=f"draw {PICTURE.name} anew")
    given = parser.parse_args()
    growth = [measured(nodes) for nodes in SIZES]
    for each in growth:
        print(
            f"{each['gpus']:>5,} GPUs, {each['facts']:>7,} facts: {each['clock']:.3g} s by the clock, "
            f"{each['core']:.3g} s of a core; recording a late fact before {each['late']:.2g} s of a core\n"
            f"      with nothing kept {each['anew_clock']:.3g} s by the clock, {each['anew_core']:.3g} s of a core, of "
            f"which reading {each['read']:.2g}, decoding {each['decode']:.2g}, "
            f"reckoning {each['reckon']:.2g}; {each['speed']:.0f} M additions/s"
        )
    tell, last = Bench("").tell, growth[-1]
    tell("ouvrage books pnl as recording left it, by the clock", last["clock"], BAR_S, "s")
    tell("  the same with nothing kept, by the clock", last["anew_clock"], BAR_S, "s")
    if given.draw:
        PICTURE.write_text(drawn(growth), "utf-8")
    busy = LOAD > FREE
    if busy:
        print(
            f"  other programs wanted these cores: {LOAD:.1f} of them as this began, so a miss is not counted"
        )
    return 1 if last["clock"] > BAR_S and not busy else 0


if __name__ == "__main__":
    sys.exit(main())
