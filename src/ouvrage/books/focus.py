"""What rows of a bill in FOCUS add up to, and which of them contradict themselves.

Decides three rules, each of which flags a row and drops none: the list price times the quantity has to be
the list cost, usage is not negative, and a credit is told apart. Sums are exact and of one currency each.
Columns and their meaning: FOCUS 1.0, https://focus.finops.org/focus-specification/v1-0/.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.numbers import decimal_text, number
from ouvrage.model.focus import FocusCharge

TOLERANCE = Fraction(5, 10**11)
"""Half of the tenth digit: list costs of published exports have 11 digits, of which the last is rounded."""

COSTS: dict[str, str] = {
    "BilledCost": "billed",
    "EffectiveCost": "effective",
    "ListCost": "listed",
    "ContractedCost": "contracted",
}
"""The cost columns of FOCUS and the fields that hold them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``words`` say what is wrong with a row for which ``breaks`` holds."""

    name: str
    words: str
    breaks: Callable[[FocusCharge], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """Data row ``row`` (from 1) breaks the rule of a name."""

    row: int
    rule: str


def factor(charge: FocusCharge) -> Fraction | None:
    """By what the list cost exceeds price times quantity; None where any is null or the product 0."""
    texts = (charge.list_unit_price, charge.pricing_quantity, charge.listed)
    if None in texts:
        return None
    price, quantity, cost = (number(text or "") for text in texts)
    return cost / (price * quantity) if price * quantity else None


def _misses_product(charge: FocusCharge) -> bool:
    if charge.list_unit_price is None or charge.pricing_quantity is None or charge.listed is None:
        return False
    texts = (charge.list_unit_price, charge.pricing_quantity, charge.listed)
    price, quantity, cost = (number(text) for text in texts)
    return abs(price * quantity - cost) > TOLERANCE


def _negative_usage(charge: FocusCharge) -> bool:
    return (
        charge.category.lower() == "usage"
        and charge.charge_class is None
        and charge.billed is not None
        and charge.billed.startswith("-")
        and number(charge.billed) < 0
    )


def _credit(charge: FocusCharge) -> bool:
    return charge.category.lower() == "credit"


RULES = (
    Rule(name="price-times-quantity", words="ListUnitPrice × PricingQuantity is not ListCost",
         breaks=_misses_product),
    Rule(name="negative-usage", words="usage with a negative BilledCost that is no correction",
         breaks=_negative_usage),
    Rule(name="credit", words="a credit: it lowers the bill without usage", breaks=_credit),
)  # fmt: skip
"""In the order in which a row's flags stand."""


def flags_of(charges: Iterable[tuple[int, FocusCharge]]) -> list[Flag]:
    """One flag per row and rule, of charges with the numbers of their rows."""
    return [
        Flag(row=row, rule=rule.name)
        for row, charge in charges
        for rule in RULES
        if rule.breaks(charge)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Cost columns of some charges in one currency: exact texts, and how many rows leave one null.

    A column that is null in every row has no sum: None.
    """

    currency: str
    rows: int
    sums: dict[str, str | None]
    unknown: dict[str, int]


def totals(charges: Sequence[FocusCharge]) -> list[Total]:
    """A total for each currency; amounts of two are never added up."""
    codes = sorted({each.currency for each in charges})
    return [_total(code, [each for each in charges if each.currency == code]) for code in codes]


def _total(code: str, charges: Sequence[FocusCharge]) -> Total:
    texts = {name: [getattr(each, field) for each in charges] for name, field in COSTS.items()}
    known = {name: [text for text in found if text is not None] for name, found in texts.items()}
    return Total(
        currency=code,
        rows=len(charges),
        sums={name: decimal_text(_sum(found)) if found else None for name, found in known.items()},
        unknown={
            name: len(charges) - len(found)
            for name, found in known.items()
            if len(found) < len(charges)
        },
    )


def _sum(texts: Iterable[str]) -> Fraction:
    """The exact sum; the same amounts come again and again, and each is read and added once."""
    each = Counter(texts).items()
    return sum((number(text) * times for text, times in each), Fraction(0))
