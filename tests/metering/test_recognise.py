"""Which lines mark which units, whatever the bytes and wherever they are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.metering.recognise import LONGEST_LINE, Mark, Recogniser, compile_unit_regex

Short = tuple[str, int, int | None]


def short(found: list[Mark]) -> list[Short]:
    return [(mark.mark, mark.n, mark.t) for mark in found]


def marked(
    text: str | bytes, unit: str | None = None, regex: str | None = None
) -> list[tuple[str, int]]:
    """The marks of a text that came in one read, without their moments."""
    recogniser = Recogniser(unit, regex)
    data = text if isinstance(text, bytes) else text.encode()
    found = recogniser.feed("stdout", data, 1) + recogniser.flush(2)
    return [(mark.mark, mark.n) for mark in found]


ONE_LINE = [
    # text after the number ends the unit; the line alone heads it
    ("Epoch 3/10 loss=0.21", ("end", 3)),
    ("Epoch 3/10", ("head", 3)),
    ("Epoch 3", ("head", 3)),
    ("Epoch 3/10:", ("head", 3)),
    ("Epoch 3/10 ...", ("head", 3)),
    ("Epoch 3/10 started", ("head", 3)),
    ("epoch [3/10] loss 0.2", ("end", 3)),
    ("Epoch: 3, loss: 0.2", ("end", 3)),
    ("Epoch: [3][  0/391]  Time 0.5", ("head", 3)),
    ("EPOCH 03 of 10 | acc 0.9", ("end", 3)),
    ("Epoch #3 took 4.5 s", ("end", 3)),
    ("Epoch 0/24", ("head", 0)),
    ("Epoch 00003: val_loss improved from inf to 0.2, saving model", ("end", 3)),
    ("Epoch 3/10 終了", ("end", 3)),
    # decoration and log prefixes
    ("=== Epoch 3/10 ===", ("head", 3)),
    ("---- epoch 3 ----", ("head", 3)),
    ("\x1b[1mEpoch 3/10\x1b[0m \x1b[32mloss 1\x1b[0m", ("end", 3)),
    ("2026-11-30 14:05:09,123 INFO Epoch 3/10 loss=0.2", ("end", 3)),
    ("2026-11-30T14:05:09Z Epoch 3/10 loss=0.2", ("end", 3)),
    ("14:05:09 Epoch 3/10 loss=0.2", ("end", 3)),
    ("INFO:root:Epoch 3/10 loss=0.2", ("end", 3)),
    ("[2026-11-30 14:05:09] [INFO] Epoch 3", ("head", 3)),
    ("2026-11-30 14:05:09,123 - trainer - INFO - Epoch 3 loss 2", ("end", 3)),
    ("[rank0] Epoch 3/10 loss=0.2", ("end", 3)),
    # progress inside a unit heads it, and ends it at its last step
    ("[Epoch 3/200] [Batch 1/938] [D loss: 0.7]", ("head", 3)),
    ("[Epoch 3/200] [Batch 938/938] [D loss: 0.7]", ("end", 3)),
    ("Epoch [3/5], Step [100/600], Loss: 0.2", ("head", 3)),
    ("Epoch [3/5], Step [600/600], Loss: 0.2", ("end", 3)),
    ("Epoch 3, iter 500, loss 0.2", ("head", 3)),
    ("Train Epoch: 3 [0/60000 (0%)]\tLoss: 2.3", ("head", 3)),
    ("Epoch 3:  45%|████▌     | 45/100 [00:03<00:04, 12.1it/s]", ("head", 3)),
    ("Epoch 3: 100%|██████████| 100/100 [00:08<00:00, 12.1it/s]", ("end", 3)),
    ("Epoch 3: 100%|█████████▉| 399/400 [00:08<00:00, 12.1it/s]", ("head", 3)),
]


@pytest.mark.parametrize(("line", "expected"), ONE_LINE, ids=[line for line, _ in ONE_LINE])
def test_a_line_marks_one_unit(line: str, expected: tuple[str, int]) -> None:
    assert marked(line + "\n") == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "Epochs: 10",
        "epochs=10 lr=0.1",
        "Epoch 3.5 of the run",
        "{'loss': 0.2, 'epoch': 0.5}",
        "the Epoch 3/10 of my life",
        "saved epoch_3.pt",
        "epoch3.ckpt saved",
        "Epoch three",
        "Epoch",
        "Step 3/10 loss 0.2",
        "Epoch 3k",
        "Epoch 1,234",
        "",
    ],
)
def test_other_lines_mark_nothing(line: str) -> None:
    assert marked(line + "\n") == []


def test_keras_heads_each_unit_and_its_bars_are_not_units() -> None:
    text = "Epoch 1/3\n 1/2 [==>...] - ETA: 1s\r 2/2 [====] - loss: 0.2\nEpoch 2/3\n"
    assert marked(text) == [("head", 1), ("head", 2)]


def test_a_bar_redrawn_is_one_unit() -> None:
    bars = "".join(f"\rEpoch 0: {p:3}%|███  | {p}/100 [00:01<00:02]" for p in range(101))
    again = "\rEpoch 0: 100%|█████| 100/100 [00:01<00:00, val=1]\n"
    assert marked(bars + again) == [("head", 0), ("end", 0)]


def test_a_unit_is_not_ended_twice() -> None:
    text = "Epoch 1/2 train 0.3\nEpoch 1/2 val 0.4\nEpoch 2/2 train 0.2\nEpoch 2/2 val 0.3\n"
    assert marked(text) == [("end", 1), ("end", 2)]


def test_a_line_about_the_unit_before_does_not_end_the_open_one() -> None:
    text = "Epoch 1/3\nEpoch 2/3\nEpoch 1/3 best so far 0.2\nEpoch 2/3 loss 0.1\n"
    assert marked(text) == [("head", 1), ("head", 2), ("end", 2)]


def test_bars_of_two_series_side_by_side_do_not_restart_each_other() -> None:
    lines = [f"Epoch {n}: {p:3}%| {p}/100 [..]\n" for p in range(10, 90, 10) for n in (2, 1)]
    assert marked("".join(lines)) == [("head", 2)]


def test_a_second_training_begins_again_at_one() -> None:
    text = "Epoch 1/2 a\nEpoch 2/2 a\nEpoch 1/2 a\nEpoch 2/2 a\n"
    assert marked(text) == [("end", 1), ("end", 2), ("end", 1), ("end", 2)]


def test_fits_of_one_epoch_each_are_units_of_their_own() -> None:
    assert marked("Epoch 1/1\nx\nEpoch 1/1\nx\n") == [("head", 1), ("head", 1)]


def test_another_word_may_be_the_unit() -> None:
    found = Recogniser("step", None).feed("stdout", b"Step 3/10 loss\nEpoch 1 x\n", 1)
    assert [(m.name, m.mark, m.n) for m in found] == [("step", "end", 3), ("epoch", "end", 1)]


class TestRegex:
    def test_each_match_ends_a_unit_and_a_group_numbers_it(self) -> None:
        assert marked("step 1\nx\nstep 2\n", regex=r"^step (\d+)") == [("end", 1), ("end", 2)]

    def test_the_group_called_n_wins(self) -> None:
        found = marked("loss 7 at step 2\n", regex=r"loss (\d+) at step (?P<n>\d+)")
        assert found == [("end", 2)]

    @pytest.mark.parametrize("regex", ["frame done", "(frame) done", "frame(\\d+)? done"])
    def test_without_a_number_each_match_counts(self, regex: str) -> None:
        assert marked("frame done\nframe done\n", regex=regex) == [("count", 1), ("count", 1)]

    def test_a_number_that_repeats_is_one_unit(self) -> None:
        assert marked("step 1\nstep 1\n", regex=r"step (\d+)") == [("end", 1)]

    def test_the_names(self) -> None:
        assert Recogniser(None, "x").feed("stdout", b"x\n", 5) == [
            Mark("unit", "regex", "count", 1, 5)
        ]
        assert Recogniser("image", "x").feed("stdout", b"x\n", 5)[0].name == "image"

    @pytest.mark.parametrize("bad", ["(", "[a", "a{2,1}", "(?P<n>", "*"])
    def test_one_that_does_not_compile_is_refused(self, bad: str) -> None:
        with pytest.raises(OuvrageError) as refused:
            compile_unit_regex(bad)
        assert refused.value.code == "unit/regex"
        assert refused.value.hint


class TestMoments:
    def test_a_line_has_the_moment_of_the_read_that_completed_it(self) -> None:
        recogniser = Recogniser(None, None)
        assert recogniser.feed("stdout", b"Epoch 1 lo", 10) == []
        assert short(recogniser.feed("stdout", b"ss\n", 20)) == [("end", 1, 20)]

    def test_several_units_in_one_read_have_none(self) -> None:
        found = Recogniser(None, None).feed("stdout", b"Epoch 1 a\nEpoch 2 a\n", 10)
        assert short(found) == [("end", 1, None), ("end", 2, None)]

    def test_an_end_and_the_next_head_are_one_moment(self) -> None:
        recogniser = Recogniser(None, None)
        recogniser.feed("stdout", b"Epoch 1/2\n", 10)
        found = recogniser.feed("stdout", b"Epoch 1/2 loss 1\nEpoch 2/2\n", 20)
        assert short(found) == [("end", 1, 20), ("head", 2, 20)]

    def test_a_whole_unit_in_one_read_has_none(self) -> None:
        found = Recogniser(None, None).feed("stdout", b"Epoch 1/2\nEpoch 1/2 loss 1\n", 20)
        assert short(found) == [("head", 1, None), ("end", 1, None)]

    def test_a_full_buffer_that_breaks_off_in_a_line_has_none(self) -> None:
        data = b"Epoch 1 loss\n".ljust(8192, b"x")
        assert short(Recogniser(None, None).feed("stdout", data, 20)) == [("end", 1, None)]

    def test_a_last_line_without_a_break_counts_when_the_stream_closes(self) -> None:
        recogniser = Recogniser(None, None)
        assert recogniser.feed("stdout", b"Epoch 1 loss", 10) == []
        assert short(recogniser.flush(30)) == [("end", 1, 30)]
        assert recogniser.flush(40) == []

    def test_streams_do_not_mix(self) -> None:
        recogniser = Recogniser(None, None)
        recogniser.feed("stdout", b"Epoch 1 ", 1)
        assert recogniser.feed("stderr", b"noise\n", 2) == []
        assert short(recogniser.feed("stdout", b"loss\n", 3)) == [("end", 1, 3)]


LINES = st.sampled_from(
    [
        *(line.encode() for line, _ in ONE_LINE),
        b"Epoch 1/2 x",
        b"Epoch 2/2",
        b"noise",
        b"",
        b"Epoch 4 " + b"y" * (LONGEST_LINE + 10),
        b"z" * LONGEST_LINE + b"Epoch 5 x",
        b"\xff\xfe Epoch 3 \x00",
    ]
)
OUTPUT = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"]))).map(
    lambda rows: b"".join(line + end for line, end in rows)
)


@given(OUTPUT, st.lists(st.integers(0, 20_000)), st.sampled_from([None, r"poch (\d+)"]))
def test_where_the_bytes_are_cut_changes_no_count(
    data: bytes, cuts: list[int], regex: str | None
) -> None:
    recogniser = Recogniser(None, regex)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    found: list[Mark] = []
    for t, (start, end) in enumerate(pairwise(edges)):
        found += recogniser.feed("stdout", data[start:end], t)
    found += recogniser.flush(len(edges))
    assert [(mark.mark, mark.n) for mark in found] == marked(data, regex=regex)


@given(
    st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=300))),
    st.sampled_from([None, "epoch", "é", "a b"]),
    st.sampled_from([None, ".", r"(\d+)", "(?P<n>.)?"]),
)
def test_no_bytes_make_it_raise(
    reads: list[tuple[str, bytes]], unit: str | None, regex: str | None
) -> None:
    recogniser = Recogniser(unit, regex)
    for t, (stream, data) in enumerate(reads):
        for mark in recogniser.feed(stream, data, t):
            assert mark.t is None or 0 <= mark.t <= t
            assert mark.n >= 0
    recogniser.flush(len(reads))


def test_a_line_without_end_is_not_kept() -> None:
    recogniser = Recogniser(None, None)
    for t in range(100):
        recogniser.feed("stdout", b"x" * 4000, t)
    assert sum(len(carry) for carry in recogniser._carry.values()) <= LONGEST_LINE
