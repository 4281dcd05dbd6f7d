"""What is sealed of a closed month: every figure, every stretch of the calendar, the checklist, as rows.

Decides the rows and their order, so that the same facts give the same rows and the same hash, whatever
file they are written into; and what has changed in a month since it was sealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.books.account import account
from ouvrage.books.cells import Grid
from ouvrage.books.period import Period, period_named
from ouvrage.books.pnl import statement_of
from ouvrage.books.pnl_text import name_of
from ouvrage.books.record import BOOK_KINDS, OwnerRecord, owner_record
from ouvrage.evidence.explain import exact_text
from ouvrage.evidence.figures import Sheet
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.model.closings import Accepted, BooksClosed

COLUMNS = (
    "sort", "view", "object", "path", "value", "unit", "grade", "method", "why", "device", "node",
    "from_us", "to_us", "state", "cause", "channel", "tenant", "lease", "facts",
)  # fmt: skip
"""The columns of a sealed file; a row has those of its ``sort`` (``figure``, ``time``, ``accepted``)."""
Row = dict[str, Any]
COMPARED = ("revenue.", "cost.", "hours.", "margin.net", "contribution")


def sealed_rows(
    record: OwnerRecord, site: str, period: Period, accepted: Sequence[Accepted]
) -> list[Row]:
    """The rows of a month: figures of the site, its nodes, GPUs, channels and tenants, and the calendar."""
    made = account(record, site, period)
    rows: list[Row] = []
    for by in ("site", "node", "gpu", "channel", "tenant"):
        statement = statement_of(made, by, payback=False)
        for sheet in statement.rows:
            rows += _figures(sheet, by)
    rows += _calendar(made.grid)
    rows += [
        _row(sort="accepted", object=each.item, value=each.found, why=each.why)
        for each in sorted(accepted, key=lambda each: each.item)
    ]
    return rows


def _row(**values: Any) -> Row:
    found: Row = dict.fromkeys(COLUMNS)
    found.update(values)
    return found


def _figures(sheet: Sheet, by: str) -> Iterator[Row]:
    for path, figure in sheet.figures.items():
        yield _row(
            sort="figure", view=by, object=name_of(sheet), path=path, value=exact_text(figure),
            unit=figure.unit, grade=figure.grade.word if figure.grade is not None else None,
            method=figure.method, why=figure.why, facts=sorted(figure.facts),
        )  # fmt: skip


def _calendar(grid: Grid) -> Iterator[Row]:
    for node, devices in sorted(grid.stretches.items()):
        for device, stretches in sorted(devices.items()):
            for each in stretches:
                yield _row(
                    sort="time", device=device, node=node, state=each.state, cause=each.cause,
                    channel=each.channel, tenant=each.tenant, lease=each.lease, facts=sorted(each.facts),
                    grade=each.grade.word if each.grade is not None else None,
                    from_us=each.from_us, to_us=each.to_us,
                )  # fmt: skip


def sums_sha256(rows: Iterable[Row]) -> str:
    """SHA-256 of what a seal stands for, as canonical JSON, one a line, in order of the lines.

    Every sum of money and time that is not nothing, and the calendar; not the words beside them, which
    a later version may say better.
    """
    lines = [
        canonical({name: row[name] for name in _HASHED[row["sort"]]})
        for row in rows
        if row["sort"] == "time" or (row["sort"] == "figure" and _counts(row))
    ]
    return sha256_hex("\n".join(sorted(lines)))


_HASHED = {
    "figure": ("view", "object", "path", "value", "unit", "grade"),
    "time": ("device", "node", "from_us", "to_us", "state", "channel", "tenant", "lease", "grade"),
}


def _counts(row: Row) -> bool:
    return row["value"] not in (None, "0") and is_sum(row["path"])


def is_sum(path: str) -> bool:
    """Whether a figure is a sum of money or time, and not a rate or a share made from sums."""
    return path.startswith(COMPARED) and "per_owned" not in path


def as_sealed(records: Iterable[Recorded], seal: BooksClosed) -> tuple[OwnerRecord, Period] | None:
    """The record as it was known at a seal, with the month; None where its site is not known any more."""
    known = [
        entry for entry in records
        if entry.recorded_at <= seal.as_of_us and entry.fact.kind in BOOK_KINDS
    ]  # fmt: skip
    record = replace(owner_record(known), as_of=seal.as_of_us)
    held = record.site(seal.site)
    return None if held is None else (record, period_named(seal.period, held.value.zone))


def seal_breaches(records: Sequence[Recorded]) -> Iterator[tuple[str, str]]:
    """The seals whose rows are not what the facts known at their moment give."""
    for entry in records:
        seal = read(entry.fact) if entry.fact.kind == BooksClosed.KIND else None
        if not isinstance(seal, BooksClosed):
            continue
        where, held = f"{seal.site} {seal.period}, seal {seal.number}", as_sealed(records, seal)
        if held is None:
            yield where, "its site is not among the facts known then"
            continue
        rows = sealed_rows(held[0], seal.site, held[1], seal.accepted)
        if sums_sha256(rows) != seal.sums_sha256:
            yield where, "the facts known then give other sums than were sealed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A figure of a closed month that is another now: ``before`` as sealed, None where unknown."""

    path: str
    unit: str
    before: Fraction | None
    after: Fraction | None


def moved_since(sealed: Sheet, now: Sheet) -> list[Moved]:
    """The sums of money and time that are not what was sealed, the margin first."""
    paths = [path for path in now.figures if is_sum(path)]
    found = [
        Moved(path=path, unit=now[path].unit, before=sealed.number(path), after=now.number(path))
        for path in paths
        if path in sealed.figures and sealed.number(path) != now.number(path)
    ]
    return sorted(found, key=lambda each: each.path != "margin.net")
