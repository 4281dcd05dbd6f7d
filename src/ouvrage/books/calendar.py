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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter
from typing import Generic, NamedTuple, Protocol, TypeVar

from ouvrage.base.grades import Grade
from ouvrage.books.period import Period
from ouvrage.books.record import FOR_EVER, Known, OwnerRecord
from ouvrage.model.earnings import OwnerLease
from ouvrage.model.occupancy import STATES
from ouvrage.model.sites import DevicePlaced

T = TypeVar("T")
RANK = {state: rank for rank, state in enumerate(STATES)}
SOLD = ("working", "held", "reserved")
NO_FACT = "no fact says"


class Stretch(NamedTuple):
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


class Said(NamedTuple):
    """One statement as the calendar weighs it.

    About one ``device``, about some ``slots``, about ``many`` devices without saying which, or, where
    all three are None, about every device of the node.
    """

    state: str
    cause: str
    channel: str | None
    tenant: str | None
    lease: str | None
    grade: Grade
    key: str
    from_us: int
    to_us: int
    device: str | None
    slots: frozenset[int] | None
    many: int | None

    def concerns(self, number: int, device: str) -> bool:
        """Whether it is about the device that stands in a slot."""
        if self.device is not None:
            return self.device == device
        return self.many is None and (self.slots is None or number in self.slots)

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
    said = [*_states(record, node, slots, period), *leases_of(record, node, period).said]
    found: dict[str, list[Stretch]] = {slot.device: [] for slot in slots}
    for ours, standing in _apart(said, slots):
        in_turn = _in_turn(ours, standing[0]) if len(standing) == 1 else None
        if in_turn is not None:
            for begins, ends, said_then in in_turn:
                device = standing[0].device
                _extend(found[device], _stretch(device, node, begins, ends, said_then, ()))
            continue
        for begins, ends, chosen in _weighed(ours, standing):
            for device, (best, aside) in chosen.items():
                stretch = _stretch(device, node, begins, ends, best, aside)
                _extend(found[device], stretch)
    return {device: tuple(stretches) for device, stretches in found.items()}


def _in_turn(said: Sequence[Said], slot: Slot) -> list[tuple[int, int, Said | None]] | None:
    """What is said of one slot, with the time between; None where statements overlap or count."""
    found: list[tuple[int, int, Said | None]] = []
    at, until = slot.from_us, None
    for each in sorted(said, key=_from_us):
        if each.many is not None or (until is not None and each.from_us < until):
            return None
        until = each.to_us
        begins, ends = max(each.from_us, slot.from_us), min(each.to_us, slot.to_us)
        if begins < ends:
            if at < begins:
                found.append((at, begins, None))
            found.append((begins, ends, each))
            at = ends
    if at < slot.to_us:
        found.append((at, slot.to_us, None))
    return found


_from_us = attrgetter("from_us")


def _apart(
    said: Sequence[Said], slots: Sequence[Slot]
) -> list[tuple[Sequence[Said], Sequence[Slot]]]:
    """Slots with what is said of them, as few together as can be weighed by themselves.

    Only a statement that counts devices makes what one did depend on the others. Without one, each
    slot alone: then no slot is cut where another one changes.
    """
    if any(each.many is not None for each in said):
        return [(said, slots)]
    named: dict[str, list[Said]] = {}
    for each in said:
        if each.device is not None:
            named.setdefault(each.device, []).append(each)
    others = [each for each in said if each.device is None]
    return [
        (
            [
                *named.get(slot.device, ()),
                *(each for each in others if each.concerns(slot.number, slot.device)),
            ],
            [slot],
        )
        for slot in slots
    ]


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
    devices = {slot.device for slot in slots}
    for each in record.states:
        state = each.value
        ours = state.node == node if state.device is None else state.device in devices
        if ours and state.state in RANK and each.meets(period.from_us, period.to_us):
            yield Said(
                state.state, state.cause, state.channel, state.tenant, state.lease, each.grade, each.key,
                each.valid_from, each.end, state.device, None, state.count,
            )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """What leases say of a node's slots, and the leases for which there was no room."""

    said: tuple[Said, ...]
    homeless: tuple[Known[OwnerLease], ...]


def leases_of(record: OwnerRecord, node: str, period: Period) -> Leased:
    """The leases of a node, each on the slots that it keeps, and those without a free device.

    Slots are given out over all time, not over the period alone: a tenant has the same devices
    whichever month is looked at.
    """
    ever = slots_of(record, node, _EVER)
    devices = {slot.device: slot.number for slot in ever}
    taken: dict[int, list[tuple[int, int]]] = {number: [] for number in devices.values()}
    said: list[Said] = []
    homeless: list[Known[OwnerLease]] = []
    for each in _in_order(record, node, devices):
        wanted = _wanted(each, devices, ever)
        free = [
            n for n in wanted if not any(a < each.end and each.valid_from < b for a, b in taken[n])
        ][: each.value.count]
        for number in free:
            taken[number].append((each.valid_from, each.end))
        if each.meets(period.from_us, period.to_us):
            if len(free) < each.value.count:
                homeless.append(each)
            if free:
                said.append(_lease_said(each, frozenset(free)))
    return Leased(said=tuple(said), homeless=tuple(homeless))


_EVER = Period(from_us=-FOR_EVER, to_us=FOR_EVER, name="", zone="UTC")


def _in_order(
    record: OwnerRecord, node: str, devices: Mapping[str, int]
) -> list[Known[OwnerLease]]:
    """Leases of the node: those that name a device first, then by their beginning."""
    ours = [
        each
        for each in record.leases
        if each.value.about == f"node:{node}"
        or (each.value.about.startswith("device:") and each.value.about[7:] in devices)
    ]
    return sorted(ours, key=lambda e: (e.value.about.startswith("node:"), e.valid_from, e.key))


