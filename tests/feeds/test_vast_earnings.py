"""What an answer of Vast.ai states of a machine and a day, and what it cannot."""

from __future__ import annotations

import itertools
import json
import random
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ouvrage.adapters.feeds.told import Told
from ouvrage.adapters.feeds.vast_earnings import machines_in, read_windows, statements
from ouvrage.adapters.feeds.windows import counted_once
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import DAY as DAY_US
from ouvrage.ledger.stated import Stated
from tests.feeds.vast import DAY, answer, one_machine

LATER = (DAY + 400) * DAY_US


def stated(text: str, saved_us: int = LATER) -> tuple[list[Stated], Told]:
    told = Told(form="vast earnings", file="earnings.json")
    windows = read_windows(text, told)
    nodes = {machine: f"n{machine}" for machine in machines_in(windows)}
    found = [s for w in windows for s in statements(w, nodes, "vast", saved_us, told)]
    return found, told


def shown(found: list[Stated]) -> dict[str, str]:
    return {each.natural: each.value.amount for each in found}


def test_days_of_the_only_machine_are_its_own():
    found, told = stated(one_machine({DAY: (2.15, 0.09), DAY + 1: (3, 0.1, 0.01, 0.02)}))
    assert shown(found) == {
        "vast/35798/20399/gpu": "2.15",
        "vast/35798/20399/storage": "0.09",
        "vast/35798/20399/upload": "0",
        "vast/35798/20399/download": "0",
        "vast/35798/20400/gpu": "3",
        "vast/35798/20400/storage": "0.1",
        "vast/35798/20400/upload": "0.01",
        "vast/35798/20400/download": "0.02",
    }
    assert {(s.valid_from, s.valid_to) for s in found} == {
        (DAY * DAY_US, (DAY + 1) * DAY_US),
        ((DAY + 1) * DAY_US, (DAY + 2) * DAY_US),
    }
    assert {(s.value.currency, s.value.fee, s.subject, s.grade.word) for s in found} == {
        ("USD", None, "node:n35798", "metered")
    }
    assert told.faults == [] and told.rows == 3
    assert "per_machine and per_day of an answer add up to the same" in told.notes


def test_a_filtered_answer_has_days_of_the_whole_host_and_is_not_split():
    found, told = stated(answer(DAY, DAY + 1, {35798: (2.0,)}, {DAY: (5.0,), DAY + 1: (6.0,)}))
    assert shown(found)["vast/35798/20399..20400/gpu"] == "2"
    assert all(s.valid_to == (DAY + 2) * DAY_US for s in found)
    assert any("per_day is of the whole host" in words for words in told.notes)


def test_two_machines_over_days_have_totals_and_on_one_day_their_own():
    many, told = stated(
        answer(DAY, DAY + 1, {1: (2.0,), 2: (3.0,)}, {DAY: (1.0,), DAY + 1: (4.0,)})
    )
    assert {k for k in shown(many) if k.endswith("gpu")} == {
        "vast/1/20399..20400/gpu",
        "vast/2/20399..20400/gpu",
    }
    assert any("each machine's total is of the whole period" in words for words in told.notes)
    one, _ = stated(answer(DAY, DAY, {1: (2.0,), 2: (3.0,)}, {DAY: (5.0,)}))
    assert shown(one)["vast/2/20399/gpu"] == "3"


def test_a_day_that_is_not_over_is_stated_up_to_the_moment():
    noon = DAY * DAY_US + DAY_US // 2
    found, told = stated(one_machine({DAY: (1.0,)}), saved_us=noon)
    assert {s.valid_to for s in found} == {noon}
    assert "2025-11-07 was not over: stated up to the moment of the file" in told.notes


