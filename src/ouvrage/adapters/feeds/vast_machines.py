"""Vast.ai's list of a host's machines, saved from time to time: which GPUs were rented when.

Decides what a letter of ``gpu_occupancy`` says of a GPU. ``D``, ``R`` and ``I`` (on demand, reserved,
interruptible) are rented: ``held``, since nobody here sees whether the tenant's program works; a meter
that sees it says ``working`` and prevails. ``x`` is free. A ``timeout`` above 0 is a machine that does
not answer: down. Windows of maintenance are those that had begun when the file was saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ouvrage.adapters.feeds.moments import moment_of
from ouvrage.adapters.feeds.occupancy import Pattern, Sample, Series, Span, series_of
from ouvrage.adapters.feeds.told import Told, amount_in, documents, key_part
from ouvrage.base.grades import Grade
from ouvrage.base.time import HOUR
from ouvrage.ledger.stated import Stated
from ouvrage.model.occupancy import DeviceState

_RENTED = {"D": "on demand", "R": "reserved", "I": "interruptible"}
_UNSEEN = "load not seen"
_FILE_TIME = "no moment stands in the list: that of the file's name counts, else of the file itself"
_TIMES = ("at", "time", "timestamp", "ts", "when")
_MOST_GPUS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A machine's GPUs at a moment, each with its state and cause, in the order of their slots."""

    machine: str
    at_us: int
    place: str
    gpus: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """A window in which a machine was to be worked on."""

    machine: str
    from_us: int
    to_us: int
    category: str


def read_machines(text: str, told: Told, saved_us: int) -> tuple[list[Snapshot], list[Maintenance]]:
    """Snapshots and windows of maintenance in a file saved at a moment.

    A snapshot's own moment stands beside its ``machines`` (``at``, ``time``, …); else the file's counts.
    """
    snapshots: list[Snapshot] = []
    windows: list[Maintenance] = []
    for place, value in documents(told, text):
        for where, item, at_us in _items(place, value, told, saved_us):
            told.rows += 1
            if isinstance(item, dict) and "start_time" in item:
                windows += _maintenance(item, where, told, saved_us)
            else:
                snapshots += _snapshot(item, where, told, at_us)
    return snapshots, windows


def _items(place: str, value: Any, told: Told, saved_us: int) -> Iterable[tuple[str, Any, int]]:
    listed = value.get("machines") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        told.note(_FILE_TIME)
        yield place or "1", value, saved_us
        return
    said = next((value[name] for name in _TIMES if name in value), None)
    if said is None:
        told.note(_FILE_TIME)
    at_us = saved_us if said is None else moment_of(said)
    if at_us is None:
        told.rows += 1
        told.fault(place or "1", "at", said, "a moment such as 2026-11-30T14:05:09Z")
        return
    for index, item in enumerate(listed):
        yield f"{place + ' ' if place else ''}machines[{index}]", item, at_us


def _machine_id(item: Any, where: str, told: Told) -> str | None:
    if not isinstance(item, dict):
        told.fault(where, "row", item, "an object with named fields")
        return None
    found = amount_in(item.get("machine_id", item.get("id")))
    if found is None or found != int(found) or found < 0:
        told.fault(where, "machine_id", item.get("machine_id"), "a whole number")
        return None
    return str(int(found))


def _snapshot(item: Any, where: str, told: Told, at_us: int) -> list[Snapshot]:
    machine = _machine_id(item, where, told)
    gpus = None if machine is None else _gpus(item, where, told)
    if machine is None or gpus is None:
        return []
    return [Snapshot(machine=machine, at_us=at_us, place=where, gpus=gpus)]


def _gpus(item: Mapping[str, Any], where: str, told: Told) -> tuple[tuple[str, str], ...] | None:
    count = amount_in(item.get("num_gpus"))
    if count is None or not 1 <= count <= _MOST_GPUS or count != int(count):
        told.fault(where, "num_gpus", item.get("num_gpus"), "how many GPUs")
        return None
    if (amount_in(item.get("timeout")) or 0) > 0:
        return (("down", "offline"),) * int(count)
    said = item.get("gpu_occupancy")
    letters = [c for c in str(said or "") if c.isalpha()]
    odd = [c for c in letters if c != "x" and c not in _RENTED]
    if len(letters) != count or odd:
        told.fault(where, "gpu_occupancy", said, f"{int(count)} of the letters D, R, I and x")
        return None
    free = ("free", "no demand" if item.get("listed", True) else "not listed")
    return tuple(free if c == "x" else ("held", f"rented {_RENTED[c]}; {_UNSEEN}") for c in letters)


