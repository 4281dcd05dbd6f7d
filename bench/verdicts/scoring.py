"""From verdicts to a score: right, unknown, wrong; how sure; which causes are taken for which.

Runs nothing. Controls are counted apart: a program whose cause nobody can know from outside is no
chance to be right by saying nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.verdicts.cases import Case

BAR = 0.9
CROWDED = 0.10
"""Share of the machine that others may use before a run counts as disturbed: more than that is two
of the five percent at which a wait is named, on each of two cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run came to. ``others`` is the share of the machine's processors that others had."""

    case: Case
    verdict: str
    share: float
    evidence: str
    times: dict[str, float]
    others: float
    tries: int

    @property
    def mark(self) -> str:
        """``right``, ``unknown`` or ``wrong``."""
        if self.verdict == self.case.expected:
            return "right"
        return "unknown" if self.verdict == "unknown" else "wrong"

    @property
    def disturbed(self) -> bool:
        """Whether others had so much of the machine that the run proves little."""
        return self.others > CROWDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How many of which, and the interval of the share that is right."""

    right: int
    unknown: int
    wrong: int
    low: float
    high: float

    @property
    def total(self) -> int:
        """All that were scored."""
        return self.right + self.unknown + self.wrong

    @property
    def share(self) -> float:
        """Right of all; nought of none."""
        return self.right / self.total if self.total else 0.0


def score(outcomes: Iterable[Outcome]) -> Score:
    """The score of some outcomes, with Wilson's 95 % interval."""
    many = Counter(outcome.mark for outcome in outcomes)
    low, high = wilson(many["right"], many.total())
    return Score(
        right=many["right"], unknown=many["unknown"], wrong=many["wrong"], low=low, high=high
    )


def wilson(hits: int, total: int, z: float = 1.959964) -> tuple[float, float]:
    """The interval of a share by Wilson (1927), 95 % by default; 0 to 1 where nothing was tried."""
    if not total:
        return 0.0, 1.0
    share, square = hits / total, z * z / total
    middle = share + square / 2
    reach = z * math.sqrt(share * (1 - share) / total + square / (4 * total))
    return (middle - reach) / (1 + square), (middle + reach) / (1 + square)


def confusion(outcomes: Sequence[Outcome]) -> tuple[list[str], dict[tuple[str, str], int]]:
    """The verdicts that occur, and how often each was given where another, or it, was expected."""
    told = Counter((outcome.case.expected, outcome.verdict) for outcome in outcomes)
    names = {name for pair in told for name in pair}
    order = ["computing", *sorted(names - {"computing", "unknown"}), "unknown"]
    return [name for name in order if name in names], dict(told)