def _wanted(each: Known[OwnerLease], devices: Mapping[str, int], ever: Sequence[Slot]) -> list[int]:
    """The slots that a lease may have: those in use when it begins first, then those used later."""
    about = each.value.about
    used = [slot for slot in ever if slot.from_us < each.end and each.valid_from < slot.to_us]
    if about.startswith("device:"):
        stood = any(slot.device == about[7:] for slot in used)
        return [devices[about[7:]]] if stood else []
    later = {slot.number: True for slot in used}
    later.update({slot.number: False for slot in used if slot.from_us <= each.valid_from})
    return sorted(later, key=lambda number: (later[number], number))


def _lease_said(each: Known[OwnerLease], slots: frozenset[int]) -> Said:
    lease = each.value
    one = lease.about[7:] if lease.about.startswith("device:") else None
    return Said(
        state="held", cause="leased, and nothing says that it worked", channel=lease.channel,
        tenant=lease.tenant, lease=lease.lease, grade=each.grade, key=each.key,
        from_us=each.valid_from, to_us=each.end, device=one, slots=slots, many=None,
    )  # fmt: skip


def _weighed(
    said: Sequence[Said], slots: Sequence[Slot]
) -> Iterator[tuple[int, int, dict[str, tuple[Said | None, tuple[str, ...]]]]]:
    """For every stretch between two edges: what counts for each device there, and what was set aside."""
    first, last = min(s.from_us for s in slots), max(s.to_us for s in slots)
    edges = {
        at for each in (*said, *slots) for at in (each.from_us, each.to_us) if first < at < last
    }
    active, standing = _Live(said), _Live(slots)
    chosen: dict[str, tuple[Said | None, tuple[str, ...]]] = {}
    for begins, ends in pairwise(sorted({first, last, *edges})):
        if active.moved(begins) | standing.moved(begins) or begins == first:
            present = {slot.number: slot.device for slot in standing.now.values()}
            found = _chosen(list(active.now.values()), present)
            chosen = {present[number]: each for number, each in found.items()}
        yield begins, ends, chosen


class _Timed(Protocol):
    @property
    def from_us(self) -> int: ...
    @property
    def to_us(self) -> int: ...


E = TypeVar("E", bound=_Timed)


class _Live(Generic[E]):
    """Which of some timed things hold at a moment that only moves forward."""

    def __init__(self, things: Iterable[E]) -> None:
        self.now: dict[int, E] = {}
        self._coming = sorted(things, key=lambda each: each.from_us)
        self._ends: list[tuple[int, int]] = []
        self._at = 0

    def moved(self, at_us: int) -> bool:
        """Move on to a moment; whether anything began or ended to hold."""
        changed = False
        while self._at < len(self._coming) and self._coming[self._at].from_us <= at_us:
            if self._coming[self._at].to_us > at_us:
                heappush(self._ends, (self._coming[self._at].to_us, self._at))
                self.now[self._at] = self._coming[self._at]
                changed = True
            self._at += 1
        while self._ends and self._ends[0][0] <= at_us:
            del self.now[heappop(self._ends)[1]]
            changed = True
        return changed


Chosen = dict[int, tuple[Said | None, tuple[str, ...]]]


def _chosen(active: Sequence[Said], present: Mapping[int, str]) -> Chosen:
    """What counts for each slot among the statements that hold at one moment."""
    numbers = sorted(present)
    claims = {n: [each for each in active if each.concerns(n, present[n])] for n in numbers}
    best = {n: min(ours, key=lambda s: s.place, default=None) for n, ours in claims.items()}
    counted: set[int] = set()
    spare: list[str] = []
    for each in _counting(active, spare):
        fitting = sorted(
            (n for n in numbers if n not in counted and _weaker(best[n], each)),
            key=lambda n: _fit(best[n], each, n),
        )
        for number in fitting[: each.many or 0]:
            claims[number].append(each)
            best[number] = each
            counted.add(number)
    return {
        number: (best[number], _aside(claims[number], best[number], spare)) for number in numbers
    }


def _counting(active: Iterable[Said], spare: list[str]) -> list[Said]:
    """Statements that count devices, the strongest first; the same one said twice counts once."""
    ordered = sorted((each for each in active if each.many is not None), key=lambda s: s.place)
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
    device: str, node: str, begins: int, ends: int, best: Said | None, aside: tuple[str, ...]
) -> Stretch:
    if best is None:
        nobody = ("unknown", NO_FACT, None, None, None, None, ())
        return Stretch(device, node, begins, ends, *nobody, aside)
    state, cause, channel, tenant, lease, grade, key, *_ = best
    return Stretch(
        device, node, begins, ends, state, cause, channel, tenant, lease, grade, (key,), aside
    )


def _extend(stretches: list[Stretch], following: Stretch) -> None:
    """Add a stretch, lengthening the last one where nothing but the clock has changed."""
    last = stretches[-1] if stretches else None
    if (
        last is not None
        and last.to_us == following.from_us
        and last.facts == following.facts
        and _told(last) == _told(following)
    ):
        stretches[-1] = last._replace(to_us=following.to_us)
    else:
        stretches.append(following)


def _told(stretch: Stretch) -> tuple[object, ...]:
    return (stretch.state, stretch.cause, stretch.facts, stretch.set_aside, stretch.lease)


def hours_by_state(stretches: Iterable[Stretch]) -> dict[str, int]:
    """Microseconds in each state; every state is there, and together they are the stretches' time."""
    found: dict[str, int] = dict.fromkeys(STATES, 0)
    for stretch in stretches:
        found[stretch.state] += stretch.us
    return found
