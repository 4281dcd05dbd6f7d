"""What plugs and meters counted: forms, units, steps back, gaps, and files in any order."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ouvrage.adapters.catalogues.rows import Fault
from ouvrage.adapters.feeds.counters import Meter, Reading, agreeing, kept, used_between
from ouvrage.adapters.feeds.intervals import by_hour
from ouvrage.adapters.feeds.plugs import Asked, Series, read_plug
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.time import HOUR, MINUTE, utc_text
from ouvrage.ledger.stated import Stated

METER = Meter(name="plug", about="node:n1", scope="wall")
NOON = 1_762_516_800  # 2025-11-07T12:00:00Z


def read(text: str, **asked: Any) -> tuple[Series, Told]:
    told = Told(form="plug", file="plug.json")
    return read_plug(text, told, Asked(**asked)), told


@pytest.mark.parametrize(
    ("answer", "joules"),
    [
        (
            {
                "unixtime": NOON,
                "meters": [{"power": 60.0, "total": 1000, "timestamp": NOON + 3600}],
            },
            60_000,
        ),
        ({"unixtime": NOON, "emeters": [{"power": 1, "total": 1000.5}]}, 3_601_800),
        (
            {
                "id": 0,
                "apower": 8.9,
                "aenergy": {"total": 6.532, "by_minute": [45.2], "minute_ts": NOON},
            },
            23_515,
        ),
        ({"sys": {"unixtime": NOON}, "switch:0": {"aenergy": {"total": 1.0}}}, 3_600),
        ({"sys": {"unixtime": NOON}, "em1data:0": {"total_act_energy": 2.5}}, 9_000),
        ({"sys": {"unixtime": NOON}, "emdata:0": {"total_act": 2.5}}, 9_000),
        (
            {"StatusSNS": {"Time": "2025-11-07T13:00:00", "ENERGY": {"Total": 12.345, "Power": 9}}},
            44_442_000,
        ),
        ({"Time": "2025-11-07T13:00:00", "ENERGY": {"Total": 12.345}}, 44_442_000),
        ({"at": "2025-11-07T12:00:00Z", "status": {"power": 1, "total": 10}}, 600),
        ({"ts": NOON, "payload": {"apower": 1, "aenergy": {"total": 1}}}, 3_600),
        ({"ts": NOON * 1000, "payload": {"apower": 1, "aenergy": {"total": 1}}}, 3_600),
    ],
)
def test_every_form_in_its_own_unit_at_its_own_moment(answer: object, joules: int):
    series, told = read(json.dumps(answer), zone="Europe/Berlin")
    assert [(r.at_us, r.counter_j) for r in series.readings] == [(NOON * 10**6, joules)], (
        told.faults
    )


def test_an_answer_without_a_moment_or_a_counter_is_refused():
    _, told = read(
        json.dumps([{"power": 1, "total": 1}, {"power": 1}, 7, {"aenergy": {"total": -1}}])
    )
    assert [(f.place, f.field) for f in told.faults] == [
        ("[0]", "time"),
        ("[1]", "answer"),
        ("[2]", "answer"),
        ("[3]", "answer"),
    ]
    series, _ = read(json.dumps({"power": 1, "total": 1}), saved_us=5)
    assert series.readings[0].at_us == 5


def test_a_clock_that_shows_an_hour_twice_goes_on():
    walls = ["01:30", "02:30", "02:10", "02:50", "03:10"]
    lines = [{"Time": f"2026-10-25T{w}:00", "ENERGY": {"Total": i}} for i, w in enumerate(walls)]
    series, told = read("\n".join(map(json.dumps, lines)), zone="Europe/Berlin")
    assert [utc_text(r.at_us)[11:16] for r in series.readings] == [
        "23:30",
        "00:30",
        "01:10",
        "01:50",
        "02:10",
    ]
    gone, told = read(
        json.dumps({"Time": "2026-03-29T02:30:00", "ENERGY": {"Total": 1}}), zone="Europe/Berlin"
    )
    assert not gone.readings and len(told.faults) == 1


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("time,kwh\n2025-11-07T12:00:00Z,1.5\n", [(NOON, 5_400_000)]),
        ("Zeit;Zählerstand\n07.11.2025 13:00;1.234,5\n", [(NOON, 4_444_200_000)]),
        ("timestamp,total_wh,power\n1762516800,1000,5\n", [(NOON, 3_600_000)]),
        ("Time,ENERGY.Total,ENERGY.Power\n2025-11-07T13:00:00,1.5,3\n", [(NOON, 5_400_000)]),
    ],
)
def test_tables_of_readings(text: str, readings: list[tuple[int, int]]):
    series, told = read(text, zone="Europe/Berlin")
    assert [(r.at_us // 10**6, r.counter_j) for r in series.readings] == readings, told.faults


def test_a_table_that_could_mean_two_numbers_or_has_no_such_column():
    _, told = read(
        "time;kwh\n2025-11-07 12:00:00Z;1.234\n2025-11-07 13:00:00Z;1,5\n2025-11-07 14:00:00Z;1.5\n"
    )
    assert len(told.faults) == 3
    with pytest.raises(OuvrageError) as refused:
        read("day,what\n1,2\n")
    assert refused.value.code == "plug/form"
    named, _ = read(
        "when,n\n2025-11-07T12:00:00Z,7\n", time_column="when", counter_column="n", unit="Wh"
    )
    assert named.readings[0].counter_j == 25_200


def test_minutes_of_an_energy_meter_and_sampled_power_by_the_hour():
    rows = [f"{NOON + 60 * i},10,20,30" for i in range(90)]
    head = "timestamp,a_total_act_energy,b_total_act_energy,c_total_act_energy"
    series, told = read("\n".join([head, *rows, rows[0], f"{NOON},x,1,1"]))
    assert len(told.faults) == 1
    hours = by_hour(METER, series.pieces, [], "stated", told)
    assert [(h.value.energy_j, h.value.covered_us, h.valid_to) for h in hours] == [
        (60 * 60 * 3600, HOUR, (NOON + 3600) * 10**6),
        (30 * 60 * 3600, HOUR // 2, (NOON + 5400) * 10**6),
    ]
    later = by_hour(METER, series.pieces[60:], hours, "stated", told)
    assert later == hours[1:]
    first = by_hour(METER, series.pieces[:75], [], "stated", told)
    rest = by_hour(METER, series.pieces[75:], first, "stated", told)
    assert rest == hours[1:]


def reading(minute: int, joules: int, since: str | None = None) -> Reading:
    told = Told(form="plug", file="p")
    return Reading(
        at_us=minute * MINUTE, counter_j=joules, since=since, place=str(minute), told=told
    )


def faults(row: Reading) -> list[Fault]:
    return row.told.faults if row.told else []


def test_a_step_back_is_a_gap_that_is_told_by_line():
    rows = [reading(0, 100), reading(10, 500), reading(20, 50), reading(30, 80)]
    points = kept(rows)
    assert [f.line for row in rows for f in faults(row)] == [
        "p:20   counter: found '0.00001 kWh after 0.00014 kWh', "
        "expected a counter that rises as a plug's can: it fell; this step counts as a gap"
    ]
    used = used_between(METER, points, Grade.MEASURED)
    assert [(u.value.energy_j, u.value.covered_us // MINUTE) for u in used] == [
        (400, 10),
        (0, 0),
        (30, 10),
    ]


def test_a_counter_that_says_it_was_set_back_is_no_fault_and_a_jump_is():
    rows = [reading(0, 100, "a"), reading(10, 500, "b"), reading(11, 500 + 100_001 * 60, "b")]
    used = used_between(METER, kept(rows), Grade.MEASURED)
    assert [u.value.covered_us for u in used] == [0, 0]
    assert [len(faults(row)) for row in rows] == [0, 0, 1]


def test_two_counts_of_one_moment():
    rows = [reading(0, 100), reading(0, 101), reading(0, 100)]
    assert len(kept(rows)) == 1 and len(faults(rows[1])) == 1
    assert agreeing([reading(0, 99)], {0: 100}) == []


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_order_files_come_in_the_energy_is_the_same(data: st.DataObject):
    minutes = sorted(data.draw(st.sets(st.integers(0, 400), min_size=2, max_size=12)))
    counts = [data.draw(st.integers(0, 3000)) for _ in minutes]
    rows = [reading(m, c) for m, c in zip(minutes, counts, strict=True)]
    cuts = [data.draw(st.integers(0, 2)) for _ in rows]
    files = [[r for r, c in zip(rows, cuts, strict=True) if c == i] for i in range(3)]
    books: set[str] = set()
    for order in itertools.permutations(files):
        known: dict[int, Reading] = {}
        for file in order:
            known |= {each.at_us: each for each in kept(file)}
        used = used_between(METER, [known[k] for k in sorted(known)], Grade.MEASURED)
        books.add(repr([(u.natural, u.value.energy_j, u.value.covered_us) for u in used]))
    assert len(books) == 1


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80) | st.binary(max_size=60).map(lambda b: b.decode("latin-1")))
def test_any_text_is_read_or_refused(text: str):
    with suppress(OuvrageError):
        series, _ = read(text)
        found: list[Stated] = used_between(METER, kept(series.readings), Grade.MEASURED)
        assert all(each.value.energy_j >= 0 for each in found)
