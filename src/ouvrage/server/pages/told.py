"""Moments, states and money as the pages of the console say them, in the reader's language.

Decides form only. A moment is told in UTC, since the people who read one platform's pages stand in several zones.
"""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal

from babel.dates import format_datetime
from babel.numbers import format_decimal

from ouvrage.base.grades import Grade
from ouvrage.console.blocks import Cell, Tone
from ouvrage.pricing.words import duration

_TONES: dict[str, Tone] = {
    "running": "good", "done": "good", "valid": "good", "active": "good", "listed": "good", "online": "good", "clean": "good",
    "waiting": "wait", "starting": "wait", "stopping": "wait", "scrubbing": "wait", "unlisted": "wait", "expired": "wait",
    "failed": "bad", "refused": "bad", "fenced": "bad", "away": "bad", "revoked": "bad", "lost": "bad", "closed": "wait",
}  # fmt: skip


def moment(at_us: int | None, language: str) -> str:
    """``30 Nov 2026, 14:05 UTC``; a dash where there is none."""
    if at_us is None:
        return "–"
    at = datetime.fromtimestamp(at_us // 1_000_000, timezone.utc)
    return f"{format_datetime(at, 'd MMM y, HH:mm:ss', locale=language)} UTC"


def money(amount: str | None, currency: str, language: str, grade: Grade | None = None) -> Cell:
    """An amount with its currency; ``not known`` where there is none."""
    if amount is None:
        return Cell(text="inconnu" if language == "fr" else "not known", number=True)
    value = Decimal(amount)
    places = 2 if value == value.quantize(Decimal("0.01")) else 6
    text = format_decimal(value, format=f"#,##0.00{'#' * (places - 2)}", locale=language)
    return Cell(text=f"{text}\u00a0{currency}", number=True, grade=grade)


def state(word: str, said: str | None = None) -> Cell:
    """A state in its own word, with the tone that goes with it."""
    return Cell(text=said or word, tone=_TONES.get(word, "plain"))


def mebibytes(mib: int, language: str) -> str:
    """``3.5 GiB`` or ``512 MiB``."""
    if mib < 1024:
        return f"{mib}\u00a0MiB"
    return f"{format_decimal(Decimal(mib) / 1024, format='#,##0.#', locale=language)}\u00a0GiB"


def length(us: int | None) -> str:
    """``27.1 s``, ``5 min 03 s``; a dash where it is not known."""
    return "–" if us is None else duration(us)
