"""How a node stands, at a glance: its own state, that of each GPU, the worst of them and what is held against it.

Decides which state is the worst: the one farthest from taking work. A GPU of which nothing is said stands as its node does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ouvrage.health.record import HealthRecord

BY_WEIGHT = (
    "healthy", "suspect", "unknown", "verifying", "maintenance", "repairing", "draining", "fenced",
    "awaiting_hands", "rma", "retired",
)  # fmt: skip
"""States, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """``states`` by GPU. ``since_us`` is when the ``worst`` began, None where nothing ever looked."""

    own: str
    states: Mapping[str, str]
    worst: str
    why: str
    since_us: int | None


def standings_of(record: HealthRecord, node: str) -> Standings:
    """How a node stands."""
    places = [(node, None), *((node, device) for device in record.machine(node).devices)]
    found = [
        record.standing(place) for place in places if place[1] is None or place in record.standings
    ]
    worst = max(found, key=lambda each: (BY_WEIGHT.index(each.state), -each.since_us))
    against = [heard for place in places for heard in record.against(place)]
    return Standings(
        own=found[0].state,
        states={each.device: each.state for each in found if each.device is not None},
        worst=worst.state,
        why=f"{against[0].verdict.check} {against[0].verdict.code}".strip() if against else "",
        since_us=worst.since_us or None,
    )
