"""The table of offers in force follows from the facts to the same bytes, on both databases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sqlalchemy import text

from ouvrage.ledger.facts import Fact
from ouvrage.model.offers import MarketOffer, MarketReading
from ouvrage.pricing.market.lots import unpacked
from ouvrage.pricing.market.readings import bands_of, offer_facts, offer_id, reading_fact
from ouvrage.store.audit import audit
from ouvrage.store.market_table import current_market, market_of_records, rebuild_market
from ouvrage.store.store import Store
from tests.market import catalogues as c
from tests.support.facts import OTHER, withdrawal
from tests.support.facts import SOURCE as WITHDRAWER

SOURCE = "here"


def offers(rows: str, name: str) -> list[MarketOffer]:
    return c.parsed(f"name,gpu,region,price\n{rows}", name).offers


def reading(seen: list[MarketOffer], day: str) -> Fact:
    stated = MarketReading(
        catalogue=seen[0].catalogue,
        form="own",
        file="x.csv",
        sha256="0" * 64,
        read_on=day,
        rows=len(seen),
        merged=0,
        refused=0,
        notes=(),
        seen=tuple(map(offer_id, seen)),
        bands=bands_of(seen),
    )
    return reading_fact(stated, SOURCE)


def put(store: Store, *facts: Fact, at: int = 1) -> None:
    store.append(facts, now_us=at, own_source=OTHER)


def read_in(store: Store, seen: list[MarketOffer], day: str, at: int = 1) -> list[Fact]:
    facts = offer_facts({offer_id(each): each for each in seen}, (), SOURCE)
    put(store, *facts, reading(seen, day), at=at)
    return facts


def prices(store: Store) -> list[tuple[str, str]]:
    table = current_market(store)
    lots = [lot for packed in table.catalogues.values() for lot in unpacked(packed)]
    known = market_of_records(store.records())
    assert dict(table.catalogues) == known
    assert dict(rebuild_market(store).catalogues) == known
    return sorted((each.offer.name, each.offer.price) for lot in lots for each in lot.each())


def test_none(store: Store) -> None:
    assert current_market(store).catalogues == {}
    assert current_market(store).seq == 0


def test_what_the_last_reading_of_each_catalogue_saw(store: Store) -> None:
    read_in(store, offers("a,H100,eu,2\na,H100,us,3\nb,,eu,1\n", "own/x"), "2026-11-01", 10)
    assert prices(store) == [("a", "2"), ("a", "3"), ("b", "1")]
    read_in(store, offers("a,H100,eu,4\na,H100,us,3\n", "own/x"), "2026-11-02", 20)
    read_in(store, offers("z,L4,eu,9\n", "own/y"), "2026-11-02", 30)
    assert prices(store) == [("a", "3"), ("a", "4"), ("z", "9")]
    assert audit_is_clean(store)


def audit_is_clean(store: Store) -> bool:

    return audit(store, Path("/nonexistent")).first is None


def test_a_reading_of_an_older_day_that_comes_later_changes_nothing(store: Store) -> None:
    read_in(store, offers("a,H100,eu,2\n", "own/x"), "2026-11-02", 10)
    read_in(store, offers("a,H100,eu,1\n", "own/x"), "2026-11-01", 20)
    assert prices(store) == [("a", "2")]


def test_corrections_and_withdrawals(store: Store) -> None:
    facts = read_in(store, offers("a,H100,eu,2\nb,H100,eu,5\n", "own/x"), "2026-11-02", 10)
    assert prices(store) == [("a", "2"), ("b", "5")]
    put(store, withdrawal("w", facts[0].key, subject=facts[0].subject), at=20)
    assert prices(store) == [("b", "5")]
    put(store, withdrawal("w2", f"{WITHDRAWER}/w", subject=facts[0].subject), at=30)
    assert prices(store) == [("a", "2"), ("b", "5")]


def test_an_offer_that_cannot_be_read_is_left_out(store: Store) -> None:
    seen = offers("a,H100,eu,2\n", "own/x")
    [fact] = offer_facts({offer_id(each): each for each in seen}, (), SOURCE)
    newer = replace(fact, version=99)
    put(store, newer, reading(seen, "2026-11-02"))
    assert prices(store) == []


def test_the_law_finds_lots_that_were_changed_by_hand(store: Store, tmp_path: Path) -> None:
    read_in(store, offers("a,H100,eu,2\n", "own/x"), "2026-11-02")
    current_market(store)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE projection_market SET lots = replace(lots, 'eu', 'us')"))
    first = audit(store, tmp_path).first
    assert first is not None
    assert (first.law, first.where) == ("store/projection", "catalogue own/x")
    rebuild_market(store)
    assert audit(store, tmp_path).first is None
