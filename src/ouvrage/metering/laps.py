"""Counts units as their marks come, and times those that can be timed.

A unit is timed from its own head, else from the boundary before it, when both moments are known;
others are counted and not timed. Several units between two known moments (``every 10 epochs a
line``, ``unit("image", 64)``) are one observation of their mean. A count of nought is the moment at
which work begins: the next units are timed from there.

Numbers that fall back to where a series begins (0 or 1) start a new series and count; any other
step back repeats something already counted, so it is noted and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction


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


@dataclass(slots=True)
class Count:
    """The units of one stream of marks, so far."""

    finished: int = 0
    untimed: int = 0
    stepped_back: int = 0
    series: int = 1
    every: int | None = None
    first_us: int | None = None
    first_timed: bool = False
    earliest: int | None = None
    laps: list[Lap] = field(default_factory=list[Lap])
    _first: int | None = None
    _last: int | None = None
    _open: tuple[int, int | None] | None = None
    _edge: int | None = None
    _lone: int | None = None

    def take(self, mark: str, n: int, t: int | None) -> None:
        """One mark, as ``RunMarks`` says."""
        if self.earliest is None and mark != "count":
            self.earliest = n
        if mark == "head":
            self._head(n, t)
        elif mark == "end":
            self._end(n, t)
        elif n:
            self._group(n, self._edge, t)
        else:
            self._begin(t)

    def _begin(self, t: int | None) -> None:
        self._edge = t
        if not self.finished and self.first_us is None:
            self.first_us = t

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
            if self._open:
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
