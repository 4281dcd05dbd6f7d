"""One rung, climbed on this machine: what is stopped first, what proves that it was done, what is started again.

Decides the order of a GPU's reset: its NVLink domain is looked up, our own probes let go and the services that hold GPUs open are stopped,
nobody may be left who holds one, then it is reset, and what was stopped is started again whatever happened. Nobody is killed: whoever holds a
GPU makes the rung refused. Which services are stopped lies on the disk before. A reboot is proved by another boot id, which only the next start can see; the intent lies on the disk before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.machine_port import MachinePort, NotDone

SERVICES = (
    "nvidia-persistenced",
    "nvidia-dcgm",
    "dcgm-exporter",
    "nvidia_gpu_exporter",
    "gpud",
)
"""Services that hold GPUs open, in the order in which they are stopped; they are started again in the reverse one."""

COMMS = frozenset(
    {
        "nvidia-persiste",
        "nv-hostengine",
        "dcgm-exporter",
        "nvidia_gpu_expo",
        "gpud",
        "nv-fabricmanage",
    }
)
"""What the processes of such services are called in /proc, which keeps fifteen letters."""

FABRIC = "nvidia-fabricmanager"
"""Stopped as well where a whole domain is reset."""

INTENT, STOPPED = "rung.json", "stopped.json"
_LOOKS, _PAUSE_S = 20, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A rung that was ordered: for a GPU, or None for the machine; ``epoch`` goes back with the remedy.

    ``beside`` are GPUs that nothing is placed on meanwhile either.
    """

    device: str | None
    rung: str
    epoch: int
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Climbed:
    """How it ended: ``done``, ``failed``, ``refused``; or ``waiting``, where only the next boot will tell."""

    outcome: str
    why: str


def climb(
    rung: Rung, machine: MachinePort, state: Path, quiet: Callable[[bool], None],
    pause: Callable[[float], None],
) -> Climbed:  # fmt: skip
    """Climb it. ``quiet`` tells our own probes of the driver to let go, or to begin again; ``pause`` waits so many seconds."""
    try:
        if rung.rung == "gpu_reset":
            return _reset(rung, machine, state, quiet, pause)
        if rung.rung == "diagnostic":
            return Climbed(outcome="done", why=machine.diagnose(rung.device))
        if rung.rung == "reboot":
            return _reboot(rung, machine, state)
    except NotDone as error:
        return Climbed(outcome="failed", why=str(error)[:300])
    return Climbed(outcome="refused", why=f"{rung.rung} cannot be climbed from inside the machine")


def _reset(
    rung: Rung, machine: MachinePort, state: Path, quiet: Callable[[bool], None],
    pause: Callable[[float], None],
) -> Climbed:  # fmt: skip
    if rung.device is None:
        return Climbed(outcome="refused", why="no GPU is named to be reset")
    devices = [rung.device, *machine.tied(rung.device)]
    free = sorted({*devices[1:]} - {*rung.beside})
    if free:
        words = f"a reset takes {', '.join(free)} along, which may get new work"
        return Climbed(outcome="refused", why=words[:300])
    stopped: list[str] = []
    quiet(True)
    try:
        names = [*SERVICES, *((FABRIC,) if len(devices) > 1 else ())]
        names = [name for name in names if machine.runs_service(name)]
        write_intent(state, {"boot": machine.boot(), "services": names}, STOPPED)
        stopped.extend(name for name in names if machine.stop_service(name))
        held = _still_held(devices, machine, pause)
        if held:
            return Climbed(outcome="refused", why=f"held open by {', '.join(held)}"[:300])
        machine.reset(devices)
        return Climbed(outcome="done", why=f"reset {', '.join(devices)}"[:300])
    finally:
        quiet(False)
        _start_again(stopped, machine)
        (state / STOPPED).unlink(missing_ok=True)


def _still_held(
    devices: list[str], machine: MachinePort, pause: Callable[[float], None]
) -> list[str]:
    """Who still holds any of them, once everybody who was asked had time to let go."""
    held: list[str] = []
    for look in range(_LOOKS):
        held = [
            f"{each.name} (pid {each.pid})"
            for device in devices
            for each in machine.holders(device)
        ]
        if not held:
            break
        if look < _LOOKS - 1:
            pause(_PAUSE_S)
    return held


def _start_again(stopped: list[str], machine: MachinePort) -> None:
    """Every one of them, also where one does not start; the first that did not is told."""
    trouble: NotDone | None = None
    for name in reversed(stopped):
        try:
            machine.start_service(name)
        except NotDone as error:
            trouble = trouble or error
    if trouble is not None:
        raise trouble


def _reboot(rung: Rung, machine: MachinePort, state: Path) -> Climbed:
    intent = {
        "device": rung.device, "rung": rung.rung, "epoch": rung.epoch, "boot": machine.boot(),
    }  # fmt: skip
    write_intent(state, intent)
    try:
        machine.reboot()
    except NotDone:
        (state / INTENT).unlink(missing_ok=True)
        raise
    return Climbed(outcome="waiting", why="the system was asked to reboot")


def start_what_was_stopped(state: Path, machine: MachinePort) -> None:
    """Start the services again that a reset stopped which was cut short. Raises ``NotDone``; then it is tried again later."""
    path = state / STOPPED
    try:
        told = json.loads(path.read_bytes())
        services = [name for name in told["services"] if name in (*SERVICES, FABRIC)]
        before = told["boot"]
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError):
        path.unlink(missing_ok=True)
        return
    if machine.boot() == before:  # a boot starts them by itself
        _start_again(services, machine)
    path.unlink(missing_ok=True)


def write_intent(state: Path, intent: Mapping[str, object], name: str = INTENT) -> None:
    """Bring an intent to the disk before anything is touched."""
    from ouvrage.store.samples import write_whole

    write_whole(state / name, (json.dumps(intent) + "\n").encode())


def resumed(state: Path, machine: MachinePort) -> tuple[Rung, Climbed] | None:
    """A rung that was under way when the machine or the agent ended, and how it ended; None where none was.

    In the boot in which it was begun it may still be coming: then there is nothing to tell yet.
    """
    path = state / INTENT
    try:
        told = json.loads(path.read_bytes())
        rung = Rung(device=told["device"], rung=told["rung"], epoch=told["epoch"])
        before = told["boot"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        path.unlink(missing_ok=True)
        return None
    boot = machine.boot()
    if boot == before:
        return None
    return rung, Climbed(outcome="done", why=f"boot {before} is over, {boot} runs")
