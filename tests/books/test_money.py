"""Money under anything an owner may say: nothing is lost or counted twice, to the nano-unit."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import split_whole
from ouvrage.books.account import account, money, profit_nano
from ouvrage.books.gaps import UNSEEN_LOAD, gaps
from ouvrage.books.laws import LAWS, account_breaches, statement_breaches
from ouvrage.books.period import period_before, period_named
from ouvrage.books.pnl import BY, pnl
from ouvrage.books.terms import CATALOGUE, rule_for, term
from ouvrage.books.variance import variance
from ouvrage.evidence.explain import explanation
from tests.books.owner import DAY, HOUR, Owner, day
from tests.books.test_pnl import _asset

BEGIN = day("2026-02-01")


@st.composite
def businesses(draw: st.DrawFn) -> Owner:
    """Two machines with earnings, leases, faults, credits, terms and corrections of any size."""
    owner = Owner(zone=draw(st.sampled_from(("UTC", "Europe/Paris"))))
    owner.sets_up(draw(st.integers(1, 3))).sets_up(draw(st.integers(1, 2)), node="n2")
    for name, value in (
        ("electricity", "0.2857"),
        ("tax", "0.31"),
        ("rent", "99.999999999"),
        ("pue", "1.37"),
    ):
        if draw(st.booleans()):
            owner.term(
                "site:s", name, value, from_us=day("2026-01-01") + draw(st.integers(0, 50)) * DAY
            )
    owner.says(_asset("n1", draw(st.sampled_from(("0", "7777.77", "1")))), day("2026-01-10"))
    owner.says(_asset("n2", "4200"), day("2026-01-31"))
    amounts = st.sampled_from(("0.000000001", "33.333333333333", "-7.1", "1000000", "0"))
    keys: list[str] = []
    for _ in range(draw(st.integers(0, 8))):
        begins = BEGIN + draw(st.integers(-40, 700)) * HOUR
        ends = begins + draw(st.integers(1, 60)) * HOUR
        kind, node = draw(st.integers(0, 3)), draw(st.sampled_from(("n1", "n2")))
        if kind == 0:
            owner.leases(f"l{len(owner.said)}", begins, ends, "0.123456789", about=f"node:{node}")
        elif kind == 1:
            owner.state(draw(st.sampled_from(("down", "working", "free"))), begins, ends, node=node,
                        channel="vast")  # fmt: skip
        else:
            amount = draw(amounts)
            sort = "credit" if amount.startswith("-") else draw(st.sampled_from(("gpu", "storage")))
            about = draw(st.sampled_from((f"node:{node}", f"device:{node}-gpu0", "site:s")))
            keys.append(owner.earned(amount, begins, ends, about=about, component=sort))
    return owner


@settings(max_examples=25, deadline=None)
@given(businesses())
def test_every_view_adds_up_and_every_law_holds(owner):
    made = account(owner.record, "s", owner.period("2026-02"))
    assert not list(account_breaches(made))
    for by in BY:
        assert not list(statement_breaches(owner.pnl(by=by)))
    for law in LAWS:
        assert not list(law.check(owner.said))


@settings(max_examples=40, deadline=None)
@given(businesses(), businesses())
def test_the_parts_of_a_difference_add_up_to_it(one, other):
    before, after = (account(o.record, "s", o.period("2026-02")) for o in (one, other))
    found = variance(before, after)
    if found.parts is not None:
        assert sum(found.parts.values()) == found.after - found.before


def test_price_volume_mix_and_efficiency_are_told_apart():
    owner = Owner().sets_up(2).bare()
    owner.term("channel:vast", "fee", "0.1")
    for month, sold, rate in (("2026-02", 100, 1), ("2026-03", 150, 2)):
        at = day(f"{month}-01")
        owner.state("working", at, at + sold * HOUR, device="n1-gpu0", channel="vast")
        owner.earned(str(sold * rate), at, at + sold * HOUR, about="device:n1-gpu0")
        owner.state("free", at, at + 31 * DAY)
    record = owner.record
    march = owner.period("2026-03")
    before, after = (account(record, "s", p) for p in (period_before(march), march))
    parts = variance(before, after).parts
    assert parts == {
        "price": 150, "volume": Fraction(50 * 9, 10), "mix": 0,
        "efficiency": 150 * Fraction(-1, 10), "fixed": 0,
    }  # fmt: skip


def test_a_gap_moves_the_margin_by_what_filling_it_in_moves_it():
    owner = Owner().sets_up(2)
    owner.says(_asset("n1", "3600"), day("2026-01-01"), grade=Grade.ASSUMED)
    for number in range(28):
        at = BEGIN + number * DAY
        owner.earned("10", at, at + DAY)
        owner.state("working", at, at + 12 * HOUR, channel="vast")
    period = owner.period("2026-02")
    base = profit_nano(account(owner.record, "s", period).sums, lambda _: True)
    found = gaps(owner.record, "s", period)
    names = [gap.what for gap in found if gap.most]
    assert {
        "electricity",
        "load_power_w",
        "fee",
        "life of the parts",
        UNSEEN_LOAD,
    } <= set(names)
    assert [gap.most for gap in found] == sorted((gap.most for gap in found), reverse=True)
    for gap in found:
        if gap.what in ("electricity", "fee", "pue"):
            for end, moved in zip((gap.low, gap.high), gap.moves or (), strict=True):
                owner.term(gap.abouts[0], gap.what, str(float(end or 0)))
                now = profit_nano(account(owner.record, "s", period).sums, lambda _: True)
                assert money(now - base) == moved
                owner.said.pop()


def test_what_nobody_can_bound_comes_first_among_the_gaps():
    owner = Owner().sets_up()
    owner.earned("10", BEGIN, BEGIN + DAY)
    first = gaps(owner.record, "s", owner.period("2026-02"))[0]
    assert (first.what, first.moves) == ("depreciation", None)
    assert "own asset" in first.fill


def test_every_assumption_has_a_source_and_lies_between_its_ends():
    for rule in CATALOGUE:
        for about, model, currency in (("channel:vast", None, "EUR"), ("device:x", "H100", "USD"), ("site:s", "RTX 3090", "EUR")):  # fmt: skip
            found = rule_for(rule.name, about, model, currency)
            assert found is not None
            if found.default is not None:
                assert len(found.source) > 10, rule.name
                if found.low is not None and found.high is not None:
                    assert found.low <= found.default <= found.high, rule.name
                    assert found.why


def test_a_term_is_its_own_then_that_of_its_node_then_of_its_site_then_assumed():
    owner = Owner().sets_up(2)

    def held(device: str, at: str):
        found = term(owner.record, f"device:{device}", "own_use_price", day(at))
        assert found is not None
        return found.value, found.grade

    assert held("n1-gpu0", "2026-02-01") == (0, Grade.ASSUMED)
    owner.term("site:s", "own_use_price", "1", from_us=day("2026-02-01"))
    owner.term("node:n1", "own_use_price", "2", from_us=day("2026-03-01"))
    owner.term("device:n1-gpu1", "own_use_price", "3", from_us=day("2026-04-01"))
    assert held("n1-gpu0", "2026-01-31") == (0, Grade.ASSUMED)
    assert held("n1-gpu0", "2026-02-01") == (1, Grade.REPORTED)
    assert held("n1-gpu1", "2026-03-31") == (2, Grade.REPORTED)
    assert held("n1-gpu1", "2026-04-01") == (3, Grade.REPORTED)


def test_every_figure_of_a_statement_stands_on_facts_and_figures_that_exist():
    owner = Owner().sets_up(2)
    owner.term("site:s", "electricity", "0.3")
    owner.says(_asset("n1", "3600"), day("2026-01-01"))
    owner.earned("10", BEGIN, BEGIN + DAY, list_price="0.5")
    owner.state("working", BEGIN, BEGIN + 12 * HOUR, channel="vast")
    for by in BY:
        for sheet in pnl(owner.record, "s", owner.period("2026-02"), by).rows:
            for path, figure in sheet.figures.items():
                told = explanation(sheet, path, owner.said)
                assert not told.missing
                assert not figure.shares or sum(figure.shares.values()) == 1
                assert figure.value is not None or figure.why


@pytest.mark.parametrize(
    ("name", "before"),
    [("2026-03", "2026-02"), ("2026-01", "2025-12"), ("2026", "2025"), ("2026-03-01..2026-03-11", "2026-02-19..2026-03-01")],
)  # fmt: skip
def test_the_period_before_meets_the_period(name, before):
    period = period_named(name, "Europe/Paris")
    found = period_before(period)
    assert found.name == before
    assert found.to_us == period.from_us


@given(st.integers(-(10**12), 10**12), st.lists(st.integers(0, 10**15), min_size=1, max_size=9))
def test_a_split_loses_nothing_whatever_its_weights(total, weights):
    if sum(weights):
        parts = split_whole(total, weights)
        assert sum(parts) == total
        assert all(
            abs(p - Fraction(total * w, sum(weights))) < 1
            for p, w in zip(parts, weights, strict=True)
        )
