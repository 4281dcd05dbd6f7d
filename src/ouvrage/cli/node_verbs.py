"""The verbs of ``ouvrage node`` that read this machine: each a module that is loaded when it is called.

Decides which there are. They load the store, which takes longer than a question to the server, so that those must not wait
for them.
"""

from __future__ import annotations

import importlib

import click

LOCAL: dict[str, tuple[str, str, str]] = {
    "health": ("node_care", "health", "How does it stand, and how often was it there?"),
    "repair": ("node_care", "repair", "Walk through the runbook that is next, step by step."),
    "maintain": ("node_care", "maintain", "Out of service for a while, on purpose."),
    "trials": ("node_trials", "trials_", "What would rules on trial have done?"),
    "inventory": ("node_inventory", "inventory", "What is it made of, and what changed?"),
    "compare": ("node_compare", "compare", "In what is it not the standard build?"),
    "qualify": ("node_qualify", "node_qualify", "Can it do what a class of work needs?"),
    "certificates": ("node_certificates", "node_certificates", "Which proofs of it still count?"),
    "facts": ("node_facts", "node_facts", "What is on record of it, for another home."),
    "audit": ("node_audit", "node_audit", "Is it safe enough for strangers' work?"),
    "power": ("node_power_limit", "power", "Switch, cycle or cap it from afar."),
    "patch": ("node_patch", "patch", "What waits, who has to be gone first, what changed?"),
}
"""Verb → module below ``ouvrage.cli``, attribute, and the line that ``--help`` shows."""


class NodeVerbs(click.Group):
    """A group of verbs that ask the server, and those of the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Those that ask the server, then those that read this machine."""
        return [*super().list_commands(ctx), *LOCAL]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now where it is one of the table; None for a word that is none."""
        if cmd_name not in LOCAL:
            return super().get_command(ctx, cmd_name)
        module, attribute, _ = LOCAL[cmd_name]
        return getattr(importlib.import_module(f"ouvrage.cli.{module}"), attribute)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them, without importing any of the table."""
        asking = [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl([*asking, *((name, line) for name, (_, _, line) in LOCAL.items())])
