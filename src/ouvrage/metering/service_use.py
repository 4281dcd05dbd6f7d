"""What passes through to a service, added up: requests, tokens, and how long they took.

Decides what one exchange counts for, and that sums of several spells are the sum of their facts. Nothing here knows when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ouvrage.metering.answers import Answered
from ouvrage.metering.latency import P50, P95, bucket_of, quantile_us
from ouvrage.model.work import Bucket, ServiceUsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and what came of it; times in microseconds from its arrival, None where there was no such moment.

    ``status`` is None where no whole answer came. ``kept_open``: a connection that both sides keep, whose length nobody waited for.
    """

    status: int | None
    answered: Answered
    bytes_in: int
    bytes_out: int
    first_us: int | None
    token_us: int | None
    took_us: int
    kept_open: bool = False


@dataclass(slots=True)
class Tally:
    """A sum of exchanges."""

    requests: int = 0
    failed: int = 0
    counted: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    pieces: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    first: Counter[int] = field(default_factory=Counter[int])
    token: Counter[int] = field(default_factory=Counter[int])
    took: Counter[int] = field(default_factory=Counter[int])

    def note(self, seen: Exchange) -> None:
        """Count one more."""
        told = seen.answered
        self.requests += 1
        self.failed += seen.status is None or seen.status >= 500
        self.bytes_in += seen.bytes_in
        self.bytes_out += seen.bytes_out
        if told.tokens_out is None:
            self.pieces += told.pieces
        else:
            self.counted += 1
            self.tokens_in += told.tokens_in or 0
            self.tokens_out += told.tokens_out
        whole = seen.status is not None and not seen.kept_open
        for counts, us in (
            (self.first, seen.first_us),
            (self.token, seen.token_us),
            (self.took, seen.took_us if whole else None),
        ):
            if us is not None:
                counts[bucket_of(us)] += 1

    def add(self, more: ServiceUsed | Tally) -> None:
        """Count what another sum holds."""
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(more, name))
        for name in _LENGTHS:
            theirs = getattr(more, name)
            counts = theirs if isinstance(theirs, Counter) else _counts(theirs)
            getattr(self, name).update(counts)

    def fact(self, attempt: str, job: str) -> ServiceUsed:
        """The statement of it."""
        numbers: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        lengths: dict[str, Any] = {name: _buckets(getattr(self, name)) for name in _LENGTHS}
        return ServiceUsed(attempt=attempt, job=job, **numbers, **lengths)

    def times_us(self, name: str) -> tuple[int | None, int | None]:
        """Median and 95th percentile of ``first``, ``token`` or ``took``."""
        counts = getattr(self, name)
        return quantile_us(counts, P50), quantile_us(counts, P95)

    @property
    def unit(self) -> tuple[str, int]:
        """What the service is counted by: tokens where it told those of every answer that went well, else requests."""
        well = self.requests - self.failed
        by_tokens = self.tokens_out > 0 and self.counted >= well
        return ("token", self.tokens_out) if by_tokens else ("request", well)


_NUMBERS = (
    *("requests", "failed", "counted", "tokens_in", "tokens_out", "pieces"),
    *("bytes_in", "bytes_out"),
)
_LENGTHS = ("first", "token", "took")


def _counts(buckets: Iterable[Bucket]) -> Counter[int]:
    return Counter({each.bucket: each.count for each in buckets})


def _buckets(counts: Counter[int]) -> tuple[Bucket, ...]:
    return tuple(Bucket(bucket=bucket, count=counts[bucket]) for bucket in sorted(counts))
