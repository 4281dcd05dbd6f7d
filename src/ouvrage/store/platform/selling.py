"""Offers and leases as rows: what is for sale, who has what, since when and until when.

Decides how they are looked up, not who may look: the caller names the organisations whose leases are asked for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from ouvrage.model.selling import OwnOffer, Placed
from ouvrage.store.platform.json_rows import coded, has_code, page, text_of, value_of
from ouvrage.store.platform.work_tables import leases, offers

_LEASE = select(leases).where(leases.c.lease == bindparam("id"))
"""Made once: it is asked for every event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRow:
    """An offer with its frozen terms; for sale until ``withdrawn_us``."""

    terms: OwnOffer
    created_us: int
    withdrawn_us: int | None

    @property
    def offer(self) -> str:
        """Its id."""
        return self.terms.offer

    @property
    def listed(self) -> bool:
        """Whether it is for sale."""
        return self.withdrawn_us is None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """A lease: ``ended_us`` None while it holds. ``ending`` says for what end it was asked to stop."""

    lease: str
    offer: str
    org: str
    project: str
    kind: str
    attempt: str | None
    node: str
    placed: Placed
    from_us: int
    until_us: int | None
    ended_us: int | None
    end: str | None
    billable_us: int | None
    ending: str | None


def put_offer(connection: Connection, row: OfferRow) -> None:
    """Keep a new offer."""
    connection.execute(insert(offers).values(**offer_values(row)))


def offer_values(row: OfferRow) -> dict[str, Any]:
    """An offer's row as its columns."""
    return {
        "offer": row.offer,
        "name": row.terms.name,
        "audience": row.terms.audience,
        "terms": text_of(row.terms),
        "created_us": row.created_us,
        "withdrawn_us": row.withdrawn_us,
    }


def withdraw_offer(connection: Connection, offer: str, at_us: int) -> None:
    """An offer is no longer for sale."""
    connection.execute(update(offers).where(offers.c.offer == offer).values(withdrawn_us=at_us))


def offer_called(connection: Connection, name: str) -> OfferRow | None:
    """The offer of an id, or the listed one of a name."""
    query = select(offers).where(
        (offers.c.offer == name) | ((offers.c.name == name) & offers.c.withdrawn_us.is_(None))
    )
    row = connection.execute(query).first()
    return None if row is None else _offer(row)


def offers_coded(connection: Connection, code: str) -> list[OfferRow]:
    """The offers that a short code may mean."""
    where = coded(offers.c.offer, code)
    if where is None:
        return []
    rows = connection.execute(select(offers).where(where))
    return [_offer(row) for row in rows if has_code(row.offer, code)]


def leases_coded(connection: Connection, code: str) -> list[LeaseRow]:
    """The leases that a short code may mean."""
    where = coded(leases.c.lease, code)
    if where is None:
        return []
    rows = connection.execute(select(leases).where(where))
    return [lease_row(row) for row in rows if has_code(row.lease, code)]


def offers_by_id(connection: Connection, ids: Collection[str]) -> dict[str, OfferRow]:
    """Some offers, listed or not."""
    query = select(offers).where(offers.c.offer.in_(sorted(set(ids))))
    return {row.offer: _offer(row) for row in connection.execute(query)}


def offer_page(
    connection: Connection,
    *,
    audiences: Collection[str] | None,
    withdrawn: bool,
    limit: int,
    cursor: str | None,
) -> list[OfferRow]:
    """Offers for these audiences (None: all), newest first, one more than ``limit`` where more follow."""
    query = select(offers)
    if audiences is not None:
        query = query.where(offers.c.audience.in_(sorted(audiences)))
    if not withdrawn:
        query = query.where(offers.c.withdrawn_us.is_(None))
    found = connection.execute(page(query, offers.c.offer, limit=limit, cursor=cursor))
    return [_offer(row) for row in found]


def _offer(row: Row[Any]) -> OfferRow:
    return OfferRow(
        terms=value_of(OwnOffer, row.terms),
        created_us=row.created_us,
        withdrawn_us=row.withdrawn_us,
    )


def put_lease(connection: Connection, row: LeaseRow) -> None:
    """Keep a new lease."""
    connection.execute(insert(leases).values(**lease_values(row)))


def lease_values(row: LeaseRow) -> dict[str, Any]:
    """A lease's row as its columns."""
    values = {name: getattr(row, name) for name in LeaseRow.__slots__}
    return {**values, "placed": text_of(row.placed)}


def change_lease(connection: Connection, lease: str, **values: Any) -> None:
    """Change columns of a lease."""
    connection.execute(update(leases).where(leases.c.lease == lease).values(**values))


def lease_of(connection: Connection, lease: str) -> LeaseRow | None:
    """The lease of an id."""
    row = connection.execute(_LEASE, {"id": lease}).first()
    return None if row is None else lease_row(row)


def open_leases(connection: Connection, *, kind: str | None = None) -> list[LeaseRow]:
    """The leases that hold now, oldest first."""
    query = select(leases).where(leases.c.ended_us.is_(None)).order_by(leases.c.from_us)
    if kind is not None:
        query = query.where(leases.c.kind == kind)
    return [lease_row(row) for row in connection.execute(query)]


def lease_page(
    connection: Connection,
    *,
    orgs: Collection[str] | None,
    projects: Collection[str] | None = None,
    kind: str | None = None,
    open_only: bool = False,
    limit: int,
    cursor: str | None,
) -> list[LeaseRow]:
    """Leases of these organisations (None: all) and projects, newest first, one more where more follow."""
    query = select(leases)
    for column, allowed in ((leases.c.org, orgs), (leases.c.project, projects)):
        if allowed is not None:
            query = query.where(column.in_(sorted(allowed)))
    if kind is not None:
        query = query.where(leases.c.kind == kind)
    if open_only:
        query = query.where(leases.c.ended_us.is_(None))
    found = connection.execute(page(query, leases.c.lease, limit=limit, cursor=cursor))
    return [lease_row(row) for row in found]


def lease_row(row: Row[Any]) -> LeaseRow:
    """A lease as its row states it."""
    values: dict[str, Any] = dict(row._mapping)
    values["placed"] = value_of(Placed, row.placed)
    return LeaseRow(**values)
