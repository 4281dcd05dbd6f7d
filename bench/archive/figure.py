"""How the archive grows, as a picture: time for tenant × day over the number of samples.

Decides the scales (both logarithmic: a straight line of slope one is growth in step) and the words. The
colours are fixed, since the picture stands in a page that has no variables of ours.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 70, 190, 50, 50
SERIES = (
    ("sqlite", "SQLite, from the rows", "#9a6700"),
    ("duckdb", "DuckDB, from the rows", "#8250df"),
    ("archive", "archive, from the rows", "#0969da"),
    ("sums", "archive, from the sums", "#1a7f37"),
)


def drawn(growth: Sequence[dict[str, Any]]) -> str:
    """An SVG: milliseconds of a core for each way of asking, by size."""
    lines = {name: _points(growth, name) for name, _, _ in SERIES}
    values = [ms for points in lines.values() for _, ms in points]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = (math.log10(growth[i]["samples"]) for i in (0, -1))

    def at(samples: float, ms: float) -> tuple[float, float]:
        across = (math.log10(samples) - first) / (last - first)
        up = (math.log10(ms) - low) / (high - low)
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )

    parts = [_text(LEFT, 24, "Tenant × day: milliseconds of a core, by number of samples", size=15)]
    for power in range(low, high + 1):
        _, y = at(growth[0]["samples"], 10**power)
        end = WIDTH - RIGHT
        parts.append(f'<path d="M{LEFT} {y:.1f}H{end}" stroke="#8884" fill="none"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{10**power:g}", anchor="end"))
    for each in growth:
        x, _ = at(each["samples"], 10**low)
        parts.append(_text(x, HEIGHT - BOTTOM + 20, f"{each['samples']:,}", anchor="middle"))
    for name, words, colour in SERIES:
        parts += _line([at(*point) for point in lines[name]], words, colour)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif">'
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    return "\n".join([head, ground, *parts, "</svg>", ""])


def _points(growth: Sequence[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    took = [
        (each["samples"], each["sums"] if name == "sums" else each["raw"].get(name))
        for each in growth
    ]
    return [(size, statistics.median(each["core"])) for size, each in took if each]


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
