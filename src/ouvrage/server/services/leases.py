"""Leases for a term: taking one, giving it back, seeing how it stands.

Decides that a lease gets a place now or is refused with the reason; that it ends no earlier than its last attempt where it is given back; and
that only what the offer's terms allow can be taken. The place itself is ``placement``'s choice.
"""

from __future__ import annotations

from collections.abc import Sequence

from ouvrage.base.ids import code_of
from ouvrage.model.selling import OwnOffer, Placed
from ouvrage.placement.decide import grant as grant_place
from ouvrage.placement.spec import needs_of_offer
from ouvrage.server.authorise import authorise, is_owner_side, visible_orgs
from ouvrage.server.context import Actor, Platform
from ouvrage.server.engine import stop
from ouvrage.server.errors import conflict, unreadable
from ouvrage.server.recording import record
from ouvrage.server.services.holds import ALWAYS
from ouvrage.server.services.leasing import end_lease, grant
from ouvrage.server.services.meant import lease_meant
from ouvrage.server.services.money import refuse_without_money
from ouvrage.server.services.naming import organisation_meant, project_meant, refuse_closed
from ouvrage.server.services.offers import seen
from ouvrage.server.services.scopes import projects_seen
from ouvrage.server.services.snapshots import snapshot_of, windows_ahead
from ouvrage.server.services.strangers import refuse_unproven
from ouvrage.store.platform.selling import (
    LeaseRow,
    change_lease,
    lease_of,
    lease_page,
    offers_by_id,
)
from ouvrage.store.platform.tenancy import project_of
from ouvrage.store.platform.work import attempts_in, open_attempts
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.work import LeaseTold, NewLease, Release


def take(tx: Transaction, platform: Platform, actor: Actor, asked: NewLease) -> LeaseTold:
    """Lease what an offer offers, from now on."""
    project = project_meant(tx.connection, actor, asked.project)
    authorise(actor, "lease.create", org=project.org, project=project.project)
    refuse_closed(organisation_meant(tx.connection, actor, project.org), project)
    offer = seen(tx.connection, actor, asked.offer)
    if not offer.listed:
        raise conflict(
            "offer/withdrawn",
            f"{offer.terms.name} is not for sale any more",
            hint="ouvrage offer list shows what is",
            field="offer",
        )
    refuse_unproven(tx.connection, platform, actor, offer.terms, tx.now_us)
    _check_duration(offer.terms, asked.for_us)
    refuse_without_money(tx.connection, project, tx.now_us)
    until = None if asked.for_us is None else tx.now_us + asked.for_us
    placed = _place(tx, platform, offer.terms, until)
    row = LeaseRow(
        lease=platform.ids(),
        offer=offer.offer,
        org=project.org,
        project=project.project,
        kind="term",
        attempt=None,
        node=placed.node,
        placed=placed,
        from_us=tx.now_us,
        until_us=until,
        ended_us=None,
        end=None,
        billable_us=None,
        ending=None,
    )
    grant(platform, tx, row)
    detail = f"{offer.terms.name} for {project.name}"
    record(tx, platform, actor, "lease.take", org=project.org, target=row.lease, detail=detail)
    return _told(tx.connection, actor, [row], tx.now_us)[0]


def _check_duration(terms: OwnOffer, for_us: int | None) -> None:
    least, most = terms.least_us or 0, terms.most_us
    if for_us is None and most is None:
        return
    if for_us is None or for_us < least or (most is not None and for_us > most):
        longest = "" if most is None else f" and at most {most // 1_000_000} s"
        raise unreadable(
            "lease/duration",
            f"{terms.name} is leased for at least {least // 1_000_000} s{longest}",
            hint="say how long: --for 2h",
            field="for_us",
        )


def _place(tx: Transaction, platform: Platform, terms: OwnOffer, until_us: int | None) -> Placed:
    """A place that is free now and that nobody waits for, or ``Refused`` 409 with the reason."""
    if platform.settings.slurm is not None:
        raise conflict(
            "lease/slurm",
            "the places of this fleet are given out by Slurm, job by job: nothing is leased for a time",
            hint="submit jobs to the offer: ouvrage job submit --offer NAME",
            field="offer",
        )
    windows = windows_ahead(platform, tx.connection, tx.now_us)
    stands = snapshot_of(tx.connection, tx.now_us, platform.limits, ALWAYS, windows=windows)
    found = grant_place(stands, needs_of_offer(terms), until_us, tx.now_us)
    if isinstance(found, Placed):
        return found
    raise conflict(
        "lease/no-room",
        f"{terms.name} cannot be had now: {found.words}",
        hint="submit a job to the offer instead: it waits its turn",
        field="offer",
    )


