"""From looks to verdicts that may fence: debounce, grace after boot, the latch, and UNKNOWN that lasts too long.

Decides when a result counts. A hard rule counts at once; a soft one when N of the last M looks agree; a rate when its
events within the window are too many. For some minutes after boot soft and rate rules warn at most. What was
CRITICAL stays so until it is verified; that its sign went away, or that the machine was booted, is not enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ouvrage.health.findings import weight
from ouvrage.health.tables import HARD, RATE, SHADOW, Debounce, Thresholds
from ouvrage.model.health import CRITICAL, OK, RUNGS, UNKNOWN, WARN, CheckResult, Verdict

_MOST_KEPT = 256
_SAME = 3
"""Looks in a row after which a verdict stands on another reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One result of a check: when (``at_us`` since boot), in which boot, and how many events since the last look."""

    at_us: int
    boot: str
    result: CheckResult
    events: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What is known of one check on one part: the last looks, and the verdict that counts.

    ``since_us`` is when (since ``boot``) the verdict began to count. ``shadow``: its rule only reports.
    """

    boot: str = ""
    looks: tuple[Look, ...] = ()
    verdict: str = UNKNOWN
    result: CheckResult | None = None
    since_us: int = 0
    latched: bool = False
    shadow: bool = False
    not_well_us: int | None = None
    unknown_us: int | None = None


def looked(watch: Watch, look: Look, bounds: Thresholds) -> Watch:
    """The watch after one more look; one that is older than the last changes nothing."""
    if look.boot == watch.boot and watch.looks and look.at_us <= watch.looks[-1].at_us:
        return watch
    if look.boot != watch.boot:
        watch = replace(watch, boot=look.boot, looks=(), not_well_us=None, unknown_us=None)
    seen = look.result.verdict
    watch = replace(
        watch,
        looks=_kept((*watch.looks, look), bounds),
        not_well_us=None if seen == OK else _began(watch.not_well_us, look),
        unknown_us=_began(watch.unknown_us, look) if seen == UNKNOWN else None,
    )
    rule = _rule_of(watch, bounds)
    verdict = _debounced(watch, rule, bounds)
    if rule.mode == SHADOW:
        return _counted(watch, OK, look, shadow=verdict != OK)
    return _latched(watch, verdict, look)


def _kept(looks: tuple[Look, ...], bounds: Thresholds) -> tuple[Look, ...]:
    """The looks that can still count: the last few, and bad ones within the window of a rate."""
    last, window_us = looks[-1].at_us, bounds.us("debounce.rate_window")
    few = len(looks) - int(bounds["debounce.soft_m"])
    kept = (
        look
        for at, look in enumerate(looks)
        if at >= few or (look.result.verdict != OK and last - look.at_us <= window_us)
    )
    return tuple(kept)[-_MOST_KEPT:]


def _began(since_us: int | None, look: Look) -> int:
    return look.at_us if since_us is None else since_us


def _rule_of(watch: Watch, bounds: Thresholds) -> Debounce:
    """The rule of the last look; a good one is judged by the rule of what it follows."""
    names = (look.result.rule for look in reversed(watch.looks) if look.result.rule)
    return bounds.debounce(next(names, ""))


def _debounced(watch: Watch, rule: Debounce, bounds: Thresholds) -> str:
    """What the looks amount to."""
    last = watch.looks[-1]
    if rule.sort == HARD:
        verdict = last.result.verdict
    elif rule.sort == RATE:
        verdict = _by_rate(watch, bounds)
    else:
        verdict = _by_count(watch, bounds)
    if rule.becomes and verdict == WARN and _lasted(watch.not_well_us, last, rule.after_us):
        verdict = rule.becomes
    if _lasted(watch.unknown_us, last, bounds.us("debounce.unknown_critical")):
        verdict = CRITICAL
    if (
        rule.sort != HARD
        and last.at_us < bounds.us("debounce.grace")
        and weight(verdict) > weight(WARN)
    ):
        return WARN
    return verdict


