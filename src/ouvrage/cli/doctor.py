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


@click.command()
@click.option(
    "--isolation", is_flag=True, help="Try to break out of a sandbox, in every way we know."
)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="The agent's directory: keep the result for it.",
)
@json_option
@plain_option
def doctor(isolation: bool, state: Path | None, as_json: bool, plain: bool) -> int:
    """Find out whether this machine can keep strangers' work apart, by trying it."""
    if not isolation:
        raise OuvrageError(
            "doctor/what", "nothing to look at was named", hint="ouvrage doctor --isolation"
        )
    from ouvrage.agent.isolation import examine, keep

    findings = examine()
    if state is not None:
        keep(state, findings)
        wrote()
    held = all(each.holds for each in findings)
    if as_json:
        say_json({"holds": held, "findings": [asdict(each) for each in findings]})
    else:
        say_text(_text(findings, plain))
    return 0 if held else 1


def _text(findings: Sequence[Finding], plain: bool) -> str:
    broken = [each for each in findings if not each.holds]
    rows = [
        (_mark(each, plain), each.name, each.what, shortened(each.found, _WIDTH))
        for each in findings
    ]
    lines = [_answer(findings, broken), "", table(("", "check", "", "found"), rows, "<<<<")]
    for each in broken:
        lines += ["", f"{each.name}: found {shortened(each.found, 400)}"]
        lines += [f"  expected: {each.expected}", f"  hint: {each.hint}"]
    last = "Keep it for the agent: ouvrage doctor --isolation --state DIR"
    return "\n".join([*lines, "", last])


def _answer(findings: Sequence[Finding], broken: Sequence[Finding]) -> str:
    if not broken:
        return f"A sandbox holds on this machine: {len(findings)} checks, and nothing got out."
    names = ", ".join(each.name for each in broken)
    return f"Do not run strangers' work here: {len(broken)} of {len(findings)} checks do not hold ({names})."


def _mark(each: Finding, plain: bool) -> str:
    if plain:
        return "holds" if each.holds else "broken"
    return "✓" if each.holds else "✗"
