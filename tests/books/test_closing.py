"""Closing a month: what must be settled first, what may be accepted, what is sealed and what moved since."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY
from ouvrage.books.closing import ACCEPTED, OK, OPEN, Check, checklist, chosen, closings
from ouvrage.books.record import owner_record
from ouvrage.books.sealing import moved_since, seal_breaches, sealed_rows, sums_sha256
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.cash import CostBill
from ouvrage.model.closings import BooksClosed, BooksReopened, ItemAccepted
from tests.books.owner import NOW, Owner, day


def owner() -> Owner:
    made = Owner().sets_up().bare()
    made.state("working", day("2026-02-01"), day("2026-03-01"), channel="vast")
    for n in range(28):
        made.earned("10", day("2026-02-01") + n * DAY, day("2026-02-01") + (n + 1) * DAY)
    return made


def checks(made: Owner, accepted: Mapping[str, ItemAccepted] | None = None) -> dict[str, Check]:
    found = checklist(made.record, "s", made.period("2026-02"), accepted or {})
    return {check.item: check for check in found}


def let(item: str, found: str) -> dict[str, ItemAccepted]:
    return {item: ItemAccepted(site="s", period="2026-02", item=item, found=found, why="small")}


def test_what_is_known_is_in_order_and_what_lacks_is_open():
    found = checks(owner())
    assert found["hours/n1"].state == OK
    assert found["days/n1"].state == OK
    assert found["missing/electricity"].state == OPEN
    assert found["assumed/fee/vast"].state == OPEN
    assert found["assumed/fee/vast"].moves
    assert found["bank"].state == OK


def test_hours_and_days_that_nobody_tells_of_are_open():
    made = owner()
    part = Owner().sets_up().bare()
    part.state("working", day("2026-02-01"), day("2026-02-26"), channel="vast")
    for n in (0, 1, *range(3, 27)):
        part.earned("10", day("2026-02-01") + n * DAY, day("2026-02-01") + (n + 1) * DAY)
    found = checks(part)
    assert found["hours/n1"].found == "72.0 of 672.0 hours are unknown"
    assert found["days/n1"].found == "nothing was recorded as earned on 2026-02-03, 2026-02-28"
    assert checks(made)["days/n1"].state == OK


def test_a_day_that_stood_free_needs_no_earning():
    made = Owner().sets_up().bare()
    made.state("free", day("2026-02-01"), day("2026-03-01"))
    assert checks(made)["days/n1"].state == OK


def test_what_was_accepted_counts_only_while_the_same_is_found():
    made = owner()
    item = "missing/electricity"
    accepted = let(item, checks(made)[item].found)
    assert checks(made, accepted)[item].state == ACCEPTED
    assert checks(made, let(item, "something else"))[item].state == OPEN
    bill = CostBill(number="E", about="site:s", sort="electricity", what="", amount="0", tax=None,
                    currency="EUR", energy_j=None, due=None)  # fmt: skip
    made.says(bill, day("2026-02-01"), day("2026-02-20"))
    assert checks(made, accepted)[item].found == "no bill of electricity covers 9 days"
    assert checks(made, accepted)[item].state == OPEN


def test_a_bill_that_the_month_before_had_is_missed():
    made = owner()
    rent = CostBill(number="R", about="site:s", sort="rent", what="", amount="40", tax=None, currency="EUR",
                    energy_j=None, due=None)  # fmt: skip
    made.says(rent, day("2026-01-01"), day("2026-02-01"))
    assert (
        checks(made)["missing/rent/s"].found
        == "no bill of rent for site:s, as there was in January 2026"
    )
    assert checks(made)["bill/rent/R"].state == OPEN  # and nothing in the bank pays it


def test_a_month_under_way_or_without_a_rate_cannot_be_accepted():
    made = owner()
    record = replace(made.record, as_of=day("2026-02-20"))
    (check,) = checklist(record, "s", made.period("2026-02"), {})
    with pytest.raises(OuvrageError, match="cannot be accepted"):
        chosen([check], ["time"])
    made.earned("5", day("2026-02-03"), day("2026-02-04"), currency="USD", component="storage")
    (check,) = checks(made).values()
    assert check.item == "fx/books/fx-missing"
    assert "ouvrage fx set USD/EUR" in check.do
    with pytest.raises(OuvrageError, match="no open item is called"):
        chosen([check], ["hours"])


def test_a_name_means_itself_or_all_that_begin_so():
    found = list(checks(owner()).values())
    every = [check.item for check in chosen(found, ["assumed"])]
    assert len(every) >= 2
    assert all(item.startswith("assumed/") for item in every)
    assert [check.item for check in chosen(found, ["assumed/fee/vast", "assumed/fee"])] == [
        "assumed/fee/vast"
    ]


def stated(made: Owner, value: object) -> Recorded:
    key = made.says(value, day("2026-02-01"), day("2026-03-01"))
    return next(entry for entry in made.said if entry.fact.key == key)


def sealed(made: Owner, number: int = 1) -> BooksClosed:
    period = made.period("2026-02")
    record = replace(made.record, as_of=NOW)
    rows = sealed_rows(record, "s", period, ())
    return BooksClosed(site="s", period="2026-02", number=number, as_of_us=NOW, file="f.parquet", rows=len(rows),
                       file_sha256="0" * 64, sums_sha256=sums_sha256(rows), accepted=())  # fmt: skip


def test_a_seal_is_what_the_facts_gave_then_whatever_comes_later():
    made = owner()
    stated(made, sealed(made))
    late = fact_of(
        CostBill(number="late", about="site:s", sort="rent", what="", amount="40", tax=None, currency="EUR",
                 energy_j=None, due=None),
        source="owner", id="late", subject="x", valid_from=day("2026-02-01"), valid_to=day("2026-03-01"),
        grade=Grade.REPORTED,
    )  # fmt: skip
    records = [*made.said, Recorded(seq=999, recorded_at=NOW + DAY, fact=late)]
    assert list(seal_breaches(records)) == []
    before, after = (owner_record(made.said), owner_record(records))
    from ouvrage.books.pnl import pnl

    moved = moved_since(
        *(pnl(r, "s", made.period("2026-02"), "site").total for r in (before, after))
    )
    assert {each.path: each.after - each.before for each in moved} == {
        "margin.net": -40, "cost.rent": 40, "cost.total": 40,
    }  # fmt: skip
    forged = [replace(e, recorded_at=NOW) for e in records]
    assert list(seal_breaches(forged)) == [
        ("s 2026-02, seal 1", "the facts known then give other sums than were sealed")
    ]


def test_the_same_facts_in_any_order_give_the_same_rows():
    made = owner()
    period = made.period("2026-02")
    record = replace(made.record, as_of=NOW)
    rows = sealed_rows(record, "s", period, ())
    shuffled = list(made.said)
    random.Random(7).shuffle(shuffled)
    again = replace(owner_record(shuffled), as_of=NOW)
    assert sealed_rows(again, "s", period, ()) == rows
    assert sums_sha256(rows[::-1]) == sums_sha256(rows)


def test_the_last_closing_counts_unless_it_was_opened_again():
    made = owner()
    first = sealed(made)
    said = [
        stated(made, first),
        stated(made, BooksReopened(site="s", period="2026-02", number=1, why="late")),
        stated(made, replace(first, number=2)),
    ]
    assert closings(said[:1], "s").sealed["2026-02"].number == 1
    assert "2026-02" not in closings(said[:2], "s").sealed
    for order in (said, said[::-1]):
        found = closings(order, "s")
        assert (found.sealed["2026-02"].number, found.last["2026-02"]) == (2, 2)
    assert not closings(said, "other").sealed
