"""Once a second: read the run and its host, take what the program reported, flush the spool.

A thread of its own. A sample that comes late is recorded at the moment it really came, so a gap is
a gap. The first one is taken at once, the last one by the supervisor when the command has ended.
"""

from __future__ import annotations

import os
import select
import threading
from pathlib import Path
from typing import Any

from ouvrage.adapters.cgroup import Cgroup
from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.kept_file import Room
from ouvrage.adapters.process_tree import DETAIL, ProcessTree, ThreadClock
from ouvrage.adapters.procfs import HostCounters, cpu_model, memory_bytes
from ouvrage.meter.inbox import Inbox
from ouvrage.meter.record import Record

PERIOD_US = 1_000_000
FLUSH_US = 5_000_000
KEPT_OPEN = 400


class Instruments:
    """Everything that is read: the process tree, its reporting thread, the cgroup, the host."""

    def __init__(self) -> None:
        room = Room(_descriptors_to_keep())
        self.cgroup = Cgroup(room)
        self.host = HostCounters(room)
        self.tree = ProcessTree(os.getpid(), room)
        self.emitter = ThreadClock(room)

    def read(self) -> dict[str, int | None]:
        """One sample."""
        values = self.tree.read()
        values.update(self.host.read())
        values.update(self.emitter.read())
        values["throttled_us"] = self.cgroup.throttled_us()
        values["cgroup_memory_bytes"] = self.cgroup.memory_bytes()
        return values

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
    """Samples until ``stop`` becomes readable."""

    def __init__(
        self, record: Record, inbox: Inbox, instruments: Instruments, origin_us: int, stop: int
    ) -> None:
        super().__init__(name="sampler", daemon=True)
        self._record = record
        self._inbox = inbox
        self._instruments = instruments
        self._origin = origin_us
        self._stop_fd = stop

    def run(self) -> None:
        """The loop. What breaks here is noted and ends the sampling, never the command."""
        try:
            self._loop()
        except Exception as error:  # noqa: BLE001 -- the command must not feel a fault of the meter's
            text = f"sampling ended: {type(error).__name__}: {error}"
            self._record.note(self._now(), "meter/sampler", text)

    def _now(self) -> int:
        return monotonic_us() - self._origin

    def _loop(self) -> None:
        poller = select.poll()
        poller.register(self._stop_fd, select.POLLIN)
        if self._inbox.fileno() >= 0:
            poller.register(self._inbox.fileno(), select.POLLIN)
        due = flush_due = 0
        while True:
            now = self._now()
            if now >= due:
                self.sample(now)
                due = (now // PERIOD_US + 1) * PERIOD_US
            if now >= flush_due:
                self._record.flush(sync=flush_due == 0)
                flush_due = now + FLUSH_US
            wait_ms = max(0, due - self._now() + 999) // 1000
            ready = [fd for fd, _ in poller.poll(wait_ms)]
            if self._inbox.fileno() in ready:
                self.receive()
            if self._stop_fd in ready:
                return

    def receive(self) -> None:
        """Take what the program reported."""
        self._inbox.receive(monotonic_us())
        if self._inbox.emitter:
            self._instruments.emitter.follow(*self._inbox.emitter)

    def sample(self, t: int) -> None:
        """Take one sample for the moment ``t``."""
        self._record.sample(t, self._instruments.read())
        if self._instruments.tree.thinned:
            text = f"more than {DETAIL} threads: delay and switches are read in turn"
            self._record.note(t, "meter/thinned", text)


def spool_path(home: Path, run: str) -> Path:
    """Where a run's spool lies while it is live."""
    return home / "spool" / f"{run}.ndjson"
