"""From an empty home to a Slurm that runs jobs: started from the files that the command wrote, and from nothing else."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

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
        at_us = now + min(days - 1, 0) * DAY_US
        store.append([proof_fact(value, at_us=at_us)], now_us=now, own_source=SOURCE)


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
    begun(
        owner,
        place,
        "--refuse",
        'guests=the invoice of May "is" open; ask Ann',
        "--to",
        str(written),
    )
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--gres=gpu:3",), "3 GPUs on one node were asked for, the largest has 2"),
        (("--gpus=h100:9",), "9 GPUs h100 were asked for, the fleet has 8"),
        (("--gpus-per-node=a100:1",), "there is no GPU a100 here; there are h100 (8)"),
        (("--gpus-per-task=5", "--ntasks=1"), "5 GPUs on one node were asked for"),
        (("--account=guests",), 'the invoice of May "is" open; ask Ann'),
    ],
)
def test_a_job_that_can_never_run_is_refused_with_the_reason(
    running: Slurm, options: tuple[str, ...], words: str
) -> None:
    script = "#!/bin/sh\ntrue\n"
    command = ["sbatch", f"--uid={USERS[0]}", "--chdir=/tmp", "--output=/dev/null", *options]
    done = subprocess.run(
        command, input=script, capture_output=True, text=True, env=running.environment, check=False
    )
    assert done.returncode != 0
    assert f"ouvrage: {words}" in done.stderr, done.stderr


def test_tokens_are_signed_by_the_key_that_was_written(running: Slurm) -> None:
    token = running.run("scontrol", "token", f"username={USERS[0]}", "lifespan=60").strip()
    environment = {**running.environment, "SLURM_JWT": token.partition("=")[2]}
    command = ["setpriv", f"--reuid={USERS[0]}", f"--regid={USERS[0]}", "--clear-groups", "squeue"]
    for wrong, code in (("", 0), ("x", 1)):
        made = {**environment, "SLURM_JWT": environment["SLURM_JWT"] + wrong}
        done = subprocess.run(command, env=made, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr


def test_a_job_that_gives_way_gives_way(running: Slurm) -> None:
    running.run("sacctmgr", "-i", "-Q", "modify", "account", "vision", "set", "qos=normal,interruptible")  # fmt: skip
    fills = [running.submit("sleep 60", "--gpus=2", "--nodes=1", "--qos=interruptible", "--requeue") for _ in NODES]  # fmt: skip
    for job in fills:
        running.has_run(job)
    first = running.submit("true", "--gpus=2", "--nodes=1", "--qos=normal")
    running.finished([first])
    running.run("scancel", *fills)
    running.wait(["sinfo", "-h", "-o", "%D %T"], f"{len(NODES)} idle")


def test_a_node_that_lies_about_its_gpus_is_named(
    running: Slurm, owner: Home, place: Prepared
) -> None:
    said = ask(owner, "fleet", "status")
    assert said.first == "lab: all 4 nodes are well."
    gres = place.root / "etc/slurm/gres.conf"
    whole = gres.read_text()
    gres.write_text(whole.replace("b2/nvidia[0-1]", "b2/nvidia0"))
    try:
        running.kill("slurmd.b2")
        running.start("slurmd.b2")
        running.wait(["sinfo", "-h", "-n", "b2", "-o", "%T"], "inval")
    finally:
        gres.write_text(whole)
    said = ask(owner, "fleet", "status", code=1)
    assert said.first == (
        "lab: 3 of 4 nodes are well; b2: it promised 2 GPUs and its slurmd finds 1"
    )
    told = ask(owner, "fleet", "status", "--json", code=1).json
    assert [each["node"] for each in told["nodes"] if each["wrong"]] == ["b2"]
    running.kill("slurmd.b2")
    running.start("slurmd.b2")
    running.wait(["sinfo", "-h", "-n", "b2", "-o", "%T"], "drained")  # Slurm's own drain stays
    assert "b2: drain: gres/gpu count reported" in ask(owner, "fleet", "status", code=1).first
    running.run("scontrol", "update", "nodename=b2", "state=resume")
    running.wait(["sinfo", "-h", "-n", "b2", "-o", "%T"], "idle")
    ask(owner, "fleet", "status")
    Path(f"{place.devices('b2')}1").rename(f"{place.devices('b2')}9")
    said = ask(owner, "fleet", "status", "--hosts", code=1)
    assert "b2: gpus: its inventory has 2 GPUs, the machine has device files for 1" in said.out
    Path(f"{place.devices('b2')}9").rename(f"{place.devices('b2')}1")


def test_a_file_changed_by_hand_is_told_and_put_back(
    running: Slurm, owner: Home, place: Prepared
) -> None:
    conf = place.root / "etc/slurm/slurm.conf"
    whole = conf.read_text()
    assert "every host has its own, unchanged" in ask(owner, "fleet", "status", "--hosts").out
    conf.write_text(whole.replace("JobRequeue=1", "JobRequeue=0"))
    said = ask(owner, "fleet", "status", "--hosts", code=1)
    assert f"{conf} is another one" in said.out
    shown = ask(owner, "fleet", "upgrade", "--apply")
    assert "-JobRequeue=0" in shown.out.splitlines()
    assert "+JobRequeue=1" in shown.out.splitlines()
    assert conf.read_text() == whole
    ask(owner, "fleet", "status", "--hosts")
    again = ask(owner, "fleet", "upgrade", "--apply")
    assert again.first == "lab: 0 files to change, 0 of 4 nodes by their inventories."
    assert "put " not in again.out


def test_a_node_leaves_when_its_work_has_ended(
    running: Slurm, owner: Home, place: Prepared
) -> None:
    job = running.submit("sleep 60", "--gpus=1", "--nodelist=b4")
    running.has_run(job)
    before = owner.facts()
    said = ask(owner, "fleet", "remove", "b4", "--why", "sold", "--apply", code=1)
    assert f"error[fleet/busy]: 1 job on b4: {job}" in said.err
    assert owner.facts() == before
    assert "ouvrage: leaves the fleet" in running.run("sinfo", "-h", "-R", "-o", "%E")
    running.run("scancel", job)
    running.wait(["squeue", "-h", "-w", "b4", "-o", "%A"], "")
    said = ask(owner, "fleet", "remove", "b4", "--why", "sold", "--apply")
    assert said.first == "b4 leaves lab; 3 nodes stay."
    assert "b4" not in (place.root / "etc/slurm/slurm.conf").read_text()
    stays = ask(owner, "fleet", "status", code=1)
    assert "b4 is in Slurm's files and no member" in stays.out
    running.kill("slurmctld", "SIGTERM")
    running.kill("slurmd.b4")
    running.start("slurmctld")
    running.wait(["sinfo", "-h", "-o", "%D"], "3")
    for node in NODES[:3]:
        running.kill(f"slurmd.{node}", "SIGTERM")
        running.start(f"slurmd.{node}")
    running.wait(["sinfo", "-h", "-o", "%D %T"], "3 idle")
    assert ask(owner, "fleet", "status").first == "lab: all 3 nodes are well."
    ask(owner, "verify")
