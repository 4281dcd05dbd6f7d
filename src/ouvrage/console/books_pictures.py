"""The pictures of an owner's books: what each GPU did, when power was used, what an hour sold brought.

Pure functions from small typed values to SVG text. Every state has a pattern besides its colour, so that
a grey print can be read, and is labelled where it stands and not in a legend of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ouvrage.console import svg
from ouvrage.console.svg import element, fill_of, hover, number, picture, text

WIDTH, LEFT, RIGHT = 880.0, 46.0, 14.0
ROW, BAND = 34.0, 22.0
PATTERN = {
    "working": "working",
    "held": "waiting_data",
    "reserved": "waiting_memory",
    "free": "free",
    "maintenance": "waiting_network",
    "down": "waiting_storage",
    "unknown": "unknown",
}
"""Which pattern fills a state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A part of a strip: from and to as shares of the whole, the state, and words for it."""

    begin: float
    end: float
    state: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStrip:
    """One GPU's time; ``note`` stands behind it."""

    name: str
    note: str
    parts: tuple[Spent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HourBar:
    """An hour of the day: energy in kWh and the price a kWh, None where nobody states one."""

    hour: int
    kwh: float
    price: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RatePoint:
    """A month: what an hour sold brought and what it had to bring, None where not known."""

    name: str
    got: float | None
    needed: float | None


def calendar_strips(
    name: str,
    title: str,
    strips: Sequence[DeviceStrip],
    days: Sequence[tuple[float, str]],
    states: Sequence[tuple[str, str]],
) -> str:
    """Strips of time, one a GPU, on one axis of ``days`` (share of the period, label).

    ``states`` are those that occur with their words; each is shown once below with its pattern.
    """
    left = 16 + 1.15 * max(svg.text_width(strip.name) for strip in strips)  # names are bold
    right = WIDTH - 12 - max(svg.text_width(strip.note) for strip in strips)

    def across(share: float) -> float:
        return left + (right - left) * share

    drawn: list[str] = []
    for row, strip in enumerate(strips):
        y = 6 + ROW * row
        drawn += [_spent(part, across, y) for part in strip.parts]
        drawn.append(text(left - 10, y + 15, strip.name, anchor="end", kind="label strong"))
        drawn.append(text(right + 10, y + 15, strip.note))
    floor = 6 + ROW * len(strips)
    drawn += _days(days, across, floor)
    key, height = _key(states, floor + 40)
    desc = "; ".join(f"{strip.name}: {strip.note}" for strip in strips)
    return picture(name, WIDTH, floor + 40 + height, title, desc, *drawn, *key)


def _spent(part: Spent, across: Callable[[float], float], y: float) -> str:
    x = across(part.begin)
    width = max(across(part.end) - x, 0.4)
    return element(
        "rect",
        hover(part.words),
        x=x,
        y=y,
        width=width,
        height=BAND,
        fill=fill_of(PATTERN[part.state]),
        class_=f"state {part.state}" if width > 3 else "thin",
    )


def _days(
    days: Sequence[tuple[float, str]], across: Callable[[float], float], floor: float
) -> Iterator[str]:
    yield element(
        "path", d=f"M{number(across(0))},{number(floor - 6)}H{number(across(1))}", class_="axis"
    )
    for share, words in days:
        x = across(share)
        yield element("path", d=f"M{number(x)},{number(floor - 6)}v5", class_="axis")
        yield text(
            x, floor + 12, words, anchor="start" if share < 0.01 else "middle", kind="label soft"
        )


def _key(states: Sequence[tuple[str, str]], y: float) -> tuple[list[str], float]:
    """What each pattern means, as many to a line as fit."""
    drawn: list[str] = []
    x, line = 0.0, 0
    for state, words in states:
        room = 30 + svg.text_width(words) + 18
        if x and x + room > WIDTH:
            x, line = 0.0, line + 1
        top = y + 24 * line
        drawn.append(
            element("rect", x=x, y=top - 12, width=22, height=15, fill=fill_of(PATTERN[state]), class_=f"state {state}")
        )  # fmt: skip
        drawn.append(text(x + 30, top, words))
        x += room
    return drawn, 24.0 * (line + 1)


def energy_hours(name: str, title: str, hours: Sequence[HourBar], currency: str) -> str:
    """Energy by the hour of the day as bars, and above them what a kilowatt-hour cost then."""
    top, middle, foot, floor = 44.0, 96.0, 130.0, 258.0
    room = (WIDTH - LEFT - RIGHT) / len(hours)
    most = max(bar.kwh for bar in hours) or 1.0
    drawn = [text(LEFT, 14, f"price, {currency} a kWh", kind="label strong")]
    drawn += _price_line(hours, room, top, middle)
    drawn.append(text(LEFT, foot - 8, "energy, kWh", kind="label strong"))
    for value in svg.ticks(most, 3):
        y = floor - (floor - foot - 6) * value / most
        drawn.append(
            element("path", d=f"M{number(LEFT)},{number(y)}H{number(WIDTH - RIGHT)}", class_="rule")
        )
        drawn.append(text(LEFT - 8, y + 4, f"{value:g}", anchor="end", kind="label soft"))
    for index, bar in enumerate(hours):
        x, height = LEFT + room * index, (floor - foot - 6) * bar.kwh / most
        words = f"{bar.hour}:00 to {bar.hour + 1}:00: {bar.kwh:.1f} kWh"
        drawn.append(
            element("rect", hover(words), x=x + room * 0.12, y=floor - height, width=room * 0.76,
                    height=max(height, 0.5), class_="bar")
        )  # fmt: skip
        if bar.hour % 3 == 0:
            drawn.append(text(x, floor + 18, f"{bar.hour}:00", anchor="middle", kind="label soft"))
    drawn.append(
        element("path", d=f"M{number(LEFT)},{number(floor)}H{number(WIDTH - RIGHT)}", class_="axis")
    )
    dearest = max(hours, key=lambda bar: bar.price or 0)
    desc = (
        f"{sum(b.kwh for b in hours):.0f} kWh in all; the dearest hour begins at {dearest.hour}:00"
    )
    return picture(name, WIDTH, floor + 28, title, desc, *drawn)


def _price_line(hours: Sequence[HourBar], room: float, top: float, bottom: float) -> Iterator[str]:
    """The price as steps, its highest and lowest said in figures; broken where nobody states one."""
    known = [bar for bar in hours if bar.price is not None]
    if not known:
        yield text(LEFT, (top + bottom) / 2, "no price is stated", kind="label soft")
        return
    most = max(bar.price or 0 for bar in known) or 1.0
    steps: list[str] = []
    before = None
    for index, bar in enumerate(hours):
        x = LEFT + room * index
        if bar.price is not None:
            y = bottom - (bottom - top) * bar.price / most
            steps.append(
                f"{'M' if before is None else 'L'}{number(x)},{number(y)}H{number(x + room)}"
            )
        before = bar.price
    yield element("path", d="".join(steps), class_="middle")
    yield element(
        "path", d=f"M{number(LEFT)},{number(bottom)}H{number(WIDTH - RIGHT)}", class_="rule"
    )
    said: set[str] = set()
    for bar in (max(known, key=lambda b: b.price or 0), min(known, key=lambda b: b.price or 0)):
        if bar.price is not None and f"{bar.price:.3g}" not in said:
            said.add(f"{bar.price:.3g}")
            y = bottom - (bottom - top) * bar.price / most
            x = LEFT + room * (hours.index(bar) + 0.5)
            yield text(max(x, LEFT + 20), y - 6, f"{bar.price:.3g}", anchor="middle")


def rates(name: str, title: str, points: Sequence[RatePoint], unit: str) -> str:
    """What a GPU-hour sold brought each month, and what it had to bring so that nothing was lost."""
    top, floor = 26.0, 210.0
    values = [v for p in points for v in (p.got, p.needed) if v is not None]
    most = max([*values, 0.0]) * 1.1 or 1.0
    right = WIDTH - 30 - svg.text_width("had to bring 0.0000")
    room = (right - LEFT) / max(1, len(points))

    def up(value: float) -> float:
        return floor - (floor - top) * max(value, 0.0) / most

    def across(index: int) -> float:
        return LEFT + room * (index + 0.5)

    drawn = [text(LEFT, 14, unit, kind="label soft")]
    for value in svg.ticks(most, 4):
        drawn.append(
            element("path", d=f"M{number(LEFT)},{number(up(value))}H{number(right)}", class_="rule")
        )
        drawn.append(text(LEFT - 8, up(value) + 4, f"{value:g}", anchor="end", kind="label soft"))
    got = [(across(i), up(p.got)) for i, p in enumerate(points) if p.got is not None]
    needed = [(across(i), up(p.needed)) for i, p in enumerate(points) if p.needed is not None]
    drawn += [element("path", d=svg.path(needed), class_="limit")] if len(needed) > 1 else []
    drawn += [element("path", d=svg.path(got), class_="whisker thin")] if len(got) > 1 else []
    for index, point in enumerate(points):
        drawn += _point(point, across(index), up)
    drawn += _ends(points, got, needed, right)
    desc = "; ".join(
        f"{p.name}: brought {_said(p.got)}, had to bring {_said(p.needed)}" for p in points
    )
    return picture(name, WIDTH, floor + 28, title, desc, *drawn)


def _said(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"


def _point(point: RatePoint, x: float, up: Callable[[float], float]) -> Iterator[str]:
    yield text(x, 228, point.name, anchor="middle", kind="label soft")
    if point.needed is not None:
        words = f"{point.name}: had to bring {_said(point.needed)}"
        y = up(point.needed)
        yield element("path", hover(words), d=f"M{number(x - 9)},{number(y)}h18", class_="middle")
    if point.got is not None:
        words = f"{point.name}: brought {_said(point.got)}"
        yield element("circle", hover(words), cx=x, cy=up(point.got), r=5, class_="dot")


def _ends(
    points: Sequence[RatePoint],
    got: Sequence[tuple[float, float]],
    needed: Sequence[tuple[float, float]],
    right: float,
) -> Iterator[str]:
    """The two lines named at their ends, apart from one another."""
    last_got = next((p.got for p in reversed(points) if p.got is not None), None)
    last_needed = next((p.needed for p in reversed(points) if p.needed is not None), None)
    ys = [line[-1][1] if line else None for line in (got, needed)]
    if ys[0] is not None and ys[1] is not None and abs(ys[0] - ys[1]) < 16:
        middle, upper = (ys[0] + ys[1]) / 2, 0 if ys[0] <= ys[1] else 1
        ys = [middle - 8 if upper == index else middle + 8 for index in (0, 1)]
    for y, words, value in zip(
        ys, ("brought", "had to bring"), (last_got, last_needed), strict=True
    ):
        if y is not None:
            yield text(right + 10, y + 4, f"{words} {_said(value)}", kind="label strong")
