"""Meter against bill, record against payout, what is owed against the bank: listed, never absorbed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO, decimal_text
from ouvrage.base.time import DAY, utc_text
from ouvrage.books.bank_items import claims, lines
from ouvrage.books.by_hand import by_hand, paying
from ouvrage.books.differences import settled
from ouvrage.books.journal import journal
from ouvrage.books.laws import bank_breaches
from ouvrage.books.reconcile import Reconciled, document_totals, line_totals, reconciled
from ouvrage.books.reconcile_bank import Banked, banked
from ouvrage.model.cash import BankLine, CostBill, PaymentMatched
from ouvrage.model.earnings import ChannelInvoice
from ouvrage.model.offers import ExchangeRate
from ouvrage.model.records import Withdrawal
from tests.books.owner import Owner, day


def owner(price: str = "0.30", idle: str = "100", load: str = "100") -> Owner:
    made = Owner().sets_up()
    made.term("site:s", "electricity", price)
    made.term("node:n1", "idle_power_w", idle)
    made.term("node:n1", "load_power_w", load)
    made.term("channel:vast", "fee", "0.15")
    made.state("working", day("2026-01-01"), day("2026-04-01"))
    return made


def bill(
    made: Owner, amount: str, kwh: str | None, number: str = "E-2026-02", **other: str | None
) -> str:
    energy = None if kwh is None else int(Fraction(kwh) * 3_600_000)
    value = CostBill(number=number, about="site:s", sort="electricity", what="Power and Light", amount=amount,
                     tax=other.get("tax"), currency="EUR", energy_j=energy, due=None)  # fmt: skip
    return made.says(value, day("2026-02-01"), day("2026-03-01"), Grade.METERED)


def invoice(
    made: Owner, on: str, net: str, number: str | None = None, currency: str = "EUR"
) -> str:
    at = day(on)
    value = ChannelInvoice(channel="vast", number=number or f"V-{on}", issued_us=at, gross=None, fee=None,
                           tax=None, net=net, currency=currency)  # fmt: skip
    return made.says(value, at, at, Grade.METERED)


def line(
    made: Owner, on: str, amount: str, text: str = "", who: str = "", currency: str = "EUR"
) -> str:
    value = BankLine(
        account="DE1", reference="", amount=amount, currency=currency, counterparty=who, text=text
    )
    return made.says(value, day(on), day(on) + DAY, Grade.METERED)


def february(made: Owner) -> Reconciled:
    return reconciled(made.record, "s", made.period("2026-02"))


def test_a_bill_is_held_against_the_books_in_energy_and_in_money():
    made = owner()  # 28 days at 100 W: 67.2 kWh for 20.16
    bill(made, "24.00", "75")
    energy, money = february(made).energy
    assert (energy.theirs.amount, energy.ours.amount) == (75, Fraction("67.2"))
    assert energy.rest == energy.amount == Fraction("7.8")
    assert "67.2 kWh of the books are estimated" in energy.causes[0].words
    assert not settled(energy)
    assert money.amount == 24 - Fraction("20.16")
    more, dearer = money.causes
    assert more.amount == Fraction("7.8") * Fraction("0.30")
    assert dearer.amount == 75 * (Fraction(24, 75) - Fraction("0.30"))
    assert money.rest == 0
    assert "billed at 0.3200 a kWh, the books reckon 0.3000" in dearer.words


def test_tax_that_the_bill_states_apart_is_named():
    made = owner()
    bill(made, "16.94", "67.2", tax="3.22")
    _, money = february(made).energy
    assert money.causes[0].words == "the books' price holds the tax that the bill states apart"


def test_days_without_a_bill_are_told():
    made = owner()
    assert february(made).unbilled == ((day("2026-02-01"), day("2026-03-01")),)
    bill(made, "20", "67.2")
    assert february(made).unbilled == ()


def earning_days(made: Owner, each: str = "10") -> None:
    for n in range(89):
        made.earned(each, day("2026-01-01") + n * DAY, day("2026-01-01") + (n + 1) * DAY)


def test_a_payout_is_what_was_earned_less_the_fee_since_the_one_before():
    made = owner()
    earning_days(made)
    for on in ("2026-01-30", "2026-02-06", "2026-02-13"):
        invoice(made, on, "59.5")
    second, third = february(made).payouts
    assert second.ours.amount == 70
    assert [each.amount for each in second.causes] == [Fraction("-10.5")]
    assert second.rest == 0
    assert settled(second)
    assert third.rest == 0
    left = february(made).owing
    assert [(each.earned.gross, each.why) for each in left] == [(160, "on no invoice yet")]


def test_a_count_that_ends_days_before_the_payout_is_found_and_named():
    made = owner()
    for n in range(89):
        made.earned(
            str(5 + (n * 7) % 11), day("2026-01-01") + n * DAY, day("2026-01-01") + (n + 1) * DAY
        )
    for week in range(9):
        ends = day("2026-01-09") + week * 7 * DAY
        days = range(
            (ends - day("2026-01-01")) // DAY - 3 - 7, (ends - day("2026-01-01")) // DAY - 3
        )
        net = sum(5 + (n * 7) % 11 for n in days if n >= 0) * Fraction(85, 100)
        invoice(made, utc_text(ends)[:10], decimal_text(net))
    found = february(made).payouts
    assert all("its count ends 3 days before its date" in each.causes[1].words for each in found)
    assert all(each.rest == 0 and settled(each) for each in found)


def test_a_fee_that_payouts_imply_is_named_and_stays_open():
    made = owner()
    earning_days(made)
    for on in ("2026-01-30", "2026-02-06", "2026-02-13", "2026-02-20"):
        invoice(made, on, "52.5")
    found = february(made).payouts
    assert all(
        "a fee of 25.0 % by its payouts, where the books take 15.0 %" in e.causes[1].words
        for e in found
    )
    assert all(each.causes[1].amount == -7 for each in found)
    assert not any(settled(each) for each in found)


def test_little_waits_for_the_threshold_and_is_owed():
    made = owner()
    made.earned("12", day("2026-02-10"), day("2026-02-11"))
    (left,) = february(made).owing
    assert left.earned.net == Fraction("10.2")
    assert left.why == "carried over: Vast.ai pays weekly and from 20 USD on"


def test_what_is_earned_and_lost_between_payouts_adds_up_to_all_that_was_recorded():
    made = owner()
    earning_days(made, "3")
    invoice(made, "2026-02-10", "100")
    found = february(made)
    months = made.period("2026-02")
    whole = sum(each.ours.amount for each in found.payouts) + sum(
        o.earned.gross for o in found.owing
    )
    assert whole == 3 * ((months.to_us - day("2026-01-01")) // DAY)


def only(found: Banked):
    (match,) = found.matches
    return match


def test_the_number_makes_certain_the_name_likely_the_amount_alone_possible():
    for text, who, certainty in (
        ("payout V-2026-02-06", "", "certain"), ("", "Vast.ai Inc", "likely"), ("thanks", "x", "possible")
    ):  # fmt: skip
        made = owner()
        invoice(made, "2026-02-06", "59.5")
        line(made, "2026-02-11", "59.50", text, who)
        found = banked(made.record)
        (match,) = (*found.matches, *found.possible)
        assert match.certainty == certainty
        assert (match.left, match.difference) == (0, 0)
        assert bool(found.open) == bool(found.possible) == (certainty == "possible")


def test_a_sure_match_of_several_comes_before_a_possible_one():
    made = owner()
    invoice(made, "2026-02-06", "30", "V-0001")
    invoice(made, "2026-02-07", "20", "V-0002")
    bill_ = CostBill(number="X1", about="site:s", sort="other", what="", amount="-50", tax=None, currency="EUR",
                     energy_j=None, due=None)  # fmt: skip
    made.says(bill_, day("2026-02-09"), day("2026-02-10"), Grade.METERED)
    line(made, "2026-02-10", "50", "", "vast")
    found = banked(made.record)
    assert [len(match.claims) for match in found.matches] == [2]
    assert not found.possible


def says(made: Owner, paid: str, paper: str, **other: Any) -> None:
    """State by hand what ``ouvrage books match`` would."""
    record = made.record
    (line_,) = (item for item in lines(record) if item.key == paid)
    (claim,) = (item for item in claims(record) if item.key == paper)
    before = by_hand(record, claims(record), lines(record)).matches
    shares = [share for match in before for share in match.shares]
    given: dict[str, Any] = {"part": False, "why": "seen", **other}
    made.says(paying(record, line_, claim, shares, **given), line_.day_us)


def test_what_was_said_by_hand_comes_before_everything():
    made = owner()
    first, second = invoice(made, "2026-02-06", "59.5"), invoice(made, "2026-02-13", "59.5")
    paid = line(made, "2026-02-15", "59.5", "V-2026-02-06", "vast")
    says(made, paid, second)
    found = banked(made.record)
    assert [(m.certainty, m.claims[0].key) for m in found.matches] == [("by hand", second)]
    assert [each.item.key for each in found.open] == [first]


def test_what_was_said_not_to_belong_together_is_not_taken_for_it_again():
    made = owner()
    paper = invoice(made, "2026-02-06", "59.5")
    paid = line(made, "2026-02-15", "59.5", "V-2026-02-06", "vast")
    made.says(
        PaymentMatched(payment=paid, document=paper, amount=None, took=None, why="no"),
        day("2026-02-15"),
    )
    found = banked(made.record)
    assert not found.matches
    assert not found.possible
    assert (len(found.open), len(found.unmatched)) == (1, 1)


def test_one_line_is_said_to_pay_two_documents_one_after_the_other():
    made = owner()
    first, second = invoice(made, "2026-02-06", "60"), invoice(made, "2026-02-07", "40.3")
    paid = line(made, "2026-02-15", "100", "sum", "x")
    says(made, paid, first, part=True)
    half = banked(made.record)
    assert [(each.amount, each.why) for each in half.unmatched] == [
        (40, "more than its documents ask for")
    ]
    says(made, paid, second)
    whole = banked(made.record)
    assert (only(whole).left, only(whole).rest, only(whole).difference) == (0, 0, Fraction("-0.3"))
    assert not whole.open
    assert not whole.unmatched


@pytest.mark.parametrize(
    ("amount", "currency", "code"),
    [("58", "EUR", "amount"), ("-59.5", "EUR", "direction"), ("59.5", "CHF", "currency"), ("80", "USD", "amount")],
)  # fmt: skip
def test_a_match_by_hand_that_does_not_add_up_is_refused(amount: str, currency: str, code: str):
    made = owner()
    made.says(
        ExchangeRate(base="EUR", quote="USD", rate="1.25", day="2026-02-05", said_by="ECB"),
        day("2026-02-05"),
    )
    paper = invoice(made, "2026-02-06", "59.5")
    paid = line(made, "2026-02-15", amount, "", "x", currency)
    with pytest.raises(OuvrageError) as refused:
        says(made, paid, paper)
    assert refused.value.code == f"match/{code}"
    assert refused.value.hint


def test_a_word_about_what_is_no_more_counts_for_nothing_and_is_told():
    made = owner()
    paper = invoice(made, "2026-02-06", "59.5")
    paid = line(made, "2026-02-15", "59.5", "", "x")
    says(made, paid, paper)
    made.says(Withdrawal(why="typed twice"), corrects=paid)
    found = banked(made.record)
    assert [each.why for each in found.astray] == ["its line of the bank is not known any more"]
    assert [each.item.key for each in found.open] == [paper]


def test_of_two_documents_of_one_amount_the_named_then_the_nearer_is_paid():
    made = owner()
    first, second = invoice(made, "2026-02-06", "59.5"), invoice(made, "2026-02-13", "59.5")
    line(made, "2026-02-15", "59.5", "V-2026-02-06", "vast")
    line(made, "2026-02-16", "59.5", "", "vast")
    found = banked(made.record)
    assert [m.claims[0].key for m in found.matches] == [first, second]
    assert not found.open
    assert not found.unmatched


def test_one_line_pays_several_documents_and_several_lines_one():
    made = owner()
    invoice(made, "2026-02-06", "59.5")
    invoice(made, "2026-02-13", "40.25")
    invoice(made, "2026-02-14", "200")
    line(made, "2026-02-16", "99.75", "", "Vast.ai")
    line(made, "2026-02-17", "150", "", "Vast.ai")
    line(made, "2026-02-18", "50", "", "Vast.ai")
    found = banked(made.record)
    assert sorted((len(m.claims), len(m.lines)) for m in found.matches) == [(1, 2), (2, 1)]
    assert not found.open
    assert not found.unmatched


def test_a_part_payment_leaves_the_rest_owed_and_too_much_is_a_difference():
    made = owner()
    invoice(made, "2026-02-06", "100")
    line(made, "2026-02-10", "60", "V-2026-02-06")
    found = banked(made.record)
    assert only(found).left == 40
    assert [(each.amount, each.why) for each in found.open] == [(40, "paid in part")]
    other = owner()
    invoice(other, "2026-02-06", "100")
    line(other, "2026-02-10", "110", "V-2026-02-06")
    assert only(banked(other.record)).rest == 10
    assert [each.amount for each in banked(other.record).unmatched] == [10]


def test_bills_are_paid_with_tax_and_a_charge_for_the_payout_is_told():
    made = owner()
    bill(made, "20", "67.2", tax="3.80")
    line(made, "2026-03-10", "-23.80", "E-2026-02", "Power and Light AG")
    made.term("channel:vast", "payout_fee", "1.5")
    invoice(made, "2026-02-06", "100")
    line(made, "2026-02-10", "98.5", "", "vast")
    found = banked(made.record)
    assert [(m.certainty, m.difference) for m in found.matches] == [
        ("likely", Fraction("-1.5")),
        ("certain", 0),
    ]


def test_another_currency_is_matched_near_the_rate_of_the_day():
    made = owner()
    made.says(
        ExchangeRate(base="EUR", quote="USD", rate="1.25", day="2026-02-05", said_by="ECB"),
        day("2026-02-05"),
    )
    invoice(made, "2026-02-06", "100", currency="USD")
    line(made, "2026-02-10", "79.20", "", "Vast.ai")
    match = only(banked(made.record))
    assert match.certainty == "likely"
    assert "at the rate of the day" in match.reason


def test_what_nothing_explains_is_listed_with_a_guess():
    made = owner()
    invoice(made, "2026-02-06", "59.5")
    line(made, "2026-02-11", "59.50", "V-2026-02-06", "vast")
    line(made, "2026-02-12", "59.50", "V-2026-02-06", "vast")
    line(made, "2026-02-13", "-12", "", "coffee")
    found = february(made)
    assert [each.why.partition(":")[2].strip() or each.why for each in found.bank.unmatched] == [
        "booked or imported twice?", "no bill is recorded for it",
    ]  # fmt: skip


def test_what_is_owed_is_told_by_whom_and_since_when():
    made = owner()
    invoice(made, "2026-01-10", "70")
    invoice(made, "2026-02-20", "30")
    debts = february(made).receivables
    assert [(each.who, each.amount) for each in debts] == [("vast", 70), ("vast", 30)]
    assert debts[0].days - debts[1].days == 41


amounts = st.sampled_from(["10", "20", "30", "50", "59.5", "60", "80"])
days = st.integers(1, 28)


@settings(max_examples=60, deadline=None)
@given(
    owed=st.lists(st.tuples(days, amounts), max_size=6),
    paid=st.lists(st.tuples(days, amounts, st.booleans()), max_size=6),
)
def test_every_document_and_line_is_in_one_place_and_both_sides_add_up(owed, paid):
    """And what the journal leaves on the account of what is owed is what reconciling leaves open."""
    made = owner()
    for n, (on, amount) in enumerate(owed):
        invoice(made, f"2026-02-{on:02d}", amount, f"V-{n:04d}")
    for n, (on, amount, named) in enumerate(paid):
        line(made, f"2026-02-{on:02d}", amount, f"V-{n:04d}" if named else f"x{n}", "vast")
    found, period = banked(made.record), made.period("2026-02")
    seen = [item.key for match in found.matches for item in (*match.claims, *match.lines)]
    partly = ("paid in part", "more than its documents ask for")
    seen += [each.item.key for each in (*found.open, *found.unmatched) if each.why not in partly]
    assert len(seen) == len(set(seen)) == len(owed) + len(paid)
    for match in found.matches:
        asked = sum(item.amount for item in match.claims)
        assert asked == sum(item.amount for item in match.lines) - match.rest + match.left
    assert not list(bank_breaches(made.record))
    names = made.period("2026-01-01..2026-04-01")
    claim = journal(made.record, "s", names).balances.get("Assets:Receivable:Vast", 0)
    assert Fraction(claim, NANO) == sum(each.amount for each in found.open)
    for side, given_ in ((document_totals, owed), (line_totals, paid)):
        totals = list(side(found, period))
        assert sum(total.all for total in totals) == sum(Fraction(each[1]) for each in given_)
        assert all(total.all == total.matched + total.open for total in totals)


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(6)))
def test_the_order_of_facts_does_not_matter(order):
    def made(turn):
        found = owner()
        steps = [
            lambda: invoice(found, "2026-02-06", "50", "V-0001"),
            lambda: invoice(found, "2026-02-07", "50", "V-0002"),
            lambda: invoice(found, "2026-02-08", "30", "V-0003"),
            lambda: line(found, "2026-02-10", "80", "", "vast"),
            lambda: line(found, "2026-02-11", "50", "", "vast"),
            lambda: line(found, "2026-02-12", "7", "", "x"),
        ]
        for n in turn:
            steps[n]()
        return banked(found.record)

    def names(found: Banked):
        return [
            ([c.name for c in m.claims], [x.amount for x in m.lines], m.certainty)
            for m in found.matches
        ]

    assert names(made(order)) == names(made(range(6)))
