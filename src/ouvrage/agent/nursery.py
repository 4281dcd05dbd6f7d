"""Where supervisors are born: a process with everything loaded and one thread, which only forks.

Decides that starting an attempt costs a fork and not a start of Python, and that nobody forks from a
process with threads. It ends with the runner that began it; the supervisors it made do not: each has
a session of its own and ignores the signals that end a service.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from ouvrage.adapters import bubblewrap
from ouvrage.agent.enclosure import ETC
from ouvrage.meter.feed import command

_LONGEST = 4096
_LOADED = ("ouvrage.agent.supervisor", "ouvrage.meter.account", "ouvrage.meter.topology")
"""Loaded once, before the forks."""

_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)


class Nursery:
    """The runner's end. The process is started anew should it ever be gone."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._begin()

    def _begin(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = command("ouvrage.agent.nursery", str(self._state), str(theirs.fileno()))
        self._process = subprocess.Popen(
            words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        self.pid = self._process.pid
        theirs.close()

    def start(self, attempt: str) -> None:
        """Have a supervisor made for an attempt whose order is on the disk."""
        try:
            self._socket.send(attempt.encode())
        except OSError:
            self.close()
            self._begin()
            self._socket.send(attempt.encode())

    def close(self) -> None:
        """Let it end; the supervisors go on."""
        self._socket.close()
        self._process.wait()


def main(arguments: Sequence[str]) -> int:
    """The process: fork for every order until the runner is gone."""
    state, orders = Path(arguments[0]), socket.socket(fileno=int(arguments[1]))
    for name in _LOADED:
        importlib.import_module(name)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a supervisor
    bubblewrap.make_etc(state / ETC)
    gc.freeze()
    while data := orders.recv(_LONGEST):
        if not os.fork():
            orders.close()
            be_supervisor(state, data.decode())
    return 0


def be_supervisor(state: Path, attempt: str) -> None:
    """In the forked child: a life of its own. Never returns."""
    from ouvrage.agent.supervisor import supervise

    code = 1
    try:
        os.setsid()
        os.chdir("/")
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        quiet = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in (0, 1, 2):
            os.dup2(quiet, fd)
        supervise(state, attempt)
        code = 0
    except BaseException:  # noqa: BLE001 -- a forked child must not return
        sys.stderr.write(traceback.format_exc())
    finally:
        os._exit(code)
