"""What meters read before a machine or a site, as parts of time that do not overlap.

Decides which meter counts: at the wall before the machine's own (power distribution, power supply,
baseboard); several of the same kind hang before different inlets and are added. Where one of several is
silent for a while the moment is not metered: half of two inlets is not the machine. A reading is spread
evenly over its time in whole joules, so that any cut of it adds up to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from ouvrage.base.grades import Grade
from ouvrage.books.record import Known
from ouvrage.model.meters import EnergyRead

ORDER = ("wall", "pdu", "psu", "bmc")
Reads = Sequence[Known[EnergyRead]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of time in which the same readings stand: ``joules``, and the share they cover."""

    from_us: int
    to_us: int
    joules: int
    covered: Fraction
    scope: str
    reads: tuple[Known[EnergyRead], ...]

    @property
    def grade(self) -> Grade:
        """The weakest of its readings'."""
        return max(read.grade for read in self.reads)

    @property
    def keys(self) -> tuple[str, ...]:
        """The facts of its readings."""
        return tuple(key for read in self.reads for key in read.keys)

    def joules_in(self, from_us: int, to_us: int) -> int:
        """The joules of a stretch of time within it."""
        return sum(joules_between(read, from_us, to_us) for read in self.reads)


def joules_between(read: Known[EnergyRead], from_us: int, to_us: int) -> int:
    """The whole joules of a reading that fall into a part of its time."""
    begins, length = read.valid_from, read.end - read.valid_from
    energy = read.value.energy_j
    return energy * (to_us - begins) // length - energy * (from_us - begins) // length


class Meters:
    """The readings of one scope before one object, by meter, without overlaps."""

    def __init__(self, reads: Iterable[Known[EnergyRead]]) -> None:
        by_meter: dict[str, list[Known[EnergyRead]]] = {}
        for read in reads:
            if read.value.covered_us > 0 and read.valid_to is not None:
                by_meter.setdefault(read.value.meter, []).append(read)
        self._parts = [_disjoint(each) for each in by_meter.values()]
        self._begins = [[part[0] for part in parts] for parts in self._parts]

    def edges(self) -> set[int]:
        """Where a reading begins or ends."""
        return {at for parts in self._parts for part in parts for at in part[:2]}

    def at(self, at_us: int) -> tuple[Known[EnergyRead], ...] | None:
        """The readings that stand at a moment, one of each meter then in use; None where one is silent."""
        found: list[Known[EnergyRead]] = []
        for parts, begins in zip(self._parts, self._begins, strict=True):
            if not begins[0] <= at_us < parts[-1][1]:
                continue
            _, ends, read = parts[bisect_right(begins, at_us) - 1]
            if at_us >= ends:
                return None
            found.append(read)
        return tuple(found) or None


def _disjoint(reads: Iterable[Known[EnergyRead]]) -> list[tuple[int, int, Known[EnergyRead]]]:
    """One meter's readings in turn; what overlaps the one before counts from its end."""
    found: list[tuple[int, int, Known[EnergyRead]]] = []
    at = None
    for read in sorted(reads, key=lambda each: (each.valid_from, each.end, each.key)):
        begins = read.valid_from if at is None else max(at, read.valid_from)
        if begins < read.end:
            found.append((begins, read.end, read))
            at = read.end
    return found


def metered(
    reads: Reads, scopes: Sequence[str], from_us: int, to_us: int, cuts: Iterable[int] = ()
) -> list[Part]:
    """The metered parts of a stretch of time, cut at some moments; the first scope counts."""
    by_scope = [
        (scope, Meters(read for read in reads if read.value.scope == scope)) for scope in scopes
    ]
    by_scope = [(scope, meters) for scope, meters in by_scope if meters.edges()]
    if not by_scope:
        return []
    edges = {from_us, to_us, *cuts}
    for _, meters in by_scope:
        edges |= meters.edges()
    inside = sorted(at for at in edges if from_us <= at <= to_us)
    found: list[Part] = []
    for begins, ends in pairwise(inside):
        for scope, meters in by_scope:
            standing = meters.at(begins)
            if standing is not None:
                found.append(_part(begins, ends, scope, standing))
                break
    return found


_ALL = Fraction(1)


def _share(read: Known[EnergyRead]) -> Fraction:
    length = read.end - read.valid_from
    return _ALL if read.value.covered_us >= length else Fraction(read.value.covered_us, length)


def _part(from_us: int, to_us: int, scope: str, reads: tuple[Known[EnergyRead], ...]) -> Part:
    covered = min(_share(read) for read in reads)
    return Part(
        from_us=from_us,
        to_us=to_us,
        joules=sum(joules_between(read, from_us, to_us) for read in reads),
        covered=covered,
        scope=scope,
        reads=reads,
    )


class Counter:
    """What a GPU's own counter read, to divide what the wall read; never energy of its own."""

    def __init__(self, reads: Reads) -> None:
        self._meters = Meters(reads)
        self._edges = sorted(self._meters.edges())

    def between(self, from_us: int, to_us: int) -> tuple[int, tuple[str, ...]] | None:
        """Joules of a stretch of time and their facts; None where it does not cover all of it."""
        first = bisect_right(self._edges, from_us)
        inside = [from_us]
        for at in self._edges[first:]:
            if at >= to_us:
                break
            inside.append(at)
        total, keys = 0, {}
        for begins, ends in pairwise([*inside, to_us]):
            standing = self._meters.at(begins)
            if standing is None:
                return None
            total += sum(joules_between(read, begins, ends) for read in standing)
            keys.update(dict.fromkeys(key for read in standing for key in read.keys))
        return total, tuple(keys)
