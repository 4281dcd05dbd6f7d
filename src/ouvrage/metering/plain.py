"""Plain values in a line of a spool: JSON without floats, whole numbers, text that any store can hold.

Decides what is refused (a float, a negative number, another type than expected) and never mends a number.
Text is made safe instead, since a command's name is whatever somebody typed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

Json = Mapping[str, Any]


def object_in(line: str) -> Json:
    """The object that a line is. Raises ``ValueError`` or ``TypeError``, also for a float in it."""
    return mapping(json.loads(line, parse_float=_no_float, parse_constant=_no_float))


def mapping(value: Any) -> Json:
    """An object. Raises ``TypeError`` where it is none."""
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} where an object was expected")
    return cast("dict[str, Any]", value)


def _no_float(text: str) -> Any:
    raise ValueError(f"{text} is no integer")


def whole(value: Any) -> int:
    """A whole number from nought on. Raises ``ValueError`` where it is none."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} where a whole number was expected")
    return value


def whole_or_none(value: Any) -> int | None:
    """The same, or None."""
    return None if value is None else whole(value)


def column(values: Sequence[Any], times: Sequence[int]) -> list[int | None]:
    """A column of samples beside its times. Raises ``ValueError`` where their lengths differ."""
    if len(values) != len(times):
        raise ValueError("a column of samples with another length than its times")
    return [whole_or_none(value) for value in values]


def text_in(value: Any) -> str:
    """Text that every database can hold: no lone surrogates and no NUL."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} where text was expected")
    return value.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def cleaned(value: Any) -> Any:
    """A value with every text in it made such."""
    if isinstance(value, list):
        return [cleaned(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {str(key): cleaned(item) for key, item in cast("dict[Any, Any]", value).items()}
    return text_in(value) if isinstance(value, str) else value
