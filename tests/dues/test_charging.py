"""What a lease costs: the running cost is the bill's, months never change the total, failures are given back."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_us
from ouvrage.books.dues.account import running_nano
from ouvrage.books.dues.charging import charged_nano, charges_due, of_cost
from ouvrage.books.dues.lease import amount_nano, amount_text, cost_lines, cost_until
from ouvrage.pricing.rates.frozen import check_for_sale, thawed
from tests.dues.world import NOV, H, S, World, ended, lease, offer, plan_text

TIERED = plan_text("""
[[version.rule]]
name = "time"
part = "compute"
price = "rate"
meter = { starts = ["active"], stops = ["terminated"] }
increment = "60 s"
minimum = "600 s"
[[version.rule]]
name = "cards"
part = "compute"
of = ["gpus"]
price = "1.10/GPU-h"
increment = "1 h"
[[version.rule]]
name = "traffic"
part = "traffic"
of = ["egress"]
scope = "resource"
free = "1 GB"
price = "0.09/GB"
""")
CLOCK = plan_text("""
[[version.rule]]
name = "hours"
part = "compute"
price = "rate"
meter = { starts = ["created"], stops = ["terminated"] }
increment = "1 h"
align = "clock"
""")
DOWN = plan_text("""
[[version.rule]]
name = "minutes"
part = "compute"
price = "rate"
meter = { starts = ["healthy"], stops = ["terminated"] }
increment = "60 s"
rounding = "down"
""")
PLANS = (TIERED, CLOCK, DOWN)
OFFERS = [
    offer("per-second"), offer("per-hour-up", "2.52"), offer("per-minute-up", "0.36"),
    offer("per-second-60s-minimum", "0.0777"),
    *(offer(text, "0.30", gpus=2) for text in PLANS),
]  # fmt: skip
TIMES = st.integers(1, 90 * 24 * H)


@pytest.mark.parametrize(
    ("plan", "rate", "us", "cost"),
    [
        # 3670 s at 0.30 an hour; whole minutes up make 62 of them, whole hours two.
        ("per-second", "0.30", 3670 * S, "0.305833333"),
        ("per-minute-up", "0.30", 3670 * S, "0.31"),
        ("per-hour-up", "0.30", 3670 * S, "0.6"),
        ("per-second-60s-minimum", "3.60", 20 * S, "0.06"),
        ("per-minute-down", "0.60", 119 * S, "0.01"),
    ],
)
def test_a_lease_costs_what_its_plan_makes_of_its_time(plan, rate, us, cost):
    held = lease(offer(plan, rate), ended=ended(us))
    assert amount_text(cost_until(held, NOV + us)) == cost


def test_a_plan_counts_what_an_offer_holds_and_what_was_sent():
    held = lease(OFFERS[4], ended=ended(3670 * S), sent=3 * 10**9)
    assert {line.rule: amount_text(line.nano) for line in cost_lines(held, NOV + 3670 * S)} == {
        "time": "0.31", "cards": "4.4", "traffic": "0.18",
    }  # fmt: skip
    # what was sent is known at the end, and not before
    assert "traffic" not in {line.rule for line in cost_lines(held, NOV + 3000 * S)}


@given(st.sampled_from(OFFERS), TIMES, st.lists(TIMES, max_size=6))
@settings(max_examples=60, deadline=None)
def test_the_running_cost_at_the_end_is_the_sum_of_the_charges(of, us, moments):
    held = lease(of, from_us=NOV + 17 * S, ended=ended(us, from_us=NOV + 17 * S), sent=5 * 10**9)
    running = replace(held, ended=None)
    charges = []
    before = 0
    for at in sorted(NOV + moment for moment in moments):
        seen = replace(held, ended=None) if at < held.ended.at_us else held
        charges += charges_due(seen, charges, at)
        now = charged_nano(charges) + running_nano([seen], charges, at)
        assert now == cost_until(seen, at)
        assert now >= before  # nothing is refunded under these plans
        before = now
        assert not charges_due(seen, charges, at)
    charges += charges_due(held, charges, held.ended.at_us)
    assert charged_nano(charges) == cost_until(held, held.ended.at_us)
    assert charged_nano(charges) >= cost_until(running, held.ended.at_us)
    assert running_nano([held], charges, held.ended.at_us + H) == 0


@given(st.sampled_from(OFFERS), TIMES)
@settings(max_examples=25, deadline=None)
def test_cutting_by_months_keeps_the_total_and_the_quantity(of, us):
    held = lease(of, ended=ended(us))
    whole = charges_due(held, [], held.ended.at_us)
    cuts = [utc_us(f"2026-12-{day:02}T00:00:00Z") for day in (1, 2)] + [
        utc_us("2027-01-01T00:00:00Z")
    ]
    parts = []
    for cut in cuts:
        seen = replace(held, ended=None) if cut < held.ended.at_us else held
        parts += charges_due(seen, parts, cut)
    parts += charges_due(held, parts, held.ended.at_us)
    assert charged_nano(parts) == charged_nano(whole) == cost_until(held, held.ended.at_us)
    for rule in {each.value.rule for each in whole}:
        both = [
            sum(Fraction(e.value.quantity) for e in found if e.value.rule == rule)
            for found in (whole, parts)
        ]
        assert both[0] == both[1]
        spans = sorted((e.valid_from, e.end) for e in parts if e.value.rule == rule)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_a_lease_that_runs_over_a_month_is_charged_at_its_end_and_says_what_was_charged_before():
    held = lease(offer("per-hour-up", "1"), from_us=NOV + 29 * 24 * H, until_us=None)
    december = NOV + 30 * 24 * H
    first = charges_due(held, [], december + 90 * 60 * S)
    assert [(each.value.amount, each.end) for each in first] == [("24", december)]
    over = replace(held, ended=ended(26 * H, from_us=held.from_us))
    (second,) = charges_due(over, first, december + 2 * H)
    assert (second.value.amount, second.valid_from, second.end) == ("2", december, december + 2 * H)
    assert "less 86400 s charged before" in second.value.words


@pytest.mark.parametrize("outcome", ["hardware", "lost", "never started"])
def test_what_is_not_the_tenants_doing_costs_nothing_and_is_given_back_where_it_was_charged(
    outcome,
):
    failed = lease(ended=ended(3 * H, 0, outcome))
    assert failed.unbilled
    assert charges_due(failed, [], NOV + 4 * H) == []
    long = lease(ended=ended(31 * 24 * H, 0, outcome))
    before = charges_due(replace(long, ended=None), [], NOV + 30 * 24 * H + H)
    assert charged_nano(before) == amount_nano("216")
    back = charges_due(long, before, NOV + 31 * 24 * H)
    assert [(e.value.amount, e.value.credits) for e in back] == [("-216", before[0].value.charge)]
    assert back[0].value.words == f"given back: {outcome}"
    assert charges_due(long, [*before, *back], NOV + 32 * 24 * H) == []


def test_a_credit_note_is_no_reason_to_charge_again():
    world = World.begun()
    world.leased(2 * H)
    world.charged(NOV + 3 * H)
    record = world.record
    from ouvrage.books.dues.charging import CREDIT_NOTE, credit_of

    world.states([credit_of(record.charges[0], amount_nano("0.1"), "goodwill", CREDIT_NOTE)])
    assert world.charged(NOV + 4 * H) == []
    assert charged_nano(world.record.charges) == amount_nano("0.5")
    assert charged_nano(of_cost(world.record.charges)) == amount_nano("0.6")


def test_amounts_are_whole_nano_units_as_text():
    for text in ("0.305833333", "12", "-0.5", "0", "0.000000001"):
        assert amount_text(amount_nano(text)) == text
    with pytest.raises(ValueError, match="nano"):
        amount_nano("0.0000000001")


def test_every_shipped_plan_is_frozen_and_read_again_the_same():
    from ouvrage.adapters.rate_files import frozen_plan, load_plan, shipped_names

    for name in shipped_names():
        _, text = frozen_plan(name)
        found, plan = thawed(text), load_plan(name)
        assert found.name == plan.name
        assert [_sorted(each) for each in found.versions] == [
            _sorted(each) for each in plan.versions
        ]


def _sorted(version):
    """A version whose lists of the fields that were stated are in one order, which means nothing."""

    def rule(each):
        forms = tuple(
            replace(o, rule=rule(o.rule), fields=tuple(sorted(o.fields))) for o in each.overrides
        )
        return replace(each, fields=tuple(sorted(each.fields)), overrides=forms)

    rules = tuple(rule(each) for each in version.rules)
    return replace(version, rules=rules, fields=tuple(sorted(version.fields)))


@pytest.mark.parametrize(
    ("text", "rate", "says"),
    [
        (plan_text('[[version.rule]]\nname="a"\npart="other"\nof=["requests"]\nprice="1/request"'), None, "requests"),
        (plan_text('[[version.rule]]\nname="a"\npart="traffic"\nof=["egress"]\nfree="1 GB"\nprice="0.1/GB"'), None,
         "more than one lease"),
        (TIERED, None, "states none"),
    ],
)  # fmt: skip
def test_a_plan_that_bills_no_lease_is_refused_for_an_offer(text, rate, says):
    with pytest.raises(OuvrageError, match=says):
        check_for_sale(thawed(text), rate)
    check_for_sale(thawed(TIERED), "0.30", "EUR")


def test_a_plan_that_ends_begins_later_or_is_in_another_currency_bills_no_lease_from_now_on():
    rule = '[[version.rule]]\nname="a"\npart="compute"\nprice="rate"\nmeter={starts=["active"]}'
    plans = [
        (plan_text(rule, 'currency = "USD"'), "in USD"),
        (plan_text(rule, "valid_until = 2027-01-01"), "ends on 2027-01-01"),
        (plan_text(rule, "valid_from = 2027-01-01"), "begins on 2027-01-01"),
    ]
    for text, says in plans:
        with pytest.raises(OuvrageError, match=says):
            check_for_sale(thawed(text), "0.30", "EUR", NOV)


def test_a_text_that_is_no_plan_is_refused():
    with pytest.raises(OuvrageError) as refused:
        thawed('{"version": 3}')
    assert refused.value.code == "rate-plan/frozen"
