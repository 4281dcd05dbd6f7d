"""``ouvrage project``: where an organisation's work and budgets are kept apart.

Decides only how they are printed. Each verb is one request under ``/v1/projects``.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.cli.talking import talk

org_option = click.option("--org", metavar="NAME", help="The organisation; else your own.")


@click.group()
def project() -> None:
    """Projects: work and budgets kept apart."""


@project.command()
@click.argument("name")
@org_option
@click.option("--weight", metavar="NUMBER", default="1", help="Its share where several wait.")
@click.option(
    "--trusted", is_flag=True, help="Its work may run without a sandbox; the owner's alone."
)
@json_option
def create(name: str, org: str | None, weight: str, trusted: bool, as_json: bool) -> None:
    """Make a project NAME."""
    body = {"name": name, "org": org, "weight": weight, "trusted": trusted}
    with talk() as server:
        made = server.post("/v1/projects", body)
    wrote()
    _said(made, f"The project {made['org_name']}/{name} is there.", as_json=as_json)


@project.command("list")
@org_option
@json_option
def list_(org: str | None, as_json: bool) -> None:
    """The projects that you may see."""
    with talk() as server:
        found = list(server.every("/v1/projects", org=org))
    if as_json:
        say_json(found)
        return
    rows = [[f"{p['org_name']}/{p['name']}", p["weight"], _state(p)] for p in found]
    said = "1 project" if len(found) == 1 else f"{len(found) or 'No'} projects"
    say_text(f"{said}\n\n{table(['project', 'weight', ''], rows, '<><')}")
    say_text("Another: ouvrage project create NAME")


@project.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """One project, by name, organisation/name, or id."""
    with talk() as server:
        found = _one(server, name)
    words = f"{found['org_name']}/{found['name']}: weight {found['weight']}, {_state(found)}"
    _said(found, f"{words}\n  id {found['project']}", as_json=as_json)


@project.command()
@click.argument("name")
@click.option("--weight", metavar="NUMBER", help="Its share where several wait.")
@click.option("--trusted/--not-trusted", default=None, help="Work without a sandbox.")
@click.option("--closed/--open", default=None, help="Whether it takes work.")
@json_option
def change(
    name: str, weight: str | None, trusted: bool | None, closed: bool | None, as_json: bool
) -> None:
    """What is said of a project from now on."""
    body = {"weight": weight, "trusted": trusted, "closed": closed}
    with talk() as server:
        found = _one(server, name)
        new = server.patch(f"/v1/projects/{found['project']}", body)
    wrote()
    words = f"{new['org_name']}/{new['name']}: weight {new['weight']}, {_state(new)}"
    _said(new, words, as_json=as_json)


def _one(server: Any, name: str) -> Any:
    """A project by any of its names: with its organisation's it is looked for in the list."""
    org, slash, word = name.rpartition("/")
    if not slash:
        return server.get(f"/v1/projects/{name}")
    found = [each for each in server.every("/v1/projects", org=org) if each["name"] == word]
    return found[0] if found else server.get(f"/v1/projects/{word}")


def _state(found: Any) -> str:
    words = [word for word in ("trusted", "closed") if found[word]]
    return ", ".join(words) or "open"


def _said(found: Any, words: str, *, as_json: bool) -> None:
    if as_json:
        say_json(found)
    else:
        say_text(words)
