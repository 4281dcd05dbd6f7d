"""``/v1/webhooks``: addresses that are told when a job ends, a budget warns or stops work, or a machine is held back.

Decides only the form; a secret is shown when it is made and never again.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from ouvrage.server.access import OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.routes.projects import OfOrg
from ouvrage.server.services import hooks as services
from ouvrage.store.transaction import Transaction
from ouvrage.wire.api import Done, Listed
from ouvrage.wire.hooks import DeliveryTold, NewWebhook, WebhookMade, WebhookTold

router = APIRouter(prefix="/v1/webhooks", tags=["people"])
Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="Its id.")]


@router.get("", **acts("webhook.read"))
def listed(
    platform: PlatformDep, actor: UserDep, page: PageDep, org: OfOrg = None
) -> Listed[WebhookTold]:
    """Webhooks of an organisation, newest first."""
    rows = services.listed(platform, actor, org, page.after, page.limit + 1)
    items, after = cut(rows, page, lambda row: row.webhook)
    return Listed(items=list(items), next=after)


@router.post("", **acts("webhook.change", status=201))
def add(once: OnceDep, asked: NewWebhook) -> WebhookMade:
    """A new webhook; its secret is shown this once."""
    return once.do(
        WebhookMade, asked, lambda tx: services.add(tx, once.platform, once.actor, asked)
    )


@router.delete("/{webhook}", **acts("webhook.change"))
def remove(once: OnceDep, webhook: Id) -> Done:
    """Forget a webhook, and what was still to be delivered to it."""

    def work(tx: Transaction) -> Done:
        services.remove(tx, once.platform, once.actor, webhook)
        return Done()

    return once.do(Done, None, work)


@router.get("/{webhook}/deliveries", **acts("webhook.read"))
def delivered(
    platform: PlatformDep, actor: UserDep, page: PageDep, webhook: Id
) -> Listed[DeliveryTold]:
    """What was delivered and what is to be, newest first."""
    rows = services.delivered(platform, actor, webhook, page.after, page.limit + 1)
    items, after = cut(rows, page, lambda row: row.delivery)
    return Listed(items=list(items), next=after)