def _lasted(since_us: int | None, last: Look, long_us: int) -> bool:
    return since_us is not None and last.at_us - since_us >= long_us


def _by_count(watch: Watch, bounds: Thresholds) -> str:
    """The worst verdict that N of the last M looks reach."""
    recent = watch.looks[-int(bounds["debounce.soft_m"]) :]
    weights = sorted((look.result.verdict for look in recent), key=weight, reverse=True)
    place = int(bounds["debounce.soft_n"]) - 1
    return weights[place] if place < len(weights) else OK


def _by_rate(watch: Watch, bounds: Thresholds) -> str:
    """The last verdict that was not OK, where its events within the window are too many."""
    last, window_us = watch.looks[-1], bounds.us("debounce.rate_window")
    bad = [
        look
        for look in watch.looks
        if look.result.verdict != OK and last.at_us - look.at_us <= window_us
    ]
    events = sum(look.events for look in bad)
    most = bounds["debounce.rate_per_min"] * bounds["debounce.rate_window"] / 60
    return bad[-1].result.verdict if events > most else OK


def _latched(watch: Watch, verdict: str, look: Look) -> Watch:
    if not watch.latched:
        return _counted(watch, verdict, look, shadow=False)
    if verdict == CRITICAL and _graver(look.result, watch.result):
        return replace(watch, result=look.result)
    return watch


def _graver(result: CheckResult, held: CheckResult | None) -> bool:
    """Whether a CRITICAL result asks for a heavier rung than the one that is latched."""
    return result.verdict == CRITICAL and (held is None or _rung(result) > _rung(held))


def _rung(result: CheckResult) -> int:
    return RUNGS.index(result.action) if result.action in RUNGS else -1


def _counted(watch: Watch, verdict: str, look: Look, *, shadow: bool) -> Watch:
    if verdict == watch.verdict and shadow == watch.shadow and watch.result is not None:
        return replace(watch, result=look.result) if _another(watch, look) else watch
    telling = next((e.result for e in reversed(watch.looks) if e.result.verdict != OK), look.result)
    return replace(
        watch,
        verdict=verdict,
        result=look.result if verdict == OK and not shadow else telling,
        since_us=look.at_us,
        latched=verdict == CRITICAL,
        shadow=shadow,
    )


def _another(watch: Watch, look: Look) -> bool:
    """Whether the last looks all say what the verdict says, and each of them for the same reason that is not its own."""
    said = {(each.result.verdict, *wants(each.result)) for each in watch.looks[-_SAME:]}
    now = wants(look.result)
    full = len(watch.looks) >= _SAME and watch.verdict != OK
    return full and said == {(watch.verdict, *now)} and now != wants(watch.result)


def wants(result: CheckResult | None) -> tuple[str, str, str]:
    """What a verdict stands on and asks for beside its word: its rule, its fence, what is due when idle."""
    return ("", "none", "none") if result is None else (result.rule, result.fence, result.at_drain)


def verified(watch: Watch, look: Look) -> Watch:
    """The watch after a check made to verify a repair: only one that is OK opens the latch."""
    if look.result.verdict != OK:
        return watch
    if look.boot == watch.boot and watch.looks and look.at_us < watch.looks[-1].at_us:
        return watch
    return Watch(boot=look.boot, looks=(look,), verdict=OK, result=look.result, since_us=look.at_us)


def stated(watch: Watch, node: str, epoch: int) -> Verdict:
    """The fact that states what counts now; a rule on trial is stated as what it would have said."""
    result = watch.result
    if result is None:
        raise ValueError("nothing was looked at")
    well = watch.verdict == OK and not watch.shadow
    return Verdict(
        node=node,
        device=result.device,
        check=result.check,
        verdict=result.verdict if watch.shadow else watch.verdict,
        code=result.rule,
        evidence=result.evidence,
        action=result.action,
        since_us=watch.since_us,
        boot=watch.boot,
        epoch=epoch,
        shadow=watch.shadow,
        at_drain="none" if well else result.at_drain,
        fence="none" if well else result.fence,
    )
