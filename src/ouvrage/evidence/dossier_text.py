"""A dossier in words: one list of sections, printed for a terminal, as Markdown, as a page or as JSON.

Decides the order (what is known, what disagrees, what is old, what is not known, what none of it
shows) and the words; the page in ``console`` shows the same sections. It computes nothing.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.base.time import DAY, utc_text
from ouvrage.evidence.dossier import Contradiction, Dossier, Item, when_of
from ouvrage.model.observations import ABSENT, NO_ANSWER, PRESENT

_WIDTH = 100
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~])")
_SHOWN = (Grade.MEASURED, Grade.METERED, Grade.REPORTED, Grade.LISTED, Grade.ASSUMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One statement of a section: when, what its word is worth, what, and what stands below it."""

    text: str
    when: str = ""
    grade: Grade | None = None
    below: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with its statements; ``nothing`` is said where there are none."""

    heading: str
    lines: tuple[Line, ...]
    nothing: str = ""


def headline(found: Dossier) -> str:
    """The line that answers: how much is known, and how much of it is disputed or open."""
    facts = len({item.key for item in found.items})
    ours = len({item.key for item in found.items if item.asked is Grade.MEASURED})
    parts = [
        f"{_count(facts, 'statement')} ({ours} asked by us, with the answer kept)",
        f"{_count(len(found.contradictions), 'contradiction')}",
        f"{_count(len(found.questions), 'open question')}",
    ]
    return f"{found.provider}: {', '.join(parts)}; none of it proves an offer or a closure."


def sections(found: Dossier) -> tuple[Section, ...]:
    """The whole dossier in reading order."""
    days = found.stale_after_us // DAY
    return (
        Section(
            heading="In order of date",
            lines=tuple(_timeline(found.items)),
            nothing="Nothing is recorded about it.",
        ),
        Section(heading="What it is worth", lines=tuple(_worth(found))),
        Section(
            heading="What contradicts what",
            lines=tuple(map(_contradiction, found.contradictions)),
            nothing="No two statements about one property of one subject differ.",
        ),
        Section(
            heading=f"Older than {_count(days, 'day')}",
            lines=tuple(_old(found)),
            nothing="Nothing.",
        ),
        Section(
            heading="What is not known",
            lines=tuple(Line(text=q.question, when=q.asked_on) for q in found.questions),
            nothing="No question is recorded as open; that does not mean that all is known.",
        ),
        Section(
            heading="Searches that found nothing",
            lines=tuple(
                Line(text=f"{search.words}, in {search.place}", when=search.searched_on)
                for search in found.searches
            ),
            nothing="None is recorded.",
        ),
        Section(
            heading="What the evidence does not show",
            lines=tuple(Line(text=sentence) for sentence in found.limits),
        ),
    )


def _timeline(items: Sequence[Item]) -> Iterator[Line]:
    """One line a fact, with what it says below where it says several things."""
    for _, group in groupby(items, key=lambda item: item.key):
        parts = list(group)
        first = parts[0]
        when = when_of(first) if first.dated else f"{when_of(first)} read, undated"
        if first.asked is None:
            below = [*first.details, f"said by {first.who}, {first.interest}"]
            value = "" if (first.value or "") in first.words else _valued(first)
            text = f"{first.subject}, {first.property}{value}: {first.words} ({first.name})"
        else:
            answered = "no HTTP status" if first.status is None else f"HTTP {first.status}"
            below = list(_answers(parts))
            text = f"{first.subject}: {first.who}, {answered}, {first.interest} ({first.name})"
            if first.asked is not Grade.MEASURED:
                below.append("the answer itself was not kept")
        if first.address:
            below.append(f"at {first.address}")
        below.append(f"does not show {first.not_shown}")
        yield Line(text=text, when=when, grade=first.grade, below=tuple(below))


def _answers(parts: Sequence[Item]) -> Iterator[str]:
    """What an answer says, with what it says nothing of in one line."""
    yield from (item.words for item in parts if item.outcome != NO_ANSWER)
    silent = [item for item in parts if item.outcome == NO_ANSWER]
    if silent:
        why = silent[0].why or "it is not in the answer"
        yield f"no answer on {', '.join(item.property for item in silent)}: {why}"


def _valued(item: Item) -> str:
    if item.value is None:
        return ""
    return f" = {item.value}{f' {item.unit}' if item.unit else ''}"


def _worth(found: Dossier) -> Iterator[Line]:
    """Measured, reported and listed apart. What we measured is that this was asked and answered."""
    for grade in _SHOWN:
        if grade is Grade.MEASURED:
            names = _names(item for item in found.items if item.asked is Grade.MEASURED)
            what = "that we asked and what came back; what the answers say is their giver's word"
        else:
            held = [item for item in found.items if item.grade is grade]
            names = _names(item for item in held if item.outcome != NO_ANSWER)
            what = ""
        if not names:
            if grade in (Grade.METERED, Grade.ASSUMED):
                continue
            yield Line(text=f"{grade.word}: nothing", grade=grade)
            continue
        text = f"{grade.word}: {len(names)}{f', {what}' if what else ''}"
        yield Line(text=text, grade=grade, below=(", ".join(names),))
    silent = _names(found.of(NO_ANSWER))
    if silent:
        yield Line(
            text=f"no answer: {len(silent)}, which proves nothing", below=(", ".join(silent),)
        )


def _names(items: Iterable[Item]) -> list[str]:
    return list(dict.fromkeys(item.name for item in items))


def _contradiction(pair: Contradiction) -> Line:
    words = (
        "the values differ, of one day"
        if pair.same_day
        else "one is wrong, or it changed, or both mean the same in other words; which, is not known"
    )
    return Line(
        text=f"{pair.first.subject}, {pair.first.property}: {words}",
        below=tuple(map(_side, (pair.first, pair.second))),
    )


def _side(item: Item) -> str:
    value = "absent" if item.outcome == ABSENT else f"{_valued(item)[3:]}"
    read = "" if item.dated else " (undated, day read)"
    return f"{value}: {item.who}, {when_of(item)}{read}, {item.grade.word}"


def _old(found: Dossier) -> Iterator[Line]:
    for _, group in groupby(found.stale, key=lambda item: item.key):
        item = next(group)
        days = (found.as_of - item.at_us) // DAY
        undated = "" if item.dated else "; undated, counted from the day it was read"
        text = f"{item.name}: {item.subject}, {item.who}, {_count(days, 'day')} old{undated}"
        yield Line(text=text, when=when_of(item), grade=item.grade)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def dossier_text(found: Dossier, *, plain: bool) -> str:
    """As ``evidence report`` prints it."""
    lines = [safe(headline(found))]
    for section in sections(found):
        lines += ["", section.heading]
        if not section.lines:
            lines.append(f"  {section.nothing}")
        for line in section.lines:
            lines += _printed(line, plain)
    lines += [
        "",
        f"As known at {utc_text(found.as_of)}.  One statement whole: ouvrage evidence show NAME",
    ]
    return "\n".join(lines)


def _printed(line: Line, plain: bool) -> list[str]:
    mark = ""
    if line.grade is not None:
        mark = f" ({line.grade.word})" if plain else f" {line.grade.mark}"
    head = f"{line.when}{mark}  ".lstrip() if line.when or mark else ""
    out = _wrapped(f"{head}{line.text}", "  ", "      ")
    for below in line.below:
        out += _wrapped(below, "      ", "        ")
    return out


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        safe(text),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )


def dossier_markdown(found: Dossier) -> str:
    """The same as Markdown."""
    lines = [f"# {_md(found.provider)}: evidence", "", _md(headline(found))]
    for section in sections(found):
        lines += ["", f"## {_md(section.heading)}", ""]
        if not section.lines:
            lines.append(_md(section.nothing))
        for line in section.lines:
            when = f"**{_md(line.when)}** " if line.when else ""
            grade = f" ({line.grade.word})" if line.grade is not None else ""
            lines.append(f"- {when}{_md(line.text)}{grade}")
            lines += [f"  - {_md(below)}" for below in line.below]
    lines += ["", f"As known at {utc_text(found.as_of)}."]
    return "\n".join(lines) + "\n"


def _md(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", safe(text))


def dossier_json(found: Dossier) -> dict[str, Any]:
    """What ``evidence report --json`` prints."""
    return {
        "provider": found.provider,
        "as_of": utc_text(found.as_of),
        "stale_after_days": found.stale_after_us // DAY,
        "items": [item_json(item) for item in found.items],
        "outcomes": {outcome: len(found.of(outcome)) for outcome in (PRESENT, ABSENT, NO_ANSWER)},
        "grades": {
            "measured": _names(i for i in found.items if i.asked is Grade.MEASURED),
            **{
                grade.word: _names(
                    i for i in found.items if i.grade is grade and i.outcome != NO_ANSWER
                )
                for grade in _SHOWN[1:]
            },
        },
        "contradictions": [
            {
                "subject": pair.first.subject,
                "property": pair.first.property,
                "same_day": pair.same_day,
                "between": [item_json(pair.first), item_json(pair.second)],
            }
            for pair in found.contradictions
        ],
        "stale": _names(found.stale),
        "open_questions": [
            {"name": q.name, "question": q.question, "asked_on": q.asked_on}
            for q in found.questions
        ],
        "searches": [
            {"words": s.words, "place": s.place, "searched_on": s.searched_on}
            for s in found.searches
        ],
        "limits": list(found.limits),
    }


def item_json(item: Item) -> dict[str, Any]:
    """One statement of a dossier."""
    return {
        "name": item.name,
        "fact": item.key,
        "date": when_of(item)[:10],
        "at": utc_text(item.at_us) if item.to_the_minute else None,
        "dated": item.dated,
        "subject": item.subject,
        "property": item.property,
        "outcome": item.outcome,
        "value": item.value,
        "unit": item.unit,
        "statement": item.words,
        "details": list(item.details),
        "said_by": item.who,
        "interest": item.interest,
        "grade": item.grade.word,
        "asking": item.asked.word if item.asked is not None else None,
        "why": item.why,
        "http_status": item.status,
        "answer_sha256": item.sha256,
        "address": item.address,
        "read_on": item.read_on,
        "not_shown": item.not_shown,
    }
