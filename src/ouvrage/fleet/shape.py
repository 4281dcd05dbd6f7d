"""What Slurm is told of a machine: sockets, cores, memory, GPUs, from its inventory on record.

Decides how each figure comes from parts that were read, and refuses where one cannot be: a node that promises more than it has is
drained by Slurm when it registers, after work was planned on it. Memory is 95 % of its modules, since the firmware and the kernel
keep up to 4 % and a node that is one MiB short is refused; GPUs are numbered in the order of their bus addresses, as their device
files are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ouvrage.base.errors import OuvrageError
from ouvrage.model.bringup import FleetGpu, FleetMember
from ouvrage.model.health import NodeInventory, Part, Way

_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(MiB|GiB|TiB)")
_MIB = {"MiB": 1, "GiB": 1 << 10, "TiB": 1 << 20}
_CORES = re.compile(r"([0-9]{1,9}) (cores|threads)")
_FAMILIES = ("nvidia", "geforce", "tesla", "quadro", "graphics", "device")
_SUFFIXES = ("ti", "super", "ada")
_LINK = re.compile(r"NV([0-9]{1,4})")
_MOST_CPUS, _MOST_MIB, _MOST_GPUS = 65_533, 1 << 40, 1024
"""What Slurm can count of a node (16 bits of processors), and beyond what any machine has."""
KEPT = (95, 100)
"""Of the memory in a machine's modules, what jobs may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a machine has for jobs: ``cores`` for each socket, ``threads`` for each core, ``memory_mib``, ``gpus`` by number."""

    sockets: int
    cores: int
    threads: int
    memory_mib: int
    gpus: tuple[FleetGpu, ...]


def shape_of(
    now: NodeInventory, *, memory_mib: int | None = None, gpu_type: str | None = None
) -> Shape:
    """The shape of a machine. ``memory_mib`` and ``gpu_type`` are its owner's word instead of what is derived.

    Raises ``OuvrageError`` ``fleet/not-told`` where a figure cannot be made, ``fleet/uneven`` where sockets differ.
    """
    sockets, cores, threads = _processors(now)
    memory = _memory(now) if memory_mib is None else memory_mib
    found = Shape(
        sockets=sockets, cores=cores, threads=threads, memory_mib=memory, gpus=_gpus(now, gpu_type)
    )
    _check_bounds(now.node, found)
    return found


def _check_bounds(node: str, found: Shape) -> None:
    counts = {
        "threads": (found.sockets * found.cores * found.threads, _MOST_CPUS),
        "MiB": (found.memory_mib, _MOST_MIB),
        "GPUs": (len(found.gpus), _MOST_GPUS),
    }
    for what, (count, most) in counts.items():
        if count > most:
            raise OuvrageError(
                "fleet/not-told", f"the inventory of {node} has {count} {what}, no node has more than {most}",
                hint="ouvrage node inventory, on that machine: a figure of it is not true",
            )  # fmt: skip


def _untold(now: NodeInventory, what: str, option: str) -> OuvrageError:
    why = next((each.value for each in now.untold if each.name == what), "it tells none")
    return OuvrageError(
        "fleet/not-told", f"the inventory of {now.node} does not say what {what} it has: {why}",
        hint=f"as root, on that machine: ouvrage node inventory{option}",
    )  # fmt: skip


def _processors(now: NodeInventory) -> tuple[int, int, int]:
    """Sockets, cores a socket, threads a core: two where the kernel says that both are in use, else one."""
    found = [_CORES.fullmatch(part.size or "") for part in now.parts if part.kind == "cpu"]
    told = [(int(each[1]), each[2]) for each in found if each is not None]
    if not told or len(told) < len(found) or not all(count for count, _ in told):
        raise _untold(now, "cpu", "")
    if len(set(told)) > 1:
        words = ", ".join(f"{count} {what}" for count, what in told)
        raise OuvrageError(
            "fleet/uneven", f"the sockets of {now.node} differ: {words}",
            hint="Slurm describes a node by one number of cores for all its sockets; leave it out",
        )  # fmt: skip
    count, what = told[0]
    both = what == "cores" and any(
        each.name == "hyperthreading" and each.value == "on" for each in now.settings
    )
    return len(told), count, 2 if both else 1


