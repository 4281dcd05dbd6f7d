"""The checks of ``ouvrage check``, one function each: read, judge, and say UNKNOWN where it cannot be read.

Decides which source goes with which rule. A part that this machine does not have (a disk, a GPU) is no fault, unless
somebody said that it must be there: asked for alone it is UNKNOWN, and ``all`` leaves it out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.adapters.gpu_metrics import StalePage, gpus_on_page
from ouvrage.adapters.health_sources import NotTold, disk_reports, kernel_log
from ouvrage.adapters.home import home
from ouvrage.adapters.host_health import clock, fstab, memory, memory_controllers, mounts, rooms
from ouvrage.adapters.ipmi import LOCAL
from ouvrage.adapters.machine_parts import Roots
from ouvrage.adapters.nvml_health import gpu_looks
from ouvrage.adapters.power_look import look_at
from ouvrage.adapters.power_port import PowerFault
from ouvrage.adapters.procfs import nvidia_devices
from ouvrage.adapters.remote_config import Remote, power_port_of, remote_of, remotes
from ouvrage.agent.parts import agent_dir, inventory_now, kept
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.agent import host_name
from ouvrage.health.bmc import check_bmc
from ouvrage.health.disks import check_disk
from ouvrage.health.findings import unknown
from ouvrage.health.gpus import check_gpus
from ouvrage.health.host import check_edac, check_memory, check_mounts, check_space, check_time
from ouvrage.health.kernel_log import lines_in
from ouvrage.health.parts import CHECK as INVENTORY
from ouvrage.health.parts import check_inventory
from ouvrage.health.xid import Rules, check_log
from ouvrage.model.health import CheckResult

Results = list[CheckResult]

ABSENT = "/none"
"""The end of the rule of a check that has nothing to look at here; ``all`` leaves it out of its verdict."""


def is_absent(result: CheckResult) -> bool:
    """Whether a check had nothing to look at on this machine."""
    return result.rule.endswith(ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked: the rules, a saved file's text in place of this machine, what must be there, the roots."""

    rules: Rules
    text: str | None
    since: int | None
    expect: int | None
    paths: Sequence[str]
    memory: int | None
    proc: str
    sys: str
    etc: str
    var: str
    kmsg: str
    state: Path | None = None
    node: str | None = None


def _smart(asked: Asked) -> Results:
    bounds = asked.rules.bounds
    if asked.text is not None:
        return [check_disk(_json(asked.text), bounds)]
    results = [
        unknown("smart", str(report), name, "disk-silent")
        if isinstance(report, NotTold)
        else check_disk(report, bounds, name=name)
        for name, report in disk_reports(asked.sys)
    ]
    return results or [_absent("smart", "no disk with hardware behind it")]


def _absent(check: str, what: str) -> CheckResult:
    return unknown(check, f"this machine has {what}", rule=f"{check}{ABSENT}")


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OuvrageError(
            "check/json", f"the file is no JSON: {error}"[:200],
            hint="smartctl --json -x /dev/nvme0 > FILE",
        ) from error  # fmt: skip


def _xid(asked: Asked) -> Results:
    if asked.text is not None:
        return check_log(lines_in(asked.text), asked.rules, asked.since)
    return check_log(kernel_log(asked.kmsg), asked.rules, asked.since, monotonic_us())


def _gpu(asked: Asked) -> Results:
    if asked.text is not None:
        try:
            seen = gpus_on_page(asked.text, 0, "")
        except StalePage as error:
            return [unknown("gpu", str(error), rule="gpu-stale")]
        return check_gpus(seen, asked.rules, asked.expect)
    listed = nvidia_devices(asked.sys)
    if not listed and not asked.expect:
        return [_absent("gpu", "no NVIDIA GPU")]
    return check_gpus(gpu_looks(now_us()), asked.rules, asked.expect or listed or None)


def _space(asked: Asked) -> Results:
    return check_space(rooms(mounts(asked.proc), asked.paths), asked.rules.bounds)


def _mounts(asked: Asked) -> Results:
    return check_mounts(mounts(asked.proc), fstab(f"{asked.etc}/fstab"), asked.paths)


def _memory(asked: Asked) -> Results:
    return [check_memory(memory(asked.proc), asked.memory, asked.rules.bounds)]


def _edac(asked: Asked) -> Results:
    return [check_edac(memory_controllers(asked.sys), asked.rules.bounds)]


def _time(asked: Asked) -> Results:
    return [check_time(clock(), asked.rules.bounds)]


def _inventory(asked: Asked) -> Results:
    node = asked.node or host_name()
    known = kept(asked.state or agent_dir(), node)
    if known is None:
        return [_absent(INVENTORY, "no inventory that was accepted: ouvrage node inventory")]
    roots = Roots(proc=asked.proc, sys=asked.sys, etc=asked.etc, var=asked.var)
    return [check_inventory(known.accepted, inventory_now(node, roots, ask_topology=False))]


def _bmc(asked: Asked) -> Results:
    """The BMC that ``remote.toml`` names for this machine, else the one that the kernel's driver finds."""
    known = remotes(home())
    if asked.node is not None or len(known) == 1:
        remote = remote_of(home(), asked.node or next(iter(known)))
    elif os.path.exists("/dev/ipmi0"):
        remote = Remote(
            node="this machine", kind="ipmi", address=LOCAL, settings={}, where="/dev/ipmi0"
        )
    elif known:
        reason = f"{len(known)} nodes are named in remote.toml: --node says which"
        return [unknown("bmc", reason, rule="bmc/which")]
    else:
        return [_absent("bmc", "no BMC of its own, and remote.toml names none")]
    try:
        look = look_at(power_port_of(remote), remote.restore)
    except PowerFault as fault:
        return [unknown("bmc", f"{remote.kind} does not tell: {fault}", rule=f"bmc-{fault.kind}")]
    return [check_bmc(look, now_us(), asked.rules.bounds)]


def _told(name: str, check: Callable[[Asked], Results]) -> Callable[[Asked], Results]:
    def run(asked: Asked) -> Results:
        try:
            return check(asked)
        except NotTold as error:
            return [unknown(name, str(error), rule=f"{name}/not-told")]

    return run


CHECKS: dict[str, Callable[[Asked], Results]] = {
    name: _told(name, check)
    for name, check in (
        ("xid", _xid),
        ("gpu", _gpu),
        ("smart", _smart),
        ("space", _space),
        ("mounts", _mounts),
        ("memory", _memory),
        ("edac", _edac),
        ("time", _time),
        (INVENTORY, _inventory),
        ("bmc", _bmc),
    )
}
"""Every check by its name, in the order in which ``all`` says them; ``bmc`` is asked by name alone."""
