"""Repairs by the machine's own commands: nvidia-smi, systemctl, dcgmi, and who has which device file open in /proc.

Decides how each is called and what its end means. Nothing here runs in a loop: it is called for one rung at a time. A command that does not
end within its deadline is left alone, not killed, where it is a client of the driver's.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.machine_port import Holder, NotDone

RESET_S, SERVICE_S, ASK_S, DIAGNOSE_S = 120.0, 60.0, 20.0, 1800.0
_PROBE = b"ouvrage.agent.probing"
_LINK = re.compile(r"NV\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: its exit code, None where it did not in time, and what it said."""

    code: int | None
    out: str


Call = Callable[[Sequence[str], float], Ended]


def call(words: Sequence[str], within_s: float) -> Ended:
    """Run a command; one that takes too long is let go, and lives on by itself."""
    try:
        with subprocess.Popen(
            list(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        ) as process:  # fmt: skip
            try:
                out, _ = process.communicate(timeout=within_s)
            except subprocess.TimeoutExpired:
                # Waiting at the end of the block would wait for ever: what hangs in the driver can't be ended.
                process.returncode = -1
                assert process.stdout is not None
                process.stdout.close()
                return Ended(code=None, out="")
            return Ended(code=process.returncode, out=out)
    except OSError as error:
        return Ended(code=127, out=f"{words[0]}: {error.strerror}")


class MachineCommands:
    """This machine. ``root`` is where ``proc`` stands; ``run`` calls a command."""

    def __init__(self, root: str = "/", run: Call = call) -> None:
        self._root = Path(root)
        self._run = run

    def boot(self) -> str:
        """The kernel's boot id."""
        return (self._root / "proc/sys/kernel/random/boot_id").read_text("ascii").strip()

    def holders(self, device: str) -> list[Holder]:
        """Who has a GPU's device file open, by /proc; a process that may not be looked into is not seen."""
        number = self._numbers().get(device)
        if number is None:
            raise NotDone(f"{device} has no device file here")
        processes = sorted((self._root / "proc").glob("[0-9]*"), key=lambda path: int(path.name))
        file = f"/dev/nvidia{number}"
        return [_holder(each) for each in processes if self._has_open(each, file)]

    def _has_open(self, process: Path, file: str) -> bool:
        try:
            return any(os.readlink(each) == file for each in (process / "fd").iterdir())
        except OSError:
            return False

    def _numbers(self) -> dict[str, int]:
        """Each GPU's UUID and the number of its device file, as the driver lists them in /proc."""
        found: dict[str, int] = {}
        for path in sorted((self._root / "proc/driver/nvidia/gpus").glob("*/information")):
            text = path.read_text("utf-8", "replace")
            uuid = re.search(r"GPU UUID:\s*(\S+)", text)
            minor = re.search(r"Device Minor:\s*(\d+)", text)
            if uuid and minor:
                found[uuid[1]] = int(minor[1])
        return found

    def tied(self, device: str) -> list[str]:
        """The GPUs that ``nvidia-smi topo`` shows NVLinks to."""
        numbers = self._numbers()
        if len(numbers) < 2:
            return []
        names = {number: uuid for uuid, number in numbers.items()}
        links = nvlinks(self._good(["nvidia-smi", "topo", "-m"], ASK_S))
        return [names[n] for n in links.get(numbers.get(device, -1), ()) if n in names]

    def runs_service(self, name: str) -> bool:
        """Whether a systemd unit is active."""
        return self._run(["systemctl", "is-active", "--quiet", name], ASK_S).code == 0

    def stop_service(self, name: str) -> bool:
        """Stop a systemd unit that is active."""
        if not self.runs_service(name):
            return False
        self._good(["systemctl", "stop", name], SERVICE_S)
        return True

    def start_service(self, name: str) -> None:
        """Start a systemd unit."""
        self._good(["systemctl", "start", name], SERVICE_S)

    def reset(self, devices: list[str]) -> None:
        """``nvidia-smi --gpu-reset``."""
        self._good(["nvidia-smi", "--gpu-reset", "-i", ",".join(devices)], RESET_S)

    def diagnose(self, device: str | None) -> str:
        """DCGM's diagnostic of level 3, where it is installed."""
        words = ["dcgmi", "diag", "-r", "3"]
        if device is not None:
            number = self._numbers().get(device)
            if number is None:
                raise NotDone(f"{device} has no device file here")
            words += ["-i", str(number)]
        self._good(words, DIAGNOSE_S)
        return "dcgmi diag -r 3 passed"

    def reboot(self) -> None:
        """``systemctl reboot``."""
        self._good(["systemctl", "reboot"], SERVICE_S)

    def _good(self, words: list[str], within_s: float) -> str:
        ended = self._run(words, within_s)
        if ended.code == 0:
            return ended.out
        how = f"did not end within {within_s:g} s" if ended.code is None else f"exit {ended.code}"
        said = " ".join(ended.out.split())[-200:]
        raise NotDone(f"{' '.join(words)}: {how}" + (f": {said}" if said else ""))


def nvlinks(text: str) -> dict[int, list[int]]:
    """Which GPUs have NVLinks to which, by their numbers, from the matrix of ``nvidia-smi topo -m``."""
    lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() if line.strip()]
    if not lines:
        return {}
    columns = [int(name[3:]) for name in lines[0].split() if re.fullmatch(r"GPU\d+", name)]
    found: dict[int, list[int]] = {}
    for line in lines[1:]:
        first, *cells = line.split()
        if re.fullmatch(r"GPU\d+", first):
            pairs = zip(columns, cells, strict=False)
            found[int(first[3:])] = [other for other, cell in pairs if _LINK.fullmatch(cell)]
    return found


def _holder(process: Path) -> Holder:
    try:
        name = (process / "comm").read_text("utf-8", "replace").strip()
        ours = _PROBE in (process / "cmdline").read_bytes()
    except OSError:
        name, ours = "?", False
    return Holder(pid=int(process.name), name=name, ours=ours)
