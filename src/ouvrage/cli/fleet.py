"""``ouvrage fleet``: machines that a scheduler runs, each question a verb of its own.

Decides which verbs there are and what a newcomer does first. Those that bring a fleet up show a plan before they write; those
for a cluster that stands already (adopting it, reporting, prices, hooks as a diff) only read it.
"""

from __future__ import annotations

import importlib

import click

FLEET: dict[str, tuple[str, str, str]] = {
    "init": (
        "fleet_init",
        "init",
        "Where its controller stands, and what a machine must be to join.",
    ),
    "learn": (
        "fleet_learn",
        "learn",
        "Take a machine's own inventory and certificates on record here.",
    ),
    "add": (
        "fleet_add",
        "add",
        "A machine joins, if it is as the build says and has proved itself.",
    ),
    "remove": ("fleet_remove", "remove", "A machine leaves, once nothing runs on it."),
    "status": (
        "fleet_status",
        "status",
        "Which nodes are well, and what is wrong with the others.",
    ),
    "upgrade": (
        "fleet_upgrade",
        "upgrade",
        "Every host gets what the record says now, in Slurm's order.",
    ),
    "adopt": (
        "fleet_adopt",
        "adopt",
        "Read a Slurm cluster into the books; nothing there is touched.",
    ),
    "report": (
        "fleet_report",
        "report",
        "Who had the GPUs, what stood idle and why, what is owed.",
    ),
    "rate": ("fleet_rate", "rate", "What an hour costs in a partition."),
    "hooks": ("fleet_hooks", "hooks", "Health checks for prolog, epilog and monitor, as a diff."),
}
"""Verb → module below ``ouvrage.cli``, attribute, and the line that ``--help`` shows."""


class Verbs(click.Group):
    """A group whose verbs are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of the table."""
        return list(FLEET)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, imported now; None for a word that is none."""
        if cmd_name not in FLEET:
            return None
        module, attribute, _ = FLEET[cmd_name]
        return getattr(importlib.import_module(f"ouvrage.cli.{module}"), attribute)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs from the table above, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in FLEET.items()])


@click.group(cls=Verbs)
def fleet() -> None:
    """Several machines, scheduled by Slurm: what did they do, for whom, and at what price?

    \b
    One that stands:   ouvrage fleet adopt, then ouvrage fleet report
    One of your own:   ouvrage fleet init, then ouvrage fleet add NODE
    """
