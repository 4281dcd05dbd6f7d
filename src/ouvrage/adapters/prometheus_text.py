"""Prometheus' text form, line by line: name, labels, and the value as it is written.

Decides only what is a series: comments and lines of another form are passed over, values are left as texts so that
none loses digits. What the names mean is for the readers (``serving_metrics``, ``gpu_metrics``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SERIES = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+([^\s]+)(?:\s+-?\d+)?\s*$", re.ASCII)
_LABEL = re.compile(r'(?<!\w)(\w+)="((?:[^"\\]|\\.)*)"', re.ASCII)


def series(text: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """Every series of a page."""
    for line in text.split("\n"):
        match = None if line.startswith("#") else _SERIES.match(line.strip())
        if match is not None:
            yield match[1], dict(_LABEL.findall(match[2] or "")), match[3]
