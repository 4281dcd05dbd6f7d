"""The calendar of a device: what it was doing at every moment of a period, and who says so.

Decides what counts where statements overlap: the first of down, maintenance, working, held, reserved
and free that anybody states; of two that say the same, the better grade, then the later beginning.
What was overruled is kept beside as set aside. Where nobody says anything the time is ``unknown``. A
lease makes a device ``held`` wherever nothing says that it worked. Stretches tile the period without a
hole: from the device's placing in a node to its removal.

Statements that count devices without naming them take the lowest slots that fit. A lease keeps the
slots it got for its whole length, so that a tenant does not wander between devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import Generic, TypeVar

from ouvrage.base.grades import Grade
from ouvrage.books.period import Period
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.model.earnings import OwnerLease
from ouvrage.model.occupancy import STATES, DeviceState
from ouvrage.model.sites import DevicePlaced

T = TypeVar("T")
RANK = {state: rank for rank, state in enumerate(STATES)}
SOLD = ("working", "held", "reserved")
NO_FACT = "no fact says"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A device of a node was in ``state`` from ``from_us`` to ``to_us``, because of ``cause``.

    ``facts`` are the keys of what says so, ``set_aside`` of what said otherwise; ``grade`` is None
    where nobody says anything.
    """

    device: str
    node: str
    from_us: int
    to_us: int
    state: str
    cause: str
    channel: str | None
    tenant: str | None
    lease: str | None
    grade: Grade | None
    facts: tuple[str, ...]
    set_aside: tuple[str, ...]

    @property
    def us(self) -> int:
        """How long it was."""
        return self.to_us - self.from_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One statement as the calendar weighs it: about some ``slots`` of a node, or ``count`` of them."""

    state: str
    cause: str
    channel: str | None
    tenant: str | None
    lease: str | None
    grade: Grade
    key: str
    from_us: int
    to_us: int
    slots: frozenset[int] | None
    count: int

    @property
    def place(self) -> tuple[int, Grade, int, str]:
        """Its place among statements that overlap; the least counts."""
        return (RANK[self.state], self.grade, -self.from_us, self.key)

    @property
    def group(self) -> tuple[str, str | None, str | None, str | None]:
        """What makes two counting statements the same statement twice, and not two that add up."""
        return (self.state, self.channel, self.tenant, self.lease)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A device in its place in a node, from ``from_us`` to ``to_us`` (clipped to the period)."""

    device: str
    number: int
    from_us: int
    to_us: int


def calendar(record: OwnerRecord, device: str, period: Period) -> tuple[Stretch, ...]:
    """What a device was doing, tiling the part of the period in which it stood in a node."""
    nodes = {each.value.node for each in record.devices if each.value.device == device}
    found = [
        stretch
        for node in sorted(nodes)
        for stretch in node_calendar(record, node, period).get(device, ())
    ]
    return tuple(sorted(found, key=lambda stretch: stretch.from_us))


def node_calendar(record: OwnerRecord, node: str, period: Period) -> dict[str, tuple[Stretch, ...]]:
    """The calendars of every device of a node, each tiling the time in which it stood there."""
    slots = slots_of(record, node, period)
    if not slots:
        return {}
    numbers = sorted({slot.number for slot in slots})
    said = [*_states(record, node, slots, period), *_leases(record, node, slots, period).said]
    per_slot = _weighed(said, numbers, sorted(_edges(slots, said)))
    found: dict[str, list[Stretch]] = {slot.device: [] for slot in slots}
    for slot in slots:
        for begins, ends, best, aside in per_slot[slot.number]:
            begins, ends = max(begins, slot.from_us), min(ends, slot.to_us)
            if begins < ends:
                _extend(found[slot.device], _stretch(slot, node, begins, ends, best, aside))
    return {device: tuple(stretches) for device, stretches in found.items()}


def slots_of(record: OwnerRecord, node: str, period: Period) -> tuple[Slot, ...]:
    """Which devices stood in a node during a period, each with its number and its time there.

    Devices without a stated slot are numbered after the others, by name. Time in which the node was
    not in service is not the device's.
    """
    service = [
        (max(each.from_us, period.from_us), min(each.to_us, period.to_us))
        for each in in_turn(record.nodes, lambda value: [value.node])
        if each.value.node == node
    ]
    standing = [each for each in placements(record) if each.value.node == node]
    numbers = _numbers([each.value for each in standing])
    found = [
        Slot(device=each.value.device, number=numbers[each.value.device],
             from_us=max(each.from_us, begins), to_us=min(each.to_us, ends))
        for each in standing
        for begins, ends in service
        if max(each.from_us, begins) < min(each.to_us, ends)
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda slot: (slot.from_us, slot.number, slot.device)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Generic[T]):
    """A statement and the time for which it holds until another one takes its place."""

    value: T
    from_us: int
    to_us: int
    key: str


