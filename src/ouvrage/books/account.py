"""The account of a site over a period: every amount in its cell, taxed, with what is not known.

Decides nothing that a line has not decided; it puts revenue, costs and tax together once, so that
every view of them (by device, node, channel, tenant) is a sum over the same cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO, split_whole
from ouvrage.books.calendar import SOLD, Stretch
from ouvrage.books.cells import Cell, Grid, Sum, Sums, grid_of
from ouvrage.books.costs import Unknown, spent
from ouvrage.books.period import Period
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.revenue import OWN_USE, Told, earned
from ouvrage.books.spans import merged, within
from ouvrage.books.terms import term
from ouvrage.evidence.fact_keys import FactKeys
from ouvrage.model.sites import DevicePlaced

TAX = "cost.tax"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What was posted where. ``hours`` are microseconds by cell and state, ``graded`` by grade.

    ``unknown`` says by line and device why a cost is not known; ``notes`` are things to say beside
    the figures. ``lines`` are the postings by cell, ``earning`` the nodes that earned anything,
    ``placed`` the placings of each device that counted, ``covered`` by device the time of which
    something says what was done or earned, and the time owned.
    """

    record: OwnerRecord
    grid: Grid
    sums: Mapping[tuple[str, Cell], Sum]
    hours: Mapping[Cell, Mapping[str, int]]
    graded: Mapping[Cell, Mapping[Grade | None, int]]
    facts: Mapping[Cell, FactKeys]
    unknown: Unknown
    notes: tuple[str, ...]
    lines: Mapping[Cell, Sequence[tuple[str, Sum]]]
    earning: frozenset[str]
    placed: Mapping[str, Sequence[Known[DevicePlaced]]]
    covered: Mapping[str, tuple[int, int]]

    @property
    def cells(self) -> list[Cell]:
        """Every cell in which there is time or money, in order."""
        found = {*self.hours, *(cell for _, cell in self.sums)}
        return sorted(found, key=lambda c: (c.node, c.device, c.channel or "", c.tenant or ""))


def account(record: OwnerRecord, site: str, period: Period, sums: Sums | None = None) -> Account:
    """The account of a site over a period, posted into ``sums`` where given.

    Raises ``OuvrageError`` ``books/...``.
    """
    if record.site(site) is None:
        raise OuvrageError("books/site", f"no site is called {site!r}", hint="ouvrage init")
    grid, told = grid_of(record, site, period), Told(notes={})
    sums = Sums() if sums is None else sums
    earned(record, grid, sums, told)
    unknown = spent(record, grid, sums, told)
    _tax(record, grid, sums, unknown)
    hours: dict[Cell, dict[str, int]] = {}
    graded: dict[Cell, dict[Grade | None, int]] = {}
    facts: dict[Cell, FactKeys] = {}
    for cell, stretch in grid.by_cell():
        if cell not in hours:
            hours[cell], graded[cell], facts[cell] = {}, {}, FactKeys()
        states, grades, us = hours[cell], graded[cell], stretch.us
        states[stretch.state] = states.get(stretch.state, 0) + us
        grades[stretch.grade] = grades.get(stretch.grade, 0) + us
        facts[cell].add(stretch.facts)
    return Account(
        record=record,
        grid=grid,
        sums=sums,
        hours=hours,
        graded=graded,
        facts=facts,
        unknown=unknown,
        notes=tuple(told.notes),
        lines=by_cell(sums),
        earning=frozenset(cell.node for line, cell in sums if line.startswith("revenue.")),
        placed={device: record.placed.get(device, ()) for device in grid.models},
        covered=_covered(record, grid),
    )


