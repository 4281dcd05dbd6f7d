"""What a machine's BMC, or the plug it hangs on, says: sensors, its event log, and what it does after a power cut.

Decides by the device's own word for each sensor, because it alone knows the bounds; one that is too hot or has lost a supply keeps
new work away, an entry of the log asks somebody to look. A machine that stays off when electricity returns earns nothing until
somebody comes: that is a warning before it happens. What a device does not tell is no fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ouvrage.health.findings import Belief, Finding, result_of
from ouvrage.health.tables import Thresholds
from ouvrage.model.health import CRITICAL, UNKNOWN, WARN, CheckResult
from ouvrage.model.power import STAYS_OFF, LogPage, Reading
from ouvrage.model.work import Named

_SHOWN = 12
_AFTER = {"on": "starts", "off": "stays off", "last": "is as it was before"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcLook:
    """What was read of a BMC. None is what it does not have or tell.

    ``restore`` and ``wanted`` are of ``model/power.RESTORES``: what it does after a power cut, and what its owner wants.
    """

    state: str
    sensors: Sequence[Reading]
    log: LogPage | None
    restore: str | None
    wanted: str | None
    draws: Reading | None


def check_bmc(look: BmcLook, now_us: int, bounds: Thresholds) -> CheckResult:
    """The result of one look."""
    findings = [*_sensors(look.sensors), *_log(look.log, now_us, bounds), *_restore(look)]
    return result_of("bmc", None, findings, good=_good(look), evidence=_evidence(look))


def _finding(
    verdict: str, rule: str, reason: str, *, action: str = "look", fence: str = "none"
) -> Finding:
    return Finding(
        belief=Belief.COUNTER, verdict=verdict, rule=rule, reason=reason, action=action, fence=fence
    )


def value_words(each: Reading) -> str:
    """A reading's value in words: ``42 degC``; a state where it has no number."""
    return f"{each.value} {each.unit}".strip() if each.value is not None else each.unit


def _sensors(sensors: Sequence[Reading]) -> Iterator[Finding]:
    for each in sensors:
        if each.verdict not in (WARN, CRITICAL):
            continue
        value = value_words(each)
        said = f"{each.name}: {value}, which" if value else f"{each.name}: which"
        reason = f"{said} its BMC calls {'critical' if each.verdict == CRITICAL else 'a warning'}"
        fence = "drain" if each.verdict == CRITICAL else "none"
        yield _finding(each.verdict, "bmc-sensor", reason, fence=fence)


def _log(log: LogPage | None, now_us: int, bounds: Thresholds) -> Iterator[Finding]:
    if log is None:
        return
    since = now_us - bounds.us("bmc.events_window")
    for each in log.entries:
        # One without a time was written before the BMC knew it: when, nobody can say.
        if each.verdict in (WARN, CRITICAL) and each.at_us is not None and each.at_us >= since:
            words = f"{each.sensor}: {each.words}" if each.sensor else each.words
            yield _finding(WARN, "bmc-event", f"event log, entry {each.id}: {words}")
    if log.used_percent is not None and log.used_percent >= bounds["bmc.log_warn"]:
        yield _finding(
            WARN,
            "bmc-log-full",
            f"its event log is {log.used_percent} % full and will take no more",
        )


def _restore(look: BmcLook) -> Iterator[Finding]:
    if look.restore is None:
        return
    if look.wanted is not None and look.restore != look.wanted:
        reason = f"after a power cut it {_AFTER[look.restore]}; its owner wants that it {_AFTER[look.wanted]}"
        yield _finding(WARN, "bmc-restore", reason)
    elif look.wanted is None and look.restore == STAYS_OFF:
        yield _finding(
            WARN, "bmc-restore", "after a power cut it stays off until somebody turns it on"
        )


def _good(look: BmcLook) -> str:
    parts = [f"it is {look.state}", f"{len(look.sensors)} sensors, none complains"]
    if look.log is not None:
        parts.append(f"{len(look.log.entries)} entries in its log, none grave and new")
    if look.restore is not None:
        parts.append(f"after a power cut it {_AFTER[look.restore]}")
    return "; ".join(parts)


def _evidence(look: BmcLook) -> tuple[Named, ...]:
    grave = sorted(look.sensors, key=lambda each: each.verdict not in (CRITICAL, WARN, UNKNOWN))
    return (
        Named(name="power_state", value=look.state),
        Named(name="restore_policy", value=look.restore or "not told"),
        Named(name="power_w", value="not told" if look.draws is None else str(look.draws.value)),
        Named(
            name="log_entries", value="not told" if look.log is None else str(len(look.log.entries))
        ),
        *(
            Named(name=each.name, value=value_words(each) or each.verdict)
            for each in grave[:_SHOWN]
        ),
    )
