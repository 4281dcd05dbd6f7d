"""What the facts about health amount to: how each place stands, what is held against it, who fences it, what was tried.

Decides what still counts: a verdict of a boot that is over says nothing any more, nor does one that was made before its place was
last found well, under an older epoch; of one check the latest counts, in whatever order and however often they came. What a place *owes* are the checks
that found it broken; each of them has to find it well, in the boot that runs, before it is free. What is to be done is ``response``'s.

Facts are taken one by one, in the order of their recording, so that whoever keeps a record only reads what is new.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ouvrage.health.fences import Fences, Place
from ouvrage.health.fleet import Fenced
from ouvrage.health.states import AUTOMATION, Standing, begun
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import Unread, read
from ouvrage.model.health import (
    CRITICAL,
    OK,
    RUNGS,
    HealthEvent,
    JobBlamed,
    MaintenanceWindow,
    NodeCertificate,
    NodeInventory,
    Paged,
    Remedy,
    RepairStep,
    StateMove,
    Verdict,
)
from ouvrage.model.machines import FenceSet, NodeEnrolled

WHOLE = frozenset({"reboot", "power_cycle"})
"""Rungs that take the whole machine along, whatever they are climbed for."""

_GPU = re.compile(r"GPU-|MIG-")
_MOST_EARLY, _MOST_FAULTS = 1_000, 10_000
_OPEN = frozenset({"healthy", "suspect", "unknown"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A verdict as it came: the fact's id, its place in the ledger, and since when it holds (UTC)."""

    id: str
    seq: int
    at_us: int
    verdict: Verdict

    @property
    def fences(self) -> bool:
        """Whether it wants its part kept from new work."""
        said = self.verdict
        if said.shadow or said.verdict == OK:
            return False
        return said.verdict == CRITICAL or said.action == "drain" or said.fence != "none"

    @property
    def waits(self) -> bool:
        """Whether something is due once the work on its part has ended."""
        return not self.verdict.shadow and self.verdict.at_drain in RUNGS

    @property
    def asks(self) -> str:
        """The action that is due: now, or else once the work on its part has ended."""
        said = self.verdict
        later = self.waits and height(said.action) <= height("restart_job")
        return said.at_drain if later else said.action


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A rung that was tried on a place, in the epoch in which it was; ``seq`` is that of its end, where it has one."""

    remedy: Remedy
    at_us: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A move as it was recorded."""

    id: str
    at_us: int
    move: StateMove


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """A step that a person walked."""

    at_us: int
    step: RepairStep


@dataclass(slots=True, kw_only=True)
class Machine:
    """A node as far as its health goes: its GPUs, the boot that runs, those that are over, and whether a verdict ever came."""

    name: str
    devices: frozenset[str] = frozenset()
    boot: str = ""
    boots: dict[str, None] = field(default_factory=dict[str, None])
    boot_us: int = 0
    """When the boot that runs was heard of."""
    linked: frozenset[str] = frozenset()
    """GPUs that have NVLinks, as far as a check told: a reset of one takes others along."""
    heard: bool = False
    since_us: int | None = None
    """Since when it is known."""
    moves: int = 0
    """How many moves there were on it: the epoch that its agent goes by."""

    def tied(self, device: str) -> frozenset[str]:
        """What is fenced with a GPU that is to be reset: every other one with NVLinks, since who has them to whom is not told."""
        return self.linked - {device} if device in self.linked else frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """What a node failed, of a sort of ``lemons.WEIGHTS``, when, and on which of its GPUs where that is known."""

    node: str
    devices: tuple[str, ...]
    at_us: int
    sort: str


BROKEN = frozenset(
    {"cpu_wrong_results", "dcgm_failed", "disk_wrong", "gpu_load_missing", "load_died", "memory_wrong"}
)  # fmt: skip
"""Codes of proofs that something is broken; the others say that it is too small or too slow for a class of work, or its room too warm."""

Check = tuple[str, "str | None", str]
"""A check of a node, and the part that it is about."""


