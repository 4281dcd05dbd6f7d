"""What each probe reads, in the child process that is started for it: values as JSON, nothing judged.

Decides where a probe's values come from and which part of a long answer travels. Every function here may hang, crash
or answer nonsense with whatever it asks, and the supervisor reckons with it. Where a part is not there at all
(``Absent``) it says so, which is no fault of the machine. What is loaded is loaded when a probe first looks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ouvrage.adapters.health_sources import NotTold

Values = dict[str, Any]


class Absent(Exception):
    """This machine has nothing that the probe could look at."""


class Roots:
    """Where the machine is looked at: ``/`` itself, or a tree that stands in for it."""

    def __init__(self, root: str = "/") -> None:
        base = root.rstrip("/")
        self.proc, self.sys, self.etc = f"{base}/proc", f"{base}/sys", f"{base}/etc"
        self.var, self.kmsg = f"{base}/var", f"{base}/dev/kmsg"


class Sights:
    """Everything that a child can look at; what is worth keeping between looks (a library, an open log) is kept."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._log: Any = None
        self._nvml: Any = None

    def look(self, probe: str, asked: Mapping[str, Any]) -> Values:
        """One look. Raises ``NotTold``, ``Absent``, and whatever else what it asks may raise."""
        return _LOOKS[probe](self, asked)

    def kernel_log(self, asked: Mapping[str, Any]) -> Values:
        """What the kernel's log holds since a place; telling lines alone."""
        from ouvrage.adapters.kernel_cursor import KernelCursor

        if self._log is None:
            self._log = KernelCursor(self._roots.kmsg)
        piece = self._log.after(asked.get("place"), _telling)
        return {
            "lines": list(piece.lines), "read": piece.read, "lost": piece.lost, "place": piece.place,
            "more": piece.more,
        }  # fmt: skip

    def gpu(self, asked: Mapping[str, Any]) -> Values:
        """Every GPU as the library tells it, and how many the bus lists."""
        from ouvrage.adapters.gpu_port import Unavailable
        from ouvrage.adapters.nvml import begun
        from ouvrage.adapters.nvml_health import looks
        from ouvrage.adapters.procfs import nvidia_devices

        listed = nvidia_devices(self._roots.sys)
        try:
            if self._nvml is None:
                self._nvml = begun()
            return {"gpus": looks(self._nvml), "listed": listed}
        except Unavailable as error:
            self._nvml = None
            if error.kind == "library" and not listed and not asked.get("expect"):
                raise Absent("this machine has no NVIDIA GPU") from error
            raise NotTold(f"the GPU library cannot be used: {error}") from error

    def links(self, asked: Mapping[str, Any]) -> Values:
        """Network interfaces and InfiniBand ports."""
        from ouvrage.adapters.host_links import links

        found = links(self._roots.sys)
        if not found:
            raise Absent("no network interface with hardware behind it")
        return {"links": [asdict(each) for each in found]}

    def edac(self, asked: Mapping[str, Any]) -> Values:
        """Counts of memory controllers."""
        from ouvrage.adapters.host_health import memory_controllers

        found = memory_controllers(self._roots.sys)
        if not found:
            raise Absent("no memory controller is watched (no EDAC driver is loaded)")
        return {"controllers": [asdict(each) for each in found]}

    def memory(self, asked: Mapping[str, Any]) -> Values:
        """The lines of ``meminfo``."""
        from ouvrage.adapters.host_health import memory

        return dict(memory(self._roots.proc))

    def time(self, asked: Mapping[str, Any]) -> Values:
        """The kernel's word on its clock."""
        from ouvrage.adapters.host_health import clock

        return asdict(clock())

    def time_server(self, asked: Mapping[str, Any]) -> Values:
        """By how much this clock is ahead of a server's."""
        from ouvrage.adapters.peer_answers import clock_ahead_us

        ahead = clock_ahead_us(asked["time_server"])
        if ahead is None:
            raise NotTold(f"{asked['time_server']} does not tell the time")
        return {"ahead_us": ahead}

    def files(self, asked: Mapping[str, Any]) -> Values:
        """Mounts, what should be mounted, and the room on them."""
        from ouvrage.adapters.host_health import fstab, machine_mounts, rooms

        found = machine_mounts(self._roots.proc)
        return {
            "mounts": [asdict(each) for each in found],
            "fstab": [asdict(each) for each in fstab(f"{self._roots.etc}/fstab")],
            "rooms": [asdict(each) for each in rooms(found, asked.get("paths", ()))],
        }

    def smart(self, asked: Mapping[str, Any]) -> Values:
        """Each drive's own report."""
        from ouvrage.adapters.health_sources import disk_reports

        told: Values = {}
        for name, report in disk_reports(self._roots.sys):
            told[name] = (
                {"fault": str(report)} if isinstance(report, NotTold) else {"report": report}
            )
        if not told:
            raise Absent("no disk with hardware behind it")
        if all("not installed" in str(each.get("fault", "")) for each in told.values()):
            raise Absent("smartctl is not installed: drives are not looked at")
        return told

    def inventory(self, asked: Mapping[str, Any]) -> Values:
        """What the machine is made of, and what its owner accepted; that is kept by whoever looks first."""
        from ouvrage.adapters import machine_parts
        from ouvrage.agent.parts import inventory_now, look
        from ouvrage.base.errors import OuvrageError
        from ouvrage.ledger.kinds import payload_of

        if asked.get("state") is None:
            raise Absent("nothing is kept of what this machine is made of")
        here = self._roots
        roots = machine_parts.Roots(proc=here.proc, sys=here.sys, etc=here.etc, var=here.var)
        now = inventory_now(asked["node"], roots, cards=asked.get("gpus", ()), ask_topology=False)
        told: Values = {"now": json.loads(payload_of(now))}
        try:
            kept = look(Path(asked["state"]), now, lambda _: None)
        except OuvrageError as error:
            return {**told, "accepted": None, "why": error.message}
        return {**told, "accepted": json.loads(payload_of(kept.accepted))}

    def peers(self, asked: Mapping[str, Any]) -> Values:
        """How named peers answer."""
        from ouvrage.adapters.peer_answers import ask_peer

        return {"peers": [asdict(ask_peer(name)) for name in asked["peers"]]}

    def wall(self, asked: Mapping[str, Any]) -> Values:
        """What is drawn at the wall."""
        from ouvrage.adapters.wall_meter import PlugMeter, WallFault

        try:
            return asdict(PlugMeter(asked["wall"]).read())
        except WallFault as error:
            raise NotTold(f"the meter at the wall: {error}") from error

    def bmc(self, asked: Mapping[str, Any]) -> Values:
        """What the BMC that ``remote.toml`` names tells, or this machine's own; one look at a time, its credentials by reference."""
        from pathlib import Path

        from ouvrage.adapters.power_look import look_at
        from ouvrage.adapters.power_port import PowerFault
        from ouvrage.adapters.remote_config import LOCAL, Remote, power_port_of, remote_of

        home, node = asked["bmc"]
        own = Remote(node="", kind="ipmi", address=LOCAL, settings={}, where="/dev/ipmi0")
        remote = remote_of(Path(home), node) if node else own
        try:
            told = asdict(look_at(power_port_of(remote), remote.restore))
        except PowerFault as fault:
            raise NotTold(f"{remote.kind} does not tell: {fault}") from fault
        return json.loads(json.dumps(told, default=str))


