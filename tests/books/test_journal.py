"""Double entry: every entry balances, and its income and expenses are the statement's to the nano-unit."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO
from ouvrage.books.journal import Journal, journal, lines_of
from ouvrage.books.laws import journal_breaches
from ouvrage.model.assets import AssetRetired, Loan
from ouvrage.model.cash import BankLine, CostBill
from ouvrage.model.earnings import ChannelInvoice
from ouvrage.model.offers import ExchangeRate
from tests.books.owner import DAY, HOUR, Owner, day
from tests.books.test_energy import metered_owners
from tests.books.test_money import businesses
from tests.books.test_pnl import _asset

FEBRUARY = day("2026-02-01")


def kept(owner: Owner, name: str = "2026-02") -> Journal:
    return journal(owner.record, "s", owner.period(name))


def balance(owner: Owner, name: str = "2026-02") -> dict[str, Fraction]:
    return {k: Fraction(v, NANO) for k, v in kept(owner, name).balances.items() if v}


def invoice(owner: Owner, net: str, issued: int, from_us: int, to_us: int, currency: str = "EUR"):
    value = ChannelInvoice(channel="vast", number="7", issued_us=issued, gross=None, fee=None, tax=None,
                           net=net, currency=currency)  # fmt: skip
    owner.says(value, from_us, to_us, Grade.METERED)


def bank(
    owner: Owner,
    amount: str,
    at: int,
    currency: str = "EUR",
    reference: str = "r",
    who: str = "Vast.ai",
):
    value = BankLine(account="giro", reference=reference, amount=amount, currency=currency,
                     counterparty=who, text="transfer")  # fmt: skip
    owner.says(value, at, at + DAY, Grade.METERED)


def rate(owner: Owner, on: str, value: str):
    owner.says(ExchangeRate(base="USD", quote="EUR", day=on, rate=value, said_by="bank"), day(on))


@settings(max_examples=50, deadline=None)
@given(
    businesses() | metered_owners(), st.sampled_from(("2026-02", "2026-01-15..2026-02-11", "2026"))
)
def test_the_journal_balances_and_says_what_the_statement_says(owner, name):
    owner.says(Loan(loan="bank", about="node:n1", principal="777.77", currency="EUR", rate_per_year="0.0777",
                    months=7, shape="annuity"), day("2026-01-20"))  # fmt: skip
    assert not list(journal_breaches(owner.record, "s", owner.period(name)))


def test_earned_then_invoiced_then_paid_each_turns_the_one_before_around():
    owner = Owner().sets_up().bare()
    owner.term("channel:vast", "fee", "0.1")
    owner.earned("100", FEBRUARY, FEBRUARY + 7 * DAY)
    earned = balance(owner)
    assert earned["Assets:Accrued:Vast"] == 90
    assert earned["Income:Vast:Gpu"] == -100
    assert earned["Expenses:Fee:Vast"] == 10
    invoice(owner, "90", FEBRUARY + 8 * DAY, FEBRUARY, FEBRUARY + 7 * DAY)
    invoiced = balance(owner)
    assert "Assets:Accrued:Vast" not in invoiced
    assert invoiced["Assets:Receivable:Vast"] == 90
    bank(owner, "90.00", FEBRUARY + 12 * DAY)
    paid = balance(owner)
    assert "Assets:Receivable:Vast" not in paid
    assert paid["Assets:Bank:Giro"] == 90
    assert paid["Income:Vast:Gpu"] == -100
    assert [entry.day.day for entry in kept(owner).entries if "Vast" in str(entry)] == [7, 7, 9, 13]


def test_what_is_not_invoiced_and_what_no_document_explains_stay_seen():
    owner = Owner().sets_up().bare()
    owner.term("channel:vast", "fee", "0")
    owner.earned("100", FEBRUARY, FEBRUARY + 7 * DAY)
    invoice(owner, "80", FEBRUARY + 8 * DAY, FEBRUARY, FEBRUARY + 7 * DAY)
    bank(owner, "79.99", FEBRUARY + 12 * DAY)
    found = balance(owner)
    assert found["Assets:Accrued:Vast"] == 20
    assert found["Assets:Receivable:Vast"] == 80
    assert found["Assets:Unmatched"] == Fraction("-79.99")


def test_of_two_lines_that_fit_one_document_one_pays_it_and_the_other_stays_seen():
    owner = Owner().sets_up().bare()
    invoice(owner, "80", FEBRUARY, FEBRUARY, FEBRUARY + 7 * DAY)
    for number in range(2):
        bank(owner, "80", FEBRUARY + (number + 2) * DAY, reference=f"r{number}")
    found = balance(owner)
    assert "Assets:Receivable:Vast" not in found
    assert (found["Assets:Bank:Giro"], found["Assets:Unmatched"]) == (160, -80)


def test_where_the_amount_alone_agrees_nothing_is_entered_and_the_match_is_told():
    owner = Owner().sets_up().bare()
    invoice(owner, "80", FEBRUARY, FEBRUARY, FEBRUARY + 7 * DAY)
    bank(owner, "80", FEBRUARY + 2 * DAY, who="Somebody")
    assert balance(owner)["Assets:Receivable:Vast"] == 80
    assert balance(owner)["Assets:Unmatched"] == -80
    (waiting,) = kept(owner).possible
    assert waiting.claims[0].name == "invoice/vast/7"


def test_parts_of_a_document_take_all_of_it_off_to_the_nano_unit():
    owner = Owner().sets_up().bare()
    rate(owner, "2026-02-01", "0.7777777777")
    invoice(owner, "100", FEBRUARY, FEBRUARY, FEBRUARY + DAY, "USD")
    for number, amount in enumerate(("33.33", "33.33", "33.34")):
        bank(owner, amount, FEBRUARY + (number + 2) * DAY, "USD", reference=f"r{number}")
    found = balance(owner)
    assert not {"Assets:Receivable:Vast", "Assets:Unmatched"} & found.keys()


def test_a_charge_for_a_payout_comes_off_what_accrued_for_it():
    owner = Owner().sets_up().bare()
    owner.term("channel:vast", "fee", "0")
    owner.term("channel:vast", "payout_fee", "1.5")
    owner.earned("100", FEBRUARY, FEBRUARY + 7 * DAY)
    invoice(owner, "100", FEBRUARY + 8 * DAY, FEBRUARY, FEBRUARY + 7 * DAY)
    bank(owner, "98.5", FEBRUARY + 9 * DAY)
    found = balance(owner)
    assert found["Expenses:Fee:Vast"] == Fraction("1.5")
    assert not {"Assets:Receivable:Vast", "Assets:Accrued:Vast", "Assets:Unmatched"} & found.keys()


def test_an_instalment_is_paid_by_the_line_that_names_its_loan():
    owner = Owner().sets_up().bare()
    loan = Loan(loan="workbank", about="node:n1", principal="1200", currency="EUR", rate_per_year="0.12",
                months=12, shape="linear")  # fmt: skip
    owner.says(loan, FEBRUARY)
    bank(owner, "-112", day("2026-03-02"), who="Workbank eG")
    found = balance(owner, "2026-02-01..2026-03-10")
    assert not {"Liabilities:Payable:Workbank", "Assets:Unmatched"} & found.keys()


def test_differences_of_exchange_are_posted_between_earning_invoice_and_payment():
    owner = Owner().sets_up().bare()
    owner.term("channel:vast", "fee", "0")
    for on, value in (("2026-02-01", "0.90"), ("2026-02-09", "0.95"), ("2026-02-13", "0.92")):
        rate(owner, on, value)
    owner.earned("100", FEBRUARY, FEBRUARY + 7 * DAY, currency="USD")
    invoice(owner, "100", day("2026-02-09"), FEBRUARY, FEBRUARY + 7 * DAY, "USD")
    bank(owner, "100", day("2026-02-13"), "USD")
    found = balance(owner)
    assert found["Income:Vast:Gpu"] == -90
    assert found["Assets:Bank:Giro"] == 92
    assert found["Equity:Exchange"] == -2  # 5 gained until the invoice, 3 lost until it was paid
    assert not {"Assets:Accrued:Vast", "Assets:Receivable:Vast"} & found.keys()


def test_rounding_between_earnings_and_their_invoice_is_posted_and_not_dropped():
    owner = Owner().sets_up().bare()
    owner.term("channel:vast", "fee", "0")
    for number in range(3):
        at = FEBRUARY + number * DAY
        owner.earned("0.0000000005", at, at + DAY, component=("gpu", "storage", "other")[number])
    invoice(owner, "0.0000000015", FEBRUARY + 5 * DAY, FEBRUARY, FEBRUARY + 5 * DAY)
    assert (
        kept(owner).balances["Equity:Residue"] == -2
    )  # three halves are three noughts, their sum is two
    assert "Assets:Accrued:Vast" not in balance(owner)


def test_a_bill_turns_an_accrued_cost_into_a_debt_and_money_settles_it():
    owner = Owner().sets_up().bare()
    owner.term("site:s", "rent", "280")
    assert balance(owner)["Liabilities:Accrued:Rent"] == -280
    bill = CostBill(number="9", about="site:s", sort="rent", what="Landlord", amount="300", tax="57", currency="EUR",
                    energy_j=None, due=None)  # fmt: skip
    owner.says(bill, FEBRUARY, day("2026-03-01"))
    found = balance(owner)
    assert "Liabilities:Accrued:Rent" not in found
    assert (found["Expenses:Rent"], found["Assets:Input-tax"]) == (300, 57)
    assert found["Liabilities:Payable:Rent"] == -357
    bank(owner, "-357", day("2026-03-05"), who="Landlord")
    assert "Liabilities:Payable:Rent" not in balance(owner, "2026-02-01..2026-04-01")


def test_parts_and_loans_stand_with_what_they_are_worth_and_owed():
    owner = Owner().sets_up().bare()
    owner.says(_asset("n1", "6000"), FEBRUARY)
    loan = Loan(loan="bank", about="node:n1", principal="1200", currency="EUR", rate_per_year="0.12",
                months=12, shape="linear")  # fmt: skip
    owner.says(loan, FEBRUARY)
    found = balance(owner, "2026-02-01..2026-03-02")
    day_of_march = Fraction(round(Fraction(11, 31) * NANO), NANO)
    assert found["Expenses:Interest"] == 12 + day_of_march
    assert found["Liabilities:Loan:Bank"] == -1100
    assert found["Liabilities:Payable:Bank"] == -112
    assert found["Liabilities:Accrued:Interest"] == -day_of_march
    assert found["Assets:Equipment:N1"] == 6000 - found["Expenses:Depreciation"]
    owner.says(
        AssetRetired(asset="n1", proceeds="5000", currency="EUR", why="sold"), day("2026-03-01")
    )
    sold = balance(owner, "2026-02-01..2026-03-02")
    assert "Assets:Equipment:N1" not in sold
    assert sold["Expenses:Depreciation"] == 1000


def test_what_nobody_stated_is_no_entry_and_is_told():
    owner = Owner().sets_up(model="Unheard-of 9000")
    owner.earned("10", FEBRUARY, FEBRUARY + DAY)
    found = kept(owner)
    assert {"electricity", "depreciation"} <= set(found.unknown)
    assert lines_of(found)["cost.electricity"] == 0


def test_own_use_and_work_nobody_is_paid_for_are_entries_against_the_owner():
    owner = Owner().sets_up().bare()
    owner.term("node:n1", "own_use_price", "0.5")
    owner.term("site:s", "support_price", "20")
    owner.term("site:s", "support_hours_month", "3")
    owner.state("working", FEBRUARY, FEBRUARY + 10 * HOUR, channel="own-use")
    found = balance(owner)
    assert (found["Equity:Own-use"], found["Income:Own-use:Own-use"]) == (5, -5)
    assert (found["Expenses:Support"], found["Equity:Own-work"]) == (60, -60)
