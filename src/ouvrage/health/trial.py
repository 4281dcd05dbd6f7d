"""What rules on trial would have done, so that somebody can turn them on with open eyes.

Decides from the verdicts that were recorded as shadows: how often a rule would have fenced, on how many machines, and
how many of those had another rule's fault in the same days. A rule is not turned on here, nor by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ouvrage.health.tables import Thresholds
from ouvrage.model.health import CRITICAL, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One rule's trial. ``agreed`` are places that another rule, not on trial, found CRITICAL within a day.

    ``days`` is how long it has run since its first verdict; ``over``: long enough for somebody to decide.
    """

    rule: str
    would_have: int
    nodes: int
    agreed: int
    days: int
    over: bool


def trials(verdicts: Iterable[Verdict], now_us: int, bounds: Thresholds) -> list[Trial]:
    """Each rule that has a verdict in shadow, the busiest first."""
    day = 86_400_000_000
    shadows: dict[str, list[Verdict]] = {}
    live: list[Verdict] = []
    for each in verdicts:
        if each.shadow:
            shadows.setdefault(each.code, []).append(each)
        elif each.verdict == CRITICAL:
            live.append(each)
    made: list[Trial] = []
    for rule, found in shadows.items():
        agreed = {
            (v.node, v.device) for v in found for other in live
            if (v.node, v.device) == (other.node, other.device) and abs(v.since_us - other.since_us) <= day
        }  # fmt: skip
        ran_us = now_us - min(v.since_us for v in found)
        made.append(
            Trial(
                rule=rule, would_have=len(found), nodes=len({v.node for v in found}),
                agreed=len(agreed), days=ran_us // day, over=ran_us >= bounds.us("shadow.days"),
            )
        )  # fmt: skip
    return sorted(made, key=lambda t: (-t.would_have, t.rule))
