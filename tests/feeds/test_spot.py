"""Market prices: whole days in a zone with its clock changes, units, holes told and left out."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from ouvrage.adapters.feeds.spot import Asked, read_spot
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import HOUR, MINUTE, utc_us

PARIS = Asked(site="s", currency="EUR", zone="Europe/Paris")
MIDNIGHT = utc_us("2026-01-04T23:00:00Z")


def told(text: str, asked: Asked = PARIS) -> Told:
    found = Told(form="spot", file="spot.csv")
    read_spot(text, found, asked)
    return found


def entsoe(day: str, hours: int = 24, price: str = "45.10") -> str:
    rows = [f'"{day} {h:02}:00 - {day} {(h + 1) % 24:02}:00","{price}"' for h in range(hours)]
    return "\n".join(['"MTU (CET/CEST)","Day-ahead Price [EUR/MWh]"', *rows])


def test_a_table_of_a_day_per_mwh_by_the_clock_of_the_market():
    found = told(entsoe("05.01.2026"))
    assert not found.faults
    [stated] = found.stated
    assert (stated.valid_from, stated.valid_to) == (MIDNIGHT, MIDNIGHT + 24 * HOUR)
    assert stated.value.step_us == HOUR
    assert set(stated.value.per_kwh) == {"0.0451"}


def test_a_day_of_a_clock_change_has_25_hours_and_the_second_of_two_equal_ones_is_later():
    hours = [0, 1, 2, 2, *range(3, 24)]
    rows = [f"2026-10-25 {h:02}:00,{n}" for n, h in enumerate(hours)]
    found = told("\n".join(["start,price EUR/kWh", *rows]))
    assert not found.faults
    [stated] = found.stated
    assert stated.valid_to - stated.valid_from == 25 * HOUR
    assert [Fraction(p) for p in stated.value.per_kwh] == list(range(25))


def test_awattars_json_in_milliseconds_and_quarters_of_an_hour():
    rows = [
        {
            "start_timestamp": (MIDNIGHT + n * 15 * MINUTE) // 1000,
            "marketprice": -10.5,
            "unit": "Eur/MWh",
        }
        for n in range(96)
    ]
    found = told(json.dumps({"object": "list", "data": rows}))
    assert not found.faults
    assert found.stated[0].value.step_us == 15 * MINUTE
    assert set(found.stated[0].value.per_kwh) == {"-0.0105"}


def test_a_day_with_a_hole_is_told_and_left_out():
    text = entsoe("05.01.2026") + "\n" + entsoe("06.01.2026", 23).partition("\n")[2]
    found = told(text)
    assert len(found.stated) == 1
    assert "day 2026-01-06" in found.faults[0].line
    middle = "\n".join(line for n, line in enumerate(entsoe("05.01.2026").splitlines()) if n != 7)
    assert told(middle).stated == []


def test_two_prices_of_one_hour_are_a_fault_and_neither_counts():
    text = entsoe("05.01.2026") + '\n"05.01.2026 03:00 - 05.01.2026 04:00","46"'
    found = told(text)
    assert not found.stated
    assert "that of row 5" in found.faults[0].line


def test_what_cannot_be_read_costs_its_row_and_is_told_and_a_table_without_prices_is_refused():
    found = told(entsoe("05.01.2026").replace('"45.10"', '"dear"', 1))
    assert found.faults[0].found == "'dear'"
    assert not found.stated
    with pytest.raises(OuvrageError, match="holds no prices"):
        told("a,b\n1,2")
