"""Ends of attempts that no supervisor recorded: never started, or lost with their supervisor.

Decides what is on record where nobody saw the end. Such an end is never the tenant's doing and claims
no figure that was not read: unknown is None, not zero.
"""

from __future__ import annotations

from typing import Any

from ouvrage.agent.outcome import CAUSE_OF
from ouvrage.wire.runner import Start

UNREAD: dict[str, int | None] = {
    "memory_bytes": None, "cpu_us": None, "processes": None, "disk_bytes": None,
    "sent_bytes": None, "received_bytes": None, "oom_kills": None,
}  # fmt: skip


def unbegun(start: Start, at: int, outcome: str, reason: str) -> dict[str, Any]:
    """It was never started: because of the node, or because it was asked to end before that."""
    cause = CAUSE_OF.get(outcome, "platform")
    return _end(start, at, None, outcome, cause, reason) | {"scrub": "clean"}


def lost(start: Start, began: int | None, last_seen: int, faults: list[str]) -> dict[str, Any]:
    """Its supervisor ended before it could say how the command did; ``faults`` of the scrubbing."""
    reason = "its supervisor ended before it: the machine stopped, or somebody killed it"
    ended = max(last_seen, began or 0)
    scrub = {"scrub": "failed" if faults else "clean", "scrub_detail": "; ".join(faults)}
    return _end(start, ended, began, "lost", "platform", reason) | scrub


def _end(
    start: Start, at: int, began: int | None, outcome: str, cause: str, reason: str
) -> dict[str, Any]:
    return {
        "attempt": start.attempt,
        "began": began,
        "ended": at,
        "wall_us": 0,
        "exit_code": None,
        "signal": None,
        "outcome": outcome,
        "cause": cause,
        "reason": reason,
        "isolation": start.isolation,
        "used": UNREAD,
        "scrub": "none",
        "scrub_detail": "",
    }
