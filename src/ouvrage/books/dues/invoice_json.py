"""An invoice as one JSON value: every amount exact, every line with its charge and its rule.

Decides the names of its fields alone. Nothing is rounded here and nothing is in words of a language.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ouvrage.base.numbers import NANO, decimal_text
from ouvrage.base.time import SECOND, utc_text
from ouvrage.books.dues.invoice import Invoice, InvoiceLine, WorkLine
from ouvrage.books.dues.lease import amount_text


def invoice_json(found: Invoice) -> dict[str, Any]:
    """What ``--json`` and the API print of an invoice or a draft."""
    return {
        "number": found.number,
        "issued_at": None if found.issued_us is None else utc_text(found.issued_us),
        "corrects": found.corrects,
        "org": found.org,
        "name": found.name,
        "issuer": found.issuer,
        "currency": found.currency,
        "period": {
            "name": found.period.name, "from": utc_text(found.period.from_us), "to": utc_text(found.period.to_us),
        },
        "charged": amount_text(found.charged),
        "rounding": amount_text(found.rounding),
        "net": amount_text(found.net),
        "tax_rate": None if found.tax_rate is None else decimal_text(found.tax_rate),
        "tax": None if found.tax is None else amount_text(found.tax),
        "total": None if found.total is None else amount_text(found.total),
        "paid_before": amount_text(found.prepaid),
        "due": None if found.due is None else amount_text(found.due),
        "running": amount_text(found.running),
        "grade": found.grade.word,
        "as_of": utc_text(found.as_of),
        "work": [_work(each) for each in found.work],
        "lines": [_line(each) for each in found.lines],
        "projects": [{"project": name, "amount": amount_text(nano)} for name, nano in found.projects],
        "not_charged": [
            {"project": u.project, "job": u.job_name, "lease": u.lease, "seconds": _seconds(u.us), "why": u.why}
            for u in found.unbilled
        ],
    }  # fmt: skip


def _seconds(us: int) -> str:
    return decimal_text(Fraction(us, SECOND))


def _work(each: WorkLine) -> dict[str, Any]:
    per_unit = each.per_unit
    return {
        "project": each.project, "job": each.job, "name": each.name, "seconds": _seconds(each.us),
        "amount": amount_text(each.nano), "unit": each.unit, "finished": each.finished,
        "cost_per_unit": None if per_unit is None else decimal_text(per_unit / NANO), "grade": each.grade.word,
    }  # fmt: skip


def _line(each: InvoiceLine) -> dict[str, Any]:
    return {
        "charge": each.charge, "project": each.project, "job": each.job, "job_name": each.job_name,
        "lease": each.lease, "attempt": each.attempt, "offer": each.offer, "from": utc_text(each.from_us),
        "to": utc_text(each.to_us), "rule": each.rule, "words": each.words, "price": each.price,
        "quantity": decimal_text(each.quantity), "unit": each.unit, "amount": amount_text(each.nano),
        "credits": each.credits, "grade": each.grade.word,
    }  # fmt: skip
