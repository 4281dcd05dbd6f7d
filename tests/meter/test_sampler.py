"""When what is read: every sample the run, the host where an edge of a window can lie."""

from __future__ import annotations

import json
import os
from typing import Any, cast

import pytest

from ouvrage.meter import sampler as module
from ouvrage.meter.inbox import Inbox
from ouvrage.meter.record import Record
from ouvrage.meter.sampler import PERIOD_US, Instruments, Sampler
from ouvrage.meter.spool_file import SpoolFile
from ouvrage.meter.supervisor import Supervisor
from ouvrage.metering.windows import WAIT_COUNTERS, Columns, waits_of, windows_of

SECOND = 1_000_000
HOST = ("host_busy_us", "host_idle_us", "disk_read_bytes", "net_rx_bytes")


class Moments:
    """Stands in for the supervisor: it is when the test says it is."""

    def __init__(self) -> None:
        self.now = 0
        self.ended = False
        self.stop = os.eventfd(0, os.EFD_CLOEXEC)

    def moment(self) -> int:
        return self.now


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A meter keeps descriptors until its process ends; that of the tests goes on, with more than ``select`` can count."""
    monkeypatch.setattr(module, "_descriptors_to_keep", lambda: 0)


class Reader(Instruments):
    """Real ones; how often the host was asked is counted."""

    hosts = 0

    def read(self, *, host: bool) -> dict[str, int | None]:
        self.hosts += host
        return super().read(host=host)


def sampled(moments: list[float], end: float) -> tuple[Columns, int]:
    """The samples that are taken at these seconds, and how often the host was read."""
    spool = SpoolFile(None)
    spool.open({"k": "run"})
    record, clock, reader = Record(spool), Moments(), Reader()
    sampler = Sampler(
        record, Inbox(), reader, 0, cast("Supervisor", clock), lambda: None, ask_topology=False
    )
    for at in moments:
        clock.now = round(at * SECOND)
        sampler.sample()
    clock.now, clock.ended = round(end * SECOND), True
    sampler.finish()
    record.flush()
    os.close(clock.stop)
    lines: list[dict[str, Any]] = [json.loads(line) for line in spool.lines()]
    (line,) = [line for line in lines if line["k"] == "samples"]
    return Columns(times=line["t"], values=line["c"]), reader.hosts


@pytest.mark.parametrize(
    ("moments", "end"),
    [
        ([0, *(second + 0.0002 for second in range(1, 25))], 24.6),
        ([0, 1, 2, 3, 4, 5.9, 6, 9.999, 10.5, 11, 12, 13, 21.7, 22], 22.4),
        ([0.3], 0.4),
        ([0, 1, 2], 3),
    ],
)
def test_every_window_knows_what_the_host_did(moments: list[float], end: float) -> None:
    columns, _ = sampled(moments, end)
    cut = {"wall_us": round(end * SECOND), "period_us": PERIOD_US, "window_us": 10 * SECOND}
    windows = windows_of("r", columns, **cut)
    assert windows
    for window in windows:
        assert None not in [getattr(window, name) for name in HOST], window.index
    for waits in waits_of("r", columns, **cut):
        assert waits.refaulted_bytes is not None, WAIT_COUNTERS


def test_between_the_edges_the_run_alone_is_read() -> None:
    columns, hosts = sampled([float(second) for second in range(21)], 20.5)
    assert hosts == 6, "at 0, 5, 10, 15, 20 and at the end"
    assert None not in columns.values["cpu_user_us"]
    assert None not in columns.values["processes"]


def test_a_sample_at_the_very_end_is_whole() -> None:
    """The command may end while a sample is taken: the last one then comes at the same moment."""
    columns, _ = sampled([0, 1, 2], 2)
    assert columns.times == [0, SECOND, 2 * SECOND]
    assert columns.values["host_busy_us"][-1] is not None
