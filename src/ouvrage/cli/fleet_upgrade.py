"""``ouvrage fleet upgrade``: every host has what the record says now: changed settings, new inventories, newer packages.

Decides that a machine which would not join today keeps what it had and is named, so that nobody is thrown out by an expired
certificate in the middle of a night; and with ``--packages`` Slurm's own order: the accounting (its database is saved first), the
controller, the nodes one after another.
"""

from __future__ import annotations

from dataclasses import replace

import click

from ouvrage.adapters.clock import now_us
from ouvrage.cli.fleet_carry import Where, carried, planned, where_options
from ouvrage.cli.fleet_kept import Fleet, stated, the_fleet
from ouvrage.cli.fleet_today import Today
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.model.bringup import FleetMember


@click.command("upgrade")
@click.option(
    "--packages",
    is_flag=True,
    help="Also newer Slurm packages: accounting first, then the controller, then each node.",
)
@where_options
def upgrade(packages: bool, where: Where) -> int:
    """Every host gets what the record says now, in Slurm's order; what is right already is left alone. The plan is shown first.

    Machines that would not join today keep what they had, and are named; exit code 1 then.
    """  # fmt: skip
    with opened() as ledger:
        fleet = the_fleet(ledger)
        members, wrong = _members(ledger, fleet)
        after = replace(fleet, members=members)
        carry = planned(ledger, fleet, after, where, packages=packages)
        now = now_us()
        facts = [
            stated(new, now) for old, new in zip(fleet.members, members, strict=True) if old != new
        ]
        changed = sum(word != "as it is" for _, word, _ in carry.changes().values())
        first = f"{fleet.settings.cluster}: {changed} file{'' if changed == 1 else 's'} to change, {len(facts)} of {len(members)} nodes by their inventories."
        first = "\n".join([first, *(f"  would not join today: {each}" for each in wrong)])
        code = carried(ledger, carry, facts, first, "ouvrage fleet upgrade")
    return 1 if wrong else code


def _members(ledger: Ledger, fleet: Fleet) -> tuple[tuple[FleetMember, ...], list[str]]:
    """The members as they are today, and in words those that would not join and stay as they were."""
    today = Today(ledger, fleet, now_us())
    found: list[FleetMember] = []
    wrong: list[str] = []
    for member in fleet.members:
        looked = today.judged(member)
        why = looked.why_not
        found.append(member if why else looked.member)
        if why:
            more = f", and {len(why) - 1} more" if why[1:] else ""
            wrong.append(f"{member.node}: {why[0].about}: {why[0].words}{more}")
    return tuple(found), wrong
