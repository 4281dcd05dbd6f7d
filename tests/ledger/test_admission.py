"""Nothing that cannot be kept everywhere, or read again, gets into a ledger."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.canonical import canonical
from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.admission import admit, payload_fault
from ouvrage.ledger.kinds import KINDS, RUN_KINDS, Unread, payload_of, read
from ouvrage.ledger.other_kinds import OTHER_KINDS
from ouvrage.ledger.shapes import shape_of
from ouvrage.model.records import Conflict, Withdrawal
from ouvrage.model.runs import RunEnded, RunMarks, RunSpans, RunStarted
from tests.support.facts import SOURCE, fact

GOOD = [
    fact(),
    fact("é" * 500),
    fact(valid_to=None),
    fact(valid_from=5, valid_to=5),
    fact(valid_from=-5, valid_to=-5),
    fact(body={"text": "\x00\n\x7f\u2028é😀", "deep": [[[1]], None, True]}),
    fact(body=[1.5, "a newer kind may hold what ours do not"]),
    fact(corrects=f"{SOURCE}/a/b"),
]
BAD = [
    fact(""),
    fact("a\x00b"),
    fact("a\nb"),
    fact("x" * 1001),
    fact("é" * 501),
    fact("\ud800"),
    fact(source=""),
    fact(source="a/b"),
    fact(source="x" * 201),
    fact(kind=""),
    fact(subject="\x7f"),
    fact(version=0),
    fact(version=2**31),
    fact(version=True),
    fact(valid_from=2**63),
    fact(valid_to=2**63),
    fact(valid_from=20, valid_to=19),
    fact(valid_to="20"),
    fact(corrects=""),
    fact(corrects="nothing"),
    fact(corrects=f"{SOURCE}/"),
    fact(payload="{"),
    fact(payload='{"b":1,"a":2}'),
    fact(payload='{"a": 1}'),
    fact(payload='{"a":1,"a":1}'),
    fact(payload='"\\u00e9"'),
    fact(payload="NaN"),
    fact(payload="1e400"),
    fact(payload='"\ud800"'),
    fact(payload="[" * 100_000 + "]" * 100_000),
    fact(kind="ledger.withdrawal", payload="{}"),
    fact(kind="ledger.withdrawal", payload='{"why":1}'),
    fact(kind="ledger.withdrawal", payload='{"why":"x","yet":1}'),
    fact(kind="ledger.withdrawal", payload='{"why":1.0}'),
]


@pytest.mark.parametrize("good", GOOD, ids=range(len(GOOD)))
def test_admitted(good: Any) -> None:
    admit(good)


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_refused(bad: Any) -> None:
    with pytest.raises(OuvrageError) as refused:
        admit(bad)
    assert refused.value.code == "fact/malformed"


KIND_VALUES = st.one_of(
    *(st.from_type(kind) for kind in (RunEnded, RunMarks, RunSpans, RunStarted, Conflict))
)


@given(KIND_VALUES)
def test_every_kind_is_read_as_it_was_written(value: Any) -> None:
    payload = payload_of(value)
    assert canonical(json.loads(payload)) == payload
    assert read(fact(kind=value.KIND, payload=payload)) == value


@given(KIND_VALUES)
def test_a_shape_matches_what_its_kind_writes(value: Any) -> None:
    payload = payload_of(value)
    if payload.isascii():
        assert shape_of(type(value)).fullmatch(payload)
    assert payload_fault(fact(kind=value.KIND, payload=payload)) is None


@given(KIND_VALUES, st.data())
def test_a_shape_matches_only_what_the_slow_way_admits(value: Any, data: st.DataObject) -> None:
    """Change one character anywhere: whatever still matches must be canonical and readable."""
    payload = payload_of(value)
    at = data.draw(st.integers(0, len(payload)))
    cut = data.draw(st.integers(0, 2))
    letters = st.sampled_from(list('0123456789-+.eE"\\\n\x00\x1f\x7f{}[]:,tfnu/ é\ud800'))
    changed = payload[:at] + "".join(data.draw(st.lists(letters, max_size=2))) + payload[at + cut :]
    if shape_of(type(value)).fullmatch(changed):
        assert canonical(json.loads(changed)) == changed
        assert not isinstance(read(fact(kind=value.KIND, payload=changed)), Unread)
        changed.encode()


@pytest.mark.parametrize("kind", KINDS.values())
def test_every_kind_has_a_shape(kind: type) -> None:
    assert not shape_of(kind).fullmatch("{}")


def test_floats_and_strangers_are_refused_when_written() -> None:
    for odd in (1.0, object(), {"a": 1}):
        with pytest.raises(TypeError):
            payload_of(Withdrawal(why=cast("str", odd)))


def test_the_kinds_of_a_run_are_known_apart_and_they_alone_are_named_so() -> None:
    named = {kind for key, kind in KINDS.items() if key[0].startswith("run.")}
    assert named == set(RUN_KINDS)
    assert len(RUN_KINDS) + len(OTHER_KINDS) == len(KINDS), "no name and version twice"
    assert ("run.nothing", 1) not in KINDS
