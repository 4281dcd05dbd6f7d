"""Faults in the kernel's log as findings: what each code asks for, alone and when it comes again.

Decides by the table: a code's own action, the driver's word on NVLink 5 and in Xid 154, whose program met it, and
which repeats make a GPU suspect. Never restarts a machine for a fault of a job, and never fences by counting
the lines of 45. What a program's fault on several GPUs at once says is said first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ouvrage.health.driver_lines import LOST, Merged, driver_lines, merged
from ouvrage.health.findings import Belief, Finding, asked, result_of, unknown, weight
from ouvrage.health.kernel_log import BOOT, KernelLine, kernel_lines
from ouvrage.health.tables import SHADOW, Action, Repeat, Thresholds, XidTable
from ouvrage.model.health import CheckResult
from ouvrage.model.work import Named

NVLINK5 = range(144, 151)
_LINE_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The tables that a log is judged by."""

    xids: XidTable
    bounds: Thresholds


def check_log(
    lines: Sequence[str], rules: Rules, since_us: int | None = None, now_us: int | None = None
) -> list[CheckResult]:
    """What a kernel's log says of each GPU it names, or of the machine; UNKNOWN where it is no such log.

    ``since_us`` leaves out what is older than that before ``now_us`` (since boot), or before the last line that has a time.
    Lines without a time always count.
    """
    messages = list(kernel_lines(lines))
    if not messages:
        return [unknown("xid", "no line of a kernel's log was found", rule="xid/no-log")]
    if since_us is not None:
        messages = _lately(messages, since_us, now_us)
    faults = merged(driver_lines(messages), rules.bounds.us("event.merge"))
    seen = (Named(name="kernel_lines", value=str(len(messages))),)
    if not faults:
        good = f"no fault of a GPU in {len(messages)} lines of the kernel's log"
        return [result_of("xid", None, (), good=good, evidence=seen)]
    findings = log_findings(faults, rules)
    devices = sorted({fault.device for fault in faults}, key=lambda d: d or "")
    return [
        result_of(
            "xid", device, [f for f in findings if f.device == device], good="", evidence=seen
        )
        for device in devices
    ]


def _lately(messages: list[KernelLine], since_us: int, now_us: int | None) -> list[KernelLine]:
    ends = {m.clock: m.at_us for m in messages if m.at_us is not None}
    if now_us is not None:
        ends[BOOT] = now_us
    return [
        m
        for m in messages
        if m.at_us is None or m.at_us >= (ends.get(m.clock) or m.at_us) - since_us
    ]


def log_findings(faults: Sequence[Merged], rules: Rules) -> list[Finding]:
    """Every fault's own finding, like ones of a GPU together, and those of faults that came again."""
    like: dict[tuple[Any, ...], list[Merged]] = {}
    for fault in faults:
        like.setdefault((fault.device, *_sort(fault)), []).append(fault)
    met = _Met(faults)
    return [
        *(finding for same in like.values() for finding in _alone(same, met, rules)),
        *_heaviest(faults, rules),
        *(f for rule in rules.xids.repeats for f in _again(rule, faults, rules.xids)),
        *_often(faults, rules),
    ]


def _sort(fault: Merged) -> tuple[Any, ...]:
    first = fault.first
    return fault.kind, fault.code, first.nvlink, first.recovery, first.fatal


def action_for(fault: Merged, table: XidTable) -> Action:
    """What one fault asks for by itself."""
    if fault.kind == "sxid":
        return table.actions["drain_reset" if fault.first.fatal else "record"]
    if fault.code == 154 and fault.first.recovery is not None:
        found = table.recoveries.get(fault.first.recovery)
        return table.actions["ask" if found is None else found.action]
    if fault.code in NVLINK5:
        return table.actions[_by_nvlink(fault, table)]
    return table.action_of(fault.code)


def _by_nvlink(fault: Merged, table: XidTable) -> str:
    """The line's own word; without one, what the worse word would ask for."""
    rule, word = table.nvlink, fault.first.nvlink
    if word is None:
        return rule.fatal
    if fault.code == rule.inspect_code and word.subcode in rule.inspect_subcodes:
        return "inspect"
    if word.fatal:
        return rule.fatal
    watched = fault.code == rule.watched_code and word.unit == rule.watched_unit
    return "watch" if watched else rule.nonfatal


