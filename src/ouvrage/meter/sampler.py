"""Once a second: read the run, take what the program reported; every five: its host, and the spool.

Of the host's and the group's counters only differences between the edges of windows are ever used,
and windows are whole multiples of ``HOST_US``: these are read at the first sample after each
multiple, at the first and at the last. What the run itself does is read with every sample. A thread of its own. A sample that comes late is recorded at the moment it really came, so a gap is
a gap. The first one is taken at once, the last one by the supervisor when the command has ended.
"""

from __future__ import annotations

import gc
import os
import select
import threading
from collections.abc import Callable
from typing import Any

from ouvrage.adapters.cgroup import Cgroup
from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.kept_file import Room
from ouvrage.adapters.process_tree import DETAIL, PROCESSES, ProcessTree, ThreadClock
from ouvrage.adapters.procfs import HostCounters, cpu_model, memory_bytes
from ouvrage.meter.energy import HostEnergy, wall_feed
from ouvrage.meter.feed import Feed
from ouvrage.meter.gpus import gpu_feed
from ouvrage.meter.inbox import Inbox
from ouvrage.meter.record import Record
from ouvrage.meter.supervisor import Supervisor
from ouvrage.meter.topology import TopologyAsk

PERIOD_US = 1_000_000
FLUSH_US = HOST_US = 5_000_000
KEPT_OPEN = 400
PRELOAD_US = 2_000_000
_NEVER = 1 << 62
_FEED = "GPUs, the meter at the wall or a server's metrics could not be looked after"


class Instruments:
    """Everything that is read: the process tree, its reporting thread, the cgroup, the host."""

    def __init__(self) -> None:
        room = self.room = Room(_descriptors_to_keep())
        self.cgroup = Cgroup(room)
        self.host = HostCounters(room)
        self.tree = ProcessTree(os.getpid(), room)
        self.emitter = ThreadClock(room)

    def read(self, *, host: bool) -> dict[str, int | None]:
        """One sample, with the host's and the group's figures or without."""
        run = {**self.tree.read(), **self.emitter.read()}
        if not host:
            return run
        return {
            **run,
            **self.host.read(),
            **self.cgroup.throttling(),
            "refaulted_bytes": self.cgroup.refaulted_bytes(),
            "cgroup_memory_bytes": self.cgroup.memory_bytes(),
        }

    def describe_host(self) -> dict[str, Any]:
        """The fields of ``model.runs.Host``."""
        return {
            "cpu_model": cpu_model(),
            "cpus_online": os.cpu_count(),
            "cpus_allowed": len(os.sched_getaffinity(0)),
            "cpu_quota_ppm": self.cgroup.cpu_quota_ppm,
            "memory_bytes": memory_bytes(),
            "memory_limit_bytes": self.cgroup.memory_limit_bytes,
            "kernel": os.uname().release,
        }


def _descriptors_to_keep() -> int:
    limit = os.sysconf("SC_OPEN_MAX")
    return max(0, min(KEPT_OPEN, limit // 2 - 32))


class Sampler(threading.Thread):
    """Samples until the supervisor's ``stop`` becomes readable.

    ``preload`` is called once, when the command has been running for two seconds: what will be
    needed at its end is imported while a core may be idle.
    """

    def __init__(
        self,
        record: Record,
        inbox: Inbox,
        instruments: Instruments,
        origin_us: int,
        supervisor: Supervisor,
        preload: Callable[[], None],
        wall: str | None = None,
        metrics: str | None = None,
        *,
        ask_topology: bool = True,
    ) -> None:
        super().__init__(name="sampler", daemon=True)
        self._record = record
        self._inbox = inbox
        self._instruments = instruments
        self._origin = origin_us
        self._supervisor = supervisor
        self._preload = preload
        self._host_due = 0
        tree = instruments.tree
        self._energy = HostEnergy(record, instruments.room)
        gpus = gpu_feed(record, tree, origin_us, PERIOD_US)
        self._feeds: list[Feed | TopologyAsk] = [gpus] if gpus else []
        if ask_topology:
            self._feeds.append(TopologyAsk(record, tree, origin_us))
        if wall:
            self._feeds.append(wall_feed(wall, record, tree, origin_us, PERIOD_US))
        if metrics:
            from ouvrage.meter.servers import MetricsFeed

            self._feeds.append(MetricsFeed(metrics, record, tree, origin_us, PERIOD_US))

    def run(self) -> None:
        """The loop; at its end every feed is asked for a last word."""
        self._guarded(self._loop)
        for feed in self._feeds:
            self._guarded(lambda feed=feed: feed.finish(self._supervisor.moment()), _FEED)

    def finish(self) -> None:
        """Take the last messages and the last sample; the thread has ended."""
        self._guarded(self.receive)
        self._guarded(lambda: self.sample(last=True))

    def _guarded(self, step: Callable[[], None], what: str = "sampling ended") -> None:
        """What breaks here is noted and ends that step, never the command."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 -- the command must not feel a fault of the meter's
            text = f"{what}: {type(error).__name__}: {error}"
            self._record.note(self._moment(), "meter/sampler", text)

    def _now(self) -> int:
        return monotonic_us() - self._origin

    def _moment(self) -> int:
        return self._supervisor.moment() - self._origin

    def _loop(self) -> None:
        poller = select.poll()
        poller.register(self._supervisor.stop, select.POLLIN)
        if self._inbox.fileno() >= 0:
            poller.register(self._inbox.fileno(), select.POLLIN)
        due = flush_due = 0
        preload_due = PRELOAD_US
        while True:
            now = self._now()
            if now >= due:
                self.sample()
                self._look_at_feeds(begin=due == 0, everything=now >= flush_due)
                due = (now // PERIOD_US + 1) * PERIOD_US
            if now >= flush_due:
                self._record.flush(sync=flush_due == 0)
                flush_due = (now // FLUSH_US + 1) * FLUSH_US
            if now >= preload_due:
                self._preload()
                preload_due = _NEVER
                gc.freeze()
                gc.enable()
            wait_ms = max(0, due - self._now() + 999) // 1000
            ready = [fd for fd, _ in poller.poll(wait_ms)]
            if self._inbox.fileno() in ready:
                self.receive()
            if self._supervisor.stop in ready:
                return

    def _look_at_feeds(self, *, begin: bool, everything: bool) -> None:
        """What breaks in a feed leaves the rest of the sampling alone."""
        now = monotonic_us()
        for feed in self._feeds:
            self._guarded(
                lambda feed=feed: (
                    feed.begin(now) if begin else feed.read(now, everything=everything)
                ),
                _FEED,
            )

    def receive(self) -> None:
        """Take what the program reported."""
        self._inbox.receive(self._record, self._origin, self._supervisor.moment)
        if self._inbox.emitter:
            self._instruments.emitter.follow(*self._inbox.emitter)

    def sample(self, *, last: bool = False) -> None:
        """Take one sample now; the last one is whole whenever it comes."""
        t = self._moment()
        host = last or t >= self._host_due or self._supervisor.ended
        if host:
            self._host_due = (t // HOST_US + 1) * HOST_US
        self._record.sample(t, self._instruments.read(host=host))
        self._energy.sample(t)
        if self._instruments.tree.thinned:
            text = f"more than {PROCESSES} processes or {DETAIL} threads: they are read in turn"
            self._record.note(t, "meter/thinned", text)