@dataclass(slots=True)
class HealthRecord:
    """Everything known, by node and place. ``last_seq`` is up to where the ledger was read."""

    last_seq: int = 0
    machines: dict[str, Machine] = field(default_factory=dict[str, Machine])
    verdicts: dict[str, dict[Check, Heard]] = field(default_factory=dict[str, dict[Check, Heard]])
    """By node, the latest of each check."""
    owed: dict[Place, dict[Check, bool]] = field(default_factory=dict[Place, dict[Check, bool]])
    """The checks that have to find a place well; True: it is repaired for what was due when idle."""
    early: dict[str, list[tuple[Recorded, Verdict]]] = field(
        default_factory=dict[str, "list[tuple[Recorded, Verdict]]"]
    )
    """By node, verdicts of a boot of which it is not known yet whether it runs."""
    standings: dict[Place, Standing] = field(default_factory=dict[Place, Standing])
    moved_seq: dict[Place, int] = field(default_factory=dict[Place, int])
    freed: dict[Place, tuple[int, int]] = field(default_factory=dict[Place, tuple[int, int]])
    moves: list[Moved] = field(default_factory=list[Moved])
    held: dict[Place, dict[str, FenceSet]] = field(default_factory=dict[Place, dict[str, FenceSet]])
    fenced_us: dict[str, int] = field(default_factory=dict[str, int])
    tries: dict[Place, list[Try]] = field(default_factory=dict[Place, list[Try]])
    steps: list[Walked] = field(default_factory=list[Walked])
    pages: dict[str, tuple[int, Paged]] = field(default_factory=dict[str, tuple[int, Paged]])
    windows: dict[str, MaintenanceWindow] = field(default_factory=dict[str, MaintenanceWindow])
    faults: dict[str, list[tuple[str, int, Verdict | HealthEvent]]] = field(
        default_factory=dict[str, list[tuple[str, int, "Verdict | HealthEvent"]]]
    )
    """By node, what was seen that was not well: the fact's id, when, and what it says."""
    blames: dict[str, tuple[int, JobBlamed]] = field(
        default_factory=dict[str, tuple[int, JobBlamed]]
    )
    """By attempt, when it was blamed and on what."""
    failed: dict[str, Failed] = field(default_factory=dict[str, "Failed"])
    """By attempt or certificate: scrubbings that failed, and qualifications that found something broken."""
    ids: dict[str, str] = field(default_factory=dict[str, str])

    def node(self, name: str) -> str:
        """A node's id from its name or id; what is not enrolled goes by the name it is given."""
        return self.ids.get(name, name)

    def machine(self, node: str) -> Machine:
        """The machine of a node; of one that was never heard of, nothing is known."""
        return self.machines.get(node) or Machine(name=node)

    def known(self, node: str) -> Machine:
        """The machine of a node that a fact tells of, known from now on."""
        return self.machines.setdefault(node, Machine(name=node))

    def standing(self, place: Place) -> Standing:
        """How a place stands; one that nobody moved yet is unknown."""
        node, device = place
        found = self.standings.get(place) or begun(node, device, "", 0)
        machine = self.machine(node)
        past = tuple(boot for boot in machine.boots if boot != machine.boot)
        return replace(found, boot=machine.boot, past=past)

    def places(self) -> list[Place]:
        """All nodes, and those parts of them that a verdict or a move was about."""
        found = {(node, None): None for node in self.machines}
        found |= dict.fromkeys((*self.owed, *self.standings))
        found |= {self.part(e): None for latest in self.verdicts.values() for e in latest.values()}
        return sorted(found, key=lambda place: (place[0], place[1] or ""))

    def part(self, heard: Heard) -> Place:
        """What a verdict is about: a GPU, or the machine where it is something else in it or asks for all of it."""
        said = heard.verdict
        node = self.node(said.node)
        own = said.device in self.machine(node).devices and heard.asks not in WHOLE
        return (node, said.device if own else None)

    def counts(self, heard: Heard) -> bool:
        """Whether a verdict is of the boot that runs; rules on trial count for nothing."""
        said = heard.verdict
        return not said.shadow and said.boot == self.machine(self.node(said.node)).boot

    def against(self, place: Place) -> list[Heard]:
        """What is held against a place now, the gravest rung first."""
        bad = [each for each in self.owing(place) if self.counts(each) and self._bad(place, each)]
        return sorted(bad, key=lambda each: (-height(each.asks), each.at_us, each.id))

    def due(self, place: Place) -> list[Heard]:
        """What asks for something once the work on a place has ended, and for nothing now; the first to ask first."""
        found = [each for each in self.own(place) if each.waits and not each.fences]
        return sorted(found, key=lambda each: (each.at_us, each.id))

    def _bad(self, place: Place, heard: Heard) -> bool:
        said = heard.verdict
        late = self.owed[place][(place[0], said.device, said.check)]
        return heard.fences or (late and heard.waits)

    def owing(self, place: Place) -> list[Heard]:
        """The latest of each check that a place owes."""
        latest = self.verdicts.get(place[0], {})
        return [latest[check] for check in self.owed.get(place, ())]

    def own(self, place: Place) -> list[Heard]:
        """What counts about a place itself."""
        return [each for each in self._live(place[0]) if self.part(each) == place]

    def looked(self, place: Place) -> list[Heard]:
        """The same; of a machine that was looked at in parts alone, all of those."""
        mine = self.own(place)
        return mine if mine or place[1] is not None else self._live(place[0])

    def _live(self, node: str) -> list[Heard]:
        return [each for each in self.verdicts.get(node, {}).values() if self.counts(each)]

    def well(self, place: Place) -> list[Heard] | None:
        """The verdicts that find a place well, where each check that it owes does in this boot; else None."""
        owed = self.owing(place)
        if any(not self.counts(each) or self._bad(place, each) for each in owed):
            return None
        return owed or self.looked(place)

    def fences(self) -> Fences:
        """Who holds what."""
        return Fences(
            held={
                place: {holder: fence.why for holder, fence in holders.items()}
                for place, holders in self.held.items()
                if holders
            }
        )

    def fenced(self) -> list[Fenced]:
        """Nodes of which automation holds something back, or did lately."""
        gone = ("rma", "retired")
        holding = {
            place[0]
            for place, by in self.held.items()
            if "automation" in by and self.standing(place).state not in gone
        }
        return [
            Fenced(node=node, at_us=at_us, held=node in holding)
            for node, at_us in self.fenced_us.items()
        ]

    def take(self, entry: Recorded) -> None:
        """Take one more fact, whatever it is about."""
        self.last_seq = max(self.last_seq, entry.seq)
        taker = _TAKERS.get(entry.fact.kind)
        if taker is None:
            return
        value = read(entry.fact)
        if not isinstance(value, Unread):
            taker(self, entry, value)


