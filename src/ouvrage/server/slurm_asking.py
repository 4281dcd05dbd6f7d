"""What is asked of Slurm for a job, and where the place that it gave stands on our node.

Decides the translation both ways: an offer becomes a partition and a QOS, a project an account, a tenant's priority a nice value; Slurm's numbers
of GPUs and cores become our devices and cores. It asks nobody and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Collection

from ouvrage.adapters.slurm_commands import SlurmNode
from ouvrage.adapters.slurm_job import Asked
from ouvrage.adapters.slurm_rest import Given
from ouvrage.base.time import MINUTE
from ouvrage.model.selling import Placed
from ouvrage.placement.snapshot import Waiting
from ouvrage.server.slurm_settings import SlurmSettings
from ouvrage.store.platform.machines import NodeRow
from ouvrage.wire.places import name_of

_NICE = 1000
"""Of a job without a priority. An ordinary user of Slurm may only go behind others, so that a tenant's highest priority is 0."""


class Mismatch(Exception):
    """Slurm gave what the node does not have; the words say what."""


def partition_of(settings: SlurmSettings, offer: str | None) -> str | None:
    """Where jobs of an offer, by its name, are placed."""
    return settings.partitions.get(offer or "", settings.partition)


def asked_for(
    attempt: str, job: Waiting, offer: str | None, account: str, not_on: Collection[str], settings: SlurmSettings, turnover_us: int
) -> Asked:  # fmt: skip
    """The place that an attempt needs. ``not_on``: nodes of Slurm's on which it may not be."""
    qos = settings.interruptible_qos if job.interruptible else None
    minutes = None
    if job.time_limit_us is not None:  # our own limit ends it; Slurm's stands behind that one
        minutes = -(-(job.time_limit_us + job.grace_us + turnover_us) // MINUTE) + 1
    return Asked(
        name=name_of(attempt),
        account=account,
        partition=partition_of(settings, offer),
        qos=qos or settings.qos,
        gpus=job.needs.gpus,
        cpus=job.needs.cpus,
        memory_mib=job.needs.memory_mib,
        minutes=minutes,
        nice=_NICE - job.priority,
        not_on=tuple(sorted(not_on)),
    )


def placed_on(node: NodeRow, given: Given, layout: SlurmNode | None, disk_mib: int) -> Placed:
    """The place on our node. Raises ``Mismatch`` where the node has no such GPU."""
    devices = {device.slot: device.device for device in node.seen.devices}
    strange = [gpu for gpu in given.gpus if gpu not in devices]
    if strange:
        raise Mismatch(f"Slurm gave GPU {strange[0]} of {node.name}, which has {len(devices)}")
    return Placed(
        node=node.node,
        devices=tuple(devices[gpu] for gpu in given.gpus),
        cpus=_cpus(node.seen.cpus, given, layout),
        memory_mib=given.memory_mib,
        disk_mib=disk_mib,
    )


def _cpus(own: tuple[int, ...], given: Given, layout: SlurmNode | None) -> tuple[int, ...]:
    """Slurm's cores as numbers of ours: core by core, the second threads of all after the first ones of all, as Linux numbers them.

    Where Slurm was told of more cores than there are (``config_overrides``), they are shared in turn.
    """
    cores, sockets, threads = (
        (8, 1, 1) if layout is None else (layout.cores, layout.sockets, layout.threads)
    )
    flat = [
        socket * cores + core + thread * cores * sockets
        for thread in range(threads)
        for socket, core in given.cores
    ]
    return tuple(sorted({own[number % len(own)] for number in flat})) if own else ()