def _maintenance(
    item: Mapping[str, Any], where: str, told: Told, saved_us: int
) -> list[Maintenance]:
    machine = _machine_id(item, where, told)
    start, end = moment_of(item.get("start_time")), moment_of(item.get("end_time"))
    hours = amount_in(item.get("duration_hours"))
    if start is not None and end is None and hours is not None:
        end = start + int(hours * HOUR)
    if machine is None:
        return []
    if start is None or end is None or end <= start:
        told.fault(where, "start_time", item.get("start_time"), "a window with an end after it")
        return []
    if start >= saved_us:
        told.note("a window of maintenance lies ahead and may be cancelled: import it afterwards")
        return []
    category = key_part(str(item.get("maintenance_category") or "maintenance"), 40)
    window = Maintenance(
        machine=machine, from_us=start, to_us=min(end, saved_us), category=category
    )
    return [window]


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A series of its own: one device by its slot, or all of a node's devices where none is placed."""

    key: str
    node: str
    device: str | None
    slot: int | None

    @property
    def subject(self) -> str:
        """What its statements are about."""
        return f"device:{self.device}" if self.device else f"node:{self.node}"

    def pattern(self, gpus: Sequence[tuple[str, str]]) -> Pattern:
        """What a snapshot says of it."""
        if self.slot is not None:
            return ((*gpus[self.slot], 0),)
        kinds = sorted(set(gpus))
        if len(kinds) == 1:
            return ((*kinds[0], 0),)
        return tuple((state, cause, gpus.count((state, cause))) for state, cause in kinds)


def tracks_of(
    channel: str, machine: str, node: str, devices: Mapping[int, str], gpus: int
) -> list[Track]:
    """One track for each GPU where every slot's device is known, else one for the node."""
    key = f"{channel}/state/{machine}"
    if all(slot in devices for slot in range(gpus)):
        return [
            Track(key=f"{key}/{slot}", node=node, device=devices[slot], slot=slot)
            for slot in range(gpus)
        ]
    return [Track(key=f"{key}/node", node=node, device=None, slot=None)]


def known_spans(track: Track, known: Iterable[Stated]) -> list[Span]:
    """The spans of a track that are recorded."""
    found: dict[int, tuple[int, list[tuple[str, str, int]]]] = {}
    for each in known:
        if each.natural.startswith(f"{track.key}/at/") and each.valid_to is not None:
            end, groups = found.setdefault(each.valid_from, (each.valid_to, []))
            groups.append((each.value.state, each.value.cause, each.value.count or 0))
            found[each.valid_from] = (min(end, each.valid_to), groups)
    return [
        Span(from_us=start, to_us=end, pattern=tuple(sorted(groups)))
        for start, (end, groups) in sorted(found.items())
    ]


def statements(
    track: Track,
    channel: str,
    snapshots: Sequence[Snapshot],
    known: Iterable[Stated],
    limit_us: int,
    told: Told,
) -> list[Stated]:
    """What snapshots of one machine say of a track, together with what is recorded of it."""
    samples = [
        Sample(at_us=each.at_us, pattern=track.pattern(each.gpus), place=each.place)
        for each in snapshots
    ]
    series = series_of(known_spans(track, known), samples, limit_us)
    for sample in series.refused:
        told.fault(
            sample.place,
            "gpu_occupancy",
            " ".join(f"{count or 'all'} {state}" for state, _, count in sample.pattern),
            "the same as another file says of this moment",
        )
    return [*_spans(track, channel, series), *_gaps(track, channel, series)]


def _spans(track: Track, channel: str, series: Series) -> Iterable[Stated]:
    for span in series.spans:
        for index, (state, cause, count) in enumerate(span.pattern):
            value = _state(track, channel, state, cause, count or None)
            yield _stated(
                f"{track.key}/at/{span.from_us}/{index}", track, value, span.from_us, span.to_us
            )


def _gaps(track: Track, channel: str, series: Series) -> Iterable[Stated]:
    for start, end in series.gaps:
        value = _state(track, channel, "unknown", "no sample", None)
        yield _stated(f"{track.key}/gap/{start}", track, value, start, end)


def _state(track: Track, channel: str, state: str, cause: str, count: int | None) -> DeviceState:
    return DeviceState(
        device=track.device,
        node=None if track.device else track.node,
        count=count,
        state=state,
        cause=cause,
        channel=channel if state == "held" else None,
        tenant=None,
        lease=None,
    )


def _stated(natural: str, track: Track, value: DeviceState, from_us: int, to_us: int) -> Stated:
    return Stated(
        natural=natural,
        value=value,
        subject=track.subject,
        valid_from=from_us,
        valid_to=to_us,
        grade=Grade.METERED,
    )


def maintained(window: Maintenance, node: str, channel: str) -> Stated:
    """A window of maintenance as a statement about the node."""
    track = Track(key="", node=node, device=None, slot=None)
    value = _state(track, channel, "maintenance", window.category, None)
    natural = f"{channel}/maintenance/{window.machine}/{window.from_us}"
    return _stated(natural, track, value, window.from_us, window.to_us)
