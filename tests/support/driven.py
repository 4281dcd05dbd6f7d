"""A platform whose places a real Slurm gives out: a partition of its own, and a runner of ours on some of its nodes.

The runners are ``ouvrage agent run`` as an owner starts it; they and Slurm's daemons share this machine, each under its node's name.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.meter import SOURCES
from tests.support.slurm import PLACES_USER, Slurm

PARTITION = "fleet"
QOS = ("spot", "prime")
NODES = ("n1", "n2")


PATIENCE_S = 60.0


def until(holds: Callable[[], object], words: Callable[[], str]) -> None:
    """Look again until it is so; fail with these words after ``PATIENCE_S``. Slurm is asked by processes: not too often."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE_S} s: {words()}"
        time.sleep(0.1)


@dataclass
class Runners:
    """The runners of some nodes; each keeps to its directory below ``at``."""

    lab: Slurm
    at: Path
    url: str
    more: Sequence[str] = ()
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def places(self) -> Path:
        return places_of(self.lab)

    def start(self, name: str, token: str | None = None) -> None:
        """Start a node's runner; with a one-time token the first time."""
        enrol = self.at / f"enrol-{name}"
        if token is not None:
            enrol.write_text(token)
        words = [
            sys.executable,
            "-m",
            "ouvrage",
            "agent",
            "run",
            "--state",
            str(self.at / f"agent-{name}"),
        ]
        words += ["--server", self.url, "--enrol-file", str(enrol), "--name", name, "--no-watch"]
        words += ["--places", str(self.places), *self.more]
        environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
        with self.log(name).open("ab") as log:
            self.running[name] = subprocess.Popen(words, env=environment, stdout=log, stderr=log)

    def log(self, name: str) -> Path:
        return self.at / f"agent-{name}.txt"

    def words(self) -> str:
        """What the runners and the controller said last."""
        said = [f"== {name}\n{self.log(name).read_text()[-1500:]}" for name in self.running]
        return "\n".join(
            [*said, (self.lab.directory / "log" / "slurmctld.log").read_text()[-1500:]]
        )

    def stop(self) -> None:
        for runner in self.running.values():
            runner.terminate()
        for runner in self.running.values():
            runner.wait(20)


def places_of(lab: Slurm) -> Path:
    """Where batch jobs and runners meet, on every node of this machine's."""
    return lab.directory / "places"


@contextmanager
def partition_of_ours(
    lab: Slurm, nodes: Sequence[str] = NODES, name: str = PARTITION, places: Path | None = None
) -> Iterator[str]:
    """slurmrestd's address, once there is a partition of these nodes, QOS of ours and a directory of places; all gone at the end."""
    places = places or places_of(lab)
    places.mkdir(mode=0o755, exist_ok=True)
    owner = pwd.getpwnam(PLACES_USER)
    os.chown(places, owner.pw_uid, owner.pw_gid)
    if "spot" not in lab.run("sacctmgr", "-n", "-P", "show", "qos", "format=name").split():
        lab.run(
            "sacctmgr",
            "-i",
            "-Q",
            text="add qos spot set priority=0\nadd qos prime set priority=100 preempt=spot\n",
        )
    conf = lab.directory / "etc" / "slurm.conf"
    before = conf.read_text()
    conf.write_text(f"{before}PartitionName={name} Nodes={','.join(nodes)} MaxTime=1-0 State=UP\n")
    lab.run("scontrol", "reconfigure")
    try:
        yield lab.rest()
    finally:
        lab.run("scancel", f"--user={PLACES_USER}")
        until(
            lambda: not lab.run("squeue", "-h", "-u", PLACES_USER).strip(),
            lambda: "ours is left at Slurm",
        )
        for line in lab.run("sinfo", "-h", "-a", "-N", "-O", "NodeList:|,Reason:|").splitlines():
            node, reason, *_ = line.split("|")
            if reason.startswith("ouvrage:"):  # the platform that drained it is gone
                lab.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
        conf.write_text(before)
        lab.run("scontrol", "reconfigure")


def server_toml(lab: Slurm, rest: str) -> str:
    """What an owner writes into ``server.toml``."""
    return "\n".join([
        "[slurm]", f'rest = "{rest}"', f'user = "{PLACES_USER}"', f'places = "{places_of(lab)}"',
        f'conf = "{lab.directory}/etc/slurm.conf"', f'partition = "{PARTITION}"', 'interruptible_qos = "spot"', "",
    ])  # fmt: skip


@contextmanager
def runners(
    lab: Slurm, at: Path, url: str, tokens: Sequence[str], more: Sequence[str] = ()
) -> Iterator[Runners]:
    """A runner on as many of ``NODES`` as there are one-time tokens."""
    made = Runners(lab, at, url, more)
    with ExitStack() as ends:
        ends.callback(made.stop)
        for name, token in zip(NODES, tokens, strict=False):
            made.start(name, token)
        yield made
