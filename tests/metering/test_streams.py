"""Which stream of marks is counted, and when several processes mark the same units."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.metering.launchers import launcher_of
from ouvrage.metering.recognise import Recogniser
from ouvrage.metering.units import Units, units_of
from tests.support.runs import Line, busy, end, header, marks, view_of

TORCHRUN = ["torchrun", "--nproc-per-node", "2", "train.py"]
Times = Sequence[float | None]


def counted(*lines: Line, unit: str | None = None, command: Sequence[str] = ("x",)) -> Units:
    head = header(unit=unit, command=list(command))
    return units_of(view_of(head, *busy(60), *lines, end(60)))


def code(pid: int, *times: float, name: str = "epoch") -> Line:
    return marks(*(("count", 1, t) for t in times), name=name, via="code", pid=pid)


def printed(*series: Times, via: str = "line", name: str = "epoch") -> Line:
    rows = [("end", n, t) for times in series for n, t in enumerate(times, 1)]
    return marks(*rows, via=via, name=name)


class TestChoice:
    def test_the_coarsest_of_which_two_finished_is_counted_and_the_rest_is_told(self) -> None:
        steps = marks(("count", 300, 9), name="iteration", via="line:tqdm")
        units = counted(printed([2, 4, 6]), steps)
        assert (units.name, units.finished) == ("epoch", 3)
        assert any("left aside: iteration (tqdm): 300" in hint for hint in units.hints)
        assert any("--unit iteration counts another" in hint for hint in units.hints)

    def test_one_epoch_is_not_enough_to_prefer_it(self) -> None:
        steps = marks(("count", 300, 9), name="iteration", via="line:tqdm")
        assert counted(printed([2]), steps).name == "iteration"

    def test_a_stray_bar_does_not_win_over_a_hundred_epochs(self) -> None:
        bar = marks(("count", 4, 1), name="iteration", via="line:tqdm")
        assert counted(printed(list(range(1, 51))), bar).finished == 50

    def test_of_one_name_the_fullest_stream_is_counted(self) -> None:
        rows = printed([1, 2, 3], via="line:transformers")
        units = counted(printed([5, 9]), rows)
        assert (units.finished, units.how) == (3, "lines as transformers prints them")

    @pytest.mark.parametrize("asked", ["iteration", "iterations", "Iteration", "step", "it"])
    def test_the_unit_asked_for_is_counted(self, asked: str) -> None:
        steps = marks(("count", 300, 9), name="iteration", via="line:tqdm")
        units = counted(printed([2, 4, 6]), steps, unit=asked)
        assert (units.name, units.finished) == ("iteration", 300)
        assert not any("no " in hint and "was marked" in hint for hint in units.hints)

    def test_work_that_only_began_is_no_stream(self) -> None:
        begun = marks(("count", 0, 1), name="iteration", via="line:tqdm")
        units = counted(printed([2, 4]), begun)
        assert not any("left aside" in hint for hint in units.hints)
        assert counted(begun).is_command

    def test_a_count_is_timed_from_where_work_began(self) -> None:
        units = counted(marks(("count", 0, 2), ("count", 10, 7), via="line:tqdm"))
        assert [(lap.count, lap.to_us - lap.from_us) for lap in units.laps] == [(10, 5_000_000)]
        assert units.first_us == 2_000_000

    def test_a_first_number_beyond_one_is_told(self) -> None:
        hints = counted(marks(("end", 7, 1), ("end", 8, 2))).hints
        assert "the first epoch that was seen is number 7; none before it is counted" in hints
        assert not any("first epoch" in hint for hint in counted(printed([1, 2])).hints)

    def test_a_head_that_begins_a_new_series_ends_nothing_that_had_ended(self) -> None:
        rows = [("head", 1, 1), ("end", 1, 2), ("head", 2, 3), ("end", 2, 4)]
        again = [(mark, n, t + 4) for mark, n, t in rows]
        assert counted(marks(*rows, *again)).finished == 4


class TestLaunchers:
    @pytest.mark.parametrize(
        ("command", "launcher"),
        [
            (TORCHRUN, "torchrun"),
            (["/opt/venv/bin/torchrun", "train.py"], "torchrun"),
            (["accelerate", "launch", "train.py"], "accelerate"),
            (["python", "-m", "torch.distributed.run", "train.py"], "torch.distributed.run"),
            (["mpirun", "-np", "4", "python", "train.py"], "mpirun"),
            (["sh", "-c", "cd x && srun -n 4 python train.py"], "srun"),
            (["accelerate", "config"], None),
            (["python", "train.py"], None),
            ([], None),
        ],
    )
    def test_they_are_known_by_name(self, command: list[str], launcher: str | None) -> None:
        assert launcher_of(command) == launcher


class TestCode:
    def test_ranks_in_step_mark_the_same_units(self) -> None:
        units = counted(code(8, 2.1, 4.0, 6.2), code(7, 2, 4.2, 6), command=TORCHRUN)
        assert units.finished == 3
        assert any("2 ranks of torchrun marked the same epochs" in hint for hint in units.hints)

    def test_a_rank_may_be_one_behind_when_it_ends(self) -> None:
        units = counted(code(7, 2, 4, 6), code(8, 2.1, 4.1), command=TORCHRUN)
        assert units.finished == 3

    def test_ranks_that_share_out_the_work_each_count(self) -> None:
        units = counted(code(7, 2, 4, 6), code(8, 1, 1.5, 3), command=TORCHRUN)
        assert units.finished == 6

    def test_without_a_launcher_two_that_keep_pace_each_count(self) -> None:
        assert counted(code(7, 2, 4, 6), code(8, 2, 4, 6)).finished == 6


class TestLines:
    def test_a_series_out_of_another_ranks_buffer_is_a_copy(self) -> None:
        units = counted(printed([2, 4, 6], [None, None, None]), command=TORCHRUN)
        assert units.finished == 3
        assert any("1 more ranks of torchrun printed" in hint for hint in units.hints)

    def test_all_from_buffers_is_counted_once(self) -> None:
        lines = printed([None] * 3, [None] * 3, [None] * 3, [None] * 3)
        assert counted(lines, command=TORCHRUN).finished == 3

    def test_a_second_training_takes_its_time_and_counts(self) -> None:
        assert counted(printed([2, 4, 6], [8, 10, 12]), command=TORCHRUN).finished == 6

    def test_without_a_launcher_every_series_counts(self) -> None:
        assert counted(printed([2, 4, 6], [None] * 3)).finished == 6

    @settings(deadline=None)
    @given(st.integers(1, 6), st.integers(2, 9), st.randoms())
    def test_ranks_interleaved_within_an_epoch_are_one(self, ranks, epochs, chance) -> None:
        """Whoever prints first: every rank prints an epoch before any prints the next."""
        recogniser = Recogniser(None, None)
        found = []
        for epoch in range(1, epochs + 1):
            for rank in chance.sample(range(ranks), ranks):
                line = f"Epoch {epoch}/{epochs} loss {rank}.5\n".encode()
                found += recogniser.feed("stdout", line, epoch * 1_000_000 + rank)
        rows = [(m.mark, m.n, None if m.t is None else m.t / 1e6) for m in found]
        assert counted(marks(*rows), command=TORCHRUN).finished == epochs

    @pytest.mark.parametrize(
        "shape", ["[rank{}]: ", "[default{}]:", "[1,{}]<stdout>:", "[x@1,{}]<stderr>: "]
    )
    def test_ranks_that_are_named_are_one_however_far_apart(self, shape: str) -> None:
        recogniser = Recogniser(None, None)
        found = []
        for rank in (0, 2, 1):
            for epoch in range(1, 6):
                line = (shape.format(rank) + f"Epoch {epoch}/5 loss 0.5\n").encode()
                found += recogniser.feed("stdout", line, (rank * 9 + epoch) * 1_000_000)
        assert [(m.mark, m.n) for m in found] == [("end", n) for n in range(1, 6)]
        assert recogniser.notes() == [
            ("unit/ranks", "epoch: 3 ranks print the same; rank 0 is counted")
        ]