def record_of(facts: Iterable[Recorded]) -> HealthRecord:
    """The record of some facts, in the order of their recording."""
    made = HealthRecord()
    for entry in sorted(facts, key=lambda entry: entry.seq):
        made.take(entry)
    return made


def height(action: str) -> int:
    """How far up the ladder an action is; -1 for what is no rung."""
    return RUNGS.index(action) if action in RUNGS else -1


def _booted(record: HealthRecord, node: str, boot: str, at_us: int, *, sure: bool = False) -> None:
    """A boot was heard of, at a moment. One that is over stays over, and so is one that is heard of late.

    ``sure``: the runner tells it of itself now; a verdict may have waited for days, while later boots were heard of. What an
    older boot held against something that was never fenced for it is over with that boot.
    """
    machine = record.known(node)
    if not boot or (boot in machine.boots if not sure else boot == machine.boot):
        return
    enrolled = node in record.ids.values()
    if not sure and enrolled and at_us < machine.boot_us:
        return  # it may be a clock that went back: then the runner tells, and what was said of it is taken
    machine.boots[boot] = None
    machine.boot, machine.boot_us = boot, at_us
    for place in [each for each in record.owed if each[0] == node]:
        if record.standing(place).state in _OPEN:
            del record.owed[place]
    for entry, value in record.early.pop(node, []):
        if value.boot == boot:
            _count(record, node, entry, value)


