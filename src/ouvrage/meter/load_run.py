"""A replay as a run like any other: its spool, its load, its end, and what is told of it.

Decides what goes on record beside the requests: the load as it was asked for, the machine that the
client stood on, and the client's own processor time, since a client that is out of breath measures
itself. The run begins when the load does, so asking what the server takes costs nothing in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ouvrage
from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.home import home, make_private, source_id, spool_dir
from ouvrage.adapters.openai_server import Endpoint
from ouvrage.base.numbers import decimal_text
from ouvrage.base.price import Price
from ouvrage.base.time import SECOND
from ouvrage.meter.calibration import words_of
from ouvrage.meter.replay import Plan, Progress, Replay
from ouvrage.meter.sampler import PERIOD_US, Instruments
from ouvrage.meter.spool_file import SpoolFile

BUSY_CLIENT = 0.7
_LEAST_TOLD_US = SECOND // 5
"""Processor time is counted in hundredths of a second: of a shorter load it says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked for, and how it is called. ``speed_up`` and ``rate`` as ``RunLoad`` says."""

    command: Sequence[str]
    trace: str
    trace_sha256: str
    speed_up: Fraction | None
    rate: Fraction | None
    price: Price | None
    label: str | None
    campaign: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A finished replay: its run, the lines of its spool, how it ended."""

    run: str
    lines: list[str]
    interrupted: bool
    succeeded: int


def put_on(endpoint: Endpoint, plan: Plan, load: Load, tell: Callable[[Progress], None]) -> Done:
    """Put a load on a server and keep the account of it; ``OSError`` where it cannot be kept."""
    where, run = home(), new_id()
    spool = SpoolFile(make_private(spool_dir(where)) / f"{run}.ndjson")
    spool.open(_header(run, source_id(where), load))
    try:
        if load.campaign:
            spool.write({"k": "campaign", "name": load.campaign})
        spool.write({"k": "load", "about": _about(endpoint, plan, load)})
        spool.flush(sync=True)
        before = os.times()
        replay = Replay(endpoint, plan, spool, tell)
        replay.run()
        _end(spool, replay, before)
        lines = list(spool.lines())
    finally:
        spool.close()
    return Done(run=run, lines=lines, interrupted=replay.interrupted, succeeded=replay.succeeded)


def _header(run: str, source: str, load: Load) -> dict[str, Any]:
    price = load.price
    return {
        "k": "run",
        "v": 1,
        "run": run,
        "source": source,
        "started_us": now_us(),
        "label": load.label,
        "command": list(load.command),
        "cwd": os.getcwd(),
        "price": price and {"amount": price.amount, "currency": price.currency, "per": price.per},
        "unit": "request",
        "period_us": PERIOD_US,
        "host": Instruments().describe_host(),
        "meter": ouvrage.__version__,
    }


def _about(endpoint: Endpoint, plan: Plan, load: Load) -> dict[str, Any]:
    arrivals = "rate" if load.rate else "trace"
    return {
        "trace": load.trace,
        "trace_sha256": load.trace_sha256,
        "arrivals": "concurrency" if plan.concurrency else arrivals,
        "speed_up": load.speed_up and decimal_text(load.speed_up),
        "rate": load.rate and decimal_text(load.rate),
        "concurrency": plan.concurrency,
        "server": endpoint.url,
        "model": endpoint.model,
        "endpoint": endpoint.path,
        "settings": list(words_of(endpoint.settings)),
        "timeout_us": plan.timeout_us,
        "planned": len(plan.arrivals),
        "asked_in": sum(arrival.tokens_in for arrival in plan.arrivals),
        "asked_out": sum(arrival.tokens_out for arrival in plan.arrivals),
    }


def _end(spool: SpoolFile, replay: Replay, before: os.times_result) -> None:
    after = os.times()
    user, system = after.user - before.user, after.system - before.system
    wall = replay.last_us
    busy = (user + system) * SECOND / wall
    if busy > BUSY_CLIENT and wall >= _LEAST_TOLD_US:
        text = (
            f"the client itself used {busy:.0%} of a core: what it timed holds its own delay; "
            "use a lower speed-up, or several clients"
        )
        spool.write({"k": "note", "t": wall, "code": "replay/busy-client", "text": text})
    if replay.disbelieved:
        text = (
            f"{replay.disbelieved} answers claim counts of tokens that cannot be, "
            "such as more than were asked for: what they claim is not used"
        )
        spool.write({"k": "note", "t": wall, "code": "replay/usage-not-believed", "text": text})
    ended = {"exit_code": 0 if replay.succeeded else 1, "signal": None, "outlived": 0}
    used = {"cpu_user_us": round(user * SECOND), "cpu_system_us": round(system * SECOND)}
    line = {"k": "end", "t": wall, **ended, "interrupted": replay.interrupted, **used}
    spool.write(line)
    spool.flush(sync=True)
