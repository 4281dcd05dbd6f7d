"""``ouvrage fleet status``: which nodes are well, and what is wrong with the others.

Decides whose words stand side by side: Slurm's own about each node, and what is on record of the machine (its build, its
certificate, its inventory). With ``--hosts`` every host is asked for its files too. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.fleet_keys import keys_of
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.fleet_asking import SlurmSays, slurm_says
from ouvrage.cli.fleet_carry import hosts_of
from ouvrage.cli.fleet_kept import Fleet, the_fleet
from ouvrage.cli.fleet_today import Today
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, shortened, table
from ouvrage.fleet.joining import told_refusals
from ouvrage.fleet.plan import ALL, plan_of
from ouvrage.fleet.shape import types_of
from ouvrage.fleet.standing import Standing, standing_of
from ouvrage.model.bringup import FleetMember

_SHOWN = 60


@click.command("status")
@click.option(
    "--hosts",
    "ask_hosts",
    is_flag=True,
    help="Also ask every host, over SSH, for the files that it has.",
)
@json_option
def status(ask_hosts: bool, as_json: bool) -> int:
    """Which nodes of the fleet are well, and what is wrong with the others? Exit code 1 where something is."""  # fmt: skip
    with opened() as ledger:
        fleet = the_fleet(ledger)
        says, today = slurm_says(fleet), Today(ledger, fleet, now_us())
        found = [_standing(today, each, says) for each in fleet.members]
        files = _files(ledger, fleet) if ask_hosts else {}
    strangers = sorted(set(says.nodes) - {each.node for each in fleet.members})
    if as_json:
        say_json(_as_json(fleet, says, found, strangers, files))
    else:
        say_text("\n".join(_words(fleet, says, found, strangers, files)))
    well = not strangers and says.why is None and not any(each.wrong for each in found)
    return 0 if well and not any(files.values()) else 1


def _standing(today: Today, member: FleetMember, says: SlurmSays) -> Standing:
    looked = today.judged(member)
    said = says.nodes.get(member.node)
    return standing_of(
        member, said, looked.why_not, looked.member, says.version, asked=says.why is None
    )


def _files(ledger: Ledger, fleet: Fleet) -> dict[str, list[str]]:
    """What is wrong with each host's files, or with asking it."""
    keys = keys_of(ledger.home, make=False)
    if keys is None:
        raise OuvrageError(
            "fleet/keys", "the fleet's keys are not in this home, so no host can be held to them",
            hint="run it in the home that ouvrage fleet init was run in",
        )  # fmt: skip
    plan = plan_of(fleet.settings, fleet.members, keys)
    found: dict[str, list[str]] = {}
    for host, roles in hosts_of(fleet):
        files = [each for each in plan.files if each.role in (ALL, *roles)]
        try:
            there = host.see(files, "/dev/nvidia").files
        except OuvrageError as error:
            found[host.name] = [error.message]
            continue
        have = {path: each.sha256 for path, each in there.items()}
        found[host.name] = [
            f"{file.path} {'is not there' if file.path not in have else 'is another one'}"
            for file in files
            if have.get(file.path) != file.sha256
        ]
    for member in fleet.members:
        wrong = _machine(fleet, member)
        if wrong:
            found.setdefault(member.node, []).extend(wrong)
    return found


def _machine(fleet: Fleet, member: FleetMember) -> list[str]:
    """In what a machine finds less of itself now than the fleet's files say."""
    host = hosts_of(replace(fleet, members=(member,)))[-1][0]
    try:
        told = host.see((), member.devices).told
    except OuvrageError:
        return []  # its files were asked for before, with the reason
    return [f"{each.about}: {each.words}" for each in told_refusals(member, told)]


def _words(
    fleet: Fleet, says: SlurmSays, found: Sequence[Standing], strangers: Sequence[str], files: Mapping[str, list[str]]
) -> list[str]:  # fmt: skip
    lines = [_first(fleet, says, found), ""]
    rows = [
        (
            each.member.node,
            each.state,
            ", ".join(f"{n} {name}" for name, n in sorted(types_of([each.member]).items())) or "–",
            each.member.build,
            shortened(each.wrong[0], 100) if each.wrong else "",
        )
        for each in found[:_SHOWN]
    ]
    if rows:
        lines += [table(("node", "Slurm says", "GPUs", "build", "wrong with it"), rows, "<<<<<"), ""]  # fmt: skip
    for each in found:
        lines += [f"  {each.member.node}: {shortened(why, 160)}" for why in each.wrong[1:]]
    lines += [
        f"  {name} is in Slurm's files and no member: somebody else wrote it there"
        for name in strangers
    ]
    lines += [f"  {host}: {shortened(why, 160)}" for host, wrong in files.items() for why in wrong]
    if files and not any(files.values()):
        lines.append("files         every host has its own, unchanged")
    return [*lines, _last(found, files)]


def _first(fleet: Fleet, says: SlurmSays, found: Sequence[Standing]) -> str:
    name = fleet.settings.cluster
    if not found:
        return f"{name} has no node yet."
    if says.why is not None:
        return (
            f"{name}: its Slurm does not answer, so no state is known: {shortened(says.why, 160)}"
        )
    well = sum(not each.wrong for each in found)
    first = next((each for each in found if each.wrong), None)
    if first is None:
        return f"{name}: all {well} nodes are well." if well > 1 else f"{name}: its node is well."
    return f"{name}: {well} of {len(found)} nodes are well; {first.member.node}: {shortened(first.wrong[0], 140)}"


def _last(found: Sequence[Standing], files: Mapping[str, list[str]]) -> str:
    if not found:
        return "Add one: ouvrage fleet add NODE"
    if any(files.values()):
        return "Put them right: ouvrage fleet upgrade --apply"
    return "Its work: ouvrage fleet adopt, then ouvrage fleet report" if files else "Their files too: ouvrage fleet status --hosts"  # fmt: skip


def _as_json(
    fleet: Fleet, says: SlurmSays, found: Sequence[Standing], strangers: Sequence[str], files: Mapping[str, list[str]]
) -> dict[str, Any]:  # fmt: skip
    return {
        "fleet": fleet.settings.cluster,
        "slurm": says.version,
        "no_answer": says.why,
        "nodes": [
            {"node": each.member.node, "state": each.state, "gpus": dict(types_of([each.member])), "build": each.member.build,
             "wrong": list(each.wrong)}
            for each in found
        ],
        "strangers": list(strangers),
        "files": dict(files),
    }  # fmt: skip
