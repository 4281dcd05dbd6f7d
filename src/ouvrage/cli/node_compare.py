"""``ouvrage node compare``: in what is this machine not the standard build?

Decides only how it is asked and said. The exit code is the verdict, as with ``ouvrage check``, so that a provisioning script
needs one line: 0 as built, 1 versions, settings or places differ, 2 a part is missing or another one, 3 it cannot be told.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.toml_text import read_text
from ouvrage.agent.parts import inventory_now
from ouvrage.base.grades import Grade
from ouvrage.cli.build import build_named
from ouvrage.cli.check import Check
from ouvrage.cli.ledger import opened
from ouvrage.cli.node_inventory import meant, on_record, root_option, roots_of
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, shortened, table
from ouvrage.health.builds import ALWAYS, Deviation, Held, build_result, held_to_build
from ouvrage.model.builds import NodeBuild
from ouvrage.model.health import CRITICAL, OK, VERDICTS, NodeInventory
from ouvrage.pricing.words import mark

_SHOWN = 40


@click.command("compare", cls=Check)
@click.argument("node", required=False)
@click.option("--build", "name", metavar="NAME", required=True, help="ouvrage build list.")
@click.option(
    "--allow",
    "allowed",
    metavar="SORT:NAME",
    multiple=True,
    help="What may differ this once: 'package:*'.",
)
@root_option
@click.option(
    "--topology",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A saved table of nvidia-smi topo -m, with --root.",
)
@json_option
@plain_option
def compare(
    node: str | None,
    name: str,
    allowed: tuple[str, ...],
    root: str | None,
    topology: Path | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Each thing in which a machine is not the build: parts, firmware, driver, kernel, packages, settings.

    \b
    Exit code: 0 as built; 1 versions, packages, settings or places differ; 2 a part is missing or
    another one; 3 something cannot be told, and every error of the command's own.

    Nothing is recorded.
    """  # fmt: skip
    machine, read_now = meant(node, root)
    with opened() as ledger:
        build = build_named(ledger, name)
    if read_now:
        text = None if topology is None else read_text(topology, "inventory")
        now = inventory_now(machine, roots_of(root), topology=text)
    else:
        now = on_record(machine)[1]
    held = held_to_build(build, now, allowed)
    grade = Grade.REPORTED if root else Grade.MEASURED
    if as_json:
        say_json(_as_json(build, now, held, allowed, grade))
    else:
        say_text(_words(build, now, held, allowed, mark(grade, plain)))
    return VERDICTS.index(held.verdict)


def _row(each: Deviation) -> dict[str, Any]:
    names = ("sort", "name", "wanted", "found", "verdict")
    return {**{name: getattr(each, name) for name in names}, "words": each.words}


def _as_json(
    build: NodeBuild, now: NodeInventory, held: Held, allowed: tuple[str, ...], grade: Grade
) -> dict[str, Any]:
    result = build_result(build.build, held)
    return {
        "verdict": result.verdict,
        "action": result.action,
        "evidence": [{"name": each.name, "value": each.value} for each in result.evidence],
        "node": now.node,
        "build": build.build,
        "grade": grade.word,
        "deviations": [_row(each) for each in held.deviations],
        "allowed": [_row(each) for each in held.allowed],
        "may_differ": [*ALWAYS.split(", "), *build.allowed, *allowed],
    }


def _words(
    build: NodeBuild, now: NodeInventory, held: Held, allowed: tuple[str, ...], grade: str
) -> str:
    many = len(held.deviations)
    lines = [f"{held.verdict}{grade} {_first(build, now, held)}"]
    if many:
        rows = [
            (
                each.verdict,
                each.sort,
                shortened(each.name, 40),
                shortened(each.wanted or "–", 44),
                shortened(each.found or "–", 44),
            )
            for each in held.deviations[:_SHOWN]
        ]
        head = ("verdict", "of", "which", f"build {build.build}", now.node)
        lines += ["", table(head, rows, "<<<<<")]
        if many > _SHOWN:
            lines.append(f"and {many - _SHOWN} more: --json")
    patterns = "".join(f", {each}" for each in (*build.allowed, *allowed))
    passed = f" ({len(held.allowed)} found)" if held.allowed else ""
    lines += ["", f"may differ   {ALWAYS}{patterns}{passed}"]
    if not build.proven_by:
        lines.append(f"unproven     {build.build} was saved without a certificate")
    lines.append(f"more         --json; what the build holds: ouvrage build show {build.build}")
    return "\n".join(lines)


def _first(build: NodeBuild, now: NodeInventory, held: Held) -> str:
    if held.verdict == OK:
        return f"{now.node} is as build {build.build}"
    many = len(held.deviations)
    grave = sum(each.verdict == CRITICAL for each in held.deviations)
    parts = f", {grave} of them parts" if grave else ""
    return f"{now.node} deviates from build {build.build} in {many} thing{'' if many == 1 else 's'}{parts}"
