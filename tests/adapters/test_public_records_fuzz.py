"""Whatever a public record sends: no crash, nothing dropped, and no outcome that it did not give."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ouvrage.adapters import hurricane, rdap, ripestat
from ouvrage.adapters.answers import Place, observation_of
from ouvrage.adapters.web import Answer
from ouvrage.base.grades import Grade
from ouvrage.evidence.observations import observed, unsealed
from ouvrage.ledger.admission import admit
from tests.support.web import AUTNUM, NETWORK, OVERVIEW, PAGE, PREFIXES, STATUS

ROWS = [{"prefix": "2a09:7000::/31", "timelines": [{"starttime": "2026-01-01T00:00:00"}]}]
LISTED = {"status": "ok", "data": {"resource": "209045", "prefixes": ROWS, **PREFIXES["data"]}}
SHAPES: list[tuple[Place, str, Any]] = [
    (ripestat.OVERVIEW, "AS209045", OVERVIEW),
    (ripestat.STATUS, "AS209045", STATUS),
    (ripestat.PREFIXES, "AS209045", LISTED),
    (rdap.AUTNUM, "AS209045", AUTNUM),
    (rdap.IP, "2a09:7000::/31", NETWORK),
    (hurricane.PAGE, "AS209045", PAGE),
]
IDS = [f"{place.name} {subject[:2]}" for place, subject, _ in SHAPES]
PIECES = [
    b"<",
    b"<!--",
    b"&#x",
    b"<script>",
    b"\x00",
    b"\xff",
    b"}",
    b"[[",
    b'"',
    b"\\",
    b"9" * 40,
    b"",
]
ODD: list[Any] = [
    *(..., None, True, False, 0, 1, -1, 10**30, 0.5, 1e308, "", " ", "x", "209045", "AS209045"),
    *("\ud800", "\x1b[31m", "x" * 5000, "::/0", "10.0.0.1", "ok", [], {}, [[]], [None], {"": {}}),
    *({"prefix": 1}, [{"prefix": None}], {"v4": []}, ["vcard", [["fn"]]], "2026-13-99T99:99:99"),
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
    | st.sampled_from(["", "AS209045", "209045", "\ud800", "::/0", "fn", "ok", "autnum"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, the whole included."""
    found = [path]
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        found += places_in(inner, (*path, key))
    return found


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The document with something else, or nothing, in one place."""
    if not path:
        return value
    changed = copy.deepcopy(document)
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    if value is ...:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return changed


@st.composite
def bodies(draw: st.DrawFn, shape: Any) -> bytes:
    """A recorded shape with a field changed, with its bytes changed, or bytes of any kind."""
    how = draw(st.integers(0, 5))
    if how == 0:
        return draw(st.binary(max_size=60))
    if isinstance(shape, str):
        body = shape.encode()
    else:
        changed = shape
        for _ in range(how):
            path = draw(st.sampled_from(places_in(changed)))
            changed = with_value(
                changed, path, draw(VALUES | st.just(...)) if path else draw(VALUES)
            )
        body = json.dumps(changed).encode("utf-8", "surrogatepass")
    if how < 4 and not isinstance(shape, str):
        return body
    at = draw(st.integers(0, len(body)))
    return (
        body[:at]
        + draw(st.binary(max_size=8) | st.sampled_from([b"<", b"<!--", b"&#x", b"<script>"]))
        + (body[at + draw(st.integers(0, 30)) :])
    )


def check_one(place: Place, subject: str, body: bytes, status: int | None) -> None:
    """The law: any answer becomes an observation that a ledger takes and that mixes nothing."""
    answer = Answer(
        address="http://localhost/x",
        asked_us=1,
        answered_us=2,
        status=status,
        body=body,
        fault=None,
    )
    found = observation_of(place, subject, answer, ())
    admit(observed(found, source="s", id="x", grade=Grade.MEASURED))
    assert unsealed(found) == body
    properties = {finding.property for finding in found.findings}
    assert properties == set(place.properties)
    if found.fault or status not in (200, None):
        assert {finding.outcome for finding in found.findings} == {"no answer"}


@pytest.mark.parametrize(("place", "subject", "shape"), SHAPES, ids=IDS)
def test_any_answer_becomes_an_observation(place: Place, subject: str, shape: Any) -> None:
    @settings(
        max_examples=50,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(body=bodies(shape), status=st.sampled_from([200, 200, 200, None, 404, 500]))
    def check(body: bytes, status: int | None) -> None:
        check_one(place, subject, body, status)

    check()


def mutated(shape: Any, draw: random.Random) -> bytes:
    """A recorded shape with a few fields or bytes changed, many times faster than by search."""
    if isinstance(shape, str):
        body = shape.encode()
    else:
        changed = shape
        for _ in range(draw.randint(0, 3)):
            path = draw.choice(places_in(changed))
            changed = with_value(changed, path, draw.choice(ODD if path else ODD[1:]))
        body = json.dumps(changed).encode("utf-8", "surrogatepass")
    for _ in range(draw.choice([0, 0, 0, 1, 2])):
        at = draw.randint(0, len(body))
        body = body[:at] + draw.choice(PIECES) + body[at + draw.randint(0, 30) :]
    return body


@pytest.mark.parametrize(
    "inputs", [pytest.param(100), pytest.param(20_000, marks=pytest.mark.soak)], ids=["few", "many"]
)
@pytest.mark.parametrize(("place", "subject", "shape"), SHAPES, ids=IDS)
def test_many_answers_become_observations(
    place: Place, subject: str, shape: Any, inputs: int
) -> None:
    for seed in range(inputs):
        draw = random.Random(seed)
        body, status = mutated(shape, draw), draw.choice([200, 200, 200, None, 404])
        try:
            check_one(place, subject, body, status)
        except BaseException as error:
            raise AssertionError(f"seed {seed}: {body!r}") from error
