"""The account of one run, kept beside the running command: spool, samples, marks, and the end.

``interrupted`` is a run that was asked to end (SIGINT, SIGTERM, SIGHUP or SIGQUIT from outside, or
Ctrl-C or Ctrl-\\ typed) and did not exit with 0, or that such a signal killed.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import ouvrage
from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import home, make_private, source_id, spool_dir
from ouvrage.base.errors import OuvrageError
from ouvrage.meter import voice
from ouvrage.meter.inbox import Inbox
from ouvrage.meter.options import Options
from ouvrage.meter.pump import Pump, carry_on
from ouvrage.meter.record import Record
from ouvrage.meter.sampler import PERIOD_US, Instruments, Sampler
from ouvrage.meter.servers import LogServer
from ouvrage.meter.spool_file import SpoolFile
from ouvrage.meter.supervisor import Ending, Supervisor
from ouvrage.meter.surroundings import Surroundings
from ouvrage.metering.recognise import Mark, Recogniser

if TYPE_CHECKING:
    from ouvrage.meter.command import Onlooker
    from ouvrage.meter.matcher import Matcher
    from ouvrage.meter.summary import Summary


class Account:
    """One run and what the meter keeps of it; made when the command has just started."""

    def __init__(
        self,
        options: Options,
        run: str,
        started_us: int,
        origin_us: int,
        supervisor: Supervisor,
        inbox: Inbox,
        matcher: Matcher | None,
    ) -> None:
        self._options = options
        self._run = run
        self._started = started_us
        self._origin = origin_us
        self._supervisor = supervisor
        self._inbox = inbox
        self._instruments = Instruments()
        self._recogniser = Recogniser(options.unit, None)
        self._matcher = matcher
        self._spool = self._open_spool()
        if options.campaign:
            self._spool.write({"k": "campaign", "name": options.campaign})
        self._record = Record(self._spool)
        self._around = Surroundings(options, self._record)
        self._around.begin()
        self._server = LogServer(self._recogniser.serving, self._record)
        if options.electricity:
            price = options.electricity
            self._record.electricity(price.amount, price.currency or "EUR")

    def _open_spool(self) -> SpoolFile:
        """The spool in the home; where that cannot be, one in memory, for the summary alone."""
        where = home()
        try:
            source = source_id(where)
            spool = SpoolFile(make_private(spool_dir(where)) / f"{self._run}.ndjson")
            spool.open(self._header(source))
        except (OSError, OuvrageError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            voice.warn("spool/not-kept", f"this run will not be recorded in {where}: {reason}")
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
            "host": {**self._instruments.describe_host(), **options.granted},
            "meter": ouvrage.__version__,
        }

    def _now(self) -> int:
        return self._supervisor.moment() - self._origin

    def note(self, code: str, text: str) -> None:
        """Something the meter met."""
        self._record.note(self._now(), code, text)

    def _look(self, stream: str, data: bytes, moment_us: int) -> None:
        self._around.look(stream, data)
        if self._matcher:
            self._matcher.feed(stream, data, moment_us - self._origin)
        else:
            self._mark(self._recogniser.feed(stream, data, moment_us - self._origin))
            self._server.keep()

    def _mark(self, marks: Iterable[Mark]) -> None:
        for mark in marks:
            self._record.mark(mark.name, mark.via, None, mark.mark, mark.n, mark.t)

    def keep(self, onlooker: Onlooker, pumps: list[Pump], child: int) -> Ending:
        """Stand by until the command has ended and everything is on the disk."""
        supervisor = self._supervisor
        tree = self._instruments.tree
        tree.add(child)
        if self._matcher:
            tree.leave_out(self._matcher.pid)
            self._matcher.attend(self._mark)
        onlooker.attend(self._look)
        sampler = Sampler(
            self._record,
            self._inbox,
            self._instruments,
            self._origin,
            supervisor,
            self._preload,
            self._options.wall_meter,
            self._options.metrics,
            ask_topology=self._options.topology is None,
        )
        sampler.start()
        ended = supervisor.wait(tree) - self._origin
        sampler.join()
        sampler.finish()
        drained = supervisor.drain(pumps)
        self._mark_the_rest(ended)
        ending = supervisor.reap(tree)
        outlived = tree.living()
        if drained:
            _leave_behind([pump for pump in pumps if pump.source >= 0])
        fault = self._matcher.fault if self._matcher else onlooker.fault
        self._note_troubles(pumps, fault)
        self._around.finish(ended)
        self._finish(ending, ended, outlived, supervisor.asked_to_end)
        return ending

    def _mark_the_rest(self, ended: int) -> None:
        if self._matcher:
            self._matcher.finish(ended)
        else:
            self._mark(self._recogniser.flush(ended))
            self._server.keep()
            for code, text in self._recogniser.notes():
                self.note(code, text)

    def _note_troubles(self, pumps: list[Pump], fault: str | None) -> None:
        if fault:
            self.note("meter/recogniser", f"units were no longer looked for: {fault}")
        for pump in pumps:
            if pump.trouble:
                self.note("output/refused", f"{pump.stream} could not be written: {pump.trouble}")
        if self._inbox.refused:
            text = f"{self._inbox.refused} messages from the program did not fit and were dropped"
            self.note("inbox/refused", text)
        if self._spool.trouble:
            self.note("spool/disk-full", self._spool.trouble)

    def _finish(self, ending: Ending, ended: int, outlived: int, asked: bool) -> None:
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
            voice.warn(
                "spool/disk-full", f"the record of this run is incomplete: {self._spool.trouble}"
            )

    def _preload(self) -> None:
        if self._options.tells:
            importlib.import_module("ouvrage.meter.summary")

    def tell(self) -> None:
        """The summary and the report; the spool is released afterwards."""
        options = self._options
        try:
            if options.tells:
                from ouvrage.meter.summary import Summary

                summary = Summary(list(self._spool.lines()), now_us())
                if not options.quiet:
                    summary.show(plain=options.plain)
                if options.report:
                    summary.write(options.report)
                self._log(summary)
        except OSError as error:
            voice.warn("report/not-written", str(error))
        except Exception as error:  # noqa: BLE001 -- the exit code is the command's, whatever we do
            voice.warn("report/failed", f"{type(error).__name__}: {error}")
        finally:
            self._spool.close()

    def _log(self, summary: Summary) -> None:
        if self._options.log_to:
            from ouvrage.meter.log_to import log_to

            for asked in self._options.log_to:
                log_to(asked, summary.json(), self._options.command, quiet=self._options.quiet)


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
