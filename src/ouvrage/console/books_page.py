"""The page of an owner's books for a period: the answer, the table, the pictures, the reasons.

Decides what leads and which pictures are drawn; figures, words and digits are those of the command. With
many GPUs only the first ones have a strip, and the page says how many are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.base.time import HOUR, utc_text
from ouvrage.books.account import Account
from ouvrage.books.bridge import bridge_of
from ouvrage.books.calendar import SOLD, Stretch
from ouvrage.books.gaps import Gap
from ouvrage.books.gaps_text import moves_text, name_of, worth_filling
from ouvrage.books.period import Period, day_of, day_start
from ouvrage.books.pnl import COSTS, Statement
from ouvrage.books.pnl_text import WORDS, answer, period_words
from ouvrage.books.pnl_text import name_of as object_of
from ouvrage.books.shapes import HourOfDay, Rates, by_hour, by_month
from ouvrage.console.books_pictures import (
    DeviceStrip,
    HourBar,
    RatePoint,
    Spent,
    calendar_strips,
    energy_hours,
    rates,
)
from ouvrage.console.margin_bridge import margin_bridge
from ouvrage.console.page import Drawing, Page, Row, Shown, Tile
from ouvrage.console.shown import UNKNOWN, name_in
from ouvrage.evidence.figures import Sheet
from ouvrage.model.occupancy import STATES
from ouvrage.pricing.words import percent

MOST_STRIPS = 16
MOST_COLUMNS = 5
MOST_PARTS = 700
_BESIDE = ("revenue.recorded", "revenue.total", "revenue.per_owned_hour")
_REVENUE = {"gpu": "GPUs", "idle-job": "idle jobs", "own-use": "own use"}
WHAT = "what a machine really earned"


@dataclass(frozen=True, slots=True, kw_only=True)
class BooksView:
    """Everything a page or a sheet of paper shows of a period: figures, shapes, words.

    ``said`` is the command's own text; ``closed`` what is told of a closed month.
    """

    statement: Statement
    period: Period
    made: Account
    gaps: tuple[Gap, ...]
    hours: tuple[HourOfDay, ...]
    months: tuple[Rates, ...]
    closed: tuple[str, ...]
    said: str

    @property
    def sheet(self) -> Sheet:
        """The one object that the statement is about, or all of them."""
        rows = self.statement.rows
        return rows[0] if len(rows) == 1 else self.statement.total


def books_view(
    statement: Statement,
    period: Period,
    made: Account,
    gaps: Sequence[Gap],
    closed: Sequence[str],
    said: str,
) -> BooksView:
    """The view of a statement, with its shapes by the hour and by the month."""
    few = len(made.grid.models) <= MOST_STRIPS * 4
    return BooksView(
        statement=statement,
        period=period,
        made=made,
        gaps=tuple(worth_filling(gaps)),
        hours=by_hour(made) if few else (),
        months=by_month(made.record, made.grid.site, made.grid.period) if few else (),
        closed=tuple(closed),
        said=said,
    )


def books_page(view: BooksView) -> Page:
    """The page."""
    sheet, statement = view.sheet, view.statement
    columns, rows = _table(view)
    whose = f"The books of {statement.site}, {period_words(view.period)}, in {statement.currency}."
    return Page(
        title=f"{object_of(sheet)} in {period_words(view.period)} · Ouvrage",
        headline=re.sub(r" (?=[●◐○?◌] )", "\u00a0", answer(sheet, view.period, False)),
        lead=(whose, *view.closed),
        tiles=tiles_of(view),
        columns=columns,
        rows=rows,
        drawings=tuple(_drawings(view)),
        notes=tuple(notes_of(view)),
        about=_about(view),
        said=view.said,
        as_of=utc_text(sheet.as_of),
        what=WHAT,
    )


def _money(sheet: Sheet, path: str) -> Shown:
    value = sheet.number(path)
    if value is None:
        return Shown(text=UNKNOWN, name=name_in(sheet, path))
    grade = sheet[path].grade if value else None
    return Shown(text=fixed(value, 2) if value else "0", grade=grade, name=name_in(sheet, path))


def _share(sheet: Sheet, path: str) -> Shown:
    value = sheet.number(path)
    if value is None:
        return Shown(text=UNKNOWN, name=name_in(sheet, path))
    return Shown(text=percent(value), grade=sheet[path].grade, name=name_in(sheet, path))


def _rate(sheet: Sheet, path: str, unit: str) -> Shown:
    value = sheet.number(path)
    if value is None:
        return Shown(text=UNKNOWN, name=name_in(sheet, path))
    text = fixed(value, 2 if abs(value) >= Fraction(1, 10) else 4)
    return Shown(text=f"{text} {unit}", grade=sheet[path].grade, name=name_in(sheet, path))


def tiles_of(view: BooksView) -> tuple[Tile, ...]:
    """The four figures that matter, with a line of explanation each."""
    sheet, currency = view.sheet, view.statement.currency
    margin = _money(sheet, "margin.net")
    needs = _share(sheet, "break_even_utilisation")
    owned = fixed(Fraction(sheet["hours.owned"].value or 0), 0)
    return (
        Tile(
            label=f"Margin, {currency}",
            shown=margin,
            note=sheet["margin.net"].why or "revenue less every cost",
        ),
        Tile(label="Per hour owned", shown=_rate(sheet, "margin.per_owned_hour", currency),
             note=f"{owned} GPU-hours owned"),
        Tile(label="Sold", shown=_share(sheet, "utilisation"),
             note=f"nothing is lost from {needs.text} on" if needs.grade is not None else "where nothing is lost is not known"),
        Tile(label="Per hour sold", shown=_rate(sheet, "rate.effective", currency),
             note=f"list price {_rate(sheet, 'rate.list', currency).text}"),
    )  # fmt: skip


def _table(view: BooksView) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """A column for each object and one for all; the lines that are not nothing everywhere."""
    statement = view.statement
    few = 1 < len(statement.rows) <= MOST_COLUMNS
    sheets = [*statement.rows, statement.total] if few else [view.sheet]
    columns = (*(object_of(s) for s in statement.rows), "all") if few else (object_of(view.sheet),)
    rows = [
        Row(label=words, cells=tuple(_money(sheet, path) for sheet in sheets))
        for words, path in lines_of(view.sheet)
    ]
    return columns, tuple(rows)


def lines_of(sheet: Sheet) -> list[tuple[str, str]]:
    """The lines of the statement in order, with the figure that each shows."""
    revenue = [
        path for path in sheet.figures
        if path.startswith("revenue.") and path not in _BESIDE and sheet[path].value
    ]  # fmt: skip
    costs = [f"cost.{name}" for name in COSTS]
    costs = [
        path
        for path in costs
        if path in sheet.figures and (sheet[path].value or sheet[path].value is None)
    ]
    return [
        *((f"revenue: {_REVENUE.get(p[8:], p[8:])}", p) for p in revenue),
        ("revenue in all", "revenue.total"),
        *((f"less {WORDS.get(p[5:], p[5:]).replace('_', ' ')}", p) for p in costs),
        ("margin", "margin.net"),
    ]


def notes_of(view: BooksView) -> list[str]:
    """What a reader should know: why something is unknown, what is assumed, what was left out."""
    sheet = view.sheet
    notes = [
        f"{path} is not known: {sheet[path].why}"
        for path in ("revenue.total", "cost.total", "break_even_utilisation")
        if sheet[path].value is None
    ]
    currency = view.statement.currency
    for gap in view.gaps[:4]:
        if gap.moves is None:
            notes.append(f"{name_of(gap)} lacks: {gap.source}. There is no margin without it.")
        else:
            notes.append(
                f"{name_of(gap)} is assumed ({gap.source}). It could move the margin by "
                f"{moves_text(gap, False)} {currency}."
            )
    return [*notes, *(safe(note) for note in view.statement.notes)]


def _about(view: BooksView) -> tuple[tuple[str, str], ...]:
    period = view.period
    last = day_of(period.to_us - 1, period.zone)
    return (
        (
            "Period",
            f"{day_of(period.from_us, period.zone)} to {last}, by the clock of {period.zone}",
        ),
        ("Grades", "how much of the margin stands at each: " + shares_text(view.sheet)),
        ("Recompute", f"ouvrage explain {view.sheet.object}:margin.net"),
    )


def shares_text(sheet: Sheet) -> str:
    """``metered 62 %, reported 30 %, assumed 8 %``."""
    shares = sheet["margin.net"].shares
    return ", ".join(f"{grade.word} {percent(share)}" for grade, share in shares.items()) or "none"


def _drawings(view: BooksView) -> list[Drawing]:
    made = [_bridge(view), _calendar(view), _rates(view), _energy(view)]
    return [drawing for drawing in made if drawing is not None]


def _bridge(view: BooksView) -> Drawing | None:
    if view.sheet["margin.net"].value is None or view.sheet["revenue.total"].value is None:
        return None
    steps, heading = bridge_of(view.sheet), "From revenue to margin"
    drawn = margin_bridge("bridge", heading, steps, view.statement.currency)
    return Drawing(heading=heading, svg=drawn, caption="Each row takes away what stands beside it.")


def _calendar(view: BooksView) -> Drawing | None:
    devices = [
        (name, stretches)
        for node in view.made.grid.nodes
        for name, stretches in sorted(view.made.grid.stretches.get(node, {}).items())
        if stretches
    ]
    if not devices:
        return None
    period = view.made.grid.period
    strips = [strip_of(name, stretches, period) for name, stretches in devices[:MOST_STRIPS]]
    hours: dict[str, int] = {}
    for _, stretches in devices:
        for stretch in stretches:
            hours[stretch.state] = hours.get(stretch.state, 0) + stretch.us
    words = [
        (state, f"{state} {fixed(Fraction(hours[state], HOUR), 0)} h")
        for state in STATES
        if state in hours
    ]
    left = len(devices) - len(strips)
    caption = (
        "Each strip is a GPU; its pattern says what it was doing, as far as anybody recorded it."
    )
    caption += f" {left} more GPUs are not drawn." if left > 0 else ""
    drawn = calendar_strips("calendar", "What each GPU was doing", strips, ticks_of(period), words)
    return Drawing(heading="What each GPU was doing", svg=drawn, caption=caption)


def strip_of(name: str, stretches: Sequence[Stretch], period: Period) -> DeviceStrip:
    """The strip of a GPU: its stretches as shares of the period, with words for each."""
    sold = sum(stretch.us for stretch in stretches if stretch.state in SOLD)
    blank = sum(stretch.us for stretch in stretches if stretch.state == "unknown")
    owned = sum(stretch.us for stretch in stretches)
    told = owned - blank
    note = f"{percent(Fraction(sold, told))} sold" if told * 2 >= owned and told else "not recorded"
    return DeviceStrip(
        name=safe(name),
        note=note,
        parts=tuple(_spent(stretch, period) for stretch in _fewer(stretches, period)),
    )


def _fewer(stretches: Sequence[Stretch], period: Period) -> Sequence[Stretch]:
    """Stretches no finer than a picture shows: with very many, what was done most in each of its columns."""
    if len(stretches) <= MOST_PARTS:
        return stretches
    width = -(-period.us // MOST_PARTS)
    most: dict[int, dict[str, int]] = {}
    for stretch in stretches:
        at = stretch.from_us
        while at < stretch.to_us:
            column = (at - period.from_us) // width
            ends = min(stretch.to_us, period.from_us + (column + 1) * width)
            states = most.setdefault(column, {})
            states[stretch.state] = states.get(stretch.state, 0) + ends - at
            at = ends
    found: list[Stretch] = []
    for column, states in sorted(most.items()):
        state = max(states, key=lambda each: states[each])
        begins = period.from_us + column * width
        if found and found[-1].state == state and found[-1].to_us == begins:
            found[-1] = found[-1]._replace(to_us=begins + width)
        else:
            found.append(
                stretches[0]._replace(
                    state=state, cause="mostly", from_us=begins, to_us=begins + width
                )
            )
    return found


def _spent(stretch: Stretch, period: Period) -> Spent:
    whole = period.us or 1
    begins, ends = (utc_text(at)[:16].replace("T", " ") for at in (stretch.from_us, stretch.to_us))
    cause = f" ({stretch.cause})" if stretch.cause else ""
    return Spent(
        begin=(stretch.from_us - period.from_us) / whole,
        end=(stretch.to_us - period.from_us) / whole,
        state=stretch.state,
        words=f"{stretch.state}{cause}, {begins} to {ends} UTC",
    )


def ticks_of(period: Period) -> list[tuple[float, str]]:
    """Some ten days of the period, where on its axis each begins."""
    first, after = day_of(period.from_us, period.zone), day_of(period.to_us, period.zone)
    days = max(1, (after - first).days)
    step = next((s for s in (1, 2, 5, 10, 15, 31, 61) if days / s <= 10), days)
    found: list[tuple[float, str]] = []
    for offset in range(0, days, step):
        day = first + timedelta(days=offset)
        share = (day_start(day, period.zone) - period.from_us) / (period.us or 1)
        label = f"{day.day} {day:%b}" if offset == 0 or day.day <= step else f"{day.day}"
        found.append((max(0.0, share), label))
    return found


def _energy(view: BooksView) -> Drawing | None:
    if not view.hours:
        return None
    hours = [
        HourBar(hour=h.hour, kwh=float(h.kwh), price=None if h.price is None else float(h.price))
        for h in view.hours
    ]
    known = [h.price for h in view.hours if h.price is not None]
    total = sum((h.kwh for h in view.hours), Fraction(0))
    caption = "A kilowatt-hour cost the same at every hour."
    if not known:
        caption = "Nobody states what a kilowatt-hour cost."
    elif max(known) - min(known) > max(known) / 100:
        dear = [
            h
            for h in view.hours
            if h.price is not None and h.price > max(known) * Fraction(99, 100)
        ]
        share = percent(sum((h.kwh for h in dear), Fraction(0)) / total)
        hours_ = "hour" if len(dear) == 1 else f"{len(dear)} hours"
        caption = f"{share} of the energy was used in the dearest {hours_} of the day."
    heading = "When power was used, and what it cost then"
    drawn = energy_hours("energy", heading, hours, view.statement.currency)
    return Drawing(heading=heading, svg=drawn, caption=f"{caption} Cooling is in it.")


def _rates(view: BooksView) -> Drawing | None:
    if not view.months:
        return None
    points = [
        RatePoint(
            name=_month(each.month, first=index == 0),
            got=None if each.got is None else float(each.got),
            needed=None if each.needed is None else float(each.needed),
        )
        for index, each in enumerate(view.months)
    ]
    heading = "What an hour sold brought, and what it had to bring"
    unit = f"{view.statement.currency} per GPU-hour sold"
    caption = (
        "The dots are the effective rate; the line is every cost but tax, less other income, over the "
        "hours sold: below it a month loses money."
    )
    return Drawing(heading=heading, svg=rates("rates", heading, points, unit), caption=caption)


def _month(name: str, *, first: bool) -> str:
    """``Nov``, with the year where one begins: ``Jan 2026``."""
    day = date.fromisoformat(f"{name}-01")
    return f"{day:%b %Y}" if first or day.month == 1 else f"{day:%b}"
