"""One good request for every address about money, for the matrix of rights."""

from __future__ import annotations

from datetime import datetime, timezone

from tests.platform.samples import ACME, VISION, Sample, World
from tests.platform.work_samples import works

_ISSUED: dict[int, str] = {}


def month() -> str:
    return f"{datetime.now(timezone.utc):%Y-%m}"


def invoice(world: World) -> str:
    """A new invoice of acme, over a lease that lasted a moment, dear enough to be worth one."""
    owner = world.server.owner
    owner.post(f"/v1/leases/{works(world).lease('dear', rate='3600')}/release", {})
    owner.post("/v1/taxes", {"rate": "0.20"})
    return owner.post("/v1/invoices", {"org": "acme", "period": month()})["number"]


def issued(world: World) -> str:
    if id(world) not in _ISSUED:
        _ISSUED[id(world)] = invoice(world)
    return _ISSUED[id(world)]


def _draft(what: str) -> Sample:
    return Sample(ACME, lambda _: f"/v1/invoices/draft{what}?org=acme&period={month()}")


MONEY: dict[tuple[str, str], Sample] = {
    ("GET", "/v1/usage"): Sample(),
    ("GET", "/v1/estimates"): Sample(
        VISION,
        lambda w: f"/v1/estimates?project=acme/vision&offer={works(w).offer()}&name=train",
    ),
    ("GET", "/v1/payments"): Sample(ACME, lambda _: "/v1/payments?org=acme"),
    ("POST", "/v1/payments"): Sample(ACME, body=lambda _: {"org": "acme", "amount": "1"}),
    ("GET", "/v1/budgets"): Sample(),
    ("POST", "/v1/budgets"): Sample(
        VISION, body=lambda w: {"project": w.vision, "amount": "1000000"}
    ),
    ("GET", "/v1/statements"): Sample(ACME, lambda _: "/v1/statements?org=acme"),
    ("GET", "/v1/invoices"): Sample(ACME, lambda _: "/v1/invoices?org=acme"),
    ("POST", "/v1/invoices"): Sample(ACME, body=lambda _: {"org": "acme", "period": "2020-01"}),
    ("GET", "/v1/invoices/draft"): _draft(""),
    ("GET", "/v1/invoices/draft/page"): _draft("/page"),
    ("GET", "/v1/invoices/draft/paper"): _draft("/paper"),
    ("GET", "/v1/invoices/{number}"): Sample(ACME, lambda w: f"/v1/invoices/{issued(w)}"),
    ("GET", "/v1/invoices/{number}/page"): Sample(ACME, lambda w: f"/v1/invoices/{issued(w)}/page"),
    ("GET", "/v1/invoices/{number}/paper"): Sample(
        ACME, lambda w: f"/v1/invoices/{issued(w)}/paper"
    ),
    ("POST", "/v1/invoices/{number}/credit"): Sample(
        ACME, lambda w: f"/v1/invoices/{invoice(w)}/credit", lambda _: {"why": "it was wrong"}
    ),
    ("POST", "/v1/taxes"): Sample(body=lambda _: {"rate": "0.20"}),
}
MONEY_REFUSED = {("POST", "/v1/invoices"): 422}
"""In 2020 nothing was charged: who may issue is told that there is nothing to be invoiced."""
