"""How well a machine keeps time: what the kernel says, how far a time server is, and steps that were seen.

Decides that a step of more than a few seconds is a warning for some minutes, whoever made it, and that a clock far
from a named time server is one for as long as it is. Durations are never taken from this clock; evidence from other
machines is joined by it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.health.findings import Belief, Finding, result_of
from ouvrage.health.host import Clock, check_time
from ouvrage.health.tables import Thresholds
from ouvrage.model.health import OK, WARN, CheckResult
from ouvrage.model.work import Named

_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSeen:
    """The kernel's word, and by how much the clock is ahead of a named server (None: none was asked or answered)."""

    clock: Clock
    ahead_us: int | None
    server: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The clock jumped by ``by_us`` at ``at_us`` since boot."""

    at_us: int
    by_us: int


def step_between(before: tuple[int, int], now: tuple[int, int], bounds: Thresholds) -> Step | None:
    """The step between two pairs of (wall, monotonic) readings, None where they agree within ``time.skew_warn``."""
    by_us = (now[0] - before[0]) - (now[1] - before[1])
    if abs(by_us) <= bounds.us("time.skew_warn"):
        return None
    return Step(at_us=now[1], by_us=by_us)


def check_timekeeping(
    seen: TimeSeen, step: Step | None, now_us: int, bounds: Thresholds
) -> CheckResult:
    """One result; ``step`` is the last one that was seen, ``now_us`` is since boot."""
    kernel = check_time(seen.clock, bounds)
    findings: list[Finding] = []
    if step is not None and now_us - step.at_us <= bounds.us("time.step_shown"):
        reason = f"the clock was set {_by(step.by_us)}"
        findings.append(
            _finding("clock-stepped", reason, Named(name="by_us", value=str(step.by_us)))
        )
    if seen.ahead_us is not None and abs(seen.ahead_us) > bounds.us("time.skew_warn"):
        reason = f"the clock is {_by(seen.ahead_us)} of {seen.server}"
        findings.append(
            _finding("clock-skew", reason, Named(name="ahead_us", value=str(seen.ahead_us)))
        )
    if kernel.verdict != OK:
        findings.append(_finding(kernel.rule, kernel.reasons[0]))
    return result_of("time", None, findings, good=kernel.reasons[0], evidence=kernel.evidence)


def _finding(rule: str, reason: str, *evidence: Named) -> Finding:
    return Finding(
        belief=Belief.COUNTER, verdict=WARN, rule=rule, reason=reason, action="look",
        evidence=evidence,
    )  # fmt: skip


def _by(by_us: int) -> str:
    return f"{abs(by_us) / _US:.0f} s {'ahead' if by_us > 0 else 'behind'}"
