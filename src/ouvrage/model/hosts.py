"""What a host delivered: readings, what an offer promised, and each held to the other.

A reading is what the machine showed and how that was found out; a promise is what an offer says. Numbers
are decimal texts. Nothing here is judged: ``pricing.market.host_checks`` makes the lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ouvrage.base.numbers import decimal_text
from ouvrage.model.runs import Host

HELD, BROKEN, UNKNOWN = OUTCOMES = ("held", "broken", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReading:
    """One thing that a host showed. ``id`` says what, ``part`` of which device (None: the host).

    The true value lies from ``low`` to ``high``; equal where it was read exactly, None where that side
    is open. ``text`` is a name in place of a number. All three None: nothing was read, and ``how`` says why.
    """

    id: str
    part: str | None
    low: str | None
    high: str | None
    text: str | None
    unit: str
    how: str


def reading(
    id: str,
    unit: str,
    how: str,
    low: Fraction | int | None = None,
    high: Fraction | int | None = None,
    *,
    text: str | None = None,
    part: str | None = None,
) -> HostReading:
    """A reading between two bounds; the exact one has both alike."""
    return HostReading(
        id=id,
        part=part,
        low=None if low is None else decimal_text(low),
        high=None if high is None else decimal_text(high),
        text=text,
        unit=unit,
        how=how,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPromise:
    """What an offer says of ``id``: that it is ``operator`` ``value``.

    ``margin_percent`` is how much less (more, under ``<=``) still counts as delivered; ``field`` is the
    name under which the offer says it.
    """

    id: str
    operator: str
    value: str
    unit: str
    margin_percent: int
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLine:
    """A reading held to a promise. ``promised`` None: nothing was. ``outcome`` is one of ``OUTCOMES``."""

    id: str
    part: str | None
    low: str | None
    high: str | None
    text: str | None
    promised: str | None
    operator: str
    margin_percent: int
    unit: str
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChecked:
    """A host was checked. ``machine`` is the source whose runs stand on it.

    ``offer`` and ``provider`` name what it was held to, None where it was held to nothing;
    ``offer_fact`` is that offer's fact, where it is one.
    """

    KIND: ClassVar[str] = "host.check"
    VERSION: ClassVar[int] = 1

    check: str
    machine: str
    started_us: int
    took_us: int
    long: bool
    offer: str | None
    provider: str | None
    offer_fact: str | None
    host: Host
    readings: tuple[HostReading, ...]
    promises: tuple[HostPromise, ...]
    lines: tuple[HostLine, ...]
