"""Tables as a workbook for spreadsheets, drawn by XlsxWriter, which is installed with ``ouvrage[xlsx]``.

Decides that every text is written as a text and never as a formula or a link, and that a cell with an
amount is a number of a spreadsheet, which keeps fifteen digits; the CSV keeps all of them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence

from ouvrage.base.errors import OuvrageError

_NUMBER = re.compile(r"-?[0-9]+\.[0-9]+")
_WIDEST = 60


def workbook(sheets: Mapping[str, Sequence[Sequence[str]]]) -> bytes:
    """A workbook with a sheet a table, whose first row has names. Equal tables give equal bytes.

    Raises ``OuvrageError`` ``xlsx/missing`` without XlsxWriter.
    """
    try:
        import xlsxwriter
    except ImportError as error:
        raise OuvrageError(
            "xlsx/missing",
            "workbooks are written with XlsxWriter, which is not installed",
            hint="pip install 'ouvrage[xlsx]', or write --csv, which every spreadsheet reads",
        ) from error
    from datetime import datetime, timezone

    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    book.set_properties({"created": datetime(2000, 1, 1, tzinfo=timezone.utc).replace(tzinfo=None)})
    head = book.add_format({"bold": True, "bottom": 1})
    money = book.add_format({"num_format": "#,##0.00#######"})
    for name, lines in sheets.items():
        sheet = book.add_worksheet(name)
        sheet.freeze_panes(1, 0)
        for number, line in enumerate(lines):
            for column, text in enumerate(line):
                if number and _NUMBER.fullmatch(text):
                    sheet.write_number(number, column, float(text), money)
                elif text:
                    sheet.write_string(number, column, text, None if number else head)
        for column in range(len(lines[0])):
            widest = max(len(line[column]) for line in lines)
            sheet.set_column(column, column, min(_WIDEST, widest + 2))
    book.close()
    return out.getvalue()
