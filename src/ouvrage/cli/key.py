"""``ouvrage key``: one's own public keys, with which OpenSSH's clients enter one's jobs.

Decides only how they are printed. Each verb is one request under ``/v1/keys``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.cli.talking import talk

_LONGEST = 16_384


@click.group()
def key() -> None:
    """Your public SSH keys, with which you enter jobs of yours."""


@key.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--name", metavar="NAME", help="What to call it; its comment where you say nothing.")
@json_option
def add(file: Path, name: str | None, as_json: bool) -> None:
    """Make a public key known: FILE ends in .pub."""
    try:
        text = file.read_text(encoding="utf-8")[:_LONGEST]
    except (OSError, UnicodeDecodeError) as error:
        raise OuvrageError(
            "key/file", f"{file} cannot be read: {error}", hint="ssh-keygen -t ed25519 makes one"
        ) from error
    with talk() as server:
        made = server.post("/v1/keys", {"key": text.strip(), "name": name})
    wrote()
    if as_json:
        say_json(made)
    else:
        words = (
            f"{safe(made['name'])} is known: {made['fingerprint']}\nEnter a job: ouvrage ssh JOB"
        )
        say_text(words)


@key.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Your keys, newest first."""
    with talk() as server:
        found: list[Any] = list(server.every("/v1/keys"))
    if as_json:
        say_json(found)
        return
    if not found:
        say_text("No key is known.\nAdd one: ouvrage key add ~/.ssh/id_ed25519.pub")
        return
    rows = [
        [
            each["name"],
            each["line"].split()[0],
            each["fingerprint"],
            utc_text(each["created_us"])[:10],
        ]
        for each in found
    ]
    say_text(f"{len(found)} key{'s' if len(found) > 1 else ''}")
    say_text(f"\n{table(['name', 'kind', 'fingerprint', 'since'], rows, '<<<<')}")
    say_text("Forget one: ouvrage key remove NAME")


@key.command()
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Forget a key, by its name or id."""
    with talk() as server:
        server.delete(f"/v1/keys/{quote(name, safe='')}")
    wrote()
    if as_json:
        say_json({"key": name, "state": "removed"})
    else:
        say_text(f"The key {name} is forgotten.")
