"""From samples of letters to states over time, in whatever order the files come."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.feeds.occupancy import Pattern, Sample, Span, series_of
from ouvrage.adapters.feeds.told import Told
from ouvrage.adapters.feeds.vast_invoices import read_invoices
from ouvrage.adapters.feeds.vast_machines import (
    Track,
    read_machines,
    statements,
    tracks_of,
)
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import HOUR, MINUTE
from ouvrage.ledger.stated import Stated

A: Pattern = (("held", "rented", 0),)
B: Pattern = (("free", "no demand", 0),)


def sample(minute: int, pattern: Pattern) -> Sample:
    return Sample(at_us=minute * MINUTE, pattern=pattern, place=str(minute))


def told_of(series) -> list[tuple[int, int, Pattern]]:
    return [(s.from_us // MINUTE, s.to_us // MINUTE, s.pattern) for s in series.spans]


def test_a_sample_holds_until_the_next_that_comes_soon_enough():
    series = series_of(
        [], [sample(0, A), sample(10, A), sample(20, B), sample(60, B), sample(65, B)], 20 * MINUTE
    )
    assert told_of(series) == [(0, 20, A), (20, 20, B), (60, 65, B)]
    assert series.gaps == ((20 * MINUTE, 60 * MINUTE),)


def test_two_words_about_one_moment_are_refused():
    series = series_of([Span(from_us=0, to_us=10 * MINUTE, pattern=A)], [sample(10, B)], MINUTE)
    assert [each.place for each in series.refused] == ["10"]


def merged(parts: list[list[Sample]], limit: int) -> list[tuple[str, int]]:
    """What is known at every minute after files in this order."""
    known: dict[int, Span] = {}
    for part in parts:
        before = dict(known)
        series = series_of(sorted(known.values(), key=lambda s: s.from_us), part, limit)
        assert not series.refused
        known |= {span.from_us: span for span in series.spans}
        assert set(known) == {span.from_us for span in series.spans}
        again = series_of(sorted(known.values(), key=lambda s: s.from_us), part, limit)
        assert {span.from_us: span for span in again.spans} == known
        assert before.keys() <= known.keys()
    end = max(span.to_us for span in known.values()) // MINUTE
    return [
        (span.pattern[0][0], minute)
        for minute in range(end)
        for span in known.values()
        if span.from_us <= minute * MINUTE < span.to_us
    ]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_order_of_files_does_not_matter(data: st.DataObject):
    minutes = sorted(data.draw(st.sets(st.integers(0, 60), min_size=1, max_size=9)))
    samples = [sample(m, data.draw(st.sampled_from([A, B]))) for m in minutes]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(samples)), min_size=2, max_size=2)))
    parts = [samples[: cuts[0]], samples[cuts[0] : cuts[1]], samples[cuts[1] :]]
    limit = 8 * MINUTE
    wanted = merged([samples], limit)
    for order in itertools.permutations([p for p in parts if p]):
        assert merged(list(order), limit) == wanted
        assert merged([*order, *order], limit) == wanted


def test_a_finer_file_that_contradicts_a_coarse_one_changes_no_more_than_it_saw():
    day = [sample(m, A) for m in range(0, 600, 10)]
    minutes = merged([day, [sample(301, B)]], 20 * MINUTE)
    assert [m for state, m in minutes if state == "free"] == list(range(301, 321))
    assert len(minutes) == 590


def test_a_finer_file_tells_when_the_coarse_one_goes_on():
    parts = [[sample(2, A)], [sample(7, B)], [sample(3, B), sample(6, A)]]
    minutes = merged(parts, 8 * MINUTE)
    assert [m for state, m in minutes if state == "held"] == [2, 6]


def machine(occupancy: str, **more: object) -> dict[str, object]:
    return {"machine_id": 7, "num_gpus": 4, "gpu_occupancy": occupancy, "listed": True} | more


def stated(
    documents: list[object], devices: dict[int, str] | None = None
) -> tuple[list[Stated], Told]:
    told = Told(form="vast machines", file="m.json")
    text = "\n".join(json.dumps(each) for each in documents)
    snapshots, _ = read_machines(text, told, 10**15)
    found: list[Stated] = []
    for track in tracks_of("vast", "7", "n1", devices or {}, 4):
        found += statements(track, "vast", snapshots, [], 20 * MINUTE, told)
    return found, told


def at(minute: int, *machines: object) -> object:
    return {"at": 1_700_000_000 + minute * 60, "machines": list(machines)}


def test_mixed_letters_are_devices_by_slot_where_they_are_placed():
    letters = [at(0, machine("D_R_x_I")), at(10, machine("D_x_x_I"))]
    found, told = stated(letters, {i: f"GPU-{i}" for i in range(4)})
    assert not told.faults
    first = {
        s.value.device: (s.value.state, s.value.cause)
        for s in found
        if s.natural.endswith("00000/0")
    }
    assert first["GPU-0"] == ("held", "rented on demand; load not seen")
    assert first["GPU-2"] == ("free", "no demand")
    assert [s.value.channel for s in found if s.value.state == "held"] == ["vast"] * 3
    assert len(found) == 5
    counted, _ = stated(letters)
    assert [(s.value.node, s.value.count, s.value.state) for s in counted[:4]] == [
        ("n1", 1, "free"),
        ("n1", 1, "held"),
        ("n1", 1, "held"),
        ("n1", 1, "held"),
    ]


def test_offline_unlisted_and_odd_machines():
    found, told = stated(
        [
            at(0, machine("DDDD", timeout=36.0)),
            at(10, machine("xxxx", listed=False)),
            at(20, machine("xxx")),
            at(30, machine("xxZx")),
            at(40, {"machine_id": 7}),
            {"at": "yesterday", "machines": []},
        ]
    )
    assert [(s.value.state, s.value.cause) for s in found] == [
        ("down", "offline"),
        ("free", "not listed"),
    ]
    assert [f.place for f in told.faults] == [
        "3 machines[0]",
        "4 machines[0]",
        "5 machines[0]",
        "6",
    ]


def test_maintenance_is_what_had_begun():
    told = Told(form="vast machines", file="m.json")
    rows = [
        {
            "machine_id": 7,
            "start_time": 1_700_000_000,
            "duration_hours": 4,
            "maintenance_category": "power",
        },
        {"machine_id": 7, "start_time": 1_800_000_000, "end_time": 1_800_000_900},
        {"machine_id": 7, "start_time": 5, "end_time": 6},
    ]
    _, windows = read_machines(json.dumps(rows), told, 1_700_000_000 * 10**6 + HOUR)
    assert [(w.to_us - w.from_us, w.category) for w in windows] == [(HOUR, "power")]
    assert len(told.faults) == 1 and any("lies ahead" in note for note in told.notes)


def test_a_track_of_a_node_is_about_the_node():
    assert Track(key="k", node="n1", device=None, slot=None).subject == "node:n1"


@settings(max_examples=100, deadline=None)
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
                    [
                        *(
                            "machines",
                            "machine_id",
                            "num_gpus",
                            "gpu_occupancy",
                            "at",
                            "timeout",
                            "results",
                        ),
                        *("start_time", "duration_hours", "type", "amount", "when"),
                    ]
                ),
                inner | st.just("payout"),
                max_size=6,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(value: object):
    told = Told(form="any", file="a.json")
    with suppress(OuvrageError):
        read_machines(json.dumps(value), told, 10**15)
    with suppress(OuvrageError):
        read_invoices(json.dumps(value), told, "vast")
    assert all(fault.line for fault in told.faults)
