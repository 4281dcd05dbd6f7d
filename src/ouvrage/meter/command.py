"""``ouvrage run``: from a command line to the exit code of the command.

Puts the parts in order: check everything, start the command, stand by, finish, tell. A fault of the
meter's own (no room on the disk, a home that cannot be written) is a warning; the command runs and
its exit code stays. What is needed only beside the running command is imported when it runs.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ouvrage.adapters.clock import monotonic_us, new_id, now_us
from ouvrage.meter import launch, voice
from ouvrage.meter.inbox import Inbox
from ouvrage.meter.options import Options, parser, read_options
from ouvrage.meter.pump import Pump
from ouvrage.meter.supervisor import Ending, Mask, Signals, Supervisor, die_like
from ouvrage.meter.wiring import Action, Wiring

if TYPE_CHECKING:
    from ouvrage.meter.matcher import Matcher

_SWITCH_S = 0.0005
"""The moment of the command's end is noted by a thread: it must not wait for an import."""

__all__ = ["main", "parser", "stand_beside"]


def main(arguments: Sequence[str]) -> int:
    """Run a command under the meter; its exit code, or 2, 126, 127 as a shell would say.

    Where a signal killed the command, this process dies of the same signal. Raises
    ``OuvrageError`` where nothing was started.
    """
    options = read_options(arguments)
    path = launch.find_command(options.command[0])

    def start(socket: str, actions: Sequence[Action], mask: Mask, own_session: bool) -> int:
        block = launch.environment(socket)
        return launch.spawn(path, options.command, block, actions, mask, own_session=own_session)

    ending = stand_beside(options, new_id(), start)
    if ending.signal:
        die_like(ending.signal)
    return ending.exit_code or 0


def stand_beside(
    options: Options, run: str, start: Callable[[str, Sequence[Action], Mask, bool], int]
) -> Ending:
    """Keep the account of a command that ``start`` starts, as the run of this id, until it ends.

    ``start`` gets the address that the program may report to, and what ``Spawn`` gets. Whatever it
    makes of the command (a sandbox around it), it gives the process to wait for.
    """
    sys.setswitchinterval(_SWITCH_S)
    gc.disable()  # until everything is imported, of which nothing ever goes: see the sampler
    matcher = _matcher(options)
    wiring = Wiring()
    supervisor = Supervisor(Signals(), wiring)
    inbox = Inbox()
    inbox_trouble = _open(inbox)
    onlooker = Onlooker(supervisor)
    started_us, origin_us = now_us(), monotonic_us()
    try:
        child = supervisor.start(partial(start, inbox.address))
        pumps = wiring.pumps(supervisor.stop, onlooker.seen)
        for pump in pumps:
            pump.start()
        account = None
        try:
            from ouvrage.meter.account import Account

            account = Account(options, run, started_us, origin_us, supervisor, inbox, matcher)
            if inbox_trouble:
                account.note("inbox/not-open", f"the program cannot report: {inbox_trouble}")
            ending = account.keep(onlooker, pumps, child)
        except Exception as error:  # noqa: BLE001 -- the command must not feel a fault of ours
            voice.warn(
                "meter/failed", f"this run is not accounted: {type(error).__name__}: {error}"
            )
            ending = _only_stand_by(supervisor, pumps)
    finally:
        supervisor.release_terminal()
        inbox.close()
        if matcher:
            matcher.close()
    if account:
        account.tell()
    return ending


def _matcher(options: Options) -> Matcher | None:
    """The process for a pattern of the user's: made while there is nothing it could inherit."""
    if options.unit_regex is None:
        return None
    from ouvrage.meter.matcher import Matcher

    return Matcher(options.unit, options.unit_regex)


def _only_stand_by(supervisor: Supervisor, pumps: list[Pump]) -> Ending:
    """Without an account: carry the output, serve signals, end as the command ends."""
    from ouvrage.adapters.kept_file import Room
    from ouvrage.adapters.process_tree import ProcessTree

    tree = ProcessTree(os.getpid(), Room(0))
    supervisor.wait(tree)
    supervisor.drain(pumps)
    return supervisor.reap(tree)


class Onlooker:
    """Dates what the command prints, and keeps it until somebody is there to look at it.

    ``fault`` says why nobody looks any more.
    """

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._lock = threading.Lock()
        self.fault: str | None = None
        self._waiting: list[tuple[str, bytes, int]] = []
        self._look: Callable[[str, bytes, int], None] = lambda *seen: self._waiting.append(seen)

    def seen(self, stream: str, data: bytes) -> None:
        """Bytes that went by just now, in whichever thread they did."""
        moment = self._supervisor.moment()
        with self._lock:
            try:
                self._look(stream, data, moment)
            except Exception as error:  # noqa: BLE001 -- the output must go on whatever it holds
                self.fault = self.fault or f"{type(error).__name__}: {error}"
                self._look = _look_away

    def attend(self, look: Callable[[str, bytes, int], None]) -> None:
        """From now on ``look`` gets everything, and first what waited; one call at a time."""
        with self._lock:
            self._look = look
            for seen in self._waiting:
                look(*seen)
            self._waiting = []


def _look_away(_stream: str, _data: bytes, _moment: int) -> None:
    """Nothing is looked at any more."""


def _open(inbox: Inbox) -> str | None:
    try:
        inbox.open()
    except OSError as error:
        return error.strerror or str(error)
    return None
