"""A spool as a meter leaves it, small: three epochs of a priced run, three samples."""

from __future__ import annotations

import json
from typing import Any

from tests.support.facts import SOURCE

STARTED = 1_760_000_000_000_000
SECOND = 1_000_000


def run_id(number: int) -> str:
    """An id whose time is ``STARTED`` and whose code differs from run to run."""
    return f"{STARTED // 1000:012x}7000" + "8" + f"{number:x}".rjust(3, "0").ljust(15, "0")


def lines(run: str, **header: Any) -> list[dict[str, Any]]:
    host = {
        "cpu_model": "Test CPU",
        "cpus_online": 2,
        "cpus_allowed": 2,
        "cpu_quota_ppm": None,
        "memory_bytes": 8 << 30,
        "memory_limit_bytes": None,
        "kernel": "6.1",
    }
    times = [0, 10 * SECOND, 20 * SECOND]
    return [
        {
            "k": "run", "v": 1, "run": run, "source": SOURCE, "started_us": STARTED, "label": "small",
            "command": ["python", "träin.py"], "cwd": "/tmp", "unit": None, "period_us": 10 * SECOND,
            "price": {"amount": "0.30", "currency": "EUR", "per": "h"}, "host": host,
            "meter": "0.1.0", **header,
        },
        {
            "k": "samples", "t": times,
            "c": {"cpu_user_us": [0, 9 * SECOND, 18 * SECOND], "cpu_system_us": [0, 0, 0],
                  "rss_bytes": [1000, 2000, 3000]},
        },
        {
            "k": "marks", "name": "epoch", "via": "line", "pid": None,
            "mark": ["end", "end", "end"], "n": [1, 2, 3],
            "t": [6 * SECOND, 12 * SECOND, 18 * SECOND],
        },
        {
            "k": "end", "t": 20 * SECOND, "exit_code": 0, "signal": None, "interrupted": False,
            "cpu_user_us": 18 * SECOND, "cpu_system_us": 0, "outlived": 0,
        },
    ]  # fmt: skip


def spool(run: str, *, ended: bool = True, **header: Any) -> bytes:
    chosen = lines(run, **header) if ended else lines(run, **header)[:-1]
    return b"".join(json.dumps(line).encode() + b"\n" for line in chosen)
