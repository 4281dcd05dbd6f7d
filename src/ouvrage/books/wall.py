"""What meters read before a machine or a site, as parts of time that do not overlap.

Decides which meter counts: at the wall before the machine's own (power distribution, power supply,
baseboard); several of the same kind hang before different inlets and are added. Where one of several is
silent for a while the moment is not metered: half of two inlets is not the machine. A reading is spread
evenly over its time in whole joules, so that any cut of it adds up to it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import NamedTuple

from ouvrage.base.grades import Grade
from ouvrage.books.record import MeterRead

ORDER = ("wall", "pdu", "psu", "bmc")
Reads = Sequence[MeterRead]
Turn = tuple[int, int, MeterRead]


class Part(NamedTuple):
    """A stretch of time in which the same readings stand: ``joules``, and the share they cover."""

    from_us: int
    to_us: int
    joules: int
    covered: Fraction
    scope: str
    reads: tuple[MeterRead, ...]

    @property
    def grade(self) -> Grade:
        """The weakest of its readings'."""
        reads = self.reads
        return reads[0].grade if len(reads) == 1 else max(read.grade for read in reads)

    @property
    def keys(self) -> tuple[str, ...]:
        """The facts of its readings."""
        return tuple(key for read in self.reads for key in read.keys)

    def joules_in(self, from_us: int, to_us: int) -> int:
        """The joules of a stretch of time within it."""
        return sum(joules_between(read, from_us, to_us) for read in self.reads)


def joules_between(read: MeterRead, from_us: int, to_us: int) -> int:
    """The whole joules of a reading that fall into a part of its time."""
    begins, length = read.valid_from, read.end - read.valid_from
    energy = read.energy_j
    return energy * (to_us - begins) // length - energy * (from_us - begins) // length


class Meters:
    """The readings of one scope before one object, by meter, without overlaps."""

    def __init__(self, reads: Iterable[MeterRead]) -> None:
        by_meter: dict[str, list[MeterRead]] = {}
        for read in reads:
            if read.covered_us > 0 and read.valid_to is not None:
                by_meter.setdefault(read.meter, []).append(read)
        self._parts = [_disjoint(each) for each in by_meter.values()]
        self._begins = [[part[0] for part in parts] for parts in self._parts]

    def __bool__(self) -> bool:
        return any(self._parts)

    def edges(self) -> set[int]:
        """Where a reading begins or ends."""
        return {at for parts in self._parts for part in parts for at in part[:2]}

    def at(self, at_us: int) -> tuple[MeterRead, ...] | None:
        """The readings that stand at a moment, one of each meter then in use; None where one is silent."""
        found: list[MeterRead] = []
        for parts, begins in zip(self._parts, self._begins, strict=True):
            if not begins[0] <= at_us < parts[-1][1]:
                continue
            _, ends, read = parts[bisect_right(begins, at_us) - 1]
            if at_us >= ends:
                return None
            found.append(read)
        return tuple(found) or None


def _disjoint(reads: Iterable[MeterRead]) -> list[Turn]:
    """One meter's readings in turn; what overlaps the one before counts from its end."""
    found: list[Turn] = []
    at = None
    ordered = list(reads)
    if not all(before.valid_from < after.valid_from for before, after in pairwise(ordered)):
        ordered.sort(key=lambda each: (each.valid_from, each.end, each.key))
    for read in ordered:
        begins = read.valid_from if at is None else max(at, read.valid_from)
        if begins < read.end:
            found.append((begins, read.end, read))
            at = read.end
    return found


def metered(
    reads: Reads, scopes: Sequence[str], from_us: int, to_us: int, cuts: Iterable[int] = ()
) -> list[Part]:
    """The metered parts of a stretch of time, cut at some moments; the first scope counts."""
    if not reads:
        return []
    cuts = list(cuts)
    found = _in_turn(reads, scopes, from_us, to_us, cuts)
    if found is not None:
        return found
    by_scope = [(scope, Meters(read for read in reads if read.scope == scope)) for scope in scopes]
    by_scope = [(scope, meters) for scope, meters in by_scope if meters]
    if not by_scope:
        return []
    edges = {from_us, to_us, *cuts}
    for _, meters in by_scope:
        edges |= meters.edges()
    inside = sorted(at for at in edges if from_us <= at <= to_us)
    found = []
    for begins, ends in pairwise(inside):
        for scope, meters in by_scope:
            standing = meters.at(begins)
            if standing is not None:
                found.append(_part(begins, ends, scope, standing))
                break
    return found


