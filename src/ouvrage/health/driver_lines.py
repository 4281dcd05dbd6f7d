"""What NVIDIA's driver says in the kernel's log: Xid and SXid lines, GPUs that are gone, and one fault's lines merged.

Decides which text is such a line and what stands in it; codes are judged in ``xid``. A GPU that fell off the bus is
heard without any code as well, and counts as 79. Lines of one fault are merged: the same code on the same GPU
within minutes, or at all where the lines carry no time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ouvrage.health.kernel_log import KernelLine
from ouvrage.model.health import HealthEvent

LOST = 79
"""The code of a GPU that no longer answers; lines that say so without a code count as it."""

LINE_KEPT = 1000
MOST_NAMES = 64
"""Programs and places that are kept of one fault: a program that is started again and again fails under ever new numbers."""

_PCI = r"(?:PCI:)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.[0-9A-Fa-f])?"
_XID = re.compile(rf"NVRM: Xid \({_PCI}(?: GPU-I:\d+)?\): (\d{{1,6}})(?!\d)[, ]*(.*)")
_SXID = re.compile(
    rf"nvidia-nvswitch\d+: SXid \({_PCI}\): (\d{{1,6}}), *(Fatal|Non-fatal)\b(.*)", re.IGNORECASE
)
_GONE = re.compile(r"NVRM: .*fallen off the bus", re.IGNORECASE)
_ADDRESS = re.compile(_PCI)
_PID = re.compile(r"\bpid='?(\d+)")
_NAME = re.compile(r"\bname=([^,]*)")
_PLACE = re.compile(r"\(GPC (\d+), TPC (\d+)")
_ACTION = re.compile(
    r"recovery action changed from 0x[0-9a-f]+ \([^)]*\) to 0x([0-9a-f]+)", re.IGNORECASE
)
_NVLINK = re.compile(
    r"\b(\w{1,40}) +(Nonfatal|Fatal) .*?Link +(-?\d+)(?: *[\[(]0x([0-9a-f]{1,8}))?", re.IGNORECASE
)
_SUBCODE_SHIFT, _SUBCODE_MASK = 20, 0x3F


@dataclass(frozen=True, slots=True, kw_only=True)
class NvlinkWord:
    """What a line of NVLink 5 says: the unit, whether it is fatal, which link, and the sub-code of word 1."""

    unit: str
    fatal: bool
    link: int
    subcode: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverLine:
    """One line of the driver. ``kind`` is ``xid``, ``lost`` (no code in it) or ``sxid``; ``device`` a PCI address.

    ``program`` is the process that the line names, with its id; ``place`` the unit inside the GPU; ``recovery``
    the action that Xid 154 says the driver wants now; ``fatal`` what the line of an SXid says of itself.
    """

    kind: str
    code: int
    device: str | None
    program: str | None = None
    place: str | None = None
    recovery: int | None = None
    nvlink: NvlinkWord | None = None
    fatal: bool | None = None
    line: KernelLine


def pci_name(text: str) -> str | None:
    """A GPU's PCI address as lines and libraries write it, in one form: ``0000:9b:00``."""
    found = _ADDRESS.search(text)
    if found is None:
        return None
    domain, bus, device = found[1].lower().split(":")
    return f"{domain[-4:]}:{bus}:{device}"


def driver_lines(lines: Iterable[KernelLine]) -> Iterator[DriverLine]:
    """The driver's error lines among the kernel's messages."""
    before: str | None = None
    for line in lines:
        text = line.text
        if text.startswith("NVRM: "):
            told = _xid(line) or _gone(line, before)
            if told is not None:
                yield told
            before = pci_name(text) or before
        elif text.startswith("nvidia-nvswitch"):
            found = _SXID.match(text)
            if found is not None:
                yield DriverLine(
                    kind="sxid", code=int(found[2]), device=pci_name(found[1]),
                    fatal=found[3].lower() == "fatal", line=line,
                )  # fmt: skip


