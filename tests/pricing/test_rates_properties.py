"""What holds for every period, cut and plan, whatever the numbers are."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text
from ouvrage.pricing.rates.bill import bill_faults
from ouvrage.pricing.rates.plan import Plan
from ouvrage.pricing.rates.validity import holds
from tests.pricing.rating import T0, at, bill, own, rows, sessions

METERED = 'meter = { starts = ["active"], stops = ["stopped", "terminated"] }\n'
STEPS = st.sampled_from(["1 s", "60 s", "300 s", "1 h"])
ALIGN = st.sampled_from(
    ["", 'align = "clock"', 'align = "clock"\ncount_per = "start"', 'count_per = "resource"']
)
MINIMUM = st.sampled_from(
    ["", '\nminimum = "60 s"', '\nminimum = "600 s"\nminimum_per = "resource"']
)
SECONDS = st.integers(0, 20_000)


def rule(increment: str, align: str, more: str = "") -> str:
    return f'{METERED}price = "2.52/h"\nincrement = "{increment}"\n{align}{more}'


@settings(max_examples=300, deadline=None)
@given(start=SECONDS, first=SECONDS, second=SECONDS, step=STEPS, align=ALIGN, minimum=MINIMUM)
@example(start=1, first=0, second=1, step="60 s", align='align = "clock"', minimum="")
def test_cutting_a_period_never_lowers_a_charge(
    start: int, first: int, second: int, step: str, align: str, minimum: str
):
    plan = own(rule(step, align, minimum))
    cut, end = start + first, start + first + second
    whole = bill(plan, sessions([(start, end)]))
    parts = bill(plan, sessions([(start, cut), (cut, end)]))
    assert parts.total >= whole.total


@settings(max_examples=200, deadline=None)
@given(
    start=SECONDS,
    steps=st.integers(0, 20),
    second=SECONDS,
    step=STEPS,
    rounding=st.sampled_from(["up", "down"]),
)
def test_a_cut_on_a_whole_increment_changes_nothing_without_a_minimum(
    start: int, steps: int, second: int, step: str, rounding: str
):
    plan = own(rule(step, f'rounding = "{rounding}"'))
    length = {"1 s": 1, "60 s": 60, "300 s": 300, "1 h": 3600}[step]
    cut = start + steps * length
    whole = bill(plan, sessions([(start, cut + second)]))
    parts = bill(plan, sessions([(start, cut), (cut, cut + second)]))
    assert parts.total == whole.total


@settings(max_examples=200, deadline=None)
@given(start=SECONDS, cut_at=st.integers(1, 5), length=SECONDS, step=STEPS)
def test_a_cut_on_the_clock_changes_nothing_for_increments_of_the_clock(
    start: int, cut_at: int, length: int, step: str
):
    plan = own(rule(step, 'align = "clock"\ncount_per = "start"'))
    size = {"1 s": 1, "60 s": 60, "300 s": 300, "1 h": 3600}[step]
    cut = (start // size + cut_at) * size
    end = cut + length
    whole = bill(plan, sessions([(start, end)]))
    parts = bill(plan, sessions([(start, cut), (cut, end)]))
    assert parts.total == whole.total


def changing(body: str, *seams: int) -> Plan:
    """A plan whose rule is stated anew at every seam, and says the same each time."""
    moments = [at(seconds)[:19] + "Z" for seconds in seams]
    follows = "".join(
        f"\n[[version]]\nvalid_from = {moment}\n"
        + (f"valid_until = {moments[index + 1]}\n" if index + 1 < len(moments) else "")
        + f'currency = "EUR"\n[[version.rule]]\nname = "r"\n{body}'
        for index, moment in enumerate(moments)
    )
    return own(body + follows, version=f'valid_until = {moments[0]}\ncurrency = "EUR"')


@settings(max_examples=400, deadline=None)
@given(
    start=SECONDS,
    first=SECONDS,
    second=SECONDS,
    seams=st.lists(SECONDS, min_size=1, max_size=3, unique=True).map(sorted),
    step=STEPS,
    align=st.sampled_from(["", 'align = "clock"', 'align = "clock"\ncount_per = "start"']),
    rounding=st.sampled_from(["up", "down"]),
    minimum=st.sampled_from(["", '\nminimum = "60 s"', '\nminimum = "600 s"']),
)
@example(0, 5400, 60, [3000], "1 h", "", "up", "")
@example(0, 5400, 60, [3000, 3300, 3500], "1 h", "", "up", "")
@example(1800, 5400, 60, [5000], "1 h", 'align = "clock"', "up", "")
def test_a_version_and_its_successor_leave_no_gap_and_no_overlap(
    start: int,
    first: int,
    second: int,
    seams: list[int],
    step: str,
    align: str,
    rounding: str,
    minimum: str,
):
    """The same rule stated again at T is the same bill, whatever its increments and minimums are."""
    minimum = "" if align and rounding == "down" else minimum
    body = rule(step, align, f'\nrounding = "{rounding}"{minimum}')
    twice, once = changing(body, *seams), own(body)
    lines = sessions([(start, start + first), (start + first + 7, start + first + 7 + second)])
    found = bill(twice, lines)
    assert found.total == bill(once, lines).total
    for moment in (T0 + seconds * 1_000_000 + more for seconds in seams for more in (-1, 0)):
        assert sum(holds(version, moment) for version in twice.versions) == 1
    if step == "1 s" and not minimum:
        periods = sorted((c.start, c.end) for c in found.charges)
        assert all(before[1] <= after[0] for before, after in pairwise(periods))


@settings(max_examples=150, deadline=None)
@given(length=st.integers(1, 20_000), follows=st.integers(1, 20_000), step=STEPS)
def test_an_increment_has_the_price_that_held_when_it_began(length: int, follows: int, step: str):
    dear = rule(step, "").replace("2.52/h", "5.04/h")
    seam = at(follows)[:19] + "Z"
    plan = own(
        rule(step, "") + f'\n[[version]]\nvalid_from = {seam}\ncurrency = "EUR"\n'
        f'[[version.rule]]\nname = "r"\n{dear}',
        version=f'valid_until = {seam}\ncurrency = "EUR"',
    )
    size = {"1 s": 1, "60 s": 60, "300 s": 300, "1 h": 3600}[step]
    begins = range(0, length, size)
    before = sum(1 for begin in begins if begin < follows)
    each = Fraction("2.52") * size / 3600
    found = bill(plan, sessions([(0, length)])).total
    assert found == each * (before + 2 * (len(begins) - before))


@settings(max_examples=100, deadline=None)
@given(gap=st.integers(-3, 3).filter(bool))
def test_versions_that_do_not_meet_are_refused(gap: int):
    day = 10 + gap
    with pytest.raises(OuvrageError) as refused:
        own(
            f'of = ["x"]\nprice = "1/h"\n[[version]]\nvalid_from = 2026-03-{day:02d}\n[[version.rule]]\nname = "r"\nof = ["x"]\nprice = "1/h"',
            version="valid_until = 2026-03-10",
        )
    assert refused.value.code == ("rate-plan/gap" if gap > 0 else "rate-plan/overlap")
    assert len(refused.value.where) == 2


@settings(max_examples=150, deadline=None)
@given(periods=st.lists(st.tuples(st.integers(0, 9000), st.integers(1, 9000)), max_size=5))
def test_the_generic_plans_bill_what_counting_seconds_by_hand_gives(
    periods: list[tuple[int, int]],
):
    """The same rules once more, as sets of seconds, minutes and hours."""
    start, apart = 0, []
    for pause, length in periods:
        apart.append((start + pause, start + pause + length))
        start += pause + length
    lines = sessions(apart) or [f"vm,created,{at(0)},,"]
    hours = {second // 3600 for low, high in apart for second in range(low, high)}
    by_hand = {
        "per-second": sum(high - low for low, high in apart),
        "per-second-60s-minimum": sum(max(high - low, 60) for low, high in apart),
        "per-minute-up": 60 * sum(-((low - high) // 60) for low, high in apart),
        "per-minute-down": 60 * sum((high - low) // 60 for low, high in apart),
        "per-hour-up": 3600 * sum(-((low - high) // 3600) for low, high in apart),
        "clock-hour": 3600 * len(hours),
    }
    found = {name: bill(name, lines, rate="3600/h").total for name in by_hand}
    assert found == by_hand


EVENTS = st.sampled_from(
    [
        "requested",
        "created",
        "active",
        "healthy",
        "stopped",
        "started",
        "deallocated",
        "offline",
        "terminated",
    ]
)
LIFE = st.lists(
    st.tuples(st.integers(0, 90_000), EVENTS, st.sampled_from(["a", "b", "c"])), max_size=12
)
LEVELS = st.lists(
    st.tuples(st.integers(0, 90_000), st.integers(0, 3), st.sampled_from(["a", "r"])), max_size=6
)
PLANS = st.sampled_from(
    [
        "ec2-linux",
        "ec2-suse",
        "azure-minute-down",
        "lambda",
        "runpod",
        "vast",
        "ovh-from-active",
        "scaleway",
        "coreweave",
    ]
)


@settings(max_examples=250, deadline=None)
@given(plan=PLANS, life=LIFE, levels=LEVELS, moved=LEVELS)
def test_whatever_happens_charges_are_not_negative_and_add_up(
    plan: str,
    life: list[tuple[int, str, str]],
    levels: list[tuple[int, int, str]],
    moved: list[tuple[int, int, str]],
):
    lines = [f"{name},{event},{at(when)},," for when, event, name in life]
    lines += [f"r,reserved,{at(when)},{level},instance" for when, level, _ in levels]
    lines += [f"{name},storage,{at(when)},{level},GB" for when, level, name in levels]
    lines += [f"{name},egress,{at(when)},{level},TB" for when, level, name in moved]
    lines = list(dict.fromkeys(lines)) or [f"a,active,{at(0)},,"]
    asked = {
        "ec2-linux": {"ebs": "0.08/GB-month"},
        "ec2-suse": {"ebs": "0.08/GB-month"},
        "azure-minute-down": {"disk": "0.1/GB-month"},
        "vast": {"storage": "0.0002/GB-h", "traffic": "5/TB"},
        "ovh-from-active": {"volume": "0.1/GB-month", "egress": "0.01/GB"},
        "scaleway": {"egress": "0.01/GB"},
        "coreweave": {"reserved": "1/h"},
    }.get(plan, {})
    found = bill(plan, lines, until="2026-12-05T00:00:00Z", rate="2.52/h", **asked)
    assert not list(bill_faults(found))
    assert all(charge.amount >= 0 for charge in found.charges)
    assert sum((Fraction(c.amount) for c in found.charges), Fraction(0)) == found.total


@settings(max_examples=100, deadline=None)
@given(
    places=st.integers(0, 4),
    periods=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 4000)), max_size=6),
)
def test_a_reservation_is_paid_whole_and_covers_each_moment_once(
    places: int, periods: list[tuple[int, int]]
):
    lines = [f"r,reserved,{at(0)},{places},instance", f"r,terminated,{at(3000)},,"]
    for n, (start, length) in enumerate(periods):
        lines += sessions([(start, start + length)], f"vm-{n}")
    found = bill(
        "azure-per-second", [row.replace("stopped", "deallocated") for row in lines], rate="1/h"
    )
    reserved = [c for c in found.charges if c.kind in ("used", "unused")]
    beyond = [c for c in found.charges if c.kind == "usage"]
    used = sum((c.quantity for c in found.charges if c.kind == "used"), Fraction(0))
    assert sum((c.quantity for c in reserved), Fraction(0)) == places * 3000
    assert used + sum((c.quantity for c in beyond), Fraction(0)) == sum(n for _, n in periods)


@settings(max_examples=200, deadline=None)
@given(amount=st.fractions(0, 10**6, max_denominator=10**6))
def test_money_is_printed_with_four_places_and_never_cut_where_it_ends(amount: Fraction):
    from ouvrage.pricing.rates.quantity import money_text

    text = money_text(amount)
    assert len(text.partition(".")[2]) >= 4
    if decimal_text(amount) and Fraction(decimal_text(amount)) == amount:
        assert Fraction(text) == amount


@settings(max_examples=150, deadline=None)
@given(
    tiers=st.lists(st.integers(1, 500), min_size=1, max_size=4, unique=True),
    amounts=st.lists(st.integers(0, 400), min_size=1, max_size=6),
    free=st.integers(0, 300),
)
def test_marginal_tiers_do_not_depend_on_how_a_quantity_is_divided(
    tiers: list[int], amounts: list[int], free: int
):
    bounds = ", ".join(
        f'{{ up_to = "{bound}", price = "{9 - n}/GB" }}' for n, bound in enumerate(sorted(tiers))
    )
    plan = own(f'of = ["egress"]\nfree = "{free}"\ntiers = [{bounds}, {{ price = "1/GB" }}]')
    parts = [f"a,egress,{at(n)},{amount},GB" for n, amount in enumerate(amounts)]
    once = [f"a,egress,{at(0)},{sum(amounts)},GB"]
    assert bill(plan, parts).total == bill(plan, once).total


def test_a_file_in_another_order_is_the_same_bill():
    lines = [*sessions([(0, 100), (200, 300)]), *sessions([(5, 50)], "b")]
    assert (
        bill("per-minute-up", lines, rate="1/h").total
        == bill("per-minute-up", lines[::-1], rate="1/h").total
    )
    assert rows(*lines) != rows(*lines[::-1])
