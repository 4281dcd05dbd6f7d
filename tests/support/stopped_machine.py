"""A machine that is watched with a clock of the test's own: a tree of files, the stand-in's GPUs, and one real child.

The child reads what the product's child reads, and the core judges it as the agent does; only the moments are the
test's, so that hours pass in the time that the looks themselves take.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ouvrage.agent.probing.asking import Answer
from ouvrage.agent.probing.core import Core
from ouvrage.agent.probing.memory import Memory, memory_from, memory_json
from ouvrage.agent.probing.probes import BY_NAME
from ouvrage.agent.probing.settings import Settings
from ouvrage.ledger.stated import Stated
from ouvrage.model.health import HealthEvent, Verdict
from tests.health.rules import RULES
from tests.support.meter import SOURCES
from tests.support.nvml import Cards

S = 1_000_000
AT_US = 1_900_000_000 * S
BOOT = "11111111-2222-4333-8444-555555555555"


class Tree:
    """What stands in for ``/``: a machine with a disk, a network card, an InfiniBand port and a memory controller."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.put("proc/sys/kernel/random/boot_id", BOOT)
        self.put("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 60000000 kB")
        self.put("proc/self/mounts", "/dev/sda1 / ext4 rw,errors=remount-ro 0 0")
        self.put("etc/fstab", "/dev/sda1 / ext4 errors=remount-ro 0 1")
        self.put("sys/block/sda/size", "1000")
        self.put("sys/devices/system/edac/mc/mc0/ce_count", "0")
        self.put("sys/devices/system/edac/mc/mc0/ue_count", "0")
        self.put("sys/class/net/eth0/device/vendor", "0x15b3")
        self.put("sys/class/net/eth0/carrier", "1")
        self.put("sys/class/net/eth0/carrier_changes", "2")
        self.put("sys/class/net/eth0/statistics/rx_errors", "0")
        self.put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE")
        self.put("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "0")
        self.put("dev/kmsg", "6,1,1000000,-;Linux version 6.1.0", end="\n")
        self._sequence = 1

    def put(self, name: str, text: str, end: str = "\n") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + end)

    def log(self, text: str, at_us: int, facility: int = 0) -> None:
        """A record of the kernel's log."""
        self._sequence += 1
        with (self.root / "dev/kmsg").open("a") as file:
            file.write(f"{facility * 8 + 4},{self._sequence},{at_us},-;{text}\n")

    def gpus_on_the_bus(self, count: int) -> None:
        for number in range(count):
            place = f"sys/bus/pci/devices/0000:{0x10 + number:02x}:00.0"
            self.put(f"{place}/class", "0x030200")
            self.put(f"{place}/vendor", "0x10de")


class Child:
    """One real child, asked at once and answered at once."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ouvrage.agent.probing.child", "--root", str(root)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES), **environment},
        )  # fmt: skip

    def ask(self, probe: str, question: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**question, "n": 1, "probe": probe}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait(10)


class StoppedMachine:
    """The watch of a tree. ``go`` lets time pass; ``facts`` holds what was stated, with the moment of it."""

    def __init__(
        self, root: Path, cards: Cards | None = None, settings: Settings | None = None,
        path: Path | None = None, began_s: float = 3600, state: Path | None = None,
    ) -> None:  # fmt: skip
        self.tree = Tree(root)
        self._state = None if state is None else str(state)
        self.now = int(began_s * S)
        self.ahead_us = 0
        self.settings = settings or Settings()
        self.cards = cards
        self.facts: list[tuple[int, Stated]] = []
        self.instead: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {}
        """Probes that answer what the test says: ``{"fault": words, "sort": sort}``, ``{"values": …}``."""
        environment = {} if cards is None else dict(cards.environment)
        if path is not None:
            environment["PATH"] = f"{path}{os.pathsep}{os.environ['PATH']}"
        self._child = Child(root, environment)
        self.core = self._core(Memory(boot=BOOT))

    def _core(self, memory: Memory) -> Core:
        return Core("n1", memory, RULES, self.settings, self.now, self._state)

    def restart(self, boot: str | None = None) -> None:
        """Another core with what the last one would have kept, as JSON, in this boot or another."""
        kept = json.loads(json.dumps(memory_json(self.core.memory)))
        self.core = self._core(memory_from(kept).of_boot(boot or self.core.memory.boot))

    def go(self, seconds: float, until: Callable[[], object] = lambda: False) -> float | None:
        """Let so many seconds pass, or fewer; how many it took until the condition held, None where it never did."""
        began = self.now
        end = began + int(seconds * S)
        while not until():
            following = self.core.next_us()
            if following > end:
                self.now = end
                return (end - began) / S if until() else None
            self.now = max(self.now, following)
            for probe in self.core.due(self.now):
                self._look(probe.name, self.core.question(probe))
        return (self.now - began) / S

    def _look(self, probe: str, question: Mapping[str, Any]) -> None:
        instead = self.instead.get(probe)
        told = self._child.ask(probe, question) if instead is None else dict(instead(question))
        took = BY_NAME[probe].deadline_s * S if told.get("sort") == "hang" else 0
        answer = Answer(
            probe=probe, at_us=AT_US + self.now + self.ahead_us + took, monotonic_us=self.now + took,
            took_us=took, values=told.get("values"), absent=told.get("absent"), fault=told.get("fault"),
        )  # fmt: skip
        if "sort" in told:
            answer = replace(answer, sort=told["sort"])
        self.core.answered(answer)
        self.facts += [(self.now + took, each) for each in self.core.take_facts()]

    def verdicts(self, check: str) -> list[Verdict]:
        """What was stated of a check, in order."""
        values = [said.value for _, said in self.facts]
        return [v for v in values if isinstance(v, Verdict) and v.check == check]

    def events(self) -> list[HealthEvent]:
        values = [said.value for _, said in self.facts]
        return [v for v in values if isinstance(v, HealthEvent)]

    def counted(self, check: str, device: str | None = None) -> str:
        """The verdict that counts now."""
        return self.core.memory.watches[(check, device)].verdict

    def close(self) -> None:
        self._child.close()


def stopped(*given: Any, **named: Any) -> closing[StoppedMachine]:
    """A machine for a ``with``."""
    return closing(StoppedMachine(*given, **named))
