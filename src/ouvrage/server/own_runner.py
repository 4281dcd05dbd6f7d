"""The runner of the server's own machine, as a child of the server.

Decides that it is enrolled by a one-time token over its standard input, so that the token stands in no file and no argument; that it is
started again, later and later, where it ends; and that it ends with the server, however that ends, while the jobs it watches over go on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import structlog

from ouvrage.server.context import Platform
from ouvrage.server.credentials import new_secret
from ouvrage.store.platform.people import EnrolmentRow, add_enrolment

DIRECTORY = "agent"
ENROLLED = "node.json"
"""What the runner keeps in its directory once it has a key of its own."""
_FIRST_PAUSE, _LONGEST_PAUSE, _ENDS_WITHIN = 1.0, 30.0, 20.0


class OwnRunner:
    """Keeps the runner running, in a thread of its own, until ``stop``."""

    def __init__(
        self,
        platform: Platform,
        url: str,
        ca: Path | None,
        see: Sequence[Path] = (),
        *,
        watch: bool = True,
    ) -> None:
        self._platform = platform
        self._state = platform.state_dir / DIRECTORY
        self._command = [sys.executable, "-m", "ouvrage", "agent", "run"]
        self._command += ["--state", str(self._state), "--server", url, "--enrol-file", "-"]
        # Killed, a server ends nothing itself; a runner left behind would keep the next server's out.
        self._command += ["--with-parent", str(os.getpid())]
        self._command += ["--ca", str(ca)] if ca else []
        self._command += [] if watch else ["--no-watch"]
        self._command += [word for path in see for word in ("--see", str(path))]
        self._ending = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="own-runner", daemon=True)
        self._log = structlog.get_logger("ouvrage.server")

    def start(self) -> None:
        """Begin; the runner waits until the server answers."""
        self._thread.start()

    def stop(self) -> None:
        """Tell the runner to end, and wait for it; its jobs go on."""
        self._ending.set()
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(_ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                self._child.kill()
        self._thread.join(_ENDS_WITHIN)

    def _keep(self) -> None:
        pause = _FIRST_PAUSE
        while not self._ending.is_set():
            began = self._platform.monotonic()
            self._child = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=sys.stderr)
            if self._ending.is_set():
                self._child.terminate()
            self._child.communicate(self._token())
            lasted_s = (self._platform.monotonic() - began) / 1e6
            pause = _FIRST_PAUSE if lasted_s > _LONGEST_PAUSE else min(pause * 2, _LONGEST_PAUSE)
            if not self._ending.is_set():
                self._log.warning("runner.ended", code=self._child.returncode, again_in_s=pause)
            self._ending.wait(pause)

    def _token(self) -> bytes:
        """A one-time token where the runner has no key yet, else nothing."""
        if (self._state / ENROLLED).exists():
            return b""
        made = new_secret(self._platform, "enrolment")
        with self._platform.writing() as tx:
            row = EnrolmentRow(
                enrolment=made.id,
                hash=made.hash,
                created_us=tx.now_us,
                expires_us=tx.now_us + self._platform.settings.enrolment_us,
            )
            add_enrolment(tx.connection, row)
        return f"{made.text}\n".encode("ascii")
