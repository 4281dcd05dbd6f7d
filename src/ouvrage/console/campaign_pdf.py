"""A campaign as one page of PDF, to send to somebody who signs.

Decides the layout of that page; words and digits are those of ``campaign_page``. Drawn with fpdf2,
an extra that only this page needs. Equal campaigns give equal files: the page is dated by what it
knows, not by when it was printed. Text that the standard fonts lack is set in DejaVu Sans where the
system has it, and otherwise shown as question marks.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_text
from ouvrage.console.campaign_page import COLUMNS, HEADING, tiles_of
from ouvrage.console.page import Tile
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

if TYPE_CHECKING:
    from fpdf import FPDF

LEFT, WIDTH, BOTTOM = 18.0, 174.0, 279.0
_DEJAVU = Path("/usr/share/fonts/truetype/dejavu")
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
_SOFT = 95


def campaign_pdf(campaign: Campaign) -> bytes:
    """The page as the bytes of a PDF. ``OuvrageError`` ``pdf/not-here`` without fpdf2."""
    page = _Sheet(_fpdf(), campaign)
    page.head(*answer_parts(campaign, plain=True))
    page.tiles()
    page.money()
    page.attempts()
    page.rentals()
    page.notes()
    page.foot()
    return bytes(page.pdf.output())


def _fpdf() -> Any:
    try:
        from fpdf import FPDF
    except ModuleNotFoundError as error:
        raise OuvrageError(
            "pdf/not-here",
            "the library that writes PDF is not installed",
            hint="pip install 'ouvrage[pdf]', or print the page that --html writes",
        ) from error
    return FPDF(format="A4")


class _Sheet:
    """One sheet of paper, filled from the top."""

    def __init__(self, pdf: FPDF, campaign: Campaign) -> None:
        self.pdf = pdf
        self.campaign = campaign
        self.figures = campaign_sheet(campaign)
        self.unicode = False
        pdf.set_creation_date(
            datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=campaign.as_of)
        )
        pdf.set_title(f"{campaign.name} - Ouvrage")
        pdf.set_auto_page_break(auto=False)
        pdf.set_margins(LEFT, LEFT, LEFT)
        pdf.add_page()
        self._choose_font(answer(campaign, plain=True) + _labels(campaign))

    def _choose_font(self, text: str) -> None:
        regular, bold = (_DEJAVU / f"DejaVuSans{kind}.ttf" for kind in ("", "-Bold"))
        if text.replace("…", "").isascii() or not (regular.exists() and bold.exists()):
            return
        self.pdf.add_font("DejaVu", "", str(regular))
        self.pdf.add_font("DejaVu", "B", str(bold))
        self.unicode = True

    def _font(self, size: float, *, bold: bool = False, soft: bool = False) -> None:
        self.pdf.set_font("DejaVu" if self.unicode else "Helvetica", "B" if bold else "", size)
        self.pdf.set_text_color(_SOFT if soft else 20)

    def _fit(self, text: str) -> str:
        if self.unicode:
            return text
        return text.replace("…", "...").encode("latin-1", "replace").decode("latin-1")

    def _lines(self, text: str, height: float) -> None:
        self.pdf.set_x(LEFT)
        self.pdf.multi_cell(WIDTH, height, self._fit(text), align="L")
        self.pdf.set_xy(LEFT, self.pdf.get_y())

    def _cell(self, x: float, width: float, text: str, align: str = "L") -> None:
        self.pdf.set_x(x)
        self.pdf.cell(width, 5.5, self._fit(text), align=align)

    def head(self, words: str, lost: str) -> None:
        """What it is, the answer, and what else the money went into."""
        self._font(9, soft=True)
        self._lines("Ouvrage: what a finished piece of work cost", 5)
        self.pdf.ln(2)
        self._font(15, bold=True)
        self._lines(words, 7)
        if lost:
            self._font(11)
            self._lines(lost, 6)
        self.pdf.ln(4)

    def tiles(self) -> None:
        """The four figures, side by side."""
        top, room = self.pdf.get_y(), WIDTH / 4
        for index, tile in enumerate(tiles_of(self.campaign, self.figures)):
            x = LEFT + room * index
            for line, (size, text) in enumerate(
                ((8.0, tile.label), (12.0, tile.shown.text), (7.5, _small(tile)))
            ):
                self._font(size, bold=line == 1, soft=line != 1)
                self.pdf.set_xy(x, top + 6 * line)
                self.pdf.multi_cell(room - 3, 3.6 if line == 2 else 5, self._fit(text), align="L")
        self.pdf.set_xy(LEFT, top + 26)

    def _heading(self, words: str) -> None:
        self._font(11, bold=True)
        self._lines(words, 7)

    def money(self) -> None:
        """Where the money went: one bar, and its parts by name."""
        parts, total = self.campaign.parts, self.campaign.known_cost
        if not total:
            return
        self._heading(HEADING)
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
        self._font(9)
        self._cell(LEFT + 5, 70, f"{sort}: {WORDS[sort]}")
        grade = mark(self.campaign.grade, True)
        amount = f"{rounded(parts[sort])} {self.campaign.currency}{grade}"
        self._cell(LEFT + 100, 50, amount, "R")
        self._cell(LEFT + 150, 24, percent(parts[sort] / total), "R")
        self.pdf.ln(5.5)

    def _row(self, cells: tuple[str, ...]) -> None:
        x = LEFT
        for index, (text, width) in enumerate(zip(cells, _TABLE, strict=True)):
            self._cell(x, width, text, "R" if index else "L")
            x += width
        self.pdf.ln(5.5)

    def attempts(self) -> None:
        """The dearest attempts."""
        chosen = dearest(self.campaign)[:SHOWN]
        if not chosen:
            return
        left = len(self.campaign.attempts) - len(chosen)
        self._heading(f"Attempts, dearest first{f' ({left} more)' if left else ''}")
        self._font(8, soft=True)
        self._row(("", *COLUMNS))
        self._font(9)
        for each in chosen:
            label = shortened(each.view.started.label or "", 24)
            cost = "not known"
            if each.cost is not None:
                cost = f"{rounded(each.cost)} {self.campaign.currency}"
            wall, words = duration(each.view.wall_us), accepted_words(each)
            self._row((f"{each.code}  {label}", each.view.outcome, wall, words, cost))
        self.pdf.ln(4)

    def rentals(self) -> None:
        """The machines that were paid for; no more than fit."""
        if not self.campaign.rented:
            return
        self._heading("Rented machines")
        self._font(9)
        for rented in self.campaign.rented[:6]:
            view, time = rented.account.view, rented.account.time
            paid, held = duration(time.paid_us), duration(time.held_us)
            price = view.started.price.text()
            self._lines(f"{shortened(view.name, 40)}, {price}: {paid} paid, {held} held", 5.5)
        self.pdf.ln(4)

    def notes(self) -> None:
        """What a reader should know."""
        self._font(8.5)
        for note in notes_of(self.campaign):
            if self.pdf.get_y() < BOTTOM - 14:
                self._lines(shortened(note, 240), 4.5)

    def foot(self) -> None:
        """As of when, and the way back."""
        self.pdf.set_y(BOTTOM - 4)
        self._font(7.5, soft=True)
        name = f"campaign/{self.campaign.name}"
        self._lines(
            f"As known at {utc_text(self.campaign.as_of)}. Amounts in {self.campaign.currency}, "
            f"assumed where a price was typed. Each figure: ouvrage explain {name}",
            4,
        )


def _labels(campaign: Campaign) -> str:
    runs = [each.view.started.label or "" for each in campaign.attempts]
    return "".join([*runs, *(each.account.view.name for each in campaign.rented)])


def _small(tile: Tile) -> str:
    grade = tile.shown.grade
    return f"{grade.word}; {tile.note}" if grade is not None else tile.note
