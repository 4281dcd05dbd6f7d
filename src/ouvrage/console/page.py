"""What a report's page says, as typed values, and how it becomes one self-contained HTML file.

The page shows what the command prints: the same words, the same numbers, each with the name that
``ouvrage explain`` takes. It runs no script and loads nothing, so it can be mailed and kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.console import svg


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A printed figure: its text, its grade, and the name by which it is explained.

    ``grade`` is None for words without a figure behind them, ``name`` for what is not computed;
    ``note`` stands small below, such as the figure's interval.
    """

    text: str
    grade: Grade | None = None
    name: str | None = None
    note: str = ""

    @property
    def hint(self) -> str | None:
        """What resting on the figure tells."""
        return f"ouvrage explain {self.name}" if self.name else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One figure with its label and a line of explanation."""

    label: str
    shown: Shown
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture with its heading and the sentence that says what to see in it."""

    heading: str
    svg: str
    caption: str = ""

    @property
    def markup(self) -> Markup:
        """The picture as it stands in the page; every text in it was escaped when drawn."""
        return Markup(self.svg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table of figures: a label, a cell a run, and what the difference is."""

    label: str
    cells: tuple[Shown, ...]
    difference: Shown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything on one report's page, in reading order.

    ``columns`` head the ``rows`` of a comparison; a single run has ``tiles`` instead. ``about``
    holds plain facts such as the command; ``said`` is the command's own text, line for line; ``what``
    stands beside our name.
    """

    title: str
    headline: str
    lead: tuple[str, ...]
    tiles: tuple[Tile, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    notes: tuple[str, ...] = ()
    claim: tuple[str, ...] = ()
    about: tuple[tuple[str, str], ...] = ()
    said: str = ""
    as_of: str = ""
    what: str = "what a finished piece of work cost"


def html(page: Page) -> str:
    """The page as one HTML document."""
    marks = [
        ("●", "measured by our instruments"),
        ("◐", "metered: the provider's own record"),
        ("○", "reported or listed by somebody"),
        ("?", "assumed, such as a price typed on the command line"),
    ]
    if any(shown.grade == Grade.SIMULATED for shown in _all_shown(page)):
        marks.append(("◌", "simulated"))
    return template("report.html.j2").render(page=page, marks=marks, patterns=_patterns())


def check_ours(document: str) -> str:
    """The document, if it is a page that ``html`` made; else ``OuvrageError`` ``page/not-ours``."""
    if "<footer>" not in document or 'content="Ouvrage"' not in document:
        raise OuvrageError(
            "page/not-ours", "the file is no page that ouvrage wrote",
            hint="name one that ouvrage report --html or ouvrage compare --html made",
        )  # fmt: skip
    return document


def with_section(document: str, key: str, drawing: Drawing, said: str) -> str:
    """A page of ours with one more section before its end, in place of one of the same key."""
    section = template("section.html.j2").render(key=key, drawing=drawing, said=said).rstrip()
    begins, ended = document.find(f'<section id="{key}">'), f"<!-- {key} -->"
    if begins >= 0:
        after = document.index(ended, begins) + len(ended)
        return f"{document[:begins]}{section}{document[after:]}"
    at = document.rindex("<footer>")
    return f"{document[:at]}{section}\n{document[at:]}"


def _patterns() -> Markup:
    return Markup(svg.patterns())


def bound(words: str) -> str:
    """The words with every number held to its sign and unit: no line breaks between them."""
    return re.sub(r"(?<=[0-9]) (?=[A-Za-z%])|(?<=[−+±÷×]) (?=[0-9])", "\u00a0", words)


def _all_shown(page: Page) -> list[Shown]:
    return [tile.shown for tile in page.tiles] + [c for row in page.rows for c in row.cells]


@lru_cache(maxsize=8)
def template(name: str) -> Template:
    """A page's template, with everything in it escaped."""
    return environment_of_templates().get_template(name)


def environment_of_templates() -> Environment:
    """What templates are read with: everything in them escaped, and no name left out in silence."""
    environment = Environment(
        loader=PackageLoader("ouvrage.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["bound"] = bound
    return environment
