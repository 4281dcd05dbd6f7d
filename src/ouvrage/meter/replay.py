"""Puts a load on a server and times every request: as it came in the trace, or so many at once.

Decides when each request is sent. In an open loop that is its moment, whether or not earlier ones
are answered, since people do not wait for one another; what is sent late because this client could
not keep up is told as lag and never hidden in the latency. In a closed loop the next follows an
answer. A thread for each request under way; the main thread sends, ends what is overdue, and
writes what has ended to the spool, so that Ctrl-C and a kill keep what was measured.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.openai_server import Endpoint, Exchange
from ouvrage.base.time import SECOND
from ouvrage.meter.spool_file import SpoolFile
from ouvrage.metering.arrivals import Arrival
from ouvrage.model.serving import REQUEST_COLUMNS

MOST_AT_ONCE = 1024
GROUPS, LEAST_GROUP = 30, 10
"""Finished requests are marked in so many groups, of at least ten: the time of a group over its
number is what one request takes of the server, while the time between two answers is chance."""
_LOOK_US = 200_000
_FLUSH_US = 1_000_000
_MOST_A_LINE = 500
_FAREWELL_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be sent. ``concurrency`` None: open loop. Nothing is sent after ``until_us``."""

    arrivals: Sequence[Arrival]
    concurrency: int | None
    until_us: int | None
    timeout_us: int


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far it is; ``due_us`` is when the last request will be sent, None where nobody knows."""

    now_us: int
    sent: int
    planned: int
    under_way: int
    failed: int
    late_us: int
    due_us: int | None


def _most_at_once() -> int:
    """As many as there are descriptors for: a request without one would pass for unreachable."""
    return max(1, min(MOST_AT_ONCE, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 64))


class _Sent:
    """A request under way."""

    def __init__(self, exchange: Exchange, arrival: Arrival, scheduled_us: int | None) -> None:
        self.exchange = exchange
        self.arrival = arrival
        self.scheduled_us = scheduled_us


class Replay:
    """One load on one server; ``origin`` is the monotonic moment at which it begins."""

    def __init__(
        self, endpoint: Endpoint, plan: Plan, spool: SpoolFile, tell: Callable[[Progress], None]
    ) -> None:
        self.origin = monotonic_us()
        self.interrupted = False
        self.succeeded = self.failed = self.sent = self.disbelieved = 0
        self.last_us = 0
        self._endpoint = endpoint
        self._plan = plan
        self._spool = spool
        self._tell = tell
        self._change = threading.Condition()
        self._under_way: set[_Sent] = set()
        self._ended: list[_Sent] = []
        self._group = max(LEAST_GROUP, -(-len(plan.arrivals) // GROUPS))
        self._in_group = self._late_us = 0
        self._flush_due = _FLUSH_US

    def run(self) -> None:
        """Send everything and wait for it; ``interrupted`` says whether somebody stopped it."""
        try:
            self._mark(0, 0)
            self._send_all()
            while self._under_way:
                self._wait(_LOOK_US, below=1)
        except KeyboardInterrupt:
            self.interrupted = True
            self._stop_all()
        self._keep()
        if self._in_group:
            self._mark(self._in_group, self.last_us)
        self.last_us = max(self.last_us, 1)
        self._spool.flush(sync=True)

    def _now(self) -> int:
        return monotonic_us() - self.origin

    def _send_all(self) -> None:
        plan = self._plan
        closed = plan.concurrency is not None
        most = plan.concurrency or _most_at_once()
        for number, arrival in enumerate(plan.arrivals):
            body = self._endpoint.body(number, arrival.tokens_in, arrival.tokens_out)
            while len(self._under_way) >= most:
                self._wait(_LOOK_US, below=most)
            due = 0 if closed else arrival.at_us
            while not self._over() and (left := due - self._now()) > 0:
                self._wait(min(left, _LOOK_US))
            if self._over():
                return
            exchange = Exchange(self._endpoint, body, plan.timeout_us, asked_out=arrival.tokens_out)
            self._send(_Sent(exchange, arrival, None if closed else arrival.at_us))

    def _over(self) -> bool:
        return self._plan.until_us is not None and self._now() >= self._plan.until_us

    def _send(self, sent: _Sent) -> None:
        self.sent += 1
        if sent.scheduled_us is not None:
            self._late_us = max(0, self._now() - sent.scheduled_us)
        with self._change:
            self._under_way.add(sent)
        try:
            threading.Thread(target=self._ask, args=(sent,), daemon=True).start()
        except RuntimeError:  # no more threads here: this one is asked in turn, and told as late
            self._ask(sent)

    def _ask(self, sent: _Sent) -> None:
        try:
            sent.exchange.run()
        finally:
            with self._change:
                self._under_way.discard(sent)
                self._ended.append(sent)
                self._change.notify()

    def _wait(self, most_us: int, below: int = 0) -> None:
        """Wait at most so long, or until fewer are under way, and look after everything else."""
        with self._change:
            self._change.wait_for(lambda: len(self._under_way) < below, most_us / SECOND)
            overdue = [sent for sent in self._under_way if sent.exchange.overdue]
        for sent in overdue:
            sent.exchange.stop("timeout")
        if self._now() >= self._flush_due or len(self._ended) >= _MOST_A_LINE:
            self._flush_due = self._now() + _FLUSH_US
            self._keep()
            self._spool.flush()
            self._tell(self._progress())

    def _progress(self) -> Progress:
        plan = self._plan
        due = plan.arrivals[-1].at_us if plan.concurrency is None else plan.until_us
        return Progress(
            now_us=self._now(),
            sent=self.sent,
            planned=len(plan.arrivals),
            under_way=len(self._under_way),
            failed=self.failed,
            late_us=self._late_us,
            due_us=due if due is None or plan.until_us is None else min(due, plan.until_us),
        )

    def _stop_all(self) -> None:
        with self._change:
            for sent in self._under_way:
                sent.exchange.stop("cancelled")
            self._change.wait_for(lambda: not self._under_way, _FAREWELL_S)

    def _keep(self) -> None:
        """Write what has ended since, and mark the groups that are full."""
        with self._change:
            ended, self._ended = self._ended, []
        if not ended:
            return
        ended.sort(key=lambda sent: sent.exchange.ended or 0)
        rows = [self._row(sent) for sent in ended]
        self.disbelieved += sum(sent.exchange.disbelieved for sent in ended)
        columns = {name: [row[name] for row in rows] for name in REQUEST_COLUMNS}
        self._spool.write({"k": "requests", "via": "replay", "c": columns})
        for row in rows:
            self._count(row)

    def _count(self, row: dict[str, Any]) -> None:
        self.last_us = max(self.last_us, row["ended_us"] or 0)
        if row["status"] != "ok":
            self.failed += 1
            return
        self.succeeded += 1
        self._in_group += 1
        if self._in_group == self._group:
            self._mark(self._in_group, self.last_us)
            self._in_group = 0

    def _mark(self, number: int, t: int) -> None:
        marks = {"mark": ["count"], "n": [number], "t": [t]}
        self._spool.write({"k": "marks", "name": "request", "via": "replay", "pid": None, **marks})

    def _row(self, sent: _Sent) -> dict[str, Any]:
        made, arrival = sent.exchange, sent.arrival
        began = made.sent

        def since(moment: int | None) -> int | None:
            return None if moment is None or began is None else moment - began

        return {
            "scheduled_us": sent.scheduled_us,
            "sent_us": None if began is None else began - self.origin,
            "ended_us": None if made.ended is None else made.ended - self.origin,
            "first_us": since(made.first),
            "last_us": since(made.last),
            "took_us": since(made.ended),
            "asked_in": arrival.tokens_in,
            "asked_out": arrival.tokens_out,
            "tokens_in": made.tokens_in,
            "tokens_cached": made.tokens_cached,
            "tokens_out": made.tokens_out,
            "counted": made.counted,
            "status": made.status or "failed",
            "http": made.http,
        }
