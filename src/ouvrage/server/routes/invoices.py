"""``/v1/invoices`` and ``/v1/taxes``: drafted, issued, shown as data, page and paper, corrected.

Decides only how each is asked for and in which form it is answered; what an invoice says is decided by ``services.invoices``.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.responses import HTMLResponse

from ouvrage.console.invoice_page import invoice_page
from ouvrage.console.invoice_pdf import invoice_pdf
from ouvrage.server.access import OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.services import invoices
from ouvrage.server.services.invoices import Made
from ouvrage.wire.api import Listed
from ouvrage.wire.dues import InvoiceListed, InvoiceTold, NewCredit, NewInvoice, NewTax, TaxTold

router = APIRouter(tags=["invoices"])
Org = Annotated[str | None, Query(max_length=200)]
Lang = Annotated[str, Query(pattern="^(en|fr)$")]
PERIOD = r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2}(\.\.[0-9]{4}-[0-9]{2}-[0-9]{2})?)?)?$"
Asked = Annotated[
    str | None, Query(pattern=PERIOD, description="A month 2026-11, a day, a year, or DAY..DAY.")
]


def _page(platform: PlatformDep, made: Made, lang: str) -> HTMLResponse:
    return HTMLResponse(invoice_page(invoices.view_of(platform, made, lang)))


def _paper(platform: PlatformDep, made: Made, lang: str) -> Response:
    name = made.invoice.number or "draft"
    return Response(
        invoice_pdf(invoices.view_of(platform, made, lang)),
        media_type="application/pdf",
        headers={"Content-Disposition": f'attachment; filename="invoice-{name}.pdf"'},
    )


@router.get("/v1/invoices", **acts("invoice.read"))
def listed(
    platform: PlatformDep, actor: UserDep, page: PageDep, org: Org = None
) -> Listed[InvoiceListed]:
    """Issued invoices, newest first."""
    rows = invoices.listed(platform, actor, org=org, cursor=page.after or None, limit=page.limit)
    items, following = cut(rows, page, lambda row: row.number)
    return Listed[InvoiceListed](items=list(items), next=following)


@router.post("/v1/invoices", **acts("invoice.create", status=201))
def issue(once: OnceDep, asked: NewInvoice) -> InvoiceTold:
    """Issue what an organisation was charged up to the end of a period. An issued invoice never changes."""
    return once.do(
        InvoiceTold, asked, lambda tx: invoices.issue(tx, once.platform, once.actor, asked)
    )


@router.get("/v1/invoices/draft", **acts("invoice.read"))
def drafted(
    platform: PlatformDep, actor: UserDep, period: Asked = None, org: Org = None, lang: Lang = "en"
) -> InvoiceTold:
    """The invoice as it would be issued now."""
    return invoices.told_of(platform, invoices.drafted(platform, actor, org, period), lang)


@router.get("/v1/invoices/draft/page", response_class=Response, **acts("invoice.read"))
def drafted_page(
    platform: PlatformDep, actor: UserDep, period: Asked = None, org: Org = None, lang: Lang = "en"
) -> HTMLResponse:
    """The draft as one page that needs nothing else."""
    return _page(platform, invoices.drafted(platform, actor, org, period), lang)


@router.get("/v1/invoices/draft/paper", response_class=Response, **acts("invoice.read"))
def drafted_paper(
    platform: PlatformDep, actor: UserDep, period: Asked = None, org: Org = None, lang: Lang = "en"
) -> Response:
    """The draft as PDF."""
    return _paper(platform, invoices.drafted(platform, actor, org, period), lang)


@router.get("/v1/invoices/{number}", **acts("invoice.read"))
def shown(platform: PlatformDep, actor: UserDep, number: str, lang: Lang = "en") -> InvoiceTold:
    """An issued invoice, by its number."""
    return invoices.told_of(platform, invoices.one(platform, actor, number), lang)


@router.get("/v1/invoices/{number}/page", response_class=Response, **acts("invoice.read"))
def shown_page(
    platform: PlatformDep, actor: UserDep, number: str, lang: Lang = "en"
) -> HTMLResponse:
    """An issued invoice as one page that needs nothing else."""
    return _page(platform, invoices.one(platform, actor, number), lang)


@router.get("/v1/invoices/{number}/paper", response_class=Response, **acts("invoice.read"))
def shown_paper(platform: PlatformDep, actor: UserDep, number: str, lang: Lang = "en") -> Response:
    """An issued invoice as PDF."""
    return _paper(platform, invoices.one(platform, actor, number), lang)


@router.post("/v1/invoices/{number}/credit", **acts("invoice.create", status=201))
def credit(once: OnceDep, number: str, asked: NewCredit) -> InvoiceTold:
    """Give back an invoice, or some of its charges, by a credit note."""
    return once.do(
        InvoiceTold, asked, lambda tx: invoices.credit(tx, once.platform, once.actor, number, asked)
    )


@router.post("/v1/taxes", **acts("invoice.create", status=201))
def tax(once: OnceDep, asked: NewTax) -> TaxTold:
    """State the tax on what tenants are charged from now on."""
    return once.do(TaxTold, asked, lambda tx: invoices.tax(tx, once.platform, once.actor, asked))
