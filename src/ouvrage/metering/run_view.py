"""One run as the facts in force tell it, decoded and in order.

Decides which facts belong to a run (its subject, from the source that stated its start) and
nothing about what they mean. Without a start that can be read it is not a run yet: a law says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.ids import code_of
from ouvrage.base.price import PER_US, Price
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import Unread, read
from ouvrage.ledger.view import in_force
from ouvrage.metering import around
from ouvrage.metering.judgement import SAID_KINDS, Acceptance, acceptance_of, campaigns_of
from ouvrage.metering.serving import SERVING_KINDS, serving_fault
from ouvrage.model.around import AROUND
from ouvrage.model.gpus import (
    METER_KINDS,
    POWER_METHODS,
    RunDevice,
    RunElectricity,
    RunEnergyMeter,
    RunEnergyWindow,
    RunGpuWindow,
)
from ouvrage.model.runs import (
    OUTCOMES,
    RunEnded,
    RunMarks,
    RunSamples,
    RunSpans,
    RunStarted,
    RunWaits,
    RunWindow,
)
from ouvrage.model.serving import RunLoad, RunRequests, RunServer, RunServerWindow

MARKS = frozenset(("end", "head", "count"))
VIAS = ("code", "replay", "regex", "line")
_AMOUNT = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_LONGEST_AMOUNT = 40
_CURRENCY = re.compile(r"[A-Z]{3}")
_RUN = re.compile(r"[0-9a-f]{32}")
ENERGY_KINDS = tuple(
    kind.KIND for kind in (RunDevice, RunGpuWindow, RunEnergyMeter, RunEnergyWindow, RunElectricity)
)
RUN_KINDS = (
    *(kind.KIND for kind in (RunStarted, RunWindow, RunWaits, RunMarks, RunSpans)),
    *(kind.KIND for kind in (RunEnded, RunSamples)),
    *ENERGY_KINDS,
    *around.KINDS,
    *SERVING_KINDS,
)
TRAVELS = frozenset((*RUN_KINDS, *SAID_KINDS))
"""The kinds that a server takes about a run: what was metered, and what people said of it."""
_BESIDE = frozenset((RunElectricity.KIND, *around.KINDS))
"""What was stated beside the run: no part of the grade of what the meter measured."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunView:
    """Everything known about one run. ``keys`` holds the keys of its facts, by kind;
    ``grade`` is the weakest of theirs, so that a simulated run says so everywhere.

    Compared by identity, so that what is reckoned from a view can be kept beside it.

    ``ended`` and ``samples`` are None when the ledger has no such fact (yet), ``acceptance`` when
    nobody has judged the work. ``campaigns`` are those that the run is an attempt in.
    """

    run: str
    source: str
    started: RunStarted
    windows: tuple[RunWindow, ...]
    marks: tuple[RunMarks, ...]
    spans: tuple[RunSpans, ...]
    ended: RunEnded | None
    samples: RunSamples | None
    keys: Mapping[str, tuple[str, ...]]
    grade: Grade = Grade.MEASURED
    unread: tuple[str, ...] = ()
    waits: tuple[RunWaits, ...] = ()
    devices: tuple[RunDevice, ...] = ()
    gpu_windows: tuple[RunGpuWindow, ...] = ()
    meters: tuple[RunEnergyMeter, ...] = ()
    energy_windows: tuple[RunEnergyWindow, ...] = ()
    electricity: RunElectricity | None = None
    acceptance: Acceptance | None = None
    campaigns: tuple[str, ...] = ()
    around: Mapping[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])
    load: RunLoad | None = None
    requests: tuple[RunRequests, ...] = ()
    servers: tuple[RunServer, ...] = ()
    server_windows: tuple[RunServerWindow, ...] = ()

    @property
    def code(self) -> str:
        """The short code shown for the run."""
        return code_of(self.run)

    @property
    def wall_us(self) -> int:
        """First to last moment known."""
        if self.ended is not None:
            return self.ended.wall_us
        return max(0, *(window.to_us for window in self.windows), 0)

    @property
    def outcome(self) -> str:
        """How it ended; ``lost`` when nothing says."""
        return self.ended.outcome if self.ended else "lost"

    def facts(self, *kinds: str) -> tuple[str, ...]:
        """Keys of this run's facts of these kinds."""
        return tuple(key for kind in kinds for key in self.keys.get(kind, ()))


def price_fault(price: Price | None) -> str | None:
    """Why a stated price cannot be computed with; None when it can."""
    if price is None:
        return None
    if not _AMOUNT.fullmatch(price.amount) or len(price.amount) > _LONGEST_AMOUNT:
        return f"the amount {price.amount[:_LONGEST_AMOUNT]!r} is no plain decimal number"
    if not _CURRENCY.fullmatch(price.currency):
        return f"a currency called {price.currency[:_LONGEST_AMOUNT]!r}"
    if price.per not in PER_US:
        return f"a price per {price.per!r}"
    return None


def fault_of(value: Any) -> str | None:
    """Why a fact's statement cannot be reckoned with though it can be read; None when it can."""
    if isinstance(value, RunStarted):
        if not _RUN.fullmatch(value.run):
            return f"a run called {value.run[:40]!r}"
        return price_fault(value.price)
    if isinstance(value, RunMarks):
        lengths = (len(value.mark), len(value.n), len(value.at_us))
        if len(set(lengths)) > 1:
            return f"columns of {lengths} marks"
        if value.via.partition(":")[0] not in VIAS or not MARKS.issuperset(value.mark):
            return "marks of an unknown sort"
    if isinstance(value, RunEnded):
        if value.outcome not in OUTCOMES:
            return f"an outcome called {value.outcome!r}"
        if value.wall_us < 0:
            return f"a run of {value.wall_us} us"
    if isinstance(value, AROUND):
        return around.around_fault(value)
    return _energy_fault(value) or serving_fault(value)


