"""A campaign as one page of PDF, to send to somebody who signs.

Decides the layout of that page; words and digits are those of ``campaign_page``.
"""

from __future__ import annotations

from ouvrage.base.time import utc_text
from ouvrage.console.campaign_page import COLUMNS, HEADING, tiles_of
from ouvrage.console.paper import LEFT, WIDTH, Paper
from ouvrage.pricing.campaign import SORTS, Campaign
from ouvrage.pricing.campaign_report import (
    SHOWN,
    accepted_words,
    answer,
    answer_parts,
    dearest,
    notes_of,
)
from ouvrage.pricing.campaign_sheet import WORDS, campaign_sheet
from ouvrage.pricing.words import duration, mark, percent, rounded, shortened

_COLOURS = {
    "accepted": (39, 86, 127),
    "rejected": (150, 100, 15),
    "failed": (196, 140, 50),
    "cancelled": (240, 201, 135),
    "unjudged": (225, 221, 211),
    "held": (110, 110, 110),
    "other": (185, 185, 185),
}
_TABLE = (52.0, 26.0, 26.0, 40.0, 30.0)


def campaign_pdf(campaign: Campaign) -> bytes:
    """The page as the bytes of a PDF. ``OuvrageError`` ``pdf/not-here`` without fpdf2."""
    page = _Sheet(campaign)
    page.head("what a finished piece of work cost", *answer_parts(campaign, plain=True))
    page.tiles(tiles_of(campaign, campaign_sheet(campaign)))
    page.money()
    page.attempts()
    page.rentals()
    page.notes([shortened(note, 240) for note in notes_of(campaign)])
    name = f"campaign/{campaign.name}"
    page.foot(
        f"As known at {utc_text(campaign.as_of)}. Amounts in {campaign.currency}, "
        f"assumed where a price was typed. Each figure: ouvrage explain {name}"
    )
    return bytes(page.pdf.output())


class _Sheet(Paper):
    """The sheet of a campaign."""

    def __init__(self, campaign: Campaign) -> None:
        words = answer(campaign, plain=True) + _labels(campaign)
        super().__init__(campaign.name, campaign.as_of, words)
        self.campaign = campaign

    def money(self) -> None:
        """Where the money went: one bar, and its parts by name."""
        parts, total = self.campaign.parts, self.campaign.known_cost
        if not total:
            return
        self.heading(HEADING)
        x, top = LEFT, self.pdf.get_y()
        for sort in SORTS:
            width = WIDTH * float(parts[sort] / total)
            self.pdf.set_fill_color(*_COLOURS[sort])
            if width:
                self.pdf.rect(x, top, width, 9, style="F")
            x += width
        self.pdf.set_y(top + 12)
        for sort in (sort for sort in SORTS if parts[sort]):
            self._part(sort)
        self.pdf.ln(4)

    def _part(self, sort: str) -> None:
        parts, total = self.campaign.parts, self.campaign.known_cost
        self.pdf.set_fill_color(*_COLOURS[sort])
        self.pdf.rect(LEFT, self.pdf.get_y() + 1.2, 3, 3, style="F")
        self.font(9)
        self.cell(LEFT + 5, 70, f"{sort}: {WORDS[sort]}")
        grade = mark(self.campaign.grade, True)
        amount = f"{rounded(parts[sort])} {self.campaign.currency}{grade}"
        self.cell(LEFT + 100, 50, amount, "R")
        self.cell(LEFT + 150, 24, percent(parts[sort] / total), "R")
        self.pdf.ln(5.5)

    def attempts(self) -> None:
        """The dearest attempts."""
        chosen = dearest(self.campaign)[:SHOWN]
        if not chosen:
            return
        left = len(self.campaign.attempts) - len(chosen)
        self.heading(f"Attempts, dearest first{f' ({left} more)' if left else ''}")
        self.font(8, soft=True)
        self.row(("", *COLUMNS), _TABLE)
        self.font(9)
        for each in chosen:
            label = shortened(each.view.started.label or "", 24)
            cost = "not known"
            if each.cost is not None:
                cost = f"{rounded(each.cost)} {self.campaign.currency}"
            wall, words = duration(each.view.wall_us), accepted_words(each)
            self.row((f"{each.code}  {label}", each.view.outcome, wall, words, cost), _TABLE)
        self.pdf.ln(4)

    def rentals(self) -> None:
        """The machines that were paid for; no more than fit."""
        if not self.campaign.rented:
            return
        self.heading("Rented machines")
        self.font(9)
        for rented in self.campaign.rented[:6]:
            view, time = rented.account.view, rented.account.time
            paid, held = duration(time.paid_us), duration(time.held_us)
            price = view.started.price.text()
            self.lines(f"{shortened(view.name, 40)}, {price}: {paid} paid, {held} held", 5.5)
        self.pdf.ln(4)


def _labels(campaign: Campaign) -> str:
    runs = [each.view.started.label or "" for each in campaign.attempts]
    return "".join([*runs, *(each.account.view.name for each in campaign.rented)])
