"""What a machine earned: the vectors of the issue, sums that conserve, and what stays unknown."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.books.pnl import BY, pnl
from ouvrage.model.cash import CostBill, SupportTime
from ouvrage.model.earnings import ChannelInvoice
from ouvrage.model.offers import ExchangeRate
from ouvrage.model.sites import Site
from tests.books.owner import DAY, HOUR, Owner, day, total


@pytest.mark.parametrize(
    ("price", "share", "per_owned"), [("3.00", "0.25", "0.75"), ("1.50", "0.70", "1.05")]
)
def test_a_dear_hour_sold_seldom_earns_less_than_a_cheap_one_sold_often(price, share, per_owned):
    owner = Owner().sets_up().bare()
    hours = int(Fraction(share) * 1000)
    begins = day("2026-02-01")
    owner.leases("l", begins, begins + hours * HOUR, price)
    owner.state("free", begins + hours * HOUR, begins + 1000 * HOUR)
    sheet = owner.pnl("2026-02-01..2026-03-15").total
    sold = sheet.number("revenue.total")
    assert sold == hours * Fraction(price)
    assert sheet.number("rate.effective") == Fraction(price)
    assert sold / 1000 == Fraction(per_owned)
    assert sheet.number("utilisation") == Fraction(share) * 1000 / 1000
    assert sheet.number("margin.per_owned_hour") == sold / (42 * 24)


def test_a_device_without_any_fact_is_unknown_and_not_idle():
    owner = Owner().sets_up()
    sheet = owner.sheet()
    assert sheet.number("hours.owned") == 28 * 24 == sheet.number("hours.unknown")
    assert sheet["revenue.total"].value is None
    assert sheet["margin.net"].value is None
    assert sheet["utilisation"].value is None
    assert "no price of purchase" in (sheet["cost.depreciation"].why or "")


def test_a_power_that_nobody_knows_leaves_the_margin_unknown_and_says_why():
    owner = Owner().sets_up(model="Unheard-of 9000")
    owner.earned("10", day("2026-02-01"), day("2026-03-01"))
    sheet = owner.sheet()
    assert sheet.number("revenue.total") == 10
    assert sheet["cost.electricity"].value is None
    assert "no power is known here" in (sheet["margin.net"].why or "")


def test_devices_add_up_to_nodes_to_the_site_and_to_every_other_view():
    owner = Owner().sets_up(3).sets_up(2, node="n2")
    owner.term("site:s", "rent", "100.01")
    owner.term("site:s", "tax", "0.3")
    owner.term("site:s", "electricity", "0.2857")
    owner.term("channel:vast", "fee", "0.1234")
    for node, price in (("n1", "7001.03"), ("n2", "4999.99")):
        owner.says(_asset(node, price), day("2026-01-01"))
    for number in range(28):
        at = day("2026-02-01") + number * DAY
        owner.earned("33.333333337", at, at + DAY)
        owner.state("working", at, at + 17 * HOUR, node="n1", count=2, channel="vast")
        owner.state("free", at, at + DAY, node="n1")
        owner.earned("1.7", at, at + DAY, about="node:n2", tenant="ben")
    whole = owner.sheet()
    for by in BY:
        rows = owner.pnl(by=by).rows
        for path, figure in whole.figures.items():
            if path.startswith(("hours.owned", "cost.", "revenue.")) and "per_" not in path:
                assert total(rows, path) == figure.value, (by, path)
    assert whole.number("cost.total") == total([whole], "revenue.total") - total(
        [whole], "margin.net"
    )
    assert whole.number("cost.tax") > 0
    assert (whole.number("cost.rent") or 0).denominator <= 10**9


def test_a_loss_has_no_tax_and_lowers_the_tax_of_the_others():
    owner = Owner().sets_up().sets_up(node="n2")
    owner.term("site:s", "tax", "0.5")
    owner.term("site:s", "electricity", "0")
    owner.says(_asset("n1", "0"), day("2026-01-01"))
    owner.says(_asset("n2", "6000"), day("2026-01-01"))
    owner.earned("500", day("2026-02-01"), day("2026-03-01"), fee="0")
    owner.state("free", day("2026-02-01"), day("2026-03-01"), node="n2")
    n1, n2 = owner.pnl().rows
    assert n2.number("cost.tax") == 0
    assert n1.number("cost.tax") == (500 - 100) / 2
    assert n2.number("margin.net") == -100


def test_a_bill_takes_the_place_of_the_agreed_sum_for_its_days():
    owner = Owner().sets_up().bare()
    owner.term("site:s", "rent", "28")
    _bill(owner, "rent", "50", day("2026-02-01"), day("2026-02-15"))
    assert owner.sheet().number("cost.rent") == 50 + 14
    assert owner.sheet("2026-03").number("cost.rent") == 28


def test_an_electricity_bill_gives_the_price_where_nobody_states_one():
    owner = Owner().sets_up().bare()
    owner.said = [r for r in owner.said if '"electricity"' not in r.fact.payload]
    for name in ("idle_power_w", "load_power_w"):
        owner.term("node:n1", name, "1000", from_us=day("2026-01-02"))
    _bill(
        owner, "electricity", "300", day("2026-02-01"), day("2026-03-01"), energy_j=1000 * 3_600_000
    )
    figure = owner.sheet()["cost.electricity"]
    assert figure.value == 28 * 24 * Fraction(3, 10)
    assert "bill" in figure.method


def test_the_hour_that_a_channel_reports_is_not_earned_again_by_a_lease():
    owner = Owner().sets_up().bare()
    begins = day("2026-02-01")
    owner.leases("l", begins, begins + 2 * DAY, "1", channel="vast")
    owner.earned("20", begins, begins + DAY)
    assert owner.sheet().number("revenue.gpu") == 20 + 24


def test_an_amount_in_another_currency_needs_a_recorded_rate():
    owner = Owner().sets_up().bare()
    owner.earned("10.80", day("2026-02-03"), day("2026-02-04"), currency="USD")
    with pytest.raises(OuvrageError, match="cannot be put into books in EUR") as refused:
        owner.sheet()
    assert refused.value.code == "books/fx-missing"
    rate = ExchangeRate(base="EUR", quote="USD", rate="1.08", day="2026-01-20", said_by="bank")
    owner.says(rate, day("2026-01-20"), day("2026-01-21"), Grade.REPORTED)
    assert owner.sheet().number("revenue.gpu") == 10
    assert "more than 7 days after it" in owner.pnl().notes[0]


def test_a_credit_is_a_cost_of_failed_work_and_no_less_revenue():
    owner = Owner().sets_up().bare()
    owner.earned("10", day("2026-02-01"), day("2026-03-01"), fee="0")
    owner.earned("-3", day("2026-02-03"), day("2026-02-04"), component="credit")
    sheet = owner.sheet()
    assert (sheet.number("revenue.total"), sheet.number("cost.failed")) == (10, 3)
    assert sheet.number("contribution") == 7


def test_what_straddles_a_month_is_split_by_time_without_loss():
    owner = Owner(zone="Europe/Paris").sets_up().bare()
    owner.earned("24", day("2026-01-31"), day("2026-02-01"))
    january, february = (owner.sheet(m).number("revenue.gpu") for m in ("2026-01", "2026-02"))
    assert (january, february) == (23, 1)


def test_sold_hours_follow_from_the_price_asked_where_nothing_says_what_devices_did():
    owner = Owner().sets_up(2).bare()
    owner.earned("168", day("2026-02-01"), day("2026-03-01"), list_price="0.50")
    sheet = owner.sheet()
    assert sheet.number("hours.sold") == 336
    assert sheet["hours.sold"].grade == Grade.ASSUMED
    assert sheet.number("utilisation") == Fraction(336, 2 * 28 * 24)


def test_break_even_is_where_fixed_costs_are_earned_and_no_more():
    owner = Owner().sets_up()
    owner.term("site:s", "electricity", "0.25")
    owner.term("node:n1", "idle_power_w", "100")
    owner.term("node:n1", "load_power_w", "500")
    owner.term("channel:vast", "fee", "0.2")
    owner.says(_asset("n1", "3000"), day("2026-01-01"))
    begins = day("2026-02-01")
    owner.state("working", begins, begins + 14 * DAY, channel="vast")
    owner.state("free", begins + 14 * DAY, begins + 28 * DAY)
    owner.earned("336", begins, begins + 14 * DAY)
    sheet = owner.sheet()
    idle, extra = 28 * 24 * Fraction(1, 10) / 4, Fraction(4, 10) / 4
    even = (50 + idle) / (Fraction(8, 10) - extra) / (28 * 24)
    assert sheet.number("break_even_utilisation") == even
    assert sheet.number("price_floor") == Fraction(5, 10) / 4 / Fraction(8, 10)
    assert sheet.number("margin.net") == 336 * Fraction(8, 10) - idle - 336 * extra - 50


def test_earnings_of_a_time_when_nothing_stood_there_are_not_lost():
    owner = Owner().sets_up().bare()
    owner.earned("5", day("2025-12-01"), day("2025-12-02"))
    sheet = owner.sheet("2025-12")
    assert (sheet.number("revenue.gpu"), sheet.number("hours.owned")) == (5, 0)


def test_revenue_of_a_month_of_which_little_is_recorded_is_unknown_and_what_is_recorded_is_told():
    owner = Owner().sets_up().bare()
    owner.earned("10", day("2026-02-01"), day("2026-02-08"))
    sheet = owner.sheet()
    assert sheet["revenue.total"].value is None
    assert sheet["margin.net"].value is None
    assert sheet.number("revenue.recorded") == 10
    assert sheet.number("coverage.revenue") == Fraction(1, 4)
    owner.state("free", day("2026-02-08"), day("2026-03-01"))
    assert owner.sheet().number("revenue.total") == 10


def test_time_whose_load_nobody_saw_draws_half_way_between_idle_and_full():
    owner = Owner().sets_up()
    owner.term("site:s", "electricity", "1")
    owner.term("node:n1", "idle_power_w", "100")
    owner.term("node:n1", "load_power_w", "500")
    begins = day("2026-02-01")
    for number, state in enumerate(("working", "held", "reserved", "free", "maintenance")):
        owner.state(state, begins + number * HOUR, begins + (number + 1) * HOUR)
    sheet = owner.sheet("2026-02-01..2026-02-02")
    assert sheet.number("energy") == Fraction(500 + 300 + 100 + 100 + 100 + 19 * 300, 1000)


def test_each_site_has_books_of_its_own():
    owner = Owner().sets_up().bare()
    owner.says(Site(site="t", currency="USD", zone="UTC"))
    owner.sets_up(node="far", site="t")
    owner.term("site:s", "support_price", "10")
    owner.says(
        SupportTime(about="tenant:ann", tenant="ann", duration_us=HOUR, what=""), day("2026-02-03")
    )
    owner.earned("7", day("2026-02-01"), day("2026-03-01"), about="node:far", currency="USD")
    other = pnl(owner.record, "t", owner.period("2026-02"), "node").total
    assert (other.number("revenue.gpu"), other["revenue.gpu"].unit) == (7, "USD")
    assert (other.number("cost.support"), owner.sheet().number("cost.support")) == (0, 10)


def test_a_share_sold_is_not_told_from_a_few_hours():
    owner = Owner().sets_up().bare()
    owner.earned("10", day("2026-02-01"), day("2026-03-01"))
    owner.state("working", day("2026-02-01"), day("2026-02-02"), channel="vast")
    sheet = owner.sheet()
    assert sheet.number("hours.sold") == 24
    assert sheet["utilisation"].value is None


def test_what_a_machine_earned_that_no_site_has_is_told_and_not_counted():
    owner = Owner().sets_up().bare()
    owner.earned("5", day("2026-02-01"), day("2026-02-02"), about="node:stranger")
    statement = owner.pnl()
    assert "node:stranger" in statement.notes[0]
    assert not statement.total.number("revenue.gpu")


def test_each_payout_is_charged_where_the_channel_charges_for_it():
    owner = Owner().sets_up().bare()
    owner.term("channel:vast", "payout_fee", "1.50")
    owner.term("channel:vast", "fee", "0")
    owner.earned("50", day("2026-02-01"), day("2026-02-02"))
    for number in ("1", "2"):
        paid = ChannelInvoice(
            channel="vast", number=number, issued_us=day("2026-02-10"), gross=None, fee=None, tax=None,
            net="25", currency="EUR",
        )  # fmt: skip
        owner.says(paid, day("2026-02-01"), day("2026-02-08"))
    assert owner.sheet().number("cost.fee") == 3


def test_a_month_under_way_counts_as_far_as_it_has_passed():
    owner = Owner().sets_up().bare()
    owner.state("free", day("2026-02-01"), day("2026-03-01"))
    passed = owner.period("2026-02").until(day("2026-02-11"))
    assert pnl(owner.record, "s", passed, "node").total.number("hours.owned") == 240


def _asset(node: str, price: str):
    from ouvrage.model.assets import Asset

    return Asset(
        asset=node, about=f"node:{node}", what="machine", price=price, currency="EUR",
        method="straight-line", life_months=60, life_hours=None, declining_share=None, residual="0",
        warranty_until=None,
    )  # fmt: skip


def _bill(
    owner: Owner, sort: str, amount: str, from_us: int, to_us: int, energy_j: int | None = None
):
    bill = CostBill(
        number="7", about="site:s", sort=sort, what="", amount=amount, tax=None, currency="EUR",
        energy_j=energy_j, due=None,
    )  # fmt: skip
    owner.says(bill, from_us, to_us, Grade.METERED)
