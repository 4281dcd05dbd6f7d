"""Bills from a table: what they need, and what is refused by line."""

from __future__ import annotations

from ouvrage.adapters.feeds.bills_csv import Defaults, read_bills
from ouvrage.adapters.feeds.mapping import load_mapping
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.time import DAY, utc_text

BERLIN = Defaults(about="site:garage", sort=None, currency="EUR", zone="Europe/Berlin")


def read(text: str, defaults: Defaults = BERLIN) -> Told:
    told = Told(form="bills", file="b.csv")
    read_bills(text, told, load_mapping("bills", "bills"), defaults)
    return told


def test_a_bill_with_its_energy_and_its_days_in_the_zone_of_the_site():
    told = read(
        "number;sort;amount;tax;from;to;kwh\nR-1;electricity;215,50;40,95;01.10.2026;31.10.2026;812,4\n"
    )
    assert not told.faults
    (bill,) = told.stated
    assert (bill.value.amount, bill.value.tax, bill.value.energy_j) == (
        "215.5",
        "40.95",
        2_924_640_000,
    )
    assert (utc_text(bill.valid_from)[:16], utc_text(bill.valid_to or 0)[:16]) == (
        "2026-09-30T22:00",
        "2026-10-31T23:00",
    )
    assert (bill.valid_to or 0) - bill.valid_from == 31 * DAY + DAY // 24


def test_what_is_missing_or_odd_is_named():
    told = read(
        "number,sort,about,amount,currency,from,to,kwh\n"
        ",rent,site:garage,10.00,EUR,2026-11-01,2026-11-30,\n"
        "2,ransom,site:garage,10.00,EUR,2026-11-01,2026-11-30,\n"
        "3,rent,garage,10.00,EUR,2026-11-01,2026-11-30,\n"
        "4,rent,site:garage,ten,EUR,2026-11-01,2026-11-30,\n"
        "5,rent,site:garage,10.00,eur,2026-11-01,2026-11-30,\n"
        "6,rent,site:garage,10.00,EUR,2026-11-30,2026-11-01,\n"
        "7,rent,site:garage,10.00,EUR,,,\n"
        "8,electricity,site:garage,10.00,EUR,2026-11-01,2026-11-30,-5.0\n"
        "9,rent,site:garage,10.00,EUR,2026-11-01,2026-11-30,\n"
        "9,rent,site:garage,11.00,EUR,2026-11-01,2026-11-30,\n"
    )
    assert [f.field for f in told.faults] == [
        *("number", "sort", "about", "amount", "currency", "to", "from", "kwh", "number"),
    ]
    assert len(told.stated) == 1


def test_one_day_is_a_period_of_that_day():
    told = read("number,sort,amount,day\nP1,parts,99.00,2026-11-07\n")
    assert [(s.valid_to or 0) - s.valid_from for s in told.stated] == [DAY]
