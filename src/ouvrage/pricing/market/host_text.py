"""A check of a host in words and as a JSON value: was it what was promised, and what was it?

Decides words and digits only; outcomes were made by ``host_checks``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.base.time import SECOND, utc_text, utc_us
from ouvrage.model.hosts import BROKEN, HELD, UNKNOWN, HostChecked, HostLine, HostReading
from ouvrage.pricing.market.host_checks import digits, notices, outcome_of
from ouvrage.pricing.market.promises import KINDS
from ouvrage.pricing.words import mark, rounded, shortened

HEAD = ("", "promised", "delivered", "", "")
SAID = {HELD: "held", BROKEN: "BROKEN", UNKNOWN: "not known"}
_WIDTH = 72
_DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,60})?", re.ASCII)


def headline(value: HostChecked, grade: Grade, plain: bool) -> str:
    """The answer: held, broken and in what, or what the host is where nothing was promised."""
    if value.offer is None:
        return (
            f"This host: {_summary(value.lines, grade, plain)}. Nothing was promised: --offer FILE"
        )
    of = f"{safe(value.provider or '')}, {shortened(value.offer, 40)}".lstrip(", ")
    words = {
        each: [
            KINDS[line.id].words for line in value.lines if line.promised and line.outcome == each
        ]
        for each in (BROKEN, UNKNOWN, HELD)
    }
    unknown = f"; not known: {', '.join(words[UNKNOWN])}" if words[UNKNOWN] else ""
    if words[BROKEN]:
        return f"The host is not what was promised ({of}): {', '.join(words[BROKEN])}{unknown}."
    if words[HELD]:
        return f"The host holds what was promised of its {', '.join(words[HELD])} ({of}){unknown}."
    return f"Nothing that was promised could be told ({of}){unknown}."


def _summary(lines: Sequence[HostLine], grade: Grade, plain: bool) -> str:
    shown = {line.id: delivered(line, plain) for line in lines if _read(line)}
    main = {"cpu.allowed": "", "memory.limit": " memory", "gpu.count": " GPU", "gpu.model": ""}
    told = [f"{shown[id]}{words}" for id, words in main.items() if id in shown]
    return ", ".join(told) + mark(grade, plain) if told else "nothing could be read"


NOT_TOLD = "not told"


def delivered(line: HostLine, plain: bool) -> str:
    """What was read, with its unit: a value, a range with an open side, or a name."""
    unit = f" {line.unit}" if line.unit else ""
    if line.text is not None:
        return shortened(line.text, 44)
    low, high = (None if v is None else digits(v) for v in (line.low, line.high))
    if low is None and high is None:
        return NOT_TOLD
    if high is None:
        return f"{low}{unit} or more"
    if low is None:
        return f"up to {high}{unit}"
    return f"{low}{unit}" if low == high else f"{low}{' to ' if plain else '–'}{high}{unit}"


def promised_words(line: HostLine) -> str:
    """What was promised, with its operator where that is not the plain one."""
    if line.promised is None:
        return "–"
    sign = "up to " if line.operator == "<=" else ""
    unit = f" {line.unit}" if line.unit else ""
    return f"{sign}{shortened(line.promised, 30)}{unit}"


def rows(value: HostChecked, grade: Grade, plain: bool) -> list[tuple[str, ...]]:
    """A row for each line: what was promised and what was delivered, first what is broken."""
    order = (BROKEN, UNKNOWN, HELD)
    lines = sorted(value.lines, key=lambda line: (line.promised is None, order.index(line.outcome)))
    return [_row(line, grade, plain) for line in lines if line.promised or _read(line)]


def _read(line: HostLine) -> bool:
    return (line.low, line.high, line.text) != (None, None, None)


def _row(line: HostLine, grade: Grade, plain: bool) -> tuple[str, ...]:
    part = f", {line.part}" if line.part else ""
    found = delivered(line, plain)
    return (
        f"{KINDS[line.id].words}{part}",
        promised_words(line).replace("–", "-" if plain else "–"),
        found if found == NOT_TOLD else f"{found}{mark(grade, plain)}",
        SAID[line.outcome] if line.promised is not None else "",
        shortened(line.reason.removeprefix("nothing was promised; "), _WIDTH),
    )


def closing(value: HostChecked) -> list[str]:
    """What stands out beside the promises, and how the check was made."""
    said = [f"  note: {safe(words)}" for words in notices(value.readings)]
    loose = [line for line in value.lines if line.promised is not None and line.margin_percent]
    if loose:
        most = max(line.margin_percent for line in loose)
        said.append(f"  A little less counts as delivered: up to {most} %, by line in --json.")
    return said


def took(value: HostChecked) -> str:
    """``27.1 s`` as the check itself took."""
    return f"{rounded(Fraction(value.took_us, SECOND))} s"


def check_json(value: HostChecked, grade: Grade) -> dict[str, Any]:
    """The check as ``--json`` prints it; its readings are enough to hold it to another promise."""
    return {
        "check": value.check,
        "machine": value.machine,
        "checked_at": utc_text(value.started_us),
        "took_s": _number(Fraction(value.took_us, SECOND)),
        "long": value.long,
        "offer": value.offer,
        "provider": value.provider,
        "outcome": outcome_of(value.lines),
        "checks": [line_json(line, grade) for line in value.lines],
        "notices": notices(value.readings),
        "host": asdict(value.host),
        "readings": [asdict(each) for each in value.readings],
        "promises": [asdict(each) for each in value.promises],
    }


def line_json(line: HostLine, grade: Grade) -> dict[str, Any]:
    """One check: ``actual`` is the surer bound, the whole range beside it."""
    low, high = (None if v is None else _number(Fraction(v)) for v in (line.low, line.high))
    named = line.operator in ("is", "contains")
    promised = line.promised if named or line.promised is None else _number(Fraction(line.promised))
    return {
        "id": line.id,
        "what": KINDS[line.id].words,
        "part": line.part,
        "actual": line.text if line.text is not None else (low if low is not None else high),
        "actual_range": None if line.text is not None else {"low": low, "high": high},
        "promised": promised,
        "operator": line.operator,
        "unit": line.unit,
        "margin_percent": line.margin_percent,
        "outcome": line.outcome,
        "grade": grade.word if _read(line) else None,
        "reason": line.reason,
    }


def _number(value: Fraction) -> float | int:
    shown = round(value, 6)
    return int(shown) if shown.denominator == 1 else float(shown)


def readings_in(value: Any, file: str) -> tuple[int, tuple[HostReading, ...]]:
    """When a kept check was made and what it read. Raises ``OuvrageError`` ``host/unreadable``."""
    try:
        at = utc_us(str(value["checked_at"]))
        found = tuple(_reading(each) for each in value["readings"])
    except (KeyError, TypeError, ValueError) as error:
        raise OuvrageError(
            "host/unreadable",
            f"{file} is no check of a host: {error!r}"[:200],
            where=(file,),
            hint="keep what `ouvrage host check --json` prints: > host.json",
        ) from error
    return at, found


def _reading(each: Mapping[str, Any]) -> HostReading:
    made = HostReading(**each)
    for name in ("part", "low", "high", "text"):
        if not isinstance(getattr(made, name), str | None):
            raise TypeError(f"{name} is no text")
    for bound in (made.low, made.high):
        if bound is not None and not _DECIMAL.fullmatch(bound):
            raise ValueError(f"{bound!r} is no number")
    if not all(isinstance(text, str) for text in (made.id, made.unit, made.how)):
        raise TypeError("a reading has an id, a unit and how it was read")
    return made
