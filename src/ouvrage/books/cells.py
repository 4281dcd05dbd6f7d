"""Where money and time of the books stand: in cells of site, node, device, channel and tenant.

Decides how an amount about something larger comes down to devices: by the time that each stood there,
unless what it is for says more. Every split is of whole nano-units by largest remainder, so that the
cells add up to the amount, and devices, nodes and channels to the site, exactly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple, TypeVar

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import nano, split_whole
from ouvrage.books.calendar import SOLD, Stretch, in_turn, node_calendar, placements
from ouvrage.books.period import Period
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.terms import TermBook
from ouvrage.evidence.fact_keys import FactKeys

T = TypeVar("T")
UNNAMED = "unnamed"
"""The channel of time that somebody had, when nobody said through which channel."""


class Cell(NamedTuple):
    """``channel`` and ``tenant`` are None for time that nobody bought, and for what it costs."""

    node: str
    device: str
    channel: str | None
    tenant: str | None


Weights = Sequence[tuple[Cell, int]]


@dataclass(slots=True)
class Sum:
    """What was added up in one cell under one line, in nano-units."""

    nano: int = 0
    by_grade: dict[Grade, int] = field(default_factory=dict)
    methods: dict[str, None] = field(default_factory=dict)
    keys: FactKeys = field(default_factory=FactKeys)


Sums = dict[tuple[str, Cell], Sum]


class Trail(Sums):
    """Sums that remember each amount as it was posted, in whole nano-units, with its channel."""

    def __init__(self) -> None:
        super().__init__()
        self.posted: list[tuple[Amount, int, str | None]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An amount under a line (``cost.rent``), exact, with how it was made and from which facts."""

    line: str
    value: Fraction
    grade: Grade
    method: str
    keys: Sequence[str] = ()


def post(sums: Sums, amount: Amount, weights: Weights) -> None:
    """Add an amount to cells in proportion to their weights; nothing of it is lost."""
    whole = nano(amount.value)
    if isinstance(sums, Trail) and weights:
        sums.posted.append((amount, whole, weights[0][0].channel))
    if len(weights) == 1:
        return _add(sums, amount, [(weights[0][0], whole)])
    shares = [weight for _, weight in weights]
    parts = split_whole(whole, shares if any(shares) else [1] * len(shares))
    return _add(sums, amount, zip([cell for cell, _ in weights], parts, strict=True))


def _add(sums: Sums, amount: Amount, parts: Iterable[tuple[Cell, int]]) -> None:
    line, grade, method, keys = amount.line, amount.grade, amount.method, amount.keys
    for cell, part in parts:
        held = sums.get((line, cell))
        if held is None:
            held = sums[line, cell] = Sum()
        held.nano += part
        held.by_grade[grade] = held.by_grade.get(grade, 0) + abs(part)
        held.methods[method] = None
        held.keys.add(keys)


class Lane(NamedTuple):
    """The stretches of a device in a node in order, with the beginning, the end and the cell of each."""

    stretches: tuple[Stretch, ...]
    begins: list[int]
    ends: list[int]
    cells: list[Cell]

    def over(self, from_us: int, to_us: int) -> list[tuple[Cell, int]]:
        """The cells of a stretch of time, with the time of each."""
        first = bisect_right(self.ends, from_us)
        last = bisect_left(self.begins, to_us, first)
        found = [
            (cell, ends - begins)
            for cell, begins, ends in zip(
                self.cells[first:last], self.begins[first:last], self.ends[first:last], strict=True
            )
        ]
        if found:
            cell, us = found[0]
            found[0] = (cell, us - max(0, from_us - self.begins[first]))
            cell, us = found[-1]
            found[-1] = (cell, us - max(0, self.ends[last - 1] - to_us))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The devices of a site over a period: their calendars, in which node, of which model.

    ``parts`` are the record as far as it concerns each node's occupancy alone, ``lanes`` the stretches
    of each device of a node with their cells.
    """

    site: str
    currency: str
    period: Period
    nodes: tuple[str, ...]
    parts: Mapping[str, OwnerRecord]
    stretches: Mapping[str, Mapping[str, tuple[Stretch, ...]]]
    lanes: Mapping[str, Mapping[str, Lane]]
    models: Mapping[str, str | None]
    terms: TermBook

    def all(self) -> Iterable[Stretch]:
        """Every stretch of every device."""
        for devices in self.stretches.values():
            for stretches in devices.values():
                yield from stretches

    def by_cell(self) -> Iterator[tuple[Cell, Stretch]]:
        """Every stretch of every device with its cell."""
        for devices in self.lanes.values():
            for lane in devices.values():
                yield from zip(lane.cells, lane.stretches, strict=True)

    def weights(
        self, about: str, from_us: int, to_us: int, only: str | None = None
    ) -> list[tuple[Cell, int]]:
        """The cells of an object with the device time of each; ``only``: time sold on a channel.

        One cell of the object itself where no device stood there then.
        """
        found: dict[Cell, int] = {}
        for lane in self._within(about):
            for cell, us in lane.over(from_us, to_us):
                if only is None or ((channel := cell.channel) and channel in (only, UNNAMED)):
                    found[cell] = found.get(cell, 0) + us
        return list(found.items()) or ([] if only else [(self._itself(about), 1)])

    def stood(self, about: str, from_us: int, to_us: int) -> bool:
        """Whether any device of an object stood in service at some moment of a time."""
        return any(lane.over(from_us, to_us) for lane in self._within(about))

    def _within(self, about: str) -> Iterable[Lane]:
        sort, _, name = about.partition(":")
        if sort == "node":
            return self.lanes.get(name, {}).values()
        if sort == "device":
            return [devices[name] for devices in self.lanes.values() if name in devices]
        return [lane for devices in self.lanes.values() for lane in devices.values()]

    def _itself(self, about: str) -> Cell:
        sort, _, name = about.partition(":")
        node = name if sort == "node" else ""
        return Cell(node, name if sort == "device" else "", None, None)

    def holds(self, about: str) -> bool:
        """Whether something stated about an object belongs to this site's books."""
        sort, _, name = about.partition(":")
        if sort == "site":
            return name == self.site
        if sort == "node":
            return name in self.nodes
        return sort == "device" and name in self.models


