"""``ouvrage node inventory`` and ``node compare``: what a machine is made of, and in what it is not the standard build.

Decides which machine is read and that what is new is recorded: one fact for each boot and for each change. A change stays
one, for ``ouvrage check inventory`` too, until its owner accepts it.
"""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.home import source_id
from ouvrage.adapters.machine_parts import Roots
from ouvrage.adapters.toml_text import read_text
from ouvrage.agent.parts import Kept, agent_dir, inventory_now, keep, kept, look
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.books.parts import Bought, bought, named_by_owner
from ouvrage.books.period import day_of
from ouvrage.books.record import OwnerRecord
from ouvrage.cli.agent import host_name
from ouvrage.cli.book_ledger import books_of
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, shortened, table, wrote
from ouvrage.health.parts import SOFT, Change, changes, counted, make_of
from ouvrage.health.patching import covering, patched
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of, payload_of, read
from ouvrage.ledger.view import in_force
from ouvrage.metering.topology import WAYS, way
from ouvrage.model.builds import InventoryAccepted, PatchPlan
from ouvrage.model.health import NodeInventory, NodePatched
from ouvrage.pricing.words import mark

_SHOWN = 12
_WIDE = 60

root_option = click.option(
    "--root",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Read the machine whose /proc, /sys, /etc and /var lie below DIR.",
)
state_option = click.option(
    "--state",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where this machine's agent keeps its state (agent/ in the home).",
)


def roots_of(root: str | None) -> Roots:
    """The machine itself, or a tree of its files."""
    return Roots() if root is None else Roots.under(root)


def here_now(
    node: str, root: str | None, state: Path | None, topology: Path | None = None
) -> NodeInventory:
    """The machine as it is, put on record where it is not yet."""
    roots = roots_of(root)
    text = None if topology is None else read_text(topology, "inventory")
    now = inventory_now(node, roots, topology=text)
    grade = Grade.MEASURED if roots.are_here else Grade.REPORTED
    with opened() as ledger:
        look(state or agent_dir(), now, lambda value: record(ledger, value, grade))
    return now


def record(ledger: Ledger, value: Any, grade: Grade) -> None:
    """State something of a node from now on."""
    source, now = source_id(ledger.home), now_us()
    fact = fact_of(
        value, source=source, id=f"{value.KIND}/{value.node}/{new_id()}", subject=f"node:{value.node}",
        valid_from=now, valid_to=None, grade=grade,
    )  # fmt: skip
    ledger.store.append([fact], now_us=now, own_source=source)
    wrote()


def inventories(ledger: Ledger, node: str) -> list[tuple[Recorded, NodeInventory]]:
    """Every inventory of a node, the oldest first."""
    found = in_force(ledger.store.records(kind=NodeInventory.KIND, subject=f"node:{node}"))
    values = [(entry, read(entry.fact)) for entry in sorted(found, key=lambda entry: entry.seq)]
    return [(entry, value) for entry, value in values if isinstance(value, NodeInventory)]


def on_record(node: str) -> tuple[Recorded, NodeInventory]:
    """The last inventory of a node, with its fact. Raises ``OuvrageError`` ``inventory/none``."""
    with opened() as ledger:
        found = inventories(ledger, node)
    if not found:
        raise OuvrageError(
            "inventory/none", f"no inventory of {node} is on record here",
            hint="on that machine: ouvrage node inventory; its facts come with its runs or a backup",
        )  # fmt: skip
    return found[-1]


def meant(node: str | None, root: str | None) -> tuple[str, bool]:
    """The node's name, and whether it is read now: this machine, or a tree."""
    return node or host_name(), root is not None or node in (None, host_name())


@click.command("inventory")
@click.argument("node", required=False)
@root_option
@click.option(
    "--topology",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A saved table of nvidia-smi topo -m, with --root.",
)
@click.option("--accept", "accepting", is_flag=True, help="The changes are meant: warn no more.")
@click.option("--why", metavar="TEXT", default="", help="Why they are, with --accept.")
@state_option
@json_option
@plain_option
def inventory(
    node: str | None,
    root: str | None,
    topology: Path | None,
    accepting: bool,
    why: str,
    state: Path | None,
    as_json: bool,
    plain: bool,
) -> None:
    """What a machine is made of: parts with serial numbers, firmware, driver, what it was bought for.

    This machine, read now, where NODE is left out or its own name; another one as its last inventory has it. What is new is
    recorded. A change since it was accepted is said here, and by `ouvrage check inventory`, until --accept.
    """  # fmt: skip
    name, read_now = meant(node, root)
    place = state or agent_dir()
    if accepting and not (read_now and why.strip()):
        raise OuvrageError(
            "inventory/accept", "changes are accepted on the machine itself, with a reason",
            hint='ouvrage node inventory --accept --why "new DIMMs"',
        )  # fmt: skip
    if read_now:
        now = here_now(name, root, state, topology)
        differing = _accepted(name, now, place, why, accepting)
    else:
        now, differing = on_record(name)[1], _since_first(name)
    with opened() as ledger:
        owner = books_of(ledger, None).record
    grade = Grade.REPORTED if root else Grade.MEASURED
    if as_json:
        say_json(_as_json(now, differing, owner, grade, accepting))
    else:
        say_text(_words(now, differing, owner, grade, accepting, plain))


def _accepted(
    name: str, now: NodeInventory, place: Path, why: str, accepting: bool
) -> Sequence[Change]:
    """The changes since the owner last accepted; recorded and accepted where that is asked."""
    known = kept(place, name)
    differing = changes(known.accepted, now) if known is not None else ()
    if known is not None and accepting and differing:
        words = tuple(change.words for change in differing)
        value = InventoryAccepted(node=name, boot=now.boot, changes=words, why=why.strip())
        with opened() as ledger:
            for each in (*patches(ledger, known.accepted, now), value):
                record(ledger, each, Grade.REPORTED)
        keep(place, Kept(accepted=now, last=now))
    return differing


