"""The watch beside a runner: a process of its own, started again where it ends, ended with the runner.

Decides that neither can hold up the other: the runner asks nothing of the watch, and the watch speaks to the server by
a process of its own, with the key that the runner was given when it enrolled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import structlog

from ouvrage.adapters.clock import monotonic_us
from ouvrage.base.time import SECOND

_FIRST_S, _LONGEST_S, _ENDS_WITHIN_S = 1.0, 60.0, 10.0

_log = structlog.get_logger()


class KeptWatch:
    """Keeps a watch running in a thread of its own, until ``stop``."""

    def __init__(self, state: Path, node: str, server: str, ca: str | None) -> None:
        self._command = [sys.executable, "-m", "ouvrage", "agent", "run", "--state", str(state)]
        self._command += ["--name", node, "--report-to", server, "--with-parent", str(os.getpid())]
        self._command += ["--ca", ca] if ca else []
        self._ending = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="watch", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Tell it to end, and wait a while for that."""
        self._ending.set()
        child = self._child
        if child is not None and child.poll() is None:
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(_ENDS_WITHIN_S)

    def _keep(self) -> None:
        pause_s = _FIRST_S
        while not self._ending.is_set():
            began = monotonic_us()
            self._child = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
            if self._ending.is_set():
                self._child.terminate()
            code = self._child.wait()
            lasted_s = (monotonic_us() - began) / SECOND
            pause_s = _FIRST_S if lasted_s > _LONGEST_S else min(pause_s * 2, _LONGEST_S)
            if not self._ending.is_set():
                _log.warning("watch.ended", code=code, again_in_s=pause_s)
            self._ending.wait(pause_s)
