"""Figures and names as a person reads them: digits, marks, ranges, bars, safe text.

Decides where digits stop (where the data stop: at the first digit of the interval's half width,
else after three), and how a grade is marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe

BAR_WIDTH = 10
_MOST_PLACES = 15


def shortened(text: str, width: int) -> str:
    """Safe text of at most this many characters."""
    shown = safe(text)
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def mark(grade: Grade | None, plain: bool) -> str:
    """`` ●`` beside a figure, `` (measured)`` in plain text; nothing where no figure is known."""
    if grade is None:
        return ""
    return f" ({grade.word})" if plain else f" {grade.mark}"


def places_for(value: Fraction, low: Fraction | None, high: Fraction | None) -> int:
    """Decimal places at which the digits of a value stop: at most six significant ones."""
    half = (high - low) / 2 if low is not None and high is not None else Fraction(0)
    size = _exponent(value)
    if half <= 0:
        return _bounded(2 - size)
    return _bounded(min(max(-_exponent(half), 1 - size), 5 - size))


def _bounded(places: int) -> int:
    return max(0, min(_MOST_PLACES, places))


def _exponent(value: Fraction) -> int:
    """The power of ten of the first significant digit; 0 for zero."""
    if not value:
        return 0
    size = abs(value)
    exponent = len(str(size.numerator)) - len(str(size.denominator))
    while size >= Fraction(10) ** (exponent + 1):
        exponent += 1
    while size < Fraction(10) ** exponent:
        exponent -= 1
    return exponent


def ranged(
    value: Fraction, low: Fraction | None, high: Fraction | None, plain: bool
) -> tuple[str, str]:
    """A value and its range, ``("0.0096", "0.0094–0.0099")``; the range is empty when unknown."""
    places = places_for(value, low, high)
    if low is None or high is None:
        return fixed(value, places), ""
    to = " to " if plain else "–"
    return fixed(value, places), f"{fixed(low, places)}{to}{fixed(high, places)}"


def give_or_take(
    value: Fraction, low: Fraction | None, high: Fraction | None, plain: bool
) -> tuple[str, str]:
    """A value and how far its range reaches to the farther side, ``("4.41", " ± 0.06")``."""
    places = places_for(value, low, high)
    if low is None or high is None:
        return fixed(value, places), ""
    return fixed(
        value, places
    ), f" {'+-' if plain else '±'} {fixed(max(high - value, value - low), places)}"


def rounded(value: Fraction) -> str:
    """Three significant digits, no exponent; whole numbers of more digits stay whole."""
    return fixed(value, places_for(value, None, None))


def percent(share: Fraction) -> str:
    """``38 %``, ``<1 %`` for little and ``0 %`` for nothing."""
    whole = round(share * 100)
    if share and not whole:
        return "<1 %"
    return f"{whole} %"


def duration(us: int) -> str:
    """``27.1 s``, ``5 min 03 s``, ``5 h 50 min``."""
    if us < 60_000_000:
        return f"{rounded(Fraction(us, 1_000_000))} s"
    seconds = round(us / 1_000_000)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"


def counted(number: int | Fraction, name: str) -> str:
    """``1 epoch``, ``6 epochs``."""
    shown = safe(name)
    if number == 1:
        return f"1 {shown}"
    return f"{number} {plural(shown)}"


def plural(name: str) -> str:
    """The plural of a unit's name, by the plain rules of English."""
    if name.endswith(("s", "x", "tch", "sh")):
        return name + "es"
    return name + "s"


def bar(parts: Sequence[tuple[str, Fraction]], width: int = BAR_WIDTH) -> str:
    """A bar of so many cells, each part drawn with its character; cells by largest remainder."""
    total = sum((share for _, share in parts), Fraction(0))
    if not total:
        return ""
    exact = [share / total * width for _, share in parts]
    cells = [int(value) for value in exact]
    order = sorted(range(len(parts)), key=lambda i: (cells[i] - exact[i], i))
    for i in order[: width - sum(cells)]:
        cells[i] += 1
    return "".join(character * n for (character, _), n in zip(parts, cells, strict=True))
