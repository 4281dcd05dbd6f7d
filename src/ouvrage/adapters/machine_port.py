"""What repairs a machine from inside it: the port that ``machine_commands`` fills, and ``machine_twin`` in tests.

Decides the words for who holds a GPU open and for how a command ended; nothing about when anything is done. Every call has a deadline of its
own, and none kills a process: a driver's client that is killed in the middle of a call can freeze its GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class NotDone(Exception):
    """A command did not do what it is for: the words say what it answered, or that it did not end in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that has a GPU open. ``ours``: it is a probe of this agent's, which ends when it is asked to."""

    pid: int
    name: str
    ours: bool = False


class MachinePort(Protocol):
    """This machine, as far as repairs need it. GPUs are named by their UUID."""

    def boot(self) -> str:
        """The kernel's boot id."""
        ...

    def holders(self, device: str) -> list[Holder]:
        """Who has a GPU open. Raises ``NotDone`` where that cannot be told."""
        ...

    def tied(self, device: str) -> list[str]:
        """The other GPUs of its NVLink domain, which a reset takes along. Raises ``NotDone``."""
        ...

    def runs_service(self, name: str) -> bool:
        """Whether a service runs. Raises ``NotDone``."""
        ...

    def stop_service(self, name: str) -> bool:
        """Stop a service; whether it ran. Raises ``NotDone``."""
        ...

    def start_service(self, name: str) -> None:
        """Start a service. Raises ``NotDone``."""
        ...

    def reset(self, devices: list[str]) -> None:
        """Reset GPUs, all in one go. Raises ``NotDone``."""
        ...

    def diagnose(self, device: str | None) -> str:
        """Run a diagnostic of a GPU or all of them; its words where it passed. Raises ``NotDone`` where not."""
        ...

    def reboot(self) -> None:
        """Ask the system to reboot; returns before it does. Raises ``NotDone``."""
        ...
