"""Where supervisors are born: a process with everything loaded and one thread, which only forks.

Decides that starting an attempt costs a fork and not a start of Python, and that nobody forks from a
process with threads. It ends with the runner that began it; the supervisors it made do not: each has
a session of its own and ignores the signals that end a service.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from pathlib import Path

_LONGEST = 4096
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)


class Nursery:
    """The runner's end. Made before the runner has any thread."""

    def __init__(self, state: Path) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        self.pid = os.fork()
        if not self.pid:
            ours.close()
            _serve(state, theirs)
        theirs.close()

    def start(self, attempt: str) -> None:
        """Have a supervisor made for an attempt whose order is on the disk."""
        self._socket.send(json.dumps(attempt).encode())

    def close(self) -> None:
        """Let it end; the supervisors go on."""
        self._socket.close()
        os.waitpid(self.pid, 0)


def _serve(state: Path, orders: socket.socket) -> None:
    """Fork for every order until the runner is gone; never returns."""
    try:
        import ouvrage.agent.supervisor
        import ouvrage.meter.account
        import ouvrage.meter.topology  # noqa: F401

        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a supervisor
        while data := orders.recv(_LONGEST):
            if not os.fork():
                orders.close()
                be_supervisor(state, json.loads(data))
    finally:
        os._exit(0)


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
