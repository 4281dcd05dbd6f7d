"""Findings about one part, and how several of them become one result: the order of belief.

Decides which signal is believed first (health notes, 2.4): the driver's own recovery action, a GPU that is gone, the
flag of a failed row remap, a decoded Xid, counters, throttling. The verdict is the worst of all; what is to be done
is what the most believed of the worst asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from ouvrage.base.grades import Grade, weakest
from ouvrage.health.tables import Action
from ouvrage.model.health import BY_WEIGHT, FENCES, OK, RUNGS, UNKNOWN, CheckResult
from ouvrage.model.work import Named


class Belief(IntEnum):
    """How much a signal is believed, the most first."""

    RECOVERY = 0
    LOST = 1
    REMAP = 2
    XID = 3
    COUNTER = 4
    THROTTLE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one signal says of one part. ``fence`` is none, drain or now; ``shadow``: its rule is on trial."""

    belief: Belief
    verdict: str
    rule: str
    reason: str
    device: str | None = None
    fence: str = "none"
    action: str = "none"
    at_drain: str = "none"
    evidence: tuple[Named, ...] = ()
    shadow: bool = False


def asked(
    action: Action, belief: Belief, rule: str, reason: str, device: str | None,
    evidence: Sequence[Named] = (), *, shadow: bool = False,
) -> Finding:  # fmt: skip
    """A finding that asks for an action of the table."""
    return Finding(
        belief=belief,
        verdict=action.verdict,
        rule=rule,
        reason=reason,
        device=device,
        fence=action.fence,
        action=action.rung,
        at_drain=action.at_drain,
        evidence=tuple(evidence),
        shadow=shadow,
    )


def weight(verdict: str) -> int:
    """How bad a verdict is: OK, WARN, UNKNOWN, CRITICAL."""
    return BY_WEIGHT.index(verdict)


def worst(verdicts: Iterable[str]) -> str:
    """The worst of some verdicts; of none, UNKNOWN: nothing looked at is nothing known."""
    return max(verdicts, key=weight, default=UNKNOWN)


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that count, the deciding one first: worst, then most believed, then the heavier rung."""
    live = [each for each in findings if not each.shadow]
    return sorted(live, key=lambda f: (-weight(f.verdict), f.belief, -_height(f.action)))


def _height(action: str) -> int:
    return RUNGS.index(action) if action in RUNGS else -1


def result_of(
    check: str,
    device: str | None,
    findings: Sequence[Finding],
    *,
    good: str,
    evidence: tuple[Named, ...] = (),
    grade: Grade = Grade.MEASURED,
) -> CheckResult:
    """One part's result. ``good`` is the sentence for a part of which nothing was found."""
    counting = ordered(findings)
    shadows = [f"on trial, fences nothing: {f.reason}" for f in findings if f.shadow]
    if not counting:
        return CheckResult(
            check=check, verdict=OK, device=device, evidence=evidence, grade=grade,
            reasons=(good, *shadows),
        )  # fmt: skip
    first = counting[0]
    return CheckResult(
        check=check,
        verdict=first.verdict,
        device=device,
        evidence=(*(item for f in counting for item in f.evidence), *evidence),
        action=first.action,
        at_drain=max((f.at_drain for f in counting), key=_height),
        fence=max((f.fence for f in counting), key=FENCES.index),
        reasons=(*(f.reason for f in counting), *shadows),
        rule=first.rule,
        grade=grade,
    )


def unknown(check: str, reason: str, device: str | None = None, rule: str = "") -> CheckResult:
    """The result of a check that could not tell."""
    return CheckResult(
        check=check, verdict=UNKNOWN, device=device, reasons=(reason,), rule=rule, action="look"
    )


def together(check: str, results: Sequence[CheckResult]) -> CheckResult:
    """Several parts' results as one, the worst first; its words name the parts they are about."""
    if len(results) == 1:
        return replace(results[0], check=check)
    inorder = sorted(results, key=lambda r: -weight(r.verdict))
    if not inorder:
        return unknown(check, "nothing was looked at")
    first = inorder[0]
    telling = [r for r in inorder if r.verdict == first.verdict] if first.verdict == OK else [
        r for r in inorder if r.verdict != OK
    ]  # fmt: skip
    return CheckResult(
        check=check,
        verdict=first.verdict,
        device=first.device,
        evidence=tuple(item for r in telling for item in r.evidence),
        action=first.action,
        at_drain=first.at_drain,
        fence=max((r.fence for r in inorder), key=FENCES.index),
        reasons=tuple(_named(r, reason) for r in telling for reason in r.reasons),
        rule=first.rule,
        grade=weakest(r.grade for r in results),
    )


def _named(result: CheckResult, reason: str) -> str:
    return (
        reason if result.device is None or result.device in reason else f"{result.device}: {reason}"
    )