def _known(machine: Machine, entry: Recorded) -> None:
    at_us = entry.fact.valid_from
    machine.since_us = at_us if machine.since_us is None else min(machine.since_us, at_us)


def _enrolled(record: HealthRecord, entry: Recorded, value: NodeEnrolled) -> None:
    record.ids[value.name] = value.node
    machine = record.known(value.node)
    machine.name = value.name
    _known(machine, entry)
    machine.devices = frozenset(device.device for device in value.devices)
    _booted(record, value.node, value.boot, entry.fact.valid_from, sure=True)


def _inventory(record: HealthRecord, entry: Recorded, value: NodeInventory) -> None:
    _booted(record, record.node(value.node), value.boot, entry.fact.valid_from)


def _verdict(record: HealthRecord, entry: Recorded, value: Verdict) -> None:
    node = record.node(value.node)
    machine = record.known(node)
    _booted(record, node, value.boot, entry.fact.valid_from)
    _known(machine, entry)
    if value.device is not None and node not in record.ids.values() and _GPU.match(value.device):
        machine.devices |= {value.device}  # nobody enrolled it: its checks tell which GPUs it has
    machine.heard = True
    if value.device is not None and _has_links(value):
        machine.linked |= {value.device}
    if value.shadow:
        return
    if value.verdict != OK:
        at_us = entry.fact.valid_from
        _faulty(record, node, (entry.fact.key, at_us, value))
    if value.boot == machine.boot:
        _count(record, node, entry, value)
    elif value.boot not in machine.boots:
        record.early.setdefault(node, []).append((entry, value))
        del record.early[node][:-_MOST_EARLY]


def _faulty(record: HealthRecord, node: str, fault: tuple[str, int, Verdict | HealthEvent]) -> None:
    """Keep what was not well: the last of it, which is for months on a machine that is, and for a day on one that flaps."""
    kept = record.faults.setdefault(node, [])
    kept.append(fault)
    if len(kept) > 2 * _MOST_FAULTS:
        del kept[:-_MOST_FAULTS]


def _has_links(value: Verdict) -> bool:
    return any(
        e.name == "nvlinks_most" and e.value not in ("0", "not told") for e in value.evidence
    )


def _count(record: HealthRecord, node: str, entry: Recorded, value: Verdict) -> None:
    """A verdict of the boot that runs: the latest of its check counts, unless it is from before a repair."""
    at_us = entry.fact.valid_from
    heard = Heard(id=entry.fact.key, seq=entry.seq, at_us=at_us, verdict=value)
    place = record.part(heard)
    check = (node, value.device, value.check)
    latest = record.verdicts.setdefault(node, {})
    before = latest.get(check)
    if before is not None and record.counts(before) and _older(value, before.verdict):
        return
    epoch, freed_us = record.freed.get(place, (0, at_us))
    if value.epoch < epoch and at_us <= freed_us:
        return
    latest[check] = heard
    if heard.fences:
        record.owed.setdefault(place, {}).setdefault(check, False)


def _older(value: Verdict, before: Verdict) -> bool:
    """Whether a verdict is no news beside another of the same boot; the later one counts, the worse of two at once."""
    if value.since_us == before.since_us:
        return value.verdict == OK
    return value.since_us < before.since_us


def _event(record: HealthRecord, entry: Recorded, value: HealthEvent) -> None:
    node = record.node(value.node)
    _booted(record, node, value.boot, entry.fact.valid_from)
    _faulty(record, node, (entry.fact.key, entry.fact.valid_from, value))


def _move(record: HealthRecord, entry: Recorded, value: StateMove) -> None:
    place = (record.node(value.node), value.device)
    machine = record.known(place[0])
    machine.moves += 1
    _known(machine, entry)
    at_us = entry.fact.valid_from
    record.moves.append(Moved(id=entry.fact.key, at_us=at_us, move=value))
    record.moved_seq[place] = entry.seq
    record.standings[place] = Standing(
        node=place[0], device=value.device, state=value.to_state, boot="", epoch=value.epoch,
        since_us=at_us,
    )  # fmt: skip
    if value.to_state == "fenced":
        for check, heard in record.verdicts.get(place[0], {}).items():
            if heard.id in value.evidence and heard.waits and record.part(heard) == place:
                record.owed.setdefault(place, {}).setdefault(check, True)
    if value.to_state == "healthy":
        record.owed.pop(place, None)
        if value.from_state not in ("suspect", "unknown"):
            record.freed[place] = (machine.moves, at_us)


