"""Totals of a longer period beside statements of single days of it, counted once.

Decides what is left to say of a total when some of its days are known singly: the total less those
days, and nothing once all of them are known. So no day is counted twice, in whatever order the files
come. A total that overlaps another one without being the same period cannot be split, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from ouvrage.adapters.feeds.told import Told, days_text
from ouvrage.base.numbers import decimal_text
from ouvrage.ledger.stated import Stated

_KEY = re.compile(r"(?P<who>.+)/(?P<first>[0-9]+)(?:\.\.(?P<last>[0-9]+))?/(?P<part>[^/]+)")

_CENT = Fraction(1, 100)


@dataclass(slots=True)
class _Series:
    """One machine's one component: amounts by day, totals by window, and the window's statement."""

    days: dict[int, Fraction] = field(default_factory=dict)
    totals: dict[tuple[int, int], Fraction] = field(default_factory=dict)
    said: dict[tuple[int, int], Stated] = field(default_factory=dict)

    def whole(self, window: tuple[int, int]) -> bool:
        """Whether every day of a window is known, so that its total has nothing left to say."""
        return all(day in self.days for day in range(window[0], window[1] + 1))

    def inside(self, window: tuple[int, int]) -> Fraction:
        """What the known days of a window add up to."""
        first, last = window
        return sum((v for d, v in self.days.items() if first <= d <= last), Fraction(0))


def counted_once(known: Iterable[Stated], offered: Sequence[Stated], told: Told) -> list[Stated]:
    """What to record of ``offered`` (and anew of ``known`` totals), given what holds already."""
    series: dict[tuple[str, str], _Series] = {}
    for each in known:
        _remember(series, each)
    for line in series.values():  # a recorded total is what was left of it
        line.totals = {w: v + line.inside(w) for w, v in line.totals.items() if not line.whole(w)}
    windows: list[Stated] = []
    singles: list[Stated] = []
    for each in offered:
        found = _KEY.fullmatch(each.natural)
        (windows if found and found["last"] else singles).append(each)
    for each in singles:
        _remember(series, each)
    for each in windows:
        _take(series, each, told)
    return [*singles, *(s for line in series.values() for s in _left(line, told))]


def _remember(series: dict[tuple[str, str], _Series], each: Stated) -> None:
    found = _KEY.fullmatch(each.natural)
    if found is None:
        return
    line = series.setdefault((found["who"], found["part"]), _Series())
    amount = Fraction(Decimal(each.value.amount))
    if found["last"] is None:
        line.days[int(found["first"])] = amount
    else:
        window = (int(found["first"]), int(found["last"]))
        line.totals[window], line.said[window] = amount, each


def _take(series: dict[tuple[str, str], _Series], each: Stated, told: Told) -> None:
    found = _KEY.fullmatch(each.natural)
    if found is None:
        return
    window = (int(found["first"]), int(found["last"]))
    line = series.setdefault((found["who"], found["part"]), _Series())
    for other in line.totals:
        if other != window and other[0] <= window[1] and window[0] <= other[1]:
            before = line.said[other]
            told.fault(
                each.natural,
                "period",
                days_text(each.valid_from, each.valid_to or each.valid_from),
                f"no overlap with the total of {days_text(before.valid_from, before.valid_to or 0)}; "
                "ask for single days",
            )
            return
    line.totals[window], line.said[window] = Fraction(Decimal(each.value.amount)), each


def _left(line: _Series, told: Told) -> Iterable[Stated]:
    """Of each total, what its known days leave."""
    for window, total in line.totals.items():
        said = line.said[window]
        left = total - line.inside(window)
        if line.whole(window):
            if abs(left) > _CENT:
                told.note(
                    f"{said.subject}, {days_text(said.valid_from, said.valid_to or said.valid_from)}: "
                    f"the total of {decimal_text(total)} is {decimal_text(left)} more than its days, "
                    "which are all known and count"
                )
            left = Fraction(0)
        yield replace(said, value=replace(said.value, amount=decimal_text(left)))