def _alone(same: Sequence[Merged], met: _Met, rules: Rules) -> Iterator[Finding]:
    fault, table = same[-1], rules.xids
    if fault.code == 154 and fault.first.recovery is not None:
        return  # the heaviest of them speaks for all
    spread = _spread(same, met, table)
    action = table.actions["app"] if spread else action_for(fault, table)
    belief = Belief.LOST if fault.code == LOST else Belief.XID
    reason = _words(same, action, table, spread)
    yield asked(action, belief, _rule(fault), reason, fault.device, _evidence(same))


def _rule(fault: Merged) -> str:
    return f"{fault.kind}-{fault.code}" if fault.kind != "lost" else "gpu-lost"


def _evidence(same: Sequence[Merged]) -> list[Named]:
    first = same[0]
    programs = sorted({program for fault in same for program in fault.programs})
    told = [
        Named(name="gpu" if first.kind == "lost" else first.kind, value=_what(first)),
        Named(name="device", value=first.device or "not named"),
        Named(name="faults", value=str(len(same))),
        Named(name="lines", value=str(sum(fault.count for fault in same))),
        Named(name="line", value=first.first.line.text[:_LINE_SHOWN]),
    ]
    if programs:
        told.insert(4, Named(name="programs", value=", ".join(programs[:4])))
    return told


def _what(fault: Merged) -> str:
    return "lost" if fault.kind == "lost" else str(fault.code)


def _words(same: Sequence[Merged], action: Action, table: XidTable, spread: int) -> str:
    fault = same[0]
    lines = sum(each.count for each in same)
    times = "" if lines == 1 else f" ({lines} lines)"
    known = table.codes.get(fault.code)
    if fault.kind == "lost":
        what = f"the GPU fell off the bus{times}"
    elif fault.kind == "sxid":
        what = f"SXid {fault.code} of an NVSwitch, {'fatal' if fault.first.fatal else 'not fatal'}{times}"
    else:
        what = f"Xid {fault.code}{times}"
        what = what if known is None else f"{what}, {known.meaning}"
    if spread:
        return f"{what}: one program met it on {spread} GPUs, so it is the program's fault first"
    return f"{what}: {action.words}"


class _Met:
    """Faults with a code by the moment of their first lines: a day may hold thousands, and each look asks of each of them."""

    def __init__(self, faults: Sequence[Merged]) -> None:
        self._timed: dict[int, list[tuple[int, int]]] = {}
        self._timeless: dict[int, list[Merged]] = {}
        self._faults = faults
        for at, fault in enumerate(faults):
            if fault.kind == "xid" and fault.first_us is not None:
                self._timed.setdefault(fault.code, []).append((fault.first_us, at))
            elif fault.kind == "xid":
                self._timeless.setdefault(fault.code, []).append(fault)
        for times in self._timed.values():
            times.sort()

    def near(self, fault: Merged, within_us: int) -> Iterator[Merged]:
        """The faults of the same code that came at the same moment as this one, itself among them."""
        times, moment = self._timed.get(fault.code, []), fault.first_us
        begin = 0 if moment is None else bisect_left(times, (moment - within_us, 0))
        end = len(times) if moment is None else bisect_left(times, (moment + within_us + 1, 0))
        yield from (self._faults[at] for _, at in times[begin:end])
        yield from self._timeless.get(fault.code, ())


def _spread(same: Sequence[Merged], met: _Met, table: XidTable) -> int:
    """On how many GPUs at most one program met these at once; 0 where one of them was met on too few."""
    most = 0
    for each in same:
        found = _one_program(each, met, table)
        if not found:
            return 0
        most = max(most, found)
    return most


def _one_program(fault: Merged, met: _Met, table: XidTable) -> int:
    """On how many GPUs one program met this code at the same moment; 0 where on too few."""
    rule = table.one_program
    if fault.kind != "xid" or fault.code not in rule.codes or not fault.programs:
        return 0
    names = {_name(program) for program in fault.programs} - {""}
    where = {
        other.device
        for other in met.near(fault, rule.within_us)
        if names & {_name(program) for program in other.programs}
    }
    return len(where) if len(where) >= rule.gpus else 0


def _name(program: str) -> str:
    return program.partition("[")[0]


