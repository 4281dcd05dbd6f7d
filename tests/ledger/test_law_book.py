"""Each law of the ledger finds what breaks it, and nothing else does."""

from dataclasses import replace

import pytest

from ouvrage.ledger.conflicts import conflict_fact
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.law_book import LAWS
from tests.support.facts import SOURCE, fact, recorded, withdrawal

A = fact("a", body={"n": 1})
OFFERED = fact("a", body={"n": 2})
CONFLICT = conflict_fact(A, OFFERED, source=SOURCE)
ONE = Recorded(seq=1, recorded_at=10, fact=A)

BROKEN: dict[str, list[Recorded]] = {
    "ledger/gapless": [ONE, Recorded(seq=3, recorded_at=20, fact=fact("b"))],
    "ledger/recorded-in-order": [ONE, Recorded(seq=2, recorded_at=9, fact=fact("b"))],
    "ledger/hash": [replace(ONE, stored_sha256="0" * 64)],
    "ledger/identity": recorded(A, A),
    "ledger/names": recorded(fact("")),
    "ledger/period": recorded(fact(valid_from=2, valid_to=1)),
    "ledger/payload": recorded(fact(payload="{ }")),
    "ledger/correction": recorded(A, fact("b", subject="else", corrects=A.key)),
    "ledger/circle": recorded(fact("p", corrects=f"{SOURCE}/p")),
    "ledger/conflict": recorded(OFFERED, CONFLICT),
}
WHOLE = recorded(
    A,
    fact("b", corrects=A.key),
    withdrawal("w", f"{SOURCE}/b"),
    CONFLICT,
    fact("later", corrects=f"{SOURCE}/not-here-yet"),
    fact("new", kind="gpu.window", version=7),
)


def broken(records: list[Recorded]) -> set[str]:
    return {law.name for law in LAWS for _ in law.breaches(records)}


def test_every_law_is_tried() -> None:
    assert BROKEN.keys() == {law.name for law in LAWS}


def test_a_whole_ledger_breaks_none() -> None:
    assert broken(WHOLE) == set()
    assert broken([]) == set()


@pytest.mark.parametrize("law", BROKEN)
def test_a_broken_ledger_breaks_just_that_one(law: str) -> None:
    assert broken(BROKEN[law]) == {law}


@pytest.mark.parametrize(
    ("records", "law"),
    [
        (recorded(A, fact("b", kind="test.else", corrects=A.key)), "ledger/correction"),
        (recorded(fact("w", kind="ledger.withdrawal", body={"why": "?"})), "ledger/correction"),
        (recorded(fact(kind="run.ended", body={"run": 1})), "ledger/payload"),
    ],
)
def test_other_ways_to_break(records: list[Recorded], law: str) -> None:
    assert broken(records) == {law}
