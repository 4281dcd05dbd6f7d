"""Reading fields of a plan: each asked for by name and form, each refusal with its place.

Decides how a wrong field is told (field, what was found, what was expected, where) and that a field
which nobody asks for is refused: a misspelt rule would otherwise be a rule that is not applied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timezone
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, TypeVar

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_us
from ouvrage.pricing.rates.places import Located, Path, field_name
from ouvrage.pricing.rates.quantity import duration_us, plain_number

Value = TypeVar("Value")


class Reader:
    """One table of a plan's file. ``done`` refuses whatever was not asked for."""

    def __init__(self, data: Mapping[str, Any], path: Path, file: Located) -> None:
        self.data = data
        self.path = path
        self.file = file
        self._asked: list[str] = []

    def has(self, key: str) -> bool:
        """Whether the field is there."""
        self._asked.append(key)
        return key in self.data

    def refuse(self, key: str | None, expected: str, *, found: object = None) -> OuvrageError:
        """The refusal of a field's value."""
        path = self.path if key is None else (*self.path, key)
        shown = self.data.get(key) if found is None and key is not None else found
        return OuvrageError(
            "rate-plan/field",
            f"{self.file.file}: {field_name(path) or 'the plan'} is {_shown(shown)}; expected {expected}",
            where=(self.file.where(path),),
            hint="docs/guides/rates.md describes every field of a plan",
        )

    def read(self, key: str, how: Callable[[Any], Value], default: Value) -> Value:
        """The field through ``how``, whose ``ValueError`` says what was expected."""
        if not self.has(key):
            return default
        try:
            return how(self.data[key])
        except ValueError as error:
            raise self.refuse(key, str(error)) from error

    def must(self, key: str, expected: str) -> None:
        """Refuse a table that lacks a field."""
        if not self.has(key):
            raise self.refuse(key, expected, found="missing")

    def text(self, key: str, default: str | None = None) -> str | None:
        """A text that is not empty."""
        return self.read(key, _text, default)

    def needed_text(self, key: str) -> str:
        """A text that must be there."""
        self.must(key, "a text")
        return self.read(key, _text, "")

    def choice(self, key: str, options: Sequence[str], default: str) -> str:
        """One of some words."""
        return self.read(key, lambda value: _one_of(value, options), default)

    def duration(self, key: str, default: int = 0) -> int:
        """Microseconds of a duration such as ``60 s``."""
        return self.read(key, lambda value: duration_us(_text(value)), default)

    def number(self, key: str, default: Fraction | int = 0) -> Fraction:
        """An exact number that is not negative."""
        return self.read(key, _amount, Fraction(default))

    def share(self, key: str, default: Fraction | int = 0) -> Fraction:
        """A number from 0 to 1."""
        return self.read(key, _share, Fraction(default))

    def flag(self, key: str, default: bool) -> bool:
        """``true`` or ``false``."""
        return self.read(key, _flag, default)

    def words(self, key: str, options: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of texts."""
        return self.read(key, lambda value: _list(value, options), ())

    def moment(self, key: str) -> int | None:
        """A date (its first instant, UTC) or a moment with a zone."""
        return self.read(key, _moment, None)

    def table(self, key: str) -> Reader | None:
        """A table below this one."""
        if not self.has(key):
            return None
        if not isinstance(self.data[key], Mapping):
            raise self.refuse(key, "a table")
        return Reader(self.data[key], (*self.path, key), self.file)

    def tables(self, key: str) -> list[Reader]:
        """A list of tables below this one."""
        listed = self.read(key, _tables, ())
        return [Reader(each, (*self.path, key, n), self.file) for n, each in enumerate(listed)]

    def pairs(self, key: str, how: Callable[[Any], Value]) -> dict[str, Value]:
        """A table whose keys are free and whose values all have one form."""
        below = self.table(key)
        if below is None:
            return {}
        return {name: below.read(name, how, how("0")) for name in below.data}

    def done(self) -> None:
        """Refuse a field that nobody asked for."""
        for key in self.data:
            if key not in self._asked:
                near = get_close_matches(key, self._asked, n=1)
                expected = (
                    f"{near[0]!r}" if near else f"one of {', '.join(sorted(set(self._asked)))}"
                )
                raise self.refuse(
                    key, f"a field that exists: {expected}", found=f"no field {key!r}"
                )


def _shown(value: object) -> str:
    if isinstance(value, str) and (value == "missing" or value.startswith("no field")):
        return value
    text = f"{value!r}" if isinstance(value, str) else str(value)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text")
    return value


def _one_of(value: Any, options: Sequence[str]) -> str:
    if value not in options:
        raise ValueError(f"one of {', '.join(options)}")
    return value


def _amount(value: Any) -> Fraction:
    number = plain_number(value)
    if number < 0:
        raise ValueError("a number that is not negative")
    return number


def _share(value: Any) -> Fraction:
    number = plain_number(value)
    if not 0 <= number <= 1:
        raise ValueError("a share from 0 to 1, such as 0.05")
    return number


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _list(value: Any, options: Sequence[str] | None) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in items):
        raise ValueError("a list of texts")
    return tuple(_one_of(item, options) if options else _text(item) for item in items)


def _tables(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise ValueError("a list of tables")
    return tuple(value)


def _moment(value: Any) -> int:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a moment that names its zone, such as 2026-03-01T00:00:00Z")
        return utc_us(value.astimezone(timezone.utc).isoformat())
    if isinstance(value, date):
        return utc_us(f"{value.isoformat()}T00:00:00Z")
    raise ValueError("a date such as 2026-03-01, or a moment with its zone, without quotes")
