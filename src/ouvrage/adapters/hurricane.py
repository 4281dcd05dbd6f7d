"""A saved page of Hurricane Electric's BGP toolkit about an AS.

The site asks that it is not read by programs, so a person saves the page and says when. Only the
page's words are read, one line at a time; what a page does not show is *no answer*. The page itself
gives no date, and its figures are those of its own collectors.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

from ouvrage.adapters.answers import Place, Read, Unreadable, word
from ouvrage.base.grades import Grade
from ouvrage.evidence.observations import absent, present, unanswered
from ouvrage.model.observations import Finding

ADDRESS = "https://bgp.he.net/"
_WORTH = Grade.REPORTED
_BREAKS = {"br", "p", "div", "tr", "td", "th", "li", "h1", "h2", "h3", "table", "title", "a"}
_HIDDEN = {"script", "style"}
_COUNTS = {
    "Prefixes Originated (all)": ("prefixes announced", "prefixes"),
    "Prefixes Originated (v4)": ("prefixes announced, v4", "prefixes"),
    "Prefixes Originated (v6)": ("prefixes announced, v6", "prefixes"),
    "BGP Peers Observed (all)": ("peers seen", "peers"),
}
_GONE = re.compile(r"not been visible in the global routing table since\s+([A-Za-z0-9, -]{4,40})")
_ENGLISH_DAY = re.compile(r"([A-Z][a-z]{2,8}) ([0-9]{1,2}),? ([0-9]{4})")
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_AS = re.compile(r"AS[0-9]{1,10}")
_BLOCK = re.compile(r"[0-9a-fA-F:.]{3,39}/[0-9]{1,3}")
_FOUND_ON_PAGES = ("holder", "country of origin", "not visible since", "peers", "prefixes shown")


class _Words(HTMLParser):
    """The visible text of a page as lines, and which lines stand under which ``id``."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._line: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        if tag in _BREAKS:
            self.end_line()

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN and self._hidden:
            self._hidden -= 1
        if tag in _BREAKS:
            self.end_line()

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        first, *rest = data.split("\n")
        self._line.append(first)
        for text in rest:
            self.end_line()
            self._line.append(text)

    def end_line(self) -> None:
        text = " ".join("".join(self._line).split())
        self._line = []
        if text:
            self.lines.append(text)


def read_page(raw: bytes, subject: str) -> Read:
    """The holder, the country, the counts, the peers and blocks that a saved page shows."""
    words = _Words()
    try:
        words.feed(raw.decode("utf-8", "replace"))
        words.close()
    except (AssertionError, ValueError) as error:  # what the parser raises on broken markup
        raise Unreadable("no page that can be read") from error
    words.end_line()
    lines = words.lines
    head = next((line for line in lines if _heads(line, subject)), None)
    if head is None:
        raise Unreadable(f"no heading of {subject}")
    findings = [_holder(head, subject), _country(lines), *_counts(lines), _gone(lines)]
    findings += [_peers(lines, subject), _blocks(lines)]
    return Read(findings=tuple(findings))


def _heads(line: str, subject: str) -> bool:
    return line.upper() == subject.upper() or line.upper().startswith(f"{subject.upper()} ")


def _holder(head: str, subject: str) -> Finding:
    name = head[len(subject) :].split(" - ")[0].strip()
    return present("holder", word(name), _WORTH) if name else unanswered("holder", _WORTH)


def _country(lines: list[str]) -> Finding:
    text = _after(lines, "Country of Origin")
    name = "country of origin"
    return present(name, word(text), _WORTH) if text else unanswered(name, _WORTH)


def _counts(lines: list[str]) -> list[Finding]:
    found: list[Finding] = []
    for label, (name, unit) in _COUNTS.items():
        text = (_after(lines, label) or "").replace(",", "")
        if not (text.isascii() and text.isdecimal() and len(text) < 20):
            found.append(unanswered(name, _WORTH))
        elif int(text):
            found.append(present(name, str(int(text)), _WORTH, unit))
        else:
            found.append(absent(name, _WORTH, unit))
    return found


def _after(lines: list[str], label: str) -> str | None:
    """What stands behind ``label:`` on its line, or on the next one."""
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith(f"{label}:"):
            return line[len(label) + 1 :].strip() or after
    return None


def _gone(lines: list[str]) -> Finding:
    for line in lines:
        found = _GONE.search(line)
        if found:
            return present("not visible since", _day(word(found[1].strip(" ,.-"))), _WORTH)
    return unanswered("not visible since", _WORTH)


def _day(text: str) -> str:
    """``April 16, 2026`` as ``2026-04-16``; any other text as it stands."""
    found = _ENGLISH_DAY.fullmatch(text)
    month = _MONTHS.find(found[1][:3].lower()) if found else -1
    if not found or month % 3:
        return text
    return f"{found[3]}-{month // 3 + 1:02d}-{int(found[2]):02d}"


def _peers(lines: list[str], subject: str) -> Finding:
    """The AS numbers that stand alone on a line: those of the page's table of peers."""
    named = {line for line in lines if _AS.fullmatch(line)} - {subject.upper()}
    peers = ", ".join(sorted(named, key=lambda name: int(name[2:])))
    return present("peers", word(peers), _WORTH) if peers else unanswered("peers", _WORTH)


def _blocks(lines: list[str]) -> Finding:
    named = sorted({line for line in lines if _BLOCK.fullmatch(line)})
    name = "prefixes shown"
    return present(name, word(", ".join(named)), _WORTH) if named else unanswered(name, _WORTH)


PAGE = Place(
    name="Hurricane Electric's page",
    properties=(*_FOUND_ON_PAGES, *(name for name, _ in _COUNTS.values())),
    grade=_WORTH,
    not_shown=(
        "when its figures were made, what its collectors did not see, and why; a peer's name reveals "
        "no contract, a country no seat"
    ),
    read=read_page,
)
