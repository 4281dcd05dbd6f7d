"""From a probe's answer to results of checks: which rule judges which values, and what is remembered on the way.

Decides for each probe how its JSON becomes the values of ``health/``, what an earlier look is held against, and what it
means that a part which was there is told of no more. No clock is read and nothing is asked: the answer, the memory and
the rules are all there is, so that a test with a stopped clock judges as the agent does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from ouvrage.agent.probing.asking import STUCK, Answer
from ouvrage.agent.probing.memory import Memory
from ouvrage.agent.probing.probes import BY_NAME
from ouvrage.agent.probing.settings import Settings
from ouvrage.base.numbers import decimal_in
from ouvrage.health.bmc import BmcLook, check_bmc
from ouvrage.health.disks import check_disk
from ouvrage.health.driver_lines import Merged, driver_lines, merged, pci_name
from ouvrage.health.findings import result_of, unknown
from ouvrage.health.gpus import check_gpus, gpu_seen
from ouvrage.health.host import (
    Clock,
    MemoryController,
    Mount,
    Room,
    check_edac,
    check_memory,
    check_mounts,
    check_space,
)
from ouvrage.health.host_lines import check_host_lines, host_faults, with_lost_lines
from ouvrage.health.kernel_log import BOOT, kernel_lines
from ouvrage.health.links import LinkSeen, PeerSeen, by_name, check_link, check_peer
from ouvrage.health.parts import check_inventory
from ouvrage.health.timekeeping import TimeSeen, check_timekeeping
from ouvrage.health.xid import Rules, log_findings
from ouvrage.ledger.kinds import from_plain
from ouvrage.model.health import CRITICAL, WARN, CheckResult, NodeInventory, Seen
from ouvrage.model.power import LogEntry, LogPage, Reading
from ouvrage.model.work import Named

_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One result; ``events`` is how many happened since the last look, for rules of a rate."""

    result: CheckResult
    events: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one answer is judged by. ``before`` is the last answer with values of the same probe in this boot."""

    values: Mapping[str, Any]
    now_us: int
    at_us: int
    before: Answer | None
    memory: Memory
    rules: Rules
    settings: Settings
    last: Mapping[str, Answer]


def faulty(answer: Answer) -> CheckResult:
    """The result of a look that brought nothing: UNKNOWN, or what it is that a process hangs in the kernel."""
    check = BY_NAME[answer.probe].checks[0]
    words = answer.fault or ""
    if answer.sort == STUCK:
        return CheckResult(
            check=check, verdict=CRITICAL, action="reboot", rule="probe-stuck", reasons=(words,)
        )
    return unknown(check, words, rule=f"{check}-{answer.sort}")


def judged(probe: str, case: Case) -> list[Judged]:
    """Every result of an answer with values. Raises ``KeyError``, ``TypeError`` or ``ValueError`` for nonsense."""
    results = _JUDGES[probe](case)
    if not all(isinstance(each.result.device, str | None) for each in results):
        raise TypeError("a part has no name")
    return results


def _plain(results: Sequence[CheckResult]) -> list[Judged]:
    return [Judged(result=each) for each in results]


def _kernel_log(case: Case) -> list[Judged]:
    memory, bounds = case.memory, case.rules.bounds
    if not all(isinstance(case.values[name], int) for name in ("place", "lost", "read")):
        raise TypeError("its place or a count is no number")
    lines = list(kernel_lines(case.values["lines"]))
    within = bounds.us("event.merge")
    memory.faults = merged(driver_lines(lines), within, memory.faults)
    memory.host_faults = host_faults(memory.host_faults, lines, within)
    if case.values["lost"]:
        memory.host_faults = with_lost_lines(
            memory.host_faults, case.values["lost"], case.now_us, within
        )
    memory.place = case.values["place"]
    since = case.now_us - bounds.us("log.window")
    faults = [each for each in memory.faults if _counts(each, memory, since)]
    host = [
        each for each in memory.host_faults
        if each.last_us > max(since, memory.verified.get(each.device or "", 0), memory.verified.get("", 0))
    ]  # fmt: skip
    evidence = (Named(name="kernel_lines", value=str(case.values["read"])),)
    return _plain([*_by_device(faults, case, evidence), *check_host_lines(host)])


def _counts(fault: Merged, memory: Memory, since_us: int) -> bool:
    """Whether a fault is recent, and younger than the last time its part was verified."""
    if fault.last_us is None or fault.first.line.clock != BOOT:
        return True
    held = (fault.device or "", memory.uuids.get(fault.device or "", ""), "")
    return fault.last_us > max(since_us, *(memory.verified.get(name, 0) for name in held))


def _by_device(
    faults: Sequence[Merged], case: Case, evidence: tuple[Named, ...]
) -> list[CheckResult]:
    """The node's own result, and one for each GPU that the log names by its place; it is called as the driver calls it."""
    findings = log_findings(faults, case.rules)
    devices = sorted({each.device for each in faults if each.device is not None})
    results: list[CheckResult] = []
    for device in (None, *devices):
        uuid = case.memory.uuids.get(device or "")
        told = (*evidence, Named(name="pci", value=device)) if device else evidence
        own = [each for each in findings if each.device == device]
        good = "no fault of a GPU in the kernel's log"
        results.append(result_of("xid", uuid or device, own, good=good, evidence=told))
    return results


