"""``ouvrage job``: submit work, watch it, end it, ask why it waits.

Decides how a job is put together from a file and flags (which say the same things) and how it is printed. Following a log is
``cli/job_log.py``. Each verb is one request under ``/v1/jobs``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.yaml_text import read_yaml
from ouvrage.base.time import utc_text
from ouvrage.cli.job_estimate import estimate
from ouvrage.cli.job_files import fetch_outputs, local_inputs, send_inputs
from ouvrage.cli.job_log import follow
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, shortened, table, wrote
from ouvrage.cli.service_words import service_lines
from ouvrage.cli.talking import talk
from ouvrage.cli.work_words import counted, lasted, moment, ran_us, units
from ouvrage.model.work import JOB_STATES
from ouvrage.placement.spec import FIELDS, Field, FieldError, from_flags, job_spec, merged

_HEAD = ("job", "name", "state", "under", "submitted (UTC)", "ran", "done so far", "")


@click.group()
def job() -> None:
    """Jobs: work that runs here in a sandbox.

    \b
    ouvrage job submit --offer standard -- python train.py --epochs 3
    ouvrage job logs -f last
    """


job.add_command(estimate)


def _flags(verb: Any) -> Any:
    """An option for each field of a job file."""
    for field in reversed([each for each in FIELDS if each.name != "command"]):
        verb = click.option(field.flag, field.name, **_option(field))(verb)
    return verb


def _option(field: Field) -> dict[str, Any]:
    shown = f"{field.words} ({field.shown})"
    if field.default is False:
        return {"is_flag": True, "default": None, "help": shown}
    return {"multiple": field.many, "metavar": "NAME=VALUE" if field.many else "…", "help": shown}


@job.command(context_settings={"ignore_unknown_options": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--file",
    "-f",
    "file",
    metavar="JOB.yaml",
    type=click.Path(path_type=Path),
    help="A job file; flags add to it.",
)
@click.option("--offer", metavar="NAME", help="Run under this offer: a lease for each attempt.")
@click.option("--lease", metavar="LEASE", help="Run in a lease of your own.")
@click.option("--project", metavar="NAME", default="main", help="Whose work it is (main).")
@click.option(
    "--follow", is_flag=True, help="Show its log until it ends; its exit code is the job's."
)
@_flags
@json_option
@click.pass_context
def submit(
    ctx: click.Context,
    command: tuple[str, ...],
    file: Path | None,
    offer: str | None,
    lease: str | None,
    project: str,
    follow: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Submit COMMAND, or what a job file says, to an offer or into a lease.

    Files named as inputs are sent along; what is refused is refused before anything is sent.
    """
    data, base = _from_file(file)
    if command:
        flags["command"] = list(command)
    data = merged(data, from_flags(flags))
    inputs = local_inputs(data, base)
    job_spec(data)  # what the server would refuse whatever the offer, with the line of the file
    body = {"project": project, "offer": offer, "lease": lease, "spec": data}
    with talk() as server:
        made = server.post("/v1/jobs", _plain(body))
        wrote()
        send_inputs(server, made["job"], inputs)
        if follow:
            say_text(_submitted(made), err=True)
            ctx.exit(_followed(server, made["job"]))
    _said(
        made,
        f"{_submitted(made)}\nWatch it: ouvrage job logs -f {made['code']}      Why it waits: ouvrage job explain {made['code']}",
        as_json,
    )


def _from_file(file: Path | None) -> tuple[dict[str, Any], Path]:
    if file is None:
        return {}, Path()
    data, located = read_yaml(file, "job")
    job_spec(data, located)
    return dict(data), file.parent


