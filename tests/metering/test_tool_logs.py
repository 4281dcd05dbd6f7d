"""What each tool prints, captured from it, gives exactly the marks and units that it meant."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.metering.recognise import Mark, Recogniser
from ouvrage.metering.recognisers.scan import clean, rules_for
from ouvrage.metering.streams import Stream, choose, streams_of
from ouvrage.metering.units import units_of
from tests.support.runs import Line, S, busy, end, header, view_of

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
EVERY = 2 * S
HEADS = "head 1, head 2, head 3"
ENDED = f"{HEADS}, end 3"
BOTH = "head 1, end 1, head 2, end 2, head 3, end 3"
FROM_0 = "head 0, end 0, head 1, end 1, head 2, end 2"

# log -> the unit that is counted, how many, and its marks; then every other stream's number
EXPECTED: dict[str, tuple[str, int, str, dict[str, int]]] = {
    "ultralytics-8.4": ("epoch", 3, ENDED, {}),
    "ultralytics-8.2": ("epoch", 3, ENDED, {}),
    "keras": ("epoch", 3, HEADS, {}),
    "keras-verbose-2": ("epoch", 3, HEADS, {}),
    "lightning-rich": ("epoch", 3, FROM_0, {}),
    "lightning-tqdm": ("epoch", 3, FROM_0, {}),
    "transformers": ("epoch", 3, "end 1, end 2, end 3", {"iteration": 24}),
    "transformers-steps": ("epoch", 3, "end 1, end 2, end 3", {"iteration": 24}),
    "tqdm": ("epoch", 3, "head 1, end 1, end 2, end 3", {"iteration": 29, "img": 40}),
    "deepspeed": ("step", 20, "end 5, end 10, end 15, end 20", {}),
    "nanogpt": ("iteration", 31, "end 0, end 10, end 20, end 30", {}),
    "ffmpeg": ("frame", 50, "count 50", {}),
    "ffmpeg-progress": ("frame", 30, "count 30", {}),
    "blender-4.5": ("frame", 3, BOTH, {}),
    "blender-5.2": ("frame", 2, "head 1, end 1, head 2, end 2", {}),
    "comfyui": ("prompt", 3, "count 3", {"iteration": 12}),
    "vllm-serve": ("request", 3, "count 3", {"token": 659}),
    "vllm-offline": ("request", 4, "count 4", {}),
    "llama.cpp": ("request", 2, "count 2", {"token": 49}),
    "llama.cpp-server": ("request", 2, "count 2", {"token": 94}),
}


def read(data: bytes, cuts: list[int] | None = None) -> list[Mark]:
    """The marks of an output: line by line, or cut where it is said; two seconds between reads."""
    recogniser = Recogniser(None, None)
    if cuts is None:
        pieces = data.splitlines(keepends=True)
    else:
        edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
        pieces = [data[start:stop] for start, stop in pairwise(edges)]
    found: list[Mark] = []
    for number, piece in enumerate(pieces, 1):
        found += recogniser.feed("stdout", piece, number * EVERY)
    return found + recogniser.flush((len(pieces) + 1) * EVERY)


def told(marks: list[Mark]) -> dict[tuple[str, str], str]:
    """Each stream's marks in words; counts are summed, since reads divide them as they come."""
    words: dict[tuple[str, str], list[str]] = {}
    sums: dict[tuple[str, str], int] = {}
    for mark in marks:
        key = (mark.name, mark.via)
        if mark.mark == "count":
            sums[key] = sums.get(key, 0) + mark.n
        else:
            words.setdefault(key, []).append(f"{mark.mark} {mark.n}")
    counts = {key: f"count {n}" for key, n in sums.items() if n}
    return {key: ", ".join(parts) for key, parts in words.items()} | counts


def as_lines(marks: list[Mark]) -> list[Line]:
    return [
        {"k": "marks", "name": m.name, "via": m.via, "pid": None}
        | {"mark": [m.mark], "n": [m.n], "t": [m.t]}
        for m in marks
    ]


def view(marks: list[Mark], **changes: Any):
    seconds = 2 + max((m.t or 0 for m in marks), default=0) // S
    return view_of(header(**changes), *busy(seconds), *as_lines(marks), end(seconds))


def log(name: str) -> bytes:
    return (LOGS / f"{name}.txt").read_bytes()


