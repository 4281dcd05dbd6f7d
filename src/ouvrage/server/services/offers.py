"""Offers: what an owner sells, with its terms frozen the moment it is offered.

Decides that a name is unique among the offers for sale, that an offer's plan can bill a lease, and who may see which: those for the owner's
own use are the owner's alone. An offer is never changed; withdrawn, it leaves running leases alone.
"""

from __future__ import annotations

from ouvrage.adapters.rate_files import frozen_plan
from ouvrage.base.ids import code_of
from ouvrage.ledger.facts import Fact
from ouvrage.model.selling import OfferOverridden, OfferWithdrawn, OwnOffer
from ouvrage.placement.places import model_name
from ouvrage.pricing.rates.frozen import check_for_sale, thawed
from ouvrage.server.authorise import authorise, is_owner_side
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict, unknown, unreadable
from ouvrage.server.recording import record, stated
from ouvrage.server.services.meant import node_meant, offer_meant
from ouvrage.server.services.naming import owner, refuse_id_as_name
from ouvrage.server.services.strangers import proven_nodes
from ouvrage.store.platform.selling import (
    OfferRow,
    offer_called,
    offer_page,
    put_offer,
    withdraw_offer,
)
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.work import NewOffer, OfferTold, Why

_TENANTS = ("public", "tenants")
"""The audiences whose offers a tenant sees."""


def create(tx: Transaction, platform: Platform, actor: Actor, asked: NewOffer) -> OfferTold:
    """Put a configuration up for sale."""
    authorise(actor, "offer.create", org=None)
    _refuse_strangers(platform, asked.audience)
    refuse_id_as_name(asked.name, "name")
    terms, overridden = _terms(tx, platform, asked)
    if offer_called(tx.connection, asked.name) is not None:
        raise conflict(
            "offer/name-taken",
            f"an offer called {asked.name} is for sale",
            hint=f"withdraw it first: ouvrage offer withdraw {asked.name}",
            field="name",
        )
    row = OfferRow(terms=terms, created_us=tx.now_us, withdrawn_us=None)
    put_offer(tx.connection, row)
    fact = stated(
        platform,
        terms,
        subject=f"offer:{terms.offer}",
        natural=f"offer/{terms.offer}",
        at_us=tx.now_us,
    )
    detail = f"{terms.name} at {terms.rate or terms.plan_name}"
    facts = (fact, *_anyway(tx, platform, actor, terms, asked.why, overridden))
    if overridden:
        detail += f"; to strangers anyway: {asked.why}"
    record(
        tx, platform, actor, "offer.create", org=None, target=terms.offer, detail=detail,
        facts=facts,
    )  # fmt: skip
    return told(row, actor)


def _anyway(
    tx: Transaction, platform: Platform, actor: Actor, terms: OwnOffer, why: str, refused: tuple[str, ...]
) -> tuple[Fact, ...]:  # fmt: skip
    """The fact that an owner took it on themselves to offer unproven machines to strangers."""
    if not refused:
        return ()
    value = OfferOverridden(offer=terms.offer, refused=refused, why=why, by=actor.login)
    subject, natural = f"offer:{terms.offer}", f"offer/{terms.offer}/override"
    return (stated(platform, value, subject=subject, natural=natural, at_us=tx.now_us),)


def _refuse_strangers(platform: Platform, audience: str) -> None:
    """A rented machine is its buyer's alone."""
    if platform.settings.rented is not None and audience != "own":
        raise conflict(
            "platform/rented",
            "this machine is rented, and nothing of it is sold to others",
            hint="--audience own; or start without --rented where its terms allow that",
            field="audience",
        )


def _terms(
    tx: Transaction, platform: Platform, asked: NewOffer
) -> tuple[OwnOffer, tuple[str, ...]]:
    """What is put up for sale, and what speaks against it that an owner overrides."""
    plan_name, plan = (
        (thawed(asked.plan_text).name, asked.plan_text)
        if asked.plan_text is not None
        else frozen_plan(_shipped(asked.plan))
    )
    currency = asked.currency or owner(tx.connection).currency
    check_for_sale(thawed(plan), asked.rate, currency, tx.now_us)
    _refuse_odd(asked)
    named = tuple(node_meant(tx.connection, name).node for name in asked.nodes)
    nodes, overridden = proven_nodes(tx, platform, asked, named)
    terms = OwnOffer(
        offer=platform.ids(),
        name=asked.name,
        gpu=asked.gpu,
        gpus=asked.gpus,
        cpus=asked.cpus,
        memory_mib=asked.memory_mib,
        disk_mib=asked.disk_mib,
        plan_name=plan_name,
        plan=plan,
        rate=asked.rate,
        currency=currency,
        interruptible=asked.interruptible,
        least_us=asked.least_us,
        most_us=asked.most_us,
        notice_us=asked.notice_us,
        sla=asked.sla,
        audience=asked.audience,
        channel=asked.channel,
        nodes=nodes,
        isolation=asked.isolation,
        document=asked.document,
    )
    return terms, overridden


