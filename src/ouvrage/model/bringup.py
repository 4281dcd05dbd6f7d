"""A fleet as its owner wants it: where its controller stands, and which machines belong to it.

Decides only what is kept. The files of its Slurm are made from these facts anew each time (``fleet/plan``), so that what a host
has can always be held to what it should have. Keys and passwords are no facts and stand in none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ouvrage.model.work import Named


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """What holds for the whole fleet; a later one takes the place of the one before.

    ``build`` and ``work_class`` say what a machine must be and have proved to join. ``root`` stands before every path (empty: the
    system's own). ``settings`` are the owner's own lines of ``slurm.conf``, ``refused`` accounts whose jobs are turned away and the
    words that their people read.
    """

    KIND: ClassVar[str] = "fleet.settings"
    VERSION: ClassVar[int] = 1

    cluster: str
    controller: str
    address: str | None
    build: str
    work_class: str
    root: str
    controller_port: int
    node_port: int
    accounting_port: int
    rest_port: int
    database: str
    database_port: int
    settings: tuple[Named, ...]
    refused: tuple[Named, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetGpu:
    """A GPU of a member: the ``number`` of its device file, the ``type`` that jobs ask for, and what its inventory tells of it.

    ``links`` are Slurm's ``Links``: how many NVLinks join it to each GPU of the node, -1 for itself; empty where none is told.
    """

    number: int
    type: str
    model: str
    serial: str | None
    links: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    """A machine of the fleet, as Slurm is told of it. ``removed``: it is one no more.

    ``host`` is the name that the machine itself answers with, ``address`` where it is reached, ``port`` that of its ``slurmd`` (None: the
    fleet's). ``devices`` stands before the number of each GPU's file. ``build``, ``certificate`` and ``inventory`` are what it was
    held to when it joined: a build's name and two facts' keys. ``allowed`` are the patterns of deviations that were let pass, ``said``
    what is its owner's word and not derived from the inventory: ``memory``, ``cores``, ``gpu_type``.
    """

    KIND: ClassVar[str] = "fleet.member"
    VERSION: ClassVar[int] = 1

    node: str
    host: str
    address: str
    port: int | None
    sockets: int
    cores: int
    threads: int
    memory_mib: int
    gpus: tuple[FleetGpu, ...]
    devices: str
    build: str
    certificate: str
    inventory: str
    allowed: tuple[str, ...]
    said: tuple[str, ...]
    removed: bool
    why: str


BRINGUP = (FleetSettings, FleetMember)
