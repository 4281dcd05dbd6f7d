"""Whatever a public record sends: no crash, nothing dropped, and no outcome that it did not give."""

from __future__ import annotations

import copy
import json
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


@pytest.mark.parametrize(
    "examples",
    [pytest.param(60), pytest.param(20_000, marks=pytest.mark.soak)],
    ids=["short", "long"],
)
@pytest.mark.parametrize(
    ("place", "subject", "shape"), SHAPES, ids=[p.name + s[:2] for p, s, _ in SHAPES]
)
def test_any_answer_becomes_an_observation(
    place: Place, subject: str, shape: Any, examples: int
) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(body=bodies(shape), status=st.sampled_from([200, 200, 200, None, 404, 500]))
    def check(body: bytes, status: int | None) -> None:
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

    check()
