"""How the archive grows, as a picture: time for tenant × day over the number of samples.

Decides which ways of asking stand in it and in which colours.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from bench._figure import BLUE, BROWN, GREEN, PURPLE, curves

SERIES = (
    ("sqlite", "SQLite, from the rows", BROWN),
    ("duckdb", "DuckDB, from the rows", PURPLE),
    ("archive", "archive, from the rows", BLUE),
    ("sums", "archive, from the sums", GREEN),
)


def drawn(growth: Sequence[dict[str, Any]]) -> str:
    """An SVG: milliseconds of a core for each way of asking, by size."""
    lines = [(words, colour, _points(growth, name)) for name, words, colour in SERIES]
    return curves("Tenant × day: milliseconds of a core, by number of samples", lines)


def _points(growth: Sequence[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    took = [
        (each["samples"], each["sums"] if name == "sums" else each["raw"].get(name))
        for each in growth
    ]
    return [(size, statistics.median(each["core"])) for size, each in took if each]