def test_every_log_is_expected_and_says_where_it_is_from() -> None:
    assert {path.stem for path in LOGS.glob("*.txt")} == EXPECTED.keys()
    for name in EXPECTED:
        about = json.loads((LOGS / f"{name}.json").read_text("utf-8"))
        assert about["tool"] and about["version"] and about["date"]
        assert bool(about["command"]) is about["seen_running"]
        assert about["seen_running"] or about["source"]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_tools_log_gives_its_marks_and_units(name: str) -> None:
    unit, number, words, others = EXPECTED[name]
    marks = read(log(name))
    run = view(marks)
    chosen = choose(streams_of(run), None)
    assert (chosen.name, chosen.count.finished) == (unit, number)
    assert told(marks)[chosen.name, chosen.via] == words
    rest = {s.name: s.count.finished for s in streams_of(run) if s.name != unit}
    assert rest == others
    assert units_of(run).finished == number


@pytest.mark.parametrize("name", EXPECTED)
def test_units_that_come_apart_are_timed(name: str) -> None:
    units = units_of(view(read(log(name))))
    assert units.laps, "no unit was timed"
    assert units.untimed <= max(2, units.finished // 3)


@pytest.mark.parametrize("name", EXPECTED)
def test_where_a_log_is_cut_changes_no_count(name: str) -> None:
    data = log(name)
    whole = told(read(data))
    chance = random.Random(name)
    for pieces in (0, 1, 7, 60):
        cuts = [chance.randrange(len(data)) for _ in range(pieces)]
        assert told(read(data, cuts)) == whole
    assert told(read(data, list(range(len(data))))) == whole


@pytest.mark.parametrize("name", EXPECTED)
def test_escapes_within_a_log_change_nothing(name: str) -> None:
    dressed = b"".join(
        b"\x1b[0m\x1b]0;title\x07" + line[: len(line.rstrip(b"\r\n"))] + b"\x1b[K\x1b[?25l"
        + line[len(line.rstrip(b"\r\n")) :]
        for line in log(name).splitlines(keepends=True)
    )  # fmt: skip
    assert told(read(dressed)) == told(read(log(name)))


def test_no_line_is_read_by_two_rules() -> None:
    """Where two rules could read a line, they agree on whose it is: the first one's."""
    both: set[tuple[str, ...]] = set()
    for name in EXPECTED:
        for raw in log(name).splitlines(keepends=True):
            line = clean(raw).rstrip(b"\r\n")
            readers = [
                rule.tool for rule in rules_for(None, "epoch")
                if rule.needle in (line.lower() if rule.folded else raw) and rule.read(line)
            ]  # fmt: skip
            if len(set(readers)) > 1:
                both.add(tuple(dict.fromkeys(readers)))
            found = Recogniser(None, None).feed("stdout", line + b"\n", 1)
            assert len({mark.via for mark in found}) <= 1
    assert both <= {
        ("words", "tqdm"),  # "Epoch 0: 45%|": Lightning's bar is the epoch's
        ("vllm", "tqdm"),  # "Processed prompts: 45%|": requests
        ("ultralytics", "tqdm"),  # a row of the table ends in a bar
        ("deepspeed", "words"),  # "epoch=0/micro_step=5/global_step=5"
    }


LINES = st.sampled_from(
    [line for name in EXPECTED for line in log(name).splitlines(keepends=True)][::3]
)


@settings(deadline=None)
@given(st.lists(LINES, max_size=40), st.lists(st.integers(0, 1 << 16), max_size=30))
def test_any_lines_cut_anywhere_count_the_same(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(lines)
    assert told(read(data, cuts)) == told(read(data))


@settings(deadline=None)
@given(st.lists(st.one_of(LINES, st.binary(max_size=60)), max_size=30), st.integers(1, 500))
def test_any_bytes_raise_nothing_and_name_known_moments(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    recogniser = Recogniser("step", None)
    for t in range(0, len(data), size):
        for mark in recogniser.feed("stderr", data[t : t + size], t):
            assert mark.t is None or 0 <= mark.t <= t
            assert mark.n >= 0
    recogniser.flush(len(data))
    recogniser.notes()


def streams(*texts: str, unit: str | None = None) -> list[Stream]:
    return streams_of(view(read("".join(texts).encode()), unit=unit))


class TestTotals:
    def frames(self, *numbers: int) -> list[str]:
        return [f"frame={n:5} fps= 25 q=-0.0 size=N/A time=00:00:01.00\r" for n in numbers]

    def test_a_total_that_falls_back_is_reported_and_not_counted(self) -> None:
        data = "".join(self.frames(10, 60, 40, 45, 80)).encode()
        recogniser = Recogniser(None, None)
        marks = recogniser.feed("stderr", data, 1) + recogniser.flush(2)
        assert sum(mark.n for mark in marks) == 80
        assert recogniser.notes() == [
            ("unit/backwards", "frame: 2 lines ran backwards and were not counted")
        ]

    def test_a_second_encoding_begins_anew(self) -> None:
        start = "Stream mapping:\n"
        (stream,) = streams(start, *self.frames(10, 60), "\n", start, *self.frames(30, 50))
        assert stream.count.finished == 110

    def test_a_number_that_falls_back_is_reported_and_not_counted(self) -> None:
        lines = [f"iter {n}: loss 4.1, time 1.00ms, mfu 1.0%\n" for n in (1, 2, 3, 2, 4)]
        units = units_of(view(read("".join(lines).encode())))
        assert units.finished == 4
        assert any("1 lines stepped back" in hint for hint in units.hints)


class TestBars:
    def bar(self, n: int, of: int, desc: str = "", unit: str = "it") -> str:
        rate = "?" if n == 0 else "9.50"
        shown = f"{desc}: " if desc else ""
        return f"\r{shown}{100 * n // of:3}%|███   | {n}/{of} [00:01<00:02, {rate}{unit}/s]"

    def test_a_bar_inside_another_is_not_counted(self) -> None:
        inner = [self.bar(n, 5) for n in (0, 3, 5)]
        text = [self.bar(0, 3), *inner, self.bar(1, 3), *inner, self.bar(2, 3), *inner]
        (stream,) = streams(*text, self.bar(3, 3), *inner, "\n")
        assert (stream.name, stream.count.finished) == ("iteration", 3)

    def test_bars_of_preparation_and_checking_are_no_work(self) -> None:
        for desc in ("Loading weights", "Map (num_proc=4)", "Validation", "Downloading", "val"):
            assert not streams(self.bar(0, 9, desc), self.bar(9, 9, desc), "\n")

    def test_bars_of_bytes_are_no_work(self) -> None:
        assert not streams("\rx: 45%|██ | 4.5M/10.0M [00:01<00:02, 4.5MB/s]\n")

    def test_a_slow_bar_shows_seconds_for_one(self) -> None:
        text = ["\r  0%|   | 0/4 [00:00<?, ?s/it]", "\r 50%|█  | 2/4 [00:09<00:09,  4.61s/it]\n"]
        (stream,) = streams(*text)
        assert stream.count.finished == 2

    def test_one_bar_for_each_epoch_counts_them_all(self) -> None:
        text = [self.bar(n, 5, f"train {e}") for e in range(3) for n in (0, 2, 5)]
        (stream,) = streams(*text, "\n")
        assert stream.count.finished == 15

    def test_a_bar_that_resumes_counts_what_this_run_did(self) -> None:
        text = ["\r 40%|██ | 40/100 [00:00<?, ?it/s]", self.bar(70, 100), "\n"]
        (stream,) = streams(*text)
        assert stream.count.finished == 30

    def test_a_bar_redrawn_often_is_one_mark_a_second(self) -> None:
        recogniser = Recogniser(None, None)
        marks: list[Mark] = []
        for tenth in range(101):
            marks += recogniser.feed("stderr", self.bar(tenth, 100).encode(), tenth * S // 10)
        marks += recogniser.feed("stderr", b"\n", 101 * S // 10)
        assert sum(mark.n for mark in marks) == 100
        assert 10 <= len(marks) <= 13
        assert marks[-1].t == 100 * S // 10


def test_rates_are_multiplied_by_the_time_between_lines() -> None:
    line = (
        "INFO 11-30 23:59:{s:02} [loggers.py:1] Engine {e:03}: Avg prompt throughput: 1.0 tokens/s,"
        " Avg generation throughput: {r} tokens/s, Running: 1 reqs, Waiting: 0 reqs\n"
    )
    text = [line.format(s=s, e=e, r=r) for s, e, r in [
        (0, 0, "1.0"), (0, 1, "2.0"), (30, 0, "1.0"), (30, 1, "0.5"),
    ]]  # fmt: skip
    (stream,) = streams(*text)
    assert (stream.name, stream.count.finished) == ("token", 10 + 20 + 30 + 15)
