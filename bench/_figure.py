"""Growth as a picture: one line for each way of doing something, over how much there is of it.

Decides the scales (both logarithmic: a straight line of slope one is growth in step). The colours are
fixed, since the picture stands in a page that has no variables of ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 70, 190, 50, 50
Points = Sequence[tuple[float, float]]
BLUE, GREEN, BROWN, PURPLE = "#0969da", "#1a7f37", "#9a6700", "#8250df"


def curves(title: str, lines: Sequence[tuple[str, str, Points]]) -> str:
    """An SVG of lines, each with its words, its colour and its points ``(size, value)``."""
    values = [value for _, _, points in lines for _, value in points]
    sizes = sorted({size for _, _, points in lines for size, _ in points})
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])

    def at(size: float, value: float) -> tuple[float, float]:
        across = (math.log10(size) - first) / (last - first)
        up = (math.log10(value) - low) / (high - low)
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )

    parts = [_text(LEFT, 24, title, size=15)]
    for power in range(low, high + 1):
        _, y = at(sizes[0], 10**power)
        end = WIDTH - RIGHT
        parts.append(f'<path d="M{LEFT} {y:.1f}H{end}" stroke="#8884" fill="none"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{10**power:g}", anchor="end"))
    for each in sizes:
        x, _ = at(each, 10**low)
        parts.append(_text(x, HEIGHT - BOTTOM + 20, f"{each:,}", anchor="middle"))
    for words, colour, points in lines:
        parts += _line([at(*point) for point in points], words, colour)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif">'
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    return "\n".join([head, ground, *parts, "</svg>", ""])


def _line(points: Sequence[tuple[float, float]], words: str, colour: str) -> list[str]:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
    x, y = points[-1]
    return [
        f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"/>',
        *dots,
        _text(x + 10, y + 4, words, colour=colour),
    ]


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 12,
    anchor: str = "start",
    colour: str = "#24292f",
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}">{words}</text>'
