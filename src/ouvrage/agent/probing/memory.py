"""What the watch must remember to go on after it was ended: in memory as values, in the spool as JSON.

Decides what outlasts a restart: the verdicts that count and their latches, the place in the kernel's log and the
faults found there, what was seen up in this boot. Single looks do not: debounce begins anew. A new boot keeps verdicts
(what was CRITICAL stays so until it is verified) and drops what was counted since the old one began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ouvrage.agent.probing.wall import Hour, hour_from
from ouvrage.base.grades import Grade
from ouvrage.health.driver_lines import Merged, driver_lines
from ouvrage.health.host_lines import HostFault
from ouvrage.health.kernel_log import kernel_lines
from ouvrage.health.timekeeping import Step
from ouvrage.health.watching import Watch
from ouvrage.model.health import CheckResult
from ouvrage.model.work import Named

Key = tuple[str, "str | None"]
"""A check, and the device or None for the node."""


@dataclass(slots=True)
class Memory:
    """``place`` is how far the kernel's log was read. ``verified`` says from when on (since boot) faults of a part count.

    ``stated`` are natural keys of faults that were; ``hour`` is the wall's; ``uuids`` say which GPU is at an address or an
    index; ``to_verify`` are watches whose next look may open a latch; ``number`` is the last verdict's, ``inventory`` the hash of the last one stated.
    """

    boot: str
    place: int | None = None
    faults: list[Merged] = field(default_factory=list)
    host_faults: list[HostFault] = field(default_factory=list)
    stated: set[str] = field(default_factory=set)
    verified: dict[str, int] = field(default_factory=dict)
    were_up: set[str] = field(default_factory=set)
    nvlinks: dict[str, int] = field(default_factory=dict)
    uuids: dict[str, str] = field(default_factory=dict)
    step: Step | None = None
    hour: Hour | None = None
    watches: dict[Key, Watch] = field(default_factory=dict)
    to_verify: set[Key] = field(default_factory=set)
    number: int = 0
    inventory: str = ""

    def of_boot(self, boot: str) -> Memory:
        """The same in a boot: itself, or what of it a new boot leaves, verdicts that stand since its begin."""
        if boot == self.boot:
            return self
        watches = {key: replace(watch, since_us=0, looks=()) for key, watch in self.watches.items()}
        return Memory(
            boot=boot, watches=watches, uuids=self.uuids, number=self.number, hour=self.hour,
            to_verify=self.to_verify & watches.keys(),
        )  # fmt: skip


def memory_json(memory: Memory) -> dict[str, Any]:
    """As it stands in the spool."""
    return {
        "boot": memory.boot,
        "place": memory.place,
        "faults": [_fault_json(each) for each in memory.faults],
        "host_faults": [asdict(each) for each in memory.host_faults],
        "stated": sorted(memory.stated),
        "verified": memory.verified,
        "were_up": sorted(memory.were_up),
        "nvlinks": memory.nvlinks,
        "uuids": memory.uuids,
        "step": None if memory.step is None else asdict(memory.step),
        "hour": None if memory.hour is None else asdict(memory.hour),
        "watches": [
            {"check": check, "device": device, **_watch_json(watch)}
            for (check, device), watch in memory.watches.items()
        ],
        "to_verify": sorted(([check, device] for check, device in memory.to_verify), key=str),
        "number": memory.number,
        "inventory": memory.inventory,
    }


def memory_from(told: Mapping[str, Any]) -> Memory:
    """What stands in the spool. Raises ``KeyError``, ``TypeError`` or ``ValueError`` for another shape."""
    return Memory(
        boot=told["boot"],
        place=told["place"],
        faults=[_fault(each) for each in told["faults"]],
        host_faults=[HostFault(**each) for each in told["host_faults"]],
        stated=set(told["stated"]),
        verified=told["verified"],
        were_up=set(told["were_up"]),
        nvlinks=told["nvlinks"],
        uuids=told["uuids"],
        step=None if told["step"] is None else Step(**told["step"]),
        hour=hour_from(told.get("hour")),
        watches={(each["check"], each["device"]): _watch(each) for each in told["watches"]},
        to_verify={(check, device) for check, device in told.get("to_verify", ())},
        number=told["number"],
        inventory=told.get("inventory", ""),
    )


def _fault_json(fault: Merged) -> dict[str, Any]:
    return {
        "line": fault.first.line.raw, "device": fault.device, "count": fault.count,
        "last_us": fault.last_us, "programs": sorted(fault.programs), "places": sorted(fault.places),
    }  # fmt: skip


def _fault(told: Mapping[str, Any]) -> Merged:
    """A fault from its first line; that line alone may not name the device."""
    first = next(driver_lines(kernel_lines([told["line"]])))
    first = replace(first, device=told["device"])
    made = Merged(kind=first.kind, code=first.code, device=first.device, first=first)
    made.count, made.last_us = told["count"], told["last_us"]
    made.programs, made.places = set(told["programs"]), set(told["places"])
    return made


def _watch_json(watch: Watch) -> dict[str, Any]:
    return {
        "boot": watch.boot, "verdict": watch.verdict, "since_us": watch.since_us,
        "latched": watch.latched, "shadow": watch.shadow,
        "result": None if watch.result is None else _result_json(watch.result),
    }  # fmt: skip


def _result_json(result: CheckResult) -> dict[str, Any]:
    told = asdict(result)
    told["grade"] = result.grade.word
    return told


def _watch(told: Mapping[str, Any]) -> Watch:
    result = told["result"]
    return Watch(
        boot=told["boot"], verdict=told["verdict"], since_us=told["since_us"], latched=told["latched"],
        shadow=told["shadow"], result=None if result is None else _result(result),
    )  # fmt: skip


_GRADES = {grade.word: grade for grade in Grade}


def _result(told: Mapping[str, Any]) -> CheckResult:
    held = dict(told)
    held["evidence"] = tuple(Named(**each) for each in held["evidence"])
    held["reasons"] = tuple(held["reasons"])
    held["grade"] = _GRADES[held["grade"]]
    return CheckResult(**held)
