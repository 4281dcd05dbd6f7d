"""Links to other machines: network interfaces, InfiniBand ports, and peers that somebody named.

Decides when a link that was up counts as down, what a flap is, and which counters are judged as rates; a counter that
went back was reset and says nothing. A port that never was up is not provisioned and no fault (an alarm for it was one
of the false ones in the field). Counters of ports are on trial: makers count them differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ouvrage.health.findings import Belief, Finding, result_of, unknown
from ouvrage.health.tables import Thresholds
from ouvrage.model.health import CRITICAL, WARN, CheckResult
from ouvrage.model.work import Named

FATAL_COUNTERS = (
    "link_downed",
    "excessive_buffer_overrun_errors",
    "local_link_integrity_errors",
)
"""Any growth of one is a fault (health notes, 1.5: NVIDIA/NVSentinel)."""

_PER_SECOND = {
    "rx_errors": "net.errors_warn",
    "port_rcv_errors": "net.errors_warn",
    "symbol_error": "net.errors_warn",
    "port_xmit_discards": "net.discards_warn",
}
_PER_MINUTE = {"link_error_recovery": "net.recovery_warn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSeen:
    """One link now: ``kind`` is ``nic`` or ``ib``; ``up`` None where it does not say.

    ``changes`` counts how often its carrier came or went since boot; ``counters`` are totals since boot by the kernel's
    names.
    """

    name: str
    kind: str
    up: bool | None
    changes: int | None
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkJudged:
    """What two looks at a link say: whether it is there, and how its counters grew.

    ``events`` are the changes of its carrier between the looks.
    """

    state: CheckResult
    errors: CheckResult
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSeen:
    """A peer that was asked ``asked`` times; ``latency_us`` is the middle answer's, None where none came."""

    name: str
    asked: int
    answered: int
    latency_us: int | None


def check_link(
    now: LinkSeen, before: LinkSeen | None, seconds: float, was_up: bool, bounds: Thresholds
) -> LinkJudged:
    """One link's results. ``before`` is the look ``seconds`` earlier; ``was_up``: it was up in this boot."""
    changed = 0
    if before is not None and now.changes is not None and before.changes is not None:
        changed = max(0, now.changes - before.changes)
    findings: list[Finding] = []
    if now.up is False and was_up:
        verdict, fence = (CRITICAL, "drain") if now.kind == "ib" else (WARN, "none")
        reason = f"{now.name} is down and was up since this boot"
        findings.append(_finding(verdict, "link-down", reason, now.name, fence=fence))
    elif changed:
        reason = f"{now.name}: its carrier came or went {changed} times"
        findings.append(_finding(WARN, "link-flap", reason, now.name))
    evidence = (
        Named(name="up", value="not told" if now.up is None else "yes" if now.up else "no"),
        Named(name="carrier_changes", value=str(now.changes)),
    )
    good = f"{now.name} is up" if now.up else f"{now.name} is not in use"
    state = result_of("link", now.name, findings, good=good, evidence=evidence)
    errors = list(_grown(now, before, seconds, bounds))
    return LinkJudged(
        state=state,
        errors=result_of("link-errors", now.name, errors, good="its counters of errors stand"),
        events=max(1, changed),
    )


def _finding(
    verdict: str, rule: str, reason: str, device: str | None, *, fence: str = "none"
) -> Finding:
    return Finding(
        belief=Belief.COUNTER, verdict=verdict, rule=rule, reason=reason, device=device,
        action="look", fence=fence,
    )  # fmt: skip


def _grown(
    now: LinkSeen, before: LinkSeen | None, seconds: float, bounds: Thresholds
) -> Iterator[Finding]:
    if before is None or seconds <= 0:
        return
    for name, value in now.counters.items():
        grew = value - before.counters.get(name, value)
        if grew <= 0:
            continue
        words = f"{now.name}: {name} grew by {grew} in {seconds:.0f} s"
        if name in FATAL_COUNTERS:
            yield _finding(CRITICAL, "link-errors", words, now.name)
        elif (bound := _bound(name, bounds)) is not None and grew / seconds > bound:
            yield _finding(WARN, "link-errors", words, now.name)


def _bound(name: str, bounds: Thresholds) -> float | None:
    """How much a counter may grow in a second, None for one that nothing is known of."""
    if name in _PER_SECOND:
        return float(bounds[_PER_SECOND[name]])
    return float(bounds[_PER_MINUTE[name]]) / 60 if name in _PER_MINUTE else None


def check_peer(seen: PeerSeen, bounds: Thresholds) -> CheckResult:
    """How well a named peer is reached. That it is not is a warning: the fault may be the peer's."""
    if not seen.asked:
        return unknown("peers", f"{seen.name} could not be asked", seen.name, "peer-not-asked")
    lost = 100 * (seen.asked - seen.answered) / seen.asked
    findings: list[Finding] = []
    if lost >= bounds["peer.loss_warn"]:
        reason = f"{seen.name} left {lost:.0f} % of {seen.asked} questions without an answer"
        findings.append(_finding(WARN, "peer-lost", reason, seen.name))
    latency = seen.latency_us
    if latency is not None and latency / 1000 > bounds["peer.latency_warn"]:
        reason = f"{seen.name} answers after {latency / 1000:.0f} ms"
        findings.append(_finding(WARN, "peer-slow", reason, seen.name))
    evidence = (
        Named(name="loss_percent", value=f"{lost:.0f}"),
        Named(name="latency_us", value="none" if latency is None else str(latency)),
    )
    good = f"{seen.name} answers after {(latency or 0) / 1000:.1f} ms"
    return result_of("peers", seen.name, findings, good=good, evidence=evidence)


def by_name(seen: Sequence[LinkSeen]) -> dict[str, LinkSeen]:
    """Links under their names."""
    return {each.name: each for each in seen}
