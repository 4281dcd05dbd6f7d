"""The ledger in a database: facts go in, are never changed, and are read as known at a moment.

Decides identity (the same fact again *exists*, other content under its identity is a *conflict*
and is itself recorded), the order of facts (``seq``, without gaps) and the moment of recording,
which rises from batch to batch. It takes the clock as an argument and does not know what facts
mean; the ledger's laws are in ``ledger/law_book.py``.

Writers queue at the one row of ``head``: each transaction updates it first. A batch is first
inserted as if all of it were new, since nearly always it is; only where the database refuses that
is each fact looked up.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, CursorResult, Engine, select, update
from sqlalchemy.exc import IntegrityError

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_text
from ouvrage.ledger.admission import admit
from ouvrage.ledger.conflicts import conflict_fact
from ouvrage.ledger.facts import Fact, Line, Recorded, first_difference
from ouvrage.store.engine import damage, engine_for, name_of, pinned, reading, told, writing
from ouvrage.store.rows import LINE, insert_rows, lines_of, recorded_of, row_of
from ouvrage.store.schema import facts, head
from ouvrage.store.upgrade import bring_up_to_date

_CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one offered fact: ``accepted``, ``exists`` or ``conflict``.

    ``seq`` is the place of the fact that now stands under its identity; ``field`` the first field
    in which a conflicting one differs from that.
    """

    key: str
    result: str
    seq: int
    field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How far the ledger goes: its last ``seq`` and the moment up to which it is closed."""

    seq: int
    recorded_at: int


def open_store(where: str | Path, *, create: bool = True) -> Store:
    """Open the store at a file or a ``postgresql://`` address, bringing its tables up to date."""
    engine = engine_for(where, create=create)
    try:
        with told(engine):
            bring_up_to_date(engine)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine)


