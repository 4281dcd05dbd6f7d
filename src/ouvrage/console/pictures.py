"""The pictures of a report: strips of time, a timeline, bars of units, intervals, a bridge.

Pure functions from small typed values to SVG text. One idea a picture, labelled where the eye is,
with a title and a description for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from ouvrage.console import svg
from ouvrage.console.svg import element, fill_of, hover, number, picture, text

Scale = Callable[[float], float]

WIDTH = 880.0
LEFT, RIGHT = 46.0, 14.0
MOST_BARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kind of time in a strip: its key, its words, how long, and its label (empty: none)."""

    key: str
    words: str
    seconds: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One run's time, ``length`` relative to the longest strip (1); ``name`` stands before it."""

    name: str
    note: str
    length: float
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How many cores worked from ``from_s`` to ``to_s``; None where no sample came."""

    from_s: float
    to_s: float
    cores: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One unit: its number, when it ended, how long it took, whether it counts as warm-up."""

    n: int
    end_s: float
    seconds: float
    warm_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A run over time: cores at work, the cores it may use, phases, and the ends of its units.

    The same shape shows other amounts, named by ``what``, with a limit of their own.
    """

    wall_s: float
    cores_allowed: float
    steps: tuple[Step, ...]
    phases: tuple[tuple[str, float, float], ...]
    bars: tuple[Bar, ...]
    unit: str
    what: str = "cores at work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with its 95 % interval; without one ``low`` and ``high`` are None."""

    name: str
    value: float
    low: float | None
    high: float | None
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pier:
    """One step of a bridge: where it begins and ends; a total stands on the ground."""

    name: str
    begin: float
    end: float
    label: str
    total: bool


def strips(name: str, title: str, given: Sequence[Strip]) -> str:
    """Stacked strips of time, each labelled below; lengths compare where there are several."""
    left = 8 + max((svg.text_width(s.name) for s in given), default=0) + 12 if given[0].name else 0
    y, parts = 6.0, []
    for strip in given:
        drawn, height = _strip(strip, left, y)
        parts.append(drawn)
        y += height
    desc = "; ".join(_strip_words(strip) for strip in given)
    return picture(name, WIDTH, y, title, desc, *parts)


def _strip_words(strip: Strip) -> str:
    words = ", ".join(part.words for part in strip.parts)
    return f"{strip.name}: {words}" if strip.name else words


def _strip(strip: Strip, left: float, y: float) -> tuple[str, float]:
    total = sum(part.seconds for part in strip.parts) or 1.0
    room = (WIDTH - left - (svg.text_width(strip.note) + 12 if strip.note else 0)) * strip.length
    x, drawn, wanted = left, [], []
    for part in strip.parts:
        width = room * part.seconds / total
        drawn.append(_segment(part, x, y, width))
        if part.label:
            wanted.append((x, width, part.label))
        x += width
    if strip.name:
        drawn.append(text(left - 12, y + 21, strip.name, anchor="end", kind="label strong"))
    if strip.note:
        drawn.append(text(x + 10, y + 21, strip.note, kind="label strong"))
    labels, rows = _labels_below(wanted, y + 34)
    return "".join([*drawn, *labels]), 34.0 + 18 * rows + 14


def _segment(part: Part, x: float, y: float, width: float) -> str:
    return element(
        "rect",
        hover(part.words),
        x=x,
        y=y,
        width=width,
        height=32,
        fill=fill_of(part.key),
        class_=f"segment {part.key}",
    )


def _labels_below(wanted: Sequence[tuple[float, float, str]], y: float) -> tuple[list[str], int]:
    """Labels under their segments, in further rows and to either side where they would touch."""
    feet = [(x + min(width / 2, 6), words) for x, width, words in wanted]
    placed = svg.place_labels(feet, WIDTH)
    drawn = []
    for (foot, words), (row, to_left) in zip(feet, placed, strict=True):
        base, side = y + 16 + 18 * row, -1 if to_left else 1
        points = [(foot, y - 2), (foot, base - 4), (foot + 5 * side, base - 4)]
        drawn.append(element("path", d=svg.path(points), class_="leader"))
        drawn.append(text(foot + 8 * side, base, words, anchor="end" if to_left else "start"))
    return drawn, max((row for row, _ in placed), default=-1) + 1


