"""Very many spoilt catalogues, bills and profiles: each is read or refused, and no row gets lost."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ouvrage.adapters.bills import bill_in
from ouvrage.adapters.profile_files import profile_in
from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.admission import admit
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.listed import hourly
from ouvrage.pricing.market.readings import bands_of, offer_facts, offer_id
from tests.support.spoilt import spoilt as spoilt_by

from . import catalogues as c

INPUTS = 100_000
BILL = "description,amount,currency,quantity,unit,from,to\nbox,1.20,USD,2,h,2025-11-30T10:53:20Z,\n"
FOCUS = "BilledCost,BillingCurrency,ChargeDescription,ConsumedQuantity,ConsumedUnit\n1,USD,x,NULL,Hours\n"
CHARGES = '{"charges": [{"type": "gpu", "amount": 0.61, "description": "2 hours at $0.6/hour"}]}'
TEXTS = [
    *((c.AWS, "a.csv"), (c.RUNPOD, "a.csv"), (c.LAMBDA, "a.csv"), (c.GCP, "a.csv")),
    *((c.VAST_CSV, "a.csv"), (c.GPUHUNT, "a.csv"), (c.VAST, "a.json"), (c.TRIAL, "a.csv")),
    ('[[offer]]\nname = "a"\nprice = "0.30 USD/h"\ngpus = 2\ndate_read = 2026-10-01\n', "a.toml"),
]
CLOUDS = ("skypilot/aws", "skypilot/gcp", "skypilot/vast", "skypilot/lambda", "own/x")
PIECES = [
    *(
        "",
        ",",
        '"',
        "\n",
        "\x00",
        "-",
        "1e400",
        "1e-30",
        "{",
        "}",
        "[",
        "]",
        "'",
        ":",
        "é",
        "\ud800",
    ),
    *(
        "0",
        "9" * 25,
        "nan",
        "Infinity",
        "null",
        "true",
        "{'Gpus': [",
        "=cmd",
        "\x1b[2J",
        "0.0",
        ".5",
    ),
    *("\r", "\u2028", "USD", "1_0", "0x1", "½", "٣"),
]


@st.composite
def spoilt(draw: st.DrawFn, texts: list[tuple[str, str]]) -> tuple[str, str]:
    """A good file with a few pieces put in, taken out or changed."""
    text, file = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 1, 3, 20])))
        text = (
            text[:start]
            + draw(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)))
            + text[end:]
        )
    return text, file


def _rows(text: str) -> int | None:
    """How many rows a CSV text holds below its head; None where it is no whole CSV."""
    try:
        return sum(1 for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row) - 1
    except csv.Error:
        return None


Found = TypeVar("Found")


def read_or_refused(read: Callable[[], Found], area: str) -> Found | None:
    """What a reader makes of a text, or None where it refuses it in its own words, with a hint."""
    refusal = None
    try:
        return read()
    except OuvrageError as error:
        refusal = error
    assert refusal.code.startswith(area), refusal
    assert refusal.hint
    return None


def read_catalogue(text: str, file: str, cloud: str) -> None:
    found = read_or_refused(lambda: c.parsed(text, cloud, file), "market/")
    if found is None:
        return
    assert found.rows >= found.refused + found.merged
    assert len({fault.place for fault in found.faults}) == found.refused or found.refused == 0
    assert bool(found.faults) == bool(found.refused)
    if file.endswith(".csv") and not text.lstrip().startswith(("{", "[")):
        rows = _rows(text)
        assert rows is None or found.rows == max(rows, 0)
    by_id: dict[str, MarketOffer] = {offer_id(offer): offer for offer in found.offers}
    assert len(by_id) == len(found.offers)
    for offer in found.offers:
        assert hourly(offer) >= 0
    for fact in offer_facts(by_id, set(), "5" * 32):
        admit(fact)
    bands_of(found.offers)


def read_bill(text: str, file: str, _cloud: str) -> None:
    found = read_or_refused(lambda: bill_in(file, text), "invoice/")
    if found is None:
        return
    if file.endswith(".csv") and not text.lstrip().startswith(("{", "[")):
        rows = _rows(text)
        places = {fault.place for fault in found.faults}
        assert rows is None or len(found.lines) + len(places) == max(rows, 0)


def read_profile(text: str, file: str, _cloud: str) -> None:
    found = read_or_refused(lambda: profile_in(file, text), "profile/")
    if found is None:
        return
    assert sum(found.terms.values()) == found.timing.likely > 0


CASES: list[tuple[Callable[[str, str, str], None], list[tuple[str, str]]]] = [
    (read_catalogue, TEXTS),
    (read_bill, [(BILL, "a.csv")]),
    (read_bill, [(FOCUS, "a.csv")]),
    (read_bill, [(CHARGES, "a.json")]),
    (
        read_profile,
        [(c.TRIAL_PROFILE, "w.toml"), ("unit,units,seconds_per_unit\nstep,5,2.5\n", "w.csv")],
    ),
]
IDS = ["catalogue", "plain bill", "FOCUS bill", "Vast charges", "profile"]


@pytest.mark.parametrize(("read", "texts"), CASES, ids=IDS)
def test_spoilt_files(read: Callable[[str, str, str], None], texts: list[tuple[str, str]]):
    @settings(
        max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(spoilt(texts), st.sampled_from(CLOUDS))
    def each(pair: tuple[str, str], cloud: str) -> None:
        read(*pair, cloud)

    each()


@pytest.mark.soak
@pytest.mark.parametrize("name", IDS)
def test_a_great_many_spoilt_files(name: str):
    read, texts = CASES[IDS.index(name)]
    chance = random.Random(20261130)
    for _ in range(INPUTS):
        text, file = chance.choice(texts)
        read(spoilt_by(text, chance, PIECES), file, chance.choice(CLOUDS))
