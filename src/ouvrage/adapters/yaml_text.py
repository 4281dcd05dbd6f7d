"""YAML that a person wrote, read as plain values with the line of each: no types, no aliases, no surprises.

Decides which YAML is understood: one document of mappings, lists and scalars, by the core rules of YAML 1.2 (``true``
and ``false`` are truth values, ``yes`` and ``no`` are texts, ``1:30`` is a text, decimals are exact). Anchors, aliases,
tags, keys that are no texts, keys that come twice and what is too large or too deep are refused with their line, so that
no file means more than a person who reads it sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.pricing.rates.places import Located, Place
from ouvrage.pricing.rates.places import Path as At

yaml: Any = None
try:
    import yaml as _installed
except ModuleNotFoundError:  # it comes with the server's extra
    pass
else:
    yaml = _installed

LARGEST = 256 * 2**10
DEEPEST = 20
MOST = 20_000
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,29}", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,30}\.[0-9]{1,30}", re.ASCII)
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}


def read_yaml(path: Path, area: str) -> tuple[Any, Located]:
    """The value of a YAML file and where each part stands; codes begin with ``area``."""
    return load_yaml(str(path), read_text(path, area, LARGEST), area)


def load_yaml(file: str, text: str, area: str) -> tuple[Any, Located]:
    """The value of a YAML text and where each part stands; ``OuvrageError`` ``AREA/yaml`` where it is none."""
    if yaml is None:
        raise OuvrageError(
            f"{area}/yaml-missing",
            "files in YAML are read with PyYAML, which is not installed",
            hint="pip install 'ouvrage[server]', or say the same with flags",
        )
    reading = _Reading(file, text, area)
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        raise reading.refuse(None, f"is larger than {LARGEST // 2**10} KiB")
    try:
        return reading.document(), Located(file=file, places=reading.places)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = (getattr(error, "problem", None) or str(error)).partition("\n")[0]
        raise reading.refuse(mark.line if mark else None, f"is no YAML: {problem}") from error


class _Reading:
    """One text, its events, and the places of what was read."""

    def __init__(self, file: str, text: str, area: str) -> None:
        self._file = file
        self._area = area
        self._text = text
        self._lines = text.splitlines()
        self._count = 0
        self.places: dict[At, Place] = {}

    def refuse(self, line: int | None, problem: str, hint: str | None = None) -> OuvrageError:
        """The refusal of the text at a line, counted from 0."""
        shown = self._line(line) if line is not None else None
        where = (
            f"{self._file}:{shown.number}   {safe(shown.text.strip())[:160]}"
            if shown
            else self._file
        )
        return OuvrageError(
            f"{self._area}/yaml",
            f"{self._file} {safe(problem)}"[:300],
            where=(where,),
            hint=hint or "a job file is one mapping of fields such as command: [python, train.py]",
        )

    def _line(self, line: int) -> Place:
        text = self._lines[line] if line < len(self._lines) else ""
        return Place(number=line + 1, text=text)

    def document(self) -> Any:
        """The one document's value; None of an empty text."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        events = (e for e in yaml.parse(self._text, Loader=loader) if not _frame(e))
        first = next(events, None)
        if first is None:
            return None
        value = self._value(first, events, ())
        more = next(events, None)
        if more is not None:
            raise self.refuse(more.start_mark.line, "holds a second document", "one file, one job")
        return value

    def _value(self, event: Any, events: Iterator[Any], at: At) -> Any:
        line = event.start_mark.line
        self.places.setdefault(at, self._line(line))
        self._count += 1
        if self._count > MOST or len(at) > DEEPEST:
            limit = (
                f"more than {MOST} values" if self._count > MOST else f"more than {DEEPEST} levels"
            )
            raise self.refuse(line, f"has {limit}")
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self.refuse(
                line, "uses an anchor or alias", "write the value out where it stands"
            )
        if event.tag is not None:
            raise self.refuse(line, f"uses the tag {event.tag}", "write plain values")
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event.value) if event.implicit[0] else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(events, at)
        return self._mapping(events, at)

    def _list(self, events: Iterator[Any], at: At) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(self._value(event, events, (*at, len(items))))
        return items

    def _mapping(self, events: Iterator[Any], at: At) -> dict[str, Any]:
        pairs: dict[str, Any] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            line = event.start_mark.line
            key = self._value(event, events, (*at, "")) if _is_scalar(event) else None
            if not isinstance(key, str):
                raise self.refuse(line, "has a key that is no text", "put the key in quotes")
            if key in pairs:
                raise self.refuse(line, f"has {key!r} twice", "keep one of the two")
            self.places[(*at, key)] = self._line(line)
            pairs[key] = self._value(next(events), events, (*at, key))
        return pairs


def _is_scalar(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent)


def _frame(event: Any) -> bool:
    """Whether an event only opens or closes a stream or a document."""
    frames = (
        yaml.StreamStartEvent,
        yaml.StreamEndEvent,
        yaml.DocumentStartEvent,
        yaml.DocumentEndEvent,
    )
    return isinstance(event, frames)


def _scalar(text: str) -> Any:
    """An unquoted scalar by the core rules; whatever is no number or word of theirs is a text."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return Decimal(text) if _DECIMAL.fullmatch(text) else text
