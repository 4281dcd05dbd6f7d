"""A Debian machine under QEMU, every instruction carried out by a program: no KVM, no rights, no network.

Decides that the disk is never written (each start finds it as it was made), that what the machine's console says is kept in a file
for whoever looks for what went wrong, and that commands go in and their words come out by a virtual serial port, so that neither a
network nor a login is needed. Everything takes ten to thirty times as long as on the machine outside; patience is counted so.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .image import Image

MEMORY_MIB, CORES = 2048, 2
START_S = 420
_BEYOND_S = 30
_WORDS = (
    "console=ttyS0 root=/dev/vda rw quiet systemd.show_status=yes systemd.unified_cgroup_hierarchy=1"
    " mitigations=off random.trust_cpu=on"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a script ended inside: its exit code, None where its time was over; both its outputs as one text."""

    code: int | None
    said: str


class Machine:
    """One that stands. Scripts are carried out one after the other, by root."""

    def __init__(self, link: socket.socket, console: Path) -> None:
        self._link = link
        self._rest = b""
        self.console = console

    def run(self, script: str, *, seconds: float = 120, stdin: str = "") -> Ran:
        """Have bash carry it out. ``TimeoutError`` where the machine itself does not answer."""
        order = {"script": script, "stdin": stdin, "seconds": seconds}
        self._link.sendall(json.dumps(order).encode() + b"\n")
        told = self.told(seconds + _BEYOND_S)
        return Ran(code=told["code"], said=told["said"])

    def good(self, script: str, *, seconds: float = 120, stdin: str = "") -> str:
        """What it said, where it ended well; a failed assertion with its words where not."""
        ran = self.run(script, seconds=seconds, stdin=stdin)
        assert ran.code == 0, f"{script}\n{ran.code}: {ran.said[-4000:]}"
        return ran.said

    def until(self, script: str, *, seconds: float = 240) -> str:
        """Ask inside, each second, until it ends well."""
        return self.good(
            f"end=$((SECONDS+{seconds:.0f})); until out=$({{ {script}\n}} 2>&1); do"
            ' [ $SECONDS -lt $end ] || { echo "$out"; exit 1; }; sleep 1; done; echo "$out"',
            seconds=seconds + _BEYOND_S,
        )  # fmt: skip

    def told(self, seconds: float) -> dict[str, object]:
        """The next line that comes out."""
        end = time.monotonic() + seconds
        while b"\n" not in self._rest:
            self._link.settimeout(max(0.1, end - time.monotonic()))
            try:
                more = self._link.recv(1 << 16)
            except TimeoutError:
                raise TimeoutError(
                    f"the machine did not answer; its console: {self.words()}"
                ) from None
            if not more:
                raise TimeoutError(f"the machine ended; its console: {self.words()}")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def words(self) -> str:
        """The last that its console said."""
        return self.console.read_text("utf-8", "replace")[-3000:]


@contextlib.contextmanager
def started(image: Image, at: Path) -> Iterator[Machine]:
    """A machine from its start until it answers; ended with the block, without being asked."""
    console, path = at / "console.txt", str(at / "shell.sock")
    words = [
        "nice", "-n", "5", "qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max", "-smp", str(CORES), "-m", str(MEMORY_MIB),
        "-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{console}",
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", _WORDS,
        "-drive", f"file={image.disk},if=virtio,format=raw,snapshot=on", "-device", "virtio-rng-pci",
        "-device", "virtio-serial-pci", "-chardev", f"socket,id=shell,path={path},server=on,wait=off",
        "-device", "virtserialport,chardev=shell,name=shell",
    ]  # fmt: skip
    console.touch()
    with open(at / "qemu.txt", "wb") as log:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(at)},
        )
    try:
        with _connected(path, process, at / "qemu.txt") as link:
            machine = Machine(link, console)
            machine.told(START_S)
            yield machine
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _connected(path: str, process: subprocess.Popen[bytes], log: Path) -> socket.socket:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        link = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            link.connect(path)
            return link
        link.close()
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise TimeoutError("QEMU did not open its socket")
