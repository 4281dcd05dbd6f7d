"""``ouvrage fleet hooks``: health checks for a cluster's prolog, epilog and monitor, offered as a diff.

Decides that nothing is ever applied, that whatever ran there before runs first and its word counts, that only CRITICAL keeps work
away from a node (an error of our own never does), and that a node which somebody drained keeps their reason.
"""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

import click

from ouvrage.adapters.slurm import Here, Question
from ouvrage.adapters.slurm_conf import SlurmConf, read_conf
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.cli.import_told import counted, read_bytes
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.fleet.hooks import HOOKS, hook

WHERE = "/etc/slurm/ouvrage"
_BESIDE = {"HealthCheckInterval": "300", "HealthCheckNodeState": "ANY,CYCLE"}
_DEFAULT = "/etc/slurm/slurm.conf"
_SHOWS = Question(
    name="slurm.conf", words=("sh", "-c", f'cat "${{SLURM_CONF:-{_DEFAULT}}}"'), needed=True
)


@click.command()
@click.argument("conf", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@click.option("--ssh", metavar="HOST", help="Read slurm.conf on a login node, reached by your ssh.")
@click.option("--diff", is_flag=True, help="Print the diff and nothing else, for patch -p1 -d /.")
@json_option
def hooks(conf: Path | None, ssh: str | None, diff: bool, as_json: bool) -> int:
    """Health checks for prolog, epilog and monitor, as a diff; nothing is changed.

    FILE is the slurm.conf ($SLURM_CONF, else /etc/slurm/slurm.conf). What runs there now runs on, before ours. Only a
    CRITICAL node is kept from work.
    """
    if conf is not None and ssh is not None:
        raise OuvrageError("fleet/which", "one place is read", hint="--ssh HOST, or a FILE")
    path = str(conf or os.environ.get("SLURM_CONF") or _DEFAULT)
    found = read_conf(_text(conf, path, ssh), path)
    if found.faults:
        raise OuvrageError(
            "fleet/conf", f"{path} has {counted(len(found.faults), 'line')} that cannot be read, so no diff of it is made",
            where=tuple(each.line for each in found.faults[:20]), hint="slurmctld would refuse it too: mend these lines first",
        )  # fmt: skip
    files, values = offered(found)
    changed = found.changed(values)
    lines = [
        *_diff(path, found.text, changed),
        *(line for name, text in files.items() for line in _diff(name, "", text)),
    ]
    if as_json:
        say_json(
            {
                "file": path,
                "settings": values,
                "slurm.conf": changed,
                "files": files,
                "includes": list(found.includes),
            }
        )
    elif diff:
        say_text("\n".join(lines))
    else:
        say_text(
            "\n".join(
                [
                    _first(path, values),
                    *_notes(found),
                    "",
                    *map(safe, lines),
                    "",
                    _last(path, values),
                ]
            )
        )
    return 0


def _text(conf: Path | None, path: str, ssh: str | None) -> str:
    if ssh is None:
        return (
            read_bytes(conf or Path(path))
            .decode("utf-8", "surrogateescape")
            .encode("utf-8", "replace")
            .decode()
        )
    answer = Here(ssh).answer(_SHOWS, 0)
    if answer.why is not None:
        raise OuvrageError(
            "fleet/no-answer",
            f"{ssh} does not show its slurm.conf: {answer.why}",
            hint="name a copy of it: ouvrage fleet hooks FILE",
        )
    return answer.data.decode("utf-8", "replace")


def offered(conf: SlurmConf) -> tuple[dict[str, str], dict[str, str]]:
    """The files that would be there, and the settings that would be changed; both empty where ours stand already."""
    files: dict[str, str] = {}
    values: dict[str, str] = {}
    for setting, name in HOOKS.items():
        before, ours = conf.value(setting), f"{WHERE}/{name}"
        if before == ours:
            continue
        values[setting] = ours
        files[ours] = hook(name, before)
    if "HealthCheckProgram" in values:
        values.update(
            {name: value for name, value in _BESIDE.items() if conf.value(name) in (None, "0")}
        )
    return files, values


def _diff(name: str, before: str, after: str) -> list[str]:
    if before == after:
        return []
    old = f"a{name}" if before else "/dev/null"
    return [
        line.rstrip("\n")
        for line in unified_diff(
            before.splitlines(), after.splitlines(), old, f"b{name}", lineterm=""
        )
    ]


def _first(path: str, values: dict[str, str]) -> str:
    if not values:
        return f"The hooks stand in {path} already; nothing would change."
    names = ", ".join(name for name in values if name in HOOKS)
    return f"{names} would ask `ouvrage check`; nothing was changed."


def _notes(conf: SlurmConf) -> list[str]:
    notes = [
        f"  {name}={conf.value(name)} runs first, and its word counts"
        for name in HOOKS
        if _others(conf, name)
    ]
    return [
        *notes,
        *(
            f"  what {each} sets is not seen: look there for Prolog, Epilog, HealthCheckProgram"
            for each in conf.includes
        ),
    ]


def _others(conf: SlurmConf, name: str) -> bool:
    return conf.value(name) not in (None, f"{WHERE}/{HOOKS[name]}")


def _last(path: str, values: dict[str, str]) -> str:
    if not values:
        return "What it checks: ouvrage check all"
    return f"Yours to apply, on every node: ouvrage fleet hooks {path} --diff | patch -p1 -d / && chmod 755 {WHERE}/*; then scontrol reconfigure"
