"""A value that holds for a time, with the fact that says so and what that is worth.

Decides nothing; everything that the books decode from facts stands in one of these, so that a figure
can name its facts and its grade.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import GRADES, Line
from ouvrage.ledger.kinds import KINDS, values_of
from ouvrage.ledger.view import lines_in_force
from ouvrage.model.earnings import Earning
from ouvrage.model.meters import EnergyRead
from ouvrage.model.occupancy import DeviceState

T = TypeVar("T")
FOR_EVER = 2**62
MOST_DEVICES = 64
"""Of an owner with more devices a statement leaves out what takes a whole account more, and is kept."""
DAILY = (DeviceState.KIND, Earning.KIND, EnergyRead.KIND)
"""Of these there are more than of all others together; each concerns its own time alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known(Generic[T]):
    """A value that holds for a half-open period (``valid_to`` None: no end known).

    ``key`` is the fact's, empty where no fact states it; ``said_by`` names who said it, or the
    source of a default.
    """

    value: T
    valid_from: int
    valid_to: int | None
    grade: Grade
    key: str
    said_by: str = ""

    @property
    def end(self) -> int:
        """``valid_to``, or a moment after any other."""
        return FOR_EVER if self.valid_to is None else self.valid_to

    @property
    def keys(self) -> tuple[str, ...]:
        """The fact's key, as figures take it."""
        return (self.key,) if self.key else ()

    def at(self, at_us: int) -> bool:
        """Whether it holds at a moment."""
        return self.valid_from <= at_us < self.end

    def meets(self, from_us: int, to_us: int) -> bool:
        """Whether it holds at any moment of a period."""
        return self.valid_from < to_us and from_us < self.end


def by_kind(lines: Sequence[Line]) -> dict[tuple[str, int], list[Line]]:
    """The lines in force by kind and version."""
    found: dict[tuple[str, int], list[Line]] = {}
    for line in lines_in_force(lines):
        found.setdefault((line.kind, line.version), []).append(line)
    return found


def known_of(kind: str, version: int, lines: Sequence[Line]) -> Iterator[Known[Any]]:
    """What lines of one kind state; those that cannot be read are left out."""
    says_who = hasattr(KINDS[kind, version], "said_by")
    values = values_of(kind, version, [line.payload for line in lines])
    for line, value in zip(lines, values, strict=True):
        if value is not None:
            yield Known(
                value=value,
                valid_from=line.valid_from,
                valid_to=line.valid_to,
                grade=GRADES[line.grade],
                key=line.key,
                said_by=value.said_by if says_who else "",
            )
