"""A bill as a fact of the ledger, and the law that every kept bill must obey.

Decides the identity of a bill: the same plan, usage and rates are the same fact, so that keeping it
twice changes nothing. The law adds the lines up again from what was kept, by another road than rating.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.ledger import kinds
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.laws import Law
from ouvrage.ledger.view import in_force
from ouvrage.model import bills
from ouvrage.pricing.rates.bill import CREDITS, Bill, Charge
from ouvrage.pricing.rates.plan import Plan
from ouvrage.pricing.rates.usage import Usage


def exact_text(value: Fraction) -> str:
    """Decimal text where the decimals end, else ``n/d``."""
    text = decimal_text(value)
    return text if Fraction(text) == value else str(value)


def fact_of_bill(bill: Bill, plan: Plan, usage: Usage, *, source: str) -> Fact:
    """The fact that states a bill."""
    stated = bills.Bill(
        plan=plan.name,
        plan_sha256=plan.sha256,
        usage_sha256=usage.sha256,
        currency=bill.currency,
        total=exact_text(bill.total),
        lines=tuple(_line(charge, bill.currency) for charge in bill.charges),
    )
    name = f"bill/{sha256_hex(canonical(kinds.payload_of(stated)))[:32]}"
    moments = [row.at for row in usage.rows]
    ends = [charge.end for charge in bill.charges]
    return kinds.fact_of(
        stated,
        source=source,
        id=name,
        subject=name,
        valid_from=min(moments),
        valid_to=max(*moments, *ends, moments[0]),
        grade=bill.grade or Grade.LISTED,
    )


def _line(charge: Charge, currency: str) -> bills.BillLine:
    return bills.BillLine(
        resource=charge.resource,
        rule=charge.rule,
        kind=charge.kind,
        valid_from=charge.start,
        valid_to=charge.end,
        quantity=exact_text(charge.quantity),
        unit=charge.unit,
        price=None if charge.rate is None else charge.rate.words(currency),
        amount=exact_text(charge.amount),
        because=charge.because,
    )


def _add_up(records: Sequence[Recorded]) -> Iterable[tuple[str, str]]:
    for entry in in_force(records):
        if entry.fact.kind == bills.Bill.KIND:
            stated = kinds.read(entry.fact)
            if isinstance(stated, bills.Bill):
                yield from ((entry.fact.key, found) for found in kept_faults(stated))


def kept_faults(stated: bills.Bill) -> Iterable[str]:
    """What does not hold in a kept bill."""
    try:
        amounts = [Fraction(line.amount) for line in stated.lines]
        total = Fraction(stated.total)
    except (ValueError, ZeroDivisionError):
        yield "holds an amount that is no number"
        return
    if sum(amounts, Fraction(0)) != total:
        yield f"the lines add up to {sum(amounts, Fraction(0))}, the total is {total}"
    for line, amount in zip(stated.lines, amounts, strict=True):
        if amount < 0 and line.kind not in CREDITS:
            yield f"{line.rule} of {line.resource} is negative and no credit"


BILLS_ADD_UP = Law(
    name="pricing/bills-add-up",
    statement="the lines of a bill, its rounding and tax included, are its total; only credits are negative",
    check=_add_up,
)