def timeline(name: str, title: str, line: Timeline) -> str:
    """Cores at work over the run, its phases behind, the ends of its units as ticks above."""
    top, floor = 44.0, 204.0
    cores = max([line.cores_allowed, *(s.cores or 0 for s in line.steps)])

    def across(seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * seconds / (line.wall_s or 1)

    def up(value: float) -> float:
        return floor - (floor - top) * value / (cores or 1)

    parts = [
        *_phase_bands(line, across, top, floor),
        *_core_lines(cores, line.cores_allowed, up),
        *_worked(line.steps, across, up, floor),
        *_unit_ends(line, across, top, floor),
        *_seconds_axis(line.wall_s, across, floor),
    ]
    known = [s for s in line.steps if s.cores is not None]
    spread = sum((s.cores or 0) * (s.to_s - s.from_s) for s in known)
    lasted = sum(s.to_s - s.from_s for s in known)
    mean = f"{spread / lasted:.2f} {line.what} on average" if lasted else "no samples"
    desc = f"{mean} of {line.cores_allowed:g} allowed, {len(line.bars)} {line.unit} ends marked"
    return picture(name, WIDTH, floor + 26, title, desc, *parts)


def _phase_bands(line: Timeline, across: Scale, top: float, floor: float) -> list[str]:
    drawn = []
    for index, (words, begin, end) in enumerate(line.phases):
        x, width = across(begin), across(end) - across(begin)
        kind = f"phase {'even' if index % 2 == 0 else 'odd'}"
        drawn.append(
            element(
                "rect",
                hover(f"{words} {end - begin:.1f} s"),
                x=x,
                y=top - 40,
                width=width,
                height=floor - top + 40,
                class_=kind,
            )
        )
        if width > svg.text_width(words) + 8:
            drawn.append(text(x + 5, top - 28, words, kind="label soft"))
    return drawn


def _core_lines(cores: float, allowed: float, up: Scale) -> list[str]:
    drawn = []
    for value in svg.ticks(cores, 4):
        if value == int(value):
            drawn.append(
                element(
                    "path", d=f"M{number(LEFT)},{number(up(value))}H{WIDTH - RIGHT}", class_="rule"
                )
            )
            drawn.append(
                text(LEFT - 8, up(value) + 4, f"{value:g}", anchor="end", kind="label soft")
            )
    drawn.append(
        element("path", d=f"M{number(LEFT)},{number(up(allowed))}H{WIDTH - RIGHT}", class_="limit")
    )
    return drawn


def _worked(steps: Sequence[Step], across: Scale, up: Scale, floor: float) -> list[str]:
    drawn, outline = [], []
    for step in steps:
        begin, end = across(step.from_s), across(step.to_s)
        if step.cores is None:
            drawn.append(_no_samples(step, begin, end - begin, floor))
            continue
        y = up(step.cores)
        outline.append(
            f"M{number(begin)},{number(floor)}V{number(y)}H{number(end)}V{number(floor)}Z"
        )
    return [element("path", d="".join(outline), class_="worked"), *drawn] if outline else drawn


def _no_samples(step: Step, x: float, width: float, floor: float) -> str:
    words = f"no samples for {step.to_s - step.from_s:.1f} s"
    shape = element(
        "rect", hover(words), x=x, y=floor - 24, width=width, height=24, fill=fill_of("gap")
    )
    if width < svg.text_width("no samples") + 8:
        return shape
    return shape + text(x + width / 2, floor - 30, "no samples", anchor="middle", kind="label soft")


def _unit_ends(line: Timeline, across: Scale, top: float, floor: float) -> list[str]:
    """Ticks at the ends of units, numbered as densely as the numbers fit."""
    if not line.bars:
        return []
    room = (WIDTH - LEFT - RIGHT) / len(line.bars)
    every = max(1, round(svg.text_width(str(line.bars[-1].n) + "  ") / room + 0.5))
    drawn = []
    for index, bar in enumerate(line.bars[:MOST_BARS]):
        x = across(bar.end_s)
        drawn.append(
            element("path", d=f"M{number(x)},{number(top - 8)}V{number(floor)}", class_="tick")
        )
        if index % every == 0:
            drawn.append(text(x, top - 12, str(bar.n), anchor="middle"))
    return drawn


def _seconds_axis(wall_s: float, across: Scale, floor: float) -> list[str]:
    marks = svg.clock_ticks(wall_s)
    drawn = [element("path", d=f"M{number(LEFT)},{number(floor)}H{WIDTH - RIGHT}", class_="axis")]
    for moment in marks:
        words = svg.clock_text(moment)
        x = min(across(moment), WIDTH - svg.text_width(words) / 2)
        drawn.append(text(x, floor + 18, words, anchor="middle", kind="label soft"))
    return drawn


def unit_bars(
    name: str, title: str, bars: Sequence[Bar], middle: Interval | None, unit: str
) -> str:
    """Seconds of every unit side by side, warm-up hollow, the median and its interval across."""
    top, floor = 16.0, 150.0
    right = WIDTH - RIGHT - (svg.text_width(middle.label) + 12 if middle else 0)
    shown = _grouped(bars)
    most = max(high for _, _, high, _ in shown)

    def up(seconds: float) -> float:
        return floor - (floor - top) * seconds / most

    parts = [
        text(LEFT - 8, up(v) + 4, f"{v:g}", anchor="end", kind="label soft")
        for v in svg.ticks(most, 3)
    ]
    room = (right - LEFT) / len(shown)
    for index, (words, low, high, warm) in enumerate(shown):
        x = LEFT + room * index
        foot = floor if len(shown) == len(bars) else up(low)
        parts.append(
            element(
                "rect",
                hover(words),
                x=x + room * 0.1,
                y=up(high),
                width=room * 0.8,
                height=max(foot - up(high), 0.5),
                class_="bar warm" if warm else "bar",
            )
        )
    parts += _bar_numbers(shown, bars, room, floor)
    parts += _middle_line(middle, up, right) if middle else []
    desc = f"{len(bars)} timed: {unit} number and seconds; " + (middle.label if middle else "")
    return picture(name, WIDTH, floor + 26, title, desc, *parts)


def _grouped(bars: Sequence[Bar]) -> list[tuple[str, float, float, bool]]:
    """(words, low, high, warm-up) a column; several units share one where there are too many."""
    size = -(-len(bars) // MOST_BARS)
    if size == 1:
        return [(f"{b.n}: {b.seconds:.3f} s", 0.0, b.seconds, b.warm_up) for b in bars]
    groups = [bars[i : i + size] for i in range(0, len(bars), size)]
    return [
        (
            f"{g[0].n} to {g[-1].n}: median {median(b.seconds for b in g):.3f} s",
            min(b.seconds for b in g),
            max(b.seconds for b in g),
            all(b.warm_up for b in g),
        )
        for g in groups
    ]


def _bar_numbers(
    shown: Sequence[object], bars: Sequence[Bar], room: float, floor: float
) -> list[str]:
    size = -(-len(bars) // MOST_BARS)
    every = max(1, round(svg.text_width(str(bars[-1].n) + "  ") / room + 0.5))
    return [
        text(
            LEFT + room * (i + 0.5),
            floor + 18,
            str(bars[i * size].n),
            anchor="middle",
            kind="label soft",
        )
        for i in range(0, len(shown), every)
    ]


def _middle_line(middle: Interval, up: Scale, right: float) -> list[str]:
    drawn = []
    if middle.low is not None and middle.high is not None:
        y, height = up(middle.high), max(up(middle.low) - up(middle.high), 1.0)
        drawn.append(element("rect", x=LEFT, y=y, width=right - LEFT, height=height, class_="band"))
    y = up(middle.value)
    drawn.append(element("path", d=f"M{number(LEFT)},{number(y)}H{number(right)}", class_="middle"))
    drawn.append(text(right + 6, y + 4, middle.label, kind="label strong"))
    return drawn


def intervals(name: str, title: str, given: Sequence[Interval]) -> str:
    """Values as dots with their 95 % intervals as lines, one row each, on one scale."""
    left = 20 + max(svg.text_width(i.name) for i in given)
    right = WIDTH - 24 - max(svg.text_width(i.label) for i in given)
    lows = [i.value if i.low is None else i.low for i in given]
    highs = [i.value if i.high is None else i.high for i in given]
    span = (max(highs) - min(lows)) or max(highs) or 1.0
    begin, room = min(lows) - 0.05 * span, 1.1 * span

    def across(value: float) -> float:
        return left + (right - left) * (value - begin) / room

    parts = []
    for row, (item, low, high) in enumerate(zip(given, lows, highs, strict=True)):
        y = 22.0 + 34 * row
        parts.append(
            element("path", d=f"M{number(left)},{number(y)}H{number(right)}", class_="rule")
        )
        parts.append(
            element(
                "path",
                d=f"M{number(across(low))},{number(y)}H{number(across(high))}",
                class_="whisker",
            )
        )
        parts.append(
            element("circle", hover(item.label), cx=across(item.value), cy=y, r=5.5, class_="dot")
        )
        parts.append(text(left - 12, y + 4, item.name, anchor="end", kind="label strong"))
        parts.append(text(right + 12, y + 4, item.label))
    desc = "; ".join(f"{i.name}: {i.label}" for i in given)
    return picture(name, WIDTH, 34.0 * len(given) + 12, title, desc, *parts)


def bridge(name: str, title: str, piers: Sequence[Pier]) -> str:
    """From one total to another by steps; what each adds or takes away stands above it."""
    top, floor = 30.0, 180.0
    most = max(max(p.begin, p.end) for p in piers) or 1.0
    room = WIDTH / len(piers)

    def up(value: float) -> float:
        return floor - (floor - top) * value / most

    parts = [element("path", d=f"M0,{number(floor)}H{number(WIDTH)}", class_="axis")]
    for index, pier in enumerate(piers):
        x, width = room * index + room * 0.18, room * 0.64
        y, height = up(max(pier.begin, pier.end)), abs(up(pier.begin) - up(pier.end))
        kind = "total" if pier.total else ("more" if pier.end > pier.begin else "less")
        parts.append(
            element(
                "rect",
                hover(f"{pier.name} {pier.label}"),
                x=x,
                y=y,
                width=width,
                height=max(height, 1.0),
                class_=f"pier {kind}",
            )
        )
        parts.append(text(x + width / 2, y - 8, pier.label, anchor="middle", kind="label strong"))
        parts.append(text(x + width / 2, floor + 18, pier.name, anchor="middle"))
        if index + 1 < len(piers):
            parts.append(
                element(
                    "path",
                    d=f"M{number(x + width)},{number(up(pier.end))}"
                    f"H{number(room * (index + 1.18))}",
                    class_="leader",
                )
            )
    desc = "; ".join(f"{p.name}: {p.label}" for p in piers)
    return picture(name, WIDTH, floor + 28, title, desc, *parts)
