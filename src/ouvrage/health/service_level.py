"""The level of service that a machine's own record can honestly promise.

Decides that silence counts as down, that one more fault than there was must not break the promise, and that a record which is
too short promises nothing. Terms and credits are the owner's; what availability is, ``availability`` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.health.availability import Availability, Stay, availability
from ouvrage.health.record import Moved

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """``percent`` of availability that can be promised, None where nothing can; ``how`` it follows, or why not."""

    percent: Fraction | None
    how: str


def stays(moves: Iterable[Moved], until_us: int) -> list[Stay]:
    """The states that a node and its devices were in, each until its next move."""
    by_device: dict[str | None, list[Moved]] = {}
    for each in sorted(moves, key=lambda m: m.at_us):
        by_device.setdefault(each.move.device, []).append(each)
    found: list[Stay] = []
    for device, mine in by_device.items():
        ends = [*(each.at_us for each in mine[1:]), until_us]
        found += [
            Stay(device=device, state=m.move.to_state, from_us=m.at_us, to_us=end, id=m.id)
            for m, end in zip(mine, ends, strict=True)
            if end > m.at_us
        ]
    return found


def promise(
    moves: Sequence[Moved], now_us: int, *, levels: Sequence[Fraction], least_days: Fraction, repair_us: int
) -> Promise:  # fmt: skip
    """The highest level that the worst device's record carries, with one fault more than it had."""
    known = stays(moves, now_us)
    if not known:
        return Promise(percent=None, how="the agent has recorded no state of this machine yet")
    from_us = min(stay.from_us for stay in known)
    days = Fraction(now_us - from_us, DAY_US)
    if days < least_days:
        return Promise(
            percent=None, how=f"{float(days):.1f} days of record; {least_days} are needed"
        )
    devices = sorted({stay.device for stay in known if stay.device is not None}) or ["the machine"]
    records = [availability(device, known, from_us, now_us) for device in devices]
    shares = [(_with_one_more(each, repair_us), each) for each in records]
    share, worst = min(shares, key=lambda each: each[0])
    level = max((each for each in levels if each <= 100 * share), default=None)
    how = (
        f"{float(100 * share):.3f} % over {float(days):.0f} days with one fault more than the {worst.faults} on record "
        f"({worst.device}); silence counts as down, a sick GPU too"
    )
    return Promise(percent=level, how=how)  # fmt: skip


def _with_one_more(found: Availability, repair_us: int) -> Fraction:
    """Availability if one more fault of the usual length had come."""
    whole = found.up_us + found.down_us + found.unknown_us
    if not whole:
        return Fraction(0)
    repair = found.to_repair_us if found.to_repair_us is not None else Fraction(repair_us)
    return max(Fraction(0), (found.up_us - repair) / whole)
