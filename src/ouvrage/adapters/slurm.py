"""What may be asked of a Slurm cluster without touching it, and three ways to ask: here, over SSH, from saved answers.

Decides the whole list of questions: every one is a command that only shows. Nothing else in the program gives a command to a cluster
that it only reads. An answer is bytes or the reason why there is none; what an answer means is decided by the feeds.
Commands and fields are those of https://slurm.schedmd.com/ (22.05 and later).
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

JOBS = (
    "JobIDRaw", "JobID", "Cluster", "State", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "Suspended", "Timelimit",
    "AllocTRES", "ReqTRES", "ReqNodes", "NNodes", "AllocCPUS", "NodeList", "Account", "User", "Partition", "QOS", "Reason",
    "Reservation", "TotalCPU", "MaxRSS", "TRESUsageInTot", "TRESUsageInAve", "ExitCode",
)  # fmt: skip
OLDER_JOBS = tuple(name for name in JOBS if name not in ("Reason", "Reservation"))
"""The columns without those that came last: an older ``sacct`` refuses a list with one that it does not know."""
STATES = "BF,CA,CD,DL,F,NF,OOM,PD,PR,R,RQ,RS,RV,S,TO"
"""Every state by name. Without it ``sacct`` leaves out, in any stretch of time, the jobs of which accounting never learnt when they might
have begun; that is every job which ended before the controller first wrote of it, within five seconds.
"""
CLOCK = "clock"
_ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
"""Seconds since 1970: no hour comes twice. And names of states and messages as they are documented."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One command that only shows. ``words`` may hold ``{minutes}``, how far back is asked; ``needed`` where nothing can be said without.

    ``otherwise`` are the words to try where the cluster refuses the first.
    """

    name: str
    words: tuple[str, ...]
    needed: bool = False
    otherwise: tuple[str, ...] = ()

    def asked(self, minutes: int, words: Sequence[str] = ()) -> list[str]:
        """The command for a stretch of time."""
        return [word.replace("{minutes}", str(minutes)) for word in words or self.words]


def _jobs(columns: Sequence[str]) -> tuple[str, ...]:
    return ("sacct", "--allusers", "--duplicates", "--parsable2", f"--state={STATES}", "--starttime=now-{minutes}minutes", "--endtime=now",
            f"--format={','.join(columns)}")  # fmt: skip


def _accounting(*words: str) -> tuple[str, ...]:
    return ("sacctmgr", "--parsable2", "--readonly", "show", *words)


QUESTIONS = (
    Question(name=CLOCK, words=("date", "+%s %z {minutes}"), needed=True),
    Question(name="config", words=("scontrol", "show", "config")),
    Question(name="controller", words=("sdiag",)),
    Question(name="jobs", words=_jobs(JOBS), otherwise=_jobs(OLDER_JOBS), needed=True),
    Question(name="events", words=_accounting(
        "event", "start=now-{minutes}minutes", "end=now",
        "format=Cluster,NodeName,ClusterNodes,TimeStart,TimeEnd,State,User,TRES,Reason")),
    Question(name="nodes", words=("scontrol", "--oneliner", "--all", "show", "nodes")),
    Question(name="partitions", words=("scontrol", "--oneliner", "--all", "show", "partitions")),
    Question(name="reservations", words=_accounting(
        "reservation", "start=now-{minutes}minutes",
        "format=Cluster,Name,Start,End,NodeNames,Flags,Associations,TRES")),
    Question(name="accounts", words=_accounting(
        "association", "format=Cluster,Account,ParentName,User,GrpTRES,GrpTRESMins,QOS")),
    Question(name="organisations", words=_accounting("account", "format=Account,Organization")),
    Question(name="qos", words=_accounting(
        "qos", "format=Name,Priority,Preempt,PreemptMode,UsageFactor,GrpTRES,MaxTRESPU,MaxWall")),
)  # fmt: skip
"""Every question, in the order in which they are asked: what tells how current accounting is stands before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a question was answered with; ``why`` says why there is none (``data`` is empty then)."""

    data: bytes
    why: str | None = None


class Asked(Protocol):
    """Somebody who answers questions about one cluster."""

    place: str

    def answer(self, question: Question, minutes: int) -> Answer:
        """The answer to one question, over the last ``minutes``."""
        ...


class Here:
    """A cluster whose commands are on this machine. ``before`` stands in front of each: nothing, or an ``ssh`` to a login node."""

    def __init__(self, ssh: str | None = None, environment: Mapping[str, str] = os.environ) -> None:
        self.place = ssh or "this machine"
        self._ssh = ssh
        self._environment = environment

    def answer(self, question: Question, minutes: int) -> Answer:
        """The answer; the second form of a question where its first is refused."""
        found = self._run(question.asked(minutes))
        if found.why is not None and question.otherwise:
            return self._run(question.asked(minutes, question.otherwise))
        return found

    def _run(self, words: Sequence[str]) -> Answer:
        command = (
            over_ssh(self._ssh, [*_environment(), *words], self._environment)
            if self._ssh
            else list(words)
        )
        try:
            done = subprocess.run(
                command, env={**self._environment, **_ENVIRONMENT}, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Answer(data=b"", why=f"{words[0]} did not answer within {_SECONDS} s")
        except OSError as error:
            return Answer(data=b"", why=f"{command[0]}: {error.strerror}")
        if done.returncode:
            told = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
            said = told[-1] if told else "no words"
            return Answer(data=b"", why=f"{words[0]} ended with {done.returncode}: {said[:200]}")
        return Answer(data=done.stdout)


_SECONDS = 600


def _environment() -> list[str]:
    return ["env", *(f"{name}={value}" for name, value in _ENVIRONMENT.items())]


def over_ssh(host: str, words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command on another machine. ``OUVRAGE_SSH`` may hold another ``ssh`` with its options."""
    ssh = shlex.split(environment.get("OUVRAGE_SSH") or "ssh -o BatchMode=yes")
    return [*ssh, "--", host, shlex.join(words)]


class Saved:
    """Answers that were saved in a directory, one file a question."""

    def __init__(self, directory: Path) -> None:
        self.place = str(directory)
        self._directory = directory

    def answer(self, question: Question, minutes: int) -> Answer:
        """The file of the question; how far back was asked is in the clock's."""
        path = saved_as(self._directory, question)
        try:
            return Answer(data=path.read_bytes())
        except FileNotFoundError:
            return Answer(data=b"", why=f"{path.name} is not there")
        except OSError as error:
            return Answer(data=b"", why=f"{path.name}: {error.strerror}")


def saved_as(directory: Path, question: Question) -> Path:
    """Where the answer to a question is kept."""
    return directory / f"{question.name}.txt"


def script(minutes: int) -> str:
    """The questions as a shell script that saves the answers, for somebody who can copy files and nothing else."""
    lines = [
        "#!/bin/sh",
        "# Reads a Slurm cluster and changes nothing on it. Usage: sh read.sh DIRECTORY, then on the other machine:",
        "# ouvrage fleet adopt --from DIRECTORY",
        'mkdir -p "$1" && cd "$1" || exit 1',
        f"export {' '.join(f'{name}={value}' for name, value in _ENVIRONMENT.items())}",
    ]
    for question in QUESTIONS:
        first = shlex.join(question.asked(minutes))
        second = (
            f" || {shlex.join(question.asked(minutes, question.otherwise))}"
            if question.otherwise
            else ""
        )
        lines.append(f"{{ {first}{second}; }} > {question.name}.txt || rm -f {question.name}.txt")
    return "\n".join([*lines, ""])
