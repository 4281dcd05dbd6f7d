"""What became of an attempt, from what its supervisor saw: one outcome, one cause, plain words.

Decides in which order the evidence counts: a command that had ended before anybody asked it to is
judged by its own end; after that the request is the outcome, whatever the exit code, since a program
that saves its state when it is asked to end may well exit with 0. Pure: it reads nothing.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

CAUSE_OF = {
    "cancelled": "tenant",
    "preempted": "platform",
    "time limit": "program",
    "idle": "tenant",
    "unhealthy": "program",
    "budget": "tenant",
    "hardware": "hardware",
}
"""Why an attempt may be asked to end, and whose doing that is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """``began``: the command itself was started. ``stop`` and ``stop_reason``: it was asked to end
    before it had. ``fault``: what kept it from being started. ``xid``: the driver's error, if any.
    """

    began: bool
    exit_code: int | None
    signal: int | None
    oom_kills: int | None
    memory_mib: int
    stop: str | None
    stop_reason: str
    fault: str | None
    hardware: str | None


def outcome_of(seen: Seen) -> tuple[str, str, str]:
    """Outcome, cause, reason: words of ``model/work.OUTCOMES`` and ``CAUSES``, and a sentence."""
    if seen.stop is not None:
        return seen.stop, CAUSE_OF[seen.stop], seen.stop_reason
    if not seen.began:
        return "never started", "platform", seen.fault or "the sandbox could not be made"
    if seen.exit_code == 0:
        return "done", "program", "exit code 0"
    if seen.hardware:
        return "hardware", "hardware", f"{seen.hardware}; {_end(seen)}"
    if seen.oom_kills:
        words = f"killed for using more than its {seen.memory_mib} MiB of memory"
        return "out of memory", "program", words
    return "failed", "program", seen.fault or _end(seen)


def _end(seen: Seen) -> str:
    if seen.signal is None:
        return f"exit code {seen.exit_code}"
    try:
        return f"ended by {signal.Signals(seen.signal).name}"
    except ValueError:
        return f"ended by signal {seen.signal}"
