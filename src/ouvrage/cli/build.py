"""``ouvrage build``: how a machine should be, taken from one that was proven to work.

Decides what proves a machine: a certificate that it passed, that has not expired and whose parts are still in it. A build
from a machine without one is refused unless its owner says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.audit_tables import need_table
from ouvrage.adapters.clock import now_us
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.names import check_name
from ouvrage.cli.booking import book
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.node_inventory import here_now, inventories, meant, root_option, state_option
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, shortened, table
from ouvrage.cli.work_words import moment
from ouvrage.health.builds import ALWAYS, SORTS, build_of
from ouvrage.health.certificates import longest_us, part_ids, standing
from ouvrage.health.parts import counted, make_of
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import payload_of, read
from ouvrage.ledger.stated import Stated
from ouvrage.ledger.view import in_force
from ouvrage.model.builds import NodeBuild
from ouvrage.model.health import NodeCertificate, NodeInventory

Build = tuple[Recorded, NodeBuild]


def builds(ledger: Ledger) -> list[Build]:
    """Every build as last stated, by name; those that were removed too."""
    found = in_force(ledger.store.records(kind=NodeBuild.KIND))
    values = [(entry, read(entry.fact)) for entry in found]
    known = [(entry, value) for entry, value in values if isinstance(value, NodeBuild)]
    return sorted(known, key=lambda each: each[1].build)


def build_named(ledger: Ledger, name: str) -> NodeBuild:
    """A build by its name. Raises ``OuvrageError`` ``build/unknown``."""
    there = {value.build: value for _, value in builds(ledger) if not value.removed}
    if name not in there:
        known = ", ".join(there) or "none: ouvrage build save NAME takes one from this machine"
        raise OuvrageError(
            "build/unknown", f"no build is called {name!r}", hint=f"there is {known}"
        )
    return there[name]


@click.group()
def build() -> None:
    """Standard builds: how a machine should be.

    \b
    ouvrage build save h100-8 --allow 'package:*'
    ouvrage node compare --build h100-8
    """


@build.command()
@click.argument("name")
@click.option("--node", metavar="NODE", help="From which machine (this one).")
@click.option(
    "--allow",
    "allowed",
    metavar="SORT:NAME",
    multiple=True,
    help=f"What may differ, * for any text; SORT is {', '.join(SORTS)}.",
)
@click.option("--unproven", is_flag=True, help="Without a certificate; --why says why.")
@click.option("--why", metavar="TEXT", default="", help="What this build is for.")
@root_option
@state_option
@json_option
def save(
    name: str,
    node: str | None,
    allowed: tuple[str, ...],
    unproven: bool,
    why: str,
    root: str | None,
    state: Path | None,
    as_json: bool,
) -> None:
    """Take a build from a proven machine: its parts, firmware, driver, kernel, packages and settings."""
    check_name("build", name, "h100-8")
    _check_allowed(allowed)
    machine, read_now = meant(node, root)
    if read_now:
        here_now(machine, root, state)
    now = now_us()
    with opened() as ledger:
        found = inventories(ledger, machine)
        if not found:
            raise OuvrageError(
                "inventory/none", f"no inventory of {machine} is on record here",
                hint="ouvrage node inventory, on that machine",
            )  # fmt: skip
        entry, there = found[-1]
        proof = proven_by(ledger, there, now)
        if proof is None and not (unproven and why.strip()):
            raise OuvrageError(
                "build/unproven", f"{machine} has no certificate that holds for the parts in it now",
                hint='ouvrage node qualify proves it; or --unproven --why "first of its kind"',
            )  # fmt: skip
        empty = NodeBuild(
            build=name, node=machine, inventory=entry.fact.key, proven_by=proof, parts=(), packages=(),
            settings=(), ways=(), untold=(), allowed=allowed, removed=False, why=why.strip(),
        )  # fmt: skip
        value = build_of(there, empty)
        booked = book(ledger, [_stated(value, now)], typed=True)
    if as_json:
        say_json({"build": name, "node": machine, "proven_by": proof, "new": booked.new == 1})
        return
    word = "replaced" if booked.corrected else "saved"
    by = "proven by its certificate" if proof else "unproven"
    say_text(
        f"{name}: {word} from {machine} ({by}): {counted(value.parts)}, "
        f"{len(value.packages)} packages, {len(value.settings)} settings.\n"
        f"Hold a machine to it: ouvrage node compare NODE --build {name}"
    )


def _check_allowed(patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        if pattern.partition(":")[0] not in SORTS or not pattern.partition(":")[2]:
            raise OuvrageError(
                "build/allow", f"{pattern!r} names nothing that may differ",
                hint=f"SORT:NAME, as package:tz*; SORT is {', '.join(SORTS)}",
            )  # fmt: skip


def _stated(value: NodeBuild, now: int) -> Stated:
    return Stated(
        natural=f"build/{value.build}", value=value, subject=f"build:{value.build}", valid_from=now,
        valid_to=None, grade=Grade.REPORTED,
    )  # fmt: skip


def proven_by(ledger: Ledger, now: NodeInventory, at_us: int) -> str | None:
    """The key of the last certificate that holds, with the parts that are there now."""
    there, untold = part_ids(now.parts), frozenset(each.name for each in now.untold)
    subject, most = f"node:{now.node}", longest_us(need_table().bounds)
    keys = [
        entry.fact.key
        for entry, value in _certificates(ledger, subject)
        if value.node == now.node and standing(value, there, at_us, untold, most).holds
    ]
    return keys[-1] if keys else None


def _certificates(ledger: Ledger, subject: str) -> Iterator[tuple[Recorded, NodeCertificate]]:
    found = in_force(ledger.store.records(kind=NodeCertificate.KIND, subject=subject))
    for entry in sorted(found, key=lambda each: each.seq):
        value = read(entry.fact)
        if isinstance(value, NodeCertificate):
            yield entry, value


@build.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Every build, from which machine it was taken, and whether that one was proven."""
    with opened() as ledger:
        found = [each for each in builds(ledger) if not each[1].removed]
    if as_json:
        say_json([_row_json(entry, value) for entry, value in found])
        return
    rows = [
        (
            value.build,
            value.node,
            moment(entry.fact.valid_from)[:10],
            "yes" if value.proven_by else "no",
            counted(value.parts),
            shortened(value.why, 60),
        )
        for entry, value in found
    ]
    many = f"{len(rows)} build{'' if len(rows) == 1 else 's'}"
    head = ("build", "from", "on", "proven", "of", "why")
    body = f"\n\n{table(head, rows, '<<<<<<')}\n" if rows else ""
    say_text(f"{many}{body}\nAnother: ouvrage build save NAME")


