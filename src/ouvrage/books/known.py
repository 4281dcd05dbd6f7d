"""A value that holds for a time, with the fact that says so and what that is worth.

Decides nothing; everything that the books decode from facts stands in one of these, so that a figure
can name its facts and its grade.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from ouvrage.base.grades import Grade

T = TypeVar("T")
FOR_EVER = 2**62


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
