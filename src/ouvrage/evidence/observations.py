"""Observations as facts: the raw answer sealed inside, and what is wrong with one that lies.

Decides how an answer is kept (compressed, with the hash of what came) and what an observation may
be worth: that *this* was answered is ours and ``measured``; what the answer says keeps the grade of
the answerer's word, finding by finding. An observation whose answer was not kept is a report.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade, grade_of
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import fact_of, read
from ouvrage.model.observations import (
    ABSENT,
    NO_ANSWER,
    OUTCOMES,
    PRESENT,
    Finding,
    Observation,
)

OUR_OWN = "this home"
LARGEST_ANSWER = 4 << 20
"""No answer is kept that is larger, in bytes; a larger one was cut off and is no answer."""
FINDING_GRADES = (Grade.REPORTED, Grade.LISTED, Grade.ASSUMED, Grade.SIMULATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An observation as it stands in the ledger."""

    observation: Observation
    grade: Grade
    recorded: Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A raw answer as a fact keeps it."""

    sha256: str
    size_bytes: int
    answer: str


def seal(raw: bytes) -> Sealed:
    """The raw bytes with their hash, as text that any store can hold."""
    packed = base64.b64encode(zlib.compress(raw, 9)).decode("ascii")
    return Sealed(sha256=hashlib.sha256(raw).hexdigest(), size_bytes=len(raw), answer=packed)


def unsealed(observation: Observation) -> bytes | None:
    """The raw answer, None where it was not kept. ``ValueError`` where it is not what was sealed."""
    if observation.answer is None:
        return None
    limit = min(observation.size_bytes or 0, LARGEST_ANSWER)
    unpacking = zlib.decompressobj()
    try:
        packed = base64.b64decode(observation.answer, validate=True)
        raw = unpacking.decompress(packed, limit + 1)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"the answer cannot be unpacked: {error}") from error
    if len(raw) != observation.size_bytes:
        raise ValueError(f"the answer is not of {observation.size_bytes} bytes")
    if hashlib.sha256(raw).hexdigest() != observation.sha256:
        raise ValueError("the answer does not have its hash")
    return raw


def absent(name: str, grade: Grade, unit: str | None = None) -> Finding:
    """A property that the answer says is not there."""
    return Finding(property=name, outcome=ABSENT, value=None, unit=unit, grade=grade.word)


def present(name: str, value: str, grade: Grade, unit: str | None = None) -> Finding:
    """A property and the value that the answer gives it."""
    return Finding(property=name, outcome=PRESENT, value=value, unit=unit, grade=grade.word)


def unanswered(name: str, grade: Grade) -> Finding:
    """A property of which the answer, or its lack, says nothing."""
    return Finding(property=name, outcome=NO_ANSWER, value=None, unit=None, grade=grade.word)


def observed(observation: Observation, *, source: str, id: str, grade: Grade) -> Fact:
    """The fact that this was asked and answered so. Raises ``OuvrageError`` where it lies."""
    fault = next(faults(observation, grade), None)
    if fault is not None:
        raise OuvrageError(
            "evidence/observation",
            f"an observation of {observation.subject} that {fault}",
            hint="an observation keeps what was answered; say anything else as a claim",
        )
    return fact_of(
        observation,
        source=source,
        id=f"observation/{id}",
        subject=observation.subject,
        valid_from=observation.asked_us,
        valid_to=observation.asked_us,
        grade=grade,
    )


def observations_in(records: Iterable[Recorded]) -> list[Seen]:
    """Every observation that some records state."""
    found: list[Seen] = []
    for entry in records:
        value = read(entry.fact) if entry.fact.kind == Observation.KIND else None
        if isinstance(value, Observation):
            found.append(Seen(observation=value, grade=entry.fact.grade, recorded=entry))
    return found


def faults(observation: Observation, grade: Grade) -> Iterator[str]:
    """What is wrong with an observation: outcomes mixed, or more said than was answered."""
    for finding in observation.findings:
        yield from _finding_faults(finding)
    said = {finding.outcome for finding in observation.findings} - {NO_ANSWER}
    if said and (observation.fault or observation.status not in (None, 200)):
        yield "says what was found though nothing answered"
    if grade is Grade.METERED:
        yield "calls itself the provider's own record"
    if grade is Grade.MEASURED and said and observation.answer is None:
        yield "calls itself measured without the answer"
    try:
        unsealed(observation)
    except ValueError as error:
        yield f"does not hold what it says: {error}"


def _finding_faults(finding: Finding) -> Iterator[str]:
    if finding.outcome not in OUTCOMES:
        yield f"has the outcome {finding.outcome!r}"
    if (finding.value is not None) != (finding.outcome == PRESENT):
        yield f"gives {finding.property} as {finding.outcome} with the value {finding.value!r}"
    try:
        weak = grade_of(finding.grade) in FINDING_GRADES
    except KeyError:
        weak = False
    if not weak:
        yield f"gives {finding.property} the grade {finding.grade!r}"