def _row_json(entry: Recorded, value: NodeBuild) -> dict[str, Any]:
    return {
        "build": value.build,
        "node": value.node,
        "saved_us": entry.fact.valid_from,
        "proven_by": value.proven_by,
        "parts": counted(value.parts),
        "allowed": list(value.allowed),
        "why": value.why,
        "key": entry.fact.key,
    }


@build.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """What a build holds a machine to, and what it lets differ."""
    with opened() as ledger:
        value = build_named(ledger, name)
    if as_json:
        say_json(json.loads(payload_of(value)))
        return
    rows = [
        (
            part.kind,
            shortened(part.slot, 30),
            shortened(make_of(part) or "–", 60),
            shortened(part.version or "–", 36),
        )
        for part in value.parts
    ]
    lines = [
        f"{name}: {counted(value.parts)}, {len(value.packages)} packages, as {value.node} had them",
        "",
        table(("kind", "place", "what", "version"), rows, "<<<<") if rows else "no part was told",
        "",
        *(f"setting      {each.name} = {shortened(each.value, 100)}" for each in value.settings),
        *(
            f"not told     {each.name}: nothing can be held to the build there"
            for each in value.untold
        ),
        f"may differ   {ALWAYS}{''.join(f', {each}' for each in value.allowed)}",
        f"more         --json holds the packages; ouvrage node compare NODE --build {name}",
    ]
    say_text("\n".join(lines))


@build.command()
@click.argument("name")
@click.option("--why", metavar="TEXT", required=True, help="Why it is not used any more.")
@json_option
def remove(name: str, why: str, as_json: bool) -> None:
    """A build that is not to be used any more; what was compared with it stays on record."""
    from dataclasses import replace

    with opened() as ledger:
        value = replace(build_named(ledger, name), removed=True, why=why)
        book(ledger, [_stated(value, now_us())], typed=True)
    if as_json:
        say_json({"build": name, "result": "removed"})
    else:
        say_text(f"{name}: removed.\nThose that there are: ouvrage build list")
