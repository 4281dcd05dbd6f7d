"""Whether a machine may join the fleet, with every reason why not.

Decides that it must be as the build says, in everything that the build does not let differ, what cannot be told included; that a
certificate of the fleet's class of work must hold with the parts that are there now; and that no GPU, board or address is in two
nodes at once: an inventory that was copied, or made up, is found by the serial numbers that another machine has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ouvrage.fleet.shape import Shape, type_of
from ouvrage.health.builds import held_to_build
from ouvrage.health.certificates import latest, part_ids, standing
from ouvrage.model.bringup import FleetMember, FleetSettings
from ouvrage.model.builds import NodeBuild
from ouvrage.model.health import NodeCertificate, NodeInventory

_MOST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One reason (``about`` build, certificate, gpus or name), the words for it, and what to do."""

    about: str
    words: str
    hint: str


def build_refusals(
    build: NodeBuild, now: NodeInventory, allowed: Sequence[str] = ()
) -> Iterator[Refusal]:
    """Each thing in which a machine is not the build."""
    held = held_to_build(build, now, allowed)
    hint = f"ouvrage node compare {now.node} --build {build.build}; what may differ: --allow 'package:*'"
    for each in held.deviations[:_MOST]:
        yield Refusal(about="build", words=each.words, hint=hint)
    if len(held.deviations) > _MOST:
        more = len(held.deviations) - _MOST
        yield Refusal(about="build", words=f"and {more} more deviations", hint=hint)


def certificate_refusals(
    work_class: str, certificates: Sequence[NodeCertificate], now: NodeInventory, at_us: int
) -> Iterator[Refusal]:
    """Why no certificate of a class holds; ``certificates`` in the order in which they were recorded."""
    hint = f"on that machine: ouvrage node qualify {now.node} --for {work_class}"
    of_class = latest(each for each in certificates if each.node == now.node).get(work_class)
    if of_class is None:
        words = f"it has no certificate for {work_class}"
        yield Refusal(about="certificate", words=words, hint=hint)
        return
    untold = frozenset(each.name for each in now.untold)
    found = standing(of_class, part_ids(now.parts), at_us, untold)
    if not found.holds:
        for why in found.reasons or (found.state,):
            words = f"its certificate for {work_class} is {found.state}: {why}"
            yield Refusal(about="certificate", words=words, hint=hint)


def same_elsewhere(member: FleetMember, others: Sequence[FleetMember]) -> Iterator[Refusal]:
    """What of a machine is already another node's: a name, an address with its port, a GPU."""
    hint = "one of the two inventories is not that machine's: ouvrage node inventory, on both"
    for other in others:
        if other.node == member.node:
            continue
        if other.node.lower() == member.node.lower():
            yield Refusal(about="name", words=f"{other.node} is the same host name", hint="host names have no capitals of their own")  # fmt: skip
        if (other.address, other.port) == (member.address, member.port):
            yield Refusal(
                about="name", words=f"{other.node} is reached at {member.address} already",
                hint="one slurmd listens there: another --address, or --port for a second one",
            )  # fmt: skip
        serials = {gpu.serial: gpu for gpu in other.gpus if gpu.serial}
        for gpu in member.gpus:
            if gpu.serial in serials:
                words = f"GPU {gpu.number} with serial {gpu.serial} is {other.node}'s GPU {serials[gpu.serial].number} too"
                yield Refusal(about="gpus", words=words, hint=hint)


def gpu_refusals(
    member: FleetMember, now: NodeInventory, others: Sequence[FleetMember]
) -> Iterator[Refusal]:
    """GPUs that the driver's library tells and the bus does not have, and two models under one type's name."""
    places = {each.slot for each in now.places}
    slots = [part.slot for part in now.parts if part.kind == "gpu"]
    if places & set(slots):  # else a machine that tells no places at all
        for slot in sorted(set(slots) - places):
            words = f"GPU {slot} is told by the driver's library and not there on the bus"
            yield Refusal(about="gpus", words=words, hint="ouvrage check gpus, on that machine")
    models = {gpu.type: gpu.model for other in others for gpu in other.gpus}
    for name, model in {gpu.type: gpu.model for gpu in member.gpus}.items():
        if models.get(name, model) != model:
            yield Refusal(
                about="gpus", words=f"{model} and {models[name]} would both be asked for as {name}",
                hint=f"give this one a name of its own: --gpu-type {type_of(model)}_2",
            )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a host says when asked now: a line of ``slurmd -C`` by name, and its GPU device files by number."""

    slurmd: dict[str, str]
    devices: tuple[int, ...]


def told_refusals(shape: Shape | FleetMember, told: Told) -> Iterator[Refusal]:
    """In what a host has less than its inventory promises; None of it where the host was not asked."""
    numbers = set(told.devices)
    missing = [gpu.number for gpu in shape.gpus if gpu.number not in numbers]
    if missing:
        words = f"its inventory has {len(shape.gpus)} GPUs, the machine has device files for {len(shape.gpus) - len(missing)}"
        yield Refusal(about="gpus", words=words, hint="ouvrage node inventory, on that machine")
    wanted = {
        "SocketsPerBoard": shape.sockets,
        "CoresPerSocket": shape.cores,
        "ThreadsPerCore": shape.threads,
        "RealMemory": shape.memory_mib,
    }
    for name, count in wanted.items():
        have = told.slurmd.get(name, "")
        if have.isascii() and have.isdigit() and int(have) < count:
            words = f"{name} would be {count}, its slurmd finds {have}"
            hint = "--memory MIB" if name == "RealMemory" else "ouvrage node inventory, there"
            yield Refusal(about="shape", words=words, hint=hint)


def refusals(
    settings: FleetSettings, build: NodeBuild, member: FleetMember, now: NodeInventory,
    certificates: Sequence[NodeCertificate], others: Sequence[FleetMember], at_us: int,
) -> tuple[Refusal, ...]:  # fmt: skip
    """Every reason why a machine may not join; none where it may."""
    return (
        *build_refusals(build, now, member.allowed),
        *certificate_refusals(settings.work_class, certificates, now, at_us),
        *gpu_refusals(member, now, others),
        *same_elsewhere(member, others),
    )
