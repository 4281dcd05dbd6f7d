"""The tables of tenancy as the facts give them, to hold against what the tables hold.

Decides nothing: the last statement about an organisation, a project or a membership is the row. ``ouvrage verify`` compares;
credentials are not facts and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Table, select

from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.laws import Law
from ouvrage.model.tenancy import Membership, Organisation, Project
from ouvrage.store.engine import reading
from ouvrage.store.platform.tenancy import member_row, row_of
from ouvrage.store.platform.tenancy_tables import memberships, organisations, projects
from ouvrage.store.store import Store

Key = tuple[str, ...]
_KEYS: dict[str, tuple[Table, tuple[str, ...]]] = {
    "organisation": (organisations, ("org",)),
    "project": (projects, ("project",)),
    "membership": (memberships, ("user_id", "org", "project")),
}


def rows_given(records: Sequence[Recorded]) -> dict[Key, dict[str, Any]]:
    """By table and key, the row that the facts give."""
    rows: dict[Key, dict[str, Any]] = {}
    for entry in records:
        if entry.fact.kind not in (Organisation.KIND, Project.KIND, Membership.KIND):
            continue
        value = read(entry.fact)
        if isinstance(value, Organisation):
            rows["organisation", value.org] = row_of(value)
        elif isinstance(value, Project):
            rows["project", value.project] = row_of(value)
        elif isinstance(value, Membership):
            key = ("membership", value.user, value.org, value.project or "")
            rows.pop(key, None)
            if value.role is not None:
                rows[key] = member_row(value)
    return rows


def rows_held(store: Store) -> dict[Key, dict[str, Any]]:
    """By table and key, the row that the tables hold."""
    held: dict[Key, dict[str, Any]] = {}
    with reading(store.engine) as connection:
        for name, (table, key) in _KEYS.items():
            for row in connection.execute(select(table)):
                values = dict(row._mapping)
                held[(name, *(values[part] for part in key))] = values
    return held


def tenancy_law(store: Store) -> Law:
    """The law that the tables are what the facts give."""
    return as_given(
        "store/tenancy",
        "organisations, projects and memberships in tables are what the facts state",
        rows_given,
        lambda: rows_held(store),
    )


def as_given(
    name: str,
    statement: str,
    given_by: Callable[[Sequence[Recorded]], Mapping[Any, object]],
    held_now: Callable[[], Mapping[Any, object]],
) -> Law:
    """A law that rows kept, by a key of words, are the rows that the facts give."""

    def check(records: Sequence[Recorded]) -> Iterator[tuple[str, str]]:
        given, held = given_by(records), held_now()
        for key in sorted(given.keys() | held.keys()):
            if given.get(key) != held.get(key):
                yield " ".join(key), "the row kept is not the row that the facts give"

    return Law(name=name, statement=statement, check=check)
