"""A machine that somebody rents: whoever pays for it is the only one whose work runs on it.

Decides that the whole machine is one lease at what it costs, held from the moment it joins: so the hours in which nothing of its buyer's
runs are held hours, and their share of what is paid is what stands idle. It is taken once; given back, it is not taken again by itself.
Nothing is sold to strangers here.
"""

from __future__ import annotations

from dataclasses import replace

from ouvrage.base.ids import code_of
from ouvrage.base.time import SECOND
from ouvrage.books.dues.lease import amount_text, cost_until
from ouvrage.server.context import SERVER, Platform
from ouvrage.server.recording import record, stated
from ouvrage.server.services.billing import billed
from ouvrage.server.services.leases import take, working_us
from ouvrage.server.services.naming import owner, project_meant
from ouvrage.server.services.offers import create
from ouvrage.store.platform.machines import NodeRow, all_nodes, all_runners
from ouvrage.store.platform.selling import LeaseRow, offer_called, offers_by_id, open_leases
from ouvrage.store.platform.tenancy import put_project
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.dues import RentedTold
from ouvrage.wire.work import NewLease, NewOffer

OFFER, CHANNEL = "machine", "rented"
PROJECT = "main"
_DISK_LEFT = 10
"""A tenth of the scratch space is left to the machine, whose free space changes."""


def hold(platform: Platform) -> None:
    """Take the machine once it is here, for its buyer; the same again changes nothing."""
    terms = platform.settings.rented
    if terms is None:
        return
    with platform.reading() as connection:
        node = _here(platform, connection)
        if node is None or offer_called(connection, OFFER) is not None:
            return
    with platform.writing() as tx:
        if offer_called(tx.connection, OFFER) is None:
            create(tx, platform, SERVER, _offer(node, terms.plan, terms.rate, terms.currency))
            name = f"{owner(tx.connection).name}/{PROJECT}"
            _trust(tx, platform, name)
            take(tx, platform, SERVER, NewLease(offer=OFFER, project=name))


def _here(platform: Platform, connection: Connection) -> NodeRow | None:
    runners = all_runners(connection)
    since = platform.clock() - platform.limits.away_us
    here = [row for row in all_nodes(connection) if _seen(runners.get(row.node), since)]
    return here[0] if here else None


def _seen(runner: object, since_us: int) -> bool:
    return getattr(runner, "seen_us", 0) >= since_us


def _offer(node: NodeRow, plan: str, rate: str | None, currency: str | None) -> NewOffer:
    """The whole of a machine, at what it costs."""
    seen = node.seen
    models = {device.model for device in seen.devices}
    return NewOffer(
        name=OFFER,
        gpu=models.pop() if len(models) == 1 else None,
        gpus=len(seen.devices),
        cpus=len(seen.cpus),
        memory_mib=seen.memory_mib,
        disk_mib=max(1, seen.disk_mib - seen.disk_mib // _DISK_LEFT),
        plan_text=plan,
        rate=rate,
        currency=currency,
        audience="own",
        channel=CHANNEL,
        nodes=[seen.name],
    )


def _trust(tx: Transaction, platform: Platform, name: str) -> None:
    project = project_meant(tx.connection, SERVER, name)
    if project.trusted:
        return
    trusted = replace(project, trusted=True)
    put_project(tx.connection, trusted)
    fact = stated(platform, trusted, subject=project.project, at_us=tx.now_us)
    record(
        tx, platform, SERVER, "project.change", org=project.org, target=project.project,
        detail="trusted: the machine is rented for it", facts=(fact,),
    )  # fmt: skip


def rented_lease(connection: Connection, project: str | None = None) -> LeaseRow | None:
    """The lease of a rented machine that holds now, of one project or any."""
    rows = [row for row in open_leases(connection, kind="term") if project in (None, row.project)]
    offers = offers_by_id(connection, {row.offer for row in rows})
    found = [row for row in rows if offers[row.offer].terms.channel == CHANNEL]
    return found[0] if found else None


def rented_told(connection: Connection, now_us: int) -> RentedTold | None:
    """What the rented machine has cost so far, and how much of that for nothing; None where none is rented."""
    row = rented_lease(connection)
    if row is None:
        return None
    (lease,) = billed(connection, [row])
    paid = cost_until(lease, now_us)
    whole = max(1, now_us - row.from_us)
    working = min(whole, working_us(connection, row, now_us))
    idle = paid * (whole - working) // whole
    return RentedTold(
        lease=row.lease,
        code=code_of(row.lease),
        from_us=row.from_us,
        working_s=str(working // SECOND),
        held_s=str((whole - working) // SECOND),
        paid=amount_text(paid),
        idle=amount_text(idle),
        currency=lease.offer.currency,
        plan=lease.offer.plan_name,
        rate=lease.offer.rate,
    )
