"""A sheet of A4 filled from the top: fonts, lines, cells and figures side by side, drawn with fpdf2.

Decides the margins and the type of everything that is sent on paper; what stands on a sheet is its
page's own. fpdf2 is an extra that only this needs. Equal contents give equal files: a sheet is dated by
what it knows. Text that the standard fonts lack is set in DejaVu Sans where the system has it, and
otherwise shown as question marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ouvrage.base.errors import OuvrageError
from ouvrage.console.page import Tile

if TYPE_CHECKING:
    from fpdf import FPDF

LEFT, WIDTH, BOTTOM = 18.0, 174.0, 279.0
SOFT = 95
_DEJAVU = Path("/usr/share/fonts/truetype/dejavu")


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


class Paper:
    """One sheet of paper. ``words`` are all that may stand on it, to choose a font by.

    Raises ``OuvrageError`` ``pdf/not-here`` without fpdf2.
    """

    def __init__(self, title: str, as_of: int, words: str) -> None:
        self.pdf: FPDF = _fpdf()
        self.unicode = False
        self.pdf.set_creation_date(
            datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=as_of)
        )
        self.pdf.set_title(f"{title} - Ouvrage")
        self.pdf.set_auto_page_break(auto=False)
        self.pdf.set_margins(LEFT, LEFT, LEFT)
        self.pdf.add_page()
        self._choose_font(words)

    def _choose_font(self, text: str) -> None:
        regular, bold = (_DEJAVU / f"DejaVuSans{kind}.ttf" for kind in ("", "-Bold"))
        if text.replace("…", "").isascii() or not (regular.exists() and bold.exists()):
            return
        self.pdf.add_font("DejaVu", "", str(regular))
        self.pdf.add_font("DejaVu", "B", str(bold))
        self.unicode = True

    def font(self, size: float, *, bold: bool = False, soft: bool = False) -> None:
        """Set what follows in this size."""
        self.pdf.set_font("DejaVu" if self.unicode else "Helvetica", "B" if bold else "", size)
        self.pdf.set_text_color(SOFT if soft else 20)

    def fit(self, text: str) -> str:
        """The text as far as the font has it."""
        if self.unicode:
            return text
        return text.replace("…", "...").encode("latin-1", "replace").decode("latin-1")

    def lines(self, text: str, height: float) -> None:
        """Text over the whole width, as many lines as it takes."""
        self.pdf.set_x(LEFT)
        self.pdf.multi_cell(WIDTH, height, self.fit(text), align="L")
        self.pdf.set_xy(LEFT, self.pdf.get_y())

    def cell(self, x: float, width: float, text: str, align: str = "L") -> None:
        """Text in one place of the line."""
        self.pdf.set_x(x)
        self.pdf.cell(width, 5.5, self.fit(text), align=align)

    def row(self, cells: Sequence[str], widths: Sequence[float]) -> None:
        """A line of a table: the first cell to the left, the others to the right."""
        x = LEFT
        for index, (text, width) in enumerate(zip(cells, widths, strict=True)):
            self.cell(x, width, text, "R" if index else "L")
            x += width
        self.pdf.ln(5.5)

    def heading(self, words: str) -> None:
        """The heading of a part."""
        self.font(11, bold=True)
        self.lines(words, 7)

    def head(self, what: str, words: str, more: str) -> None:
        """What the sheet is, its answer, and what else to say at once."""
        self.font(9, soft=True)
        self.lines(f"Ouvrage: {what}", 5)
        self.pdf.ln(2)
        self.font(15, bold=True)
        self.lines(words, 7)
        if more:
            self.font(11)
            self.lines(more, 6)
        self.pdf.ln(4)

    def tiles(self, tiles: Sequence[Tile]) -> None:
        """Figures side by side."""
        top, room = self.pdf.get_y(), WIDTH / len(tiles)
        for index, tile in enumerate(tiles):
            x = LEFT + room * index
            for line, (size, text) in enumerate(
                ((8.0, tile.label), (12.0, tile.shown.text), (7.5, _small(tile)))
            ):
                self.font(size, bold=line == 1, soft=line != 1)
                self.pdf.set_xy(x, top + 6 * line)
                self.pdf.multi_cell(room - 3, 3.6 if line == 2 else 5, self.fit(text), align="L")
        self.pdf.set_xy(LEFT, top + 26)

    def notes(self, notes: Sequence[str]) -> None:
        """What a reader should know, no more than fits."""
        self.font(8.5)
        for note in notes:
            if self.pdf.get_y() < BOTTOM - 14:
                self.lines(note, 4.5)

    def foot(self, words: str) -> None:
        """The last lines of the sheet."""
        self.pdf.set_y(BOTTOM - 4)
        self.font(7.5, soft=True)
        self.lines(words, 4)


def _small(tile: Tile) -> str:
    grade = tile.shown.grade
    return f"{grade.word}; {tile.note}" if grade is not None else tile.note
