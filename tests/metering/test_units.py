"""Which units finish, which of them are timed, and what is said about the others."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.metering.phases import phases_of, warmup_laps
from ouvrage.metering.units import Units, units_of
from tests.support.runs import Line, S, busy, end, ends, header, marks, spans, view_of

Row = tuple[str, int, float | None]


def counted(*lines: Line, exit_code: int = 0, unit: str | None = None) -> Units:
    return units_of(view_of(header(unit=unit), *busy(60), *lines, end(60, exit_code)))


def laps(units: Units) -> list[tuple[int, float]]:
    """Each lap as how many units and how many seconds one took."""
    return [(lap.count, float(lap.per_unit_us / S)) for lap in units.laps]


CASES: list[tuple[str, list[Row], int, list[tuple[int, float]]]] = [
    ("ends, the first not timed", [("end", 1, 5), ("end", 2, 9), ("end", 3, 13)], 3,
     [(1, 4), (1, 4)]),
    ("heads and ends", [("head", 1, 2), ("end", 1, 6), ("head", 2, 7), ("end", 2, 11)], 2,
     [(1, 4), (1, 4)]),
    ("heads alone, the last ends by exit", [("head", 1, 2), ("head", 2, 6), ("head", 3, 10)], 3,
     [(1, 4), (1, 4)]),
    ("came together", [("end", 1, None), ("end", 2, None)], 2, []),
    ("one read of two between", [("end", 1, 5), ("end", 2, None), ("end", 3, None), ("end", 4, 9),
     ("end", 5, 12)], 5, [(1, 3)]),
    ("counts", [("count", 1, 2), ("count", 1, 4), ("count", 4, 8)], 6, [(1, 2), (4, 1)]),
    ("a line every ten", [("end", 10, 5), ("end", 20, 15), ("end", 30, 25)], 30,
     [(10, 1), (10, 1)]),
    ("a line every ten from nought", [("end", 0, 1), ("end", 10, 11)], 11, [(10, 1)]),
    ("resumed at ten", [("end", 10, 5), ("end", 11, 6)], 2, [(1, 1)]),
    ("a second training", [("end", 1, 1), ("end", 2, 2), ("end", 1, 4), ("end", 2, 5)], 4,
     [(1, 1), (1, 2), (1, 1)]),
    ("a second training, headed", [("head", 1, 0.5), ("head", 2, 2), ("head", 1, 4),
     ("head", 2, 5)], 4, [(1, 1.5), (1, 2), (1, 1)]),
    ("a step back", [("end", 4, 1), ("end", 5, 2), ("end", 4, 3), ("end", 6, 4)], 3,
     [(1, 1), (1, 2)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "finished", "timed"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_units_and_laps(rows: list[Row], finished: int, timed: list[tuple[int, float]]) -> None:
    units = counted(marks(*rows))
    assert units.finished == finished
    assert laps(units) == timed
    assert units.untimed == finished - sum(count for count, _ in timed)


def test_the_last_headed_unit_is_finished_on_exit_0_only() -> None:
    heads = marks(("head", 1, 2), ("head", 2, 6))
    assert counted(heads).finished == 2
    assert counted(heads, exit_code=1).finished == 1
    lost = units_of(view_of(header(), *busy(60), heads))
    assert lost.finished == 1


def test_units_from_a_buffer_come_with_the_hint() -> None:
    units = counted(marks(("end", 1, None), ("end", 2, None)))
    assert "python -u" in units.hints[0]


def test_steps_back_and_new_series_are_said() -> None:
    back = counted(marks(("end", 4, 1), ("end", 5, 2), ("end", 4, 3)))
    assert any("stepped back" in hint for hint in back.hints)
    anew = counted(marks(("end", 1, 1), ("end", 2, 2), ("end", 1, 3)))
    assert any("began anew 1 times" in hint for hint in anew.hints)


class TestSources:
    def test_code_wins_over_regex_over_lines(self) -> None:
        code = marks(("count", 1, 3), via="code", pid=7)
        regex = marks(("count", 1, 3), ("count", 1, 4), via="regex")
        line = ends(1, 2, 3)
        assert counted(line, regex, code).finished == 1
        assert counted(line, regex).finished == 2
        units = counted(line, code)
        assert units.via == "code"
        assert any("left aside: epoch (line)" in hint for hint in units.hints)

    def test_names_with_numbers_in_them_are_told_as_a_mistake(self) -> None:
        names = [marks(("count", 1, n), name=f"epoch {n}", via="code", pid=7) for n in range(1, 99)]
        hints = counted(*names).hints
        assert any("and 93 more" in hint for hint in hints)
        assert any("give units one name" in hint for hint in hints)

    def test_the_name_asked_for_wins(self) -> None:
        batch = marks(("count", 1, 3), name="batch", via="code", pid=7)
        assert counted(ends(1, 2), batch, unit="epoch").name == "epoch"
        other = counted(batch, unit="epoch")
        assert other.name == "batch"
        assert any("no epoch was marked" in hint for hint in other.hints)

    def test_of_nested_names_the_coarser_counts(self) -> None:
        batch = marks(*(("count", 1, t) for t in range(1, 9)), name="batch", via="code", pid=7)
        epoch = marks(("count", 1, 4), ("count", 1, 8), name="epoch", via="code", pid=7)
        once = marks(("count", 1, 1), name="setup", via="code", pid=7)
        assert counted(batch, epoch, once).name == "epoch"

    def test_marks_of_several_processes_are_merged_by_time(self) -> None:
        one = marks(("count", 1, 1), ("count", 1, 3), via="code", pid=7)
        two = marks(("count", 1, 2), ("count", 1, 4), via="code", pid=8)
        units = counted(one, two)
        assert laps(units) == [(1, 1), (1, 1), (1, 1)]
        assert any("2 processes" in hint for hint in units.hints)


class TestCommand:
    def test_it_is_the_unit_where_none_was_marked(self) -> None:
        units = counted()
        assert (units.name, units.finished, laps(units)) == ("command", 1, [(1, 60)])
        assert "no unit was found" in units.hints[0]

    def test_it_counts_only_when_it_exits_with_0(self) -> None:
        units = counted(exit_code=1)
        assert (units.finished, units.laps) == (0, ())
        assert counted(exit_code=1, unit="epoch").name == "epoch"


class TestPhases:
    def phases(self, *lines: Line) -> dict[str, int | None]:
        view = view_of(header(), *busy(60), *lines, end(60))
        return phases_of(view, units_of(view)).lengths()

    def test_heads_begin_the_first_unit(self) -> None:
        rows: list[Row] = [("head", n, 2 + 4 * n) for n in range(1, 8)]
        assert self.phases(marks(*rows)) == {
            "startup": 6 * S, "warmup": 4 * S, "steady": 20 * S, "rest": 30 * S,
        }  # fmt: skip

    def test_ends_alone_leave_the_first_unit_in_the_start_up(self) -> None:
        assert self.phases(ends(10, 14, 18, 22)) == {
            "startup": 10 * S, "warmup": 0, "steady": 12 * S, "rest": 38 * S,
        }  # fmt: skip

    def test_spans_tell_where_the_first_unit_began(self) -> None:
        assert self.phases(ends(10, 14, 18, 22), spans(3, 4, data=1)) == {
            "startup": 3 * S, "warmup": 7 * S, "steady": 12 * S, "rest": 38 * S,
        }  # fmt: skip

    def test_a_command_is_steady_throughout(self) -> None:
        assert self.phases() == {"startup": 0, "warmup": 0, "steady": 60 * S, "rest": 0}

    def test_units_without_moments_leave_the_phases_unknown(self) -> None:
        assert set(self.phases(marks(("end", 1, None), ("end", 2, None))).values()) == {None}

    @pytest.mark.parametrize(
        ("seconds", "skipped"),
        [
            ([4, 4], 0),  # too few to say
            ([4, 4, 4], 1),  # the first of three
            ([9, 4, 4, 4], 1),
            ([9, 8, 4, 4, 4, 4], 2),  # 8 > 1.25 x 4
            ([9, 5, 4, 4, 4, 4], 1),  # 5 is not more than 1.25 x 4
            ([9, 8, 7, 4, 4, 4], 2),  # at most a third
        ],
    )
    def test_warm_up(self, seconds: list[float], skipped: int) -> None:
        at, rows = 1.0, [("head", 1, 1.0)]
        for n, took in enumerate(seconds, 1):
            at += took
            rows.append(("head", n + 1, at))
        view = view_of(header(), *busy(60), marks(*rows), end(60, 1))
        assert warmup_laps(units_of(view)) == skipped

    def test_a_first_unit_that_could_not_be_timed_is_warm_up_enough(self) -> None:
        view = view_of(header(), *busy(60), ends(10, 14, 18, 22), end(60))
        assert warmup_laps(units_of(view)) == 0


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["head", "end", "count"]),
        st.integers(0, 12),
        st.one_of(st.none(), st.integers(0, 60)),
    ),
    max_size=30,
)


@given(ROWS, st.sampled_from([0, 1]))
def test_whatever_the_marks_units_and_phases_add_up(rows: list[Row], exit_code: int) -> None:
    view = view_of(header(), *busy(60), marks(*rows), end(60, exit_code))
    units = units_of(view)
    assert units.finished == units.untimed + sum(lap.count for lap in units.laps)
    assert all(lap.per_unit_us > Fraction(0) for lap in units.laps)
    lengths = phases_of(view, units).lengths().values()
    known = [length for length in lengths if length is not None]
    assert all(length >= 0 for length in known)
    assert len(known) < 4 or sum(known) == 60 * S
