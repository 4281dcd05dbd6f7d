"""What a page of the console is made of, as typed values.

A page is a headline, the answer in a sentence, and blocks in reading order. Each block has one macro that draws it and one plain
form for the page's ``.json`` twin, so that both say the same. Decides nothing about what is shown: the server builds the pages
from what its services answer.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from markupsafe import Markup

from ouvrage.base.grades import Grade

Tone = Literal["plain", "good", "wait", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value: its words, where it leads, its grade, a small note below, and how it should sound.

    ``sort`` orders rows where the words would not; ``tone`` is always said in words as well.
    """

    text: str
    href: str | None = None
    grade: Grade | None = None
    note: str = ""
    tone: Tone = "plain"
    number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """A row of labelled figures, the most important first."""

    tiles: tuple[tuple[str, Cell], ...]
    kind: str = "tiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headings. The first cell of a row names it; ``empty`` is the next useful step."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str = ""
    more: str | None = None
    live: str | None = None
    kind: str = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names and values of one thing."""

    heading: str
    pairs: tuple[tuple[str, Cell], ...]
    live: str | None = None
    kind: str = "facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something a person should know or do; ``href`` leads to where it is done."""

    text: str
    tone: Tone = "wait"
    href: str | None = None
    action: str = ""
    kind: str = "notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A drawing with the sentence that says what to see in it."""

    heading: str
    svg: str
    caption: str = ""
    kind: str = "picture"

    @property
    def markup(self) -> Markup:
        """The drawing as it stands in the page; every text in it was escaped when drawn."""
        return Markup(self.svg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a form. ``kind`` is an input's type, ``select``, ``area`` or ``hidden``."""

    name: str
    label: str
    kind: str = "text"
    value: str = ""
    help: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    required: bool = True
    autocomplete: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Fields and the one thing that sending them does. ``twin`` is the command that does the same; one that only asks is a ``get``."""

    heading: str
    action: str
    fields: tuple[Field, ...]
    submit: str
    twin: str = ""
    tone: Tone = "plain"
    open: bool = True
    method: Literal["post", "get"] = "post"
    kind: str = "form"


@dataclass(frozen=True, slots=True, kw_only=True)
class Buttons:
    """Things that can be done to what the page shows: (words, action, tone)."""

    buttons: tuple[tuple[str, str, Tone], ...]
    kind: str = "buttons"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Output of a command: what is there, and where the rest comes from while the page is open."""

    heading: str
    text: str
    follow: str | None
    offset: int
    note: str = ""
    kind: str = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The command's own text, line for line."""

    heading: str
    text: str
    kind: str = "said"


Block = Tiles | Table | Facts | Notice | Picture | Form | Buttons | Log | Said


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """One page: its place in the navigation, what it answers, and its blocks.

    ``live_s`` is how often, in seconds, its live regions are asked for anew (0: never).
    """

    title: str
    headline: str
    lead: tuple[str, ...]
    blocks: tuple[Block, ...]
    place: str
    trail: tuple[tuple[str, str], ...] = ()
    live_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who reads, as far as a page needs to know it. ``csrf`` and ``key`` (new for every page, so that a form sent twice counts once) go into every form; ``places``
    are the pages that they may open.
    """

    login: str | None
    organisation: str
    language: str
    csrf: str
    key: str
    places: tuple[tuple[str, str, str], ...]
    path: str


def plain(value: Any) -> Any:
    """A page or a part of it as JSON's own types; drawings by their captions, forms without secrets."""
    if isinstance(value, Grade):
        return value.word
    if isinstance(value, Picture):
        return {"kind": value.kind, "heading": value.heading, "caption": value.caption}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value
