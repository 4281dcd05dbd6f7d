"""What the kernel's log says of the machine around the GPUs: machine checks, drives, file systems, stuck tasks.

Decides which lines are such faults, how lines of one fault are merged, and what each asks for. A process that was
killed for want of memory is a job's affair: it is kept as an event and speaks against nothing. Lines of NVIDIA's
driver are ``driver_lines``'.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ouvrage.health.findings import Belief, Finding, result_of
from ouvrage.health.kernel_log import KernelLine
from ouvrage.model.health import CRITICAL, OK, WARN, CheckResult, HealthEvent
from ouvrage.model.work import Named

LINE_KEPT = 1000
LINES_LOST = "lines-lost"
"""The code of lines that nobody read: whatever they said, it is not known. No line says so by itself."""
_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSign:
    """A sort of line: its ``code``, how it is found, and what it asks for."""

    code: str
    pattern: re.Pattern[str]
    verdict: str
    action: str
    fence: str
    words: str


def _sign(
    code: str, pattern: str, verdict: str, words: str, action: str = "look", fence: str = "none"
) -> HostSign:
    return HostSign(
        code=code, pattern=re.compile(pattern), verdict=verdict, action=action, fence=fence, words=words
    )  # fmt: skip


SIGNS = (
    _sign(
        "machine-check-fatal",
        r"\[Hardware Error\].*(?:Uncorrected|Fatal|context corrupt)|^EDAC .*\b\d+ UE\b",
        CRITICAL, "an error of processor or memory was not corrected", "diagnostic", "drain",
    ),
    _sign(
        "machine-check", r"Machine check events logged|^EDAC .*\b\d+ CE\b", WARN,
        "an error of processor or memory was corrected",
    ),
    _sign(
        "disk-gone", r"^nvme nvme\d+: (?:controller is down|Removing after probe failure|Disabling device)",
        CRITICAL, "a drive stopped answering", "person", "drain",
    ),
    _sign(
        "filesystem",
        r"Remounting filesystem read-only|^EXT4-fs error|^XFS .*(?:Corruption|Shutting down)|^BTRFS (?:error|critical)",
        CRITICAL, "a file system is damaged", "person", "drain",
    ),
    _sign(
        "disk-error",
        r"\bI/O error, dev \w+|critical medium error|^Buffer I/O error",
        WARN, "a drive could not read or write",
    ),
    _sign(
        "pcie-fatal", r"AER: .*(?<!Non-)Fatal\b.*error|PCIe Bus Error: severity=Uncorrected \(Fatal\)",
        CRITICAL, "a PCIe link had a fatal error", "reboot", "drain",
    ),
    _sign(
        "stuck-task", r"^INFO: task \S+ blocked for more than \d+ seconds", WARN,
        "a task hangs in the kernel",
    ),
    _sign(
        LINES_LOST, r"(?!)", WARN, "lines of the kernel's log were overwritten before they were read",
    ),
    _sign(
        "out-of-memory", r"^(?:Out of memory|Memory cgroup out of memory): Killed process", OK,
        "a process was killed for want of memory",
    ),
)  # fmt: skip
"""In the order in which a line is held against them; the first that fits counts."""

_BY_CODE = {sign.code: sign for sign in SIGNS}
_PART = re.compile(
    r"\b(nvme\d+(?:n\d+)?|sd[a-z]+|dm-\d+|md\d+|mc\d+|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFault:
    """One fault: lines of one sort about one part, each soon after the one before. Times are since boot."""

    code: str
    device: str | None
    count: int
    first_us: int
    last_us: int
    line: str


def sign_of(text: str) -> HostSign | None:
    """The sort of a line's text, None where it is no fault of the machine."""
    return next((sign for sign in SIGNS if sign.pattern.search(text)), None)


def host_faults(
    faults: Sequence[HostFault], lines: Iterable[KernelLine], within_us: int
) -> list[HostFault]:
    """The faults with some lines more. A line joins the last fault of its sort and part, where that is recent."""
    made = list(faults)
    for line in lines:
        sign = sign_of(line.text)
        if sign is None:
            continue
        found = _PART.search(line.text)
        device = found[1] if found else None
        at = line.at_us or 0
        place = next(
            (n for n in range(len(made) - 1, -1, -1)
             if (made[n].code, made[n].device) == (sign.code, device)), None,
        )  # fmt: skip
        if place is not None and at - made[place].last_us <= within_us:
            held = made[place]
            made[place] = HostFault(
                code=held.code, device=device, count=held.count + 1, first_us=held.first_us,
                last_us=max(at, held.last_us), line=held.line,
            )  # fmt: skip
        else:
            made.append(
                HostFault(code=sign.code, device=device, count=1, first_us=at, last_us=at, line=line.raw[:LINE_KEPT])
            )  # fmt: skip
    return made


def with_lost_lines(
    faults: Sequence[HostFault], count: int, now_us: int, within_us: int
) -> list[HostFault]:
    """The faults with lines that were lost until ``now_us``; those of one flood are one."""
    held = next((f for f in reversed(faults) if f.code == LINES_LOST), None)
    if held is None or now_us - held.last_us > within_us:
        lost = HostFault(
            code=LINES_LOST, device=None, count=count, first_us=now_us, last_us=now_us, line=""
        )
        return [*faults, lost]
    more = replace(held, count=held.count + count, last_us=now_us)
    return [*(f for f in faults if f is not held), more]


def check_host_lines(faults: Sequence[HostFault]) -> list[CheckResult]:
    """Each part's result that a fault names, and the machine's own."""
    findings = [_finding(fault) for fault in faults if _BY_CODE[fault.code].verdict != OK]
    devices = sorted({f.device for f in findings if f.device is not None})
    return [
        result_of(
            "kernel", device, [f for f in findings if f.device == device],
            good="the kernel's log names no fault of the machine",
        )
        for device in (None, *devices)
    ]  # fmt: skip


def _finding(fault: HostFault) -> Finding:
    sign = _BY_CODE[fault.code]
    times = "" if fault.count == 1 else f" ({fault.count} lines)"
    about = "" if fault.device is None else f"{fault.device}: "
    return Finding(
        belief=Belief.COUNTER, verdict=sign.verdict, rule=f"kernel-{sign.code}",
        reason=f"{about}{sign.words}{times}", device=fault.device, action=sign.action, fence=sign.fence,
        evidence=(
            Named(name="lines", value=str(fault.count)),
            Named(name="line", value=fault.line[:_SHOWN]),
        ),
    )  # fmt: skip


def host_event(fault: HostFault, node: str, boot: str) -> HealthEvent:
    """The fact that states one fault of the machine."""
    return HealthEvent(
        node=node, device=fault.device, code=fault.code, count=fault.count, boot=boot,
        first_monotonic_us=fault.first_us, last_monotonic_us=fault.last_us, line=fault.line,
    )  # fmt: skip