def _gpu(case: Case) -> list[Judged]:
    if not all(isinstance(values, dict) for values in case.values["gpus"]):
        raise TypeError("a GPU tells no values")
    seen = [_gpu_seen(dict(values), case) for values in case.values["gpus"]]
    expected = case.settings.expect_gpus or case.values["listed"] or None
    earlier: list[Seen] = []
    if case.before is not None and case.before.values is not None:
        then, told = case.before.monotonic_us, case.before.values["gpus"]
        earlier = [gpu_seen({**values, "monotonic_us": then}, 0) for values in told]
    results = check_gpus(seen, case.rules, expected, earlier)
    if not any(each.device is None for each in results):
        good = f"{len(seen)} GPUs answered"
        results.append(result_of("gpu", None, (), good=good))
    return _plain(results)


def _gpu_seen(values: dict[str, Any], case: Case) -> Seen:
    """One GPU's values with the time, and the most NVLinks that were up; its address is kept beside its name."""
    place = f"index {values.get('index')}"
    if not values.get("uuid") and place in case.memory.uuids:
        values["uuid"] = case.memory.uuids[place]  # a GPU that is lost tells its place alone
    seen = gpu_seen({**values, "monotonic_us": case.now_us}, 0)
    device, up = seen.device or "", values.get("nvlinks_up")
    address = pci_name(str(values.get("pci") or ""))
    if address is not None and values.get("uuid"):
        case.memory.uuids[address] = case.memory.uuids[place] = str(values["uuid"])
    if not isinstance(up, int):
        return seen
    most = case.memory.nvlinks[device] = max(up, case.memory.nvlinks.get(device, 0))
    return replace(seen, values={**seen.values, "nvlinks_most": most})


def _links(case: Case) -> list[Judged]:
    now = [_link(each) for each in case.values["links"]]
    before, seconds = {}, 0.0
    if case.before is not None and case.before.values is not None:
        before = by_name([_link(each) for each in case.before.values["links"]])
        seconds = (case.now_us - case.before.monotonic_us) / _US
    made: list[Judged] = []
    for each in now:
        was_up = each.name in case.memory.were_up
        told = check_link(each, before.get(each.name), seconds, was_up, case.rules.bounds)
        made += [Judged(result=told.state, events=told.events), Judged(result=told.errors)]
        if each.up:
            case.memory.were_up.add(each.name)
    return made


def _link(told: Mapping[str, Any]) -> LinkSeen:
    seen = LinkSeen(**told)
    if not isinstance(seen.name, str) or not isinstance(seen.up, bool | None):
        raise TypeError("a link has no name or no state")
    return seen


def _edac(case: Case) -> list[Judged]:
    seen = [MemoryController(**each) for each in case.values["controllers"]]
    return _plain([check_edac(seen, case.rules.bounds)])


def _memory(case: Case) -> list[Judged]:
    expected = case.settings.expect_memory_gib
    return _plain([check_memory(dict(case.values), expected, case.rules.bounds)])