def cell_of(stretch: Stretch) -> Cell:
    """The cell to which a stretch of a device belongs."""
    device, node, _, _, state, _, channel, tenant, *_ = stretch
    if state not in SOLD:
        return Cell(node, device, None, None)
    return Cell(node, device, channel or UNNAMED, tenant)


def _lane(stretches: tuple[Stretch, ...]) -> Lane:
    begins, ends = [each.from_us for each in stretches], [each.to_us for each in stretches]
    made: dict[Cell, Cell] = {}  # the same cell again and again is found faster as the same object
    cells = [made.setdefault(cell, cell) for cell in map(cell_of, stretches)]
    return Lane(stretches, begins, ends, cells)


def grid_of(record: OwnerRecord, site: str, period: Period) -> Grid:
    """The devices of a site over a period."""
    held = record.site(site)
    turns = in_turn(record.nodes, lambda value: [value.node])
    nodes = sorted({turn.value.node for turn in turns if turn.value.site == site})
    placed = placements(record)
    ours, parts = set(nodes), dict(_parts(record, nodes))
    stretches = {node: node_calendar(part, node, period) for node, part in parts.items()}
    return Grid(
        site=site,
        currency=held.value.currency if held else "",
        period=period,
        nodes=tuple(nodes),
        parts=parts,
        stretches=stretches,
        lanes={
            node: {device: _lane(found) for device, found in devices.items()}
            for node, devices in stretches.items()
        },
        terms=TermBook(record, period.from_us, period.to_us),
        models={turn.value.device: turn.value.model for turn in placed if turn.value.node in ours},
    )


def _parts(record: OwnerRecord, nodes: Sequence[str]) -> Iterable[tuple[str, OwnerRecord]]:
    """For each node the record of it alone: what is said of others need not be looked at again."""
    homes: dict[str, set[str]] = {}
    for placed in record.devices:
        homes.setdefault(placed.value.device, set()).add(placed.value.node)
    states = _by_node(record.states, homes, lambda value: (value.node, value.device))
    leases = _by_node(record.leases, homes, lambda value: _named(value.about))
    devices = _by_node(record.devices, homes, lambda value: (None, value.device))
    for node in nodes:
        yield (
            node,
            replace(
                record,
                nodes=tuple(each for each in record.nodes if each.value.node == node),
                devices=tuple(devices.get(node, ())),
                states=tuple(states.get(node, ())),
                leases=tuple(leases.get(node, ())),
            ),
        )


def _by_node(
    entries: Iterable[Known[T]],
    homes: Mapping[str, set[str]],
    about: Callable[[T], tuple[str | None, str | None]],
) -> dict[str, list[Known[T]]]:
    """Statements by the nodes that they may concern: the one they name, or those of their device."""
    found: dict[str, list[Known[T]]] = {}
    for each in entries:
        node, device = about(each.value)
        for place in (node,) if node else homes.get(device or "", ()):
            found.setdefault(place, []).append(each)
    return found


def _named(about: str) -> tuple[str | None, str | None]:
    sort, _, name = about.partition(":")
    return (name if sort == "node" else None, name if sort == "device" else None)