def _close(fault: Merged, other: Merged, within_us: int) -> bool:
    if fault.first_us is None or other.first_us is None:
        return True
    return abs(fault.first_us - other.first_us) <= within_us


def _heaviest(faults: Sequence[Merged], rules: Rules) -> Iterator[Finding]:
    """Of all that a GPU's driver asked for, the heaviest: its wish can step down while the fault is there."""
    table = rules.xids
    asking: dict[str | None, Merged] = {}
    for fault in faults:
        if fault.code != 154 or fault.first.recovery is None:
            continue
        held = asking.get(fault.device)
        if held is None or _heavy(fault, table) >= _heavy(held, table):
            asking[fault.device] = fault
    for device, fault in asking.items():
        action = action_for(fault, table)
        value = fault.first.recovery
        known = table.recoveries.get(value) if value is not None else None
        name = f"{value}, {known.name}" if known else f"{value}, not known here"
        reason = f"the driver's own recovery action was {name}: {action.words}"
        yield asked(action, Belief.RECOVERY, "xid-154", reason, device, _evidence([fault]))


def _heavy(fault: Merged, table: XidTable) -> int:
    known = table.recoveries.get(fault.first.recovery or 0)
    return 1 << 10 if known is None else known.weight


def _again(rule: Repeat, faults: Sequence[Merged], table: XidTable) -> Iterator[Finding]:
    """Groups of faults that a rule of repeats holds against a GPU; at most one a GPU."""
    ours = [f for f in faults if f.kind == "xid" and f.code in rule.codes and f.device]
    where: dict[tuple[int, str, str], set[str | None]] = {}
    for fault in ours:
        for whose in _whose(fault):
            where.setdefault(whose, set()).add(fault.device)
    for device in sorted({f.device for f in ours if f.device}):
        met = [
            f for f in ours if f.device == device and not any(len(where[w]) > 1 for w in _whose(f))
        ]
        group = _group(rule, met)
        if group:
            reason = (
                f"Xid {', '.join(str(c) for c in sorted({f.code for f in group}))} came {len(group)} times"
                f" within {rule.window_us // 3_600_000_000} h on one GPU: {table.actions[rule.action].words}"
            )
            yield asked(
                table.actions[rule.action], Belief.XID, rule.name, reason, device,
                shadow=rule.mode == SHADOW,
            )  # fmt: skip


def _whose(fault: Merged) -> Iterator[tuple[int, str, str]]:
    """The programs and owners that met a fault's code: where one of them met it on another GPU as well, it is theirs."""
    yield from ((fault.code, "program", _name(program)) for program in fault.programs)
    yield from ((fault.code, "owner", tenant) for tenant in fault.tenants)


def _group(rule: Repeat, faults: Sequence[Merged]) -> list[Merged]:
    """The last faults within the window that fulfil the rule, or none."""
    if len({tenant for f in faults for tenant in f.tenants}) < rule.tenants:
        return []
    for at in range(len(faults), 0, -1):
        last = faults[at - 1]
        window = [f for f in faults[:at] if _close(f, last, rule.window_us)]
        if rule.same == "place":
            window = [f for f in window if len(f.places) == 1 and f.places == last.places]
        jobs = {job for f in window for job in f.jobs or f.programs}
        tenants = {tenant for f in window for tenant in f.tenants}
        if len(window) >= rule.count and len(jobs) >= rule.jobs and len(tenants) >= rule.tenants:
            return window
    return []


def _often(faults: Sequence[Merged], rules: Rules) -> Iterator[Finding]:
    """GPUs with many faults that each need a reset or more: a person looks."""
    count, window = int(rules.bounds["fatal.count"]), rules.bounds.us("fatal.window")
    heavy = [f for f in faults if f.device and _is_heavy(action_for(f, rules.xids))]
    for device in sorted({f.device for f in heavy if f.device}):
        met = [f for f in heavy if f.device == device]
        if any(sum(_close(f, last, window) for f in met) >= count for last in met):
            yield Finding(
                belief=Belief.RECOVERY, verdict="CRITICAL", rule="fatal-often", device=device,
                reason=f"{len(met)} faults in a day that each need a reset or more: a person looks",
                fence="now", action="person",
            )  # fmt: skip


def _is_heavy(action: Action) -> bool:
    return weight(action.verdict) == weight("CRITICAL") and action.fence == "now"
