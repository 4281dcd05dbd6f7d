"""What is around a GPU's own counters: its links, the packets sent again, and who holds its memory.

Decides that a link which was up in this boot and is down is a fault, while one that never was up is none; that memory
in use which no process holds is a warning, never a reason to end anything; and that a list of processes with numbers
that no process can have is not believed. Rates need an earlier look in the same boot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ouvrage.health.findings import Belief, Finding
from ouvrage.health.tables import Thresholds
from ouvrage.model.health import CRITICAL, WARN

Values = Mapping[str, "int | str | None"]

_MIB = 1 << 20
_MINUTE_US = 60_000_000


def around_findings(
    values: Values, bounds: Thresholds, device: str | None, before: Values | None
) -> list[Finding]:
    """What speaks against a GPU beside its own errors."""
    return [
        *_links(values, device),
        *_replays(values, before, bounds, device),
        *_owners(values, bounds, device),
    ]


def _number(values: Values, name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) else None


def _finding(
    verdict: str, rule: str, reason: str, device: str | None, *, action: str = "look",
    fence: str = "none", shadow: bool = False,
) -> Finding:  # fmt: skip
    return Finding(
        belief=Belief.COUNTER, verdict=verdict, rule=rule, reason=reason, device=device, action=action,
        fence=fence, shadow=shadow,
    )  # fmt: skip


def _links(values: Values, device: str | None) -> Iterator[Finding]:
    """``nvlinks_most`` is the most that were up at once since boot."""
    up, most = _number(values, "nvlinks_up"), _number(values, "nvlinks_most")
    if up is not None and most is not None and up < most:
        words = f"{up} NVLinks are up and {most} were since this boot"
        yield _finding(CRITICAL, "nvlink-down", words, device, action="diagnostic", fence="drain")


def _replays(
    values: Values, before: Values | None, bounds: Thresholds, device: str | None
) -> Iterator[Finding]:
    if before is None:
        return
    now, earlier = _number(values, "pcie_replays"), _number(before, "pcie_replays")
    at, then = _number(values, "monotonic_us"), _number(before, "monotonic_us")
    if now is None or earlier is None or at is None or then is None or at <= then:
        return
    rate = (now - earlier) * _MINUTE_US / (at - then)
    if rate > bounds["gpu.replays_warn"]:
        words = f"{now - earlier} PCIe packets were sent again, {rate:.0f} a minute"
        yield _finding(WARN, "pcie-replays", words, device, shadow=True)


def _owners(values: Values, bounds: Thresholds, device: str | None) -> Iterator[Finding]:
    """``processes_false`` have numbers that none can have, ``processes_gone`` ones that none has."""
    if _number(values, "processes_false"):
        words = "the driver lists processes whose numbers none can have: its list is not believed"
        yield _finding(WARN, "gpu-process-list", words, device)
        return
    if _number(values, "processes_gone"):
        words = f"{values['processes_gone']} processes that do not exist hold memory of it"
        yield _finding(WARN, "gpu-process-gone", words, device)
    used, held = _number(values, "memory_used_bytes"), _number(values, "processes")
    if used is None or held != 0 or _number(values, "mig"):
        return
    if used > bounds["gpu.ownerless_warn"] * _MIB:
        words = f"{used // _MIB} MiB of its memory are in use and no process holds them"
        yield _finding(WARN, "gpu-memory-ownerless", words, device)