def _in_turn(
    reads: Reads, scopes: Sequence[str], from_us: int, to_us: int, cuts: Sequence[int]
) -> list[Part] | None:
    """``metered`` where one meter reads on and on without a gap of its own; None where it is not so."""
    if cuts or len({(read.meter, read.scope) for read in reads}) != 1:
        return None
    at, scope = reads[0].valid_from, reads[0].scope
    for _, _, _, _, _, covered, begins, ends, _, _ in reads:
        if ends is None or begins < at or not 0 < ends - begins <= covered:
            return None
        at = ends
    if (
        scope not in scopes
        or at <= from_us
        or reads[0].end <= from_us
        or reads[-1].valid_from >= to_us
    ):
        return None
    parts = [
        Part(read.valid_from, read.valid_to or 0, read.energy_j, _ALL, scope, (read,))
        for read in reads
    ]
    for index in (0, -1):
        if parts[index].from_us < from_us or parts[index].to_us > to_us:
            parts[index] = cut_to(parts[index], from_us, to_us)
    return parts


_ALL = Fraction(1)


def _share(read: MeterRead) -> Fraction:
    length = read.end - read.valid_from
    return _ALL if read.covered_us >= length else Fraction(read.covered_us, length)


def _part(from_us: int, to_us: int, scope: str, reads: tuple[MeterRead, ...]) -> Part:
    if len(reads) == 1:
        joules, covered = joules_between(reads[0], from_us, to_us), _share(reads[0])
    else:
        joules = sum(joules_between(read, from_us, to_us) for read in reads)
        covered = min(_share(read) for read in reads)
    return Part(from_us, to_us, joules, covered, scope, reads)


class Like(NamedTuple):
    """What parts in a row have in common; the same object for all of a row."""

    grade: Grade
    scope: str
    covered: Fraction


class Over(NamedTuple):
    """What was read over a stretch of time by parts in a row."""

    joules: int
    cost: int
    like: Like


class Running:
    """Parts with their running sums, to ask for any stretch of time without walking its parts.

    ``cost`` prices a part on its own; a part that a stretch cuts is priced as cut.
    """

    def __init__(self, parts: Sequence[Part], cost: Callable[[Part], int]) -> None:
        self._parts, self._cost = parts, cost
        self._begins = [part.from_us for part in parts]
        self._ends = [part.to_us for part in parts]
        self._joules = [0, *accumulate([part.joules for part in parts])]
        self._costs = [0, *accumulate(map(cost, parts))]
        self._rows: list[Like] = []
        row, ended = None, 0
        for part in parts:
            grade, (begins, ends, _, covered, scope, _) = part.grade, part
            like = (grade, scope, covered)
            if row is None or begins != ended or like != row:
                row = Like(*like)
            self._rows.append(row)
            ended = ends

    def over(self, from_us: int, to_us: int) -> Over | None:
        """What was read over a stretch; None where not all of it is metered, alike and to the full."""
        begins, ends = self._begins, self._ends
        first, last = bisect_right(ends, from_us), bisect_left(begins, to_us) - 1
        if first > last or self._rows[first] is not self._rows[last]:
            return None
        like = self._rows[first]
        if like.covered < 1 or begins[first] > from_us or ends[last] < to_us:
            return None
        joules = self._joules[last + 1] - self._joules[first]
        cost = self._costs[last + 1] - self._costs[first]
        if begins[first] < from_us or ends[last] > to_us:
            for index in {first, last}:
                part = self._parts[index]
                cut = cut_to(part, from_us, to_us)
                joules += cut.joules - part.joules
                cost += self._cost(cut) - self._cost(part)
        return Over(joules, cost, like)

    def keys(self, from_us: int, to_us: int, like: Like) -> KeysOver:
        """The facts of the parts of a row that lie in a stretch, not looked up yet."""
        first, last = bisect_right(self._ends, from_us), bisect_left(self._begins, to_us)
        return KeysOver(self._parts, self._rows, like, first, last)


class KeysOver:
    """The keys of some parts of a row, made when they are walked."""

    __slots__ = ("_first", "_last", "_like", "_parts", "_rows")

    def __init__(
        self, parts: Sequence[Part], rows: Sequence[Like], like: Like, first: int, last: int
    ) -> None:
        self._parts, self._rows, self._like = parts, rows, like
        self._first, self._last = first, last

    def __iter__(self) -> Iterator[str]:
        for index in range(self._first, self._last):
            if self._rows[index] is self._like:
                yield from self._parts[index].keys


def cut_to(part: Part, from_us: int, to_us: int) -> Part:
    """The part of a part that lies in a stretch of time."""
    begins, ends = max(part.from_us, from_us), min(part.to_us, to_us)
    return part._replace(from_us=begins, to_us=ends, joules=part.joules_in(begins, ends))


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