class Store:
    """One open ledger. Any number of threads may use it, and any number of processes the database."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def name(self) -> str:
        """Where the store is, without a password."""
        return name_of(self.engine)

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def append(self, batch: Sequence[Fact], *, now_us: int, own_source: str) -> list[Outcome]:
        """Record a batch, all of it or none, durably before this returns; one outcome per fact.

        A fact whose form no ledger can take raises ``OuvrageError`` ``fact/malformed`` before
        anything is written. A conflict never stops the rest: it is recorded under ``own_source``.
        """
        for fact in batch:
            admit(fact)
        if not batch:
            return []
        with told(self.engine):
            try:
                return self._append_new(batch, now_us)
            except IntegrityError:
                return self._append_known(batch, now_us, own_source)

    def _append_new(self, batch: Sequence[Fact], now_us: int) -> list[Outcome]:
        """Insert a batch of facts that are all new, or raise ``IntegrityError``."""
        with writing(self.engine) as connection:
            before = wait_for_head(connection)
            _write(connection, batch, before, now_us)
        return [
            Outcome(key=fact.key, result="accepted", seq=seq)
            for seq, fact in enumerate(batch, before.seq + 1)
        ]

    def _append_known(self, batch: Sequence[Fact], now_us: int, own_source: str) -> list[Outcome]:
        """Append a batch of which some facts may be here already."""
        with writing(self.engine) as connection:
            return append_within(connection, batch, now_us, own_source)

    def head(self) -> Head:
        """How far the ledger goes now."""
        with told(self.engine), reading(self.engine) as connection:
            return _read_head(connection)

    def moment(self, requested: int | None, *, now_us: int) -> int:
        """The moment to name in a report: what was known then will never change.

        None asks for the latest there is. A moment after the last record is closed before this
        returns: a batch still under way is then recorded after it. One in the future is refused.
        """
        if requested is not None and requested > now_us:
            raise OuvrageError(
                "as-of/future",
                f"{utc_text(requested)} has not come yet; what will be known then is not known",
                hint="leave --as-of out for the latest",
            )
        last = self.head().recorded_at
        if requested is None or requested <= last:
            return last if requested is None else requested
        with told(self.engine), writing(self.engine) as connection:
            moved = update(head).where(head.c.recorded_at < requested)
            connection.execute(moved.values(recorded_at=requested))
        return requested

    def records(
        self,
        *,
        as_of: int | None = None,
        subject: str | None = None,
        kind: str | None = None,
        after: int = 0,
        begins: str = "",
    ) -> list[Recorded]:
        """The records known at ``as_of`` (None: all), in order, of one subject or kind or all.

        ``begins`` asks for those whose id begins so.
        """
        query = select(facts).where(facts.c.seq > after).order_by(facts.c.seq)
        for column, value in ((facts.c.subject, subject), (facts.c.kind, kind)):
            if value is not None:
                query = query.where(column == value)
        if as_of is not None:
            query = query.where(facts.c.recorded_at <= as_of)
        if begins:
            query = query.where(facts.c.id.startswith(begins, autoescape=True))
        with told(self.engine), reading(self.engine) as connection:
            return [recorded_of(row) for row in connection.execute(query)]

    def sha256_at(self, seq: int) -> str | None:
        """The hash of the fact at a place in the ledger; None where it does not go so far."""
        query = select(facts.c.sha256).where(facts.c.seq == seq)
        with told(self.engine), reading(self.engine) as connection:
            return connection.execute(query).scalar()

    def lines(
        self, kinds: Sequence[str], *, as_of: int | None = None, after: int = 0
    ) -> list[Line]:
        """The facts of some kinds known at ``as_of``, kind by kind in no order, as of one state of the store.

        ``after`` leaves out those up to a place in the ledger.
        """
        query = select(*LINE)
        if after:
            query = query.where(facts.c.seq > after)
        if as_of is not None:
            query = query.where(facts.c.recorded_at <= as_of)
        with told(self.engine), reading(self.engine) as connection:
            return [
                line
                for kind in kinds
                for line in lines_of(_tuples(connection.execute(query.where(facts.c.kind == kind))))
            ]

    def named(self, keys: Iterable[str]) -> dict[str, Recorded]:
        """The records under these keys, ``source/id``; those that are not here are left out."""
        with told(self.engine), self.engine.connect() as connection:
            split = (key.partition("/") for key in keys)
            return _under(connection, ((source, id_) for source, _, id_ in split))

    def ids(self, *, subject: str, kind: str) -> list[str]:
        """The ids of the facts of one kind about a subject, without reading the facts."""
        query = select(facts.c.id).where(facts.c.subject == subject, facts.c.kind == kind)
        with told(self.engine), self.engine.connect() as connection:
            return list(connection.execute(query).scalars())

    @contextmanager
    def as_it_is(self) -> Generator[None]:
        """Whatever this thread reads here until the end is of one state, though others write meanwhile."""
        with told(self.engine), pinned(self.engine):
            yield

    def damage(self) -> list[str]:
        """What the database itself finds wrong with its file."""
        with told(self.engine):
            return damage(self.engine)

    def refuse_unless_empty(self) -> None:
        """Raise ``OuvrageError`` ``restore/not-empty`` where the store holds a fact."""
        self._refuse_unless_empty(self.head())

    def _refuse_unless_empty(self, found: Head) -> None:
        if found.seq:
            raise OuvrageError(
                "restore/not-empty",
                f"{self.name} holds {found.seq} facts already",
                hint="restore into an empty home: OUVRAGE_HOME=DIR ouvrage restore FILE",
            )

    def refill(self, records: Sequence[Recorded]) -> None:
        """Put a whole ledger back as it was, into a store that holds nothing."""
        with told(self.engine), writing(self.engine) as connection:
            self._refuse_unless_empty(wait_for_head(connection))
            for start in range(0, len(records), _CHUNK):
                rows = [
                    row_of(entry.fact, entry.seq, entry.recorded_at, entry.stored_sha256)
                    for entry in records[start : start + _CHUNK]
                ]
                insert_rows(connection, rows)
            if records:
                move_head(connection, records[-1].seq, records[-1].recorded_at)


class Sorting:
    """Sorts a batch into facts that are new, known, and in conflict with known ones."""

    def __init__(self, known: dict[str, Recorded], last_seq: int, own_source: str) -> None:
        self.accepted: list[Fact] = []
        self._known = known
        self._seq = last_seq
        self._own_source = own_source
        self._conflicts: dict[str, Fact] = {}

    def place(self, fact: Fact) -> Outcome:
        """What becomes of the next fact of the batch; facts before it in the batch count."""
        stands = self._known.get(fact.key)
        if stands is None:
            self._seq += 1
            self.accepted.append(fact)
            self._known[fact.key] = Recorded(seq=self._seq, recorded_at=0, fact=fact)
            return Outcome(key=fact.key, result="accepted", seq=self._seq)
        difference = first_difference(stands.fact, fact)
        if difference is None:
            return Outcome(key=fact.key, result="exists", seq=stands.seq)
        noted = conflict_fact(stands.fact, fact, source=self._own_source)
        self._conflicts[noted.key] = noted
        return Outcome(key=fact.key, result="conflict", seq=stands.seq, field=difference.field)

    def conflicts(self) -> list[Fact]:
        """The conflicts met, less those that the batch itself states."""
        return [fact for key, fact in self._conflicts.items() if key not in self._known]


def wait_for_head(connection: Connection) -> Head:
    """Wait for the writer before us, if any, and keep the next one waiting."""
    connection.execute(update(head).values(seq=head.c.seq))
    return _read_head(connection)


def _read_head(connection: Connection) -> Head:
    seq, recorded_at = connection.execute(select(head.c.seq, head.c.recorded_at)).one()
    return Head(seq=seq, recorded_at=recorded_at)


def move_head(connection: Connection, seq: int, recorded_at: int) -> None:
    """Say how far the ledger goes, within the transaction that took it there."""
    connection.execute(update(head).values(seq=seq, recorded_at=recorded_at))


def append_within(
    connection: Connection, batch: Sequence[Fact], now_us: int, own_source: str
) -> list[Outcome]:
    """Record admitted facts in a transaction that somebody else began and will end."""
    before = wait_for_head(connection)
    sorting = Sorting(_stored(connection, batch), before.seq, own_source)
    outcomes = [sorting.place(fact) for fact in batch]
    noted = sorting.conflicts()
    already = _stored(connection, noted)
    new = [*sorting.accepted, *(fact for fact in noted if fact.key not in already)]
    if new:
        _write(connection, new, before, now_us)
    return outcomes


def _write(connection: Connection, batch: Sequence[Fact], before: Head, now_us: int) -> None:
    moment = max(now_us, before.recorded_at + 1)
    rows = [row_of(fact, seq, moment) for seq, fact in enumerate(batch, before.seq + 1)]
    insert_rows(connection, rows)
    move_head(connection, before.seq + len(batch), moment)


def _tuples(result: CursorResult[Any]) -> Sequence[Sequence[Any]]:
    """The rows as the driver makes them: so many that a second object for each takes its time."""
    return result.cursor.fetchall() if result.cursor is not None else ()


def _stored(connection: Connection, batch: Iterable[Fact]) -> dict[str, Recorded]:
    """The records that stand under the identities of these facts."""
    return _under(connection, ((fact.source, fact.id) for fact in batch))


def _under(connection: Connection, names: Iterable[tuple[str, str]]) -> dict[str, Recorded]:
    """By key, the records under these sources and ids."""
    wanted: dict[str, list[str]] = {}
    for source, id_ in names:
        wanted.setdefault(source, []).append(id_)
    found: dict[str, Recorded] = {}
    for source, ids in wanted.items():
        for start in range(0, len(ids), _CHUNK):
            chunk = ids[start : start + _CHUNK]
            query = select(facts).where(facts.c.source == source, facts.c.id.in_(chunk))
            for entry in map(recorded_of, connection.execute(query)):
                found[entry.fact.key] = entry
    return found
