"""``ouvrage node facts``: what this home has on record of a machine, as lines that another home can take.

Decides which they are: the last inventory and the last certificate of each class of work. They travel as they were recorded, with
this home's name as their source; whoever takes them judges them himself.
"""

from __future__ import annotations

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.cli.fleet_kept import certificates_of
from ouvrage.cli.ledger import opened
from ouvrage.cli.node_inventory import inventories, meant
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.ledger.lines import fact_line


@click.command("facts")
@click.argument("node", required=False)
@json_option
def node_facts(node: str | None, as_json: bool) -> None:
    """What is on record of a machine, a fact a line, for another home: its last inventory and certificates.

    Taken there by `ouvrage fleet learn NODE`, which asks for them over SSH or reads them from a file.
    """  # fmt: skip
    name = meant(node, None)[0]
    with opened() as ledger:
        found = [entry.fact for entry, _ in inventories(ledger, name)[-1:]]
        found += {v.work_class: e.fact for e, v in certificates_of(ledger, name)}.values()
    if not found:
        raise OuvrageError(
            "inventory/none", f"nothing of {name} is on record here",
            hint="on that machine: ouvrage node inventory, ouvrage node qualify --for CLASS",
        )  # fmt: skip
    lines = [fact_line(fact) for fact in found]
    if as_json:
        say_json(lines)
    else:
        say_text("\n".join(lines))
