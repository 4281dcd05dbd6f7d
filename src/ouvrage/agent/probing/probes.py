"""Which probes there are: how often each looks, how long it may take, and beside which others it runs.

Decides the lanes. A lane is one child process at most, so that what hangs holds up its own lane alone. Two lanes are
kept running, because starting a program every few seconds costs more than what it does: ``gpu``, which alone speaks to a
driver, and ``host``, which reads files of the kernel that answer at once. What may wait for a disk or a network is looked at by a
child that is started when something is due and gone soon after: ``slow`` each minute, ``smart`` each ten.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.base.time import SECOND

FEW = 4
"""A look that is worse than what counts is made again after this part of the interval, so that three that agree come
within two intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One probe: its interval and deadline in seconds, and its lane. ``checks`` are the checks it feeds, its own first.

    ``option`` names the setting without which it has nothing to look at.
    """

    name: str
    interval_s: int
    deadline_s: int
    lane: str
    checks: tuple[str, ...]
    option: str | None = None

    @property
    def interval_us(self) -> int:
        """The interval in microseconds."""
        return self.interval_s * SECOND


LINGERS_US = 2 * SECOND
"""A child of another lane waits so long for a further question: what is looked at each minute shares one start."""

KEPT_LANES = frozenset({"host", "gpu"})
DRIVER_LANES = frozenset({"gpu"})
"""Clients of a driver: never killed as a first resort, since that has frozen GPUs (dcgm-exporter#84)."""

PROBES = (
    Probe(name="kernel_log", interval_s=5, deadline_s=5, lane="host", checks=("xid", "kernel")),
    Probe(name="gpu", interval_s=10, deadline_s=6, lane="gpu", checks=("gpu",)),
    Probe(name="links", interval_s=5, deadline_s=5, lane="host", checks=("link", "link-errors")),
    Probe(name="edac", interval_s=60, deadline_s=5, lane="host", checks=("edac",)),
    Probe(name="memory", interval_s=60, deadline_s=5, lane="host", checks=("memory",)),
    Probe(name="time", interval_s=60, deadline_s=5, lane="host", checks=("time",)),
    Probe(name="smart", interval_s=600, deadline_s=240, lane="smart", checks=("smart",)),
    Probe(
        name="peers", interval_s=60, deadline_s=45, lane="slow", checks=("peers",), option="peers"
    ),
    Probe(
        name="time_server", interval_s=600, deadline_s=10, lane="slow", checks=("time",),
        option="time_server",
    ),
    Probe(name="wall", interval_s=60, deadline_s=10, lane="slow", checks=("wall",), option="wall"),
    Probe(
        name="inventory", interval_s=1800, deadline_s=30, lane="slow", checks=("inventory",)
    ),
    Probe(name="files", interval_s=60, deadline_s=20, lane="slow", checks=("mounts", "space")),
    Probe(name="bmc", interval_s=60, deadline_s=50, lane="bmc", checks=("bmc",), option="bmc"),
)  # fmt: skip
"""Intervals: health notes, 5.3 (GPUs 10 s, links 5 s, drives 10 min, BMC 60 s; the kernel's log is read every 5 s, which is within
a fault's 30 s and costs one call that finds nothing). The others are ours."""

BY_NAME = {probe.name: probe for probe in PROBES}
