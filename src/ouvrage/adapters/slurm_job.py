"""One job as it is asked of Slurm, in the two forms that Slurm takes: slurmrestd's JSON and sbatch's options.

Decides that both ask for the same, and that a job of ours is never requeued by Slurm: each attempt has one place, once. Keys are those of
OpenAPI v0.0.38; ``no_requeue`` is one that it takes and does not list (``"requeue": false`` it takes and does not heed).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A place on one node: whole GPUs, cores, MiB; ``minutes`` None: as long as its partition allows. ``nice`` is Slurm's.

    ``not_on`` are nodes of Slurm's to leave out. ``partition`` and ``qos`` None: Slurm's defaults.
    """

    name: str
    account: str
    partition: str | None
    qos: str | None
    gpus: int
    cpus: int
    memory_mib: int
    minutes: int | None
    nice: int
    not_on: tuple[str, ...] = ()


def as_json(asked: Asked) -> dict[str, Any]:
    """For slurmrestd, which cannot leave nodes out."""
    if asked.not_on:
        raise ValueError("slurmrestd cannot leave nodes out")
    told: dict[str, Any] = {
        "name": asked.name, "account": asked.account, "tasks": 1, "nodes": [1, 1], "cpus_per_task": asked.cpus,
        "memory_per_node": asked.memory_mib, "nice": asked.nice, "no_requeue": True,
        "current_working_directory": "/", "standard_output": "/dev/null", "standard_error": "/dev/null",
        "environment": {"PATH": "/usr/bin:/bin"},
    }  # fmt: skip
    told |= {"gres": f"gpu:{asked.gpus}"} if asked.gpus else {}
    for key, value in (
        ("partition", asked.partition),
        ("qos", asked.qos),
        ("time_limit", asked.minutes),
    ):
        told |= {} if value is None else {key: value}
    return told


def as_options(asked: Asked) -> Sequence[str]:
    """For sbatch."""
    words = [
        f"--job-name={asked.name}", f"--account={asked.account}", "--ntasks=1", "--nodes=1-1", f"--cpus-per-task={asked.cpus}",
        f"--mem={asked.memory_mib}M", f"--nice={asked.nice}", "--no-requeue", "--chdir=/", "--output=/dev/null",
        "--error=/dev/null", "--export=PATH=/usr/bin:/bin",
    ]  # fmt: skip
    words += [f"--gres=gpu:{asked.gpus}"] if asked.gpus else []
    words += [f"--exclude={','.join(asked.not_on)}"] if asked.not_on else []
    for name, value in (
        ("partition", asked.partition),
        ("qos", asked.qos),
        ("time", asked.minutes),
    ):
        words += [] if value is None else [f"--{name}={value}"]
    return words
