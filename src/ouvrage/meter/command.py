"""``ouvrage run``: from a command line to the exit code of the command.

Puts the parts in order: check everything, open the spool, start, stand by, finish, tell. A fault of
the meter's own (no room on the disk, a home that cannot be written) is a warning; the command runs
and its exit code stays. ``interrupted`` is a run that was asked to end (SIGINT, SIGTERM, SIGHUP or
SIGQUIT from outside, or Ctrl-C or Ctrl-\\ typed) and did not exit with 0, or that such a signal killed.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

import ouvrage
from ouvrage.adapters.clock import monotonic_us, new_id, now_us
from ouvrage.adapters.home import home, make_private, source_id, spool_dir
from ouvrage.base.errors import OuvrageError
from ouvrage.meter import launch
from ouvrage.meter.inbox import Inbox
from ouvrage.meter.options import Options, parser, read_options
from ouvrage.meter.pump import Pump, carry_on
from ouvrage.meter.record import Record
from ouvrage.meter.sampler import PERIOD_US, Instruments, Sampler
from ouvrage.meter.spool_file import SpoolFile
from ouvrage.meter.supervisor import Ending, Signals, Supervisor, die_like
from ouvrage.meter.wiring import Wiring

__all__ = ["main", "parser"]


def main(arguments: Sequence[str]) -> int:
    """Run a command under the meter; its exit code, or 2, 126, 127 as a shell would say.

    Where a signal killed the command, this process dies of the same signal. Raises
    ``OuvrageError`` where nothing was started.
    """
    options = read_options(arguments)
    path = launch.find_command(options.command[0])
    metered = _Metered(options)
    ending = metered.run(path)
    metered.tell(ending)
    if ending.signal:
        die_like(ending.signal)
    return ending.exit_code or 0


class _Metered:
    """One run and what the meter keeps of it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._wiring = Wiring()
        self._signals = Signals()
        self._instruments = Instruments()
        self._recogniser = self._make_recogniser()
        self._lock = threading.Lock()
        self._run = new_id()
        # From here on it is the run's time: only what must know its start comes after this.
        self._started = now_us()
        self._origin = monotonic_us()
        self._spool = self._open_spool()
        self._record = Record(self._spool)
        self._inbox = self._open_inbox()

    def _open_spool(self) -> SpoolFile:
        """The spool in the home; where that cannot be, one in memory, for the summary alone."""
        where = home()
        try:
            source = source_id(where)
            spool = SpoolFile(make_private(spool_dir(where)) / f"{self._run}.ndjson")
            spool.open(self._header(source))
        except (OSError, OuvrageError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            _warn("spool/not-kept", f"this run will not be recorded in {where}: {reason}")
            spool = SpoolFile(None)
            spool.open(self._header("0" * 32))
        return spool

    def _header(self, source: str) -> dict[str, Any]:
        options = self._options
        price = options.price
        return {
            "k": "run",
            "v": 1,
            "run": self._run,
            "source": source,
            "started_us": self._started,
            "label": options.label,
            "command": [_readable(word) for word in options.command],
            "cwd": _readable(_directory()),
            "price": price
            and {"amount": price.amount, "currency": price.currency, "per": price.per},
            "unit": options.unit,
            "period_us": PERIOD_US,
            "host": self._instruments.describe_host(),
            "meter": ouvrage.__version__,
        }

    def _open_inbox(self) -> Inbox:
        inbox = Inbox(self._record, self._origin)
        try:
            inbox.open()
        except OSError as error:
            text = f"units and spans from code cannot be received: {error.strerror}"
            self._record.note(0, "inbox/not-open", text)
        return inbox

    def _make_recogniser(self) -> Any:
        from ouvrage.metering.recognise import Recogniser

        return Recogniser(self._options.unit, self._options.unit_regex)

    def _now(self) -> int:
        return monotonic_us() - self._origin

    def _seen(self, stream: str, data: bytes) -> None:
        """Look at what went by, in whichever thread it did."""
        t = self._now()
        with self._lock:
            for mark in self._recogniser.feed(stream, data, t):
                self._record.mark(mark.name, mark.via, None, mark.mark, mark.n, mark.t)

    def run(self, path: str) -> Ending:
        """Start, stand by, finish. Raises ``OuvrageError`` where it cannot be started."""
        supervisor = Supervisor(self._signals, self._wiring, self._instruments.tree)
        block = launch.environment(self._inbox.address)
        try:
            child = supervisor.start(path, self._options.command, block)
        except OuvrageError:
            self._spool.discard()
            self._inbox.close()
            raise
        try:
            return self._stand_by(supervisor, child)
        finally:
            supervisor.release_terminal()
            self._inbox.close()

    def _stand_by(self, supervisor: Supervisor, child: int) -> Ending:
        pumps = self._wiring.pumps(supervisor.stop, self._seen)
        sampler = Sampler(
            self._record, self._inbox, self._instruments, self._origin, supervisor.stop
        )
        for thread in (*pumps, sampler):
            thread.start()
        ended = supervisor.wait() - self._origin
        sampler.join()
        sampler.receive()
        sampler.sample(ended)
        drained = supervisor.drain(pumps)
        ending = supervisor.reap()
        outlived = self._instruments.tree.living(without=child)
        if drained:
            self._leave_behind([pump for pump in pumps if pump.source >= 0])
        self._finish(ending, ended, outlived, supervisor.asked_to_end, pumps)
        return ending

    def _leave_behind(self, open_pumps: list[Pump]) -> None:
        if open_pumps:
            sys.stdout.flush()
            sys.stderr.flush()
            carry_on(open_pumps)

    def _finish(
        self, ending: Ending, ended: int, outlived: int, asked: bool, pumps: list[Pump]
    ) -> None:
        for mark in self._recogniser.flush(ended):
            self._record.mark(mark.name, mark.via, None, mark.mark, mark.n, mark.t)
        for pump in pumps:
            if pump.trouble:
                text = f"{pump.stream} could not be written: {pump.trouble}"
                self._record.note(ended, "output/refused", text)
        if self._inbox.refused:
            text = f"{self._inbox.refused} messages from the program did not fit and were dropped"
            self._record.note(ended, "inbox/refused", text)
        if self._spool.trouble:
            self._record.note(ended, "spool/disk-full", self._spool.trouble)
        self._record.end(
            {
                "t": ended,
                "exit_code": ending.exit_code,
                "signal": ending.signal,
                "interrupted": (asked and ending.exit_code != 0) or ending.killed_by_request,
                "cpu_user_us": ending.user_us,
                "cpu_system_us": ending.system_us,
                "outlived": outlived,
            }
        )
        if self._spool.trouble:
            _warn("spool/disk-full", f"the record of this run is incomplete: {self._spool.trouble}")

    def tell(self, ending: Ending) -> None:
        """The summary and the report; the spool is released afterwards."""
        options = self._options
        try:
            if options.report or not options.quiet:
                from ouvrage.meter.summary import Summary

                summary = Summary(list(self._spool.lines()), now_us())
                if not options.quiet:
                    summary.show(plain=options.plain)
                if options.report:
                    summary.write(options.report)
        except (OuvrageError, OSError) as error:
            code = error.code if isinstance(error, OuvrageError) else "report/not-written"
            _warn(code, str(error))
        finally:
            self._spool.close()


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _readable(text: str) -> str:
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def _warn(code: str, text: str) -> None:
    try:
        sys.stderr.write(f"ouvrage: warning[{code}]: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return
