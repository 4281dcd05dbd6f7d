"""``ouvrage node certificates``: which proofs of a machine still count, with the parts it has now?

Decides that the last certificate of each class speaks for it, and that parts are compared on the machine itself alone: another
node's certificates expire, and whether a part of it was changed is not known here.
"""

from __future__ import annotations

import click

from ouvrage.adapters.audit_tables import need_table
from ouvrage.adapters.clock import now_us
from ouvrage.agent.parts import inventory_now
from ouvrage.cli.node_inventory import root_option, roots_of
from ouvrage.cli.node_proofs import facts_of, node_named
from ouvrage.cli.node_proved import standing_json, standing_words
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.health.certificates import Standing, latest, longest_us, part_ids, standing
from ouvrage.model.health import NodeCertificate


@click.command("certificates")
@click.argument("node", metavar="[NODE]", required=False)
@click.option(
    "--elsewhere",
    is_flag=True,
    help="The node is another machine: do not compare its parts with this one's.",
)
@root_option
@json_option
@plain_option
def node_certificates(
    node: str | None, elsewhere: bool, root: str | None, as_json: bool, plain: bool
) -> int:
    """Which certificates of this machine still count? Exit code 1 where one does not."""  # fmt: skip
    name = node_named(node)
    here = None if elsewhere else inventory_now(name, roots_of(root), ask_topology=False)
    parts = None if here is None else part_ids(here.parts)
    untold = frozenset(each.name for each in here.untold) if here is not None else frozenset()
    held = latest(each for each in facts_of(NodeCertificate) if each.node == name)
    most = longest_us(need_table().bounds)
    found = [standing(each, parts, now_us(), untold, most) for each in held.values()]
    if as_json:
        say_json([standing_json(each) for each in found])
    else:
        say_text(_words(name, found))
    return 0 if all(each.holds for each in found) else 1


def _words(node: str, found: list[Standing]) -> str:
    if not found:
        return (
            f"{node} has no certificate yet.\nProve it: ouvrage node qualify {node} --for inference"
        )
    good = sum(1 for each in found if each.holds)
    lines = [f"{good} of {len(found)} certificates of {node} count.", ""]
    for each in found:
        lines.append(standing_words(each))
        lines += [f"    {reason}" for reason in each.reasons[1:]]
    return "\n".join([*lines, "", f"Prove it again: ouvrage node qualify {node} --for CLASS"])
