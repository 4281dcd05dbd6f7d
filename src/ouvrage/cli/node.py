"""``ouvrage node``: the platform's machines, for those who keep them running.

Decides only how they are asked for and printed. Each verb is one request under ``/v1/nodes``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.base.time import MINUTE
from ouvrage.cli.agent import state_meant, state_option
from ouvrage.cli.node_verbs import NodeVerbs
from ouvrage.cli.node_watch import seen_in, seen_json, seen_words, verify, watch
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.cli.talking import talk
from ouvrage.cli.work_words import counted, lasted, moment, size

_HEAD = ("node", "state", "GPUs", "cores free", "memory free", "jobs", "leases", "health", "")


@click.group(cls=NodeVerbs)
def node() -> None:
    """Nodes: machines on which this platform runs work.

    \b
    ouvrage node enrol        gives a one-time token for another machine's runner
    ouvrage node list
    ouvrage node audit        is the machine you are on safe enough for strangers' work?
    ouvrage node qualify      can it do what a class of work needs, for as long as it takes?
    ouvrage node watch        this machine's health, without any server
    """


node.add_command(watch)
node.add_command(verify)


@node.command(
    "check",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
)
@click.pass_context
def check_(ctx: click.Context) -> int:
    """Look at this machine now: `ouvrage check all`, with its options and exit codes."""
    from ouvrage.cli.check import check

    return check.main(["all", *ctx.args], "ouvrage node check", standalone_mode=False)


@node.command()
@click.option("--again", metavar="NODE", help="For a node that lost its key.")
@json_option
def enrol(again: str | None, as_json: bool) -> None:
    """A one-time token with which one machine's runner joins."""
    with talk() as server:
        made = server.post("/v1/nodes/enrolments", {"node": again})
    wrote()
    minutes = max(0, made["expires_us"] - now_us()) // MINUTE
    _said(
        made,
        f"{made['secret']}    (shown this once, good for {minutes} min and one machine)\n"
        "On that machine, from a file that only you can read:\n"
        "  ouvrage agent run --state DIR --server URL --enrol-file FILE",
        as_json,
    )


@node.command("list")
@json_option
def list_(as_json: bool) -> None:
    """All nodes, and what is free on them."""
    with talk() as server:
        found = list(server.every("/v1/nodes"))
    if as_json:
        say_json(found)
        return
    rows = [
        [
            each["name"],
            each["state"],
            _gpus(each),
            f"{each['cpus_free']} of {each['cpus']}",
            f"{size(each['memory_free_mib'])} of {size(each['memory_mib'])}",
            str(each["attempts"]),
            str(each["leases"]),
            each["health"].replace("_", " "),
            _withheld(each),
        ]
        for each in found
    ]
    here = sum(1 for each in found if each["state"] == "here")
    body = f"\n\n{table(_HEAD, rows, '<<>>>>><<')}" if rows else ""
    say_text(f"{counted(len(found), 'node')}, {here} here now{body}")
    say_text("One of them: ouvrage node show NAME      Another: ouvrage node enrol")


def _gpus(each: Any) -> str:
    free = sum(1 for d in each["devices"] if d["lease"] is None and not d["fenced"])
    return f"{free} of {len(each['devices'])} free" if each["devices"] else "none"


def _withheld(each: Any) -> str:
    words = [] if each["listed"] else [f"unlisted, {_empty(each)}"]
    held = {f["holder"] for f in each["fences"]}
    return "; ".join([*words, *([f"fenced by {', '.join(sorted(held))}"] if held else [])])


def _empty(each: Any) -> str:
    if each["empty"]:
        return "empty"
    if each["empty_us"] is None:
        return "empty when its tenants say so"
    return f"empty by {moment(each['empty_us'])}"