def _plain(value: Any) -> Any:
    """Decimals of a file as texts, which the job file's readers take too."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _submitted(made: Any) -> str:
    where = f"to {made['offer_name']}" if made["offer_name"] else "into its lease"
    return f"Job {made['code']} ({made['name']}) is submitted {where}."


def _followed(server: Any, name: str) -> int:
    """Follow a job to its end; 0 where it is done, else 1."""
    ended = follow(server, name)
    say_text(_ended(ended), err=True)
    return 0 if ended["state"] == "done" else 1


def _ended(found: Any) -> str:
    ran = lasted(ran_us(found["last"], now_us()))
    return f"Job {found['code']} is {found['state']} after {ran}: {found['reason'] or ''}".rstrip(
        ": "
    )


@job.command("list")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(JOB_STATES), help="Those in this state."
)
@click.option("--project", metavar="NAME", help="Those of one project.")
@click.option("--all", "all_", is_flag=True, help="Every one there ever was; else the latest 50.")
@json_option
def list_(states: tuple[str, ...], project: str | None, all_: bool, as_json: bool) -> None:
    """Jobs that you may see, newest first."""
    query: dict[str, Any] = {"state": list(states) or None, "project": project}
    with talk() as server:
        if all_:
            found = list(server.every("/v1/jobs", **query))
        else:
            found = server.get("/v1/jobs", limit=50, **query)["items"]
    if as_json:
        say_json(found)
        return
    now = now_us()
    rows = [_row(each, now) for each in found]
    body = f"\n\n{table(_HEAD, rows, '<<<<<><<')}" if rows else ""
    say_text(f"{counted(len(found), 'job')}{_states(found)}{body}")
    say_text("One of them: ouvrage job show JOB      Why it waits: ouvrage job explain JOB")


def _states(found: list[Any]) -> str:
    order = [state for state in JOB_STATES if any(each["state"] == state for each in found)]
    parts = [f"{sum(1 for e in found if e['state'] == s)} {s}" for s in order]
    return f": {', '.join(parts)}" if parts else ""


def _row(each: Any, now: int) -> list[str]:
    return [
        each["code"],
        shortened(each["name"], 24),
        each["state"],
        each["offer_name"] or "a lease",
        moment(each["submitted_us"])[:16],
        lasted(ran_us(each["last"], now)),
        units(each["last"]),
        shortened(each["reason"] or "", 40) if each["state"] != "done" else "",
    ]


@job.command()
@click.argument("name", metavar="JOB")
@json_option
def show(name: str, as_json: bool) -> None:
    """One job by name (the newest), code or id; `last` is the newest of all."""
    with talk() as server:
        found = server.get(f"/v1/jobs/{_meant(server, name)}")
    now = now_us()
    lines = [_ended(found) if found["ended_us"] else _standing(found, now)]
    lines += [
        f"  command    {shortened(' '.join(found['spec']['command']), 70)}",
        f"  under      {found['offer_name'] or 'lease ' + str(found['lease'])}, for {found['project_name']}",
        f"  submitted  {moment(found['submitted_us'])}",
        *service_lines(found),
    ]
    lines += [
        f"  attempt {each['number']}  {_attempt(each, now)}" for each in found["all_attempts"]
    ]
    lines += [
        f"  file       {each['name']} ({each['direction']}, {each['bytes']} bytes)"
        for each in found["files"]
    ]
    _said(found, "\n".join([*lines, f"Its log: ouvrage job logs {found['code']}"]), as_json)


def _standing(found: Any, now: int) -> str:
    done = units(found["last"])
    ran = ran_us(found["last"], now)
    words = f" for {lasted(ran)}" if ran is not None else ""
    return f"Job {found['code']} ({found['name']}) is {found['state']}{words}" + (
        f", {done}" if done else ""
    )


def _attempt(each: Any, now: int) -> str:
    ran = lasted(ran_us(each, now))
    if each["outcome"] is None:
        idle = (
            f", its GPUs idle for {lasted(each['idle_us'])}: paid for" if each["warned_us"] else ""
        )
        stop = f", to stop: {each['stop']}" if each["stop"] else ""
        return f"{each['state']}, {ran}{idle}{stop}"
    code = f", exit {each['exit_code']}" if each["exit_code"] is not None else ""
    code += f", signal {each['signal']}" if each["signal"] is not None else ""
    return f"{each['outcome']} after {ran}{code}: {each['reason']} {_used(each['used'])}".rstrip()


def _used(used: Any) -> str:
    if not used or used["memory_bytes"] is None:
        return ""
    return f"(peak memory {used['memory_bytes'] // 2**20} MiB)"


@job.command()
@click.argument("name", metavar="JOB")
@click.option("-f", "--follow", "follow_", is_flag=True, help="As it grows, until the job ends.")
@click.option(
    "--attempt", type=click.IntRange(1), metavar="N", help="Of this attempt; else the last."
)
def logs(name: str, follow_: bool, attempt: int | None) -> None:
    """What a job said: its output and errors, byte for byte."""
    from ouvrage.cli.job_log import show_log

    with talk() as server:
        meant = _meant(server, name)
        if follow_:
            say_text(_ended(follow(server, meant, attempt=attempt)), err=True)
        else:
            show_log(server, meant, attempt)


@job.command()
@click.argument("name", metavar="JOB")
@click.option("--why", metavar="TEXT", default="", help="Told with the job's end.")
@json_option
def cancel(name: str, why: str, as_json: bool) -> None:
    """End a job: at once where it waits, after its grace where it runs."""
    with talk() as server:
        found = server.post(f"/v1/jobs/{_meant(server, name)}/cancel", {"why": why})
    wrote()
    words = (
        f"Job {found['code']} is {found['state']}: {found['reason']}"
        if found["ended_us"]
        else f"Job {found['code']} is told to stop; it ends within its grace."
    )
    _said(found, words, as_json)


@job.command()
@click.argument("name", metavar="JOB")
@json_option
def retry(name: str, as_json: bool) -> None:
    """Submit a job that has ended once more, as a new job."""
    with talk() as server:
        made = server.post(f"/v1/jobs/{_meant(server, name)}/retry")
    wrote()
    _said(made, f"{_submitted(made)}\nWatch it: ouvrage job logs -f {made['code']}", as_json)


@job.command()
@click.argument("name", metavar="JOB")
@json_option
def explain(name: str, as_json: bool) -> None:
    """Why a job waits, was refused, or ended as it did."""
    with talk() as server:
        found = server.get(f"/v1/jobs/{_meant(server, name)}/explain")
    lines = [f"It {found['words']}." if found["words"][0].islower() else f"{found['words']}."]
    lines[0] = lines[0].replace("It it ", "It ")
    ahead = found["detail"].get("ahead")
    lines += [f"  ahead of it  {ahead} in the queue"] if ahead else []
    by = found["detail"].get("by")
    lines += [f"  at latest    {utc_text(by)[:19]}Z"] if by else []
    _said(found, "\n".join([*lines, f"  code         {found['code']}"]), as_json)


@job.command()
@click.argument("name", metavar="JOB")
@click.option(
    "--to",
    "target",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to put them (here).",
)
@json_option
def fetch(name: str, target: Path, as_json: bool) -> None:
    """Bring the files that a job left."""
    with talk() as server:
        found = fetch_outputs(server, _meant(server, name), target)
    words = "\n".join(str(path) for path in found) or "It left no files."
    _said([str(path) for path in found], words, as_json)


def _meant(server: Any, name: str) -> str:
    """``last`` is the newest job there is to see."""
    if name != "last":
        return name
    newest = server.get("/v1/jobs", limit=1)["items"]
    if not newest:
        raise FieldError(
            "JOB", "last", "a job, and there is none", hint="ouvrage job submit --help"
        )
    return newest[0]["job"]


def _said(found: Any, words: str, as_json: bool) -> None:
    if as_json:
        say_json(found)
    else:
        say_text(words)
