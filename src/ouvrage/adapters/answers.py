"""From what a place answered to an observation: the one way in which outcomes are told apart.

Decides that only a whole answer with status 200, in the form that the place promises, says anything;
whatever else came back is *no answer* for every property that was asked. Each place has a module of
its own that knows its form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ouvrage.adapters.web import Answer
from ouvrage.base.grades import Grade
from ouvrage.evidence.observations import OUR_OWN, seal, unanswered
from ouvrage.model.observations import Finding, Observation


class Unreadable(ValueError):
    """An answer that does not have the form its place promises; the words say how it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What an answer says, and the moment for which it says it holds, where it does."""

    findings: tuple[Finding, ...]
    page_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one question is put: its name, what it can be asked, what its word is worth."""

    name: str
    properties: tuple[str, ...]
    grade: Grade
    not_shown: str
    read: Callable[[bytes, str], Read]


def observation_of(
    place: Place,
    subject: str,
    answer: Answer,
    providers: tuple[str, ...],
    made_by: str = OUR_OWN,
) -> Observation:
    """What was asked of a place and what came back; a page saved by a person has no status."""
    fault, found = answer.fault, None
    if fault is None and answer.status not in (None, 200):
        fault = f"HTTP status {answer.status}, which says nothing of what was asked"
    if fault is None:
        try:
            found = place.read(answer.body, subject)
        except Unreadable as error:
            fault = f"not in the form expected: {error}"
    came = answer.status is not None or answer.fault is None
    sealed = seal(answer.body) if came else None
    nothing = tuple(unanswered(name, place.grade) for name in place.properties)
    return Observation(
        providers=providers,
        subject=subject,
        place=place.name,
        address=answer.address,
        made_by=made_by,
        asked_us=answer.asked_us,
        answered_us=answer.answered_us,
        page_us=found.page_us if found else None,
        status=answer.status,
        fault=fault,
        sha256=sealed.sha256 if sealed else None,
        size_bytes=sealed.size_bytes if sealed else None,
        answer=sealed.answer if sealed else None,
        findings=found.findings if found else nothing,
        not_shown=place.not_shown,
    )


def json_object(raw: bytes) -> Mapping[str, Any]:
    """The JSON object that an answer is. Raises ``Unreadable``."""
    try:
        value = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Unreadable("not JSON") from error
    if not isinstance(value, dict):
        raise Unreadable(f"a JSON {type(value).__name__}, not an object")
    return value


def part(value: Mapping[str, Any], name: str, kind: type) -> Any:
    """A field of a type; None where it is missing or null. Raises ``Unreadable`` for another type."""
    found = value.get(name)
    if found is None or type(found) is kind:
        return found
    raise Unreadable(f"{name} is {type(found).__name__}, not {kind.__name__}")


def word(text: str) -> str:
    """A text from outside, as a fact can hold it: valid Unicode of a sensible length."""
    return text.encode("utf-8", "replace").decode("utf-8").strip()[:2000]
