"""Which job, lease, offer or node a text means, for somebody who may see it.

Decides that an id, a short code or a name will do; of several of a name the newest is meant, of several of a code none. What must not be seen
is told to be unknown, just as what is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from ouvrage.server.authorise import knows
from ouvrage.server.context import Actor
from ouvrage.server.errors import Refused, conflict, unknown
from ouvrage.store.platform.machines import NodeRow, node_called
from ouvrage.store.platform.selling import (
    LeaseRow,
    OfferRow,
    lease_of,
    leases_coded,
    offer_called,
    offers_coded,
)
from ouvrage.store.platform.work import JobRow, job_of, jobs_called
from ouvrage.store.transaction import Connection

_ID = re.compile(r"[0-9a-f]{32}")
T = TypeVar("T")


def job_meant(connection: Connection, actor: Actor, text: str) -> JobRow:
    """The job by id, code or name. ``Refused`` 404 where there is none to see."""
    if _ID.fullmatch(text):
        found = job_of(connection, text)
        rows = [] if found is None else [found]
    else:
        rows = jobs_called(connection, text)
    seen = [row for row in rows if knows(actor, org=row.org, project=row.project)]
    named = [row for row in seen if row.name == text]
    return named[0] if named else _only(seen, "job", text)


def lease_meant(connection: Connection, actor: Actor, text: str) -> LeaseRow:
    """The lease by id or code. ``Refused`` 404 where there is none to see."""
    rows = _by_id(lease_of, leases_coded, connection, text)
    return _only(
        [row for row in rows if knows(actor, org=row.org, project=row.project)], "lease", text
    )


def offer_meant(connection: Connection, text: str) -> OfferRow:
    """The offer by id, code, or the name of a listed one. Who may see it is the caller's to judge."""
    found = offer_called(connection, text)
    return found if found is not None else _only(offers_coded(connection, text), "offer", text)


def node_meant(connection: Connection, text: str) -> NodeRow:
    """The node by id or name."""
    found = node_called(connection, text)
    if found is None:
        raise unknown("node", text)
    return found


def _by_id(
    by_id: Callable[[Connection, str], T | None],
    by_code: Callable[[Connection, str], list[T]],
    connection: Connection,
    text: str,
) -> list[T]:
    if _ID.fullmatch(text):
        found = by_id(connection, text)
        return [] if found is None else [found]
    return by_code(connection, text)


def _only(rows: Sequence[T], what: str, text: str) -> T:
    if not rows:
        raise unknown(what, text)
    if len(rows) > 1:
        raise _several(what, text, len(rows))
    return rows[0]


def _several(what: str, text: str, count: int) -> Refused:
    return conflict(
        f"{what}/which",
        f"{count} {what}s have codes that begin with {text}",
        hint="give more of it, or the id",
    )
