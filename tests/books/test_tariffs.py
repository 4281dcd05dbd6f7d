"""What a kilowatt-hour costs by the clock: the vectors of the issue, every cut adds up, holes are named."""

from __future__ import annotations

import itertools
import json
import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.tariff_files import Asked, read_tariff
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import DAY, HOUR, MINUTE
from ouvrage.books.charges import added, energy_cost, peak_kw
from ouvrage.books.period import Period, period_named
from ouvrage.books.tariffs import PriceBook, clock_hours, price_at
from ouvrage.model.sites import Site
from ouvrage.model.tariffs import SpotPrices, TariffTier
from tests.books.owner import Owner, day

ZONE = "America/New_York"
PERIODS = "100001222222222222222211"
SMALL = {
    "items": [
        {
            "name": "Vehicle charging, small copy",
            "startdate": 1390636800,
            "enddate": 1451545200,
            "energyratestructure": [
                [{"rate": rate, "adj": 0.03255, "unit": "kWh"}]
                for rate in (0.01679, 0.04944, 0.14284)
            ],
            "energyweekdayschedule": [[int(c) for c in PERIODS]] * 12,
            "energyweekendschedule": [[int(c) for c in PERIODS]] * 12,
            "fixedchargefirstmeter": 2.9,
            "fixedchargeunits": "$/month",
        }
    ]
}
VIRGINIA = Path(os.environ.get("OUVRAGE_DATA", "/nowhere")) / "zeus" / "tariff_virginia.json"


def asked(zone: str = ZONE, currency: str = "USD") -> Asked:
    return Asked(site="s", currency=currency, zone=zone, name=None, since_us=day("2014-01-01"))


def owner_with(file: str, text: str, zone: str = ZONE, currency: str = "USD") -> Owner:
    owner = Owner(zone=zone)
    owner.says(Site(site="s", currency=currency, zone=zone))
    found = read_tariff(file, text, asked(zone, currency))
    owner.says(found.tariff, found.from_us, found.to_us)
    return owner


def entsoe_like(on: str, price: str = "45.10") -> str:
    """A day of market prices as a table."""
    rows = [f"{on} {hour:02}:00,{price}" for hour in range(24)]
    return "\n".join(["start,price EUR/MWh", *rows]) + "\n"


def texts():
    yield pytest.param(json.dumps(SMALL), id="own copy")
    real = VIRGINIA.exists()
    yield pytest.param(
        VIRGINIA.read_text() if real else "",
        id="real file",
        marks=() if real else pytest.mark.skip(reason="OUVRAGE_DATA is not set"),
    )


@pytest.mark.parametrize("text", list(texts()))
@pytest.mark.parametrize(
    ("name", "cost"),
    [
        ("2015-03-07", "3.33156"),
        ("2015-06-10", "3.33156"),
        ("2015-03-08", "3.28222"),  # clocks set forward: 23 hours
        ("2015-11-01", "3.38090"),  # clocks set back: 25 hours
    ],
)
def test_a_kilowatt_for_a_day_costs_what_the_issue_says(text, name, cost):
    owner = owner_with("tariff.json", text)
    period = period_named(name, ZONE)
    pieces = [(period.from_us, period.to_us, Fraction(period.us, 1000))]  # 1 kW
    priced = energy_cost(owner.record, "s", pieces, period)
    assert sum(line.amount for line in priced.lines) == Fraction(cost)
    assert priced.total - Fraction(cost) == priced.charges.standing
    assert not priced.unpriced_kwh


def test_the_days_on_which_it_begins_and_ends_are_in_it_and_others_are_not():
    record = owner_with("tariff.json", json.dumps(SMALL)).record
    found = record.tariffs[0]
    assert found.valid_from == day("2014-01-25") + 5 * HOUR
    assert found.valid_to == day("2016-01-01") + 5 * HOUR
    held = price_at(record, "s", found.valid_to - 1)
    assert held is not None and held.value == Fraction("0.08199")
    after = price_at(record, "s", found.valid_to)
    assert after is not None and after.grade.word == "assumed"  # the statistics' price, not its


def test_a_charge_of_a_month_is_spread_over_it_and_months_add_up_to_the_year():
    record = owner_with("tariff.json", json.dumps(SMALL)).record
    year = period_named("2015", ZONE)
    assert energy_cost(record, "s", [], year).charges.standing == 12 * Fraction("2.9")
    parts = [energy_cost(record, "s", [], period_named(f"2015-{m:02}", ZONE)) for m in range(1, 13)]
    assert {part.charges.standing for part in parts} == {Fraction("2.9")}


