"""Traces of requests to a language model: when each came, and how many tokens went in and out.

Decides which forms are read (the CSV of the Azure LLM inference traces, a CSV and JSON lines of our
own), and at which moment of a replay each request is due. It sends nothing. Chance is an argument
made from the request's number, so that the same replay asks the same again.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from hashlib import sha256
from math import log
from typing import Any, NoReturn

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import SECOND

AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
OWN = ("at_s", "tokens_in", "tokens_out")
MOST_TOKENS = 10_000_000
_HINT = f"a CSV with the columns {','.join(AZURE)} or {','.join(OWN)}, or JSON lines of the latter"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request: due ``at_us`` after the first, so many tokens in and out."""

    at_us: int
    tokens_in: int
    tokens_out: int


def read_arrivals(lines: Iterable[str], name: str) -> list[Arrival]:
    """The requests of a trace, by their moments, the first at 0.

    Raises ``OuvrageError`` ``trace/...`` that names the file, the line, what was found and what was
    expected.
    """
    rows = list(_rows(iter(lines), name))
    if not rows:
        raise OuvrageError("trace/empty", f"{name} holds no request", hint=_HINT)
    rows.sort(key=lambda row: row.at_us)
    first = rows[0].at_us
    return [
        Arrival(at_us=row.at_us - first, tokens_in=row.tokens_in, tokens_out=row.tokens_out)
        for row in rows
    ]


def _rows(lines: Iterator[str], name: str) -> Iterator[Arrival]:
    head = next(lines, "").lstrip("\ufeff")
    columns = tuple(word.strip() for word in head.split(","))
    if head.lstrip().startswith("{"):
        yield from _read([(1, head), *enumerate(lines, 2)], name, _from_json)
    elif columns == AZURE:
        yield from _read(enumerate(lines, 2), name, lambda line: _from_csv(line, _moment))
    elif columns == OWN:
        yield from _read(enumerate(lines, 2), name, lambda line: _from_csv(line, _seconds))
    elif head.strip():
        raise OuvrageError(
            "trace/columns", f"the columns {head.strip()[:80]!r} are no trace of requests",
            where=(f"{name}:1",), hint=_HINT,
        )  # fmt: skip


def _read(
    numbered: Iterable[tuple[int, str]], name: str, read: Callable[[str], Arrival]
) -> Iterator[Arrival]:
    for number, line in numbered:
        if not line.strip():
            continue
        try:
            yield read(line)
        except (ValueError, RecursionError, csv.Error) as error:
            raise OuvrageError(
                "trace/row", f"the row cannot be read: {error}",
                where=(f"{name}:{number}   {line.strip()[:80]}",),
                hint="mend or remove the row; nothing was sent",
            ) from error  # fmt: skip


def _from_csv(line: str, moment: Callable[[str], int]) -> Arrival:
    fields = [field.strip() for row in csv.reader([line]) for field in row]
    if len(fields) != len(OWN):
        raise ValueError(f"{len(fields)} fields where {len(OWN)} were expected")
    return Arrival(
        at_us=moment(fields[0]), tokens_in=_tokens(fields[1]), tokens_out=_tokens(fields[2])
    )


def _from_json(line: str) -> Arrival:
    value: Any = json.loads(line, parse_float=Decimal)
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    for name in OWN:
        if name not in value:
            raise ValueError(f"no {name}")
    at, *tokens = (str(value[name]) for name in OWN)
    return Arrival(at_us=_seconds(at), tokens_in=_tokens(tokens[0]), tokens_out=_tokens(tokens[1]))


def _tokens(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 8 or int(text) > MOST_TOKENS:
        raise ValueError(f"{text[:40]!r} where a number of tokens was expected")
    return int(text)


def _seconds(text: str) -> int:
    try:
        value = Decimal(text if len(text) <= 40 else "NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or not 0 <= value <= 10**10:
        raise ValueError(f"{text[:40]!r} where seconds were expected")
    return int(value * SECOND)


def _moment(text: str) -> int:
    """Microseconds of ``2023-11-16 18:17:03.9799600``; the trace names no zone and needs none."""
    whole, _, part = text.partition(".")
    if part and not (part.isascii() and part.isdigit()):
        _no_moment(text)
    try:
        moment = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc)
    except ValueError:
        _no_moment(text)
    seconds = (moment - _EPOCH).days * 86_400 + (moment - _EPOCH).seconds
    return seconds * SECOND + int(part[:6].ljust(6, "0"))


def _no_moment(text: str) -> NoReturn:
    raise ValueError(f"{text[:40]!r} where a moment was expected, 2023-11-16 18:17:03.9799600")


def sped_up(arrivals: Sequence[Arrival], speed_up: Fraction) -> list[Arrival]:
    """The trace with its moments so many times nearer to one another."""
    return [_due(arrival, int(arrival.at_us / speed_up)) for arrival in arrivals]


def at_rate(arrivals: Sequence[Arrival], per_second: Fraction) -> list[Arrival]:
    """The trace's requests, so many a second on average, independent of one another.

    Gaps are exponential, as they are where many people ask without knowing of each other
    (a Poisson process); each is made from the hash of its number, the same every time.
    """
    at, found = Fraction(0), list[Arrival]()
    for number, arrival in enumerate(arrivals):
        found.append(_due(arrival, int(at)))
        at += (
            Fraction(SECOND) / per_second * Fraction(-log(_chance(number))).limit_denominator(10**9)
        )
    return found


def _chance(number: int) -> float:
    """A number above 0 and up to 1 that looks like chance and is not."""
    return (int.from_bytes(sha256(b"arrival %d" % number).digest()[:6], "big") + 1) / 2**48


def _due(arrival: Arrival, at_us: int) -> Arrival:
    return Arrival(at_us=at_us, tokens_in=arrival.tokens_in, tokens_out=arrival.tokens_out)