def in_turn(entries: Iterable[Known[T]], places: Callable[[T], list[object]]) -> list[Turn[T]]:
    """Statements with their ends: one ends where a later one takes any of its ``places``."""
    found: list[Turn[T]] = []
    following: dict[object, int] = {}
    for each in sorted(entries, key=lambda e: (e.valid_from, e.key), reverse=True):
        ours = places(each.value)
        ends = min([each.end, *(following[place] for place in ours if place in following)])
        following.update(dict.fromkeys(ours, each.valid_from))
        if each.valid_from < ends:
            turn = Turn(value=each.value, from_us=each.valid_from, to_us=ends, key=each.key)
            found.append(turn)
    return found[::-1]


def placements(record: OwnerRecord) -> list[Turn[DevicePlaced]]:
    """Where every device stood and when: moved it is elsewhere, and a slot holds one at a time."""
    return in_turn(record.devices, _places)


def _places(placed: DevicePlaced) -> list[object]:
    slot = [(placed.node, placed.slot)] if placed.slot is not None else []
    return [placed.device, *slot]


def _numbers(devices: Iterable[DevicePlaced]) -> dict[str, int]:
    stated: dict[str, int | None] = {each.device: each.slot for each in devices}
    highest = max((slot for slot in stated.values() if slot is not None), default=-1)
    loose = sorted(device for device, slot in stated.items() if slot is None)
    numbers = {device: slot for device, slot in stated.items() if slot is not None}
    return {**numbers, **{device: highest + 1 + i for i, device in enumerate(loose)}}


def _states(
    record: OwnerRecord, node: str, slots: Sequence[Slot], period: Period
) -> Iterable[Said]:
    everywhere = frozenset(slot.number for slot in slots)
    by_device = {slot.device: slot.number for slot in slots}
    for each in record.states:
        state = each.value
        if not each.meets(period.from_us, period.to_us) or state.state not in RANK:
            continue
        if state.device is not None and state.device in by_device:
            yield _said(each, frozenset((by_device[state.device],)), 1)
        elif state.node == node:
            slots_said = everywhere if state.count is None else None
            yield _said(each, slots_said, state.count or 0)


