"""What a fleet's own Slurm says, asked where its controller stands.

Decides where it is asked (on this machine, or over SSH), that a Slurm below a root of its own is asked by its own file, and that an
answer which does not come is a reason and no state.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.adapters.feeds.slurm_lists import config_of, gres_of, pairs_of
from ouvrage.adapters.slurm import Answer, Here, Question
from ouvrage.cli.fleet_carry import hosts_of
from ouvrage.cli.fleet_kept import Fleet
from ouvrage.fleet.layout import Layout
from ouvrage.fleet.standing import NodeSaid, said_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSays:
    """Every node that Slurm lists, the controller's release, and (``why``) the reason where it does not answer."""

    nodes: dict[str, NodeSaid]
    version: str | None
    why: str | None


def asked(fleet: Fleet, *words: str) -> Answer:
    """A command's answer from the host of the controller."""
    at = Layout(fleet.settings.root)
    own = ("env", f"SLURM_CONF={at.etc}/slurm.conf") if at.own else ()
    controller = hosts_of(fleet)[0][0]
    return Here(controller.ssh).answer(Question(name=words[0], words=(*own, *words)), 0)


def slurm_says(fleet: Fleet) -> SlurmSays:
    """What Slurm says of its nodes."""
    answer = asked(fleet, "scontrol", "--oneliner", "--all", "show", "nodes")
    if answer.why is not None:
        return SlurmSays(nodes={}, version=None, why=answer.why)
    rows = [pairs_of(line) for line in answer.data.decode("utf-8", "replace").splitlines()]
    nodes = {
        pairs["NodeName"]: said_of(pairs, gres_of(pairs.get("Gres", ""))[0])
        for pairs in rows
        if pairs.get("NodeName")
    }
    config = config_of(asked(fleet, "scontrol", "show", "config").data.decode("utf-8", "replace"))
    return SlurmSays(nodes=nodes, version=config.get("SLURM_VERSION"), why=None)


def jobs_on(fleet: Fleet, node: str) -> tuple[list[str], str | None]:
    """The numbers of the jobs that are on a node now, or why that is not known."""
    states = "--states=RUNNING,SUSPENDED,COMPLETING,STAGE_OUT"
    answer = asked(fleet, "squeue", "--noheader", f"--nodelist={node}", states, "--format=%A")
    if answer.why is not None:
        return [], answer.why
    return sorted(set(answer.data.decode("ascii", "replace").split())), None