_LOOKS: dict[str, Callable[[Sights, Mapping[str, Any]], Values]] = {
    "kernel_log": Sights.kernel_log,
    "gpu": Sights.gpu,
    "links": Sights.links,
    "edac": Sights.edac,
    "memory": Sights.memory,
    "time": Sights.time,
    "time_server": Sights.time_server,
    "files": Sights.files,
    "smart": Sights.smart,
    "inventory": Sights.inventory,
    "peers": Sights.peers,
    "wall": Sights.wall,
    "bmc": Sights.bmc,
}


def _telling(raw: str) -> bool:
    """Whether a line of the kernel's log is of NVIDIA's driver or a fault of the machine, whoever's shape it has."""
    from ouvrage.health.host_lines import sign_of
    from ouvrage.health.kernel_log import kernel_lines

    if "NVRM:" in raw or "nvidia-nvswitch" in raw:
        return True
    return any(sign_of(line.text) for line in kernel_lines([raw]))


def answer_line(
    sights: Sights, asked: Mapping[str, Any], clock: Callable[[], tuple[int, int]]
) -> str:
    """One line of JSON for one question: ``values``, ``absent`` or ``fault``, and when it was looked."""
    answer: Values = {"n": asked["n"], "probe": asked["probe"]}
    try:
        answer["values"] = sights.look(asked["probe"], asked)
    except Absent as absent:
        answer["absent"] = str(absent)
    except NotTold as fault:
        answer["fault"] = str(fault)
    except Exception as error:  # noqa: BLE001 -- a probe that fails says so and lives on
        answer["fault"] = f"{type(error).__name__}: {error}"[:300]
    answer["at_us"], answer["monotonic_us"] = clock()
    with suppress(ValueError):
        return json.dumps(answer, separators=(",", ":"), allow_nan=False)
    del answer["values"]
    answer["fault"] = "a value is no number"
    return json.dumps(answer)
