"""The values of a job file: counts, sizes, durations, paths, names, pairs; each read exactly or refused with what was expected.

Decides what each form of value may be and its bounds, so that nothing which cannot be started, stored or shown gets into
the queue. Every reader takes a plain value (text, whole number, exact decimal, list, mapping) and raises ``ValueError``
whose words finish the sentence "expected …". Values typed as flags are texts, so every reader understands texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ouvrage.base.price import PER_US
from ouvrage.base.time import DAY, utc_us
from ouvrage.model.work import Carried, Named
from ouvrage.pricing.rates.quantity import GB_DECIMAL, converted, measure, time_unit

MIB = 2**20
LONGEST_TEXT = 100_000
LONGEST_FILE_NAME = 200
LONGEST_PATH = 1024
MOST_ITEMS = 1000
LONGEST_TIME_US = 3660 * DAY
LARGEST_MIB = 2**40

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}", re.ASCII)
_DURATION_PART = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,15})?\s*[A-Za-z]+)", re.ASCII)
_GPUS = re.compile(r"([0-9]{1,4})(?:\s*GPUs?)?", re.ASCII | re.IGNORECASE)
_MONEY = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}", re.ASCII)
_FILE_NAME = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]{0,511}", re.ASCII)
_EGRESS = re.compile(r"[A-Za-z0-9*.:/\[\]_-]{1,253}", re.ASCII)

Read = Callable[[Any], Any]


class Wrong(ValueError):
    """A part of a value that cannot stand: ``path`` leads to what was ``found`` there."""

    def __init__(self, expected: str, found: object, path: tuple[str | int, ...]) -> None:
        super().__init__(expected)
        self.found = found
        self.path = path


def _part(read: Read, value: Any, at: str | int, found: object = None) -> Any:
    """One part of a value; its refusal says which."""
    try:
        return read(value)
    except ValueError as error:
        raise Wrong(str(error), value if found is None else found, (at,)) from error


def text(value: Any, most: int = LONGEST_TEXT) -> str:
    """A text that a process can be given: not empty, no NUL, no broken characters."""
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    if len(value) > most:
        raise ValueError(f"a text of at most {most} characters")
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise ValueError("a text without NUL or broken characters")
    return value


def written(value: Any) -> str:
    """A text, or a number or truth value as it was written; may be empty."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if abs(value) >= 10**60:
            raise ValueError("a text, or a number of at most 60 digits")
        return str(value)
    if isinstance(value, Decimal):
        return decimal_as_written(value)
    return value if value == "" and isinstance(value, str) else text(value)


def decimal_as_written(value: Decimal) -> str:
    """Plain decimal text; an exponent beyond 30 would make a text of any length, and no file can say it."""
    if not value.is_finite() or abs(value.adjusted()) > 30 or len(value.as_tuple().digits) > 60:
        raise ValueError("a text, or a plain decimal number")
    return f"{value:f}"


def count(least: int, most: int) -> Read:
    """A whole number between two bounds."""

    def read(value: Any) -> int:
        number = value
        if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
            number = int(value)
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return number

    return read


def gpus(value: Any) -> int:
    """``1``, ``2 GPUs``."""
    found = _GPUS.fullmatch(value.strip()) if isinstance(value, str) else None
    try:
        return count(0, 1024)(found[1] if found else value)
    except ValueError as error:
        raise ValueError("a whole number of GPUs, such as 1 or 2 GPUs (at most 1024)") from error


