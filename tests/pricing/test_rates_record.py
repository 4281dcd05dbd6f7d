"""A kept bill: exact as a fact, the same when kept twice, and caught by its law when it is wrong."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from ouvrage.adapters.rate_files import load_plan, usage_from
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of, read
from ouvrage.model import bills
from ouvrage.pricing.laws import LAWS
from ouvrage.pricing.rates.bill import bill_faults
from ouvrage.pricing.rates.quantity import parse_rate
from ouvrage.pricing.rates.rating import apply_plan
from ouvrage.pricing.rates.record import BILLS_ADD_UP, fact_of_bill
from tests.pricing.rating import bill, rows, runs

SOURCE = "a" * 32
PLAN = load_plan("per-second")
USAGE = usage_from("u.csv", rows(*runs(1, 2)))


def kept():
    found = apply_plan(PLAN, USAGE, {"rate": parse_rate("1/h")})
    return fact_of_bill(found, PLAN, USAGE, source=SOURCE)


def test_a_kept_bill_is_exact_and_keeps_the_hashes_of_what_it_was_made_from():
    stated = read(kept())
    assert isinstance(stated, bills.Bill)
    assert stated.total == "1/1200"
    assert sum(Fraction(line.amount) for line in stated.lines) == Fraction(1, 1200)
    assert (stated.plan_sha256, stated.usage_sha256) == (PLAN.sha256, USAGE.sha256)
    assert kept() == kept()


@pytest.mark.parametrize(
    "change",
    [
        {"total": "1"},
        {"total": "much"},
        {"lines": ()},
    ],
    ids=["another total", "no number", "lines lost"],
)
def test_the_law_finds_a_bill_that_does_not_add_up(change: dict[str, object]):
    whole = kept()
    assert not BILLS_ADD_UP.breaches([Recorded(seq=1, recorded_at=1, fact=whole)])
    broken = fact_of(
        replace(read(whole), **change),
        source=SOURCE,
        id="b",
        subject="b",
        valid_from=0,
        valid_to=None,
        grade=whole.grade,
    )
    assert BILLS_ADD_UP.breaches([Recorded(seq=1, recorded_at=1, fact=broken)])
    assert BILLS_ADD_UP in LAWS


def test_a_negative_line_must_be_a_credit():
    found = bill("per-second", runs(60), rate="1/h")
    wrong = replace(found.charges[0], amount=Fraction(-1))
    assert "negative" in " ".join(bill_faults(replace(found, charges=(wrong,), total=Fraction(-1))))
    credit = replace(wrong, kind="refund")
    assert not list(bill_faults(replace(found, charges=(credit,), total=Fraction(-1))))