def _time(case: Case) -> list[Judged]:
    """The kernel's word and a time server's, whichever of the two probes looked now."""
    clock, server = case.last.get("time"), case.last.get("time_server")
    if clock is None or clock.values is None:
        return []
    ahead = None if server is None or server.values is None else server.values["ahead_us"]
    seen = TimeSeen(clock=Clock(**clock.values), ahead_us=ahead, server=case.settings.time_server)
    return _plain([check_timekeeping(seen, case.memory.step, case.now_us, case.rules.bounds)])


def _files(case: Case) -> list[Judged]:
    values, paths = case.values, case.settings.paths
    found = [_mount(each) for each in values["mounts"]]
    table = [_mount(each) for each in values["fstab"]]
    rooms = [Room(**each) for each in values["rooms"]]
    space = check_space(rooms, case.rules.bounds) if rooms else []
    return _plain([*check_mounts(found, table, paths), *space])


def _mount(told: Mapping[str, Any]) -> Mount:
    named: dict[str, Any] = {**told, "options": tuple(told["options"])}
    return Mount(**named)


def _smart(case: Case) -> list[Judged]:
    earlier = {} if case.before is None or case.before.values is None else case.before.values
    return _plain(
        [
            unknown("smart", told["fault"], name, "disk-silent")
            if "fault" in told
            else check_disk(
                told["report"], case.rules.bounds, earlier.get(name, {}).get("report"), name=name
            )
            for name, told in case.values.items()
        ]
    )


def _inventory(case: Case) -> list[Judged]:
    told = case.values["accepted"]
    if told is None:  # a file of ours that is spoilt is a nuisance, and no sick machine
        words = (str(case.values["why"]),)
        return _plain(
            [CheckResult(check="inventory", verdict=WARN, rule="inventory-kept", action="look", reasons=words)]
        )  # fmt: skip
    return _plain([check_inventory(from_plain(NodeInventory, told), inventory_of(case.values))])


def inventory_of(values: Mapping[str, Any]) -> NodeInventory:
    """What a machine is made of, from an answer's values."""
    return from_plain(NodeInventory, values["now"])


def _peers(case: Case) -> list[Judged]:
    return _plain(
        [check_peer(PeerSeen(**each), case.rules.bounds) for each in case.values["peers"]]
    )


def _wall(case: Case) -> list[Judged]:
    power, energy = case.values["power_mw"], case.values["energy_uj"]
    if not isinstance(power, int | None) or not isinstance(energy, int | None):
        raise TypeError("what the meter counted is no number")
    good = "the meter at the wall answers" if power is None else f"{power / 1000:.0f} W at the wall"
    evidence = (Named(name="power_mw", value=str(power)), Named(name="method", value="plug"))
    return _plain([result_of("wall", None, (), good=good, evidence=evidence)])


def _bmc(case: Case) -> list[Judged]:
    values = case.values
    log: dict[str, Any] | None = values["log"]
    page = None
    if log is not None:
        entries: dict[str, Any] = {"entries": tuple(LogEntry(**each) for each in log["entries"])}
        page = LogPage(**{**log, **entries})
    look = BmcLook(
        state=values["state"], sensors=[_reading(each) for each in values["sensors"]], log=page,
        restore=values["restore"], wanted=values["wanted"],
        draws=None if values["draws"] is None else _reading(values["draws"]),
    )  # fmt: skip
    return _plain([check_bmc(look, case.at_us, case.rules.bounds)])


def _reading(told: Mapping[str, Any]) -> Reading:
    """One sensor; a value that is no number counts as not told, and holds up no other sensor."""
    value: Decimal | None = None
    with suppress(ValueError):
        value = None if told["value"] is None else decimal_in(told["value"])
    named: dict[str, Any] = {**told, "value": value}
    return Reading(**named)


_JUDGES: dict[str, Callable[[Case], list[Judged]]] = {
    "kernel_log": _kernel_log,
    "gpu": _gpu,
    "links": _links,
    "edac": _edac,
    "memory": _memory,
    "time": _time,
    "time_server": _time,
    "files": _files,
    "smart": _smart,
    "inventory": _inventory,
    "peers": _peers,
    "wall": _wall,
    "bmc": _bmc,
}

WELL_WHEN_UNNAMED = frozenset({"xid", "kernel", "space"})
"""Checks whose result names a part only while something speaks of it; in every other one silence is not well."""