def size_mib(value: Any) -> int:
    """``8GiB`` or ``500 MB``, in MiB, rounded up."""
    expected = "a size with its unit, such as 8GiB or 500 MB"
    if not isinstance(value, str):
        raise ValueError(expected)
    try:
        amount, unit = measure(value)
    except ValueError as error:
        raise ValueError(expected) from error
    size = converted(amount, unit, "B", GB_DECIMAL)
    if size is None:
        raise ValueError(expected)
    mib = -(-size // MIB)
    if not 0 <= mib <= LARGEST_MIB:
        raise ValueError(f"a size of at most {LARGEST_MIB // 2**20} TiB")
    return int(mib)


def duration_us(value: Any) -> int:
    """``2h``, ``90 min`` or ``1h 30min``, in whole microseconds and more than nothing."""
    expected = "a duration with its unit, such as 90 s, 2h or 1h 30min"
    parts = list(_DURATION_PART.finditer(value)) if isinstance(value, str) else []
    if not parts or "".join(p[0] for p in parts) != value.rstrip() or len(parts) > 4:
        raise ValueError(expected)
    total = Fraction(0)
    for part in parts:
        amount, unit = measure(part[1])
        name = time_unit(unit)
        if name not in PER_US:
            raise ValueError(expected)
        total += amount * PER_US[name]
    if total.denominator != 1 or not 0 < total <= LONGEST_TIME_US:
        raise ValueError(f"{expected}; more than nothing, at most 10 years")
    return int(total)


def moment_us(value: Any) -> int:
    """``2026-12-01T08:00:00Z``: a moment that names its zone."""
    expected = "a moment with its zone, such as 2026-12-01T08:00:00Z"
    try:
        at = utc_us(text(value, 64))
    except (ValueError, OverflowError) as error:
        raise ValueError(expected) from error
    if at < 0:
        raise ValueError(expected)
    return at


def money(value: Any) -> str:
    """``5.00``: an amount above nothing, in the organisation's currency, as decimal text."""
    expected = "an amount above nothing such as 5.00, in your organisation's currency"
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise ValueError(expected)
    if isinstance(value, int) and not 0 < value < 10**15:
        raise ValueError(expected)
    shown = decimal_as_written(value) if isinstance(value, Decimal) else str(value).strip()
    if not _MONEY.fullmatch(shown) or not Decimal(shown):
        raise ValueError(expected)
    return shown


def flag(value: Any) -> bool:
    """``true`` or ``false``."""
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise ValueError("true or false")


def one_of(*options: str) -> Read:
    """One of some words."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in options:
            raise ValueError(f"one of {', '.join(options)}")
        return value

    return read


def slug(value: Any) -> str:
    """A name of small letters, digits and hyphens."""
    if not isinstance(value, str) or not SLUG.fullmatch(value):
        raise ValueError("a name of a-z, 0-9 and '-', at most 63, such as train-resnet")
    return value


def model(value: Any) -> str:
    """A GPU's model as people write it."""
    name = text(value, 64)
    if not name.isprintable() or not name.isascii():
        raise ValueError("a GPU model such as RTX 4090")
    return name


def image(value: Any) -> str:
    """An OCI image's reference."""
    if not isinstance(value, str) or not _IMAGE.fullmatch(value) or ".." in value:
        raise ValueError("an image such as docker.io/library/python:3.11")
    return value


def expression(value: Any) -> str:
    """A regular expression that Python understands."""
    pattern = text(value, 1000)
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"a regular expression ({error})") from error
    return pattern


def command(value: Any) -> tuple[str, ...]:
    """A list of words to run as they are, or one text for ``/bin/sh``."""
    if isinstance(value, str):
        return ("/bin/sh", "-c", text(value))
    if not isinstance(value, list | tuple) or not value or len(value) > MOST_ITEMS:
        raise ValueError(f"a text, or a list of 1 to {MOST_ITEMS} words")
    words = tuple(_part(written, word, n) for n, word in enumerate(value))
    if not words[0] or sum(map(len, words)) > LONGEST_TEXT:
        raise ValueError(f"a program and its words, {LONGEST_TEXT} characters in all")
    return words


def path(value: Any) -> str:
    """A path inside the sandbox that stays where it says: no ``..``, no control characters."""
    name = text(value, LONGEST_PATH)
    if not name.isprintable() or ".." in name.split("/") or not name.strip("/. "):
        raise ValueError("a path without '..' and control characters, such as data/train.csv")
    return name


def absolute(value: Any) -> str:
    """A path from the root of the sandbox."""
    name = path(value)
    if not name.startswith("/"):
        raise ValueError("a path that begins with '/', such as /data")
    return name


