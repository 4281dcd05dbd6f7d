"""Which nodes of a Slurm are drained because they are withheld here, and which are let go on.

Decides by the reason: a drain of ours says so in its first word, and only such a one is ever ended by us. A node that somebody else has drained is
left as it is, also where we would have drained it; who drains one of ours for a reason of their own has taken it over. A single GPU is not drained,
for Slurm cannot: see ``asking.able``.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ouvrage.adapters.slurm_commands import SlurmNode
from ouvrage.store.platform.machines import all_nodes, fences_held
from ouvrage.store.transaction import Connection

OURS = "ouvrage:"
RESUME = ""
_UNLISTED = "it takes no new work"
_LONGEST = 200


def withheld(connection: Connection) -> Mapping[str, str]:
    """By the name of a node that is withheld as a whole, why."""
    names = {row.node: row.name for row in all_nodes(connection)}
    found = {row.name: _UNLISTED for row in all_nodes(connection) if not row.listed}
    for fence in fences_held(connection):
        if fence.device is None and fence.node in names:
            found[names[fence.node]] = fence.why
    return found


def steps(
    nodes: Mapping[str, SlurmNode], wanted: Mapping[str, str], names: Set[str]
) -> list[tuple[str, str]]:
    """What is due: nodes with the reason to drain each, or ``RESUME``. ``wanted``: what is withheld and why; ``names``: our nodes."""
    found: list[tuple[str, str]] = []
    for node in nodes.values():
        name = node.name.lower()
        due = _step(node, wanted.get(name)) if name in names else None
        if due is not None:
            found.append((node.name, due))
    return found


def _step(node: SlurmNode, why: str | None) -> str | None:
    drained = node.state.startswith("drain")
    if why is not None and not drained and not node.state.startswith("down"):
        return f"{OURS} {_printable(why)}"
    return RESUME if why is None and drained and node.reason.startswith(OURS) else None


def _printable(why: str) -> str:
    """On one line that ends up in other people's lists."""
    return " ".join(why.split())[:_LONGEST]
