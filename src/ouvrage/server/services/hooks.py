"""Webhooks of organisations: added, listed, removed, and what was delivered to them.

Decides who has one (whoever manages an organisation), for which events, and how many. The owner's own organisation hears of machines; a tenant hears of its own
work and money alone. Where an address may lead is decided when something is sent, since names change.
"""

from __future__ import annotations

from ouvrage.adapters.posting import fault_of
from ouvrage.server.authorise import authorise, knows
from ouvrage.server.context import Actor, Platform
from ouvrage.server.credentials import letters
from ouvrage.server.errors import conflict, unknown, unreadable
from ouvrage.server.recording import record
from ouvrage.server.services.naming import organisation_meant
from ouvrage.store.platform.hooks import (
    DeliveryRow,
    HookRow,
    add_hook,
    deliveries_of,
    hook_of,
    hooks_of,
    last_fact,
    remove_hook,
)
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.hooks import EVENTS, DeliveryTold, NewWebhook, WebhookMade, WebhookTold

MOST = 10
"""Webhooks of one organisation."""
PREFIX = "ouvh_"


def add(tx: Transaction, platform: Platform, actor: Actor, asked: NewWebhook) -> WebhookMade:
    """A new one. Its secret is shown this once."""
    org = organisation_meant(tx.connection, actor, asked.org)
    authorise(actor, "webhook.change", org=org.org)
    fault = fault_of(asked.url)
    if fault:
        raise unreadable(
            "webhook/url", f"{asked.url[:200]}: {fault}", hint="https://HOST/PATH", field="url"
        )
    if len(hooks_of(tx.connection, [org.org])) >= MOST:
        raise conflict(
            "webhook/many", f"{MOST} webhooks are the most", hint="ouvrage webhook remove ID"
        )
    row = HookRow(
        webhook=platform.ids(),
        org=org.org,
        url=asked.url,
        events=" ".join(each for each in EVENTS if asked.events is None or each in asked.events),
        secret=PREFIX + letters(platform.chance(32)),
        created_us=tx.now_us,
        after_seq=last_fact(tx.connection),
    )
    add_hook(tx.connection, row)
    record(tx, platform, actor, "webhook.add", org=org.org, target=row.webhook, detail=row.events)
    return WebhookMade(webhook=_told(row), secret=row.secret)


def listed(
    platform: Platform, actor: Actor, org: str | None, after: str, limit: int
) -> list[WebhookTold]:
    """Those of an organisation, newest first, after one id."""
    with platform.reading() as connection:
        found = organisation_meant(connection, actor, org)
        authorise(actor, "webhook.read", org=found.org)
        rows = hooks_of(connection, [found.org])
    return [_told(row) for row in rows if not after or row.webhook < after][:limit]


def remove(tx: Transaction, platform: Platform, actor: Actor, hook: str) -> None:
    """Forget one; what was still to be delivered to it is not."""
    row = _meant(tx.connection, actor, hook, "webhook.change")
    remove_hook(tx.connection, row.webhook)
    record(tx, platform, actor, "webhook.remove", org=row.org, target=row.webhook)


def delivered(
    platform: Platform, actor: Actor, hook: str, after: str, limit: int
) -> list[DeliveryTold]:
    """What was delivered to one, and what is to be, newest first."""
    with platform.reading() as connection:
        row = _meant(connection, actor, hook, "webhook.read")
        return [_delivery(each) for each in deliveries_of(connection, row.webhook, after, limit)]


def _meant(connection: Connection, actor: Actor, hook: str, action: str) -> HookRow:
    row = hook_of(connection, hook)
    if row is None or not knows(actor, org=row.org):
        raise unknown("webhook", hook)
    authorise(actor, action, org=row.org)
    return row


def _told(row: HookRow) -> WebhookTold:
    return WebhookTold(
        webhook=row.webhook,
        org=row.org,
        url=row.url,
        events=row.events.split(),
        created_us=row.created_us,
    )


def _delivery(row: DeliveryRow) -> DeliveryTold:
    over = "arrived" if row.done_us is not None else "given up"
    return DeliveryTold(
        delivery=row.delivery,
        event=row.event,
        state="waiting" if row.due_us is not None else over,
        at_us=row.at_us,
        tries=row.tries,
        due_us=row.due_us,
        done_us=row.done_us,
        said=row.said,
    )
