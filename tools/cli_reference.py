"""Write ``docs/reference/cli.md`` from what ``--help`` prints.

The page is made of the very text that a person sees, at a width of 100 columns. It is asked of the
command's own entry in this process, because a new interpreter for each verb took over a minute. The
list of verbs comes from the command itself, so none can be forgotten.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stdout

import click
from generated import keep

from ouvrage.__main__ import main as ouvrage
from ouvrage.cli.main import root

HEAD = """\
<!-- Generated from `ouvrage --help` by tools/cli_reference.py; do not edit. -->

# Commands

Every verb takes `--help`. Exit codes: 0 done, 1 a law or check failed, 2 usage or input; `ouvrage
run` ends as the command that it metered ended: with its exit code, or by the same signal.
"""


def main() -> int:
    """Write or compare the page."""
    paths: list[tuple[str, ...]] = [()]
    paths += _paths(root, click.Context(root), ())
    sections = [_section(path) for path in paths]
    return keep("docs/reference/cli.md", "\n\n".join([HEAD.rstrip(), *sections]))


def _paths(
    group: click.Group, context: click.Context, above: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Every verb and sub-verb, in the order in which the command lists them."""
    found: list[tuple[str, ...]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        found.append((*above, name))
        if isinstance(command, click.Group):
            found += _paths(command, context, (*above, name))
    return found


def _section(path: tuple[str, ...]) -> str:
    words = " ".join(("ouvrage", *path))
    lines = "\n".join(line.rstrip() for line in help_of(path).strip().splitlines())
    return f"## `{words}`\n\n```text\n{lines}\n```"


def help_of(path: tuple[str, ...]) -> str:
    """What ``ouvrage PATH --help`` prints; ``ValueError`` when it does not end with 0."""
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    said = io.StringIO()
    with redirect_stdout(said):
        try:
            code = ouvrage([*path, "--help"])
        except SystemExit as stop:
            code = stop.code
    if code:
        raise ValueError(f"ouvrage {' '.join(path)} --help ended with {code}")
    return said.getvalue()


if __name__ == "__main__":
    sys.exit(main())
