"""``ouvrage run``: from a command line to the exit code of the command.

Puts the parts in order: check everything, start the command, stand by, finish, tell. A fault of the
meter's own (no room on the disk, a home that cannot be written) is a warning; the command runs and
its exit code stays. What is needed only beside the running command is imported when it runs.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence

from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.meter import launch
from ouvrage.meter.inbox import Inbox
from ouvrage.meter.options import Options, parser, read_options
from ouvrage.meter.supervisor import Ending, Signals, Supervisor, die_like
from ouvrage.meter.wiring import Wiring

_SWITCH_S = 0.0005
"""The moment of the command's end is noted by a thread: it must not wait for an import."""

__all__ = ["main", "parser"]


def main(arguments: Sequence[str]) -> int:
    """Run a command under the meter; its exit code, or 2, 126, 127 as a shell would say.

    Where a signal killed the command, this process dies of the same signal. Raises
    ``OuvrageError`` where nothing was started.
    """
    options = read_options(arguments)
    path = launch.find_command(options.command[0])
    ending = _run(options, path)
    if ending.signal:
        die_like(ending.signal)
    return ending.exit_code or 0


def _run(options: Options, path: str) -> Ending:
    sys.setswitchinterval(_SWITCH_S)
    wiring = Wiring()
    supervisor = Supervisor(Signals(), wiring)
    inbox = Inbox()
    trouble = _open(inbox)
    onlooker = Onlooker(supervisor)
    started_us, origin_us = now_us(), monotonic_us()
    try:
        child = supervisor.start(path, options.command, launch.environment(inbox.address))
        pumps = wiring.pumps(supervisor.stop, onlooker.seen)
        for pump in pumps:
            pump.start()
        from ouvrage.meter.account import Account

        account = Account(options, started_us, origin_us, supervisor, inbox)
        if trouble:
            account.note("inbox/not-open", f"the program cannot report to the meter: {trouble}")
        ending = account.keep(onlooker, pumps, child)
    finally:
        supervisor.release_terminal()
        inbox.close()
    account.tell()
    return ending


class Onlooker:
    """Dates what the command prints, and keeps it until somebody is there to look at it."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, bytes, int]] = []
        self._look: Callable[[str, bytes, int], None] = lambda *seen: self._waiting.append(seen)

    def seen(self, stream: str, data: bytes) -> None:
        """Bytes that went by just now, in whichever thread they did."""
        moment = self._supervisor.moment()
        with self._lock:
            self._look(stream, data, moment)

    def attend(self, look: Callable[[str, bytes, int], None]) -> None:
        """From now on ``look`` gets everything, and first what waited; one call at a time."""
        with self._lock:
            self._look = look
            for seen in self._waiting:
                look(*seen)
            self._waiting = []


def _open(inbox: Inbox) -> str | None:
    try:
        inbox.open()
    except OSError as error:
        return error.strerror or str(error)
    return None
