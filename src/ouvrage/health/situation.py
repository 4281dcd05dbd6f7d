"""What is known of a fleet's machines at one moment, and what can be read from it before anything is decided.

Decides who counts as silent, busy or idle, what a rung takes along, what a place is repaired for and which rung would be next. What
follows from it, moves, fences and remedies, is decided in ``response``; that both are apart keeps each small enough to be read whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ouvrage.health.fences import Place
from ouvrage.health.ladder import Step, Tried, next_step
from ouvrage.health.record import WHOLE, HealthRecord, Heard, height
from ouvrage.health.tables import Thresholds
from ouvrage.model.health import MaintenanceWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is known: the ``record``, on which places work runs, what the owner turned on, and who is silent.

    ``observed`` are machines that others run: there the ladder is a person. ``silent`` are nodes not heard of, for how long (µs);
    ``unwatched`` those whose watch is not heard of, though they may be.
    """

    record: HealthRecord
    nodes: frozenset[str]
    busy: frozenset[Place] = frozenset()
    turned_on: frozenset[str] = frozenset()
    observed: frozenset[str] = frozenset()
    silent: Mapping[str, int] = field(default_factory=dict[str, int])
    unwatched: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A node, or its watch, is not heard of for so long that nothing is known of it; ``fences``: that nothing more is placed."""

    words: str
    for_us: int
    fences: bool


def silence_of(situation: Situation, node: str, bounds: Thresholds) -> Silence | None:
    """Why nothing is known of a node, None where it speaks."""
    for who, told, name in (
        ("it", situation.silent, "silence"),
        ("its watch", situation.unwatched, "silence.watch"),
    ):
        for_us = told.get(node, 0)
        if for_us >= bounds.us(f"{name}.unknown"):
            fences = for_us >= bounds.us(f"{name}.fence")
            return Silence(words=f"{who} is not heard of", for_us=for_us, fences=fences)
    return None


def is_idle(situation: Situation, place: Place) -> bool:
    """Whether something that was due when idle can be done now: nothing runs there, and its owner turned it on."""
    record, node = situation.record, place[0]
    due = record.due(place)
    if not due or record.standing(place).state not in ("healthy", "suspect"):
        return False
    rung = due[0].verdict.at_drain
    beside = beside_of(record, place, rung)
    return (
        rung in situation.turned_on
        and node not in situation.observed
        and not any(is_busy(situation, (node, each)) for each in (place[1], *beside))
    )


def is_busy(situation: Situation, place: Place) -> bool:
    """Whether work runs on a device, or for None anywhere on the machine."""
    node, device = place
    if device is None:
        return any(at[0] == node for at in situation.busy)
    return place in situation.busy


def beside_of(record: HealthRecord, place: Place, rung: str) -> frozenset[str | None]:
    """What a rung takes along beside its place: the machine (None), or the other GPUs of an NVLink domain."""
    if rung in WHOLE:
        return frozenset({None})
    node, device = place
    return (
        frozenset(record.machine(node).tied(device))
        if rung == "gpu_reset" and device
        else frozenset()
    )


def place_name(place: Place, record: HealthRecord) -> str:
    """A place as a person calls it."""
    node, device = place
    name = record.machine(node).name
    return name if device is None else f"{name} {device}"


def worst_owed(record: HealthRecord, place: Place) -> Heard | None:
    """What a place is repaired for: the gravest that is held against it, in this boot or before."""
    owed = record.owing(place)
    return max(owed, key=lambda each: height(each.asks), default=None)


def next_for(
    record: HealthRecord, place: Place, turned_on: Collection[str], now_us: int,
    bounds: Thresholds, *, observed: bool = False, failed: bool = False,
) -> Step | None:  # fmt: skip
    """The rung that is next on a place, None where it owes nothing. ``failed``: the last one is known not to have helped."""
    first = worst_owed(record, place)
    history = [
        Tried(
            rung=each.remedy.rung, at_us=each.at_us, outcome=each.remedy.outcome,
            verified=each.remedy.verified, dry_run=each.remedy.dry_run,
        )
        for each in record.tries.get(place, ())
    ]  # fmt: skip
    if failed:  # of the last one it is known by now, though not recorded yet
        history = [*history[:-1], *(replace(each, verified=False) for each in history[-1:])]
    if first is None:
        return None
    found = next_step(
        first.asks, history, now_us, turned_on, bounds, rule=first.verdict.code, observer=observed
    )
    why = f"{first.verdict.check} asks for {first.asks}"
    return found or Step(rung="person", dry_run=False, hands=True, why=why)


def window_of(record: HealthRecord, node: str, now_us: int) -> MaintenanceWindow | None:
    """The window of maintenance that a node is in now."""
    open_ = [
        each for each in record.windows.values()
        if each.node == node and not each.cancelled and each.from_us <= now_us < each.to_us
    ]  # fmt: skip
    return max(open_, key=lambda each: each.to_us, default=None)
