"""Runs that a platform received: whose each is, and how much was sent about it.

Decides nothing. A row stands beside the fact of the same name; ``bytes`` alone stands in the table only, since it limits what may
come and is no statement about anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.laws import Law
from ouvrage.model.ingest import RunReceived
from ouvrage.model.runs import RunStarted
from ouvrage.store.engine import reading, told, writing
from ouvrage.store.platform.ingest_tables import received_runs
from ouvrage.store.platform.json_rows import coded, has_code, page
from ouvrage.store.rows import recorded_of
from ouvrage.store.schema import facts
from ouvrage.store.store import Store, wait_for_head


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRow:
    """A received run: to whom it belongs, whether a job's attempt made it, who sent it first and when."""

    run: str
    org: str
    project: str
    attempt: bool
    said_by: str
    received_us: int
    bytes: int


def row_of(value: RunReceived, received_us: int, bytes_: int) -> ReceivedRow:
    """The row beside a fact."""
    return ReceivedRow(
        run=value.run,
        org=value.org,
        project=value.project,
        attempt=value.attempt,
        said_by=value.by,
        received_us=received_us,
        bytes=bytes_,
    )


def put_received(connection: Connection, row: ReceivedRow) -> None:
    """Keep whose a run is."""
    connection.execute(insert(received_runs).values(**_values(row)))


def more_received(connection: Connection, run: str, bytes_: int) -> None:
    """Count what was sent about a run once more."""
    counted = update(received_runs).where(received_runs.c.run == run)
    connection.execute(counted.values(bytes=received_runs.c.bytes + bytes_))


def received_of(connection: Connection, run: str) -> ReceivedRow | None:
    """A received run by its id."""
    row = connection.execute(select(received_runs).where(received_runs.c.run == run)).first()
    return None if row is None else _row(row._mapping)


def received_coded(connection: Connection, code: str) -> list[ReceivedRow]:
    """The received runs of a short code."""
    where = coded(received_runs.c.run, code)
    if where is None:
        return []
    rows = connection.execute(select(received_runs).where(where).limit(100))
    return [_row(row._mapping) for row in rows if has_code(row.run, code)]


def bytes_sent(connection: Connection, project: str) -> int:
    """How much a project's members sent, all its runs together; what attempts' nodes sent is not theirs."""
    total = func.coalesce(func.sum(received_runs.c.bytes), 0)
    query = select(total).where(received_runs.c.project == project, received_runs.c.attempt == 0)
    return int(connection.execute(query).scalar_one())


def received_page(
    connection: Connection,
    *,
    orgs: Collection[str] | None,
    projects: Collection[str] | None,
    limit: int,
    cursor: str | None,
) -> list[ReceivedRow]:
    """Received runs of these organisations and projects (None: all), newest first, one more where more follow."""
    query = select(received_runs)
    for column, allowed in ((received_runs.c.org, orgs), (received_runs.c.project, projects)):
        if allowed is not None:
            query = query.where(column.in_(sorted(allowed)))
    found = connection.execute(page(query, received_runs.c.run, limit=limit, cursor=cursor))
    return [_row(row._mapping) for row in found]


def starts_of(connection: Connection, runs: Collection[str]) -> dict[str, RunStarted]:
    """How some runs began, as first stated."""
    query = select(facts).where(facts.c.kind == RunStarted.KIND, facts.c.subject.in_(sorted(runs)))
    found: dict[str, RunStarted] = {}
    for row in connection.execute(query.order_by(facts.c.seq)) if runs else ():
        entry = recorded_of(row)
        value = read(entry.fact)
        if isinstance(value, RunStarted):
            found.setdefault(entry.fact.subject, value)
    return found


def received_law(store: Store) -> Law:
    """The law that whose a run is stands in the table as the facts give it."""

    def check(records: Sequence[Recorded]) -> Iterator[tuple[str, str]]:
        given = _rows_given(records)
        with reading(store.engine) as connection:
            held = {
                row.run: _row(row._mapping) for row in connection.execute(select(received_runs))
            }
        for run in sorted(given.keys() | held.keys()):
            ours = held.get(run)
            if ours is None or run not in given or _values(ours) | {"bytes": 0} != given[run]:
                yield f"run {run}", "whose it is differs between the table and the facts"

    return Law(
        name="store/received",
        statement="each received run belongs to the project that its fact states",
        check=check,
    )


def rebuild_odd_received(store: Store) -> bool:
    """Make the table anew where it is not what the facts give; whether it was not.

    What was sent about each run is taken to be what stands in the ledger about it.
    """
    records = store.records()
    if not received_law(store).breaches(records):
        return False
    sizes: Counter[str] = Counter()
    for entry in records:
        sizes[entry.fact.subject] += len(entry.fact.payload)
    rows = [{**row, "bytes": sizes[run]} for run, row in _rows_given(records).items()]
    with told(store.engine), writing(store.engine) as connection:
        wait_for_head(connection)
        connection.execute(delete(received_runs))
        if rows:
            connection.execute(insert(received_runs), rows)
    return True


def _rows_given(records: Sequence[Recorded]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for entry in records:
        value = read(entry.fact) if entry.fact.kind == RunReceived.KIND else None
        if isinstance(value, RunReceived):
            found[value.run] = _values(row_of(value, entry.fact.valid_from, 0))
    return found


def _values(row: ReceivedRow) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in ReceivedRow.__slots__}
    return values | {"attempt": int(row.attempt)}


def _row(values: Any) -> ReceivedRow:
    found: dict[str, Any] = {**values, "attempt": bool(values["attempt"])}
    return ReceivedRow(**found)
