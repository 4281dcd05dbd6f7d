"""The streams of marks in a run, and which of them is counted.

A stream is one name of a unit as one kind of line, one pattern or the program itself tells it.
Exactly one is counted, so that no unit counts twice. Decided in this order: the name asked for with
``--unit``; marks from the program before a pattern of the user's before the shipped recognisers;
the coarsest unit of which two or more finished. Among known tools' units *coarsest* follows a fixed
order, epoch before prompt, request, frame, step, iteration and token, since a stray bar of three
steps must not win over a hundred epochs; elsewhere it is the unit that finished least often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ouvrage.metering.laps import Count
from ouvrage.metering.launchers import launcher_of
from ouvrage.metering.ranks import Row, in_step, rows_of, without_copies
from ouvrage.metering.run_view import RunView
from ouvrage.model.runs import RunMarks

MOST_TOLD = 4
RULE = "the coarsest unit of which two or more finished"
ORDER = ("epoch", "prompt", "request", "frame", "step", "iteration", "token")
_RANK = {"code": 0, "replay": 0, "regex": 1, "line": 2}
_HOW = {
    "code": "marks from the program itself",
    "replay": "answers as they ended, in groups of neighbours",
    "regex": "lines that match --unit-regex",
    "line": "lines that name the unit and its number",
}
_SAME = {"it": "iteration", "iter": "iteration", "step": "iteration", "iteration": "step"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """One name and way (``via``), and what its marks amount to.

    ``processes`` marked it; ``same`` of them were ranks that marked the same units. ``copies`` are
    series of numbers that came again from other ranks.
    """

    name: str
    via: str
    count: Count
    processes: int
    same: int
    copies: int

    @property
    def rank(self) -> int:
        """How directly the stream tells of units; the lowest is the most direct."""
        return _RANK[self.via.partition(":")[0]]

    @property
    def label(self) -> str:
        """How it is named beside others: ``iteration (tqdm): 300``."""
        return f"{self.name} ({self.via.removeprefix('line:')}): {self.count.finished}"


def how(via: str) -> str:
    """In words, which marks a stream consists of."""
    sort, _, tool = via.partition(":")
    return f"lines as {tool} prints them" if tool else _HOW[sort]


def streams_of(view: RunView) -> list[Stream]:
    """Every stream of a run, counted."""
    groups: dict[tuple[str, str], list[RunMarks]] = {}
    for marks in view.marks:
        if marks.mark:
            groups.setdefault((marks.name, marks.via), []).append(marks)
    launcher = launcher_of(view.started.command)
    done = view.outcome == "completed"
    streams = [_stream(marks, launcher, exited=done) for marks in groups.values()]
    return [stream for stream in streams if stream is not None]


def _stream(given: Sequence[RunMarks], launcher: str | None, *, exited: bool) -> Stream | None:
    processes: dict[int | None, list[RunMarks]] = {}
    for marks in given:
        processes.setdefault(marks.pid, []).append(marks)
    same = copies = 0
    rows = _in_order(given)
    if launcher and len(processes) > 1 and in_step(list(processes.values())):
        same = len(processes)
        leader = max(processes.values(), key=lambda marks: sum(len(m.mark) for m in marks))
        rows = _in_order(leader)
    elif launcher and given[0].via.startswith("line"):
        rows, copies = without_copies(rows)
    count = Count()
    for mark, n, t in rows:
        count.take(mark, n, t)
    if exited:
        count.exit()
    if not count.finished and all(mark == "count" for mark, _, _ in rows):
        return None  # work that began and of which nothing is known
    name, via = given[0].name, given[0].via
    return Stream(
        name=name, via=via, count=count, processes=len(processes), same=same, copies=copies
    )


def _in_order(chosen: Sequence[RunMarks]) -> list[Row]:
    """The marks in order; those of several processes are merged by their moments."""
    rows = [row for marks in chosen for row in rows_of(marks)]
    if len({marks.pid for marks in chosen}) < 2:
        return rows
    held = 0
    dated: list[tuple[int, Row]] = []
    for row in rows:
        held = row[2] if row[2] is not None else held
        dated.append((held, row))
    return [row for _, row in sorted(dated, key=lambda pair: pair[0])]


def choose(streams: Sequence[Stream], asked: str | None) -> Stream:
    """The stream that is counted."""
    given = _asked(streams, asked) or streams
    best = min(stream.rank for stream in given)
    given = [stream for stream in given if stream.rank == best]
    fullest: dict[str, Stream] = {}
    for stream in given:
        held = fullest.get(stream.name)
        if held is None or stream.count.finished > held.count.finished:
            fullest[stream.name] = stream
    return min(fullest.values(), key=_coarse)


def _asked(streams: Sequence[Stream], asked: str | None) -> list[Stream]:
    """Those of the name asked for; else those that differ from it by number or case only."""
    if asked is None:
        return []
    word = _plain(asked)
    named = [stream for stream in streams if stream.name == asked]
    named = named or [stream for stream in streams if _plain(stream.name) == word]
    other = _SAME.get(word)
    return named or [stream for stream in streams if other and stream.name == other]


def _plain(name: str) -> str:
    return name.casefold().removesuffix("s")


def _coarse(stream: Stream) -> tuple[bool, int, int, str]:
    finished = stream.count.finished
    known = stream.via.startswith("line") and stream.name in ORDER
    place = ORDER.index(stream.name) if known else len(ORDER)
    if not stream.via.startswith("line"):
        place = 0
    return finished < 2, place, finished, stream.name


def source_hints(view: RunView, streams: Sequence[Stream], chosen: Stream) -> list[str]:
    """What a reader should know of the choice, and of who marked the units."""
    name, asked = chosen.name, view.started.unit
    hints: list[str] = []
    others = [stream for stream in streams if stream is not chosen]
    if others:
        hints.append(f"counted {how(chosen.via)} ({name}); left aside: {_aside(others)}")
        names = sorted({stream.name for stream in others} - {name})[:MOST_TOLD]
        if names and asked is None:
            hints.append(f"{name} is {RULE}; --unit {' or --unit '.join(names)} counts another")
    if len(others) >= MOST_TOLD and any(character.isdigit() for character in name):
        hints.append("each name is a unit of its own: give units one name, without a number in it")
    hints += _rank_hints(view, chosen)
    if asked is not None and not _asked([chosen], asked):
        hints.append(f"no {asked} was marked; counted {name} instead")
    return hints


def _aside(others: Sequence[Stream]) -> str:
    labels = sorted(stream.label for stream in others)
    more = f" and {len(labels) - MOST_TOLD} more" if labels[MOST_TOLD:] else ""
    return ", ".join(labels[:MOST_TOLD]) + more


def _rank_hints(view: RunView, chosen: Stream) -> list[str]:
    name, launcher = chosen.name, launcher_of(view.started.command)
    if chosen.same:
        return [f"{chosen.same} ranks of {launcher} marked the same {name}s; each counts once"]
    if chosen.copies:
        return [
            f"{chosen.copies} more ranks of {launcher} printed the same {name}s; each counts once"
        ]
    if chosen.processes > 1:
        return [f"{chosen.processes} processes marked {name}s; each mark counts as one"]
    return []
