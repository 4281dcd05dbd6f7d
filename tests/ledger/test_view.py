"""What holds does not depend on arrival; corrections replace, withdrawals give back."""

from itertools import permutations

import pytest

from ouvrage.ledger.facts import Fact
from ouvrage.ledger.view import circular, in_force
from tests.support.facts import OTHER, SOURCE, fact, recorded, withdrawal

A = fact("a", body={"n": 1})
B = fact("b", body={"n": 2}, corrects=A.key)
C = fact("c", body={"n": 3}, corrects=B.key)


def standing(*facts: Fact) -> set[str]:
    """The ids in force, which must be the same for every order of arrival."""
    results = {
        tuple(entry.fact.id for entry in in_force(recorded(*order)))
        for order in permutations(facts)
    }
    assert len(results) == 1
    return set(results.pop())


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([A], {"a"}),
        ([A, B], {"b"}),
        ([A, B, C], {"c"}),
        ([B], {"b"}),
        ([B, C], {"c"}),
        ([A, withdrawal("w", A.key)], set()),
        ([A, B, withdrawal("w", B.key)], {"a"}),
        ([A, B, C, withdrawal("w", C.key)], {"b"}),
        ([A, B, withdrawal("w", B.key), withdrawal("x", f"{SOURCE}/w")], {"b"}),
        ([A, withdrawal("w", A.key), withdrawal("x", f"{SOURCE}/w")], {"a"}),
        ([A, B, fact("d", corrects=A.key)], {"d"}),
        ([A, B, fact("d", corrects=A.key), withdrawal("w", f"{SOURCE}/d")], {"b"}),
        ([A, fact("b", source=OTHER, corrects=A.key), B], {"b"}),
        ([fact("p", corrects=f"{SOURCE}/q"), fact("q", corrects=f"{SOURCE}/p"), A], {"a"}),
        ([fact("p", corrects=f"{SOURCE}/p"), A], {"a"}),
    ],
)
def test_in_force(facts: list[Fact], expected: set[str]) -> None:
    assert standing(*facts) == expected


def test_the_greatest_source_wins_between_equal_ids() -> None:
    theirs = fact("b", source=OTHER, corrects=A.key)
    (left,) = in_force(recorded(A, B, theirs))
    assert left.fact.key == theirs.key


def test_a_long_chain_of_corrections_needs_no_stack() -> None:
    chain = [fact("0")]
    for n in range(1, 5000):
        chain.append(fact(str(n), corrects=chain[-1].key))
    assert [entry.fact.id for entry in in_force(recorded(*chain))] == ["4999"]


def test_circles_are_named() -> None:
    p = fact("p", corrects=f"{SOURCE}/q")
    q = fact("q", corrects=f"{SOURCE}/p")
    assert {entry.fact.id for entry in circular(recorded(p, q, A, B, C))} == {"p", "q"}
