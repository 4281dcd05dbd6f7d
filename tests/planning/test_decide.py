"""Decisions on made-up days: each course where it is due, and not yet where nobody can know."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY, HOUR, utc_us
from ouvrage.books.days import Day, days_of
from ouvrage.books.pnl import pnl
from ouvrage.books.scope import Scope
from ouvrage.model.cash import BankLine
from ouvrage.model.earnings import ChannelInvoice
from ouvrage.model.sites import DevicePlaced
from ouvrage.planning import average_day as a
from ouvrage.planning.channels import channels_of
from ouvrage.planning.decide import GROW, HOLD, REPRICE, REPURPOSE, RETIRE, Case, Decision, decide
from ouvrage.planning.decision_case import case_of
from ouvrage.planning.rules import RULES, rules_of
from tests.books.owner import Owner, day
from tests.books.test_pnl import _asset

START = utc_us("2026-03-01T00:00:00Z")


def days(
    count: int, *, sold: float = 60.0, rate: float = 0.6, told: float = 1.0, **other: Any
) -> tuple[Day, ...]:
    """Days of a machine with four GPUs that differ a little from one another."""
    found = []
    for index in range(count):
        hours = sold * (1 + 0.1 * (index % 3 - 1))
        money = Fraction(round(hours * rate * 1000), 1000)
        kwh = Fraction(round(hours * 400 + (96 - hours) * 60), 1000)
        lines = {
            "revenue.gpu": money, "cost.fee": money / 5, "cost.electricity": kwh / 4, "memo.kwh": kwh,
            "memo.idle_kwh": Fraction("5.76"), "memo.load_kwh": Fraction("38.4"), "cost.rent": Fraction(1),
            "cost.depreciation": Fraction(5), "cost.interest": Fraction(1), **other.get("lines", {}),
        }  # fmt: skip
        us = int(hours * HOUR)
        down = other.get("down", 0) * HOUR
        states = {"working": us, "down": down, "free": 96 * HOUR - us - down}
        begins = START + index * DAY
        found.append(Day(
            from_us=begins, to_us=begins + DAY, states=states, tenants={("vast", other.get("tenant", "unnamed")): us},
            lines=lines, told=int(96 * HOUR * told), unknown=other.get("unknown", {}),
        ))  # fmt: skip
    return tuple(found)


def case(made: tuple[Day, ...], **other: Any) -> Case:
    given: dict[str, Any] = {
        "name": "n1", "currency": "EUR", "zone": "UTC", "days": made, "tax": 0.25, "opportunity": 0.03,
        "price": 9000.0, "own_price": None, "support_h": 1.0, "grade": Grade.REPORTED, "seed": "x", **other,
    }  # fmt: skip
    return Case(**given)


def answer(made: tuple[Day, ...], rules: dict[str, Any] | None = None, **other: Any) -> Decision:
    return decide(case(made, **other), rules_of(rules or {}))


def test_a_machine_that_pays_well_should_have_another_beside_it():
    found = answer(days(60, sold=60))
    assert (found.action, found.settled) == (GROW, True)
    course = found.course
    assert course is not None
    assert course.gain.low < course.gain.value < course.gain.high
    price = next(c for c in found.changes if c.what == "price" and c.below)
    assert price.value < 0.6
    at_it = answer(days(60, sold=60, rate=price.value * 0.99))
    assert at_it.action == price.action


@pytest.mark.parametrize(
    ("made", "other", "rules"),
    [
        (days(60, tenant="ann"), {}, {}),
        (days(60, down=6), {}, {}),
        (days(60), {"support_h": 9.0}, {}),
        (days(60), {}, {"grow_payback_months": 4}),
        (days(60), {"price": None}, {}),
    ],
    ids=["one tenant", "downtime", "support", "owner's own rule", "price unknown"],
)
def test_nothing_is_added_beyond_the_owners_limits(made: tuple[Day, ...], other: Any, rules: Any):
    assert answer(days(60)).action == GROW
    found = answer(made, rules, **other)
    assert found.action != GROW
    grow = [course for course in found.courses if course.action == GROW]
    assert all(not course.taken for course in grow)


def test_an_empty_machine_is_cheaper_and_a_full_one_dearer():
    cheaper = answer(days(60, sold=8, rate=1.5))
    assert cheaper.action == REPRICE
    assert cheaper.course is not None
    assert (cheaper.course.step or 0) < 0
    dearer = answer(days(60, sold=86, rate=0.3, tenant="ann"))
    assert dearer.action == REPRICE
    assert dearer.course is not None
    assert (dearer.course.step or 0) > 0


def test_what_does_not_pay_its_power_is_stopped_unless_own_work_is_worth_more():
    poor = days(60, sold=40, rate=0.12)
    assert answer(poor).action == RETIRE
    assert answer(poor, own_price=0.5).action == REPURPOSE


def test_a_loss_that_stopping_would_not_save_is_borne():
    found = answer(days(60, sold=50, rate=0.25))
    assert found.action == HOLD
    assert found.figures["margin_per_day"].high < 0
    assert found.figures["keep_per_day"].low > 0


def test_not_yet_until_enough_days_are_covered_and_when_to_ask_again():
    found = answer(days(19))
    assert (found.settled, found.action, found.counted) == (False, GROW, 19)
    assert found.why_not == "19 days of record, 30 needed"
    assert found.ask_again == date(2026, 3, 30)  # the 19th is the last; eleven more are needed
    assert answer(days(13)).action is None
    sparse = answer(days(20) + tuple(
        replace(each, told=each.told // 2, from_us=each.from_us + 20 * DAY, to_us=each.to_us + 20 * DAY)
        for each in days(30)
    ))  # fmt: skip
    assert not sparse.settled
    assert sparse.why_not == "20 days of record (30 more are not covered well enough), 30 needed"
    assert answer(days(30)).settled
    assert answer(days(30), {"least_days": 31}).settled is False


def test_a_cost_that_nobody_knows_leaves_no_decision():
    unknown = {"depreciation": "no price of purchase is recorded for gpu0 or n1"}
    found = answer(days(60, unknown=unknown))
    assert (found.action, found.settled) == (None, False)
    assert found.why_not == f"depreciation is not known: {unknown['depreciation']}"


def test_the_same_days_have_the_same_answer():
    assert answer(days(45)) == answer(days(45))


def test_rules_refuse_what_they_do_not_know():
    for given in ({"last_days": 3}, {"least_days": "30"}, {"least_days": 3}, {"least_gain": True}):
        with pytest.raises(OuvrageError) as refused:
            rules_of(given)
        assert refused.value.code == "decide/rule"
    assert all(float(rule.least) <= float(rule.default) <= float(rule.most) for rule in RULES)


def owner() -> Owner:
    """Two months on two channels: one pays more, and keeps the GPU waiting."""
    made = Owner().sets_up().bare()
    made.term("channel:vast", "fee", "0.2")
    at = day("2026-02-01")
    for index in range(20):
        begins = at + index * 3 * DAY
        channel = "own" if index % 2 else "vast"
        free = 36 if channel == "own" else 6
        made.state("free", begins, begins + free * HOUR, device="n1-gpu0", cause="no demand")
        ends = begins + 3 * DAY
        made.state("working", begins + free * HOUR, ends, device="n1-gpu0", channel=channel)
        price = "1.00" if channel == "own" else "0.80"
        amount = str(Fraction(price) * (72 - free))
        made.earned(f"{float(Fraction(amount)):.2f}", begins + free * HOUR, ends, channel=channel)
    return made


def test_the_channel_that_pays_counts_its_fees_and_the_time_it_kept_waiting():
    made = owner()
    asked = case_of(
        made.record, "s", Scope(node="n1"), day("2026-04-02"), rules_of({"window_days": 60})
    )
    pay = {each.channel: each for each in channels_of(asked.account, Scope(node="n1"), 0.03)}
    assert (pay["own"].sold_h, pay["own"].waited_h) == (360, 360)
    assert (pay["vast"].sold_h, pay["vast"].waited_h) == (660, 60)
    assert pay["own"].per_owned_hour == pytest.approx(0.5)
    assert pay["vast"].per_owned_hour == pytest.approx(0.8 * 0.8 * 660 / 720)
    assert list(pay) == ["vast", "own"]


def test_days_add_up_to_the_statement_of_their_period():
    made = owner()
    made.term("site:s", "rent", "31")
    made.term("site:s", "tax", "0.25")
    period = made.period("2026-02")
    sheet = pnl(made.record, "s", period, "node").total
    found = days_of(made.record, "s", period)
    for line, path in (
        ("revenue.gpu", "revenue.gpu"),
        ("cost.fee", "cost.fee"),
        ("cost.rent", "cost.rent"),
    ):
        total = sum(each.lines.get(line, Fraction(0)) for each in found)
        assert abs(total - Fraction(sheet[path].value or 0)) < Fraction(1, 10**7)
    assert sum(each.owned for each in found) == period.us
    margins = [a.margin(a.average(each), 0.0) for each in found]
    before_tax = Fraction(sheet["margin.net"].value or 0) + Fraction(sheet["cost.tax"].value or 0)
    assert sum(margins) == pytest.approx(float(before_tax))


def two_classes() -> Owner:
    """A machine of one class and one with both, of which the class earns on its own."""
    made = owner()
    made.sets_up(1, node="n2", model="A100")
    made.says(
        DevicePlaced(device="n2-gpu7", node="n2", model="RTX 4090", slot=7), day("2026-01-01")
    )
    made.state("working", day("2026-02-01"), day("2026-03-31"), node="n2", channel="own")
    made.earned("500", day("2026-02-01"), day("2026-03-31"), about="device:n2-gpu0", channel="own")
    return made


def test_the_days_of_the_classes_add_up_to_those_of_everything():
    made = two_classes()
    period = made.period("2026-02")
    whole = days_of(made.record, "s", period)
    parts = [
        days_of(made.record, "s", period, Scope(gpu_class=name)) for name in ("RTX4090", "A100")
    ]
    for day_, *classes in zip(whole, *parts, strict=True):
        assert sum(each.owned for each in classes) == day_.owned
        for line, amount in day_.lines.items():
            assert sum(each.lines.get(line, Fraction(0)) for each in classes) == amount
    assert {len({each.owned for each in days_}) for days_ in parts} == {1}
    assert parts[0][0].owned == 2 * parts[1][0].owned


def test_a_machine_s_price_is_of_a_class_only_where_all_of_it_is():
    made = two_classes()
    numbers, at = rules_of({"window_days": 60}), day("2026-04-02")
    made.says(_asset("n1", "2000"), day("2026-01-01"))

    def price(scope: Scope) -> float | None:
        return case_of(made.record, "s", scope, at, numbers).case.price

    assert price(Scope(gpu_class="RTX4090")) == 2000
    made.says(_asset("n2", "9000"), day("2026-01-01"))
    assert price(Scope(gpu_class="RTX4090")) is None
    assert price(Scope(gpu_class="RTX4090", node="n1")) == 2000
    assert price(Scope()) == 11000
    names = [case_of(made.record, "s", scope, at, numbers).case.name
             for scope in (Scope(), Scope(gpu_class="A100"), Scope(node="n2", gpu_class="A100"))]  # fmt: skip
    assert names == ["s", "A100", "A100 of n2"]


def test_days_to_payment_go_by_what_reconciling_is_sure_of():
    made = owner()
    invoice = ChannelInvoice(channel="vast", number="V-2026-02", issued_us=day("2026-03-01"), gross=None, fee=None,
                             tax=None, net="100", currency="EUR")  # fmt: skip
    made.says(invoice, day("2026-02-01"), day("2026-03-01"))
    for text, seen in (("a coffee", None), ("payout V-2026-02", 34.0)):
        line = BankLine(
            account="a", reference="", amount="100", currency="EUR", counterparty="", text=text
        )
        made.says(line, day("2026-03-21"), day("2026-03-22"))
        asked = case_of(made.record, "s", Scope(), day("2026-04-02"), rules_of({"window_days": 60}))
        pay = {each.channel: each.delay_days for each in channels_of(asked.account, Scope(), 0.03)}
        assert pay["vast"] == seen
