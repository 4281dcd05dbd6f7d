"""What is asked of Slurm through its own commands: the queue, nodes, accounts, drains, and jobs whose nodes are chosen.

Decides which commands are given and how their answers are read, column by column. They stand in for what slurmrestd of 22.05 cannot do (nodes
are read-only there, and a job cannot leave nodes out), or does at thirty times the cost: a queue of thousands as JSON.
Commands and fields are those of https://slurm.schedmd.com/ (22.05 and later).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import SECOND

_SECONDS = 30
_KILL_WAIT = re.compile(r"^KillWait\s*=\s*([0-9]{1,6}) sec", re.MULTILINE)
_SACCTMGR = ("sacctmgr", "-i", "-Q")
_QUEUE = ("JobID", "Name", "State", "PreemptTime", "EndTime", "RestartCnt", "NodeList", "Reason")
_NODES = ("NodeList", "Partition", "StateLong", "Sockets", "Cores", "Threads", "Reason")
_ACCOUNTED = ("JobIDRaw", "State", "NodeList", "JobName")


class CommandFailed(Exception):
    """A command of Slurm's that did not do what was asked; the words are its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A job in the controller's memory: ``state`` and ``reason`` in Slurm's words, its node or None.

    ``preempted``: it was told to make room. ``ends_us``: when Slurm ends it at the latest, None where nothing says so.
    """

    number: int
    name: str
    state: str
    preempted: bool
    ends_us: int | None
    restarts: int
    node: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """A node as the controller sees it: ``state`` in its long form, small letters; ``reason`` of a drain or of being down.

    ``partitions``: those that hold it; the default one stands in it also as None. ``cores`` are those of one socket.
    """

    name: str
    partitions: tuple[str | None, ...]
    state: str
    sockets: int
    cores: int
    threads: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounted:
    """A job as accounting has it."""

    number: int
    name: str
    state: str
    node: str | None


class Commands:
    """The commands of one cluster, given as ``user`` where a job is concerned. ``conf``: its slurm.conf, None where it is in its usual place."""

    def __init__(self, user: str, conf: str | None) -> None:
        self._user = user
        self._environment = {**os.environ, "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}
        if conf is not None:
            self._environment["SLURM_CONF"] = conf

    def token(self, seconds: int) -> str:
        """A JWT of the user's that holds so long."""
        said = self._run("scontrol", "token", f"username={self._user}", f"lifespan={seconds}")
        name, _, token = said.strip().partition("=")
        if name != "SLURM_JWT" or not token:
            raise CommandFailed("scontrol token gave none")
        return token

    def queue(self) -> list[Queued]:
        """All jobs of the user's that the controller has, also those that ended a while ago."""
        said = self._run(
            "squeue", "-h", "-a", "-t", "all", "-u", self._user, "-O", _columns(_QUEUE)
        )
        return [_queued(row) for row in _rows(said, len(_QUEUE))]

    def nodes(self) -> list[SlurmNode]:
        """All nodes of the cluster, each once."""
        said = self._run("sinfo", "-h", "-a", "-N", "-O", _columns(_NODES))
        found: dict[str, list[list[str]]] = {}
        for row in _rows(said, len(_NODES)):
            found.setdefault(row[0], []).append(row)
        return [_node(rows) for rows in found.values()]

    def accounted(self, name: str) -> list[Accounted]:
        """The jobs of a name that accounting has, of the last week."""
        said = self._run("sacct", "-X", "-n", "-P", "-D", f"--name={name}", f"-u{self._user}", "-Snow-7days", "-o", ",".join(_ACCOUNTED))  # fmt: skip
        return [
            Accounted(
                number=int(row[0]), state=row[1].split(" ")[0], node=_one(row[2]), name=row[3]
            )
            for row in _rows(said, len(_ACCOUNTED))
        ]

    def submit(self, script: str, options: Sequence[str]) -> int:
        """The number of a new job. Its words are the same as those of ``sbatch``."""
        said = self._run("sbatch", "--parsable", f"--uid={self._user}", *options, text=script)
        return int(said.strip().partition(";")[0])

    def kill_wait_us(self) -> int:
        """How long Slurm waits from its SIGTERM to its SIGKILL."""
        found = _KILL_WAIT.search(self._run("scontrol", "show", "config"))
        return int(found[1]) * SECOND if found else 0

    def drain(self, node: str, reason: str) -> None:
        """Give a node no new job; what runs there goes on."""
        self._run("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")

    def resume(self, node: str) -> None:
        """Let a drained node take jobs again."""
        self._run("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def has_account(self, account: str) -> bool:
        """Whether the user may charge an account."""
        said = self._run(*_SACCTMGR, "-n", "-P", "show", "assoc", f"user={self._user}", f"account={account}", "format=account")  # fmt: skip
        return bool(said.strip())

    def make_account(self, account: str, parent: str | None, share: int) -> None:
        """Make an account below another (None: at the top) with a share; one that is there stays as it is."""
        have = self._run(
            *_SACCTMGR, "-n", "-P", "show", "account", f"name={account}", "format=account"
        )
        if not have.strip():
            about = [
                f"organization={parent or account}",
                f"description={account}",
                f"fairshare={share}",
            ]
            about += [] if parent is None else [f"parent={parent}"]
            self._run(*_SACCTMGR, "add", "account", f"name={account}", *about)

    def let_charge(self, account: str, qos: Sequence[str]) -> None:
        """Let the user charge an account, in these QOS beside its own."""
        mine = (f"name={self._user}", f"account={account}")
        if not self.has_account(account):
            self._run(*_SACCTMGR, "add", "user", *mine)
        if qos:
            self._run(*_SACCTMGR, "modify", "user", "where", *mine, "set", f"qos+={','.join(qos)}")

    def _run(self, *words: str, text: str | None = None) -> str:
        try:
            done = subprocess.run(
                words, input=text or "", capture_output=True, text=True, errors="replace", env=self._environment,
                timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise CommandFailed(f"{words[0]} did not answer within {_SECONDS} s") from error
        except OSError as error:
            raise OuvrageError(
                "slurm/commands", f"{words[0]} could not be started: {error.strerror}",
                hint="the server needs Slurm's own commands: apt install slurm-client",
            ) from error  # fmt: skip
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise CommandFailed(f"{words[0]}: {said[-1][:300] if said else 'no words'}")
        return done.stdout


def _columns(names: Sequence[str]) -> str:
    return ",".join(f"{name}:|" for name in names)


def _rows(said: str, columns: int) -> list[list[str]]:
    """Rows whose last column may hold the separator too."""
    rows = [line.rstrip("|").split("|", columns - 1) for line in said.splitlines() if line]
    return [[*row, *[""] * (columns - len(row))] for row in rows]


def _one(nodes: str) -> str | None:
    """The node of a job on one; None where it has none yet."""
    return nodes if nodes and nodes not in ("None assigned", "(null)") else None


def _queued(row: Sequence[str]) -> Queued:
    number, name, state, preempt, ends, restarts, node, reason = row
    return Queued(
        number=int(number), name=name, state=state, preempted=preempt.isdigit(),
        ends_us=int(ends) * SECOND if ends.isdigit() else None, restarts=int(restarts or 0), node=_one(node),
        reason=reason,
    )  # fmt: skip


def _node(rows: Sequence[Sequence[str]]) -> SlurmNode:
    """A node from its rows, one for each partition that holds it."""
    name, _, state, sockets, cores, threads, reason = rows[0]
    partitions: list[str | None] = [row[1].rstrip("*") for row in rows]
    partitions += [None] if any(row[1].endswith("*") for row in rows) else []
    return SlurmNode(
        name=name, partitions=tuple(partitions), state=state.lower(), sockets=int(sockets), cores=int(cores),
        threads=int(threads), reason="" if reason == "none" else reason,
    )  # fmt: skip
