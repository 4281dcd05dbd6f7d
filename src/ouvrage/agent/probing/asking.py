"""What passes between the supervisor and whoever looks: a question, and one of five sorts of answer.

Decides the sorts. ``values`` were read; ``absent`` says that there is nothing to look at; else ``fault`` says in words
what went wrong and ``sort`` which way: the probe says that it was refused, did not answer in time, ended, answered nonsense, or
sits in the kernel and cannot be ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REFUSED, HANG, CRASH, GARBAGE, STUCK = SORTS = ("refused", "hang", "crash", "garbage", "stuck")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One probe's answer. ``at_us`` is UTC and ``monotonic_us`` since boot, both when it came; ``took_us`` how long."""

    probe: str
    at_us: int
    monotonic_us: int
    took_us: int
    values: Mapping[str, Any] | None = None
    absent: str | None = None
    fault: str | None = None
    sort: str = REFUSED
