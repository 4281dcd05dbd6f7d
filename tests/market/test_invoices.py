"""Bills as providers write them, held against the work that was made."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from ouvrage.adapters.bills import bill_in
from ouvrage.adapters.rate_files import load_plan
from ouvrage.base.time import SECOND
from ouvrage.pricing.market.billing import EXACT, billing_of_plan
from ouvrage.pricing.market.invoice import Done, Finding, Promise, findings, kept
from ouvrage.pricing.rates.usage import moment_us

BEGAN = moment_us("2026-11-30T12:00:00Z") or 0
DONE = Done(
    code="ABCD",
    unit="epoch",
    units=10,
    unit_s=Fraction(370),
    wall_us=3700 * SECOND,
    started_us=BEGAN,
    host=(),
)
PROMISE = Promise(
    offer="box",
    provider="Next Door",
    hour=Fraction("0.36"),
    currency="USD",
    plan=None,
    unit="epoch",
    unit_low=Fraction(300),
    unit_likely=Fraction(370),
    unit_high=Fraction(400),
    cost_low=Fraction("0.03"),
    cost_likely=Fraction("0.037"),
    cost_high=Fraction("0.04"),
    host=(),
    lines={},
)


def billed(text: str, file: str = "bill.csv") -> dict[str, Finding]:
    bill = bill_in(file, text)
    assert not bill.faults, bill.faults
    found = findings(PROMISE, DONE, EXACT, bill.lines)
    return {each.what: each for each in found if each.what.startswith("bill")}


def test_an_increment_is_recognised_from_an_amount_in_whole_cents():
    # 3700 s are 0.37 as metered, and 7200 s by the hour; a bill rounds its hours as well
    hourly = billed("line,amount,currency\ninstance,0.72,USD\n")["bill: the machine's time"]
    assert hourly.kept is False
    assert "another increment: per 3600 s, rounded up" in hourly.why
    rounded = billed("line,amount,currency,quantity,unit\ninstance,0.72,usd,2.00,Hours\n")
    assert "another increment: per 3600 s" in rounded["bill: the machine's time"].why


def test_what_ended_before_the_work_is_not_held_against_it():
    found = billed(
        "line,amount,currency,from,to\n"
        "instance,99,USD,2026-11-01,2026-11-02\n"
        "instance,0.37,USD,2026-11-30 12:00:00,2026-11-30 13:01:40\n"
    )
    assert found["bill: the machine's time"].kept is True
    early = found["bill: before the work"]
    assert (early.found, early.kept) == ("99 USD", None)


def test_a_bill_without_a_currency_says_so():
    found = billed("line,amount\ninstance,0.37\n")
    assert found["bill: currency"].kept is None
    assert "1 of its lines name none" in found["bill: currency"].why


def test_a_credit_has_a_negative_quantity():
    found = billed(
        "BilledCost,BillingCurrency,ChargeDescription,ConsumedQuantity,ConsumedUnit\n"
        "0.72,USD,instance,2,Hours\n-0.35,USD,instance credit,-1,Hours\n"
    )
    assert found["bill: the machine's time"].kept is True


@pytest.mark.parametrize(
    ("charge", "place", "expected"),
    [
        (5, "charges[0]", "an object with an amount"),
        ({"amount": 1, "items": [{"type": "gpu", "amount": 1}, "x"]}, "charges[0].items[1]", "an"),
        (
            {
                "amount": 1.2,
                "items": [{"type": "gpu", "amount": 0.3}, {"type": "disk", "amount": 0.4}],
            },
            "charges[0]",
            "0.7, the sum of its items",
        ),
    ],
)
def test_what_is_no_charge_is_told_and_not_left_out(charge: object, place: str, expected: str):
    bill = bill_in("bill.json", json.dumps({"charges": [charge, {"type": "gpu", "amount": 2}]}))
    assert len(bill.faults) == 1
    assert (bill.faults[0].place, bill.faults[0].expected.startswith(expected)) == (place, True)
    assert bill.lines[-1].amount == 2


def test_a_bill_by_the_providers_other_text_is_no_broken_quote():
    hourly = billing_of_plan(load_plan("coreweave"))
    older = replace(billing_of_plan(load_plan("coreweave-older")), rivals=(hourly,))
    bill = bill_in("b.csv", "line,amount,currency\ninstance,0.72,USD\n")
    found = {each.what: each for each in findings(PROMISE, DONE, older, bill.lines)}
    assert found["bill: the machine's time"].kept is True
    assert "(coreweave): this bill decides for it" in found["bill: the machine's time"].why


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("line,amount,currency\ninstance,0.37,USD\n", True),
        ("line,amount,currency\ninstance,0.72,USD\n", False),
        ("line,amount,currency\ninstance,0.37,EUR\n", None),
        ("line,amount,currency\nsales tax,0,USD\n", None),
    ],
)
def test_a_bill_that_tells_nothing_of_the_machine_keeps_no_quote(text: str, outcome: bool | None):
    bill = bill_in("b.csv", text)
    told = [each for each in findings(PROMISE, DONE, EXACT, bill.lines) if each.kept is not None]
    assert told
    assert kept(findings(PROMISE, DONE, EXACT, bill.lines)) is outcome