OWN = """
name = "day-and-night"
currency = "EUR"
zone = "Europe/Paris"
from = 2026-01-01
standing_per_day = "0.41"
demand_per_kw_month = "4.50"

[[tier]]
up_to_kwh = 10
add_per_kwh = 0
[[tier]]
up_to_kwh = 500
add_per_kwh = "0.02"
[[tier]]
add_per_kwh = "0.05"

[[band]]
name = "night"
hours = "22-6"
per_kwh = "0.16"
[[band]]
name = "winter day"
months = "nov-mar"
hours = "6-22"
weekdays = "mon-fri"
per_kwh = "0.31"
export_per_kwh = "0.08"
[[band]]
name = "summer day"
months = "apr-oct"
hours = "6-22"
weekdays = "mon-fri"
per_kwh = "0.27"
[[band]]
name = "weekend"
hours = "6-22"
weekdays = "sat, sun"
per_kwh = "0.2"
"""


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_cut_of_a_period_adds_up_to_it(data):
    """Price, tiers, standing and demand: what is charged is the same however time is cut."""
    owner = owner_with("t.toml", OWN, "Europe/Paris", "EUR")
    owner.says(
        SpotPrices(site="s", currency="EUR", step_us=HOUR, per_kwh=("0.1", "-0.05", "0.3")),
        day("2026-03-05") + 4 * HOUR,
        day("2026-03-05") + 7 * HOUR,
    )
    record, whole = owner.record, period_named("2026-02-20..2026-04-10", "Europe/Paris")
    pieces = []
    for _ in range(data.draw(st.integers(1, 4))):
        begins = whole.from_us + data.draw(st.integers(-30 * DAY, 49 * DAY))
        pieces.append(
            (
                begins,
                begins + data.draw(st.integers(1, 60 * DAY)),
                Fraction(data.draw(st.integers(0, 10**10))),
            )
        )
    cuts = sorted(data.draw(st.sets(st.integers(whole.from_us + 1, whole.to_us - 1), max_size=4)))
    edges = [whole.from_us, *cuts, whole.to_us]
    parts = [
        energy_cost(record, "s", pieces, Period(from_us=a, to_us=b, name="", zone="Europe/Paris"))
        for a, b in itertools.pairwise(edges)
    ]
    total = energy_cost(record, "s", pieces, whole)
    assert sum(part.total for part in parts) == total.total
    for name in ("tiers", "standing", "demand"):
        assert sum(getattr(p.charges, name) for p in parts) == getattr(total.charges, name)
    book = PriceBook(record, "s", whole.from_us, whole.to_us)
    by_steps = sum((step.price or 0) * (b - a) for a, b, step in book.within(edges[0], edges[-1]))
    assert Fraction(book.integral(edges[0], edges[-1]), book.denominator) == by_steps


def test_a_recorded_market_price_counts_before_the_tariff_with_what_the_supplier_adds():
    owner = owner_with("t.toml", OWN, "Europe/Paris", "EUR")
    at = day("2026-03-05") + 4 * HOUR
    owner.says(SpotPrices(site="s", currency="EUR", step_us=HOUR, per_kwh=("0.1",)), at, at + HOUR)
    assert (price_at(owner.record, "s", at) or pytest.fail("none")).value == Fraction("0.1")
    owner.term("site:s", "spot_factor", "1.2")
    owner.term("site:s", "spot_addition", "0.15")
    assert (price_at(owner.record, "s", at) or pytest.fail("none")).value == Fraction("0.27")
    assert (price_at(owner.record, "s", at + HOUR) or pytest.fail("none")).value == Fraction("0.31")


def test_tiers_standing_and_the_highest_quarter_hour_are_charged():
    owner = owner_with("t.toml", OWN, "Europe/Paris", "EUR")
    period = period_named("2026-02", "Europe/Paris")
    steady = (period.from_us, period.to_us, Fraction(period.us, 1000))  # 672 kWh
    peak = (day("2026-02-10") + 7 * MINUTE, day("2026-02-10") + 22 * MINUTE, Fraction(1_800_000))
    charges = energy_cost(owner.record, "s", [steady, peak], period).charges
    used = Fraction(672) + Fraction(1, 2)
    assert charges.tiers == 490 * Fraction("0.02") + (used - 500) * Fraction("0.05")
    assert charges.standing == 28 * Fraction("0.41")
    # 2 kW for 8 of 15 minutes on top of 1 kW, the quarter from 00:00; 7 of 15 in the next
    assert charges.peak_kw == 1 + 2 * Fraction(8, 15)
    assert charges.demand == charges.peak_kw * Fraction("4.5")


