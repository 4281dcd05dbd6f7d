"""GPUs that are held and stand idle: when to warn, and when to stop what holds them.

Decides from how long an attempt's GPUs have been idle without a break. Work is stopped only where its tenant agreed to
that (``stop_idle`` in the job file), only after a warning, and never because nobody measured: what is unknown is not idle.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.base.time import MINUTE
from ouvrage.pricing.words import counted, duration


@dataclass(frozen=True, slots=True, kw_only=True)
class IdlePolicy:
    """``warn_after_us`` of idleness the tenant is told (None: never), and ``notice_us`` later at the soonest it may be stopped."""

    warn_after_us: int | None = 15 * MINUTE
    notice_us: int = 5 * MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An attempt and its GPUs: ``idle_us`` idle without a break up to now, None where it isn't known.

    ``stop_idle_us`` is what the tenant agreed to (None: to nothing); ``warned_us`` when it was warned of this
    idleness (None: not yet, or it has worked since).
    """

    attempt: str
    gpus: int
    idle_us: int | None
    stop_idle_us: int | None
    warned_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """What to do about an attempt: ``none``, ``warn`` or ``stop``; ``stop_at_us`` is when it will be if nothing changes."""

    attempt: str
    action: str
    stop_at_us: int | None
    words: str


def judge(held: Held, policy: IdlePolicy, now_us: int) -> Idle:
    """What to do about one attempt now; asked again at any time it says the same or more."""
    idle = held.idle_us
    if not held.gpus or idle is None or idle <= 0:
        return _told(held, "none", None, "its GPUs are at work, or nobody knows better")
    limit = held.stop_idle_us
    first = _warns_at(policy, limit)
    if first is None or idle < first:
        return _told(held, "none", None, f"idle for {duration(idle)}")
    idle_words = f"{counted(held.gpus, 'GPU')} held and idle for {duration(idle)}"
    if held.warned_us is None:
        stop_at = None if limit is None else now_us + max(policy.notice_us, limit - idle)
        end = "" if limit is None else ", and stopped as was agreed if that goes on"
        return _told(held, "warn", stop_at, f"{idle_words}: paid for{end}")
    if limit is None:
        return _told(held, "none", None, f"{idle_words}: the tenant was told")
    stop_at = max(held.warned_us + policy.notice_us, now_us + limit - idle)
    if now_us >= stop_at:
        return _told(held, "stop", now_us, f"{idle_words}: stopped, as was agreed")
    return _told(held, "none", stop_at, f"{idle_words}: the tenant was told")


def _warns_at(policy: IdlePolicy, limit_us: int | None) -> int | None:
    """After how much idleness the first warning is due: in time for a stop that was agreed to."""
    if limit_us is None:
        return policy.warn_after_us
    before = max(0, limit_us - policy.notice_us)
    return before if policy.warn_after_us is None else min(before, policy.warn_after_us)


def _told(held: Held, action: str, stop_at_us: int | None, words: str) -> Idle:
    return Idle(attempt=held.attempt, action=action, stop_at_us=stop_at_us, words=words)
