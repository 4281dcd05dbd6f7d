"""A machine in memory that is repaired as a test says: who holds its GPUs, what its commands answer, what they did.

Decides nothing. It keeps to the port's words; a real machine is never touched by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ouvrage.adapters.machine_port import Holder, NotDone


@dataclass(slots=True)
class MachineTwin:
    """``done`` is what was called, in order. ``refuses`` maps a call's name to the words it fails with."""

    boot_id: str = "boot-1"
    held: dict[str, list[Holder]] = field(default_factory=dict[str, list[Holder]])
    domain: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])
    services: dict[str, bool] = field(default_factory=dict[str, bool])
    refuses: dict[str, str] = field(default_factory=dict[str, str])
    done: list[str] = field(default_factory=list[str])

    def boot(self) -> str:
        """The boot id."""
        return self.boot_id

    def holders(self, device: str) -> list[Holder]:
        """Who has a GPU open."""
        self._may("holders")
        return list(self.held.get(device, ()))

    def tied(self, device: str) -> list[str]:
        """The rest of its NVLink domain."""
        self._may("tied")
        return list(self.domain.get(device, ()))

    def runs_service(self, name: str) -> bool:
        """Whether it runs."""
        return self.services.get(name, False)

    def stop_service(self, name: str) -> bool:
        """Stop a service; with it end the processes that are called as it is."""
        self._may("stop_service")
        ran = self.services.get(name, False)
        if ran:
            self.services[name] = False
            self.done.append(f"stop {name}")
            for device, holders in self.held.items():
                self.held[device] = [each for each in holders if each.name != name]
        return ran

    def start_service(self, name: str) -> None:
        """Start a service."""
        self._may("start_service")
        self.services[name] = True
        self.done.append(f"start {name}")

    def reset(self, devices: list[str]) -> None:
        """Reset GPUs that nobody holds."""
        self._may("reset")
        if any(self.held.get(device) for device in devices):
            raise NotDone("In use by another client")
        self.done.append(f"reset {' '.join(devices)}")

    def diagnose(self, device: str | None) -> str:
        """A diagnostic that passes."""
        self._may("diagnose")
        self.done.append(f"diagnose {device or 'all'}")
        return "passed"

    def reboot(self) -> None:
        """Ask for a reboot; the test boots it."""
        self._may("reboot")
        self.done.append("reboot")

    def _may(self, name: str) -> None:
        if name in self.refuses:
            raise NotDone(self.refuses[name])
