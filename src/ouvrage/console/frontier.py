"""Cost against time, one mark an offer, with the frontier drawn through those that nobody beats.

Decides the scales (from nought, so that lengths can be compared) and which marks are named: those of
the frontier. An offer off the frontier is both slower and dearer than one on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ouvrage.console.svg import (
    clock_text,
    clock_ticks,
    element,
    hover,
    number,
    picture,
    text,
    ticks,
)

Scale = Callable[[float], float]

WIDTH, HEIGHT = 880.0, 380.0
LEFT, RIGHT, TOP, BOTTOM = 70.0, 24.0, 28.0, 46.0
MOST = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One offer: seconds to finish, cost of a unit, its range, and whether it is on the frontier."""

    name: str
    seconds: float
    cost: float
    low: float
    high: float
    label: str
    best: bool


def scatter(name: str, title: str, marks: Sequence[Mark], unit: str) -> str:
    """The picture. Ranges are faint, so that the frontier is what is seen.

    What costs many times the cheapest is counted at the upper edge: it would press the rest flat.
    """
    highest = min((mark.cost for mark in marks), default=1.0) * MOST
    inside = [mark for mark in marks if mark.cost <= highest or mark.best]
    far = max((mark.seconds for mark in inside), default=1.0) * 1.12 or 1.0
    top = max((mark.cost for mark in inside), default=1.0) * 1.25 or 1.0

    def x(seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * seconds / far

    def y(cost: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(cost, top) / top)

    edge = sorted((mark for mark in marks if mark.best), key=lambda mark: mark.seconds)
    parts = [*_axes(far, top, x, y, unit), *_steps([(x(m.seconds), y(m.cost)) for m in edge])]
    parts += [_drawn(mark, x(mark.seconds), y) for mark in inside]
    parts += _labels(edge, x, y)
    if len(inside) < len(marks):
        words = f"{len(marks) - len(inside)} cost more than {MOST:g} times the cheapest"
        parts.append(text(WIDTH - RIGHT, TOP + 4, words, anchor="end", kind="label soft"))
    desc = "; ".join(mark.label for mark in edge)
    return picture(name, WIDTH, HEIGHT, title, f"The frontier: {desc}", *parts)


def _axes(far: float, top: float, x: Scale, y: Scale, unit: str) -> list[str]:
    ground = y(0.0)
    parts = [
        element(
            "path", d=f"M{number(LEFT)},{number(ground)}H{number(WIDTH - RIGHT)}", class_="axis"
        )
    ]
    parts += [
        text(x(value), ground + 18, clock_text(value), anchor="middle", kind="label soft")
        for value in clock_ticks(far, 6)
    ]
    for value in ticks(top, 4):
        line = f"M{number(LEFT)},{number(y(value))}H{number(WIDTH - RIGHT)}"
        parts.append(element("path", d=line, class_="rule"))
        parts.append(text(LEFT - 8, y(value) + 4, f"{value:.4g}", anchor="end", kind="label soft"))
    parts.append(text(WIDTH - RIGHT, ground + 36, "time to finish", anchor="end"))
    parts.append(text(LEFT, TOP - 12, f"cost per {unit}"))
    return parts


def _steps(points: Sequence[tuple[float, float]]) -> list[str]:
    """The frontier: between two of its offers nothing is had that is as cheap and faster."""
    if len(points) < 2:
        return []
    path = f"M{number(points[0][0])},{number(points[0][1])}"
    for px, py in points[1:]:
        path += f"H{number(px)}V{number(py)}"
    return [
        element("path", d=path, fill="none", stroke="currentColor", stroke_width=1.5, class_="edge")
    ]


def _drawn(mark: Mark, px: float, y: Scale) -> str:
    shape = {"fill": "currentColor"} if mark.best else {"fill": "none", "stroke": "currentColor"}
    range_ = element(
        "path",
        d=f"M{number(px)},{number(y(mark.low))}V{number(y(mark.high))}",
        stroke="currentColor",
        stroke_opacity=0.25,
    )
    dot = element(
        "circle", hover(mark.label), cx=px, cy=y(mark.cost), r=4.5 if mark.best else 3.5, **shape
    )
    return range_ + dot


def _labels(edge: Sequence[Mark], x: Scale, y: Scale) -> list[str]:
    parts = []
    for mark in edge:
        px, left = x(mark.seconds), x(mark.seconds) > WIDTH * 0.7
        where = px - 9 if left else px + 9
        parts.append(text(where, y(mark.cost) - 7, mark.name, anchor="end" if left else "start"))
    return parts
