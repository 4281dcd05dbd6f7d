"""Vast.ai's earnings of a host's machines, as its interface answers them in JSON.

Decides what such an answer states and what it does not. Days are counted since 1970, UTC; money is
USD before the platform's fee; ``per_machine`` is of the machines asked for over the whole window, while
``per_day`` is of the whole host, whatever was asked. So a machine's day is known only where the window
is one day, or where one machine is named and its total is what the days add up to. Otherwise the total
of a machine is a statement about the whole window. A day not over when the file was saved is stated up
to that moment, so that a later file takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ouvrage.adapters.feeds.told import Told, amount_in, day_text, days_text, documents
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import DAY
from ouvrage.ledger.stated import Stated
from ouvrage.model.earnings import Earning

CURRENCY = "USD"
PARTS = {"gpu_earn": "gpu", "sto_earn": "storage", "bwu_earn": "upload", "bwd_earn": "download"}
_TOTALS = {
    "gpu": "total_gpu",
    "storage": "total_stor",
    "upload": "total_bwu",
    "download": "total_bwd",
}
_FIRST_DAY, _LAST_DAY = 14_000, 60_000
"""2008 to 2134: a number outside is seconds, or no day at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of the answer: a machine's id or a day, and its four amounts."""

    place: str
    who: str
    amounts: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One answer: the period asked for and its rows."""

    place: str
    from_us: int
    to_us: int
    machines: tuple[Line, ...]
    days: tuple[Line, ...]

    @property
    def one_day(self) -> bool:
        """Whether the window lies within one UTC day."""
        return self.from_us // DAY == (self.to_us - 1) // DAY


def read_windows(text: str, told: Told) -> list[Window]:
    """The answers in a file; rows that cannot be read go to ``told.faults``.

    Raises ``OuvrageError`` ``vast/form`` where the file holds no such answer.
    """
    found = [_window(place, value, told) for place, value in documents(told, text)]
    windows = [each for each in found if each is not None]
    if not windows and not told.faults:
        raise OuvrageError(
            "vast/form",
            f"{told.file} holds no earnings of Vast.ai",
            where=(told.file,),
            hint="save the answer of vastai show earnings --raw: sday, eday, per_machine, per_day",
        )
    return windows


def _window(place: str, value: Any, told: Told) -> Window | None:
    if not isinstance(value, dict) or not {"per_machine", "per_day"} & value.keys():
        told.rows += 1
        told.fault(place or "1", "answer", value, "an object with per_machine and per_day")
        return None
    first, last = (_day_number(value, name, place, told) for name in ("sday", "eday"))
    if first is None or last is None:
        told.rows += 1
        return None
    if last < first:
        told.rows += 1
        told.fault(place or "1", "eday", value["eday"], f"a day not before sday {value['sday']}")
        return None
    from_us = int(first * DAY)
    to_us = int((last + 1) * DAY) if last == int(last) else int(last * DAY)
    window = Window(
        place=place,
        from_us=from_us,
        to_us=max(to_us, from_us + 1),
        machines=_lines(value, "per_machine", "machine_id", place, told),
        days=_lines(value, "per_day", "day", place, told),
    )
    _compared(window, value, told)
    return window


def _day_number(value: Mapping[str, Any], name: str, place: str, told: Told) -> Decimal | None:
    found = amount_in(value.get(name))
    if found is None or not _FIRST_DAY <= found <= _LAST_DAY:
        told.fault(place or "1", name, value.get(name), "days since 1970, such as 20399")
        return None
    return found


def _lines(
    value: Mapping[str, Any], name: str, key: str, place: str, told: Told
) -> tuple[Line, ...]:
    listed = value.get(name) or []
    if not isinstance(listed, list):
        told.fault(place or "1", name, listed, "a list")
        return ()
    found: dict[str, Line] = {}
    for index, item in enumerate(listed):
        told.rows += 1
        where = f"{place + ' ' if place else ''}{name}[{index}]"
        line = _line(item, key, where, told)
        if line is None:
            continue
        if line.who in found:
            told.fault(where, key, line.who, "each only once in one answer")
            continue
        found[line.who] = line
    return tuple(found.values())


def _line(item: Any, key: str, where: str, told: Told) -> Line | None:
    if not isinstance(item, dict):
        told.fault(where, "row", item, "an object with named fields")
        return None
    who = amount_in(item.get(key))
    if who is None or who != int(who) or who < 0:
        told.fault(where, key, item.get(key), "a whole number")
        return None
    amounts: dict[str, Decimal] = {}
    for name, component in PARTS.items():
        amount = amount_in(item.get(name))
        if amount is None:
            told.fault(where, name, item.get(name), "an amount in USD")
            return None
        amounts[component] = amount
    for name in item.keys() - PARTS.keys() - {key}:
        if str(name).endswith("_earn"):
            told.note(f"{name} is not known here and was left out: it may be money")
    return Line(place=where, who=str(int(who)), amounts=amounts)


def total(lines: Iterable[Line], component: str | None = None) -> Fraction:
    """What lines add up to, in one component or in all."""
    wanted = (component,) if component else tuple(PARTS.values())
    return sum((Fraction(line.amounts[name]) for line in lines for name in wanted), Fraction(0))


def agree(ours: Fraction, theirs: Fraction, lines: Sequence[Line], component: str) -> bool:
    """Whether two sums are the same but for rounding: half a last digit for each line."""
    exponents = [line.amounts[component].normalize().as_tuple().exponent for line in lines]
    places = max([2, *(-e for e in exponents if isinstance(e, int))])
    return abs(ours - theirs) <= Fraction(len(lines), 2 * 10 ** min(places, 6))


def _compared(window: Window, value: Mapping[str, Any], told: Told) -> None:
    """Say where the parts of an answer do not add up to one another."""
    period = days_text(window.from_us, window.to_us)
    machines, days = total(window.machines), total(window.days)
    if window.machines and window.days:
        if splits(window):
            told.note("per_machine and per_day of an answer add up to the same")
        else:
            told.note(
                f"{period}: per_machine adds up to {decimal_text(machines)} {CURRENCY}, per_day to "
                f"{decimal_text(days)}: per_day is of the whole host, per_machine of what was asked for"
            )
    summary = value.get("summary")
    for component, name in _TOTALS.items() if isinstance(summary, dict) else ():
        said = amount_in(summary.get(name)) if isinstance(summary, dict) else None
        ours = total(window.machines, component)
        if said is not None and not agree(ours, Fraction(said), window.machines, component):
            told.note(
                f"{period}: summary.{name} says {decimal_text(said)}, "
                f"the machines add up to {decimal_text(ours)}"
            )
    current = value.get("current")
    fee = amount_in(current.get("service_fee")) if isinstance(current, dict) else None
    if fee:
        told.note(
            f"current.service_fee {decimal_text(fee)} is of the account now, not of these days: left out"
        )


def splits(window: Window) -> bool:
    """Whether the days add up to the machines in every component."""
    return all(
        agree(
            total(window.machines, component),
            total(window.days, component),
            (*window.machines, *window.days),
            component,
        )
        for component in PARTS.values()
    )


def machines_in(windows: Iterable[Window]) -> list[str]:
    """The ids of the machines that are named, in the order of their numbers."""
    return sorted({line.who for window in windows for line in window.machines}, key=int)


def statements(
    window: Window, node_of: Mapping[str, str], channel: str, saved_us: int, told: Told
) -> list[Stated]:
    """What an answer states, as known when it was saved."""
    if window.one_day or len(window.machines) != 1 or not splits(window):
        return _whole(window, node_of, channel, saved_us, told)
    machine = window.machines[0].who
    found: list[Stated] = []
    for line in window.days:
        day = int(line.who)
        from_us, to_us = max(day * DAY, window.from_us), min((day + 1) * DAY, window.to_us)
        if to_us <= from_us:
            told.fault(line.place, "day", day_text(day), "a day of the window that was asked for")
            continue
        key = f"{channel}/{machine}/{day}"
        found += _stated(line, key, node_of[machine], channel, (from_us, to_us), saved_us, told)
    return found


def _whole(
    window: Window, node_of: Mapping[str, str], channel: str, saved_us: int, told: Told
) -> list[Stated]:
    first, last = window.from_us // DAY, (window.to_us - 1) // DAY
    span = str(first) if first == last else f"{first}..{last}"
    if first != last and window.machines:
        told.note(
            f"{days_text(window.from_us, window.to_us)}: the days of single machines are not in this "
            "answer (per_day is host-wide); each machine's total is of the whole period. "
            "Save one answer for each day, or use --live"
        )
    if window.days and not window.machines and total(window.days):
        told.fault(window.place or "1", "per_machine", None, "the machines that earned per_day")
    found: list[Stated] = []
    for line in window.machines:
        key = f"{channel}/{line.who}/{span}"
        period = (window.from_us, window.to_us)
        found += _stated(line, key, node_of[line.who], channel, period, saved_us, told)
    return found


def _stated(
    line: Line,
    key: str,
    node: str,
    channel: str,
    period: tuple[int, int],
    saved_us: int,
    told: Told,
) -> list[Stated]:
    from_us, to_us = period[0], min(period[1], saved_us)
    if to_us <= from_us:
        told.fault(line.place, "day", days_text(*period), "a day that had begun when it was saved")
        return []
    if to_us < period[1]:
        told.note(f"{day_text(to_us // DAY)} was not over: stated up to the moment of the file")
    return [
        Stated(
            natural=f"{key}/{component}",
            value=Earning(
                channel=channel,
                about=f"node:{node}",
                component=component,
                amount=decimal_text(amount),
                currency=CURRENCY,
                fee=None,
                sold_us=None,
                list_price=None,
                tenant=None,
                document=None,
            ),
            subject=f"node:{node}",
            valid_from=from_us,
            valid_to=to_us,
            grade=Grade.METERED,
        )
        for component, amount in line.amounts.items()
    ]
