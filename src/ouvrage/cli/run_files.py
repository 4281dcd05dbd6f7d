"""``ouvrage run``: its help, and a run as a file that travels to another ledger.

The metering itself is ``ouvrage.meter``; it is reached before this module is imported, so that it
stays small. ``run export``, ``run push`` and ``run import`` need the store and live here.
"""

from __future__ import annotations

from pathlib import Path

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.ids import code_of
from ouvrage.cli.ledger import known_runs, opened
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_bytes, say_json, say_text, write_file
from ouvrage.store.drop import drop
from ouvrage.store.exchange import Imported, export_run, import_run
from ouvrage.store.samples import read_sealed


class RunGroup(click.Group):
    """Metering a command, with a few verbs beside it whose names no command should have."""

    def get_help(self, ctx: click.Context) -> str:
        """The meter's own help, then the verbs about files."""
        from ouvrage.meter.command import parser

        formatter = ctx.make_formatter()
        self.format_commands(ctx, formatter)
        return f"{parser().format_help().rstrip()}\n\n{formatter.getvalue().rstrip()}"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave everything but the verbs and ``--help`` to the meter."""
        if not args or args[0] in (*self.commands, "--help"):
            return super().parse_args(ctx, args or ["--help"])
        from ouvrage.meter.command import main as meter

        raise click.exceptions.Exit(meter(args))


@click.group(cls=RunGroup)
def run() -> None:
    """Meter a command: what did a finished unit of it cost?"""


@run.command("export")
@click.argument("name", metavar="RUN")
@click.argument("file", required=False, type=click.Path(dir_okay=False, allow_dash=True))
@json_option
def export(name: str, file: str | None, as_json: bool) -> None:
    """Write RUN, with its raw samples, into FILE (`-`: standard output).

    Rented machines are deleted; the file carries the run into another home: ouvrage run import.
    """
    with opened() as ledger:
        (found,) = known_runs(ledger, [name], None)
        samples = read_sealed(ledger.home, found)
        content = export_run(ledger.store.records(subject=found), samples)
    if file == "-":
        say_bytes(content)
        return
    path = Path(file or f"{code_of(found)}.ouvrage")
    write_file(path, content)
    if as_json:
        say_json({"run": found, "code": code_of(found), "file": str(path), "bytes": len(content)})
    else:
        say_text(f"{code_of(found)} is in {path}; elsewhere: ouvrage run import {path}")


@run.command("push")
@click.argument("name", metavar="RUN")
@click.option(
    "--to",
    "target",
    metavar="WHERE",
    help="A server, https://HOST:PORT; or a directory that the receiver empties. Else the server signed in to.",
)
@click.option(
    "--project", metavar="NAME", help="The project of a new run on the server; else main."
)
@json_option
def push(name: str, target: str | None, project: str | None, as_json: bool) -> None:
    """Send RUN, with its raw samples, to a server, or put it into a directory from which others import it.

    Pushing it again changes nothing, so an interrupted push is simply done again.
    """  # fmt: skip
    if target is not None and "://" not in target:
        _drop(name, Path(target), project, as_json)
        return
    from ouvrage.cli.pushing import push_run

    raise click.exceptions.Exit(push_run(name, target, project, as_json=as_json))


def _drop(name: str, target: Path, project: str | None, as_json: bool) -> None:
    if project is not None:
        raise OuvrageError(
            "push/project", "a directory knows no projects", hint="leave --project out"
        )
    with opened() as ledger:
        (found,) = known_runs(ledger, [name], None)
        samples = read_sealed(ledger.home, found)
        content = export_run(ledger.store.records(subject=found), samples)
    dropped = drop(found, content, target)
    if as_json:
        result = "accepted" if dropped.new else "exists"
        say_json(
            {"run": found, "code": code_of(found), "file": str(dropped.path), "result": result}
        )
    elif dropped.new:
        say_text(f"{code_of(found)} is in {dropped.path}; there: ouvrage run import FILE")
    else:
        say_text(f"{code_of(found)} was there already, as {dropped.path}; nothing was changed.")


@run.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def import_(file: Path, as_json: bool) -> int:
    """Record the run in FILE here; doing it again changes nothing."""
    with opened() as ledger:
        done = import_run(
            file.read_bytes(),
            ledger.store,
            ledger.home,
            now_us=now_us(),
            own_source=source_id(ledger.home),
        )
    counts = {result: done.count(result) for result in ("accepted", "exists", "conflict")}
    code = code_of(done.run)
    if as_json:
        say_json({"run": done.run, "code": code, "samples": done.samples, **counts})
    elif counts["conflict"]:
        say_text(_conflicts(code, done), err=True)
    elif counts["accepted"]:
        say_text(f"Imported {code}: {counts['accepted']} facts.  Next: ouvrage report {code}")
    else:
        say_text(f"{code} is here already; nothing was changed.")
    return 1 if counts["conflict"] else 0


def _conflicts(code: str, done: Imported) -> str:
    refused = [outcome for outcome in done.outcomes if outcome.result == "conflict"]
    lines = [f"error[run/conflict]: {len(refused)} facts about {code} differ from those held here"]
    lines += [f"  {outcome.key}   {outcome.field}" for outcome in refused[:3]]
    return "\n".join([*lines, "  hint: what was here stands; each conflict is recorded"])
