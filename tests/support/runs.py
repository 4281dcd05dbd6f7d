"""Runs made up for tests: a spool's lines from a few words, and what follows from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ouvrage.ledger.facts import Recorded
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.metering.spool import facts_of, read_spool
from ouvrage.model.runs import RunSamples

RUN = "0192f0c1a2b37c4d8e9fa0b1c2d3e4f5"
OTHER_RUN = "0192f0c1a2b37c4d8e1fa0b1c2d3e4f6"
SOURCE = "5" * 32
STARTED = 1_764_511_509_000_001
AS_OF = 1_764_600_000_000_000
S = 1_000_000
CHEAP = {"amount": "0.30", "currency": "EUR", "per": "h"}
DEAR = {"amount": "0.36", "currency": "EUR", "per": "h"}

Line = dict[str, Any]


def header(**changes: Any) -> Line:
    return {
        "k": "run",
        "v": 1,
        "run": RUN,
        "source": SOURCE,
        "started_us": STARTED,
        "label": None,
        "command": ["python", "train.py"],
        "cwd": "/home/someone",
        "price": None,
        "unit": None,
        "period_us": S,
        "host": {"cpus_allowed": 1},
        "meter": "0.1.0",
    } | changes


def samples(seconds: int, **rates: float | Callable[[int], int | None]) -> list[Line]:
    """One sample a second from 0 to ``seconds``; a counter rises by its rate per second."""
    times = [second * S for second in range(seconds + 1)]
    lines: list[Line] = []
    for first in range(0, len(times), 10):
        some = times[first : first + 10]
        columns = {
            name: [rate(t) if callable(rate) else round(t / S * rate) for t in some]
            for name, rate in rates.items()
        }
        lines.append({"k": "samples", "t": some, "c": columns})
    return lines


def busy(seconds: int, share: float = 0.9, **rates: Any) -> list[Line]:
    """Samples of a command that works so much of the time, all in user mode."""
    return samples(seconds, cpu_user_us=share * S, cpu_system_us=0, processes=lambda _: 2, **rates)


def gpu(number: int = 0, **about: Any) -> Line:
    """A GPU is introduced; ``about`` overrides what is said of it."""
    known = {"index": number, "uuid": f"GPU-{number}", "name": "Test GPU", "mig": 0, "ecc": 1}
    known |= {"clock_sm_max_mhz": 2000, "memory_bytes": 80 << 30, "power_limit_mw": 700_000}
    return {"k": "gpu", "gpu": number, "t": 0, "about": known | about}


def gpus(seconds: int, number: int = 0, **columns: int | Callable[[int], int | None]) -> list[Line]:
    """One reading a second from 0 to ``seconds``: each column a constant or made from the second."""
    times = range(seconds + 1)
    told = {
        name: [column(t) if callable(column) else column for t in times]
        for name, column in columns.items()
    }
    return [{"k": "gpus", "gpu": number, "t": [t * S for t in times], "c": told}]


def marks(*rows: tuple[str, int, float | None], **changes: Any) -> Line:
    """Marks from ``("end", 3, 4.41)``: sort, number, seconds or None."""
    line = {
        "k": "marks",
        "name": "epoch",
        "via": "line",
        "pid": None,
        "mark": [mark for mark, _, _ in rows],
        "n": [n for _, n, _ in rows],
        "t": [None if t is None else round(t * S) for _, _, t in rows],
    }
    return line | changes


def ends(*seconds: float) -> Line:
    """Units 1, 2, 3 … that end at these seconds."""
    return marks(*(("end", n, t) for n, t in enumerate(seconds, 1)))


def spans(start: float, end: float, cpu: float | None = None, **totals: float) -> Line:
    """A report of one thread: ``data=0.4`` is one span of that many seconds."""
    return {
        "k": "spans",
        "pid": 7,
        "tid": 7,
        "from": round(start * S),
        "to": round(end * S),
        "cpu_us": None if cpu is None else round(cpu * S),
        "spans": [
            {"name": name, "count": 1, "total_us": round(total * S)}
            for name, total in totals.items()
        ],
    }


def end(seconds: float, exit_code: int | None = 0, **changes: Any) -> Line:
    return {
        "k": "end",
        "t": round(seconds * S),
        "exit_code": exit_code,
        "signal": None,
        "interrupted": False,
        "cpu_user_us": 0,
        "cpu_system_us": 0,
        "outlived": 0,
    } | changes


def written(*lines: Line) -> list[str]:
    return [json.dumps(line) + "\n" for line in lines]


def recorded(text: Sequence[str]) -> list[Recorded]:
    """The facts of a spool, as a ledger holds them."""
    spool = read_spool(text)
    sealed = RunSamples(run=spool.run, sha256="0" * 64, size_bytes=1, samples=1)
    facts = facts_of(spool, sealed=sealed)
    return [Recorded(seq=i, recorded_at=AS_OF, fact=fact) for i, fact in enumerate(facts, 1)]


def view_of(*lines: Line) -> RunView:
    """The view of the one run that these lines (a header first) tell of."""
    (view,) = run_views(recorded(written(*lines))).values()
    return view
