"""Where each field of a TOML text stands, so that a refusal can name the line.

The standard parser keeps no lines. This reads headers and keys only, never values; it decides
nothing about what a plan means, and an odd layout costs a refusal its line, not its truth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(?P<open>\[\[?)(?P<name>[^\[\]]+)\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"\s*(?P<name>[A-Za-z0-9_\"'. -]+?)\s*=")
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*')


_SHOWN = 160
"""So much of a line is shown, whatever it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One line of a file."""

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A file's name, and the line of each field that is known."""

    file: str
    places: Mapping[Path, Place] = field(default_factory=dict)

    def where(self, path: Path) -> str:
        """``plans/ec2.toml:41   valid_until = 2026-03-01``, or the field where no line is known."""
        for length in range(len(path), 0, -1):
            place = self.places.get(path[:length])
            if place is not None:
                return f"{self.file}:{place.number}   {place.text.strip()[:_SHOWN]}"
        return f"{self.file}   {field_name(path)}" if path else self.file


def field_name(path: Path) -> str:
    """``version[0].rule[2].increment``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def located(file: str, text: str) -> Located:
    """Find the lines of a TOML text."""
    places: dict[Path, Place] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    inside = _Inside()
    for number, line in enumerate(text.splitlines(), 1):
        if inside.value(line):
            continue
        place = Place(number=number, text=line)
        header = _HEADER.fullmatch(line)
        if header:
            table = _entered(_names(header["name"]), counts, listed=len(header["open"]) == 2)
            places.setdefault(table, place)
            continue
        key = _KEY.match(line)
        if key:
            places.setdefault(table + tuple(_names(key["name"])), place)
            inside.begins(line[key.end() :])
    return Located(file=file, places=places)


def _names(text: str) -> list[str]:
    return [part.strip().strip("\"'") for part in text.split(".")]


def _entered(names: list[str], counts: dict[Path, int], *, listed: bool) -> Path:
    """The path that a header opens; each part may be a list, of which the last item is meant."""
    path: Path = ()
    for index, name in enumerate(names):
        path = (*path, name)
        if listed and index == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


class _Inside:
    """Whether a line belongs to a value that began on an earlier one."""

    def __init__(self) -> None:
        self._depth = 0
        self._quotes = ""

    def value(self, line: str) -> bool:
        """Take a line; True while an earlier value goes on."""
        if not self._depth and not self._quotes:
            return False
        self.begins(line)
        return True

    def begins(self, text: str) -> None:
        """Take the text of a value as far as this line goes."""
        if self._quotes:
            _, ended, text = text.partition(self._quotes)
            if not ended:
                return
            self._quotes = ""
        for quotes in ('"""', "'''"):
            before, opened, after = text.partition(quotes)
            if opened:
                text = before
                if quotes not in after:
                    self._quotes = quotes
        bare = _QUOTED.sub("", text)
        self._depth += bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")