def test_the_client_asks_with_fractions_of_days():
    text = one_machine({DAY: (1.0,), DAY + 1: (2.0,)})
    value = json.loads(text) | {"sday": DAY + 0.25, "eday": DAY + 1.25}
    found, _ = stated(json.dumps(value))
    spans = sorted({(s.valid_from, s.valid_to) for s in found})
    quarter = DAY_US // 4
    assert spans == [
        (DAY * DAY_US + quarter, (DAY + 1) * DAY_US),
        ((DAY + 1) * DAY_US, (DAY + 1) * DAY_US + quarter),
    ]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"sday": 1762473600}, "sday: found 1762473600, expected days since 1970, such as 20399"),
        ({"eday": DAY - 5}, "eday: found 20394, expected a day not before sday 20399"),
        (
            {"per_machine": [{"machine_id": 1}]},
            "gpu_earn: found nothing, expected an amount in USD",
        ),
        ({"per_machine": ["x"]}, "row: found 'x', expected an object with named fields"),
        ({"per_machine": [], "per_day": {}}, None),
    ],
)
def test_what_cannot_be_read_is_told(change: dict[str, object], line: str | None):
    value = json.loads(one_machine({DAY: (1.0,)})) | change
    _, told = stated(json.dumps(value))
    assert [f.line for f in told.faults if line and line in f.line] or line is None


def test_a_machine_named_twice_and_a_day_outside_are_refused_by_place():
    value = json.loads(one_machine({DAY: (1.0,), DAY + 1: (1.0,)}))
    value["per_day"][1]["day"] = DAY + 9
    found, told = stated(json.dumps(value))
    assert [f.place for f in told.faults] == ["per_day[1]"]
    assert len(found) == 4
    value["per_machine"] *= 2
    _, told = stated(json.dumps(value))
    assert "per_machine[1]" in [f.place for f in told.faults]


def test_no_answer_at_all_is_refused_whole():
    with pytest.raises(OuvrageError) as refused:
        stated("[]")
    assert refused.value.code == "vast/form"
    with pytest.raises(OuvrageError):
        stated("not json")


def test_answers_one_a_line_and_in_a_list_are_read():
    days = [one_machine({DAY + i: (1.0 + i,)}) for i in range(3)]
    listed, _ = stated(f"[{','.join(days)}]")
    lines, _ = stated("\n".join(days))
    assert shown(listed) == shown(lines)
    _, told = stated("\n".join([days[0], "{broken", days[1]]))
    assert [f.place for f in told.faults] == ["2"]


def settle(files: list[str]) -> dict[str, str]:
    """The books of one machine after files in this order."""
    known: dict[str, Stated] = {}
    for text in files:
        offered, told = stated(text)
        for each in counted_once(known.values(), offered, told):
            known[each.natural] = each
    return {k: v.value.amount for k, v in known.items() if Decimal(v.value.amount)}


def test_a_total_and_its_days_are_counted_once_in_any_order():
    total = answer(DAY, DAY + 2, {1: (6.0,), 2: (9.0,)}, {DAY: (15.0,)})
    singles = [
        answer(DAY + i, DAY + i, {1: (1.0 + i,), 2: (3.0,)}, {DAY + i: (4.0 + i,)})
        for i in range(3)
    ]
    wanted = settle([total, *singles])
    assert sum(Fraction(v) for v in wanted.values()) == 15
    for order in itertools.permutations([total, *singles]):
        assert settle(list(order)) == wanted
    part = settle([singles[0], total])
    assert part["vast/1/20399..20401/gpu"] == "5" and part["vast/1/20399/gpu"] == "1"


def test_totals_that_overlap_are_refused():
    first = answer(DAY, DAY + 2, {1: (6.0,), 2: (9.0,)}, {})
    second = answer(DAY + 1, DAY + 4, {1: (7.0,), 2: (9.0,)}, {})
    offered, told = stated(first)
    known = counted_once([], offered, told)
    again, told = stated(second)
    counted_once(known, again, told)
    assert len(told.faults) == 8
    assert "no overlap with the total of 2025-11-07 to 2025-11-09" in told.faults[0].expected


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_order_files_come_in_the_sum_is_that_of_the_days(data: st.DataObject):
    count = data.draw(st.integers(1, 6))
    cents = data.draw(st.lists(st.integers(0, 999), min_size=count, max_size=count))
    days = {DAY + i: (cent / 100,) for i, cent in enumerate(cents)}
    files = [one_machine({day: amounts}) for day, amounts in days.items()]
    files += [one_machine(days), files[0]]
    random.Random(data.draw(st.integers(0, 99))).shuffle(files)
    assert sum(Fraction(v) for v in settle(files).values()) == Fraction(sum(cents), 100)


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["sday", "eday", "per_machine", "per_day", "day", "machine_id", "gpu_earn"]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(value: object):
    with suppress(OuvrageError):
        stated(json.dumps(value))