@node.command()
@click.argument("name", required=False)
@state_option
@json_option
@plain_option
def show(name: str | None, state: Path | None, as_json: bool, plain: bool) -> None:
    """One node and what stands on it; without NAME this machine, as its own agent sees it."""
    if name is None:
        seen = seen_in(state_meant(state))
        _said(seen_json(seen), seen_words(seen, plain=plain), as_json)
        return
    with talk() as server:
        found = server.get(f"/v1/nodes/{name}")
    seen = lasted(max(0, now_us() - found["seen_us"])) if found["seen_us"] else "never"
    lines = [
        f"{found['name']} is {found['state']}, heard {seen} ago: "
        f"{counted(found['attempts'], 'job')}, {counted(found['leases'], 'lease').lower()}",
        f"  cores      {found['cpus_free']} of {found['cpus']} free",
        f"  memory     {size(found['memory_free_mib'])} of {size(found['memory_mib'])} free",
        f"  scratch    {size(found['disk_free_mib'])} of {size(found['disk_mib'])} free",
        f"  isolation  {', '.join(found['isolations']) or 'none works'} (cgroup {found['cgroup']})",
    ]
    lines += [
        f"  GPU {d['slot']}      {d['model']}, {d['device']}: "
        f"{'fenced' if d['fenced'] else 'leased' if d['lease'] else 'free'}{_ill(d['health'])}"
        for d in found["devices"]
    ]
    lines.append(f"  health     {_health(found)}")
    lines += [
        f"  fenced     {f['device'] or 'all of it'} by {f['holder']} since {moment(f['since_us'])}: {f['why']}"
        for f in found["fences"]
    ]
    if not found["listed"]:
        lines.append(f"  unlisted   takes no new leases; {_empty(found)}")
    _said(found, "\n".join(lines), as_json)


def _ill(state: str) -> str:
    return "" if state in ("healthy", "unknown") else f", {state.replace('_', ' ')}"


def _health(found: Any) -> str:
    if found["health_since_us"] is None:
        return "unknown: nothing has looked at it"
    why = f": {found['health_why']}" if found["health_why"] else ""
    state = found["health"].replace("_", " ")
    return f"{state} since {moment(found['health_since_us'])}{why}      More: ouvrage node health {found['name']}"


def _why(verb: Any) -> Any:
    return click.option("--why", metavar="TEXT", default="", help="For the trail.")(verb)


@node.command()
@click.argument("name")
@click.option("--device", metavar="ID", help="One GPU of it alone.")
@_why
@json_option
def fence(name: str, device: str | None, why: str, as_json: bool) -> None:
    """Place nothing new on a node, or on one GPU of it. What runs there goes on."""
    _fence(name, device, why, held=True, as_json=as_json)


@node.command()
@click.argument("name")
@click.option("--device", metavar="ID", help="One GPU of it alone.")
@_why
@json_option
def unfence(name: str, device: str | None, why: str, as_json: bool) -> None:
    """Let go of a fence. Others who hold it still do."""
    _fence(name, device, why, held=False, as_json=as_json)


def _fence(name: str, device: str | None, why: str, *, held: bool, as_json: bool) -> None:
    body = {"held": held, "device": device, "holder": "operator", "why": why}
    with talk() as server:
        found = server.post(f"/v1/nodes/{name}/fence", body)
    wrote()
    left = [f for f in found["fences"] if f["device"] == device]
    words = (
        f"{device or name} takes no new work; held by {', '.join(f['holder'] for f in left)}."
        if left
        else f"{device or name} takes work again."
    )
    _said(found, words, as_json)


@node.command()
@click.argument("name")
@_why
@json_option
def relist(name: str, why: str, as_json: bool) -> None:
    """Let a node take new leases."""
    _listing(name, why, listed=True, as_json=as_json)


@node.command()
@click.argument("name")
@_why
@json_option
def unlist(name: str, why: str, as_json: bool) -> None:
    """No new leases on a node; those that run keep their time."""
    _listing(name, why, listed=False, as_json=as_json)


def _listing(name: str, why: str, *, listed: bool, as_json: bool) -> None:
    with talk() as server:
        found = server.post(f"/v1/nodes/{name}/listing", {"listed": listed, "why": why})
    wrote()
    words = (
        f"{name} takes new leases." if listed else f"{name} takes no new leases; {_empty(found)}."
    )
    _said(found, words, as_json)


def _said(found: Any, words: str, as_json: bool) -> None:
    if as_json:
        say_json(found)
    else:
        say_text(words)