def patches(ledger: Ledger, before: NodeInventory, now: NodeInventory) -> tuple[NodePatched, ...]:
    """What changed of a machine's software between two inventories, held to the plans that there are."""
    found = in_force(ledger.store.records(kind=PatchPlan.KIND, subject=f"node:{now.node}"))
    values = [read(entry.fact) for entry in sorted(found, key=lambda entry: entry.seq)]
    plans = [value for value in values if isinstance(value, PatchPlan)]
    plan = covering(plans, now.node, now_us())
    return patched(before, now, changes(before, now), plan, who())


def who() -> str:
    """Who is asking, by the system's own list of users."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _since_first(name: str) -> Sequence[Change]:
    """What differs between the last two inventories of another machine."""
    with opened() as ledger:
        found = [value for _, value in inventories(ledger, name)]
    return changes(found[-2], found[-1]) if len(found) > 1 else ()


def change_json(change: Change) -> dict[str, Any]:
    """One change."""
    names = ("what", "kind", "slot", "before", "after")
    return {**{name: getattr(change, name) for name in names}, "words": change.words}


def _as_json(
    now: NodeInventory, differing: Sequence[Change], owner: OwnerRecord, grade: Grade, accepted: bool
) -> dict[str, Any]:  # fmt: skip
    value: dict[str, Any] = json.loads(payload_of(now))
    for part, row in zip(now.parts, value["parts"], strict=True):
        row["bought"] = _bought_json(bought(owner, now.node, part))
    missing = [{"asset": asset, "serial": serial} for asset, serial in _not_there(owner, now)]
    return {
        **value,
        "grade": grade.word,
        "changes": [change_json(each) for each in differing],
        "accepted": accepted or not differing,
        "bought_but_not_there": missing,
    }


def _bought_json(found: Bought | None) -> dict[str, Any] | None:
    if found is None:
        return None
    names = ("asset", "price", "currency", "warranty_until", "supplier", "order", "by", "key")
    return {
        **{name: getattr(found, name) for name in names},
        "bought_us": found.bought_us,
        "grade": found.grade.word,
    }


def _not_there(owner: OwnerRecord, now: NodeInventory) -> list[tuple[str, str]]:
    """Serial numbers that the owner stated and that no part of the machine has."""
    there = {part.serial for part in now.parts}
    return [each for each in named_by_owner(owner, now.node) if each[1] not in there]


def _words(
    now: NodeInventory, differing: Sequence[Change], owner: OwnerRecord, grade: Grade,
    accepted: bool, plain: bool,
) -> str:  # fmt: skip
    many = len(differing)
    since = "accepted now" if accepted else "since it was accepted"
    news = f"; {many} change{'' if many == 1 else 's'} {since}" if many else ""
    lines = [f"{now.node}: {counted(now.parts)}{mark(grade, plain)}{news}"]
    lines += [f"  {shortened(change.words, 140)}" for change in differing[:_SHOWN]]
    if many > _SHOWN:
        lines.append(f"  and {many - _SHOWN} more: --json")
    lines += ["", _parts_table(now, owner, plain), ""]
    lines += [f"not told     {shortened(f'{each.name}: {each.value}', 140)}" for each in now.untold]
    lines += [
        f"not there    {shortened(f'{asset}: bought with serial {serial}', 140)}"
        for asset, serial in _not_there(owner, now)
    ]
    lines += _joined(now)
    if many and not accepted:
        lines.append('accept it    ouvrage node inventory --accept --why "…"')
    lines.append("more         --json holds packages, settings and ways between parts; hold it to")
    lines[-1] += " a build: ouvrage node compare"
    return "\n".join(lines)


def _parts_table(now: NodeInventory, owner: OwnerRecord, plain: bool) -> str:
    rows = [
        (
            part.kind,
            shortened(part.slot, 30),
            shortened(make_of(part) or "–", _WIDE),
            shortened(part.serial or "–", 24),
            shortened(part.version or "–", 36),
            _bought_words(bought(owner, now.node, part), owner, plain),
        )
        for part in sorted(now.parts, key=lambda part: (part.kind in SOFT, part.kind, part.slot))
    ]
    head = ("kind", "place", "what", "serial", "version", "bought")
    return table(head, rows, "<<<<<<") if rows else "nothing could be read"


def _bought_words(found: Bought | None, owner: OwnerRecord, plain: bool) -> str:
    """``249.00 EUR 2026-03-02 from Acme, warranty 2029-03-01``."""
    if found is None:
        return ""
    if found.by == "node":
        return f"with {shortened(found.asset, 24)}"
    zone = next((each.value.zone for each in owner.sites), "UTC")
    words = (
        f"{found.price} {found.currency}{mark(found.grade, plain)} {day_of(found.bought_us, zone)}"
    )
    if found.supplier:
        words += f" from {shortened(found.supplier, 24)}"
    return words + (f", warranty to {found.warranty_until}" if found.warranty_until else "")


def _joined(now: NodeInventory) -> list[str]:
    """How the GPUs reach one another and the nearest network card, in a line each."""
    kinds = {part.slot: part.kind for part in now.parts}
    found: dict[str, dict[str, int]] = {}
    for each in now.ways:
        other = kinds.get(each.other, "part")
        links = found.setdefault(other, {})
        links[each.link] = links.get(each.link, 0) + 1
    return [
        f"GPU to {kind:<6}"
        + ", ".join(f"{many} by {link} ({WAYS[way(link)]})" for link, many in sorted(links.items()))
        for kind, links in found.items()
    ]
