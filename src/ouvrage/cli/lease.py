"""``ouvrage lease``: a right to machines for a time, taken and given back.

Decides only how a lease is asked for and printed. Each verb is one request under ``/v1/leases``.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.cli.amounts import TIME
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.cli.talking import talk
from ouvrage.cli.work_words import configuration, counted, lasted, moment

_HEAD = ("lease", "offer", "project", "kind", "since (UTC)", "until", "held", "state")


@click.group()
def lease() -> None:
    """Leases: machines that are yours for a time.

    \b
    ouvrage lease take standard --for 8h
    ouvrage job submit --lease CODE -- python train.py
    """


@lease.command()
@click.argument("offer")
@click.option("--for", "for_us", type=TIME, metavar="8h", help="For how long; else until released.")
@click.option("--project", metavar="NAME", default="main", help="Who takes it (main).")
@json_option
def take(offer: str, for_us: int | None, project: str, as_json: bool) -> None:
    """Take OFFER, from now on. Its terms are frozen into the lease."""
    with talk() as server:
        made = server.post("/v1/leases", {"offer": offer, "project": project, "for_us": for_us})
    wrote()
    until = f"until {moment(made['until_us'])}" if made["until_us"] else "until it is released"
    words = f"Lease {made['code']} of {made['offer_name']} holds {until}: {configuration(made)}"
    _said(
        made,
        f"{words}\nUse it: ouvrage job submit --lease {made['code']} -- COMMAND      "
        f"Give it back: ouvrage lease release {made['code']}",
        as_json,
    )


@lease.command("list")
@click.option(
    "--kind", type=click.Choice(["term", "job"]), help="Taken, or opened for one attempt."
)
@click.option("--open", "open_", is_flag=True, help="Those that hold now.")
@json_option
def list_(kind: str | None, open_: bool, as_json: bool) -> None:
    """Leases that you may see, newest first."""
    with talk() as server:
        found = list(server.every("/v1/leases", kind=kind, open=open_ or None))
    if as_json:
        say_json(found)
        return
    rows = [
        [
            each["code"],
            each["offer_name"],
            each["project_name"],
            each["kind"],
            moment(each["from_us"])[:16],
            moment(each["ended_us"] or each["until_us"])[:16],
            lasted(_held(each)),
            each["end"] or each["state"],
        ]
        for each in found
    ]
    hold = sum(1 for each in found if each["state"] != "ended")
    body = f"\n\n{table(_HEAD, rows, '<<<<<<><')}" if rows else ""
    say_text(f"{counted(len(found), 'lease')}, {hold} of them now{body}")
    say_text("Take one: ouvrage lease take OFFER")


def _held(each: Any) -> int:
    """Leased, and nothing running in it."""
    ends = each["ended_us"] or now_us()
    return max(0, ends - each["from_us"] - each["working_us"])


_STRIP = 20


def _hours(found: Any) -> str:
    """``████████████▒▒▒▒▒▒▒▒  62 % working: 5 h 00 of 8 h 00; 3 h 00 held, and paid for``."""
    working, held = int(found["working_us"]), _held(found)
    whole = working + held
    if not whole:
        return "none yet"
    filled = working * _STRIP // whole
    strip = "█" * filled + "▒" * (_STRIP - filled)
    words = f"{working * 100 // whole} % working: {lasted(working)} of {lasted(whole)}"
    return f"{strip}  {words}; {lasted(held)} held, and paid for"


@lease.command()
@click.argument("name", metavar="LEASE")
@json_option
def show(name: str, as_json: bool) -> None:
    """One lease, by code or id."""
    with talk() as server:
        found = server.get(f"/v1/leases/{name}")
    ends = found["ended_us"] or found["until_us"]
    lines = [
        f"Lease {found['code']} of {found['offer_name']}: {found['end'] or found['state']}",
        f"  has      {configuration(found)}",
        f"  for      {found['project_name']}",
        f"  from     {moment(found['from_us'])} to {moment(ends)}",
        f"  hours    {_hours(found)}",
    ]
    lines += [f"  node     {found['node']}"] if found["node"] else []
    if found["state"] == "open" and found["kind"] == "term":
        lines.append(
            f"Work in it makes held hours working ones: ouvrage job submit --lease {found['code']} -- COMMAND"
        )
    _said(found, "\n".join(lines), as_json)


@lease.command()
@click.argument("name", metavar="LEASE")
@click.option("--stop", is_flag=True, help="End what runs in it first.")
@click.option("--why", metavar="TEXT", default="", help="For the trail.")
@json_option
def release(name: str, stop: bool, why: str, as_json: bool) -> None:
    """Give a lease back."""
    with talk() as server:
        found = server.post(f"/v1/leases/{name}/release", {"stop": stop, "why": why})
    wrote()
    words = (
        f"Lease {found['code']} has ended after {lasted(found['billable_us'])}."
        if found["state"] == "ended"
        else f"Lease {found['code']} ends once the jobs in it have stopped."
    )
    _said(found, words, as_json)


def _said(found: Any, words: str, as_json: bool) -> None:
    if as_json:
        say_json(found)
    else:
        say_text(words)
