"""How often somebody may ask: a bucket of tokens for everyone who asks, filled at a steady rate.

Decides when the next request is one too many and how long to wait. Buckets stand in memory, in each server process for itself;
what must outlive a restart, the failed attempts to sign in, stands in the store (``services/signing_in``).
"""

from __future__ import annotations

import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from ouvrage.base.time import SECOND
from ouvrage.server.errors import too_many

_MOST = 50_000
_AGAIN_S = 10


@dataclass(slots=True)
class _Bucket:
    left: float
    at_us: int


class Open:
    """How many connections of each organisation stay open in this process. In the event loop only."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, org: str, most: int) -> Generator[None]:
        """One more, for as long as the context lasts. ``Refused`` 429 where there are ``most``: each may hold messages of many MiB."""
        if self._open[org] >= most:
            words = f"{most} connections of your organisation are open, and no more may be"
            raise too_many("stream/too-many", words, _AGAIN_S)
        self._open[org] += 1
        try:
            yield
        finally:
            self._open -= Counter((org,))


class Limits:
    """Buckets by name; those not asked for longest make room for new ones."""

    def __init__(self, monotonic: Callable[[], int]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, name: str, *, a_second: float, at_once: float) -> None:
        """Take one token, or raise ``Refused`` 429 with the seconds until there is one."""
        with self._lock:
            wait = self._wait(name, a_second, at_once)
        if wait > 0:
            raise too_many("request/too-many", "too many requests in a short time", wait)

    def _wait(self, name: str, a_second: float, at_once: float) -> int:
        now = self._monotonic()
        bucket = self._buckets.pop(name, None) or _Bucket(at_once, now)
        self._buckets[name] = bucket
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        bucket.left = min(at_once, bucket.left + (now - bucket.at_us) / SECOND * a_second)
        bucket.at_us = now
        if bucket.left < 1:
            return max(1, math.ceil((1 - bucket.left) / a_second))
        bucket.left -= 1
        return 0
