"""Spools: what is read, what is refused, and which facts follow."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.ledger.kinds import read
from ouvrage.metering.span_reports import merged_spans
from ouvrage.metering.spool import WINDOW_US, facts_of, read_spool
from ouvrage.model.runs import RunEnded, RunSamples, RunStarted, RunWindow
from tests.support.runs import (
    CHEAP,
    RUN,
    SOURCE,
    STARTED,
    Line,
    S,
    busy,
    end,
    ends,
    header,
    marks,
    recorded,
    samples,
    spans,
    written,
)

SEALED = RunSamples(run=RUN, sha256="0" * 64, size_bytes=1, samples=1)


def windows(*lines: Line) -> list[RunWindow]:
    values = [read(entry.fact) for entry in recorded(written(header(), *lines))]
    return [value for value in values if isinstance(value, RunWindow)]


def ended(*lines: Line) -> RunEnded:
    values = [read(entry.fact) for entry in recorded(written(header(), *lines))]
    (found,) = [value for value in values if isinstance(value, RunEnded)]
    return found


def test_a_run_as_facts() -> None:
    text = written(header(price=CHEAP), *busy(25), ends(5, 10), spans(1, 2, data=0.5), end(25))
    facts = facts_of(read_spool(text), sealed=SEALED)
    assert [fact.id.removeprefix(RUN) for fact in facts] == [
        "/start", "/window/0", "/window/1", "/window/2", "/marks/0", "/spans/0", "/samples", "/end",
    ]  # fmt: skip
    assert {fact.source for fact in facts} == {SOURCE}
    assert {fact.subject for fact in facts} == {RUN}
    assert {fact.grade for fact in facts} == {Grade.MEASURED}
    assert (facts[2].valid_from, facts[2].valid_to) == (STARTED + 10 * S, STARTED + 20 * S)
    started = read(facts[0])
    assert isinstance(started, RunStarted)
    assert started.price is not None
    assert started.price.text() == "0.30 EUR/h"
    assert [fact.sha256 for fact in facts] == [
        fact.sha256 for fact in facts_of(read_spool(text), sealed=SEALED)
    ]


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        (end(3), "completed"),
        (end(3, 2), "failed"),
        (end(3, None, signal=9), "failed"),
        (end(3, 130, interrupted=True), "interrupted"),
        (end(3, 0, interrupted=True), "interrupted"),
    ],
)
def test_how_a_run_ended(line: Line, outcome: str) -> None:
    assert ended(*busy(3), line).outcome == outcome


def test_without_an_end_it_is_lost_at_the_last_moment_known() -> None:
    lost = ended(*busy(20), ends(5, 20.5))
    assert (lost.outcome, lost.wall_us, lost.exit_code) == ("lost", 20_500_000, None)


@pytest.mark.parametrize("tail", ['{"k":"end","t":4', '{"k":"end","t":4\n', "\0\0\0\n"])
def test_a_torn_last_line_is_dropped_and_noted(tail: str) -> None:
    spool = read_spool([*written(header(), *busy(3)), tail])
    assert spool.outcome == "lost"
    assert spool.notes[0].startswith("spool/torn: ")


def test_a_whole_last_line_without_its_break_is_torn_too() -> None:
    text = written(header(), *busy(3), end(3))
    text[-1] = text[-1].rstrip("\n")
    assert read_spool(text).outcome == "lost"


def broken(number: int, **change: Any) -> list[str]:
    lines = [header(), *busy(3), ends(1), spans(0, 1, data=0.5), end(3)]
    lines[number] = lines[number] | change
    return [*written(*lines), "{}\n"]


@pytest.mark.parametrize(
    ("number", "change", "words"),
    [
        (0, {"v": 2}, "version 2"),
        (0, {"run": "xyz"}, "invalid literal"),
        (0, {"period_us": 0}, "period"),
        (0, {"price": {"amount": "NaN", "currency": "EUR", "per": "h"}}, "no plain decimal"),
        (0, {"price": {"amount": "1e9", "currency": "EUR", "per": "h"}}, "no plain decimal"),
        (0, {"price": {"amount": "1", "currency": "EUR", "per": "year"}}, "per 'year'"),
        (0, {"command": [7]}, "text was expected"),
        (1, {"t": [3, 2]}, "backwards"),
        (1, {"t": [1]}, "another length"),
        (1, {"c": {"cpu_user_us": [1.5, 2, 3, 4]}}, "no integer"),
        (1, {"c": {"cpu_user_us": [-1, 2, 3, 4]}}, "whole number"),
        (2, {"t": []}, "columns of"),
        (2, {"mark": ["start"]}, "unknown sort"),
        (2, {"via": "magic"}, "unknown sort"),
        (0, {"host": 7}, "object was expected"),
        (0, {"price": 7}, "object was expected"),
        (1, {"c": []}, "object was expected"),
        (3, {"spans": 7}, "not iterable"),
        (3, {"from": 9 * S}, "end before they begin"),
        (3, {"k": "run"}, "second header"),
    ],
)
def test_anything_else_broken_is_refused_with_its_line(
    number: int, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(OuvrageError, match=words) as refused:
        read_spool(broken(number, **change))
    assert refused.value.code == "spool/line"
    assert f"line {number + 1} " in refused.value.message


def test_an_empty_spool_and_one_without_a_header() -> None:
    with pytest.raises(OuvrageError) as refused:
        read_spool([])
    assert refused.value.code == "spool/empty"
    with pytest.raises(OuvrageError, match="no header"):
        read_spool(written(*busy(3)))


def test_lines_of_a_newer_meter_are_left_and_noted() -> None:
    spool = read_spool(written(header(), {"k": "hologram", "t": [1]}, end(3)))
    assert spool.notes == ("spool/unread: 1 lines of a kind not known here were left unread",)


def test_text_that_no_database_can_hold_is_escaped() -> None:
    spool = read_spool(written(header(label="a\0b", command=["\udc80"]), marks(name="\ud800")))
    assert spool.started.label == "a\\x00b"
    assert spool.started.command == ("\\udc80",)
    assert spool.marks[0].name == "\\ud800"


class TestWindows:
    def test_they_tile_the_run_and_add_up(self) -> None:
        found = windows(*busy(25, 0.5, read_bytes=100), end(25))
        assert [(w.from_us, w.to_us) for w in found] == [
            (0, 10 * S), (10 * S, 20 * S), (20 * S, 25 * S),
        ]  # fmt: skip
        assert [w.covered_us for w in found] == [10 * S, 10 * S, 5 * S]
        assert [w.cpu_user_us for w in found] == [5 * S, 5 * S, 2_500_000]
        assert [w.active_us for w in found] == [5 * S, 5 * S, 2_500_000]
        assert [w.read_bytes for w in found] == [1000, 1000, 500]
        assert found[0].host_busy_us is None

    def test_edges_are_the_first_sample_at_or_after_each_ten_seconds(self) -> None:
        late = [{"k": "samples", "t": [0, 9 * S, 11 * S, 19 * S, 21 * S, 24 * S], "c": {}}]
        assert [w.to_us for w in windows(*late, end(24))] == [11 * S, 21 * S, 24 * S]

    def test_a_sliver_at_the_end_joins_its_neighbour(self) -> None:
        assert [w.to_us for w in windows(*busy(20), end(20.2))] == [10 * S, 20_200_000]

    def test_active_time_is_reckoned_sample_by_sample(self) -> None:
        # two cores for one second, then none: one second of work, not two
        cpu = {"cpu_user_us": [0, 2 * S, 2 * S], "cpu_system_us": [0, 0, 0]}
        (window,) = windows({"k": "samples", "t": [0, S, 2 * S], "c": cpu}, end(2))
        assert window.active_us == S

    def test_a_gap_is_not_covered(self) -> None:
        cpu = {"cpu_user_us": [0, S, 5 * S, 6 * S], "cpu_system_us": [0, 0, 0, 0]}
        (window,) = windows({"k": "samples", "t": [0, S, 6 * S, 7 * S], "c": cpu}, end(7))
        assert window.covered_us == 2 * S
        assert window.active_us == 2 * S
        assert window.cpu_user_us == 6 * S  # the counter itself went on

    def test_two_periods_are_no_gap_yet(self) -> None:
        (window,) = windows({"k": "samples", "t": [0, 2 * S], "c": {}}, end(2))
        assert window.covered_us == 2 * S

    def test_a_counter_that_steps_back_is_unknown_there_and_only_there(self) -> None:
        def reset(t: int) -> int:
            return t if t < 5 * S else t - 5 * S

        found = windows(*busy(20, read_bytes=reset, write_bytes=3), end(20))
        assert [w.read_bytes for w in found] == [None, 10 * S]
        assert [w.write_bytes for w in found] == [30, 30]

    def test_a_missing_reading_at_an_edge_is_unknown(self) -> None:
        def missing(t: int) -> int | None:
            return None if t == 10 * S else t

        assert [w.read_bytes for w in windows(*busy(20, read_bytes=missing), end(20))] == [None] * 2

    def test_blocked_time_and_the_greatest_values(self) -> None:
        columns = {"blocked": [0, 1, 0, 2], "rss_bytes": [1, 9, None, 3]}
        (window,) = windows({"k": "samples", "t": [0, S, 2 * S, 3 * S], "c": columns}, end(3))
        assert (window.blocked_us, window.rss_max_bytes) == (2 * S, 9)

    def test_a_run_without_samples_is_one_uncovered_window(self) -> None:
        (window,) = windows(end(30))
        assert (window.covered_us, window.samples, window.cpu_user_us) == (0, 0, None)

    def test_a_run_of_no_time_has_no_window(self) -> None:
        assert windows(end(0)) == []


@given(
    st.lists(st.integers(0, 40 * S), max_size=60).map(sorted),
    st.integers(0, 45 * S),
    st.lists(st.one_of(st.none(), st.integers(0, 100 * S)), min_size=60, max_size=60),
)
def test_windows_always_tile_and_never_go_negative(
    times: list[int], wall: int, values: list[int | None]
) -> None:
    columns = {"cpu_user_us": values[: len(times)], "cpu_system_us": [0] * len(times)}
    found = windows({"k": "samples", "t": times, "c": columns}, end(wall / S) | {"t": wall})
    edges = [0, *(window.to_us for window in found)]
    assert [window.from_us for window in found] == edges[:-1]
    assert edges[-1] == wall
    for window in found:
        assert 0 <= window.covered_us <= window.to_us - window.from_us
        assert window.active_us is None or 0 <= window.active_us <= window.covered_us
        assert window.cpu_user_us is None or window.cpu_user_us >= 0


def test_reports_of_spans_are_merged_by_thread_and_window() -> None:
    spool = read_spool(
        written(
            header(),
            spans(1, 2, cpu=0.5, data=0.25),
            spans(2, 3, cpu=0.5, data=0.25, step=0.5),
            spans(3, 4, data=0.5) | {"tid": 8},
            spans(10, 11, data=0.5),
        )
    )
    first, other, later = merged_spans(spool.spans, WINDOW_US)
    assert (first.from_us, first.to_us, first.cpu_us) == (S, 3 * S, S)
    assert [(s.name, s.count, s.total_us) for s in first.spans] == [
        ("data", 2, 500_000),
        ("step", 1, 500_000),
    ]
    assert (other.tid, other.cpu_us, later.from_us) == (8, None, 10 * S)
    assert [first.index, other.index, later.index] == [0, 1, 2]


def test_samples_in_other_columns_later_are_unknown_before() -> None:
    text = written(
        header(),
        {"k": "samples", "t": [0], "c": {"cpu_user_us": [1]}},
        {"k": "samples", "t": [S], "c": {"read_bytes": [5]}},
    )
    columns = read_spool(text).columns
    assert columns.values == {"cpu_user_us": [1, None], "read_bytes": [None, 5]}


@given(st.text(), st.integers(0, 6))
def test_any_text_is_read_or_refused(noise: str, at: int) -> None:
    text = written(header(), *samples(3, cpu_user_us=1), ends(1), end(3))
    text.insert(at, noise)
    with suppress(OuvrageError):
        read_spool(text)
