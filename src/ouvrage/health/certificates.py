"""Whether a certificate still counts: what it proved, with the parts that are there now, at this moment.

Decides that one expires by the length of its load, that a part which was changed, added or taken away voids it, and which of a
machine's certificates speak for it. Reading parts and the clock is others'.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.health.parts import part_id
from ouvrage.model.health import NodeCertificate, Part

VALID, EXPIRED, VOID, FAILED = ("valid", "expired", "void", "failed")
BINDING = ("kernel", "nvidia driver")
"""Software that a certificate is bound to; a container runtime or a system's point release changes no result."""
_MOST = 5
_SLACK_US = 3_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a certificate counts (``state``), and why not."""

    certificate: NodeCertificate
    state: str
    reasons: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether it can be relied on."""
        return self.state == VALID


def part_ids(parts: Iterable[Part]) -> tuple[str, ...]:
    """The parts that a certificate is bound to, as it names them."""
    bound = (p for p in parts if p.kind != "software" or p.slot in BINDING)
    return tuple(sorted({part_id(part) for part in bound}))


def standing(
    certificate: NodeCertificate,
    parts: Sequence[str] | None,
    now_us: int,
    untold: Collection[str] = (),
    longest_us: int | None = None,
) -> Standing:
    """How a certificate stands with the parts there are now; None: they are not known, and taken as unchanged.

    So are parts of the kinds ``untold``, which could not be read now: that a serial can't be told is no change. One that ends
    later than in ``longest_us`` was made with a clock that was ahead, and counts for nothing.
    """
    if not certificate.passed:
        return Standing(certificate=certificate, state=FAILED, reasons=_failures(certificate))
    changed = () if parts is None else _changes(certificate.parts, parts, untold)
    if changed:
        return Standing(certificate=certificate, state=VOID, reasons=changed)
    if longest_us is not None and certificate.expires_us > now_us + longest_us + _SLACK_US:
        why = "it ends later than any can: the clock was ahead when it was made"
        return Standing(certificate=certificate, state=VOID, reasons=(why,))
    if now_us >= certificate.expires_us:
        why = "it has expired, and dust, fans and software have gone on"
        return Standing(certificate=certificate, state=EXPIRED, reasons=(why,))
    return Standing(certificate=certificate, state=VALID, reasons=())


def _failures(certificate: NodeCertificate) -> tuple[str, ...]:
    failed = [p for p in certificate.proofs if p.passed is False]
    left = [p for p in certificate.proofs if p.passed is None and p.needed]
    return (
        *(f"{p.code}: {p.actual} {p.unit}".rstrip() + f", {p.operator} {p.required} needed" for p in failed),
        *(f"{p.code}: {p.how}" for p in left),
    )  # fmt: skip


def _changes(before: Sequence[str], now: Sequence[str], untold: Collection[str]) -> tuple[str, ...]:
    """What is another part now, by its place; the weightiest kinds first as they come."""
    was, is_ = _by_place(before), _by_place(now)
    words: list[str] = []
    for place in sorted(was.keys() | is_.keys()):
        if was.get(place) == is_.get(place) or place.partition(" ")[0] in untold:
            continue
        if place not in is_:
            words.append(f"{place} {was[place]} is gone")
        elif place not in was:
            words.append(f"{place} {is_[place]} is new")
        else:
            words.append(f"{place} was {was[place]} and is {is_[place]}")
    more = [f"and {len(words) - _MOST} more"] if len(words) > _MOST else []
    return (*words[:_MOST], *more)


def _by_place(ids: Iterable[str]) -> Mapping[str, str]:
    """What sits in each place; the place is ``kind slot``, which may hold colons of its own."""
    found: dict[str, str] = {}
    for each in ids:
        place, _, value = each.rpartition(":")
        found[place.replace(":", " ", 1)] = value
    return found


def latest(certificates: Iterable[NodeCertificate]) -> dict[str, NodeCertificate]:
    """The last certificate of each class, of those in the order in which they were recorded."""
    return {each.work_class: each for each in certificates}


def longest_us(bounds: Mapping[str, Fraction]) -> int:
    """How long a certificate counts at most."""
    return int(bounds["hosting_valid_days"] * 86_400 * 1_000_000)


def valid_us(tested_us: int, bounds: Mapping[str, Fraction]) -> int:
    """How long a certificate counts after a load of this length."""
    minutes = Fraction(tested_us, 60_000_000)
    if minutes >= bounds["hosting_minutes"]:
        days = bounds["hosting_valid_days"]
    elif minutes >= bounds["standard_minutes"]:
        days = bounds["standard_valid_days"]
    else:
        days = bounds["short_valid_days"]
    return int(days * 86_400 * 1_000_000)
