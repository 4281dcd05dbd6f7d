"""A saved page of Hurricane Electric's BGP toolkit about an AS.

The site asks that it is not read by programs, so a person saves the page and says when. Only the
page's words are read, one line at a time; what a page does not show is *no answer*. The page itself
gives no date, and its figures are those of its own collectors.
"""

from __future__ import annotations

import html
import re

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
_LOWER = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}
_TAG = re.compile("</?([a-z][a-z0-9]*)")
_GONE = re.compile(r"not been visible in the global routing table since\s+([A-Za-z0-9, -]{4,40})")
_ENGLISH_DAY = re.compile(r"([A-Z][a-z]{2,8}) ([0-9]{1,2}),? ([0-9]{4})")
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_AS = re.compile(r"AS[0-9]{1,10}")
_BLOCK = re.compile(r"[0-9a-fA-F:.]{3,39}/[0-9]{1,3}")
_FOUND_ON_PAGES = ("holder", "country of origin", "not visible since", "peers", "prefixes shown")


def _lines_of(page: str) -> list[str]:
    """The visible text of a page as lines, in one pass however broken its markup is."""
    low, parts, at = page.translate(_LOWER), list[str](), 0
    while at < len(page):
        opens = page.find("<", at)
        parts.append(html.unescape(page[at : opens if opens >= 0 else len(page)]))
        tag = _TAG.match(low, opens) if opens >= 0 else None
        if opens < 0:
            break
        if low.startswith("<!--", opens):
            at = _after_text(low, "-->", opens)
        elif low.startswith(("<!", "<?"), opens):
            at = _after_text(low, ">", opens)
        elif tag is None:  # a sign on its own
            parts.append("<")
            at = opens + 1
        else:
            parts.append("\n" if tag[1] in _BREAKS else "")
            hidden = tag[1] in _HIDDEN and not low.startswith("</", opens)
            at = _after_text(low, ">", _after_text(low, f"</{tag[1]}", opens) if hidden else opens)
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return [line for line in lines if line]


def _after_text(page: str, wanted: str, at: int) -> int:
    """Behind the next such text, or the end of the page."""
    found = page.find(wanted, at)
    return len(page) if found < 0 else found + len(wanted)


def read_page(raw: bytes, subject: str) -> Read:
    """The holder, the country, the counts, the peers and blocks that a saved page shows."""
    lines = _lines_of(raw.decode("utf-8", "replace"))
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