def _said(each: Known[DeviceState], slots: frozenset[int] | None, count: int) -> Said:
    state = each.value
    return Said(
        state=state.state, cause=state.cause, channel=state.channel, tenant=state.tenant,
        lease=state.lease, grade=each.grade, key=each.key, from_us=each.valid_from, to_us=each.end,
        slots=slots, count=count,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """What leases say of a node's slots, and the leases for which there was no room."""

    said: tuple[Said, ...]
    homeless: tuple[Known[OwnerLease], ...]


def leases_of(record: OwnerRecord, node: str, period: Period) -> Leased:
    """The leases of a node, each on the slots that it keeps, and those without a free device."""
    return _leases(record, node, slots_of(record, node, period), period)


def _leases(record: OwnerRecord, node: str, slots: Sequence[Slot], period: Period) -> Leased:
    by_device = {slot.device: slot.number for slot in slots}
    numbers = sorted(set(by_device.values()))
    taken: dict[int, list[tuple[int, int]]] = {number: [] for number in numbers}
    said: list[Said] = []
    homeless: list[Known[OwnerLease]] = []
    for each in _in_order(record, node, by_device, period):
        begins, ends = max(each.valid_from, period.from_us), min(each.end, period.to_us)
        sort, _, name = each.value.about.partition(":")
        wanted = [by_device[name]] if sort == "device" else numbers
        free = [n for n in wanted if not any(a < ends and begins < b for a, b in taken[n])]
        chosen = free[: each.value.count]
        if len(chosen) < each.value.count:
            homeless.append(each)
        for number in chosen:
            taken[number].append((begins, ends))
        if chosen:
            said.append(_lease_said(each, frozenset(chosen)))
    return Leased(said=tuple(said), homeless=tuple(homeless))


def _in_order(
    record: OwnerRecord, node: str, by_device: Mapping[str, int], period: Period
) -> list[Known[OwnerLease]]:
    """Leases of the node in the period: those that name a device first, then by their beginning."""
    ours = [
        each
        for each in record.leases
        if each.meets(period.from_us, period.to_us)
        and (each.value.about == f"node:{node}" or each.value.about.partition(":")[2] in by_device)
        and each.value.about.partition(":")[0] in ("node", "device")
    ]
    return sorted(ours, key=lambda e: (e.value.about.startswith("node:"), e.valid_from, e.key))


def _lease_said(each: Known[OwnerLease], slots: frozenset[int]) -> Said:
    lease = each.value
    return Said(
        state="held", cause="leased, and nothing says that it worked", channel=lease.channel,
        tenant=lease.tenant, lease=lease.lease, grade=each.grade, key=each.key,
        from_us=each.valid_from, to_us=each.end, slots=slots, count=len(slots),
    )  # fmt: skip


def _edges(slots: Iterable[Slot], said: Iterable[Said]) -> set[int]:
    first, last = min(s.from_us for s in slots), max(s.to_us for s in slots)
    inner = {at for each in said for at in (each.from_us, each.to_us) if first < at < last}
    return {first, last, *inner}


Weighed = list[tuple[int, int, Said | None, tuple[str, ...]]]


def _weighed(
    said: Sequence[Said], numbers: Sequence[int], edges: Sequence[int]
) -> dict[int, Weighed]:
    """For every slot and every stretch between edges: what counts there, and what was set aside."""
    found: dict[int, Weighed] = {number: [] for number in numbers}
    coming = sorted(said, key=lambda each: each.from_us)
    live: list[tuple[int, int]] = []
    active: dict[int, Said] = {}
    at = 0
    chosen = _chosen((), numbers)
    for begins, ends in pairwise(edges):
        changed = False
        while at < len(coming) and coming[at].from_us <= begins:
            if coming[at].to_us > begins:
                heappush(live, (coming[at].to_us, at))
                active[at] = coming[at]
                changed = True
            at += 1
        while live and live[0][0] <= begins:
            active.pop(heappop(live)[1])
            changed = True
        if changed:
            chosen = _chosen(list(active.values()), numbers)
        for number in numbers:
            best, aside = chosen[number]
            found[number].append((begins, ends, best, aside))
    return found


Chosen = dict[int, tuple[Said | None, tuple[str, ...]]]


def _chosen(active: Sequence[Said], numbers: Sequence[int]) -> Chosen:
    """What counts for each slot among the statements that hold at one moment."""
    claims: dict[int, list[Said]] = {number: [] for number in numbers}
    for each in active:
        for number in each.slots or ():
            claims[number].append(each)
    best = {
        number: min(ours, key=lambda s: s.place, default=None) for number, ours in claims.items()
    }
    counted: set[int] = set()
    spare: list[str] = []
    for each in _counting(active, spare):
        fitting = sorted(
            (n for n in numbers if n not in counted and _weaker(best[n], each)),
            key=lambda n: _fit(best[n], each, n),
        )
        for number in fitting[: each.count]:
            claims[number].append(each)
            best[number] = each
            counted.add(number)
    return {
        number: (best[number], _aside(claims[number], best[number], spare)) for number in numbers
    }


def _counting(active: Iterable[Said], spare: list[str]) -> list[Said]:
    """Statements that count devices, the strongest first; the same one said twice counts once."""
    ordered = sorted((each for each in active if each.slots is None), key=lambda s: s.place)
    seen: set[tuple[str, str | None, str | None, str | None]] = set()
    kept: list[Said] = []
    for each in ordered:
        if each.group in seen:
            spare.append(each.key)
        else:
            seen.add(each.group)
            kept.append(each)
    return kept


def _weaker(best: Said | None, each: Said) -> bool:
    return best is None or RANK[best.state] > RANK[each.state]


def _fit(best: Said | None, each: Said, number: int) -> tuple[int, int]:
    """How well a slot fits a counting statement: its own lease, any lease for work, nobody's."""
    if best is not None and best.lease is not None and best.lease == each.lease:
        return (0, number)
    if best is not None and best.state in SOLD and each.state in SOLD:
        return (1, number)
    return (2 if best is None else 3, number)


def _aside(claims: Iterable[Said], best: Said | None, spare: Iterable[str]) -> tuple[str, ...]:
    kept = {each.key for each in claims if each is not best} | set(spare)
    return tuple(sorted(kept - {best.key if best else ""}))


def _stretch(
    slot: Slot, node: str, begins: int, ends: int, best: Said | None, aside: tuple[str, ...]
) -> Stretch:
    return Stretch(
        device=slot.device,
        node=node,
        from_us=begins,
        to_us=ends,
        state=best.state if best else "unknown",
        cause=best.cause if best else NO_FACT,
        channel=best.channel if best else None,
        tenant=best.tenant if best else None,
        lease=best.lease if best else None,
        grade=best.grade if best else None,
        facts=(best.key,) if best else (),
        set_aside=aside,
    )


def _extend(stretches: list[Stretch], following: Stretch) -> None:
    """Add a stretch, lengthening the last one where nothing but the clock has changed."""
    last = stretches[-1] if stretches else None
    if last is not None and last.to_us == following.from_us and _told(last) == _told(following):
        stretches[-1] = _stretch_to(last, following.to_us)
    else:
        stretches.append(following)


def _told(stretch: Stretch) -> tuple[object, ...]:
    return (stretch.state, stretch.cause, stretch.facts, stretch.set_aside, stretch.lease)


def _stretch_to(stretch: Stretch, to_us: int) -> Stretch:
    return replace(stretch, to_us=to_us)


def hours_by_state(stretches: Iterable[Stretch]) -> dict[str, int]:
    """Microseconds in each state; every state is there, and together they are the stretches' time."""
    found: dict[str, int] = dict.fromkeys(STATES, 0)
    for stretch in stretches:
        found[stretch.state] += stretch.us
    return found
