"""Spools as a meter writes them, to measure: seconds of each unit, waits, price, label.

The moments are chosen, so that a test knows every figure beforehand.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ouvrage.base.ids import uuid7

SECOND = 1_000_000
SOURCE = uuid7(1_700_000_000_000_000, 7)
HOST = {
    "cpu_model": "Test CPU",
    "cpus_online": 2,
    "cpus_allowed": 1,
    "cpu_quota_ppm": None,
    "memory_bytes": 8 << 30,
    "memory_limit_bytes": None,
    "kernel": "6.1.0",
}


def run_id(number: int) -> str:
    """An id whose code differs from every other's; later numbers are later runs."""
    return uuid7(1_764_500_000_000_000 + number * SECOND, (number * 0x9E3779B97F4A7C15) << 12)


def price(amount: str, currency: str = "EUR") -> dict[str, str]:
    return {"amount": amount, "currency": currency, "per": "h"}


def spool(
    run: str,
    units: Sequence[float],
    *,
    label: str | None = None,
    rate: dict[str, str] | None = None,
    started_us: int = 1_764_500_000 * SECOND,
    start_up: float = 1.0,
    waiting: float = 0.5,
    exit_code: int | None = 0,
    ended: bool = True,
    command: Sequence[str] = ("python", "train.py"),
    unit: str = "epoch",
) -> str:
    """A spool's text: units of these seconds after ``start_up``, ``waiting`` of them for data."""
    ends = [round((start_up + sum(units[: i + 1])) * SECOND) for i in range(len(units))]
    wall = (ends[-1] if ends else round(start_up * SECOND)) + SECOND // 4
    lines: list[dict[str, Any]] = [
        {
            "k": "run",
            "v": 1,
            "run": run,
            "source": SOURCE,
            "started_us": started_us,
            "label": label,
            "command": list(command),
            "cwd": "/work",
            "price": rate,
            "unit": None,
            "period_us": SECOND,
            "host": HOST,
            "meter": "0.1.0",
        },
        _samples(wall),
    ]
    begin = round(start_up * SECOND)
    for n, end in enumerate(ends, 1):
        lines.append(
            {"k": "marks", "name": unit, "via": "line", "pid": None}
            | {"mark": ["end"], "n": [n], "t": [end]}
        )
        lines.append(_spans(begin, end, waiting))
        begin = end
    if ended:
        lines.append(
            {"k": "end", "t": wall, "exit_code": exit_code, "signal": None, "interrupted": False}
            | {"cpu_user_us": wall * 9 // 10, "cpu_system_us": wall // 20, "outlived": 0}
        )
    return "".join(json.dumps(line) + "\n" for line in lines)


def _spans(begin: int, end: int, waiting: float) -> dict[str, Any]:
    waited = round((end - begin) * waiting)
    return {
        "k": "spans",
        "pid": 100,
        "tid": 100,
        "from": begin,
        "to": end,
        "cpu_us": (end - begin) - waited,
        "spans": [{"name": "data", "count": 10, "total_us": waited}],
    }


def _samples(wall: int) -> dict[str, Any]:
    moments = [*range(0, wall, SECOND), wall]
    share = {
        "cpu_user_us": 0.9,
        "cpu_system_us": 0.05,
        "run_delay_us": 0.02,
        "emitter_cpu_us": 0.5,
        "emitter_run_delay_us": 0.01,
        "host_busy_us": 1.0,
        "host_idle_us": 1.0,
        "read_bytes": 0.001,
        "write_bytes": 0.001,
    }
    columns: dict[str, list[int | None]] = {
        name: [round(t * part) for t in moments] for name, part in share.items()
    }
    columns["rss_bytes"] = [100 << 20 for _ in moments]
    columns["processes"] = [2 for _ in moments]
    return {"k": "samples", "t": moments, "c": columns}
