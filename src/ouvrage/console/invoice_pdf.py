"""An invoice on paper: A4, as many sheets as it takes, the head of a table again on each.

Decides widths and breaks; every word is ``invoice_view``'s. Equal invoices give equal files, since a sheet is dated by what
it knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ouvrage.console.invoice_view import Shown, Sum, Table
from ouvrage.console.invoice_words import language
from ouvrage.console.paper import BOTTOM, LEFT, WIDTH, Paper

_LINE = 4.2
_GAP = 2.0


def invoice_pdf(page: Shown) -> bytes:
    """The invoice as the bytes of a PDF. ``OuvrageError`` ``pdf/not-here`` without fpdf2."""
    sheet = _Sheet(page)
    sheet.head(page.title, page.headline, page.draft)
    sheet.parties()
    for table in page.tables:
        sheet.table(table)
    sheet.sums(page.sums)
    for note in page.notes:
        sheet.font(8, soft=True)
        sheet.room(2 * _LINE)
        sheet.lines(note, _LINE)
    sheet.number_pages()
    return bytes(sheet.pdf.output())


class _Sheet(Paper):
    """The sheets of an invoice."""

    def __init__(self, page: Shown) -> None:
        words = "".join(
            [page.headline, *page.notes, *(c for t in page.tables for r in t.rows for c in r)]
        )
        super().__init__(page.title, page.as_of, words)
        self.page = page
        self.say = language(page.language)

    def fit(self, text: str) -> str:
        """The text as far as the font has it; hard spaces, dashes and apostrophes as the plainest."""
        if self.unicode:
            return text
        for odd, plain in (("–", "-"), ("’", "'"), ("×", "x"), ("\u202f", "\u00a0")):
            text = text.replace(odd, plain)
        return super().fit(text)

    def room(self, height: float) -> bool:
        """Begin a new sheet where so much does not fit on this one; whether it did."""
        if self.pdf.get_y() + height <= BOTTOM - 8:
            return False
        self.pdf.add_page()
        return True

    def parties(self) -> None:
        """Who owes whom, and the dates."""
        top, lowest = self.pdf.get_y(), 0.0
        blocks = (
            [self.say.say("from"), *self.page.issuer],
            [self.say.say("to"), *self.page.recipient],
            [f"{word}: {value}" for word, value in self.page.about],
        )
        for index, block in enumerate(blocks):
            self.pdf.set_y(top)
            for number, text in enumerate(block):
                self.font(9, bold=index < 2 and number == 1, soft=index < 2 and number == 0)
                self.pdf.set_x(LEFT + index * WIDTH / 3)
                self.pdf.multi_cell(WIDTH / 3 - 3, 4.6, self.fit(text), align="L")
            lowest = max(lowest, self.pdf.get_y())
        self.pdf.set_xy(LEFT, lowest + 4)

    def table(self, table: Table) -> None:
        """A table with its heading, over as many sheets as it takes."""
        self.font(7.5)
        widths = self._widths(table)
        self.room(24)
        self.heading(table.heading)
        self._head(table, widths)
        for row in table.rows:
            self.font(7.5)
            if self.room(self._height(row, widths)):
                self._head(table, widths)
            self._row(row, widths, table.right)
        self.pdf.set_y(self.pdf.get_y() + 4)

    def _head(self, table: Table, widths: Sequence[float]) -> None:
        self.font(7.5, soft=True)
        self._row(table.columns, widths, table.right)
        y = self.pdf.get_y()
        self.pdf.set_draw_color(150)
        self.pdf.line(LEFT, y, LEFT + WIDTH, y)
        self.pdf.set_y(y + 1)
        self.font(7.5)

    def _widths(self, table: Table) -> list[float]:
        """Columns as wide as their longest word needs, within bounds; the wide one takes the rest."""
        lines = [table.columns, *table.rows]
        longest = [
            max(self.pdf.get_string_width(self.fit(r[i])) for r in lines)
            for i in range(len(table.columns))
        ]
        most = WIDTH / len(table.columns) * 1.15
        widths = [min(each + 2 * _GAP, most) for each in longest]
        widths[table.wide] += max(0.0, WIDTH - sum(widths))
        scale = WIDTH / sum(widths)
        return [each * scale for each in widths] if scale < 1 else widths

    def _height(self, row: Sequence[str], widths: Sequence[float]) -> float:
        return (
            _LINE
            * max(self._lines_of(text, width) for text, width in zip(row, widths, strict=True))
            + 1
        )

    def _lines_of(self, text: str, width: float) -> int:
        found: Any = self.pdf.multi_cell(
            width - _GAP, _LINE, self.fit(text), dry_run=True, output="LINES"
        )  # a list of lines, as asked for
        return max(1, len(found))

    def _row(self, row: Sequence[str], widths: Sequence[float], right: str) -> None:
        top, x = self.pdf.get_y(), LEFT
        height = self._height(row, widths)
        for text, width, side in zip(row, widths, right, strict=True):
            self.pdf.set_xy(x, top)
            self.pdf.multi_cell(
                width - _GAP, _LINE, self.fit(text), align="R" if side == ">" else "L"
            )
            x += width
        self.pdf.set_xy(LEFT, top + height)

    def sums(self, sums: Sequence[Sum]) -> None:
        """The sum, to the right."""
        self.room(5.5 * len(sums) + 6)
        for each in sums:
            self.font(10, bold=each.strong)
            self.cell(LEFT + 60, 64, each.label)
            self.cell(LEFT + 124, 50, each.text, "R")
            self.pdf.ln(5.5)
        self.pdf.ln(4)

    def number_pages(self) -> None:
        """Each sheet says which it is."""
        for page in range(1, self.pdf.pages_count + 1):
            self.pdf.page = page
            self.pdf.set_y(BOTTOM)
            self.font(7.5, soft=True)
            words = (
                f"{self.page.title} · {self.say.say('page', page=f'{page}/{self.pdf.pages_count}')}"
            )
            self.cell(LEFT, WIDTH, words, "R")
