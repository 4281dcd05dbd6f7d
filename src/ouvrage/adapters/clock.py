"""The clock and chance: the only module that reads either.

Gives moments, durations and new ids. What they mean, and how they are written, is ``base``.
"""

from __future__ import annotations

import os
import time

from ouvrage.base.ids import uuid7


def now_us() -> int:
    """Microseconds since the epoch, UTC."""
    return time.time_ns() // 1000


def monotonic_us() -> int:
    """Microseconds on the machine's monotonic clock, one for all its processes."""
    return time.monotonic_ns() // 1000


def own_cpu_us() -> int:
    """Processor time that the calling thread has used."""
    return time.thread_time_ns() // 1000


def new_id() -> str:
    """A new UUIDv7 as 32 hexadecimal digits."""
    return uuid7(now_us(), int.from_bytes(os.urandom(10), "big"))


def random_bytes(count: int) -> bytes:
    """Bytes that nobody can guess, for secrets."""
    return os.urandom(count)