def release(
    tx: Transaction, platform: Platform, actor: Actor, name: str, asked: Release
) -> LeaseTold:
    """Give a lease back. With work in it that is refused, or (``stop``) the work is ended first."""
    row = lease_meant(tx.connection, actor, name)
    authorise(actor, "lease.release", org=row.org, project=row.project)
    if row.kind != "term":
        raise conflict(
            "lease/of-a-job",
            "this lease belongs to one attempt and ends with it",
            hint="cancel its job: ouvrage job cancel",
        )
    if row.ended_us is None and row.ending is None:
        _give_back(tx, platform, actor, row, asked)
    row = lease_of(tx.connection, row.lease) or row
    return _told(tx.connection, actor, [row], tx.now_us)[0]


def _give_back(
    tx: Transaction, platform: Platform, actor: Actor, row: LeaseRow, asked: Release
) -> None:
    running = open_attempts(tx.connection, lease=row.lease)
    if running and not asked.stop:
        raise conflict(
            "lease/busy",
            f"{len(running)} of your jobs run in it",
            hint="end them too: ouvrage lease release --stop",
            field="stop",
        )
    if running:
        change_lease(tx.connection, row.lease, ending="released")
        for attempt in running:
            why = "its lease was given back"
            stop(platform, tx, attempt, why="cancelled", reason=why)
    else:
        end_lease(platform, tx, row, at_us=tx.now_us, end="released", why=asked.why)
    record(tx, platform, actor, "lease.release", org=row.org, target=row.lease, detail=asked.why)


def shown(platform: Platform, actor: Actor, name: str) -> LeaseTold:
    """A lease that somebody may see."""
    with platform.reading() as connection:
        row = lease_meant(connection, actor, name)
        authorise(actor, "lease.read", org=row.org, project=row.project)
        return _told(connection, actor, [row], platform.clock())[0]


def listed(
    platform: Platform,
    actor: Actor,
    *,
    kind: str | None,
    open_only: bool,
    cursor: str | None,
    limit: int,
) -> list[LeaseTold]:
    """Leases that somebody may see, newest first, one more than ``limit`` where more follow."""
    authorise(actor, "lease.read", org=None)
    with platform.reading() as connection:
        rows = lease_page(
            connection,
            orgs=visible_orgs(actor),
            projects=projects_seen(actor),
            kind=kind,
            open_only=open_only,
            limit=limit,
            cursor=cursor,
        )
        return _told(connection, actor, rows, platform.clock())


def _told(
    connection: Connection, actor: Actor, rows: Sequence[LeaseRow], now_us: int
) -> list[LeaseTold]:
    offers = offers_by_id(connection, [row.offer for row in rows])
    own = is_owner_side(actor)
    return [
        LeaseTold(
            lease=row.lease,
            code=code_of(row.lease),
            offer=row.offer,
            offer_name=offers[row.offer].terms.name,
            org=row.org,
            project=row.project,
            project_name=_project_name(connection, row.project),
            kind=row.kind,
            attempt=row.attempt,
            state="ended" if row.ended_us is not None else "ending" if row.ending else "open",
            gpus=len(row.placed.devices),
            devices=list(row.placed.devices),
            cpus=len(row.placed.cpus),
            memory_mib=row.placed.memory_mib,
            disk_mib=row.placed.disk_mib,
            node=row.node if own else None,
            from_us=row.from_us,
            until_us=row.until_us,
            ended_us=row.ended_us,
            end=row.end,
            billable_us=row.billable_us,
            working_us=working_us(connection, row, now_us),
        )
        for row in rows
    ]


def _project_name(connection: Connection, project: str) -> str:
    found = project_of(connection, project)
    return found.name if found else project


def working_us(connection: Connection, row: LeaseRow, now_us: int) -> int:
    """For how long at least one attempt ran in a lease."""
    end_us = now_us if row.ended_us is None else row.ended_us
    spans = sorted(
        (max(each.began_us, row.from_us), min(each.ended_us or end_us, end_us))
        for each in attempts_in(connection, row.lease)
        if each.began_us is not None
    )
    total, until = 0, row.from_us
    for begins, ends in spans:
        total += max(0, ends - max(begins, until))
        until = max(until, ends)
    return total
