"""Whose fault a job's end was: the hardware's, the program's, or not known.

Decides by what was seen on the job's parts from ten minutes before to five minutes after its end (Meta, arXiv
2410.21680), and by whom: a fault of the hardware's sort, a fault of a program's, nothing. A program that fails in the same
way on several nodes is the program's fault on all of them, whatever else was seen of that sort.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.health.tables import Thresholds

HARDWARE, PROGRAM, UNKNOWN = BLAMES = ("hardware", "program", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A job that failed: when, whose, on which nodes and devices."""

    job: str
    tenant: str
    at_us: int
    nodes: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that was seen on a node, or on one device of it. ``sort`` is the sort of its code in the table.

    ``certain``: by itself it ends what runs there (a lost GPU, an uncontained memory error).
    """

    id: str
    node: str
    device: str | None
    at_us: int
    code: str
    sort: str
    certain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Whose fault it was, how sure (a share), and the faults that say so; several may."""

    job: str
    cause: str
    confidence: Fraction
    evidence: tuple[str, ...]
    why: str


_PROGRAMS = frozenset({"app"})
_EITHER = frozenset({"app_or_hw", "app_or_bus"})
_NEITHER = frozenset({"noise", "meta", "software", "driver"})


def blamed(
    ended: Ended, faults: Iterable[Fault], others: Sequence[Ended], bounds: Thresholds
) -> Blame:
    """Whose fault one job's failure was. ``others`` are failures of other jobs, to see who fails where."""
    met = [fault for fault in faults if _touches(fault, ended) and _near(fault, ended, bounds)]
    hard = [f for f in met if f.sort not in _PROGRAMS | _EITHER | _NEITHER]
    if hard:
        sure = any(f.certain for f in hard)
        return _blame(
            ended, HARDWARE, Fraction(9 if sure else 7, 10), hard, "a fault of the machine"
        )
    either = [f for f in met if f.sort in _EITHER]
    if either:
        return _either(ended, either, others)
    program = [f for f in met if f.sort in _PROGRAMS]
    if program:
        return _blame(ended, PROGRAM, Fraction(8, 10), program, "a fault of the program's sort")
    return _blame(
        ended, UNKNOWN, Fraction(0), [], "nothing was seen on its machines around its end"
    )


def _touches(fault: Fault, ended: Ended) -> bool:
    """Whether a fault was on a part of the job: its device, or its node where no device is told."""
    return fault.node in ended.nodes and (
        fault.device is None or not ended.devices or fault.device in ended.devices
    )


def _near(fault: Fault, ended: Ended, bounds: Thresholds) -> bool:
    since = fault.at_us - ended.at_us
    return -bounds.us("blame.before") <= since <= bounds.us("blame.after")


def _either(ended: Ended, faults: Sequence[Fault], others: Sequence[Ended]) -> Blame:
    """Codes that can be either's: the same owner failing elsewhere, or other owners failing here, tells."""
    elsewhere = [
        o for o in others if o.tenant == ended.tenant and not set(o.nodes) & set(ended.nodes)
    ]
    here = {
        o.tenant for o in others
        if o.tenant != ended.tenant and set(o.devices or o.nodes) & set(ended.devices or ended.nodes)
    }  # fmt: skip
    if elsewhere:
        words = f"the same owner's jobs fail on {len({n for o in elsewhere for n in o.nodes})} other nodes"
        return _blame(ended, PROGRAM, Fraction(9, 10), faults, words)
    if here:
        words = f"jobs of {len(here)} other owners failed on the same part"
        return _blame(ended, HARDWARE, Fraction(7, 10), faults, words)
    return _blame(ended, PROGRAM, Fraction(6, 10), faults, "most often the program's fault")


def _blame(
    ended: Ended, cause: str, confidence: Fraction, faults: Sequence[Fault], why: str
) -> Blame:
    return Blame(
        job=ended.job,
        cause=cause,
        confidence=confidence,
        evidence=tuple(f.id for f in faults),
        why=why,
    )
