"""The laws of metering, over the facts of runs in a ledger.

They say what must hold whatever wrote the facts: the windows of a run leave no hole, its time adds
up, and nothing is negative. They mend nothing and judge no run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.laws import Law
from ouvrage.ledger.view import in_force
from ouvrage.metering.gpus import gpu_window_fault
from ouvrage.metering.reckoning import Reckoning, reckon
from ouvrage.metering.run_view import RUN_KINDS, RunView, fault_of, run_views
from ouvrage.metering.timeuse import KEYS, TimeUse
from ouvrage.model.runs import RunEnded, RunStarted, RunWaits, RunWindow

Found = Iterable[tuple[str, str]]


def _one_start_one_end(records: Sequence[Recorded]) -> Found:
    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    runs: set[str] = set()
    for entry in in_force(records):
        if entry.fact.kind in RUN_KINDS:
            runs.add(entry.fact.subject)
        if entry.fact.kind == RunStarted.KIND:
            starts[entry.fact.subject] = starts.get(entry.fact.subject, 0) + 1
        if entry.fact.kind == RunEnded.KIND:
            ends[entry.fact.subject] = ends.get(entry.fact.subject, 0) + 1
    for run in sorted(runs):
        if starts.get(run, 0) != 1:
            yield run, f"{starts.get(run, 0)} starts in force, where there must be one"
        if ends.get(run, 0) > 1:
            yield run, f"{ends[run]} ends in force, where there may be one"


def _windows_tile(records: Sequence[Recorded]) -> Found:
    for view in run_views(records).values():
        at = 0
        for index, window in enumerate(view.windows):
            if window.index != index:
                yield view.run, f"window {index} is missing; the next one is {window.index}"
                break
            if window.from_us != at or window.to_us <= window.from_us:
                yield view.run, f"window {index} is {window.from_us}..{window.to_us}, after {at}"
                break
            at = window.to_us
        else:
            if at != view.wall_us:
                yield view.run, f"windows end at {at} us, the run at {view.wall_us} us"


def _windows_hold(records: Sequence[Recorded]) -> Found:
    for view in run_views(records).values():
        for window in view.windows:
            found = _window_fault(window)
            if found:
                yield f"{view.run}/window/{window.index}", found


def _waits_hold(records: Sequence[Recorded]) -> Found:
    for view in run_views(records).values():
        for waits in view.waits:
            found = _waits_fault(waits)
            if found:
                yield f"{view.run}/waits/{waits.index}", found


def _waits_fault(waits: RunWaits) -> str | None:
    length = waits.to_us - waits.from_us
    for name in ("network_us", "running_us"):
        if (getattr(waits, name) or 0) > length:
            return f"{name} is {getattr(waits, name)} in {length} us"
    for name in waits.__dataclass_fields__:
        value = getattr(waits, name)
        if isinstance(value, int) and value < 0:
            return f"{name} is {value}, which nothing counts"
    return None


def _window_fault(window: RunWindow) -> str | None:
    length = window.to_us - window.from_us
    if not 0 <= window.covered_us <= length:
        return f"covers {window.covered_us} of {length} us"
    if window.active_us is not None and not 0 <= window.active_us <= window.covered_us:
        return f"active for {window.active_us} of {window.covered_us} us covered"
    for name in window.__dataclass_fields__:
        value = getattr(window, name)
        if isinstance(value, int) and value < 0:
            return f"{name} is {value}, which nothing counts"
    return None


def _gpu_windows_hold(records: Sequence[Recorded]) -> Found:
    for view in run_views(records).values():
        for window in view.gpu_windows:
            found = gpu_window_fault(window)
            if found:
                yield f"{view.run}/gpu/{window.gpu}/{window.index}", found
        for part in view.energy_windows:
            length = part.to_us - part.from_us
            if not 0 <= part.covered_us <= length or (part.energy_uj or 0) < 0:
                where = f"{view.run}/meter/{part.meter}/{part.index}"
                yield where, f"{part.energy_uj} uJ over {part.covered_us} of {length} us"


def _spans_hold(records: Sequence[Recorded]) -> Found:
    for view in run_views(records).values():
        for spans in view.spans:
            where = f"{view.run}/spans/{spans.index}"
            if not 0 <= spans.from_us <= spans.to_us:
                yield where, f"from {spans.from_us} to {spans.to_us} us"
            for span in spans.spans:
                if span.total_us < 0 or span.count < 0:
                    yield where, f"{span.count} spans of {span.name!r} in {span.total_us} us"


def _payloads_agree(records: Sequence[Recorded]) -> Found:
    """A run's facts name the run they are about, and can be read."""
    for entry in in_force(records):
        if entry.fact.kind not in RUN_KINDS or entry.fact.version != 1:
            continue
        value = read(entry.fact)
        run = getattr(value, "run", None)
        if run is None:
            yield entry.fact.key, getattr(value, "reason", "cannot be read")
        elif run != entry.fact.subject:
            yield entry.fact.key, f"speaks of run {run} under subject {entry.fact.subject}"
        elif fault := fault_of(value):
            yield entry.fact.key, fault


