"""The account of one run, kept beside the running command: spool, samples, marks, and the end.

``interrupted`` is a run that was asked to end (SIGINT, SIGTERM, SIGHUP or SIGQUIT from outside, or
Ctrl-C or Ctrl-\\ typed) and did not exit with 0, or that such a signal killed.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import ouvrage
from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.home import home, make_private, source_id, spool_dir
from ouvrage.base.errors import OuvrageError
from ouvrage.meter.inbox import Inbox
from ouvrage.meter.options import Options
from ouvrage.meter.pump import Pump, carry_on
from ouvrage.meter.record import Record
from ouvrage.meter.sampler import PERIOD_US, Instruments, Sampler
from ouvrage.meter.spool_file import SpoolFile
from ouvrage.meter.supervisor import Ending, Supervisor
from ouvrage.meter.wiring import Wiring
from ouvrage.metering.recognise import Recogniser


class Account:
    """One run and what the meter keeps of it; made when the command has just started."""

    def __init__(
        self,
        options: Options,
        started_us: int,
        origin_us: int,
        supervisor: Supervisor,
        inbox: Inbox,
    ) -> None:
        self._options = options
        self._run = new_id()
        self._started = started_us
        self._origin = origin_us
        self._supervisor = supervisor
        self._inbox = inbox
        self._instruments = Instruments()
        self._recogniser = Recogniser(options.unit, options.unit_regex)
        self._lock = threading.Lock()
        self._spool = self._open_spool()
        if options.campaign:
            self._spool.write({"k": "campaign", "name": options.campaign})
        self._record = Record(self._spool)

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

    def _now(self) -> int:
        return self._supervisor.moment() - self._origin

    def note(self, code: str, text: str) -> None:
        """Something the meter met."""
        self._record.note(self._now(), code, text)

    def _seen(self, stream: str, data: bytes) -> None:
        """Look at what went by, in whichever thread it did."""
        t = self._now()
        with self._lock:
            for mark in self._recogniser.feed(stream, data, t):
                self._record.mark(mark.name, mark.via, None, mark.mark, mark.n, mark.t)

    def keep(self, wiring: Wiring, child: int) -> Ending:
        """Stand by until the command has ended and everything is on the disk."""
        supervisor = self._supervisor
        tree = self._instruments.tree
        tree.add(child)
        pumps = wiring.pumps(supervisor.stop, self._seen)
        sampler = Sampler(
            self._record,
            self._inbox,
            self._instruments,
            self._origin,
            supervisor,
            self._preload,
        )
        for thread in (*pumps, sampler):
            thread.start()
        ended = supervisor.wait(tree) - self._origin
        sampler.join()
        sampler.receive()
        sampler.sample()
        drained = supervisor.drain(pumps)
        ending = supervisor.reap(tree)
        outlived = tree.living()
        if drained:
            _leave_behind([pump for pump in pumps if pump.source >= 0])
        self._note_troubles(pumps)
        self._finish(ending, ended, outlived, supervisor.asked_to_end)
        return ending

    def _note_troubles(self, pumps: list[Pump]) -> None:
        for pump in pumps:
            if pump.trouble:
                self.note("output/refused", f"{pump.stream} could not be written: {pump.trouble}")
        if self._inbox.refused:
            text = f"{self._inbox.refused} messages from the program did not fit and were dropped"
            self.note("inbox/refused", text)
        if self._spool.trouble:
            self.note("spool/disk-full", self._spool.trouble)

    def _finish(self, ending: Ending, ended: int, outlived: int, asked: bool) -> None:
        for mark in self._recogniser.flush(ended):
            self._record.mark(mark.name, mark.via, None, mark.mark, mark.n, mark.t)
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

    def _preload(self) -> None:
        if self._options.report or not self._options.quiet:
            import ouvrage.meter.summary  # noqa: F401 -- so that it is there at the end

    def tell(self) -> None:
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


def _leave_behind(open_pumps: list[Pump]) -> None:
    if open_pumps:
        carry_on(open_pumps)


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _readable(text: str) -> str:
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def _warn(code: str, text: str) -> None:
    """Say it on stderr, where that still leads anywhere."""
    try:
        sys.stderr.write(f"ouvrage: warning[{code}]: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return
