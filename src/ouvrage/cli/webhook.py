"""``ouvrage webhook``: addresses that are told of ended jobs, budgets and held machines.

Decides only how they are printed. Each verb is one request under ``/v1/webhooks``.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, shortened, table, wrote
from ouvrage.cli.project import org_option
from ouvrage.cli.talking import talk
from ouvrage.wire.hooks import EVENTS


@click.group()
def webhook() -> None:
    """Addresses that are told when something happens, each message signed."""


@webhook.command()
@click.argument("url")
@click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice(EVENTS),
    help="Only these; may be repeated.",
)
@org_option
@json_option
def add(url: str, events: tuple[str, ...], org: str | None, as_json: bool) -> None:
    """Tell URL (https://…) of what happens."""
    body = {"url": url, "events": list(events) or None, "org": org}
    with talk() as server:
        made = server.post("/v1/webhooks", body)
    wrote()
    if as_json:
        say_json(made)
        return
    found = made["webhook"]
    say_text(
        f"{safe(found['url'])} is told of {', '.join(found['events'])}\n"
        f"  signed with {made['secret']}    (shown this once)\n"
        f"See what arrived: ouvrage webhook deliveries {found['webhook']}"
    )


@webhook.command("list")
@org_option
@json_option
def list_(org: str | None, as_json: bool) -> None:
    """The webhooks of an organisation."""
    with talk() as server:
        found: list[Any] = list(server.every("/v1/webhooks", org=org))
    if as_json:
        say_json(found)
        return
    if not found:
        say_text(
            "Nobody is told of anything.\nTell somebody: ouvrage webhook add https://HOST/PATH"
        )
        return
    rows = [
        [each["webhook"], shortened(each["url"], 60), " ".join(each["events"])] for each in found
    ]
    say_text(
        f"{len(found)} webhook{'s' if len(found) > 1 else ''}\n\n{table(['id', 'address', 'events'], rows, '<<<')}"
    )
    say_text("What arrived: ouvrage webhook deliveries ID      End it: ouvrage webhook remove ID")


@webhook.command()
@click.argument("id_", metavar="ID")
@json_option
def remove(id_: str, as_json: bool) -> None:
    """Forget a webhook, and what was still to be delivered to it."""
    with talk() as server:
        server.delete(f"/v1/webhooks/{id_}")
    wrote()
    if as_json:
        say_json({"webhook": id_, "state": "removed"})
    else:
        say_text(f"The webhook {id_} is forgotten.")


@webhook.command()
@click.argument("id_", metavar="ID")
@json_option
def deliveries(id_: str, as_json: bool) -> None:
    """What was delivered to a webhook, and what is still to be."""
    with talk() as server:
        found: list[Any] = list(server.every(f"/v1/webhooks/{id_}/deliveries"))
    if as_json:
        say_json(found)
        return
    rows = [
        [
            utc_text(each["at_us"])[:19], each["event"], each["state"], str(each["tries"]), safe(each["said"] or "–"),
            utc_text(each["due_us"])[:19] if each["due_us"] else "–",
        ]
        for each in found
    ]  # fmt: skip
    late = sum(each["state"] != "arrived" for each in found)
    head = ["at", "event", "state", "tries", "last answer", "next try"]
    words = f"{len(found)} deliveries, {late or 'none'} of them not arrived"
    say_text(f"{words}\n\n{table(head, rows, '<<<><<')}" if rows else "Nothing has happened yet.")
