"""Figures as a page shows them: the command's own digits, the grade, the name to explain them by.

Decides how many digits stand and what is said where nothing is known. It computes nothing: the
values are those of the sheet.
"""

from __future__ import annotations

from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.time import utc_text
from ouvrage.console.page import Shown
from ouvrage.console.pictures import Part
from ouvrage.evidence.figures import Sheet
from ouvrage.metering.cause import NAMES
from ouvrage.metering.timeuse import KEYS, TimeUse
from ouvrage.pricing.words import mark, percent, ranged, rounded

UNKNOWN = "not known"
LEAST_LABELLED = 100
"""Parts of less than one in so many are drawn and told on resting there, but not labelled."""


def name_in(sheet: Sheet, path: str) -> str:
    """The name by which ``ouvrage explain`` finds a figure again, also when more is known."""
    return f"{sheet.object}:{path}@{utc_text(sheet.as_of)}"


def shown(sheet: Sheet, path: str, unit: str = "") -> Shown:
    """A figure with three digits; a whole number whole."""
    figure, value = sheet[path], sheet.number(path)
    if value is None:
        return Shown(text=UNKNOWN, name=name_in(sheet, path))
    text = str(value) if value.denominator == 1 else rounded(value)
    return Shown(text=f"{text}{unit}", grade=figure.grade, name=name_in(sheet, path))


def shown_to_precision(sheet: Sheet, path: str, unit: str = "") -> tuple[Shown, str]:
    """A figure with as many digits as its interval allows, and the interval (empty: none)."""
    root = path.rsplit(".", 1)[0]
    value = sheet.number(path)
    if value is None:
        return Shown(text=UNKNOWN, name=name_in(sheet, path)), sheet[path].why or ""
    text, span = ranged(value, sheet.number(f"{root}.low"), sheet.number(f"{root}.high"), False)
    figure = Shown(text=f"{text}{unit}", grade=sheet[path].grade, name=name_in(sheet, path))
    return figure, span


def strip_parts(use: TimeUse) -> tuple[Part, ...]:
    """The kinds of time that took any, in their order, labelled with their shares."""
    return tuple(
        Part(
            key=key,
            words=_said(use, key),
            seconds=use.us[key] / 1e6,
            label=_said(use, key) if use.us[key] * LEAST_LABELLED >= use.total_us else "",
        )
        for key in KEYS
        if use.us[key]
    )


def _said(use: TimeUse, key: str) -> str:
    return f"{percent(Fraction(use.us[key], use.total_us))} {NAMES[key]}{_mark(use, key)}"


def _mark(use: TimeUse, key: str) -> str:
    if key == "unknown":
        return ""
    whole = use.measured[key] == use.us[key]
    return mark(Grade.MEASURED if whole else Grade.ASSUMED, False)
