"""``ouvrage import``: facts from files and feeds of others, each kind a verb of its own.

Decides which kinds there are; each is a module that is loaded when it is called. What they share (who
a machine is, how an import is recorded and told) is ``import_told``.
"""

from __future__ import annotations

import importlib

import click

IMPORTS: dict[str, tuple[str, str, str]] = {
    "vast-earnings": ("import_vast", "earnings", "Vast.ai: what each machine earned, by day."),
    "vast-machines": ("import_occupancy", "machines_", "Vast.ai: which GPUs were rented when."),
    "vast-invoices": ("import_occupancy", "invoices", "Vast.ai: what was paid out, and when."),
    "earnings": ("import_money", "earnings", "Any marketplace's CSV, by a mapping of its columns."),
    "plug": ("import_plug", "plug", "Smart plugs and meters: energy by reading or interval."),
    "spot": ("import_spot", "spot", "Market prices of power: a table, or aWATTar in JSON."),
    "bank": ("import_money", "bank", "Lines of a bank account: camt.053 or CSV."),
    "bills": ("import_money", "bills", "Bills from a CSV."),
    "sacct": ("import_cluster", "sacct", "A Slurm cluster: its jobs, and what befell its nodes."),
    "mapping": ("import_money", "mapping_", "The ready mappings of columns."),
}
"""Kind → module below ``ouvrage.cli``, attribute, and the line that ``--help`` shows."""


class Kinds(click.Group):
    """A group whose verbs are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The kinds in the order of the table."""
        return list(IMPORTS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a kind, imported now; None for a word that is none."""
        if cmd_name not in IMPORTS:
            return None
        module, attribute, _ = IMPORTS[cmd_name]
        return getattr(importlib.import_module(f"ouvrage.cli.{module}"), attribute)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the kinds from the table above, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in IMPORTS.items()])


@click.group(name="import", cls=Kinds)
def import_() -> None:
    """Bring in what marketplaces, meters, banks and suppliers say.

    What was read before is not counted again; good rows come in, bad ones are told by line, and the exit
    code is then 1.
    """
