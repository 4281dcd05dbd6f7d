"""Identity, hashes, differences, and facts as lines of text."""

import json
from typing import Any

import pytest

from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Difference, Fact, first_difference
from ouvrage.ledger.lines import fact_line, read_fact_line, read_record_line, record_line
from tests.support.facts import SOURCE, fact, recorded

A = fact("a", body={"n": 1, "list": [1, 2], "deep": {"x": "y"}})


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (fact("a", kind="other"), ("kind", '"test.thing"', '"other"')),
        (fact("a", version=2), ("version", "1", "2")),
        (fact("a", valid_to=None), ("valid_to", "20", "null")),
        (fact("a", grade=Grade.ASSUMED, body={"n": 9}), ("grade", '"measured"', '"assumed"')),
        (
            fact("a", body={"n": True, "list": [1, 2], "deep": {"x": "y"}}),
            ("payload.n", "1", "true"),
        ),
        (
            fact("a", body={"n": 1, "list": [1, 3], "deep": {"x": "y"}}),
            ("payload.list[1]", "2", "3"),
        ),
        (
            fact("a", body={"n": 1, "list": [1], "deep": {"x": "y"}}),
            ("payload.list", "[1,2]", "[1]"),
        ),
        (
            fact("a", body={"n": 1, "list": [1, 2], "deep": {"x": 0}}),
            ("payload.deep.x", '"y"', "0"),
        ),
        (
            fact("a", body={"n": 1}),
            ("payload", '{"deep":{"x":"y"},"list":[1,2],"n":1}', '{"n":1}'),
        ),
    ],
)
def test_the_first_difference_is_named(offered: Fact, expected: tuple[str, str, str]) -> None:
    field, stored, theirs = expected
    assert first_difference(A, offered) == Difference(field=field, stored=stored, offered=theirs)
    assert first_difference(A, A) is None


def test_the_hash_covers_the_content_alone() -> None:
    assert fact("a").sha256 == fact("b", source="c" * 32).sha256
    contents: list[dict[str, Any]] = [
        {"kind": "k"},
        {"version": 2},
        {"subject": "s"},
        {"valid_from": 0},
        {"valid_to": None},
        {"grade": Grade.LISTED},
        {"body": {"a": 1}},
        {"corrects": f"{SOURCE}/y"},
    ]
    hashes = {fact().sha256, *(fact(**content).sha256 for content in contents)}
    assert len(hashes) == 9


def test_the_hash_is_the_one_of_the_first_version() -> None:
    """Recorded facts keep their hashes for ever: this one was computed when version 1 was made."""
    assert fact().sha256 == "6cd109a13215211d8ab9b172fe7dbbc6fcc82837205ca7129294a33aa36e75d7"


def test_lines() -> None:
    odd = fact("é", body={"t": "\n\u2028"}, valid_to=None, corrects=f"{SOURCE}/x")
    assert read_fact_line(fact_line(odd)) == (odd, odd.sha256)
    (entry,) = recorded(odd)
    again = read_record_line(record_line(entry))
    assert (again.seq, again.recorded_at, again.fact) == (1, 10, odd)
    assert "\n" not in record_line(entry)


@pytest.mark.parametrize("line", ["", "1", "{}", "[" * 100_000, '{"seq":1}', b"\xff"])
def test_other_lines_are_refused(line: str) -> None:
    for reader in (read_fact_line, read_record_line):
        with pytest.raises(ValueError):  # noqa: PT011 - json's own words and ours
            reader(line)


@pytest.mark.parametrize(
    "changed",
    [("version", "true"), ("version", "1.0"), ("grade", '"best"'), ("id", "1"), ("corrects", "1")],
)
def test_lines_with_wrong_fields_are_refused(changed: tuple[str, str]) -> None:
    value = json.loads(fact_line(A))
    value[changed[0]] = json.loads(changed[1])
    with pytest.raises(ValueError):  # noqa: PT011 - json's own words and ours
        read_fact_line(json.dumps(value))
