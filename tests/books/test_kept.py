"""The account of a large owner's month as it was kept: told again it is the one made from all facts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY, HOUR, utc_us
from ouvrage.books import pnl as statements
from ouvrage.books.account import account
from ouvrage.books.kept import OTHERS, account_of, kept_of, stands
from ouvrage.books.period import period_named
from ouvrage.books.pnl import BY, statement_of
from ouvrage.books.pnl_text import statement_json
from ouvrage.books.record import owner_record
from ouvrage.cli import book_ledger, booking, books, books_kept
from ouvrage.cli.books_asked import Wanted
from ouvrage.cli.ledger import Ledger
from ouvrage.ledger.facts import line_of
from ouvrage.ledger.stated import Stated
from ouvrage.model.earnings import Earning
from ouvrage.model.meters import EnergyRead
from ouvrage.model.sites import Term
from ouvrage.store.intake import IntakeReport
from ouvrage.store.store import open_store
from tests.books.owner import Owner

FEBRUARY, MARCH = utc_us("2026-02-01T00:00:00Z"), utc_us("2026-03-01T00:00:00Z")
MONTH = period_named("2026-02", "UTC")
LATER = utc_us("2026-06-01T00:00:00Z")


@st.composite
def owners(draw: st.DrawFn) -> Owner:
    """Two machines with states, earnings and readings in February and around it, corrected here and there."""
    owner = Owner().sets_up(3).sets_up(2, node="n2")
    if draw(st.booleans()):
        owner.term("site:s", "rent", "100")
    if draw(st.booleans()):
        owner.term("site:s", "tax", "0.25")
    said: list[str] = []
    for _ in range(draw(st.integers(0, 14))):
        daily(owner, draw, said)
    return owner


def daily(owner: Owner, draw: st.DrawFn, said: list[str]) -> None:
    """One more daily fact, of February or near it, perhaps in place of one that was stated."""
    begins = FEBRUARY + draw(st.integers(-3 * 24, 31 * 24)) * HOUR
    ends = begins + draw(st.integers(1, 60)) * HOUR
    node = draw(st.sampled_from(("n1", "n2")))
    corrects = draw(st.sampled_from([None, None, None, *said]))
    what = draw(st.sampled_from(("state", "earning", "own-use", "reading")))
    if what == "state":
        key = owner.state(
            draw(st.sampled_from(("working", "held", "free", "down"))), begins, ends,
            device=f"{node}-gpu{draw(st.integers(0, 1))}", channel=draw(st.sampled_from(("vast", "own-use"))),
        )  # fmt: skip
    elif what == "reading":
        read = EnergyRead(
            meter=f"plug-{node}", about=f"node:{node}", scope="wall", energy_j=draw(st.integers(0, 10**7)),
            method="counter", covered_us=ends - begins,
        )  # fmt: skip
        key = owner.says(read, begins, ends, Grade.METERED, corrects=corrects)
    else:
        earning = Earning(
            channel="vast", about=f"node:{node}", component="gpu" if what == "earning" else "own-use",
            amount=f"{draw(st.integers(0, 999))}.{draw(st.integers(0, 999)):03}", currency="EUR", fee=None,
            sold_us=None, list_price=None, tenant=None, document=None,
        )  # fmt: skip
        key = owner.says(earning, begins, ends, Grade.METERED, corrects=corrects)
    said.append(key)


def told(made, by: str) -> object:
    return statement_json(statement_of(made, by, payback=False))


@settings(max_examples=60, deadline=None)
@given(owners(), st.sampled_from(BY), st.data())
def test_what_was_kept_is_told_as_what_is_made_and_stands_until_a_fact_touches_it(
    owner, by, data: st.DataObject
):
    made = account(owner.record, "s", MONTH)
    kept = json.loads(json.dumps(kept_of(made)))
    for _ in range(data.draw(st.integers(0, 3))):
        before = len(owner.said)
        daily(owner, data.draw, [])
        if not stands(line_of(owner.said[before]), MONTH):
            owner.said.pop()
    others = owner_record(each for each in owner.said if each.fact.kind in OTHERS)
    light = replace(others, as_of=owner.record.as_of)
    assert told(account_of(kept, light, "s", MONTH), by) == told(
        account(owner.record, "s", MONTH), by
    )


@pytest.fixture
def ledger(tmp_path: Path):
    """The books of an owner in a store, for whom two devices are many."""
    owner = Owner().sets_up(3).sets_up(2, node="n2")
    owner.term("site:s", "electricity", "0.3")
    for day in range(28):
        owner.earned("10", FEBRUARY + day * DAY, FEBRUARY + (day + 1) * DAY)
    with open_store(tmp_path / "ouvrage.db") as store:
        store.append([each.fact for each in owner.said], now_us=LATER, own_source="owner")
        (tmp_path / "source").write_text("")
        with (
            patch.object(statements, "MOST_DEVICES", 2), patch.object(books_kept, "MOST_DEVICES", 2),
            patch.object(booking, "MOST_DEVICES", 2), patch.object(books, "MOST_DEVICES", 2),
            patch.object(booking, "source_id", lambda _: "owner"), patch.object(booking, "now_us", lambda: LATER + DAY),
            patch.object(book_ledger, "now_us", lambda: LATER + DAY),
        ):  # fmt: skip
            yield Ledger(home=tmp_path, store=store, intake=IntakeReport())


def asked(ledger: Ledger) -> object:
    question, made = books_kept.accounted(ledger, Wanted(site=None, period="2026-02"))
    return question.passed, made.record.as_of, told(made, "node")


def again(ledger: Ledger) -> object:
    """The same with nothing kept."""
    with (
        patch.object(books_kept, "_kept", lambda *_: None),
        patch.object(books_kept, "_keep", lambda *_: None),
    ):
        return asked(ledger)


def records(ledger: Ledger, value: object, from_us: int, to_us: int) -> None:
    said = Stated(natural=f"t/{from_us}", value=value, subject="x", valid_from=from_us, valid_to=to_us,
                  grade=Grade.METERED)  # fmt: skip
    assert booking.book(ledger, [said]).new == 1


def earning(amount: str) -> Earning:
    return Earning(
        channel="vast", about="node:n2", component="gpu", amount=amount, currency="EUR", fee=None, sold_us=None,
        list_price=None, tenant=None, document=None,
    )  # fmt: skip


def makes(ledger: Ledger) -> int:
    """How many accounts are made when the month is asked for."""
    with patch.object(books_kept, "account", wraps=account) as made:
        assert asked(ledger) == again(ledger)
    return made.call_count - 1


def test_a_month_is_made_once_and_made_anew_when_a_fact_of_it_is_recorded(ledger: Ledger):
    first = asked(ledger)
    assert makes(ledger) == 0
    records(ledger, earning("7.77"), FEBRUARY + DAY, FEBRUARY + 2 * DAY)
    assert makes(ledger) == 0, "recording made it"
    assert asked(ledger) != first
    file = ledger.home / "kept" / "books" / "s-2026-02.json"
    held = json.loads(file.read_text())
    records(ledger, earning("5"), MARCH, MARCH + DAY)
    assert json.loads(file.read_text()) == held, "a fact of March leaves February as it is"
    assert makes(ledger) == 0
    records(
        ledger, Term(about="site:s", name="rent", value="9", unit="", said_by="me"), FEBRUARY, MARCH
    )
    assert makes(ledger) == 1, "a term may change everything"
    assert makes(ledger) == 0


@pytest.mark.parametrize("content", ["", "[]", '{"form": 1}', "{", '{"form": 99, "version": "0"}'])
def test_a_file_that_is_none_is_made_anew(ledger: Ledger, content: str):
    asked(ledger)
    (ledger.home / "kept" / "books" / "s-2026-02.json").write_text(content)
    assert makes(ledger) == 1
    assert makes(ledger) == 0


def test_what_another_ledger_s_home_kept_is_not_told(ledger: Ledger):
    asked(ledger)
    file = ledger.home / "kept" / "books" / "s-2026-02.json"
    held = json.loads(file.read_text())
    file.write_text(json.dumps({**held, "sha256": "0" * 64}))
    assert makes(ledger) == 1
