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


def trials(said: Iterable[tuple[int, Verdict]], now_us: int, bounds: Thresholds) -> list[Trial]:
    """Each rule that has a verdict in shadow, the busiest first. ``said`` are verdicts with the moment (UTC) of each."""
    day = 86_400_000_000
    shadows: dict[str, list[tuple[int, Verdict]]] = {}
    live: list[tuple[int, Verdict]] = []
    for at_us, each in said:
        if each.shadow:
            shadows.setdefault(each.code, []).append((at_us, each))
        elif each.verdict == CRITICAL:
            live.append((at_us, each))
    made: list[Trial] = []
    for rule, found in shadows.items():
        agreed = {
            (v.node, v.device) for at_us, v in found for other_us, other in live
            if (v.node, v.device) == (other.node, other.device) and abs(at_us - other_us) <= day
        }  # fmt: skip
        ran_us = now_us - min(at_us for at_us, _ in found)
        made.append(
            Trial(
                rule=rule, would_have=len(found), nodes=len({v.node for _, v in found}),
                agreed=len(agreed), days=ran_us // day, over=ran_us >= bounds.us("shadow.days"),
            )
        )  # fmt: skip
    return sorted(made, key=lambda t: (-t.would_have, t.rule))
