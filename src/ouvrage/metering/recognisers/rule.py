"""The form of a recogniser: which lines it looks at, and what it reads in one of them.

A rule is declared, not programmed: a literal that every line of its kind holds (so that most
output is passed over by a plain search), a pattern, and what a match means. A rule sees one clean
line, without terminal escapes, and keeps no state; ``tally`` turns readings into marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

HEAD = "head"  # unit n begins, or is under way
END = "end"  # unit n is finished
CLOSE = "close"  # the unit under way is finished; the line bears no number
COUNT = "count"  # n more units are finished
BEGIN = "begin"  # a total begins at nought, and the next unit is timed from here
ASKED = "asked"  # a unit was asked for: it is timed from here, unless another is under way
TOTAL = "total"  # n units are finished so far
WIPED = "wiped"  # a bar was taken off the screen: it may have been full
TOLD = "told"  # no unit, but something else that is told of serving
RATE = "rate"  # a mean rate since the line before, in tenths of a unit per second


@dataclass(frozen=True, slots=True)
class Reading:
    """What one line says.

    ``of`` is how many units there will be, where the line says so. ``series`` tells apart what one
    program counts separately (bars, engines). ``first``: the line shows its unit, or its series,
    at the very beginning. ``alone``: it holds nothing but the unit's name and number. ``exact``:
    the unit ended when the line was printed, not some time before. ``clock`` is the time of day
    in the line, in seconds. ``told`` is what else a model server says in it (``serving_log``).
    """

    mark: str
    n: int = 0
    of: int | None = None
    series: bytes = b""
    first: bool = False
    alone: bool = False
    exact: bool = True
    clock: int | None = None
    unit: str | None = None
    told: tuple[Any, ...] | None = None


Reader = Callable[[bytes], "Reading | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One way in which a tool says how far it is.

    ``needle`` is searched as it is; with ``folded`` in lower case. ``gate`` is a byte that every
    such line holds too and that is rarer than those of the needle. ``plain`` rules read lines that
    name the unit in words, whatever program printed them; the others are one tool's own.
    """

    tool: str
    unit: str
    needle: bytes
    read: Reader
    folded: bool = False
    plain: bool = False
    gate: bytes = b""

    @property
    def via(self) -> str:
        """How marks of this rule say that they were recognised."""
        return "line" if self.plain else f"line:{self.tool}"


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """Compiled when the first line asks for it, so that a short command does not wait for all."""
    return re.compile(pattern)


def said(pattern: bytes, mark: str, n: int = 0) -> Reader:
    """A reader of lines in which the pattern is found: group ``n`` is the number, if there is one."""

    def read(line: bytes) -> Reading | None:
        match = _compiled(pattern).search(line)
        if match is None:
            return None
        return Reading(mark, int(match["n"]) if b"?P<n>" in pattern else n)

    return read


def found(pattern: bytes, line: bytes) -> re.Match[bytes] | None:
    """The first place in the line where the pattern is found."""
    return _compiled(pattern).search(line)
