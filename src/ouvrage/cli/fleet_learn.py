"""``ouvrage fleet learn NODE``: a machine's own inventory and certificates, taken into this home.

Decides what is taken: these two kinds, about this node, whole lines with their own hash; one line that is anything else and nothing is
taken. That a machine says it is no proof: what it says is held to the build, to the other nodes and to what it finds of itself when it joins.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.fleet_hosts import Host
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.fleet_kept import certificates_of
from ouvrage.cli.import_told import read_bytes
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.node_inventory import inventories
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, wrote
from ouvrage.fleet.names import check_address, check_host
from ouvrage.health.parts import counted
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import read
from ouvrage.ledger.lines import read_fact_line
from ouvrage.model.health import NodeCertificate, NodeInventory

_MOST = 64
_LARGEST = 64 << 20
_THERE = "ouvrage"


@click.command("learn")
@click.argument("node")
@click.option("--ssh", metavar="HOST", help="Where it is reached by your ssh (NODE).")
@click.option("--from", "saved", metavar="FILE", type=click.Path(path_type=Path),
              help="What `ouvrage node facts` printed there; - for standard input.")  # fmt: skip
@json_option
def learn(node: str, ssh: str | None, saved: Path | None, as_json: bool) -> int:
    """Take a machine's own inventory and certificates on record here, over SSH or from a file.

    Over SSH it runs `ouvrage node facts NODE` there; OUVRAGE_THERE may hold another way to call it, sudo included.
    """
    check_host("node", node)
    if ssh is not None and saved is not None:
        raise OuvrageError("fleet/which", "one place is asked", hint="--ssh HOST, or --from FILE")
    check_address(ssh.rpartition("@")[2] if ssh else node)
    place = str(saved) if saved else ssh or node
    text = _saved(saved) if saved else _asked(node, ssh or node)
    facts = tuple(_facts(node, place, text))
    with opened() as ledger:
        done = ledger.store.append(facts, now_us=now_us(), own_source=source_id(ledger.home))
        wrote()
        many, words = _known(ledger, node)
    new = sum(each.result == "accepted" for each in done)
    other = sum(each.result == "conflict" for each in done)
    if as_json:
        say_json({"node": node, "from": place, "facts": len(facts), "new": new, "conflicts": other})
        return 1 if other else 0
    lines = [
        f"{node}: {words}; {many} certificate{'' if many == 1 else 's'}, {new} of {len(facts)} facts new."
    ]
    if other:
        lines.append(
            f"  {other} of them said something else under the same name before; what was known first holds"
        )
    say_text("\n".join([*lines, f"Let it join: ouvrage fleet add {node}"]))
    return 1 if other else 0


def _saved(file: Path) -> str:
    data = sys.stdin.buffer.read(_LARGEST) if str(file) == "-" else read_bytes(file)
    return data.decode("utf-8", "replace")


def _asked(node: str, ssh: str) -> str:
    there = os.environ.get("OUVRAGE_THERE") or _THERE
    return Host(name=node, ssh=ssh).run(f"{there} node facts {shlex.quote(node)}")


def _facts(node: str, place: str, text: str) -> Iterator[Fact]:
    """The facts on some lines. Raises ``OuvrageError`` ``fleet/learn`` for a line that is not one of these."""
    lines = [each for each in text.splitlines() if each.strip()]
    if not lines or len(lines) > _MOST:
        raise OuvrageError(
            "fleet/learn", f"{place} has {len(lines)} lines, not 1 to {_MOST}", hint="what `ouvrage node facts` prints there"
        )  # fmt: skip
    for number, line in enumerate(lines, 1):
        try:
            fact, sha256 = read_fact_line(line)
            value = read(fact)
        except ValueError as error:
            raise _refused(place, number, str(error)[:200], "a fact") from error
        if not isinstance(value, (NodeInventory, NodeCertificate)):
            raise _refused(place, number, fact.kind, "node.inventory or node.certificate")
        if value.node != node or fact.subject != f"node:{node}":
            raise _refused(place, number, f"about {value.node[:80]}", f"about {node}")
        if fact.sha256 != sha256:
            raise _refused(place, number, f"hash {sha256[:16]}", f"hash {fact.sha256[:16]}")
        yield fact


def _refused(place: str, line: int, found: str, expected: str) -> OuvrageError:
    return OuvrageError(
        "fleet/learn", f"{place} says something else", where=(f"{place}:{line}   found {found!r}, expected {expected}",),
        hint="on that machine: ouvrage node facts > FILE; then ouvrage fleet learn NODE --from FILE",
    )  # fmt: skip


def _known(ledger: Ledger, node: str) -> tuple[int, str]:
    found = inventories(ledger, node)
    classes = {value.work_class for _, value in certificates_of(ledger, node)}
    return len(classes), counted(found[-1][1].parts) if found else "no inventory"
