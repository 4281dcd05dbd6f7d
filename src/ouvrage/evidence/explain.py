"""From a printed figure back to the facts it stands on.

Decides how the way back is shown: the value, how it was made, what it was made from, and so on down
to facts of the ledger. It recomputes nothing itself: the sheet was just computed from the facts.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text, fixed, significant
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.evidence.figures import Figure, Sheet
from ouvrage.ledger.facts import Recorded

MOST_FACTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A figure with the figures and facts behind it. ``missing`` are keys that no record has."""

    name: str
    figure: Figure
    inputs: tuple[Explanation, ...]
    facts: tuple[Recorded, ...]
    missing: tuple[str, ...]

    def lines(self, *, plain: bool = False) -> list[str]:
        """As a person reads it: inputs indented under what was made from them, each told once."""
        return [safe(line) for line in (self.name, *self._body(plain, 1, set()))]

    def text(self, *, plain: bool = False) -> str:
        """The lines as one text."""
        return "\n".join(self.lines(plain=plain)) + "\n"

    def json(self) -> dict[str, Any]:
        """As ``explain --json`` prints it; the value is exact decimal text, or null."""
        figure = self.figure
        return {
            "figure": self.name,
            "path": figure.path,
            "value": exact_text(figure),
            "unit": figure.unit,
            "grade": figure.grade.word if figure.grade is not None else None,
            "grade_shares": {g.word: float(fixed(share, 6)) for g, share in figure.shares.items()},
            "method": figure.method,
            "why": figure.why,
            "inputs": [part.json() for part in self.inputs],
            "facts": [_fact_json(entry) for entry in self.facts],
            "missing": list(self.missing),
        }

    def _body(self, plain: bool, depth: int, told: set[str]) -> list[str]:
        pad = "  " * depth
        figure = self.figure
        lines = [f"{pad}{valued(figure)}{_graded(figure, plain)}"]
        lines.append(f"{pad}how: {figure.method}")
        if figure.why:
            lines.append(f"{pad}unknown, because: {figure.why}")
        for part in self.inputs:
            path = part.figure.path
            lines.append(f"{pad}from {path}{', as above' if path in told else ''}")
            if path not in told:
                told.add(path)
                lines += part._body(plain, depth + 1, told)
        lines += [f"{pad}fact {line}" for line in _fact_lines(self.facts)]
        lines += [f"{pad}fact {key} is not in the ledger" for key in self.missing]
        return lines


def explanation(sheet: Sheet, path: str, records: Iterable[Recorded]) -> Explanation:
    """Explain the figure at a path. Raises ``OuvrageError`` ``figure/unknown`` with near names."""
    if path not in sheet.figures:
        raise _no_such(sheet, path)
    by_key = {entry.fact.key: entry for entry in records}
    return _explain(sheet, path, by_key)


def _explain(sheet: Sheet, path: str, by_key: Mapping[str, Recorded]) -> Explanation:
    figure = sheet[path]
    return Explanation(
        name=f"{sheet.object}:{path}@{utc_text(sheet.as_of)}",
        figure=figure,
        inputs=tuple(_explain(sheet, name, by_key) for name in figure.inputs),
        facts=tuple(by_key[key] for key in figure.facts if key in by_key),
        missing=tuple(key for key in figure.facts if key not in by_key),
    )


def _no_such(sheet: Sheet, path: str) -> OuvrageError:
    near = difflib.get_close_matches(path, sheet.figures, n=3, cutoff=0.5)
    near = near or sorted(name for name in sheet.figures if path and path in name)[:3]
    hint = f"near to it: {', '.join(near)}" if near else f"there is {', '.join(sheet.figures)}"
    return OuvrageError("figure/unknown", f"{sheet.object} has no figure {path!r}", hint=hint)


def exact_text(figure: Figure) -> str | None:
    """The value as decimal text, exact where its decimal form ends."""
    value = figure.value
    return decimal_text(value) if isinstance(value, Fraction) else value


def valued(figure: Figure) -> str:
    """``4.410000 s``, with at most nine digits, or ``unknown``."""
    value = figure.value
    if value is None:
        return "unknown"
    if not isinstance(value, Fraction):
        return value
    exact = decimal_text(value)
    shown = exact if len(exact.lstrip("-0.").replace(".", "")) <= 9 else significant(value, 9)
    return shown if figure.unit == "1" else f"{shown} {figure.unit}"


def _graded(figure: Figure, plain: bool) -> str:
    if figure.grade is None:
        return ""
    words = f"{figure.grade.word}" if plain else f"{figure.grade.mark} {figure.grade.word}"
    if len(figure.shares) > 1:
        parts = (f"{fixed(share * 100, 1)} % {g.word}" for g, share in figure.shares.items())
        words += f": {', '.join(parts)}"
    return f" ({words})" if plain else f" {words}"


def _fact_lines(facts: tuple[Recorded, ...]) -> Iterable[str]:
    shown = facts if len(facts) <= MOST_FACTS + 1 else facts[:MOST_FACTS]
    for entry in shown:
        fact = entry.fact
        yield (
            f"#{entry.seq} {fact.kind} {fact.key}, {fact.grade.word}, "
            f"recorded {utc_text(entry.recorded_at)}"
        )
    if len(shown) < len(facts):
        left = facts[len(shown) :]
        yield f"and {len(left)} more, #{left[0].seq} to #{left[-1].seq}"


def _fact_json(entry: Recorded) -> dict[str, Any]:
    fact = entry.fact
    return {
        "seq": entry.seq,
        "source": fact.source,
        "id": fact.id,
        "kind": fact.kind,
        "grade": fact.grade.word,
        "valid_from": utc_text(fact.valid_from),
        "valid_to": None if fact.valid_to is None else utc_text(fact.valid_to),
        "recorded_at": utc_text(entry.recorded_at),
        "sha256": fact.sha256,
    }
