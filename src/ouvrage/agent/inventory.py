"""What this node has to give: cores, memory, disk, GPUs, and which isolations work on it.

Decides what is held back for the machine itself, and that an isolation is offered only where it was
tried out on this kernel. GPUs are asked of the driver by a child, as everywhere; a driver that does
not answer is a node without GPUs, said in the log, not an agent that hangs.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import ouvrage
from ouvrage.adapters import scrub
from ouvrage.adapters.procfs import memory_bytes
from ouvrage.adapters.sandbox_cgroup import version
from ouvrage.wire.runner import Device, Inventory

_RESERVED_MIB = 512
"""Memory that the machine keeps for itself: the kernel, the agent, whoever logs in to mend it."""
_DISK_SHARE = 0.9
_DRIVER = Path("/proc/driver/nvidia/gpus")
_SHARED_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")


def inventory(state: Path, name: str, isolations: Sequence[str]) -> Inventory:
    """The node as it is now. ``isolations`` are those that work."""
    free = shutil.disk_usage(state).free
    total = memory_bytes() or 0
    return Inventory.model_validate(
        {
            "name": name,
            "cpus": sorted(os.sched_getaffinity(0)),
            "memory_mib": max(0, (total >> 20) - _RESERVED_MIB),
            "disk_mib": int(free * _DISK_SHARE) >> 20,
            "devices": devices(),
            "isolations": list(isolations),
            "cgroup": version(),
            "boot": Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip(),
            "version": ouvrage.__version__,
        }
    )


def devices() -> list[Device]:
    """The GPUs that the driver tells of, in the order of their slots."""
    return [
        Device(device=card.uuid, slot=slot, model=card.name, memory_mib=card.memory_bytes >> 20)
        for slot, card in enumerate(scrub.cards() or ())
    ]


def nodes_of(wanted: Sequence[str], root: str = "/dev") -> tuple[str, ...]:
    """The device nodes that these GPUs are used through, and those that all GPUs share.

    Raises ``KeyError`` for a GPU that the driver does not know.
    """
    if not wanted:
        return ()
    minors = _minors()
    own = [f"{root}/nvidia{minors[card]}" for card in wanted]
    shared = [f"{root}/{name}" for name in _SHARED_NODES]
    return tuple(path for path in (*own, *shared) if os.path.exists(path))


def _minors() -> dict[str, int]:
    """The minor number of each card's node, by UUID, as the driver's own pages tell them."""
    found: dict[str, int] = {}
    for page in _DRIVER.glob("*/information"):
        text = page.read_text("ascii", "replace")
        uuid = re.search(r"^GPU UUID:\s*(\S+)", text, re.MULTILINE)
        minor = re.search(r"^Device Minor:\s*(\d+)", text, re.MULTILINE)
        if uuid and minor:
            found[uuid[1]] = int(minor[1])
    return found
