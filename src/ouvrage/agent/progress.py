"""How far a running attempt is, read from its run's spool while the meter writes it.

Decides what is told of a run that goes on: the units finished so far and how long one takes, by the
same rules as its report, and since when its GPUs have done nothing. Only what was appended is read;
counting again never takes more than a hundredth of a core.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ouvrage.adapters.clock import own_cpu_us
from ouvrage.base.errors import OuvrageError
from ouvrage.metering.run_view import RunView
from ouvrage.metering.spool import read_spool
from ouvrage.metering.units import units_of
from ouvrage.metering.xid import MACHINE, RESET, XIDS

_LATEST = 20
_COST_SHARE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """``unit_us`` is the median of the latest units; ``idle_us`` how long no GPU of it was busy."""

    unit: str | None
    units: int
    unit_us: int | None
    idle_us: int


class Follower:
    """Follows one spool."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._kept: list[str] = []
        self._counted = 0
        self._not_before_us = 0
        self._chosen: set[int] = set()
        self._last_us = self._busy_us = 0
        self._reached = Reached(unit=None, units=0, unit_us=None, idle_us=0)

    def look(self, now_us: int) -> Reached:
        """Read what is new and tell how far it is; ``now_us`` is any monotonic moment."""
        for line in self._fresh():
            self._take(line)
        if len(self._kept) > self._counted and now_us >= self._not_before_us:
            began = own_cpu_us()
            self._count()
            self._not_before_us = now_us + (own_cpu_us() - began) * _COST_SHARE
        idle = max(0, self._last_us - self._busy_us) if self._chosen else 0
        last = self._reached
        self._reached = Reached(
            unit=last.unit, units=last.units, unit_us=last.unit_us, idle_us=idle
        )
        return self._reached

    def _fresh(self) -> list[str]:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.decode("utf-8", "replace").splitlines(keepends=True)

    def _take(self, line: str) -> None:
        said: dict[str, Any] = json.loads(line)
        kind = said["k"]
        if kind in ("run", "marks"):
            self._kept.append(line)
        elif kind == "gpu" and said["about"].get("chosen"):
            self._chosen.add(said["gpu"])
        elif kind == "gpus":
            self._gpus(said)

    def _gpus(self, said: dict[str, Any]) -> None:
        if said["gpu"] not in self._chosen:
            return
        loads = said["c"].get("busy_percent") or [None] * len(said["t"])
        for t, load in zip(said["t"], loads, strict=False):
            self._last_us = max(self._last_us, t)
            if load is None or load > 0:  # a load that is not told is no idleness
                self._busy_us = max(self._busy_us, t)

    def _count(self) -> None:
        self._counted = len(self._kept)
        try:
            spool = read_spool(self._kept)
        except OuvrageError:
            return
        if not spool.marks:
            return
        units = units_of(
            RunView(
                run=spool.run, source=spool.source, started=spool.started, windows=(),
                marks=spool.marks, spans=(), ended=None, samples=None, keys={},
            )
        )  # fmt: skip
        times = [(lap.to_us - lap.from_us) // lap.count for lap in units.laps[-_LATEST:]]
        each = round(statistics.median(times)) if times else None
        self._reached = Reached(unit=units.name, units=units.finished, unit_us=each, idle_us=0)


def hardware_fault(spool: Path) -> str | None:
    """An error of the driver's in this run after which the card cannot be trusted, in words."""
    try:
        lines = spool.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    for line in lines:
        if '"run.xid"' in line:
            number = json.loads(line)["value"]["xid"]
            words, advice = XIDS.get(number, ("", ""))
            if advice in (RESET, MACHINE):
                return f"Xid {number}: {words}"
    return None
