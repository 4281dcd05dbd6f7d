"""The statement of a month of a thousand GPUs: the reckoning alone, and the command from cold.

125 machines of eight GPUs. Each GPU is rented and idle in turn, thirty stretches a month; a channel says
what each machine earned on each day, a meter what it drew; machines have prices, the site a tariff and
rent. Held to its bar by processor time, user and system, since the machine is shared; the clock is
printed beside it. What reading and decoding the facts takes is told apart, and grows with the store.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.overhead import Bench
from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY, HOUR, utc_us
from ouvrage.books.period import period_named
from ouvrage.books.pnl import pnl
from ouvrage.books.record import owner_record
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.assets import Asset
from ouvrage.model.earnings import Earning
from ouvrage.model.meters import EnergyRead
from ouvrage.model.occupancy import DeviceState
from ouvrage.model.sites import DevicePlaced, Node, Site, Term
from ouvrage.store.store import open_store

NODES, GPUS, DAYS, STRETCHES = 125, 8, 30, 30
BAR_S = 2.0
ROUNDS = 5
BEGINS, MONTH = utc_us("2026-06-01T00:00:00Z"), "2026-06"
SOURCE = "0193a0b0c0d070008fedcba987654321"
TERMS = (("electricity", "0.28"), ("rent", "4000"), ("pue", "1.3"), ("support_price", "30"))
Stated = tuple[Any, int, int | None]


def stated() -> Iterator[Stated]:
    """What the owner, the channel and the meters say, with its period."""
    yield Site(site="hall", currency="EUR", zone="Europe/Paris"), BEGINS - DAY, None
    for name, value in TERMS:
        yield _term("site:hall", name, value), BEGINS - DAY, None
    for number in range(NODES):
        yield from _machine(f"n{number:03}", number)


def _machine(node: str, number: int) -> Iterator[Stated]:
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


def _stretches(device: str, number: int) -> Iterator[Stated]:
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


def facts() -> list[Fact]:
    """Everything stated, as facts."""
    return [
        fact_of(
            value, source=SOURCE, id=f"{number:07}", subject="owner", valid_from=from_us, valid_to=to_us,
            grade=Grade.METERED,
        )
        for number, (value, from_us, to_us) in enumerate(stated())
    ]  # fmt: skip


def reckoned(made: list[Fact]) -> list[dict[str, float]]:
    """Seconds of a core for each round: decoding the facts, and the statement of all of them."""
    records = [Recorded(seq=n, recorded_at=BEGINS, fact=fact) for n, fact in enumerate(made, 1)]
    period, took = period_named(MONTH, "Europe/Paris"), list[dict[str, float]]()
    for _ in range(ROUNDS):
        begun = time.process_time()
        record = owner_record(records)
        decoded = time.process_time()
        statement = pnl(record, "hall", period, "node")
        took.append({"decode": decoded - begun, "reckon": time.process_time() - decoded})
        assert len(statement.rows) == NODES
    return took


def commanded(bench: Bench, made: list[Fact], home: str) -> list[tuple[float, float]]:
    """Seconds by the clock, and of a core, of the command from start to end."""
    with open_store(Path(home) / "ouvrage.db") as store:
        for start in range(0, len(made), 5000):
            store.append(made[start : start + 5000], now_us=BEGINS + 40 * DAY, own_source=SOURCE)
    words = [sys.executable, "-m", "ouvrage", "books", "pnl", "--month", MONTH, "--json"]
    took: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        before, clock = os.times(), time.perf_counter()
        subprocess.run(words, env=bench.environment, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        took.append((time.perf_counter() - clock, sum(after[2:4]) - sum(before[2:4])))
    return took


def main() -> int:
    """Measure, print; 1 where the bar is missed."""
    with tempfile.TemporaryDirectory(prefix="ouvrage-bench-") as home:
        bench, made = Bench(home), facts()
        print(f"a month of {NODES * GPUS:,} GPUs in {NODES} machines: {len(made):,} facts")
        took = reckoned(made)
        decode, reckon = (statistics.median(each[name] for each in took) for name in took[0])
        bench.tell("statement by machine, decoded facts", reckon, BAR_S, "s")
        print(f"  decoding the facts before it: {decode:.3g} s of a core")
        command = commanded(bench, made, home)
    clock, core = (statistics.median(each) for each in zip(*command, strict=True))
    print(f"  ouvrage books pnl from cold: {clock:.3g} s by the clock, {core:.3g} s of a core")
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
