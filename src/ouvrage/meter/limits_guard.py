"""The process that puts power limits back, whatever becomes of the one that changed them.

It waits at a pipe. A byte means that the work is done, the pipe's end that its writer is gone, by a
crash or by ``kill -9``; it does the same for both. It is in a session of its own and deaf to what
ends a program, so that a closed terminal or Ctrl-C does not reach it. It also holds the claim on the
cards until their limits are back: nobody can take a changed limit for the one to return to.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ouvrage.base.errors import OuvrageError
from ouvrage.meter.feed import command
from ouvrage.meter.limits import TRIES, Driver, put_back

_DEAF_TO = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)


def claim(uuids: Sequence[str]) -> list[socket.socket]:
    """Be the only one on this machine who changes these cards' limits, as long as these are open.

    Names in the kernel's abstract space: gone with their last holder, however it ends. Raises
    ``OuvrageError`` ``tune/busy``.
    """
    held: list[socket.socket] = []
    for uuid in sorted(uuids):
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            name.bind(f"\0ouvrage-power-limit-{uuid}")
        except OSError:
            for each in (name, *held):
                each.close()
            raise OuvrageError(
                "tune/busy", f"another ouvrage tune is changing the power limit of {uuid}",
                hint="wait for its end; it puts the limit back",
            ) from None  # fmt: skip
        held.append(name)
    return held


class Guard:
    """Started before the first limit is changed; ``finish`` has the limits put back, once."""

    def __init__(self, home: Path, driver: Driver, held: Sequence[socket.socket]) -> None:
        self._home = home
        self._driver = driver
        self._troubles: list[str] | None = None
        self._process = subprocess.Popen(
            command("ouvrage.meter.limits_guard", str(home), str(driver.deadline_s)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[each.fileno() for each in held],
        )
        self._held = held

    def ready(self) -> bool:
        """Whether it stands by: only then may a limit be changed."""
        stdout = self._process.stdout
        assert stdout
        readable, _, _ = select.select([stdout], [], [], self._driver.deadline_s)
        return bool(readable) and stdout.readline() == b"ready\n"

    def finish(self) -> list[str]:
        """Have everything put back; what did not go, in words. Asked again, the same answer."""
        if self._troubles is None:
            self._troubles = self._finish()
            for each in self._held:
                each.close()
        return self._troubles

    def _finish(self) -> list[str]:
        cards = len(self._held)
        with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
            patience_s = 5 + TRIES * cards * self._driver.deadline_s
            said, _ = self._process.communicate(b"end", timeout=patience_s)
            return list(json.loads(said))
        return put_back(self._home, self._driver)  # the guard itself was killed


def main(arguments: Sequence[str]) -> int:
    """Stand by until told, or until nobody is left who could tell; then put everything back."""
    signal.pthread_sigmask(signal.SIG_SETMASK, _DEAF_TO)
    home, driver = Path(arguments[0]), Driver(float(arguments[1]))
    os.write(1, b"ready\n")
    told = bool(os.read(0, 1))
    troubles = put_back(home, driver)
    if not told:
        words = "\n".join(f"error[tune/not-restored]: {trouble}" for trouble in troubles)
        sys.stderr.write(
            f"{words or 'ouvrage tune was killed; the power limits are back as they were'}\n"
        )
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(troubles).encode())
    return 1 if troubles else 0
