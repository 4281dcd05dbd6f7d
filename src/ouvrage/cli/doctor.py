"""``ouvrage doctor --isolation``: does a sandbox hold on this machine? It is tried out.

Decides only how the findings are shown. Exit code 1 where one does not hold; with ``--state`` what was
found is kept for the agent that works there, which then offers strangers no more than was proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, shortened, table, wrote

if TYPE_CHECKING:
    from ouvrage.agent.isolation import Finding

_WIDTH = 60
_NEXT = "Keep it for the agent: ouvrage doctor --isolation --state DIR"


@click.command()
@click.option(
    "--isolation", is_flag=True, help="Try to break out of a sandbox, in every way we know."
)
@click.option("--podman", is_flag=True, help="Try containers as well (a minute).")
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="The agent's directory: keep the result for it.",
)
@json_option
@plain_option
def doctor(isolation: bool, podman: bool, state: Path | None, as_json: bool, plain: bool) -> int:
    """Find out whether this machine can keep strangers' work apart, by trying it."""
    if not isolation:
        raise OuvrageError(
            "doctor/what", "nothing to look at was named", hint="ouvrage doctor --isolation"
        )
    from ouvrage.agent.isolation import examine, keep

    found = {name: examine(name) for name in ("sandbox", *(["podman"] if podman else []))}
    if state is not None:
        keep(state, found)
        wrote()
    held = all(each.holds for checks in found.values() for each in checks)
    if as_json:
        shown = {name: [asdict(each) for each in checks] for name, checks in found.items()}
        say_json({"holds": held, "findings": shown})
    else:
        texts = [_text(name, checks, plain) for name, checks in found.items()]
        say_text("\n\n".join([*texts, _NEXT]))
    return 0 if held else 1


def _text(name: str, findings: Sequence[Finding], plain: bool) -> str:
    broken = [each for each in findings if not each.holds]
    rows = [
        (_mark(each, plain), each.name, each.what, shortened(each.found, _WIDTH))
        for each in findings
    ]
    lines = [_answer(name, findings, broken), "", table(("", "check", "", "found"), rows, "<<<<")]
    for each in broken:
        lines += ["", f"{each.name}: found {shortened(each.found, 400)}"]
        lines += [f"  expected: {each.expected}", f"  hint: {each.hint}"]
    return "\n".join(lines)


def _answer(name: str, findings: Sequence[Finding], broken: Sequence[Finding]) -> str:
    what = {"sandbox": "A sandbox holds", "podman": "A container holds"}[name]
    if not broken:
        return f"{what} on this machine: {len(findings)} checks, and nothing got out."
    names = ", ".join(each.name for each in broken)
    return f"Do not run strangers' work here: {len(broken)} of {len(findings)} checks do not hold ({names})."


def _mark(each: Finding, plain: bool) -> str:
    if plain:
        return "holds" if each.holds else "broken"
    return "✓" if each.holds else "✗"
