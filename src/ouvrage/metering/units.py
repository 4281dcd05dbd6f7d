"""Which units finished, and how long each took.

Decides which marks count (one name, one way of recognising: marks from code win over a regex of the
user's, that over the shipped recogniser), how many units they finish, and which of them can be
timed. A unit is timed from its own head, else from the boundary before it, when both moments are
known; others are counted and not timed. Several units between two known moments (``every 10 epochs
a line``, ``unit("image", 64)``) are one observation of their mean.

Numbers that fall back to where a series begins (0 or 1) start a new series and count; any other
step back repeats something already counted, so it is noted and not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ouvrage.metering.run_view import RunView
from ouvrage.model.runs import RunMarks

COMMAND = "command"
_RANK = {"code": 0, "regex": 1, "line": 2}
_HOW = {
    "code": "marks from the program itself",
    "regex": "lines that match --unit-regex",
    "line": "lines that name the unit and its number",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """``count`` units finished from one known moment to another."""

    count: int
    from_us: int
    to_us: int

    @property
    def per_unit_us(self) -> Fraction:
        """The mean time of one unit of the lap."""
        return Fraction(self.to_us - self.from_us, self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units of one run. ``how`` says in words which marks were counted.

    ``first_us`` is where the first unit began, None when not known; ``first_timed`` says whether
    the run's first unit has a lap of its own.
    """

    name: str
    via: str | None
    how: str
    finished: int
    untimed: int
    laps: tuple[Lap, ...]
    first_us: int | None
    first_timed: bool
    hints: tuple[str, ...]

    @property
    def is_command(self) -> bool:
        """Whether nothing marked a unit, so that the command itself is the one."""
        return self.via is None


def units_of(view: RunView) -> Units:
    """The finished units of a run; without any mark, the command itself is the unit."""
    streams = streams_of(view)
    if not streams:
        return _command(view)
    chosen = choose(streams, view.started.unit)
    count, name, via = chosen.count, chosen.name, chosen.via
    return Units(
        name=name,
        via=via,
        how=how(via),
        finished=count.finished,
        untimed=count.untimed,
        laps=tuple(count.laps),
        first_us=count.first_us,
        first_timed=count.first_timed,
        hints=(*source_hints(view, streams, chosen), *_count_hints(count, name)),
    )


def facts_of_units(view: RunView, units: Units) -> tuple[str, ...]:
    """Keys of the facts that the units stand on: their marks, or the run's end."""
    if units.is_command:
        return view.facts("run.ended")
    pairs = zip(view.marks, view.facts(RunMarks.KIND), strict=True)
    keys = [key for marks, key in pairs if (marks.name, marks.via) == (units.name, units.via)]
    return (*keys, *view.facts("run.ended"))


def _command(view: RunView) -> Units:
    done = view.outcome == "completed"
    laps = (Lap(count=1, from_us=0, to_us=view.wall_us),) if done and view.wall_us > 0 else ()
    hint = "no unit was found, so the command itself is the unit; name one with --unit-regex"
    return Units(
        name=COMMAND if done else view.started.unit or COMMAND,
        via=None,
        how="the command itself, finished when it exits with 0",
        finished=1 if done else 0,
        untimed=0,
        laps=laps,
        first_us=0,
        first_timed=True,
        hints=(f'{hint} or ouvrage.unit("{view.started.unit or "epoch"}")',),
    )


@dataclass(slots=True)
class _Count:
    """Counts and times units as their marks come."""

    finished: int = 0
    untimed: int = 0
    stepped_back: int = 0
    series: int = 1
    every: int | None = None
    first_us: int | None = None
    first_timed: bool = False
    laps: list[Lap] = field(default_factory=list[Lap])
    _first: int | None = None
    _last: int | None = None
    _open: tuple[int, int | None] | None = None
    _edge: int | None = None
    _lone: int | None = None

    def take(self, mark: str, n: int, t: int | None) -> None:
        if mark == "head":
            self._head(n, t)
        elif mark == "end":
            self._end(n, t)
        else:
            self._group(n, self._edge, t)

    def exit(self) -> None:
        """The command exited with 0: the last headed unit is finished, at a moment not known."""
        if self._open is not None:
            self._open = None
            self._group(1, None, None)

    def _head(self, n: int, t: int | None) -> None:
        latest = self._open[0] if self._open else self._last
        if latest is not None and n <= latest:
            if not self._restarts(n):
                return
            self._close(1, t)
            self._first = n
        elif self._open:
            self._close(n - self._open[0], t)
        if self._first is None:
            self._first = n
        if not self.finished and self.first_us is None:
            self.first_us = t
        self._open, self._lone = (n, t), None

    def _end(self, n: int, t: int | None) -> None:
        latest = self._open[0] - 1 if self._open else self._last
        if latest is None:
            self._first = self._lone = n
            self._group(1, self._edge, t)
        elif n > latest:
            self._learn_step(n)
            self._close(n - latest, t)
        elif self._restarts(n):
            self._open, self._first = None, n
            self._group(1, self._edge, t)
        else:
            return
        self._last = n

    def _restarts(self, n: int) -> bool:
        """Whether ``n`` begins a new series; otherwise it is noted as a step back."""
        if n <= 1 and self._first is not None and n <= self._first:
            self.series += 1
            return True
        self.stepped_back += 1
        return False

    def _learn_step(self, n: int) -> None:
        """``Epoch 10``, then ``Epoch 20``: a line came every ten, so the first one was ten too."""
        if self._lone is not None and self._lone > 1 and n == 2 * self._lone:
            self.every = self._lone
            self.finished += self._lone - 1
            self.untimed += self._lone - 1
        self._lone = None

    def _close(self, count: int, t: int | None) -> None:
        start = self._open[1] if self._open else self._edge
        if self._open:
            self._last = self._open[0] + count - 1
        self._open = None
        self._group(count, start, t)

    def _group(self, count: int, start: int | None, end: int | None) -> None:
        if count <= 0:
            return
        if start is not None and end is not None and end > start:
            self.laps.append(Lap(count=count, from_us=start, to_us=end))
            self.first_timed |= not self.finished
        else:
            self.untimed += count
        self.finished += count
        self._edge = end


def _source_hints(view: RunView, chosen: Sequence[RunMarks]) -> list[str]:
    hints: list[str] = []
    name, via = chosen[0].name, chosen[0].via
    others = sorted({f"{m.name} ({m.via})" for m in view.marks if (m.name, m.via) != (name, via)})
    if others:
        hints.append(f"counted {_HOW[via]} ({name}); left aside: {', '.join(others)}")
    processes = len({marks.pid for marks in chosen})
    if processes > 1:
        hints.append(f"{processes} processes marked {name}s; each mark counts as one")
    if view.started.unit is not None and name != view.started.unit:
        hints.append(f"no {view.started.unit} was marked; counted {name} instead")
    return hints


def _count_hints(count: _Count, name: str) -> list[str]:
    hints: list[str] = []
    if count.finished > 1 and not count.laps:
        hints.append(
            f"the {count.finished} {name}s came out of a buffer together, so none could be timed: "
            "run python -u, or set PYTHONUNBUFFERED=1"
        )
    elif count.laps and count.untimed > 1:
        hints.append(f"{count.untimed} of {count.finished} {name}s could not be timed")
    if count.every:
        hints.append(f"a line came every {count.every} {name}s; each counts for all of them")
    if count.series > 1:
        hints.append(f"the numbers began anew {count.series - 1} times; all series are counted")
    if count.stepped_back:
        hints.append(f"{count.stepped_back} lines stepped back in number and were not counted")
    return hints