def _fence(record: HealthRecord, entry: Recorded, value: FenceSet) -> None:
    place = (record.node(value.node), value.device)
    holders = record.held.setdefault(place, {})
    if value.held and value.holder == "scrub":
        _unclean(record, entry.fact.valid_from, place, value.by)
    if not value.held:
        holders.pop(value.holder, None)
        return
    if value.holder == "automation" and not any(
        "automation" in by for at, by in record.held.items() if at[0] == place[0]
    ):
        record.fenced_us[place[0]] = entry.fact.valid_from
    holders[value.holder] = value


def _unclean(record: HealthRecord, at_us: int, place: Place, attempt: str) -> None:
    """An attempt's place could not be cleaned: once for the node, however many of its GPUs that were."""
    key, own = f"scrub/{attempt}/{place[0]}", (place[1],) if place[1] else ()
    before = record.failed.get(key)
    devices = tuple(sorted({*own, *(before.devices if before else ())}))
    record.failed[key] = Failed(node=place[0], devices=devices, at_us=at_us, sort="scrub")


def _certified(record: HealthRecord, entry: Recorded, value: NodeCertificate) -> None:
    if any(proof.passed is False and proof.code in BROKEN for proof in value.proofs):
        record.failed[f"certificate/{value.certificate}"] = Failed(
            node=record.node(value.node), devices=(), at_us=entry.fact.valid_from,
            sort="qualification",
        )  # fmt: skip


def _remedy(record: HealthRecord, entry: Recorded, value: Remedy) -> None:
    """A rung tried in an epoch is one try, however much comes to be known of it."""
    place = (record.node(value.node), value.device)
    tries = record.tries.setdefault(place, [])
    made = Try(remedy=value, at_us=entry.fact.valid_from, seq=entry.seq)
    for at, each in enumerate(tries):
        same = (each.remedy.rung, each.remedy.epoch, each.remedy.dry_run)
        if same == (value.rung, value.epoch, value.dry_run):
            if not _settled(each.remedy, value):
                seq = entry.seq if value.verified is None else each.seq
                tries[at] = replace(made, at_us=each.at_us, seq=seq)
            return
    tries.append(made)


def _settled(before: Remedy, now: Remedy) -> bool:
    """Whether what was known stands: a beginning that is heard late takes nothing back; a person may try again."""
    if now.verified is None and now.by != AUTOMATION:
        return before.verified is not None
    return now.verified is None and before.outcome not in ("waiting", now.outcome)


def _step(record: HealthRecord, entry: Recorded, value: RepairStep) -> None:
    record.steps.append(Walked(at_us=entry.fact.valid_from, step=value))


def _paged(record: HealthRecord, entry: Recorded, value: Paged) -> None:
    record.pages[value.key] = (entry.fact.valid_from, value)


def _window(record: HealthRecord, _: Recorded, value: MaintenanceWindow) -> None:
    record.windows[value.window] = replace(value, node=record.node(value.node))


def _blamed(record: HealthRecord, entry: Recorded, value: JobBlamed) -> None:
    record.blames[value.attempt] = (entry.fact.valid_from, value)


_Taker = Callable[[HealthRecord, Recorded, Any], None]
_TAKERS: dict[str, _Taker] = {
    kind.KIND: taker
    for kind, taker in (
        (NodeEnrolled, _enrolled),
        (NodeInventory, _inventory),
        (Verdict, _verdict),
        (HealthEvent, _event),
        (StateMove, _move),
        (FenceSet, _fence),
        (Remedy, _remedy),
        (RepairStep, _step),
        (Paged, _paged),
        (MaintenanceWindow, _window),
        (JobBlamed, _blamed),
        (NodeCertificate, _certified),
    )
}
KINDS_READ = tuple(_TAKERS)
"""The kinds of facts that a record is made of."""
