"""A period of an owner's books as one page of PDF, for the tax adviser, the partner or the bank.

Decides the layout of that page; words and digits are those of ``books_page``. The calendar is drawn
in greys, for the first GPUs, with the hours of each state said below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.books.calendar import Stretch
from ouvrage.books.period import Period
from ouvrage.books.pnl_text import answer, period_words
from ouvrage.books.pnl_text import name_of as object_of
from ouvrage.console.books_page import WHAT, BooksView, lines_of, notes_of, tiles_of
from ouvrage.console.paper import LEFT, WIDTH, Paper
from ouvrage.pricing.words import percent, shortened

_GREYS = {
    "working": 45, "held": 95, "reserved": 130, "free": 252, "maintenance": 200, "down": 165,
    "unknown": 228,
}  # fmt: skip
"""How dark each state is; what a strip shows is also said in words below."""
_LABEL = 34.0
MOST_STRIPS = 8
_TABLE = (72.0, 34.0, 34.0)


def books_pdf(view: BooksView) -> bytes:
    """The page as the bytes of a PDF. ``OuvrageError`` ``pdf/not-here`` without fpdf2."""
    sheet, period = view.sheet, view.period
    words = answer(sheet, period, True)
    paper = _Sheet(
        f"{object_of(sheet)} {period.name}", sheet.as_of, words + "".join(notes_of(view))
    )
    paper.head(WHAT, words, " ".join(view.closed))
    paper.tiles(tiles_of(view))
    paper.hours(view)
    paper.money(view)
    paper.notes([shortened(note, 300) for note in notes_of(view)])
    paper.foot(
        f"The books of {safe(view.statement.site)}, {period_words(period)}, in {view.statement.currency}, as known at "
        f"{utc_text(sheet.as_of)}. Each figure: ouvrage explain {sheet.object}:margin.net"
    )
    return bytes(paper.pdf.output())


class _Sheet(Paper):
    """The sheet of a statement."""

    def hours(self, view: BooksView) -> None:
        """What each GPU was doing: a strip for each of the first ones, and the hours in words."""
        grid, sheet = view.made.grid, view.sheet
        owned = Fraction(sheet["hours.owned"].value or 0)
        if not owned:
            return
        self.heading("What each GPU was doing")
        devices = [d for node in grid.nodes for d in sorted(grid.stretches.get(node, {}).items())]
        for name, stretches in devices[:MOST_STRIPS]:
            self._strip(safe(name), stretches, grid.period)
        self.pdf.ln(1)
        self._key([(s, Fraction(sheet[f"hours.{s}"].value or 0)) for s in _GREYS], owned)
        left = len(devices) - MOST_STRIPS
        if left > 0:
            self.lines(f"{left} more GPUs are not drawn", 5)
        self.pdf.ln(3)

    def _key(self, parts: Sequence[tuple[str, Fraction]], owned: Fraction) -> None:
        """What each grey means, with its hours; three to a line."""
        self.font(8.5)
        shown = [(state, hours) for state, hours in parts if hours]
        for index, (state, hours) in enumerate(shown):
            x = LEFT + WIDTH / 3 * (index % 3)
            self.pdf.set_fill_color(_GREYS[state])
            self.pdf.rect(x, self.pdf.get_y() + 1.2, 3, 3, style="DF")
            self.cell(x + 4, 50, f"{state} {fixed(hours, 1)} h ({percent(hours / owned)})")
            if index % 3 == 2 or index + 1 == len(shown):
                self.pdf.ln(5.5)

    def _strip(self, name: str, stretches: Sequence[Stretch], period: Period) -> None:
        top, room = self.pdf.get_y(), WIDTH - _LABEL
        self.font(8)
        self.pdf.set_xy(LEFT, top)
        self.cell(LEFT, _LABEL, shortened(name, 20))
        self.pdf.set_draw_color(150)
        for stretch in stretches:
            self.pdf.set_fill_color(_GREYS[stretch.state])
            x = LEFT + _LABEL + room * (stretch.from_us - period.from_us) / period.us
            self.pdf.rect(x, top + 0.6, room * stretch.us / period.us, 4.2, style="F")
        self.pdf.rect(LEFT + _LABEL, top + 0.6, room, 4.2, style="D")
        self.pdf.set_xy(LEFT, top + 6)

    def money(self, view: BooksView) -> None:
        """The statement line by line, with what each line is worth."""
        sheet = view.sheet
        self.heading(f"From revenue to margin, {view.statement.currency}")
        for words, path in lines_of(sheet):
            figure, total = sheet[path], path in ("revenue.total", "margin.net")
            self.font(9, bold=total)
            value = sheet.number(path)
            grade = "" if figure.grade is None or not value else figure.grade.word
            self.row((words, "not known" if value is None else fixed(value, 2), grade), _TABLE)
        self.pdf.ln(3)