def _memory(now: NodeInventory) -> int:
    sizes = [_SIZE.fullmatch(part.size or "") for part in now.parts if part.kind == "dimm"]
    told = [each for each in sizes if each is not None]
    if not told or len(told) < len(sizes):
        raise _untold(now, "dimm", ", or say it: --memory MIB")
    whole = sum(_mib(each[1], each[2]) for each in told)
    return whole * KEPT[0] // KEPT[1]


def _mib(count: str, unit: str) -> int:
    whole, _, part = count.partition(".")
    return (int(whole + part) * _MIB[unit]) // 10 ** len(part)


def _gpus(now: NodeInventory, gpu_type: str | None) -> tuple[FleetGpu, ...]:
    """Every GPU, numbered by its address."""
    for each in now.untold:
        if each.name == "gpu":
            raise _untold(now, "gpu", "")
    parts = sorted((p for p in now.parts if p.kind == "gpu"), key=lambda part: part.slot)
    links = _links([part.slot for part in parts], now.ways)
    return tuple(
        FleetGpu(
            number=number, type=gpu_type or type_of(_model(now, part, None)),
            model=_model(now, part, gpu_type),
            serial=part.serial, links=links[number] if links else "",
        )
        for number, part in enumerate(parts)
    )  # fmt: skip


def _model(now: NodeInventory, part: Part, otherwise: str | None) -> str:
    model = part.model or otherwise
    if model is None:
        raise OuvrageError(
            "fleet/not-told", f"the GPU {part.slot} of {now.node} does not say what it is",
            hint="its driver tells: load it, then ouvrage node inventory; or --gpu-type NAME",
        )  # fmt: skip
    return model


def type_of(model: str) -> str:
    """The word that jobs ask for: ``NVIDIA H100 80GB HBM3`` is ``h100``, ``GeForce RTX 4090`` ``rtx_4090``.

    The maker's and the family's names are left out, and all that comes after the first word with a digit, but for ``Ti``, ``SUPER``
    and ``Ada``: a part of the name that Slurm's own detection gives, so that one can change to it later.
    """
    words = [each for each in re.split(r"[^a-z0-9]+", model.lower()) if each]
    told = [each for each in words if each not in _FAMILIES]
    numbered = next((i for i, each in enumerate(told) if re.search(r"[0-9]", each)), len(told) - 1)
    last = numbered + 1
    while last < len(told) and told[last] in _SUFFIXES:
        last += 1
    found = "_".join(told[:last])
    return found if re.match(r"[a-z]", found) else f"gpu_{found}".rstrip("_")


def _links(slots: Sequence[str], ways: Sequence[Way]) -> list[str]:
    """How many NVLinks join each GPU to each other; nothing where no pair is joined by any."""
    between: dict[tuple[str, str], int] = {}
    for each in ways:
        many = _LINK.fullmatch(each.link)
        if many and each.one in slots and each.other in slots:
            between[each.one, each.other] = between[each.other, each.one] = int(many[1])
    if not between:
        return []
    return [",".join("-1" if a == b else str(between.get((a, b), 0)) for b in slots) for a in slots]


def types_of(members: Sequence[FleetMember]) -> Counter[str]:
    """How many GPUs of each type the members have together."""
    return Counter(gpu.type for member in members for gpu in member.gpus)


def groups(member: FleetMember) -> Iterator[tuple[str, list[FleetGpu]]]:
    """A member's GPUs by type, the types in the order of their first number."""
    for name in dict.fromkeys(gpu.type for gpu in member.gpus):
        yield name, [gpu for gpu in member.gpus if gpu.type == name]
