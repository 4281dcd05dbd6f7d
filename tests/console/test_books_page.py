"""The page and the sheet of an owner's books: what stands on them, and pictures that can be read in grey."""

from __future__ import annotations

import re
from fractions import Fraction
from xml.etree import ElementTree

import pytest

from ouvrage.base.time import DAY
from ouvrage.books.account import account, money
from ouvrage.books.electricity import ENERGY
from ouvrage.books.gaps import gaps
from ouvrage.books.pnl import statement_of
from ouvrage.books.shapes import by_hour, by_month
from ouvrage.console import svg
from ouvrage.console.books_page import MOST_PARTS, BooksView, books_page, books_view
from ouvrage.console.books_pictures import (
    PATTERN,
    DeviceStrip,
    HourBar,
    RatePoint,
    Spent,
    calendar_strips,
    energy_hours,
    rates,
)
from ouvrage.console.page import html
from ouvrage.model.occupancy import STATES
from ouvrage.model.tariffs import Tariff, TariffBand
from tests.books.owner import Owner, day

SVG = "{http://www.w3.org/2000/svg}"


def owner() -> Owner:
    made = Owner().sets_up(gpus=2)
    for name, watts in (("idle_power_w", "100"), ("load_power_w", "400")):
        made.term("node:n1", name, watts)
    made.term("site:s", "electricity", "0.20")
    made.state("working", day("2026-01-01"), day("2026-02-20"), count=1, channel="vast")
    made.state("free", day("2026-01-01"), day("2026-02-25"))
    for n in range(59):
        made.earned("12", day("2026-01-01") + n * DAY, day("2026-01-01") + (n + 1) * DAY)
    return made


def view(made: Owner, by: str = "node", name: str = "2026-02") -> BooksView:
    period = made.period(name)
    found = account(made.record, "s", period)
    return books_view(
        statement_of(found, by),
        period,
        found,
        gaps(made.record, "s", period),
        ("closed: seal 1",),
        "as printed",
    )


def words(drawn: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def test_energy_by_the_hour_is_all_energy_and_follows_the_tariff():
    made = owner()
    bands = tuple(
        TariffBand(name=name, months=tuple(range(1, 13)), weekdays=tuple(range(7)), hours=tuple(hours),
                   per_kwh=price, export_per_kwh=None)
        for name, price, hours in (("night", "0.10", range(6)), ("day", "0.30", range(6, 24)))
    )  # fmt: skip
    made.says(Tariff(name="t", site="s", currency="EUR", zone="UTC", bands=bands, tiers=(), standing_per_day=None,
                     standing_per_month=None,
                     demand_per_kw_month=None, tax_included=True))  # fmt: skip
    found = account(made.record, "s", made.period("2026-02"))
    hours = by_hour(found)
    assert len(hours) == 24
    assert [each.price for each in hours] == [Fraction(1, 10)] * 6 + [Fraction(3, 10)] * 18
    used = sum(held.nano for (line, _), held in found.sums.items() if line == ENERGY)
    assert sum(each.kwh for each in hours) == money(used)
    assert len({each.kwh for each in hours}) == 1


def test_what_an_hour_had_to_bring_is_the_costs_over_the_hours_sold():
    made = owner().bare()
    made.term("site:s", "rent", "140")
    months = by_month(made.record, "s", made.period("2026-02"))
    assert [each.month for each in months] == ["2026-01", "2026-02"]
    assert months[0].got == Fraction(12, 24)
    fee = Fraction(24, 100) * 12 * 31
    assert months[0].needed == (140 + fee) / (31 * 24)


def test_the_page_holds_the_answer_the_table_the_pictures_and_the_reasons():
    page = books_page(view(owner()))
    text = html(page)
    assert "<script" not in text
    assert not re.search(r"(?:src|href)=", text)
    assert [drawing.heading for drawing in page.drawings] == [
        "What each GPU was doing", "What an hour sold brought, and what it had to bring",
        "When power was used, and what it cost then",
    ]  # fmt: skip
    assert "what a machine really earned" in text
    assert "closed: seal 1" in text
    assert page.rows[-1].label == "margin"
    assert any("no price of purchase" in note for note in page.notes)
    for drawing in page.drawings:
        ElementTree.fromstring(drawing.svg)


def test_a_margin_that_is_known_has_its_bridge():
    made = owner().bare()
    drawings = {each.heading: each.svg for each in books_page(view(made)).drawings}
    assert {"revenue", "margin"} <= set(words(drawings["From revenue to margin"]))


def test_every_object_has_a_column_where_they_are_few():
    page = books_page(view(owner(), by="gpu"))
    assert page.columns == ("n1-gpu0", "n1-gpu1", "all")
    assert all(len(row.cells) == 3 for row in page.rows)


def test_each_state_has_a_pattern_of_its_own():
    assert list(PATTERN) and set(PATTERN) == set(STATES)
    assert len(set(PATTERN.values())) == len(STATES)
    drawn = svg.patterns()
    assert all(f'id="p-{key}"' in drawn for key in PATTERN.values() if key != "working")


def test_a_strip_shows_its_share_and_names_every_state_once():
    parts = tuple(
        Spent(begin=n / 7, end=(n + 1) / 7, state=s, words=s) for n, s in enumerate(STATES)
    )
    strips = [DeviceStrip(name=f"gpu{n}", note="40 % sold", parts=parts) for n in range(3)]
    drawn = calendar_strips("c", "t", strips, [(0.0, "1 Nov")], [(s, f"{s} 24 h") for s in STATES])
    shown = words(drawn)
    assert shown.count("40 % sold") == 3
    assert all(shown.count(f"{state} 24 h") == 1 for state in STATES)
    assert "gpu0: 40 % sold" in drawn


def test_prices_and_rates_are_said_in_figures():
    hours = [HourBar(hour=n, kwh=10.0 + n, price=0.3 if 8 <= n < 20 else 0.1) for n in range(24)]
    assert {"0.3", "0.1", "price, EUR a kWh"} <= set(words(energy_hours("e", "t", hours, "EUR")))
    gone = [HourBar(hour=n, kwh=1.0, price=None) for n in range(24)]
    assert "no price is stated" in words(energy_hours("e", "t", gone, "EUR"))
    points = [
        RatePoint(name="Jan", got=0.5, needed=0.4),
        RatePoint(name="Feb", got=None, needed=0.6),
    ]
    shown = words(rates("r", "t", points, "EUR per GPU-hour sold"))
    assert {"brought 0.5", "had to bring 0.6", "Jan", "Feb"} <= set(shown)
    assert words(rates("r", "t", points[:1], "EUR"))


def test_a_strip_is_never_finer_than_a_picture():
    made = owner()
    for n in range(1000):
        begins = day("2026-02-01") + n * 20 * 60_000_000
        made.state("down", begins, begins + 10 * 60_000_000, node=None, device="n1-gpu0")
    (drawing, *_) = books_page(view(made)).drawings
    assert drawing.svg.count("<rect") < 2 * MOST_PARTS


def test_the_sheet_of_paper_is_one_page_and_the_same_each_time():
    pytest.importorskip("fpdf")
    from ouvrage.console.books_pdf import books_pdf

    first = books_pdf(view(owner()))
    assert first == books_pdf(view(owner()))
    assert first.startswith(b"%PDF-")
    assert first.count(b"/Type /Page\n") == 1
