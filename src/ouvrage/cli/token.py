"""``ouvrage token``: what programs show in place of a password.

Decides how a secret leaves: into a file readable by its owner alone, or once onto the terminal. Each verb is one request under
``/v1/tokens``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.cli.project import org_option
from ouvrage.cli.talking import talk


@click.group()
def token() -> None:
    """Tokens: limited, expiring, shown once, revoked at once."""


@token.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    metavar="SCOPE",
    help="all, read, work, money, machines or people; may be repeated.",
)
@click.option("--days", type=click.IntRange(1, 366), default=90, show_default=True)
@click.option("--project", metavar="NAME", help="For this project alone.")
@click.option("--machine", metavar="PROGRAM", help="For a program, with a role of its own.")
@click.option("--role", metavar="ROLE", help="The program's role.")
@org_option
@click.option(
    "--into",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the secret there (0600) and don't print it.",
)
@json_option
def create(
    name: str, scopes: tuple[str, ...], into: Path | None, as_json: bool, **more: Any
) -> None:
    """Make a token called NAME: yours, or a program's."""
    body = {"name": name, "scopes": list(scopes), **more}
    if into is None:
        with talk() as server:
            made = server.post("/v1/tokens", body)
        wrote()
    else:
        made = _into(into, body)
    if as_json:
        say_json({**made, "file": str(into) if into else None})
        return
    until = utc_text(made["expires_us"])[:10]
    lines = [f"A token for {safe(made['login'])}: {', '.join(made['scopes'])}, until {until}"]
    lines.append(f"  in {into}" if into else f"  {made['secret']}    (shown this once)")
    lines.append(
        f"Use it: OUVRAGE_TOKEN_FILE=FILE      End it: ouvrage token revoke {made['token']}"
    )
    say_text("\n".join(lines))


def _into(file: Path, body: dict[str, Any]) -> Any:
    """Make the token into a new file, which is there first: a secret is shown once, and must have a place to go."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OuvrageError(
            "token/file",
            f"{file} cannot be made: {error.strerror}",
            hint="name a new file in a directory that is there",
        ) from error
    try:
        with open(descriptor, "w", encoding="ascii") as opened, talk() as server:
            made = server.post("/v1/tokens", body)
            wrote()
            opened.write(f"{made['secret']}\n")
    except OuvrageError:
        file.unlink()
        raise
    return {**made, "secret": None}


@token.command("list")
@click.option("--org", metavar="NAME", help="Those of all its people and programs.")
@json_option
def list_(org: str | None, as_json: bool) -> None:
    """Your tokens, newest first."""
    with talk() as server:
        found = list(server.every("/v1/tokens", org=org))
    if as_json:
        say_json(found)
        return
    rows = [
        [
            each["token"], each["name"], each["login"], " ".join(each["scopes"]), each["state"],
            utc_text(each["expires_us"])[:10], utc_text(each["used_us"])[:16] if each["used_us"] else "never",
        ]
        for each in found
    ]  # fmt: skip
    head = ["id", "name", "whose", "scopes", "state", "until", "used"]
    valid = sum(each["state"] == "valid" for each in found)
    say_text(f"{valid or 'No'} valid of {len(found)} tokens\n\n{table(head, rows, '<<<<<<<')}")
    say_text("End one: ouvrage token revoke ID")


@token.command()
@click.argument("id_", metavar="ID")
@json_option
def revoke(id_: str, as_json: bool) -> None:
    """End a token, at once."""
    with talk() as server:
        server.delete(f"/v1/tokens/{id_}")
    wrote()
    if as_json:
        say_json({"token": id_, "state": "revoked"})
    else:
        say_text(f"The token {id_} is revoked.")
