"""What is said under ``/v1/webhooks``, and what is sent to a webhook.

A delivery's body is JSON: ``id`` (the same at every try), ``event``, ``at_us``, ``organisation`` and ``data``. ``Ouvrage-Signature`` is ``t=SECONDS,v1=HEX``: the
HMAC-SHA256, under the webhook's secret, of the seconds, a full stop and the body as it was sent.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ouvrage.wire.api import Answer, Name
from ouvrage.wire.runner import Message

Event = Literal["job.ended", "budget.warned", "budget.stopped", "node.fenced"]
EVENTS: tuple[Event, ...] = ("job.ended", "budget.warned", "budget.stopped", "node.fenced")


class NewWebhook(Message):
    """``POST /v1/webhooks``. ``events`` null: all that there are; ``org`` null: one's own."""

    url: Annotated[str, Field(min_length=8, max_length=2000)]
    events: Annotated[list[Event], Field(min_length=1, max_length=len(EVENTS))] | None = None
    org: Name | None = None


class WebhookTold(Answer):
    """A webhook, without its secret."""

    webhook: str
    org: str
    url: str
    events: list[str]
    created_us: int


class WebhookMade(Answer):
    """A new webhook, and the secret that signs what is sent to it, shown this once."""

    SHOWN_ONCE: ClassVar[tuple[str, ...]] = ("secret",)

    webhook: WebhookTold
    secret: str | None


class DeliveryTold(Answer):
    """A delivery: ``arrived``, ``waiting`` (for its first or next try), or ``given up``; ``said`` is what came of the last try."""

    delivery: str
    event: str
    state: str
    at_us: int
    tries: int
    due_us: int | None
    done_us: int | None
    said: str | None
