"""``ouvrage fleet add NODE``: a machine joins, if it is as the build says and has proved itself.

Decides whose word counts: the machine's own inventory on record, held to the build, to its certificate, to the other nodes, and
(with ``--apply``) to what the machine itself finds now. Every reason against it is told at once.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.fleet_hosts import Host
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.agent import host_name
from ouvrage.cli.fleet_carry import Where, carried, planned, where_options, with_member
from ouvrage.cli.fleet_kept import Fleet, stated, the_fleet
from ouvrage.cli.fleet_today import Today
from ouvrage.cli.ledger import opened
from ouvrage.fleet.joining import Refusal, told_refusals
from ouvrage.fleet.names import check_address, check_host, check_path, check_port, check_word
from ouvrage.fleet.shape import types_of
from ouvrage.model.bringup import FleetMember

_DEVICES = "/dev/nvidia"


@click.command("add")
@click.argument("node")
@click.option(
    "--host", metavar="NAME", help="What the machine calls itself, where that is another name."
)
@click.option(
    "--address",
    metavar="ADDRESS",
    help="Where it is reached, where its name alone does not lead there.",
)
@click.option(
    "--port", metavar="N", type=int, help="Of its slurmd, where several stand on one machine."
)
@click.option("--build", metavar="NAME", help="Held to another build than the fleet's.")
@click.option(
    "--allow",
    "allowed",
    metavar="SORT:NAME",
    multiple=True,
    help="What may differ from the build on this one: 'package:*'.",
)
@click.option(
    "--memory",
    metavar="MIB",
    type=click.IntRange(min=1),
    help="For jobs, where its modules do not say.",
)
@click.option(
    "--cores",
    metavar="N",
    type=click.IntRange(min=1),
    help="Of each socket, for jobs; the others stay the machine's own.",
)
@click.option(
    "--gpu-type",
    metavar="NAME",
    help="What jobs ask its GPUs by, instead of a word of their model.",
)
@click.option(
    "--devices",
    metavar="PREFIX",
    default=_DEVICES,
    show_default=True,
    help="What stands before the number of a GPU's device file.",
)
@where_options
def add(node: str, where: Where, **said: Any) -> int:
    """A machine joins the fleet: it must be as the build says, and its certificate must hold. The plan is shown first.

    It is known by its last inventory on record. Every reason against it is told; exit code 2 then, and nothing is written.
    """  # fmt: skip
    check_host("node", node)
    with opened() as ledger:
        fleet = the_fleet(ledger)
        wanted = _wanted(fleet, node, said)
        looked = Today(ledger, fleet, now_us()).look(wanted, gpu_type=said["gpu_type"])
        member = looked.member
        _may_join(fleet, member, [*looked.why_not], where)
        after = with_member(fleet, member)
        carry = planned(ledger, fleet, after, where)
        again = f"ouvrage fleet add {node}"
        return carried(ledger, carry, [stated(member, now_us())], _first(fleet, member), again)


def _first(fleet: Fleet, member: FleetMember) -> str:
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(types_of([member]).items()))
    cores = member.sockets * member.cores
    return (
        f"{member.node} may join {fleet.settings.cluster}: {kinds or 'no GPU'}, {cores} core{'' if cores == 1 else 's'}, {member.memory_mib} MiB; "
        f"as build {member.build}, proven for {fleet.settings.work_class}."
    )  # fmt: skip


def _wanted(fleet: Fleet, node: str, said: dict[str, Any]) -> FleetMember:
    """The member as its owner says it; what its inventory says is not in it yet."""
    check_host("--host", said["host"] or node)
    check_address(said["address"] or said["host"] or node)
    check_path("--devices", said["devices"])
    check_word("the build", said["build"] or fleet.settings.build)
    if said["port"] is not None:
        check_port("--port", said["port"])
    if said["gpu_type"] is not None:
        check_word("--gpu-type", said["gpu_type"])
    return FleetMember(
        node=node, host=said["host"] or node, address=said["address"] or said["host"] or node, port=said["port"],
        sockets=0, cores=said["cores"] or 0, threads=0, memory_mib=said["memory"] or 0, gpus=(), devices=said["devices"],
        build=said["build"] or fleet.settings.build, certificate="", inventory="", allowed=tuple(said["allowed"]),
        said=tuple(name for name in ("memory", "cores", "gpu_type") if said[name] is not None), removed=False, why="",
    )  # fmt: skip


def _may_join(fleet: Fleet, member: FleetMember, found: list[Refusal], where: Where) -> None:
    """Raise ``OuvrageError`` ``fleet/may-not-join`` with every reason against a machine, its own word included."""
    if where.apply:
        here = member.host.lower() == host_name()
        host = Host(name=member.node, ssh=None if here else member.address)
        found += told_refusals(member, host.see((), member.devices).told)
    if found:
        many = len(found)
        raise OuvrageError(
            "fleet/may-not-join", f"{member.node} may not join {fleet.settings.cluster}: {many} reason{'' if many == 1 else 's'}",
            where=tuple(f"{each.about}: {each.words}" for each in found), hint="; ".join(dict.fromkeys(each.hint for each in found)),
        )  # fmt: skip
