"""The page of a fleet's report: the answer, who had what, a strip for each GPU, the command's own words.

Decides what leads and how many GPUs have a strip; figures and words are those of the command.
"""

from __future__ import annotations

from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.base.time import HOUR, utc_text
from ouvrage.books.calendar import node_calendar
from ouvrage.books.fleet.report import FleetReport
from ouvrage.console.books_page import MOST_STRIPS, strip_of, ticks_of
from ouvrage.console.books_pictures import calendar_strips
from ouvrage.console.page import Drawing, Page, Row, Shown, Tile
from ouvrage.model.occupancy import STATES

_MOST_ROWS = 40


def fleet_page(found: FleetReport, said: str) -> Page:
    """The page. ``said`` is the command's text, whose first line is the answer."""
    drawing = _calendar(found)
    groups = found.accounts if found.account is None else found.users
    rows = [
        Row(
            label=safe(each.account if each.user is None else f"{each.account} {each.user}"),
            cells=(
                Shown(text=str(each.jobs)), _hours(each.goodput.total),
                Shown(text="" if each.goodput.share is None else f"{fixed(each.goodput.share * 100, 1)} %"),
            ),
        )
        for each in groups[:_MOST_ROWS]
    ]  # fmt: skip
    return Page(
        title=f"{safe(found.fleet.cluster)} in {found.period.name} · Ouvrage", headline=said.partition("\n")[0],
        lead=(f"Cluster {safe(found.fleet.cluster)}, from {utc_text(found.period.from_us)} to {utc_text(found.period.to_us)}.",),
        tiles=tuple(
            Tile(label=state, shown=_hours(Fraction(us, HOUR)))
            for state, us in sorted(found.time.by_state().items(), key=lambda each: STATES.index(each[0]))
        ),
        columns=("jobs", "GPU-hours", "in jobs that completed"), rows=tuple(rows), drawings=() if drawing is None else (drawing,),
        said=said, as_of=utc_text(found.period.to_us), what="what a fleet was used for",
    )  # fmt: skip


def _hours(hours: Fraction) -> Shown:
    return Shown(text=f"{fixed(hours, 2 if hours >= 10 else 4)} h", grade=Grade.METERED)


def _calendar(found: FleetReport) -> Drawing | None:
    """A strip for each of the first GPUs, in the order of their nodes."""
    strips = []
    for node, record in found.fleet.machines.items():
        if len(strips) >= MOST_STRIPS:
            break
        stretches = node_calendar(record, node, found.period)
        strips += [
            strip_of(device, ours, found.period)
            for device, ours in sorted(stretches.items())
            if ours
        ]
    if not strips:
        return None
    hours = found.time.by_state()
    words = [
        (state, f"{state} {_hours(Fraction(hours[state], HOUR)).text}")
        for state in STATES
        if hours.get(state)
    ]
    left = sum(found.time.gpus.values()) - len(strips[:MOST_STRIPS])
    caption = (
        "Each strip is a GPU; its pattern says what it did, as the cluster's accounting has it."
    )
    heading = "What each GPU did"
    drawn = calendar_strips(
        "calendar", heading, strips[:MOST_STRIPS], ticks_of(found.period), words
    )
    return Drawing(
        heading=heading,
        svg=drawn,
        caption=caption + (f" {left} more GPUs are not drawn." if left > 0 else ""),
    )
