"""How far a figure made from days may be from what is to be expected: a block bootstrap of the days.

Days resemble the days beside them, since a tenant stays for more than one, so whole blocks of days are
drawn again, not single ones (Künsch, "The jackknife and the bootstrap for general stationary
observations", Annals of Statistics 17, 1989; blocks run round the end as in Politis and Romano, 1992).
With few blocks the spread of such draws is too narrow: it is widened by sqrt(k / (k - 1)) and by the ratio
of Student's quantile with k - 1 degrees of freedom to the normal one, k being how many blocks there are.
How often the intervals hold the truth is measured, in ``docs/reference/decisions-scored.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

from ouvrage.planning.chance import Chance

DRAWS = 1000
BLOCK_DAYS = 7
NORMAL_95 = 1.645
STUDENT_95 = (
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761,
    1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701,
    1.699, 1.697,
)  # fmt: skip
"""The 95 % quantile of Student's distribution with 1 to 30 degrees of freedom (any statistical table)."""

Row = Sequence[float]
"""The additive amounts of a day: hours, money."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A value and its 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """A day on average: as it was, and as it was in each draw; ``widen`` is how much draws fall short."""

    mean: Row
    drawn: Sequence[Row]
    widen: float

    def range(self, figure: Callable[[Row], float]) -> Range:
        """A figure of an average day, with its interval."""
        value = figure(self.mean)
        ordered = sorted(figure(row) for row in self.drawn)
        low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.05, 0.95))
        return Range(
            value=value,
            low=value - self.widen * max(0.0, value - low),
            high=value + self.widen * max(0.0, high - value),
        )

    def changed(self, change: Callable[[Row], Row]) -> Draws:
        """The draws as they would be had every day been otherwise."""
        return Draws(
            mean=change(self.mean), drawn=[change(row) for row in self.drawn], widen=self.widen
        )


def draw(days: Sequence[Row], chance: Chance, *, block: int = BLOCK_DAYS) -> Draws:
    """Draw blocks of days again and again. There must be two blocks at least."""
    count = len(days)
    size = min(block, count // 2)
    sums = _sums(days, count + size)
    whole, rest = divmod(count, size)
    drawn: list[Row] = []
    for _ in range(DRAWS):
        totals = [0.0] * len(days[0])
        for length in (*[size] * whole, *([rest] if rest else [])):
            begins = chance.below(count)
            before, after = sums[begins], sums[begins + length]
            totals = [t + a - b for t, a, b in zip(totals, after, before, strict=True)]
        drawn.append([total / count for total in totals])
    mean = [total / count for total in sums[count]]
    return Draws(mean=mean, drawn=drawn, widen=_widening(count / size))


def _sums(days: Sequence[Row], until: int) -> list[list[float]]:
    """Sums of the first n days, running round the end."""
    found = [[0.0] * len(days[0])]
    for index in range(until):
        day = days[index % len(days)]
        found.append([total + value for total, value in zip(found[-1], day, strict=True)])
    return found


def _widening(blocks: float) -> float:
    freedom = max(1, int(blocks) - 1)
    student = STUDENT_95[min(freedom, len(STUDENT_95)) - 1]
    return sqrt(blocks / (blocks - 1)) * student / NORMAL_95
