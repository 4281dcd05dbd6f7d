"""Tables made from facts, so that a list of runs does not read every fact each time.

Decides nothing that the facts do not say: a row is a function of the facts about its run, and the
table can be dropped and made anew to the same bytes. It is brought up to date when it is read, by
making anew the rows of the runs about which anything was recorded since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Update, delete, insert, select, update

from ouvrage import __version__
from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.ledger.facts import Recorded
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.pricing.market.readings import CATALOGUE
from ouvrage.pricing.report import report_json
from ouvrage.pricing.unit_cost import sheet_of
from ouvrage.store.engine import reading, told, writing
from ouvrage.store.schema import facts, projection_runs, projection_state
from ouvrage.store.store import Store

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


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Generic[T]):
    """One derived table: about which subjects it is, and how it is read and made.

    ``read`` gives what the table holds as of a ``seq``. ``make`` makes the rows of some subjects anew
    from the facts up to a ``seq``; of all of them where the subjects are None.
    """

    name: str
    about: ColumnElement[bool]
    read: Callable[[Connection, int], T]
    make: Callable[[Connection, Store, int, Sequence[str] | None], None]


def up_to_date(store: Store, table: Derived[T], *, anew: bool) -> T:
    """What a derived table holds once it follows from every fact there is."""
    with told(store.engine):
        if not anew:
            with reading(store.engine) as connection:
                seq = _followed(connection, table)
                if seq is not None and not _behind(connection, table, seq):
                    return table.read(connection, seq)
        with writing(store.engine) as connection:
            return _refreshed(connection, store, table, anew=anew)


def _refreshed(connection: Connection, store: Store, table: Derived[T], *, anew: bool) -> T:
    """Bring the table up to the last fact. Whoever else refreshes it waits at its state's row."""
    connection.execute(_state_with(table, seq=projection_state.c.seq))
    held = None if anew else _followed(connection, table)
    target = store.head().seq
    subjects = None if held is None else _behind(connection, table, held)
    table.make(connection, store, target, subjects)
    connection.execute(_state_with(table, seq=target, maker=MAKER))
    return table.read(connection, target)


def _followed(connection: Connection, table: Derived[Any]) -> int | None:
    """Up to which fact the table follows; None where it was never made, or by another maker."""
    state = select(projection_state.c.maker, projection_state.c.seq)
    maker, seq = connection.execute(state.where(projection_state.c.name == table.name)).one()
    return seq if maker == MAKER else None


def _behind(connection: Connection, table: Derived[Any], seq: int) -> list[str]:
    """The subjects about which something was recorded since."""
    since = select(facts.c.subject).where(facts.c.seq > seq, table.about)
    return sorted(connection.execute(since.distinct()).scalars())


def _state_with(table: Derived[Any], **values: Any) -> Update:
    where = projection_state.c.name == table.name
    return update(projection_state).where(where).values(**values)


def current_runs(store: Store) -> Projection:
    """Every run, up to date."""
    return up_to_date(store, _RUNS, anew=False)


def rebuild(store: Store) -> Projection:
    """Drop every row and make it anew from the facts."""
    return up_to_date(store, _RUNS, anew=True)


def _make(connection: Connection, store: Store, seq: int, subjects: Sequence[str] | None) -> None:
    if subjects is None:
        connection.execute(delete(projection_runs))
        _write(connection, rows_of(_up_to(seq, store.records())))
        return
    for subject in subjects:
        connection.execute(delete(projection_runs).where(projection_runs.c.run == subject))
        _write(connection, rows_of(_up_to(seq, store.records(subject=subject))))


def _up_to(seq: int, records: Sequence[Recorded]) -> list[Recorded]:
    return [entry for entry in records if entry.seq <= seq]


def _write(connection: Connection, rows: Sequence[RunRow]) -> None:
    if rows:
        connection.execute(insert(projection_runs), [asdict(row) for row in rows])


def _held(connection: Connection, seq: int) -> Projection:
    found: list[Any] = [
        RunRow(**row) for row in connection.execute(select(projection_runs)).mappings()
    ]
    # Sorted here: databases differ in how they sort text.
    return Projection(seq=seq, rows=tuple(sorted(found, key=lambda row: (row.started_us, row.run))))


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


# A run is its own subject, and a market holds thousands of facts that are about none.
_NO_MARKET = facts.c.subject.not_like(f"{CATALOGUE}%")
_RUNS = Derived(name="runs", about=_NO_MARKET, read=_held, make=_make)
