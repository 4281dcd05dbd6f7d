"""``ouvrage run``: from a command line to the exit code of the command.

Puts the parts in order: check everything, start the command, stand by, finish, tell. A fault of the
meter's own (no room on the disk, a home that cannot be written) is a warning; the command runs and
its exit code stays. What is needed only beside the running command is imported when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

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
    started_us, origin_us = now_us(), monotonic_us()
    try:
        child = supervisor.start(path, options.command, launch.environment(inbox.address))
        from ouvrage.meter.account import Account

        account = Account(options, started_us, origin_us, supervisor, inbox)
        if trouble:
            account.note("inbox/not-open", f"the program cannot report to the meter: {trouble}")
        ending = account.keep(wiring, child)
    finally:
        supervisor.release_terminal()
        inbox.close()
    account.tell()
    return ending


def _open(inbox: Inbox) -> str | None:
    try:
        inbox.open()
    except OSError as error:
        return error.strerror or str(error)
    return None
