"""The engine that a real Slurm gives the places of keeps to the contract of all engines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ouvrage.agent.places import Places
from tests.engine.contract import EngineContract
from tests.engine.under_test import NODES, WITH_GPUS, Parts, Rig, cores_here, until
from tests.engine.under_test import rig as rig_of
from tests.support.driven import PLACES_USER, partition_of_ours
from tests.support.orders import missing
from tests.support.relay import Relay
from tests.support.slurm import Slurm, lab

__all__ = ["lab"]
_PARTITION = "contract"
_CLAIMED = 16
"""The cores that each node of the tests' Slurm claims to have."""


def _config(lab: Slurm, rest: str, places: Path) -> str:
    return "\n".join([
        "[slurm]", f'rest = "{rest}"', f'user = "{PLACES_USER}"', f'places = "{places}"', f'partition = "{_PARTITION}"',
        f'conf = "{lab.directory}/etc/slurm.conf"', 'interruptible_qos = "spot"', 'qos = "prime"', "",
    ])  # fmt: skip


def _parts(lab: Slurm, rest: str, places: Path, relay: Relay) -> Parts:
    def ours() -> str:
        return lab.run("squeue", "-h", "-u", PLACES_USER, "-p", _PARTITION, "-o", "%j %T %N")

    def let_go(attempt: str) -> None:
        node = Places(places, WITH_GPUS)
        until(lambda: node.release(attempt, 0) or not node.is_held(attempt), lambda: "it is let go")

    def update(node: str, *words: str) -> None:
        lab.run("scontrol", "update", f"NodeName={node}", *words)

    return Parts(
        cores=cores_here(),
        waits=frozenset({"slurm/resources", "slurm/priority"}),
        splits_nodes=False,
        config=_config(lab, rest, places),
        agent=("--places", str(places)),
        losing=lambda: relay.lose("/job/submit"),
        free=lambda: until(lambda: not ours(), lambda: f"Slurm has nothing of ours: {ours()}"),
        let_go=let_go,
        break_node=lambda node, _: update(node, "State=DOWN", "Reason=test"),
        mend_node=lambda node, _: update(node, "State=RESUME"),
    )


@contextmanager
def _as_large_as_here(lab: Slurm) -> Iterator[None]:
    """Of the nodes with a real runner no more cores are free than this machine has."""
    words = (
        f"--partition={_PARTITION}",
        f"--cpus-per-task={_CLAIMED - cores_here()}",
        "--account=vision",
    )
    held = [lab.submit("sleep 3600", f"--nodelist={node}", *words) for node in NODES]
    for job in held:
        lab.wait(["squeue", "-h", "-j", job, "-o", "%T"], "RUNNING")
    try:
        yield
    finally:
        lab.run("scancel", *held)


@pytest.fixture(scope="module")
def rig(lab: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    why = missing()
    if why:
        pytest.skip(why)
    places = lab.directory / "places-of-the-contract"
    with ExitStack() as ends:
        nodes = (*NODES, WITH_GPUS)
        rest = ends.enter_context(partition_of_ours(lab, nodes, _PARTITION, places))
        ends.enter_context(_as_large_as_here(lab))
        lab.run("sacctmgr", "-i", "-Q", "modify", "qos", "spot", "set", "GraceTime=60")
        relay = ends.enter_context(Relay(rest))
        parts = _parts(lab, relay.url, places, relay)
        made = ends.enter_context(rig_of(tmp_path_factory.mktemp("on-slurm"), parts))
        Places(places, WITH_GPUS)
        yield made


class TestSlurm(EngineContract):
    pass
