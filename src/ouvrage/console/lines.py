"""Lines of telemetry: one measure over an hour, a line for each GPU, gaps where nothing was said.

Decides how samples become a line: means of equal spells of time, each of what was read in it; a spell without a reading is a gap, and its neighbours are not
joined over it. Lines differ by their dashes and are named at their ends, so that a grey print can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ouvrage.console import svg
from ouvrage.console.pictures import LEFT, WIDTH
from ouvrage.console.svg import element, hover, number, picture, text

SPELLS = 60
_TOP, _HEIGHT, _FOOT = 12.0, 112.0, 24.0
_DASHES = (None, "6 3", "2 3", "10 3 2 3", "1 4", "12 4")
_END = 120.0
"""Room for the names at the lines' ends."""
MOST_NAMED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A name, and one value for each spell; None where nothing was read."""

    name: str
    values: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        """The values that there are."""
        return [value for value in self.values if value is not None]


def spells(
    times: Sequence[int], values: Sequence[int | None], from_us: int, to_us: int
) -> tuple[float | None, ...]:
    """The mean of each of ``SPELLS`` equal parts of a period of time; None for one without a reading."""
    sums: list[list[int]] = [[] for _ in range(SPELLS)]
    for at, value in zip(times, values, strict=True):
        if value is not None and from_us <= at < to_us:
            sums[(at - from_us) * SPELLS // (to_us - from_us)].append(value)
    return tuple(sum(each) / len(each) if each else None for each in sums)


def drawn(
    name: str, title: str, lines: Sequence[Line], top: float, marks: Sequence[tuple[float, str]]
) -> str:
    """The picture of some lines below ``top``; ``marks`` are places on the way from 0 to 1 and what to write there."""
    right, floor = WIDTH - _END, _TOP + _HEIGHT

    def up(value: float) -> float:
        return floor - _HEIGHT * min(value, top) / (top or 1)

    parts = [element("path", d=f"M{number(LEFT)},{number(floor)}H{number(right)}", class_="axis")]
    for value in svg.ticks(top, 4):
        rule = f"M{number(LEFT)},{number(up(value))}H{number(right)}"
        parts.append(element("path", d=rule, class_="rule"))
        parts.append(text(LEFT - 6, up(value) + 4, f"{value:g}", anchor="end", kind="soft"))
    for place, words in marks:
        x = LEFT + place * (right - LEFT)
        parts.append(text(x, floor + 17, words, anchor="middle", kind="soft"))
    parts += _lines(lines, up, right)
    desc = "; ".join(f"{each.name}: {_words(each)}" for each in lines)
    return picture(name, WIDTH, floor + _FOOT, title, desc, *parts)


def _words(line: Line) -> str:
    known = line.known
    if not known:
        return "nothing was read"
    return f"{min(known):.0f} to {max(known):.0f}, mean {sum(known) / len(known):.0f}"


def _lines(lines: Sequence[Line], up: Callable[[float], float], right: float) -> list[str]:
    parts: list[str] = []
    ends: list[tuple[float, str]] = []
    step = (right - LEFT) / SPELLS
    for index, line in enumerate(lines):
        data, last = "", None
        for n, value in enumerate(line.values):
            if value is None:
                last = None
                continue
            x, y = LEFT + (n + 0.5) * step, up(value)
            # A lone reading is a short stroke, else nobody would see it.
            data += (
                f"M{number(x - step / 2)},{number(y)}H{number(x)}"
                if last is None
                else f"L{number(x)},{number(y)}"
            )
            last = y
        if data:
            dash = _DASHES[index % len(_DASHES)]
            parts.append(
                element("path", hover(line.name), d=data, class_="telling", stroke_dasharray=dash)
            )
            final = next(value for value in reversed(line.values) if value is not None)
            ends.append((up(final), line.name))
    return [*parts, *_names(ends[:MOST_NAMED], right)]


def _names(ends: Sequence[tuple[float, str]], right: float) -> list[str]:
    """The names at the ends, pushed apart where they would meet."""
    parts: list[str] = []
    before = -20.0
    for y, name in sorted(ends):
        before = max(y + 4, before + 14)
        parts.append(text(right + 8, before, name))
    return parts