def _shipped(name: str) -> str:
    """The name of a shipped plan: a path would be one on the server's own disk."""
    if "/" in name or name.endswith(".toml"):
        raise unreadable(
            "offer/plan",
            f"{name!r} is no shipped plan",
            hint="send a plan of your own as plan_text; ouvrage offer create --plan FILE does",
            field="plan",
        )
    return name


def _refuse_odd(asked: NewOffer) -> None:
    """Refuse terms that contradict one another."""
    if asked.gpu is not None and not asked.gpus:
        raise unreadable(
            "offer/gpus",
            "a model of GPU, and none of it",
            hint="say how many: --gpus 1",
            field="gpus",
        )
    if asked.gpu is not None and not model_name(asked.gpu):
        raise unreadable(
            "offer/gpu", f"{asked.gpu!r} names no GPU", hint="for example RTX 4090", field="gpu"
        )
    if asked.least_us is not None and asked.most_us is not None and asked.least_us > asked.most_us:
        raise unreadable(
            "offer/durations",
            "the shortest lease is longer than the longest",
            hint="give the shorter one as --at-least",
            field="least_us",
        )
    if asked.isolation == "none" and asked.audience != "own":
        raise unreadable(
            "offer/isolation",
            "work without isolation is for the owner's own projects alone",
            hint="--audience own; or leave --isolation out",
            field="isolation",
        )


def withdraw(tx: Transaction, platform: Platform, actor: Actor, name: str, asked: Why) -> OfferTold:
    """Take an offer off sale; what was leased under it runs on."""
    authorise(actor, "offer.withdraw", org=None)
    row = offer_meant(tx.connection, name)
    if row.withdrawn_us is not None:
        return told(row, actor)
    withdraw_offer(tx.connection, row.offer, tx.now_us)
    withdrawn = OfferWithdrawn(offer=row.offer, why=asked.why)
    fact = stated(
        platform,
        withdrawn,
        subject=f"offer:{row.offer}",
        natural=f"offer/{row.offer}/withdrawn",
        at_us=tx.now_us,
    )
    record(
        tx, platform, actor, "offer.withdraw", org=None, target=row.offer, detail=asked.why,
        facts=(fact,),
    )  # fmt: skip
    return told(OfferRow(terms=row.terms, created_us=row.created_us, withdrawn_us=tx.now_us), actor)


def shown(platform: Platform, actor: Actor, name: str) -> OfferTold:
    """An offer that somebody may see."""
    authorise(actor, "offer.read", org=None)
    with platform.reading() as connection:
        return told(seen(connection, actor, name), actor)


def seen(connection: Connection, actor: Actor, name: str) -> OfferRow:
    """The offer that a text means, if it is for this actor too. ``Refused`` 404 where not."""
    row = offer_meant(connection, name)
    if row.terms.audience not in _TENANTS and not is_owner_side(actor):
        raise unknown("offer", name)
    return row


def listed(
    platform: Platform, actor: Actor, *, withdrawn: bool, cursor: str | None, limit: int
) -> list[OfferTold]:
    """Offers that somebody may see, newest first, one more than ``limit`` where more follow."""
    authorise(actor, "offer.read", org=None)
    audiences = None if is_owner_side(actor) else _TENANTS
    with platform.reading() as connection:
        rows = offer_page(
            connection, audiences=audiences, withdrawn=withdrawn, limit=limit, cursor=cursor
        )
    return [told(row, actor) for row in rows]


def told(row: OfferRow, actor: Actor) -> OfferTold:
    """An offer as somebody sees it: a tenant is not told from which nodes it is met."""
    terms = row.terms
    return OfferTold(
        offer=terms.offer,
        code=code_of(terms.offer),
        name=terms.name,
        gpu=terms.gpu,
        gpus=terms.gpus,
        cpus=terms.cpus,
        memory_mib=terms.memory_mib,
        disk_mib=terms.disk_mib,
        plan=terms.plan_name,
        plan_text=terms.plan,
        rate=terms.rate,
        currency=terms.currency,
        interruptible=terms.interruptible,
        least_us=terms.least_us,
        most_us=terms.most_us,
        notice_us=terms.notice_us,
        sla=terms.sla,
        audience=terms.audience,
        channel=terms.channel,
        nodes=list(terms.nodes) if is_owner_side(actor) else None,
        isolation=terms.isolation,
        document=terms.document,
        created_us=row.created_us,
        withdrawn_us=row.withdrawn_us,
    )
