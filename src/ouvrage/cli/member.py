"""``ouvrage member``: who belongs to an organisation, and as what.

Decides only how they are printed. Each verb is one request under ``/v1/members``.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.base.text import safe
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.cli.project import org_option
from ouvrage.cli.signing import role_text
from ouvrage.cli.talking import talk


@click.group()
def member() -> None:
    """People and programs of an organisation, and their roles."""


@member.command()
@click.argument("login")
@click.option(
    "--role",
    required=True,
    metavar="ROLE",
    help="owner, operator or finance; in a tenant tenant-admin or tenant-user.",
)
@org_option
@click.option("--project", metavar="NAME", help="In this project alone.")
@click.option("--email", metavar="ADDRESS", help="As whom the identity provider knows them.")
@click.option("--no-password", is_flag=True, help="They sign in with the identity provider.")
@json_option
def add(
    login: str,
    role: str,
    org: str | None,
    project: str | None,
    email: str | None,
    no_password: bool,
    as_json: bool,
) -> None:
    """Give LOGIN a role; somebody new gets a password, shown this once."""
    body = {
        "login": login, "role": role, "org": org, "project": project, "email": email,
        "password": not no_password,
    }  # fmt: skip
    with talk() as server:
        made = server.post("/v1/members", body)
    wrote()
    if as_json:
        say_json(made)
        return
    found = made["member"]
    lines = [f"{safe(found['login'])} is {'; '.join(map(role_text, found['roles']))}"]
    if made["password"]:
        lines.append(f"  signs in with {made['password']}    (shown this once)")
    say_text("\n".join(lines))


@member.command("list")
@org_option
@json_option
def list_(org: str | None, as_json: bool) -> None:
    """The members of an organisation."""
    with talk() as server:
        found = list(server.every("/v1/members", org=org))
    if as_json:
        say_json(found)
        return
    rows = [
        [each["login"], each["kind"], "; ".join(map(role_text, each["roles"])) or "no role"]
        for each in found
    ]
    said = "1 member" if len(found) == 1 else f"{len(found) or 'No'} members"
    say_text(f"{said}\n\n{table(['login', '', 'roles'], rows, '<<<')}")
    say_text("Another: ouvrage member add LOGIN --role ROLE")


@member.command()
@click.argument("login")
@click.option("--project", metavar="NAME", help="Their role in this project alone.")
@json_option
def remove(login: str, project: str | None, as_json: bool) -> None:
    """Take LOGIN's roles; without any they are signed out everywhere, at once."""
    with talk() as server:
        left = server.delete(f"/v1/members/{login}", project=project)
    wrote()
    roles = "; ".join(map(role_text, left["roles"]))
    words = f"{safe(left['login'])} is now {roles or 'without a role, and signed out everywhere'}."
    _said(left, words, as_json=as_json)


@member.command()
@click.argument("login")
@json_option
def password(login: str, as_json: bool) -> None:
    """Give LOGIN a new password, shown this once; their sessions and tokens end."""
    with talk() as server:
        made = server.post(f"/v1/members/{login}/password")
    wrote()
    words = f"{safe(made['member']['login'])} signs in with {made['password']}    (shown this once)"
    _said(made, words, as_json=as_json)


def _said(found: Any, words: str, *, as_json: bool) -> None:
    if as_json:
        say_json(found)
    else:
        say_text(words)
