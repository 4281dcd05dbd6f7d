"""Tables made from facts, so that a list of runs does not read every fact each time.

Decides nothing that the facts do not say: a row is a function of the facts about its run, and the
table can be dropped and made anew to the same bytes. It is brought up to date when it is read, by
making anew the rows of the runs about which anything was recorded since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Update, delete, insert, select, update

from ouvrage import __version__
from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.ledger.facts import Recorded
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.pricing.report import report_json
from ouvrage.pricing.unit_cost import sheet_of
from ouvrage.store.engine import reading, told, writing
from ouvrage.store.schema import projection_runs, projection_state
from ouvrage.store.store import Store

NAME = "runs"
MAKER = f"ouvrage {__version__}"
"""Who made the rows. Another version may make others from the same facts: it makes all anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """What a list shows of a run, and its whole report as canonical JSON."""

    run: str
    code: str
    label: str | None
    command: str
    started_us: int
    outcome: str
    report_json: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The rows, by start and id, as they follow from the facts up to ``seq``."""

    seq: int
    rows: tuple[RunRow, ...]

    @property
    def sha256(self) -> str:
        """One hash over all rows: equal when the rows are, byte for byte."""
        return sha256_hex("\n".join(canonical(asdict(row)) for row in self.rows))


def rows_of(records: Iterable[Recorded]) -> list[RunRow]:
    """The rows that follow from these records, each as known when its last fact was recorded."""
    entries = list(records)
    latest: dict[str, int] = {}
    for entry in entries:
        latest[entry.fact.subject] = max(latest.get(entry.fact.subject, 0), entry.recorded_at)
    return [_row(view, latest[run]) for run, view in run_views(entries).items()]


def current_runs(store: Store) -> Projection:
    """Every run, up to date."""
    return _projected(store, anew=False)


def rebuild(store: Store) -> Projection:
    """Drop every row and make it anew from the facts."""
    return _projected(store, anew=True)


def _projected(store: Store, *, anew: bool) -> Projection:
    with told(store.engine):
        with reading(store.engine) as connection:
            held = None if anew else _read(connection)
        if held is not None and held.seq == store.head().seq:
            return held
        with writing(store.engine) as connection:
            return _refresh(connection, store, anew=anew)


def _refresh(connection: Connection, store: Store, *, anew: bool) -> Projection:
    """Bring the table up to the last fact. Whoever else refreshes it waits at its state's row."""
    connection.execute(_state_with(seq=projection_state.c.seq))
    held = None if anew else _read(connection)
    target = store.head().seq
    if held is None:
        connection.execute(delete(projection_runs))
        _write(connection, rows_of(_up_to(target, store.records())))
    else:
        for subject in sorted({entry.fact.subject for entry in store.records(after=held.seq)}):
            connection.execute(delete(projection_runs).where(projection_runs.c.run == subject))
            _write(connection, rows_of(_up_to(target, store.records(subject=subject))))
    connection.execute(_state_with(seq=target, maker=MAKER))
    return Projection(seq=target, rows=_rows(connection))


def _state_with(**values: Any) -> Update:
    return update(projection_state).where(projection_state.c.name == NAME).values(**values)


def _up_to(seq: int, records: Sequence[Recorded]) -> list[Recorded]:
    return [entry for entry in records if entry.seq <= seq]


def _write(connection: Connection, rows: Sequence[RunRow]) -> None:
    if rows:
        connection.execute(insert(projection_runs), [asdict(row) for row in rows])


def _read(connection: Connection) -> Projection | None:
    """What the table holds; None where it was never made, or by another maker."""
    state = select(projection_state.c.maker, projection_state.c.seq)
    maker, seq = connection.execute(state.where(projection_state.c.name == NAME)).one()
    return Projection(seq=seq, rows=_rows(connection)) if maker == MAKER else None


def _rows(connection: Connection) -> tuple[RunRow, ...]:
    found: list[Any] = [
        RunRow(**row) for row in connection.execute(select(projection_runs)).mappings()
    ]
    # Sorted here: databases differ in how they sort text.
    return tuple(sorted(found, key=lambda row: (row.started_us, row.run)))


def _row(view: RunView, as_of: int) -> RunRow:
    return RunRow(
        run=view.run,
        code=view.code,
        label=view.started.label,
        command=canonical(list(view.started.command)),
        started_us=view.started.started_us,
        outcome=view.outcome,
        report_json=canonical(report_json(view, sheet_of(view, as_of))),
    )
