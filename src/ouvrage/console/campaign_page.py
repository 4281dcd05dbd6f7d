"""The page of a campaign, for somebody who decides and has one minute.

Decides what leads (what an accepted result cost), the one picture (where the money went) and that
only the dearest attempts are listed. Words and digits are the command's own.
"""

from __future__ import annotations

from ouvrage.base.time import utc_text
from ouvrage.console.page import Drawing, Page, Row, Shown, Tile
from ouvrage.console.pictures import Part, Strip, strips
from ouvrage.console.shown import UNKNOWN, name_in, shown
from ouvrage.evidence.figures import Sheet
from ouvrage.pricing.campaign import SORTS, Attempt, Campaign
from ouvrage.pricing.campaign_report import (
    SHOWN,
    accepted_words,
    answer_parts,
    campaign_text,
    dearest,
    notes_of,
)
from ouvrage.pricing.campaign_sheet import WORDS, campaign_sheet
from ouvrage.pricing.words import counted, duration, percent, rounded

COLUMNS = ("outcome", "time", "accepted", "cost")
HEADING = "Where the money went"
_PATTERN = {
    "accepted": "computing",
    "rejected": "waiting_data",
    "failed": "waiting_storage",
    "cancelled": "waiting_network",
    "unjudged": "unknown",
    "held": "waiting_memory",
    "other": "gap",
}


def campaign_page(campaign: Campaign) -> Page:
    """The page of a campaign."""
    sheet = campaign_sheet(campaign)
    words, lost = answer_parts(campaign, plain=False)
    whose = f"The campaign {campaign.name}: every attempt and every rented hour behind it."
    return Page(
        title=f"{campaign.name} · Ouvrage",
        headline=words,
        lead=(lost, whose) if lost else (whose,),
        tiles=tiles_of(campaign, sheet),
        columns=COLUMNS,
        rows=tuple(_row(sheet, each) for each in dearest(campaign)[:SHOWN]),
        drawings=_drawings(campaign),
        notes=(*notes_of(campaign), *_left(campaign)),
        about=tuple(_about(campaign)),
        said=campaign_text(campaign, plain=False),
        as_of=utc_text(sheet.as_of),
    )


def tiles_of(campaign: Campaign, sheet: Sheet) -> tuple[Tile, ...]:
    """The four figures that matter, with a line of explanation each."""
    unit, currency = campaign.unit or "unit", f" {campaign.currency}"
    judged = sum(each.judged for each in campaign.attempts)
    return (
        Tile(
            label=f"Cost per accepted {unit}",
            shown=_amount(sheet, "cost_per_accepted_unit", currency),
            note=sheet["cost_per_accepted_unit"].why or "everything spent, divided by them",
        ),
        Tile(
            label="Spent in all",
            shown=_amount(sheet, "cost.total", currency),
            note=_counts(campaign),
        ),
        Tile(
            label="Accepted",
            shown=shown(sheet, "units_accepted"),
            note=f"{judged} of {len(campaign.attempts)} attempts are judged",
        ),
        Tile(
            label="Rented, and nothing ran",
            shown=_amount(sheet, "cost.held", currency),
            note=_share(campaign, "held"),
        ),
    )


def _counts(campaign: Campaign) -> str:
    attempts, rentals = len(campaign.attempts), len(campaign.rented)
    return f"{counted(attempts, 'attempt')}, {counted(rentals, 'rental')}"


def _amount(sheet: Sheet, path: str, currency: str) -> Shown:
    if path not in sheet.figures:
        return Shown(text=UNKNOWN)
    return shown(sheet, path, currency)


def _share(campaign: Campaign, sort: str) -> str:
    total = campaign.known_cost
    return f"{percent(campaign.parts[sort] / total)} of it" if total else ""


def _row(sheet: Sheet, each: Attempt) -> Row:
    path = f"attempts.{each.code}"
    said = f"{path}.accepted"
    name = name_in(sheet, said) if said in sheet.figures else None
    grade = sheet[said].grade if name else None
    label = each.view.started.label
    return Row(
        label=f"{each.code} {label}" if label else each.code,
        cells=(
            Shown(text=each.view.outcome),
            Shown(text=duration(each.view.wall_us)),
            Shown(text=accepted_words(each), grade=grade, name=name),
            shown(sheet, f"{path}.cost", f" {sheet['cost.total'].unit}"),
        ),
    )


def _drawings(campaign: Campaign) -> tuple[Drawing, ...]:
    total, parts = campaign.known_cost, campaign.parts
    if not total:
        return ()
    drawn = tuple(
        Part(
            key=_PATTERN[sort],
            words=f"{words}, {rounded(parts[sort])} {campaign.currency}",
            seconds=float(parts[sort] / total),
            label=words if parts[sort] * 100 >= total else "",
        )
        for sort in SORTS
        if parts[sort]
        for words in [f"{percent(parts[sort] / total)} {sort}"]
    )
    caption = "; ".join(f"{sort}: {WORDS[sort]}" for sort in SORTS if parts[sort])
    picture = strips("money", HEADING, [Strip(name="", note="", length=1.0, parts=drawn)])
    return (Drawing(heading=HEADING, svg=picture, caption=f"{caption}."),)


def _left(campaign: Campaign) -> tuple[str, ...]:
    left = len(campaign.attempts) - SHOWN
    return (f"{left} more attempts are not listed here.",) if left > 0 else ()


def _about(campaign: Campaign) -> list[tuple[str, str]]:
    rows = [("Campaign", campaign.name)]
    for rented in campaign.rented:
        view, time = rented.account.view, rented.account.time
        worked = f"{duration(time.working_us)} working, {duration(time.held_us)} held"
        price = view.started.price.text()
        rows.append(("Rental", f"{view.name}, {price}: {duration(time.paid_us)} paid, {worked}"))
    return rows
