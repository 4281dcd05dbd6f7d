"""What came of a period against what was planned for it: divided so that the parts add up, exactly."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.numbers import NANO
from ouvrage.books.account import account, profit_nano
from ouvrage.books.against_plan import AgainstPlan, against_plan
from ouvrage.books.pnl import COSTS
from ouvrage.model.plans import OwnerPlan, PlannedCost, PlannedSale
from tests.books.owner import DAY, HOUR, Owner, day
from tests.books.test_money import businesses


def plan(owner: Owner, sales: list[tuple[str | None, str, str]], costs: dict[str, str], *,
         about: str = "site:s", period: str = "2026-03") -> str:  # fmt: skip
    """State a plan: sales as channel, hours and rate."""
    value = OwnerPlan(
        about=about, number=1, currency="EUR", said_by="me",
        sales=tuple(PlannedSale(channel=c, gpu_class=None, hours=h, rate=r) for c, h, r in sales),
        costs=tuple(PlannedCost(line=line, amount=amount) for line, amount in costs.items()),
    )  # fmt: skip
    when = owner.period(period)
    return owner.says(value, when.from_us, when.to_us)


def march_of_one_gpu() -> Owner:
    """150 h sold in March at 2.00 on vast for a fee of a tenth, and rent of 50."""
    owner = Owner().sets_up().bare()
    owner.term("channel:vast", "fee", "0.1")
    owner.term("site:s", "rent", "50")
    at = day("2026-03-01")
    owner.state("working", at, at + 150 * HOUR, channel="vast")
    owner.state("free", at + 150 * HOUR, at + 31 * DAY)
    owner.earned("300", at, at + 150 * HOUR)
    return owner


def compared(owner: Owner, period: str = "2026-03") -> list[AgainstPlan]:
    return list(against_plan(account(owner.record, "s", owner.period(period))))


def test_a_result_is_held_against_a_plan_part_by_part():
    owner = march_of_one_gpu()
    assert not compared(owner)
    plan(owner, [("vast", "100", "1.50")], {"fee": "15", "rent": "40"})
    (found,) = compared(owner)
    assert (found.found.before, found.found.after) == (95, 220)
    assert found.found.parts == {
        "price": 75, "volume": Fraction(50 * 135, 100), "mix": 0,
        "efficiency": 150 * Fraction(15, 100) - 30, "fixed": -10,
    }  # fmt: skip
    assert found.whole
    assert found.beside == {}


def test_what_a_plan_does_not_name_is_told_beside_it_and_not_taken_for_nothing():
    owner = march_of_one_gpu()
    plan(owner, [(None, "150", "2")], {})
    (found,) = compared(owner)
    assert found.found.after - found.found.before == 0
    assert found.beside == {"cost.fee": 30, "cost.rent": 50}


def test_hours_on_another_channel_than_planned_are_mix_and_price():
    owner = march_of_one_gpu()
    plan(owner, [("own", "75", "3"), ("vast", "75", "1")], {})
    parts = compared(owner)[0].found.parts
    assert parts == {"price": 150, "volume": 0, "mix": -150, "efficiency": 0, "fixed": 0}


def test_a_plan_of_a_year_counts_by_its_time_and_one_of_the_month_before_it():
    owner = march_of_one_gpu()
    plan(owner, [(None, "3650", "1")], {"rent": "365"}, period="2026")
    (found,) = compared(owner)
    assert (found.found.before, found.whole) == (310 - 31, False)
    year = compared(owner, "2026-03-01..2026-04-02")
    plan(owner, [(None, "100", "1")], {"rent": "1"})
    (found,) = compared(owner)
    assert (found.found.before, found.whole) == (99, True)
    assert year[0].found.before == 320 - 32
    (both,) = compared(owner, "2026-03-01..2026-04-02")
    assert both.found.before == 99 + 9


def test_a_time_for_which_there_is_no_plan_is_not_compared():
    owner = march_of_one_gpu()
    plan(owner, [(None, "100", "1")], {})
    assert not compared(owner, "2026-02-28..2026-04-01")


def test_a_planned_cost_that_nobody_knows_leaves_the_difference_undivided():
    owner = Owner().sets_up(model="Unheard-of 9000")
    at = day("2026-03-01")
    owner.state("working", at, at + 31 * DAY, channel="vast")
    owner.earned("300", at, at + 31 * DAY)
    plan(owner, [(None, "744", "0.5")], {"electricity": "10"})
    (found,) = compared(owner)
    assert found.found.parts is None
    assert found.found.why


@settings(max_examples=40, deadline=None)
@given(
    businesses(),
    st.dictionaries(st.sampled_from(COSTS), st.decimals("0", "999", places=2).map(str), max_size=6),
    st.lists(st.tuples(st.sampled_from([None, "vast", "own"]), st.integers(0, 900).map(str),
                       st.decimals("0", "4", places=3).map(str)), unique_by=lambda s: s[0]),
)  # fmt: skip
def test_the_parts_against_any_plan_add_up_to_the_difference(owner, costs, sales):
    plan(owner, sales, costs, period="2026-02")
    plan(owner, sales, costs, about="node:n1", period="2026")
    found = compared(owner, "2026-02")
    assert {"site:s", "node:n1"} == {each.about for each in found}
    for each in found:
        if each.found.parts is not None:
            assert sum(each.found.parts.values()) == each.found.after - each.found.before
        margin = account(owner.record, "s", owner.period("2026-02"))
        if each.about == "site:s":
            whole = profit_nano(margin.sums, lambda _: True)
            assert each.found.after - sum(each.beside.values()) == Fraction(whole, NANO)
