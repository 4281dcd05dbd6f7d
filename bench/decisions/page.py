"""The page of scored decisions: how often an interval holds the truth, and what was decided when.

Decides words and digits of ``docs/reference/decisions-scored.md``; everything in it is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.decisions.scoring import FIGURES, Outcome, confusion, coverage
from bench.verdicts.scoring import wilson
from ouvrage.planning.decide import ACTIONS

WORDS = {
    "margin_per_day": "margin a day, after tax",
    "utilisation": "share sold",
    "rate": "effective rate",
    "keep_per_day": "what running it leaves a day against stopping",
}
LEAST, MOST = 0.85, 0.95
HEAD = """# Decisions, scored

Written by `python -m bench.decisions --write`. Each seed is another owner's world: prices, demand,
tenants, power and faults are drawn from it, then a year is simulated, and `ouvrage plan decide` looks at its
last days as it would at anybody's. The truth is what the world's parameters make one expect of the same
days, computed without drawing anything ({source}). Nothing of it reaches the decision.

What this shows, and what it does not: the intervals and the answers are right about as often as said *for
owners like these*. Where a tenant leaves or a price changes within the window the intervals are wider than
they need be, since a change that was certain counts as chance. Real demand may hang together over longer
than two weeks, or change for good within the window; an interval from the past does not hold what has not happened yet.
"""
SOURCE = "`src/ouvrage/planning/simulated_world.py`"


def page(by_window: Mapping[int, Sequence[Outcome]]) -> str:
    """The whole page, for the outcomes by length of the window in days."""
    parts = [HEAD.format(source=SOURCE)]
    parts.append(_coverage(by_window))
    for window, scored in by_window.items():
        parts.append(_decisions(window, scored))
    return "\n".join(parts)


def _coverage(by_window: Mapping[int, Sequence[Outcome]]) -> str:
    lines = [
        "## How often a 90 % interval holds the truth\n",
        f"It should be 90 %, and must be {LEAST:.0%} to {MOST:.0%}. In brackets the 95 % interval of each share (Wilson).\n",
        "| figure | " + " | ".join(f"{window} days" for window in by_window) + " |",
        "| --- |" + " --- |" * len(by_window),
    ]
    for figure in FIGURES:
        cells = [_share(*coverage(scored, figure)) for scored in by_window.values()]
        lines.append(f"| {WORDS[figure]} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _share(held: int, total: int) -> str:
    low, high = wilson(held, total)
    return f"{held} of {total}: **{held / total:.1%}** ({low:.0%}–{high:.0%})"


def _decisions(window: int, scored: Sequence[Outcome]) -> str:
    counts = confusion(scored)
    right = sum(count for (best, decided), count in counts.items() if best == decided)
    lost = sum(each.lost for each in scored) / len(scored)
    revenue = sum(each.revenue for each in scored) / len(scored)
    idle = sum(each.lost_by_holding for each in scored) / len(scored)
    lines = [
        f"## What was decided on {window} days, and what was best\n",
        "*Best* is the course worth the most a day by the truth of these days, if it is worth 5 % of revenue",
        "more than holding and the owner's limits hold in truth; the world's demand stands in place of what",
        "the rules assume of it.\n",
        f"- right: {_share(right, len(scored))}",
        f"- lost against the best course: {lost:.2f} EUR a day on average, {lost / revenue:.1%} of revenue;"
        f" always to hold would lose {idle:.2f}\n",
        "| best ↓ decided → | " + " | ".join(ACTIONS) + " |",
        "| --- |" + " --- |" * len(ACTIONS),
    ]
    for best in ACTIONS:
        cells = [str(counts[best, decided] or "·") for decided in ACTIONS]
        lines.append(f"| {best} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