def _energy_fault(value: Any) -> str | None:
    if isinstance(value, RunElectricity):
        return price_fault(Price(amount=value.amount, currency=value.currency, per="h"))
    if isinstance(value, RunEnergyMeter) and value.kind not in METER_KINDS:
        return f"an energy meter of the sort {value.kind!r}"
    if isinstance(value, RunGpuWindow) and value.power_method not in (None, *POWER_METHODS):
        return f"power of the sort {value.power_method!r}"
    return None


def statement_fault(value: Any, run: str) -> str | None:
    """Why what a fact about a run states is no use in a report of it; None when it is."""
    if isinstance(value, Unread):
        return value.reason
    if value.run != run:
        return f"it speaks of run {value.run[:40]!r}"
    return fault_of(value)


def run_views(records: Iterable[Recorded]) -> dict[str, RunView]:
    """The runs that these records tell of, by run id, in order of their start."""
    by_run: dict[str, list[Recorded]] = {}
    said: dict[str, list[Recorded]] = {}
    for entry in in_force(records):
        if entry.fact.kind in RUN_KINDS:
            by_run.setdefault(entry.fact.subject, []).append(entry)
        elif entry.fact.kind in SAID_KINDS:
            said.setdefault(entry.fact.subject, []).append(entry)
    found = (_view(run, entries, said.get(run, [])) for run, entries in by_run.items())
    views = [view for view in found if view is not None]
    views.sort(key=lambda view: (view.started.started_us, view.run))
    return {view.run: view for view in views}


def _view(run: str, entries: list[Recorded], said: list[Recorded]) -> RunView | None:
    source = next((e.fact.source for e in entries if e.fact.kind == RunStarted.KIND), None)
    held: dict[str, list[tuple[Any, str]]] = {kind: [] for kind in RUN_KINDS}
    unread: list[str] = []
    for entry in entries:
        if entry.fact.source != source:
            continue
        value = read(entry.fact)
        if fault := statement_fault(value, run):
            unread.append(f"{entry.fact.key}: {fault}")
        else:
            held[entry.fact.kind].append((value, entry.fact.key))
    if source is None or not held[RunStarted.KIND]:
        return None
    _order(held)
    ended, samples = held[RunEnded.KIND], held[RunSamples.KIND]
    electricity = held[RunElectricity.KIND]
    return RunView(
        run=run,
        source=source,
        started=held[RunStarted.KIND][0][0],
        windows=tuple(value for value, _ in held[RunWindow.KIND]),
        marks=tuple(value for value, _ in held[RunMarks.KIND]),
        spans=tuple(value for value, _ in held[RunSpans.KIND]),
        ended=ended[0][0] if ended else None,
        samples=samples[0][0] if samples else None,
        keys={kind: tuple(key for _, key in pairs) for kind, pairs in held.items()},
        grade=weakest(
            entry.fact.grade
            for entry in entries
            if entry.fact.source == source and entry.fact.kind not in _BESIDE
        ),
        unread=tuple(unread),
        waits=tuple(value for value, _ in held[RunWaits.KIND]),
        devices=tuple(value for value, _ in held[RunDevice.KIND]),
        gpu_windows=tuple(value for value, _ in held[RunGpuWindow.KIND]),
        meters=tuple(value for value, _ in held[RunEnergyMeter.KIND]),
        energy_windows=tuple(value for value, _ in held[RunEnergyWindow.KIND]),
        electricity=electricity[0][0] if electricity else None,
        acceptance=acceptance_of(said),
        campaigns=campaigns_of(said),
        around={kind: tuple(value for value, _ in held[kind]) for kind in around.KINDS},
        load=held[RunLoad.KIND][0][0] if held[RunLoad.KIND] else None,
        requests=tuple(value for value, _ in held[RunRequests.KIND]),
        servers=tuple(value for value, _ in held[RunServer.KIND]),
        server_windows=tuple(value for value, _ in held[RunServerWindow.KIND]),
    )


def _order(held: dict[str, list[tuple[Any, str]]]) -> None:
    """Facts of each kind in the order of the run: by device where there are several, by index."""
    ordered = (RunWindow.KIND, RunWaits.KIND, RunMarks.KIND, RunSpans.KIND, RunRequests.KIND)
    for kind in ordered:
        held[kind].sort(key=lambda pair: pair[0].index)
    held[RunDevice.KIND].sort(key=lambda pair: pair[0].gpu)
    held[RunGpuWindow.KIND].sort(key=lambda pair: (pair[0].gpu, pair[0].index))
    held[RunEnergyMeter.KIND].sort(key=lambda pair: pair[0].meter)
    held[RunEnergyWindow.KIND].sort(key=lambda pair: (pair[0].meter, pair[0].index))
    for kind in around.KINDS:
        held[kind].sort(key=lambda pair: (len(pair[1]), pair[1]))
    held[RunServer.KIND].sort(key=lambda pair: pair[0].server)
    held[RunServerWindow.KIND].sort(key=lambda pair: (pair[0].server, pair[0].index))
