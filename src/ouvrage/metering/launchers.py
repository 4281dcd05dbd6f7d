"""Which job a command belongs to, and its place in it, from what its launcher left to be read.

Decides whose word counts: the person's, then a scheduler's, then a launcher's around this process, then
the options of a launcher in the command itself. A launcher that names no job (torchrun without
``--rdzv-id``) makes none: ranks are not joined by guessing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ouvrage.base.names import named

LAUNCHERS = frozenset(
    {"torchrun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun", "deepspeed"}
    | {"horovodrun", "torch.distributed.run", "torch.distributed.launch"}
    | {"accelerate.commands.launch", "colossalai"}
)
ASKED = "--job"
JOBS = (
    *("OUVRAGE_JOB", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "SKYPILOT_TASK_ID"),
    *("TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
)
"""Variables that name a job, first who knows most of it."""
_NO_NAME = ("", "none")
_PLACES: dict[str, tuple[str, ...]] = {
    "node": ("GROUP_RANK", "SLURM_NODEID", "NODE_RANK"),
    "nodes": ("GROUP_WORLD_SIZE", "SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "NNODES"),
    "rank": ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"),
    "local_rank": ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
    "ranks": ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    "restart": ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"),
}  # fmt: skip
_OPTIONS: dict[str, tuple[str, ...]] = {
    "job": ("rdzv-id",),
    "node": ("node-rank", "machine-rank"),
    "nodes": ("nnodes", "num-machines"),
}
_MOST_WORDS = 200
_GREATEST = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A run's place in a job, as ``RunJob`` says. ``job`` is None where ``hint`` says why there is none."""

    job: str | None
    via: str
    node: int | None
    nodes: int | None
    rank: int | None
    local_rank: int | None
    ranks: int | None
    restart: int | None
    hint: str | None = None


def launcher_of(command: Sequence[str]) -> str | None:
    """The program in a command that starts several ranks; None where there is none."""
    words = [part for word in command[:_MOST_WORDS] for part in word.split()][:_MOST_WORDS]
    names = [word.rpartition("/")[2] for word in words]
    for name, following in zip(names, (*names[1:], ""), strict=False):
        if name in LAUNCHERS:
            return name
        if name == "accelerate" and following == "launch":
            return "accelerate"
    return None


def place_of(environ: Mapping[str, str], command: Sequence[str], asked: str | None) -> Place | None:
    """The job of a command that is started in this environment; None where nothing speaks of one."""
    options = _options(command)
    job, via = _job(environ, options, asked)
    numbers = {name: _number(environ, names) for name, names in _PLACES.items()}
    for name in ("node", "nodes"):
        stated = options.get(name, "")
        if stated.isdecimal() and int(stated) < _GREATEST:
            numbers[name] = int(stated)
    if job is None and numbers["rank"] is None:
        return None
    hint = None if job else _hint(environ)
    return Place(job=job, via=via, **numbers, hint=hint)


def _job(
    environ: Mapping[str, str], options: Mapping[str, str], asked: str | None
) -> tuple[str | None, str]:
    if asked is not None:
        return asked, ASKED
    for variable in JOBS:
        stated = environ.get(variable, "")
        if stated.lower() not in _NO_NAME and (name := named(stated)):
            return name, variable
    stated = options.get("job", "")
    if stated.lower() not in _NO_NAME and (name := named(stated)):
        return name, "--rdzv-id"
    return None, ""


def _hint(environ: Mapping[str, str]) -> str:
    """How the ranks of a launcher that names no job are joined."""
    if "TORCHELASTIC_RUN_ID" in environ:
        return "torchrun names no job: give it --rdzv-id NAME, or ouvrage run --job NAME"
    return "the launcher names no job: ouvrage run --job NAME joins its ranks"


def _number(environ: Mapping[str, str], names: Sequence[str]) -> int | None:
    for name in names:
        text = environ.get(name, "")
        if text.isascii() and text.isdecimal() and len(text) < 8:
            return int(text)
    return None


def _options(command: Sequence[str]) -> dict[str, str]:
    """What a launcher in the command was told of its job: ``--rdzv-id``, ``--nnodes`` and the like."""
    if launcher_of(command) is None:
        return {}
    words = [part for word in command[:_MOST_WORDS] for part in word.split()][:_MOST_WORDS]
    found: dict[str, str] = {}
    for word, following in zip(words, (*words[1:], ""), strict=False):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        for key, names in _OPTIONS.items():
            if name.replace("_", "-") in names:
                found.setdefault(key, value if equals else following)
    return found
