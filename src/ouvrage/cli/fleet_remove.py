"""``ouvrage fleet remove NODE``: a machine leaves the fleet, once nothing runs on it.

Decides that no job is lost by it: Slurm ends what runs on a node that is gone from its files. With ``--apply`` a node with work is
drained, and removed when it is asked again; a machine that is dead leaves all the same, as it answers nobody.
"""

from __future__ import annotations

from dataclasses import replace

import click

from ouvrage.adapters.clock import now_us
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.fleet_asking import asked, jobs_on
from ouvrage.cli.fleet_carry import Where, carried, hosts_of, planned, where_options
from ouvrage.cli.fleet_kept import Fleet, stated, the_fleet
from ouvrage.cli.ledger import opened
from ouvrage.cli.output import say_text, wrote
from ouvrage.model.bringup import FleetMember

_STOP = "systemctl disable --now --quiet slurmd"


@click.command("remove")
@click.argument("node")
@click.option("--why", metavar="TEXT", required=True, help="Why it leaves.")
@click.option(
    "--end-jobs",
    is_flag=True,
    help="Also while jobs run there: they are ended, or put back into the queue.",
)
@where_options
def remove(node: str, why: str, end_jobs: bool, where: Where) -> int:
    """A machine leaves the fleet. With --apply it is drained first while jobs run on it; then ask again. The plan is shown first."""
    with opened() as ledger:
        fleet = the_fleet(ledger)
        member = fleet.member(node)
        gone = replace(member, removed=True, why=why.strip())
        after = replace(fleet, members=tuple(each for each in fleet.members if each is not member))
        carry = planned(ledger, fleet, after, where)
        if where.apply and not end_jobs:
            _nothing_runs(fleet, member)
        many = len(after.members)
        first = f"{node} leaves {fleet.settings.cluster}; {many} node{'' if many == 1 else 's'} stay{'s' if many == 1 else ''}."
        again = f"ouvrage fleet remove {node} --why …"
        code = carried(ledger, carry, [stated(gone, now_us())], first, again)
        if where.apply and not fleet.settings.root:
            _stopped(fleet, after, member)
        return code


def _nothing_runs(fleet: Fleet, member: FleetMember) -> None:
    """Raise ``OuvrageError`` ``fleet/busy`` where jobs are on a node, which is drained then."""
    jobs, why = jobs_on(fleet, member.node)
    if why is not None:
        raise OuvrageError(
            "fleet/no-answer", f"Slurm does not say what runs on {member.node}: {why}", exit_code=1,
            hint="mend that first; or --end-jobs, if nothing can be running there",
        )  # fmt: skip
    if not jobs:
        return
    drain = ("scontrol", "update", f"NodeName={member.node}", "State=DRAIN", "Reason=ouvrage: leaves the fleet")  # fmt: skip
    drained = asked(fleet, *drain).why
    wrote()
    many = len(jobs)
    raise OuvrageError(
        "fleet/busy", f"{many} job{'' if many == 1 else 's'} on {member.node}: {', '.join(jobs[:12])}", exit_code=1,
        where=(f"it is not drained: {drained}" if drained else "it is drained: nothing new begins there",),
        hint="ask again when they have ended; --end-jobs does not wait",
    )  # fmt: skip


def _stopped(fleet: Fleet, after: Fleet, member: FleetMember) -> None:
    """Stop the machine's own daemon, where the machine answers and is not another member too."""
    staying = {host.ssh for host, _ in hosts_of(after)}
    alone = hosts_of(replace(fleet, members=(member,)))[-1][0]
    if alone.ssh in staying:
        return
    try:
        alone.run(_STOP)
    except OuvrageError as error:
        say_text(f"warning: its slurmd was not stopped: {error.message}", err=True)