def address_path(value: Any) -> str:
    """The path of an address of a service, without its host."""
    name = text(value, LONGEST_PATH)
    if not name.startswith("/") or not name.isascii() or not name.isprintable() or " " in name:
        raise ValueError("the path of an address, such as /health")
    return name


def file_name(value: Any) -> str:
    """The name of a file in the job's store: one that is sent and asked for by it, no path and not hidden."""
    name = text(value, LONGEST_FILE_NAME)
    if not _FILE_NAME.fullmatch(name) or name.startswith("."):
        raise ValueError("a file's name of letters, digits, '.', '_', '-', such as train.csv")
    return name


def words_list(read: Read) -> Read:
    """A list of values of one form; a single one may stand alone."""

    def all_of(value: Any) -> tuple[Any, ...]:
        items = value if isinstance(value, list | tuple) else [value]
        if len(items) > MOST_ITEMS:
            raise ValueError(f"at most {MOST_ITEMS} items")
        return tuple(_part(read, item, n) for n, item in enumerate(items))

    return all_of


def destination(value: Any) -> str:
    """A host, a network or one of them with a port, as an egress list names it."""
    if not isinstance(value, str) or not _EGRESS.fullmatch(value):
        raise ValueError("a host or network such as example.org:443 or 192.0.2.0/24")
    return value


def environment(value: Any) -> tuple[Named, ...]:
    """Variables and their values."""
    return _named(value, written, "NAME=VALUE")


def secrets(value: Any) -> tuple[Named, ...]:
    """Variables, and the secret of the project that each holds."""
    return _named(value, slug, "VARIABLE=SECRET")


def files(value: Any) -> tuple[Carried, ...]:
    """Paths in the sandbox, and the name of each in the job's store of files."""
    return _carried(value, path, file_name, "PATH=NAME", alone=True)


def volumes(value: Any) -> tuple[Carried, ...]:
    """Paths in the sandbox, and the project's volume that stands at each."""
    return _carried(value, absolute, slug, "PATH=VOLUME", alone=False)


def _named(value: Any, read: Read, form: str) -> tuple[Named, ...]:
    return tuple(
        Named(name=_part(variable, name, at, found=name), value=_part(read, given, at))
        for at, name, given in _pairs(value, form, alone=False)
    )


def _carried(value: Any, left: Read, right: Read, form: str, *, alone: bool) -> tuple[Carried, ...]:
    return tuple(
        Carried(path=_part(left, where, at, found=where), name=_part(right, name, at))
        for at, where, name in _pairs(value, form, alone=alone)
    )


def variable(name: Any) -> str:
    """The name of a variable of an environment."""
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        raise ValueError("variables named by letters, digits and '_', such as LEARNING_RATE")
    return name


def _pairs(value: Any, form: str, *, alone: bool) -> Iterator[tuple[str | int, Any, Any]]:
    """Pairs of a mapping, or of a list of texts ``A=B`` (``A`` for ``A=A`` where that may be), each with its place."""
    seen: set[Any] = set()
    for at, left, right in _items(value, form, alone):
        if left in seen:
            raise Wrong(f"each {form.split('=')[0]} once", left, (at,))
        seen.add(left)
        yield at, left, right


def _items(value: Any, form: str, alone: bool) -> list[tuple[str | int, Any, Any]]:
    items: list[tuple[str | int, Any, Any]]
    if isinstance(value, Mapping):
        items = [(str(left), left, right) for left, right in value.items()]
    elif isinstance(value, list | tuple):
        items = [(n, *_split(item, n, form, alone)) for n, item in enumerate(value)]
    else:
        items = [(0, *_split(value, 0, form, alone))]
    if len(items) > MOST_ITEMS:
        raise ValueError(f"at most {MOST_ITEMS} of {form}")
    return items


def _split(item: Any, at: int, form: str, alone: bool) -> tuple[str, str]:
    if isinstance(item, str):
        left, equals, right = item.partition("=")
        if equals or alone:
            return left, right if equals else left
    raise Wrong(f"{form}, or a mapping", item, (at,))
