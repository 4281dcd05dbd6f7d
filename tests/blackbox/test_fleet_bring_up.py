"""From an empty home to a Slurm that runs jobs: started from the files that the command wrote, and from nothing else."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ouvrage.adapters.clock import now_us
from ouvrage.health.certificates import part_ids
from ouvrage.ledger.kinds import from_plain
from ouvrage.model.health import Part
from ouvrage.store.store import open_store
from tests.blackbox.home import Home, Said, home_in
from tests.support.machine_tree import Machine
from tests.support.proofs import SOURCE, certificate, proof_fact
from tests.support.slurm import USERS, Prepared, Slurm, missing, prepared

NODES = ("b1", "b2", "b3", "b4")
DAY_US = 86_400_000_000


def ask(home: Home, *words: str, code: int = 0) -> Said:
    said = home.inside(*words)
    assert said.code == code, said
    return said


def tree(home: Home, node: str) -> Machine:
    """A machine of files with two GPUs, and the processors of the one that the tests run on."""
    told = subprocess.run(["slurmd", "-C"], capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"(\w+)=(\d+)", told))
    sockets, cores, threads = (
        int(found[each]) for each in ("SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")
    )
    root = home.path.parent / f"tree-{node}"
    return Machine(root, sockets=sockets, cores=cores, threads=threads, gib=1)


def proven(home: Home, node: str, *, days: int = 30, passed: bool = True) -> None:
    """A certificate of a node on record, for the parts that its inventory has."""
    inventory = ask(home, "node", "inventory", node, "--json").json
    parts = tuple(from_plain(Part, {k: v for k, v in p.items() if k != "bought"}) for p in inventory["parts"])  # fmt: skip
    now = now_us()
    value = certificate(
        node, certificate=f"{now:032x}", parts=part_ids(parts), passed=passed, expires_us=now + days * DAY_US
    )  # fmt: skip
    with open_store(home.path / "ouvrage.db") as store:
        store.append([proof_fact(value, at_us=now)], now_us=now, own_source=SOURCE)


def known(home: Home, *nodes: str) -> None:
    """Inventories and certificates of some nodes, and the build that the first is."""
    for node in nodes:
        machine = tree(home, node).write()
        ask(home, "node", "inventory", node, "--root", str(machine.root))
        proven(home, node)
    ask(home, "build", "save", "h100-2", "--node", nodes[0])


@pytest.fixture(scope="module")
def place() -> Iterator[Prepared]:
    why = missing()
    if why is not None:
        pytest.skip(f"no Slurm: {why}")
    with prepared(NODES) as found:
        yield found


@pytest.fixture(scope="module")
def owner(place: Prepared) -> Home:
    home = home_in(place.directory, "home")
    conf = str(place.root / "etc/slurm/slurm.conf")
    return replace(home, environment={**home.environment, "SLURM_CONF": conf})


def begun(home: Home, place: Prepared, *more: str) -> Said:
    ports = ",".join(str(place.ports[n]) for n in ("slurmctld", "slurmd", "slurmdbd", "slurmrestd"))
    words = f"fleet init lab --address 127.0.0.1 --build h100-2 --for batch --ports {ports} --root {place.root}"
    controller = ("--controller", socket.gethostname().partition(".")[0])
    database = ("--database", f"127.0.0.1:{place.ports['mariadbd']}")
    return ask(home, *words.split(), *controller, *database, *more)


def joins(home: Home, place: Prepared, node: str, *more: str, code: int = 0) -> Said:
    host = ("--host", socket.gethostname().partition(".")[0], "--address", "127.0.0.1")
    own = ("--port", str(place.ports[node]), "--devices", place.devices(node))
    return ask(home, "fleet", "add", node, *host, *own, *more, code=code)


@pytest.fixture(scope="module")
def running(owner: Home, place: Prepared) -> Iterator[Slurm]:
    """Four nodes, from an empty home: what the command writes is put in place by the script beside it, and started."""
    written = place.directory / "plan"
    known(owner, *NODES)
    begun(owner, place, "--to", str(written))
    for node in NODES:
        joins(owner, place, node, "--to", str(written))
    for role in ("controller", "node"):
        subprocess.run(["sh", written / "install.sh", "all", role], check=True, capture_output=True)
    with place.running() as made:
        told = place.root / "etc/slurm/ouvrage/accounting.sh"
        made.run("sh", str(told))
        made.run("sh", str(told))  # a second time changes nothing and is no failure
        made.start("slurmctld")
        for node in NODES:
            made.start(f"slurmd.{node}")
        made.wait(["sinfo", "-h", "-o", "%D %T"], f"{len(NODES)} idle")
        made.run(
            "sacctmgr", "-i", "-Q", text=f"add account vision\nadd user {USERS[0]} account=vision\n"
        )
        yield made


def test_a_real_slurm_starts_from_what_was_written(running: Slurm, place: Prepared) -> None:
    said = running.run("scontrol", "--oneliner", "show", "node", "b3")
    assert "Gres=gpu:h100:2" in said
    assert "AvailableFeatures=h100-2" in said
    out = place.directory / "out"
    out.mkdir()
    out.chmod(0o777)
    script = f"echo $CUDA_VISIBLE_DEVICES $SLURMD_NODENAME > {out}/$SLURM_JOB_ID"
    jobs = [running.submit(script, "--gpus=h100:2", "--nodes=1") for _ in NODES]
    running.finished(jobs)
    told = sorted((out / job).read_text().split()[0] for job in jobs)
    assert told == ["0,1"] * 4
    states = running.run("sacct", "-n", "-X", "-P", "-o", "State", "-j", ",".join(jobs)).split()
    assert states == ["COMPLETED"] * 4
    tres = running.run("sacct", "-n", "-X", "-P", "-o", "AllocTRES", "-j", jobs[0])
    assert "gres/gpu:h100=2" in tres, "accounting knows which GPUs"
