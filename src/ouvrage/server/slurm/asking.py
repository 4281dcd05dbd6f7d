"""What is asked of Slurm for a job, and where the place that it gave stands on our node.

Decides the translation both ways: an offer becomes a partition and a QOS, a project an account, a tenant's priority a nice value; Slurm's numbers
of GPUs and cores become our devices and cores. It asks nobody but for an account, and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ouvrage.adapters.slurm_commands import SlurmNode
from ouvrage.adapters.slurm_job import Asked
from ouvrage.adapters.slurm_rest import Given
from ouvrage.base.time import MINUTE
from ouvrage.model.selling import Placed
from ouvrage.placement.decide import Planning
from ouvrage.placement.snapshot import Waiting
from ouvrage.placement.why import Why
from ouvrage.server.services.snapshots import POLICY
from ouvrage.server.slurm.accounts import Accounts
from ouvrage.server.slurm.settings import SlurmSettings
from ouvrage.server.slurm.wanting import able
from ouvrage.store.platform.machines import NodeRow
from ouvrage.store.platform.selling import offers_by_id
from ouvrage.store.platform.slurm_jobs import SlurmJobRow
from ouvrage.store.platform.work import jobs_by_id
from ouvrage.store.transaction import Connection
from ouvrage.wire.places import name_of

_NICE = 1000
"""Of a job without a priority. An ordinary user of Slurm may only go behind others, so that a tenant's highest priority is 0."""


class Mismatch(Exception):
    """Slurm gave what the node does not have; the words say what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What one row is to become: ``asked`` of Slurm, or the reason why it cannot be anywhere (``word`` and ``reason`` of the row)."""

    row: SlurmJobRow
    asked: Asked | None
    reason: str = ""


def asks_for(
    connection: Connection,
    rows: Sequence[SlurmJobRow],
    planning: Planning,
    layout: Mapping[str, SlurmNode],
    accounts: Accounts,
    settings: SlurmSettings,
) -> list[Ask]:
    """What is to be asked for some rows, whose jobs are those of the plan."""
    jobs = jobs_by_id(connection, [row.job for row in rows])
    waiting = {each.job: each for each in planning.snapshot.waiting}
    offers = offers_by_id(connection, [job.offer for job in jobs.values() if job.offer])
    found: list[Ask] = []
    for row in rows:
        job = jobs[row.job]
        offer = offers[job.offer].terms.name if job.offer else ""
        partition = settings.partitions.get(offer, settings.partition)
        inside = {name for name, node in layout.items() if partition in node.partitions}
        may = able(planning, waiting[row.job])
        barred = {name for name in inside if isinstance(may, Why) or name.lower() not in may}
        if barred == inside:
            reason = f"no node of {partition or 'its partition'} suits it and has a runner"
            found.append(Ask(row=row, asked=None, reason=reason))
            continue
        account = accounts.of(connection, job.project)
        asked = _asked(row.attempt, waiting[row.job], account, partition, barred, settings)
        found.append(Ask(row=row, asked=asked))
    return found


def _asked(
    attempt: str, job: Waiting, account: str, partition: str | None, barred: Collection[str], settings: SlurmSettings
) -> Asked:  # fmt: skip
    """The place that an attempt needs. ``barred``: nodes on which it may not be."""
    qos = settings.interruptible_qos if job.interruptible else None
    minutes = None
    if job.time_limit_us is not None:  # our own limit ends it; Slurm's stands behind that one
        minutes = -(-(job.time_limit_us + job.grace_us + POLICY.turnover_us) // MINUTE) + 1
    return Asked(
        name=name_of(attempt),
        account=account,
        partition=partition,
        qos=qos or settings.qos,
        gpus=job.needs.gpus,
        cpus=job.needs.cpus,
        memory_mib=job.needs.memory_mib,
        minutes=minutes,
        nice=_NICE - job.priority,
        not_on=tuple(sorted(barred)),
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
