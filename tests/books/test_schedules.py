"""Depreciation and loans over any cut of time: the parts of a life add up to it, to the nano-unit."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO, nano
from ouvrage.base.time import DAY, HOUR
from ouvrage.books.depreciation import book_value, depreciation
from ouvrage.books.loans import interest_in, loan_schedule
from ouvrage.books.period import Period, months_later
from ouvrage.books.record import Known
from ouvrage.model.assets import Asset, AssetRetired, Loan
from tests.books.owner import Owner, day

PARIS, BOUGHT = "Europe/Paris", day("2026-01-31")
MONEY = st.decimals("0", "99999", places=4, allow_nan=False).map(str)


def known(value, at: int = BOUGHT) -> Known:
    return Known(value=value, valid_from=at, valid_to=None, grade=Grade.REPORTED, key="k")


def part(method: str = "straight-line", **other) -> Known[Asset]:
    given: dict = {
        "asset": "a", "about": "node:n1", "what": "", "price": "3600", "currency": "EUR", "life_months": None,
        "life_hours": None, "declining_share": None, "residual": "0", "warranty_until": None, **other,
    }  # fmt: skip
    return known(Asset(method=method, **given))


def during(begins: int, ends: int) -> Period:
    return Period(from_us=begins, to_us=ends, name="", zone=PARIS)


@st.composite
def parts(draw: st.DrawFn) -> Known[Asset]:
    price = Fraction(draw(MONEY))
    residual = price * draw(st.sampled_from((Fraction(0), Fraction(1, 10), Fraction(1))))
    method = draw(st.sampled_from(("straight-line", "declining", "hours")))
    months = draw(st.integers(1, 90))
    return part(
        method,
        price=str(price),
        residual=str(residual),
        life_months=None if method == "hours" else months,
        life_hours=draw(st.integers(1, 9000)) if method == "hours" else None,
        declining_share=draw(st.sampled_from(("0.3", "0.5", "0.07")))
        if method == "declining"
        else None,
    )


@settings(max_examples=150, deadline=None)
@given(parts(), st.lists(st.integers(-40 * DAY, 3000 * DAY), max_size=6), st.booleans(), MONEY)
def test_any_cut_of_a_life_adds_up_to_price_less_residual_or_less_proceeds(asset, cuts, gone, got):
    """A third of the time it works; a life of ninety months is over after three thousand days."""
    retired = None
    if gone:
        value = AssetRetired(asset="a", proceeds=got, currency="EUR", why="sold")
        retired = known(value, BOUGHT + 700 * DAY + HOUR)
    whole = (BOUGHT - 40 * DAY, BOUGHT + 27_100 * DAY)
    edges = sorted({*whole, *(BOUGHT + cut for cut in cuts)})

    def worked(at: int) -> Fraction:
        end = at if retired is None else min(at, retired.valid_from)
        return Fraction(max(0, end - BOUGHT), 3 * HOUR)

    total = Fraction(0)
    for begins, ends in itertools.pairwise(edges):
        hours = (worked(begins), worked(ends) - worked(begins))
        total += depreciation(asset, retired, during(begins, ends), hours, PARIS)
    value = asset.value
    left = Fraction(value.residual) if retired is None else Fraction(got)
    assert total == Fraction(value.price) - left


def test_a_straight_line_is_even_within_each_month_of_the_calendar():
    asset = part(life_months=36)
    for month in range(36):
        begins, ends = (months_later(BOUGHT, month + step, PARIS) for step in (0, 1))
        begins = max(begins, BOUGHT)
        assert depreciation(asset, None, during(begins, ends), (Fraction(0),) * 2, PARIS) == 100
    middle = (BOUGHT + months_later(BOUGHT, 1, PARIS)) // 2
    assert book_value(asset, middle, 0, PARIS) == 3550


def test_a_declining_value_loses_the_same_share_of_what_is_left_each_year():
    asset = part("declining", declining_share="0.3", residual="100")
    years = [book_value(asset, months_later(BOUGHT, 12 * n, PARIS), 0, PARIS) for n in range(5)]
    assert years == [3600, 2520, 1764, Fraction("1234.8"), Fraction("864.36")]
    assert book_value(asset, months_later(BOUGHT, 600, PARIS), 0, PARIS) == 100
    ended = part("declining", declining_share="0.3", residual="100", life_months=18)
    assert book_value(ended, months_later(BOUGHT, 18, PARIS), 0, PARIS) == 100


def test_hours_use_a_part_up_and_no_more_than_up():
    asset = part("hours", life_hours=1000, residual="600")
    period = during(BOUGHT + 30 * DAY, BOUGHT + 90 * DAY)
    for before, within, lost in ((0, 100, 300), (900, 100, 300), (950, 100, 150), (1000, 5, 0)):
        worked = (Fraction(before), Fraction(within))
        assert depreciation(asset, None, period, worked, PARIS) == lost


def test_a_part_of_a_machine_works_while_any_gpu_in_it_does_and_a_gpu_keeps_its_own():
    owner = Owner().sets_up(2)
    for name, about in (("psu", "node:n1"), ("card", "device:n1-gpu1")):
        asset = part("hours", asset=name, about=about, price="1000", life_hours=1000)
        owner.says(asset.value, day("2026-01-01"))
    for device, begins, hours in (("n1-gpu0", 0, 10), ("n1-gpu1", 5, 10), ("n1-gpu1", 24 * 40, 7)):
        at = day("2026-01-10") + begins * HOUR
        owner.state("working", at, at + hours * HOUR, device=device)
    sheets = {row.object: row for row in owner.pnl("2026-01", by="gpu").rows}
    cost = {name: sheet.number("cost.depreciation") for name, sheet in sheets.items()}
    assert sum(c or 0 for c in cost.values()) == 15 + 10
    assert owner.sheet().number("cost.depreciation") == 7 + 7


def test_a_swapped_gpu_keeps_its_own_and_a_sale_posts_what_was_gained_or_lost():
    owner = Owner().sets_up(1)
    for name, price, at in (("old", "3600", "2026-01-01"), ("new", "7200", "2026-02-15")):
        base = part(asset=name, about="device:n1-gpu0", price=price, life_months=36).value
        owner.says(base, day(at))
    owner.says(AssetRetired(asset="old", proceeds="3000", currency="EUR", why="sold"), day("2026-02-15"))  # fmt: skip
    old = 100 + 50 + (3600 - 150 - 3000)
    half = Fraction(200 * 14, 28)  # its month begins on the 15th: 28 days to 15 March
    assert owner.pnl("2026-01-01..2026-03-01").total.number("cost.depreciation") == old + half


@st.composite
def loans(draw: st.DrawFn) -> Known[Loan]:
    return known(
        Loan(
            loan="l", about="node:n1", principal=draw(MONEY), currency="EUR",
            rate_per_year=draw(st.sampled_from(("0", "0.06", "0.0001", "0.19999", "3"))),
            months=draw(st.integers(1, 120)), shape=draw(st.sampled_from(("annuity", "linear", "bullet"))),
        )
    )  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(loans())
def test_what_is_paid_back_is_what_was_borrowed_to_the_nano_unit(loan):
    schedule = loan_schedule(loan, PARIS)
    borrowed = nano(Fraction(loan.value.principal))
    assert len(schedule) == loan.value.months
    assert sum(each.principal for each in schedule) == borrowed
    assert schedule[-1].balance == 0
    owed = borrowed
    for each in schedule:
        assert each.interest == round(owed * Fraction(loan.value.rate_per_year) / 12)
        owed -= each.principal
        assert each.balance == owed >= 0


@settings(max_examples=100, deadline=None)
@given(loans(), st.lists(st.integers(-40 * DAY, 4000 * DAY), max_size=6))
def test_interest_of_any_cut_adds_up_to_that_of_the_schedule(loan, cuts):
    edges = sorted({BOUGHT - DAY, BOUGHT + 4000 * DAY, *(BOUGHT + cut for cut in cuts)})
    total = sum(interest_in(loan, during(a, b)) for a, b in itertools.pairwise(edges))
    assert total * NANO == sum(each.interest for each in loan_schedule(loan, PARIS))


@pytest.mark.parametrize(
    ("shape", "first", "last"),
    [
        # 12,000 at 6 % over 24 months: P r / (1 - (1 + r)^-24) = 531.8473230...
        ("annuity", ("60.000000000", "471.847323033"), "529.201316450"),
        ("linear", ("60.000000000", "500.000000000"), "500.000000000"),
        ("bullet", ("60.000000000", "0.000000000"), "12000.000000000"),
    ],
)
def test_instalments_of_each_shape(shape, first, last):
    value = Loan(loan="l", about="node:n1", principal="12000", currency="EUR", rate_per_year="0.06",
                 months=24, shape=shape)  # fmt: skip
    schedule = loan_schedule(known(value), PARIS)
    assert (schedule[0].interest, schedule[0].principal) == tuple(
        int(Fraction(text) * NANO) for text in first
    )
    assert abs(schedule[-1].principal - int(Fraction(last) * NANO)) <= 24
