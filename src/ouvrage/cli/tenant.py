"""``ouvrage tenant``: the organisations that work on the owner's machines.

Decides only how they are printed; what is allowed is the server's to say. Each verb is one request under ``/v1/organisations``.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.base.text import safe
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.cli.talking import talk

_BILLING = click.Choice(["prepaid", "credit"])


@click.group()
def tenant() -> None:
    """Organisations on this platform, and how they pay."""


@tenant.command()
@click.argument("name")
@click.option(
    "--admin", metavar="LOGIN", help="Its first administrator; the password is shown once."
)
@click.option("--currency", metavar="CODE", default="EUR", show_default=True)
@click.option("--billing", type=_BILLING, default="prepaid", show_default=True)
@click.option("--credit-limit", metavar="AMOUNT", default="0", help="How far below zero it may go.")
@json_option
def create(
    name: str, admin: str | None, currency: str, billing: str, credit_limit: str, as_json: bool
) -> None:
    """Make a tenant NAME, with a project `main`."""
    body = {
        "name": name, "admin": admin, "currency": currency, "billing": billing,
        "credit_limit": credit_limit,
    }  # fmt: skip
    with talk() as server:
        made = server.post("/v1/organisations", body)
    wrote()
    if as_json:
        say_json(made)
        return
    lines = [
        f"The tenant {name} is there, with the project main; it pays {_pays(made['organisation'])}"
    ]
    if made["password"]:
        lines.append(f"  {made['login']} signs in with {made['password']}    (shown this once)")
    lines.append(f"Next: ouvrage member add LOGIN --org {name} --role tenant-user")
    say_text("\n".join(lines))


@tenant.command("list")
@json_option
def list_(as_json: bool) -> None:
    """The organisations that you may see."""
    with talk() as server:
        found = list(server.every("/v1/organisations"))
    if as_json:
        say_json(found)
        return
    tenants = [org for org in found if org["side"] == "tenant"]
    rows = [
        [org["name"], org["side"], _pays(org), "closed" if org["closed"] else "open"]
        for org in found
    ]
    said = "1 tenant" if len(tenants) == 1 else f"{len(tenants) or 'No'} tenants"
    say_text(f"{said} here\n\n{table(['name', 'side', 'pays', ''], rows, '<<<<')}")
    say_text("One of them: ouvrage tenant show NAME      Another: ouvrage tenant create NAME")


@tenant.command()
@click.argument("name", required=False)
@json_option
def show(name: str | None, as_json: bool) -> None:
    """One organisation, its projects and members; else your own."""
    with talk() as server:
        name = name or _own(server.get("/v1/me"))
        org = server.get(f"/v1/organisations/{name}")
        projects = list(server.every("/v1/projects", org=org["org"]))
        members = _members(server, org["org"])
    if as_json:
        say_json({**org, "projects": projects, "members": members})
        return
    state = ", closed" if org["closed"] else ""
    lines = [f"{org['name']} pays {_pays(org)}{state}"]
    lines.append(f"  projects  {', '.join(each['name'] for each in projects) or 'none'}")
    if members is not None:
        lines.append(f"  members   {', '.join(safe(each['login']) for each in members) or 'none'}")
    lines.append(f"What was done there: ouvrage audit --org {org['name']}")
    say_text("\n".join(lines))


def _own(me: Any) -> str:
    return me["roles"][0]["org"] if me["roles"] else "none"


def _members(server: Any, org: str) -> list[Any] | None:
    """The members, None where one may not see them."""
    from ouvrage.base.errors import OuvrageError

    try:
        return list(server.every("/v1/members", org=org))
    except OuvrageError as error:
        if error.code != "right/missing":
            raise
        return None


@tenant.command()
@click.argument("name")
@click.option("--billing", type=_BILLING)
@click.option("--credit-limit", metavar="AMOUNT")
@json_option
def change(name: str, billing: str | None, credit_limit: str | None, as_json: bool) -> None:
    """How NAME pays from now on."""
    body = {"billing": billing, "credit_limit": credit_limit}
    with talk() as server:
        org = server.patch(f"/v1/organisations/{name}", body)
    wrote()
    _said(org, f"{name} pays {_pays(org)} from now on.", as_json=as_json)


@tenant.command()
@click.argument("name")
@click.option("--why", metavar="TEXT", default="", help="For the trail.")
@json_option
def close(name: str, why: str, as_json: bool) -> None:
    """End NAME and all that it has under way: jobs, leases, sessions and tokens. The record stays."""
    with talk() as server:
        org = server.post(f"/v1/organisations/{name}/close", {"why": why})
    wrote()
    _said(org, f"{name} is closed.\nLet it in again: ouvrage tenant reopen {name}", as_json=as_json)


@tenant.command()
@click.argument("name")
@json_option
def reopen(name: str, as_json: bool) -> None:
    """Let a closed NAME in again. Its tokens stay revoked."""
    with talk() as server:
        org = server.post(f"/v1/organisations/{name}/reopen")
    wrote()
    _said(org, f"{name} is open again.", as_json=as_json)


def _said(org: Any, words: str, *, as_json: bool) -> None:
    if as_json:
        say_json(org)
    else:
        say_text(words)


def _pays(org: Any) -> str:
    if org["billing"] == "prepaid":
        return f"in advance, in {org['currency']}"
    return f"by invoice, up to {org['credit_limit']} {org['currency']}"