def _time_adds_up(records: Sequence[Recorded]) -> Found:
    for view in run_views(records).values():
        yield from reckoning_breaches(view, reckon(view))


def reckoning_breaches(view: RunView, reckoning: Reckoning) -> Found:
    """What does not add up in what was made of a run."""
    for name, use in (("run", reckoning.whole), ("steady phase", reckoning.steady)):
        yield from ((view.run, f"{name}: {found}") for found in _use_faults(use))
    if reckoning.whole.total_us != view.wall_us:
        yield view.run, f"time of {reckoning.whole.total_us} us in a run of {view.wall_us} us"
    lengths = reckoning.phases.lengths()
    known = [length for length in lengths.values() if length is not None]
    if any(length < 0 for length in known):
        yield view.run, f"a phase of negative length: {lengths}"
    if len(known) == len(lengths) and sum(known) != view.wall_us:
        yield view.run, f"phases of {sum(known)} us in a run of {view.wall_us} us"
    timed = sum(lap.count for lap in reckoning.units.laps)
    if timed + reckoning.units.untimed != reckoning.units.finished:
        yield view.run, f"{timed} timed and {reckoning.units.untimed} untimed units are not all"


def _use_faults(use: TimeUse) -> Iterable[str]:
    if sum(use.us[key] for key in KEYS) != use.total_us:
        yield f"the keys add up to {sum(use.us.values())} of {use.total_us} us"
    for key in KEYS:
        if not 0 <= use.measured[key] <= use.us[key]:
            yield f"{use.measured[key]} of {use.us[key]} us of {key} measured"


LAWS: tuple[Law, ...] = (
    Law(
        name="metering/one-start",
        statement="a run has exactly one start and at most one end in force",
        check=_one_start_one_end,
    ),
    Law(
        name="metering/payloads-agree",
        statement="facts of a run can be read and reckoned with, and name their run",
        check=_payloads_agree,
    ),
    Law(
        name="metering/windows-tile",
        statement="the windows of a run follow on one another from its start to its end",
        check=_windows_tile,
    ),
    Law(
        name="metering/windows-hold",
        statement="no window covers more than it lasts, works more than it covers, or is negative",
        check=_windows_hold,
    ),
    Law(
        name="metering/waits-hold",
        statement="no sign of a wait lasts longer than its window or is negative",
        check=_waits_hold,
    ),
    Law(
        name="metering/gpu-windows-hold",
        statement="no window of a GPU or an energy meter covers more than it lasts, or is negative",
        check=_gpu_windows_hold,
    ),
    Law(
        name="metering/spans-hold",
        statement="spans begin after the start, end after they begin and are not negative",
        check=_spans_hold,
    ),
    Law(
        name="metering/time-adds-up",
        statement="the eight keys add up to the wall time, and so do the phases and the units",
        check=_time_adds_up,
    ),
)