def test_tiers_add_what_each_kilowatt_hour_of_the_month_costs_more():
    tiers = (
        TariffTier(up_to_kwh="100", add_per_kwh="0"),
        TariffTier(up_to_kwh=None, add_per_kwh="0.1"),
    )
    assert [added(tiers, Fraction(n)) for n in (0, 100, 101, 300)] == [0, 0, Fraction("0.1"), 20]


@given(st.lists(st.tuples(st.integers(0, 3 * HOUR), st.integers(1, 2 * HOUR), st.integers(0, 10**9)), max_size=5))  # fmt: skip
def test_the_highest_quarter_hour_is_that_of_adding_up_each(spans):
    pieces = [(begins, begins + us, Fraction(joules)) for begins, us, joules in spans]
    slow = [
        sum(
            (
                j * Fraction(max(0, min(b, q + 15 * MINUTE) - max(a, q)), b - a)
                for a, b, j in pieces
            ),
            Fraction(0),
        )
        / 900
        / 1000
        for q in range(0, 6 * HOUR, 15 * MINUTE)
    ]
    assert peak_kw(pieces, 0, 6 * HOUR) == max(slow, default=0)


@pytest.mark.parametrize("zone", ["Australia/Lord_Howe", "Asia/Kathmandu", "Europe/Paris", "UTC"])
def test_hours_of_a_clock_tile_time_in_any_zone(zone):
    begins, ends = day("2026-03-25"), day("2026-04-08")
    at = begins
    for from_us, to_us, _ in clock_hours(begins, ends, zone):
        assert from_us == at < to_us <= from_us + HOUR
        at = to_us
    assert at == ends


def refusal(text: str) -> OuvrageError:
    with pytest.raises(OuvrageError) as caught:
        read_tariff("t.toml", text, asked("Europe/Paris", "EUR"))
    return caught.value


def test_a_hole_is_refused_with_the_hours_that_have_no_price():
    error = refusal(OWN.replace('weekdays = "sat, sun"', 'weekdays = "sun"\nmonths = "1-3"'))
    assert error.code == "tariff/hole"
    assert error.where == (
        "no price: Saturday 6-22 h, in January to March",
        "no price: Saturday, Sunday 6-22 h, in April to December",
    )


def test_two_prices_for_an_hour_are_refused():
    error = refusal(OWN.replace('hours = "22-6"', 'hours = "21-6"'))
    assert error.code == "tariff/overlap"
    assert error.where[0].startswith("two prices: ")


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('per_kwh = "0.16"', 'per_kwh = "dear"', "band 1 per_kwh"),
        ('per_kwh = "0.16"', "per_khw = 0.16", "band 1"),
        ('hours = "22-6"', 'hours = "22-25"', "band 1 hours"),
        ('weekdays = "sat, sun"', 'weekdays = "s, sun"', "band 4 weekdays"),
        ("up_to_kwh = 500", "up_to_kwh = 5", "tier 2 up_to_kwh"),
        ("standing_per_day", "standing", "standing"),
        ("from = 2026-01-01", 'from = "soon"', "from"),
    ],
)
def test_what_cannot_be_read_is_refused_by_field(old, new, field):
    error = refusal(OWN.replace(old, new))
    assert error.code == "tariff/field"
    assert field in error.message


def test_a_part_of_a_rate_that_is_not_priced_here_is_refused_and_not_left_out():
    item = SMALL["items"][0]
    tiered = [
        [{"rate": 1, "max": 5}, {"rate": 2}],
        [{"rate": 1, "max": 6}, {"rate": 2}],
        [{"rate": 3}],
    ]
    for field, value in (
        ("demandratestructure", [[{"rate": 2}]]),
        ("energyratestructure", tiered),
        ("fixedchargeunits", "$/week"),
    ):
        error = refusal(json.dumps({"items": [{**item, field: value}]}))
        assert field in error.message
    short = {**item, "energyweekdayschedule": item["energyweekdayschedule"][:11]}
    error = refusal(json.dumps(short))
    assert error.code == "tariff/hole"
    assert "0-24 h, in December" in error.where[0]