def _xid(line: KernelLine) -> DriverLine | None:
    found = _XID.match(line.text)
    if found is None:
        return None
    code, rest = int(found[2]), found[3]
    place, action = _PLACE.search(rest), _ACTION.search(rest)
    return DriverLine(
        kind="xid",
        code=code,
        device=pci_name(found[1]),
        program=_program(rest),
        place=None if place is None else f"GPC {place[1]}, TPC {place[2]}",
        recovery=None if action is None else int(action[1], 16),
        nvlink=_nvlink(rest) if 144 <= code <= 150 else None,
        line=line,
    )


def _program(rest: str) -> str | None:
    """``name[pid]`` of the process that a line names; None where it is ``<unknown>``."""
    pid, name = _PID.search(rest), _NAME.search(rest)
    if pid is None:
        return None
    told = "" if name is None else name[1].strip(" '")
    return f"{told}[{pid[1]}]"


def _nvlink(rest: str) -> NvlinkWord | None:
    found = _NVLINK.search(rest)
    if found is None:
        return None
    word = None if found[4] is None else int(found[4], 16)
    return NvlinkWord(
        unit=found[1],
        fatal=found[2].lower() == "fatal",
        link=int(found[3]),
        subcode=None if word is None else word >> _SUBCODE_SHIFT & _SUBCODE_MASK,
    )


def _gone(line: KernelLine, before: str | None) -> DriverLine | None:
    """A GPU that is gone; the driver's message stands on two lines, the first of which names it."""
    if not _GONE.match(line.text):
        return None
    return DriverLine(kind="lost", code=LOST, device=pci_name(line.text) or before, line=line)


@dataclass(slots=True)
class Merged:
    """One fault: the lines of one code on one GPU, none of them minutes after the one before."""

    kind: str
    code: int
    device: str | None
    first: DriverLine
    count: int = 0
    last_us: int | None = None
    programs: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)
    jobs: set[str] = field(default_factory=set)
    tenants: set[str] = field(default_factory=set)

    @property
    def first_us(self) -> int | None:
        """When its first line was written."""
        return self.first.line.at_us

    def add(self, told: DriverLine) -> None:
        """One more line of it."""
        self.count += 1
        self.last_us = told.line.at_us if told.line.at_us is not None else self.last_us
        if told.program and len(self.programs) < MOST_NAMES:
            self.programs.add(told.program)
        if told.place and len(self.places) < MOST_NAMES:
            self.places.add(told.place)


_Key = tuple[str, int, "str | None", "NvlinkWord | None", "int | None", "bool | None"]


def merged(
    lines: Iterable[DriverLine], within_us: int, before: Iterable[Merged] = ()
) -> list[Merged]:
    """The faults behind some lines, in the order of their first ones.

    ``before`` are those of earlier lines: they come first, and grow where a line is another of theirs.
    """
    faults = list(before)
    open_: dict[_Key, Merged] = {_key(fault.first): fault for fault in faults}
    for told in lines:
        key = _key(told)
        fault = open_.get(key)
        if fault is None or _apart(fault, told, within_us):
            fault = open_[key] = Merged(
                kind=told.kind, code=told.code, device=told.device, first=told
            )
            faults.append(fault)
        fault.add(told)
    return faults


def _key(told: DriverLine) -> _Key:
    """What lines of one fault have in common; a GPU that is gone is one, whether or not a line of it has the code."""
    kind = "xid" if told.kind == "lost" else told.kind
    return kind, told.code, told.device, told.nvlink, told.recovery, told.fatal


def _apart(fault: Merged, told: DriverLine, within_us: int) -> bool:
    """Whether a line came so long after the last one that it is another fault; a storm is one."""
    now = told.line
    if fault.last_us is None or now.at_us is None or fault.first.line.clock != now.clock:
        return False
    return now.at_us - fault.last_us > within_us  # a clock that went back tells nothing


def event_of(fault: Merged, node: str, boot: str) -> HealthEvent:
    """The fact that states one fault; lines without a time stand at the boot."""
    return HealthEvent(
        node=node,
        device=fault.device,
        code=str(fault.code) if fault.kind == "xid" else fault.kind,
        count=fault.count,
        boot=boot,
        first_monotonic_us=fault.first_us or 0,
        last_monotonic_us=fault.last_us or 0,
        line=fault.first.line.raw[:LINE_KEPT],
    )