def _covered(record: OwnerRecord, grid: Grid) -> dict[str, tuple[int, int]]:
    """By device: the time of which it is known what was earned, and the time that it was owned."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for each in (*record.earnings, *record.leases):
        if each.meets(grid.period.from_us, grid.period.to_us):
            spans.setdefault(each.value.about, []).append((each.valid_from, each.end))
    found: dict[str, tuple[int, int]] = {}
    for node, devices in grid.stretches.items():
        shared = [*spans.get(f"node:{node}", ()), *spans.get(f"site:{grid.site}", ())]
        for device, stretches in devices.items():
            own = spans.get(f"device:{device}", ())
            known = [(s.from_us, s.to_us) for s in stretches if _settled(s)]
            stood = [(s.from_us, s.to_us) for s in stretches]
            told = within(merged([*shared, *own, *known]), merged(stood))
            before = found.get(device, (0, 0))
            found[device] = (before[0] + told, before[1] + sum(s.us for s in stretches))
    return found


def _settled(stretch: Stretch) -> bool:
    """Whether a state alone says what was earned: nothing unless sold, and own use by its price.

    What somebody else had and no earning or lease is about may have earned anything.
    """
    sold = stretch.state in SOLD and stretch.channel != OWN_USE
    return stretch.grade is not None and not sold


def by_cell(sums: Sums) -> dict[Cell, list[tuple[str, Sum]]]:
    """The sums of each cell with their lines."""
    found: dict[Cell, list[tuple[str, Sum]]] = {}
    for (line, cell), held in sums.items():
        found.setdefault(cell, []).append((line, held))
    return found


def profit_nano(sums: Mapping[tuple[str, Cell], Sum], cells: Callable[[Cell], bool]) -> int:
    """Revenue less every cost that is posted, in the cells that are wanted."""
    total = 0
    for (line, cell), held in sums.items():
        if cells(cell):
            total += held.nano if line.startswith("revenue.") else 0
            total -= held.nano if line.startswith("cost.") else 0
    return total


def _tax(record: OwnerRecord, grid: Grid, sums: Sums, unknown: Unknown) -> None:
    """Tax on the site's profit, carried by the nodes, devices and cells that made one.

    A loss has none, and lowers the tax of the others. Not known where a cost is not known.
    """
    rate = term(record, f"site:{grid.site}", "tax", grid.period.from_us)
    if rate is None or not rate.value or any(line == TAX for line, _ in sums):
        return
    if unknown:
        reason = next(iter(next(iter(unknown.values())).values()))
        devices = {device for found in grid.stretches.values() for device in found}
        unknown["tax"] = dict.fromkeys(devices, f"the profit is not known: {reason}")
        return
    profit = profit_nano(sums, lambda _: True)
    total = round(Fraction(max(0, profit)) * rate.value)
    parts = dict(_profits(sums))
    how = (
        f"{rate.said_by or 'the share stated'}: share of the profit after interest; a loss has none"
    )
    for cell, nano in _carried(total, parts):
        held = sums.setdefault((TAX, cell), Sum())
        held.nano += nano
        held.by_grade[rate.grade] = held.by_grade.get(rate.grade, 0) + nano
        held.methods[how] = None
        held.keys.add(rate.keys)


def _profits(sums: Sums) -> Iterable[tuple[Cell, int]]:
    found: dict[Cell, int] = {}
    for (line, cell), held in sums.items():
        sign = {"revenue": 1, "cost": -1}.get(line.partition(".")[0], 0)
        found[cell] = found.get(cell, 0) + sign * held.nano
    return found.items()


def _carried(total: int, profits: Mapping[Cell, int]) -> Iterable[tuple[Cell, int]]:
    """Split a tax over nodes, then devices, then cells, each by its own profit where it made one."""
    for _, nano, inside in _by_profit(total, profits, lambda cell: cell.node):
        for _, part, ours in _by_profit(nano, inside, lambda cell: cell.device):
            for cell, share, _ in _by_profit(part, ours, lambda cell: cell):
                yield cell, share


def _by_profit(
    total: int, profits: Mapping[Cell, int], key: Callable[[Cell], Any]
) -> Iterable[tuple[Any, int, Mapping[Cell, int]]]:
    """The groups that made a profit, the part of a total that each carries, and its cells."""
    groups: dict[object, dict[Cell, int]] = {}
    for cell, profit in profits.items():
        groups.setdefault(key(cell), {})[cell] = profit
    gains = {group: sum(cells.values()) for group, cells in groups.items()}
    winners = [group for group, gain in gains.items() if gain > 0]
    if total and winners:
        parts = split_whole(total, [gains[group] for group in winners])
        for group, part in zip(winners, parts, strict=True):
            yield group, part, groups[group]


def money(nano: int) -> Fraction:
    """Nano-units as an amount."""
    return Fraction(nano, NANO)
