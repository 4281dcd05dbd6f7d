"""``ouvrage fleet init``: where the controller of a fleet stands, and what a machine must be to join it.

Decides what has to be said (a name, a host, a build, a class of work) and what is taken for what is not. A fleet that is there is
changed by what is said anew, and by nothing else; its name and its root stay, since everything on its hosts is found by them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

import click

from ouvrage.adapters.audit_tables import need_table
from ouvrage.adapters.clock import now_us
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.build import build_named
from ouvrage.cli.fleet_carry import Where, carried, planned, where_options
from ouvrage.cli.fleet_kept import Fleet, fleet_kept, stated
from ouvrage.cli.ledger import opened
from ouvrage.fleet.names import (
    check_address,
    check_cluster,
    check_host,
    check_path,
    check_port,
    check_word,
)
from ouvrage.fleet.slurm_files import check_setting
from ouvrage.model.bringup import FleetSettings
from ouvrage.model.work import Named

_PORTS = ("controller_port", "node_port", "accounting_port", "rest_port")
_DEFAULTS: dict[str, Any] = {
    "address": None, "root": "", "controller_port": 6817, "node_port": 6818, "accounting_port": 6819,
    "rest_port": 6820, "database": "localhost", "database_port": 3306, "settings": (), "refused": (),
}  # fmt: skip


@click.command("init")
@click.argument("cluster", metavar="NAME")
@click.option("--controller", metavar="HOST", help="The host of the controller and its accounting.")
@click.option(
    "--address",
    metavar="ADDRESS",
    help="Where nodes reach it, where its name alone does not lead there.",
)
@click.option("--build", metavar="NAME", help="How a machine must be: ouvrage build list.")
@click.option(
    "--for",
    "work_class",
    metavar="CLASS",
    help="What it must have proved it can do: inference, fine-tuning, batch, …",
)
@click.option(
    "--database", metavar="HOST[:PORT]", help="The MariaDB of its accounting (localhost:3306)."
)
@click.option(
    "--ports",
    metavar="A,B,C,D",
    help="Of controller, nodes, accounting and HTTP (6817,6818,6819,6820).",
)
@click.option(
    "--root",
    metavar="DIR",
    help="Everything below DIR, beside another Slurm; its services are then yours to start.",
)
@click.option(
    "--set",
    "lines",
    metavar="NAME=VALUE",
    multiple=True,
    help="A line of slurm.conf of your own; NAME= takes it back.",
)
@click.option(
    "--refuse",
    "refused",
    metavar="ACCOUNT=WHY",
    multiple=True,
    help="Turn an account's jobs away, in these words; ACCOUNT= takes it back.",
)
@where_options
def init(cluster: str, where: Where, **said: Any) -> int:
    """A fleet that Slurm schedules: its controller, and what a machine must be to join. The plan is shown first.

    Nothing is written without --to DIR or --apply. Again with other options it changes those.
    """  # fmt: skip
    check_cluster(cluster)
    with opened() as ledger:
        before = fleet_kept(ledger)
        settings = _settings(cluster, said, before.settings if before else None)
        build_named(ledger, settings.build)
        after = Fleet(settings=settings, members=before.members if before else ())
        carry = planned(ledger, before, after, where)
        facts = [stated(settings, now_us())]
        many = len(after.members)
        first = (
            f"{cluster}: controller and accounting on {settings.controller}, {many} node{'' if many == 1 else 's'}; a machine joins as "
            f"build {settings.build}, proven for {settings.work_class}."
        )  # fmt: skip
        again = (
            f"ouvrage fleet init {cluster} …" if before is None else f"ouvrage fleet init {cluster}"
        )
        return carried(ledger, carry, facts, first, again)


def _settings(cluster: str, said: dict[str, Any], before: FleetSettings | None) -> FleetSettings:
    """What holds now: what is said, else what held, else the default."""
    if before is not None and before.cluster != cluster:
        raise OuvrageError(
            "fleet/one", f"this home has the fleet {before.cluster}; it cannot have {cluster} too",
            hint="another fleet has a home of its own: OUVRAGE_HOME=DIR",
        )  # fmt: skip
    values = {name: getattr(before, name) for name in _names()} if before else {**_DEFAULTS}
    values["cluster"] = cluster
    for name in ("controller", "address", "build", "work_class", "root"):
        if said[name] is not None:
            values[name] = said[name]
    for name, option in (("controller", "--controller"), ("build", "--build"), ("work_class", "--for")):  # fmt: skip
        if values.get(name) is None:
            raise OuvrageError(
                "fleet/init", f"{option} is not said",
                hint="ouvrage fleet init lab --controller HOST --build BUILD --for batch",
            )  # fmt: skip
    if said["ports"] is not None:
        values.update(zip(_PORTS, _ports(said["ports"]), strict=True))
    if said["database"] is not None:
        values["database"], values["database_port"] = _database(said["database"])
    values["settings"] = _lines("fleet/setting", values["settings"], said["lines"])
    values["refused"] = _lines("fleet/refuse", values["refused"], said["refused"])
    return _checked(FleetSettings(**values), before)


def _names() -> tuple[str, ...]:
    return tuple(each.name for each in fields(FleetSettings))


def _checked(settings: FleetSettings, before: FleetSettings | None) -> FleetSettings:
    check_host("the controller", settings.controller)
    check_address(settings.database)
    check_word("the build", settings.build)
    need_table().of(settings.work_class)
    if settings.address is not None:
        check_address(settings.address)
    if settings.root:
        check_path("--root", settings.root)
    if before is not None and before.root != settings.root:
        raise OuvrageError(
            "fleet/root", f"{before.cluster} lies below {before.root or '/'}; it does not move",
            hint="what runs there would go on by the old files; another fleet has a home of its own: OUVRAGE_HOME=DIR",
        )  # fmt: skip
    for name in (*_PORTS, "database_port"):
        check_port(f"--ports, {name},", getattr(settings, name))
    for each in settings.settings:
        check_setting(each.name, each.value)
    for each in settings.refused:
        check_word("the account", each.name)
    return replace(settings, root=settings.root.rstrip("/"))


def _ports(text: str) -> list[int]:
    found = text.split(",")
    if len(found) != len(_PORTS) or not all(each.isascii() and each.isdigit() and len(each) < 6 for each in found):  # fmt: skip
        raise OuvrageError("fleet/port", f"{text[:40]!r} are no four ports", hint="--ports 6817,6818,6819,6820")  # fmt: skip
    if len(set(found)) < len(found):
        raise OuvrageError("fleet/port", f"{text[:40]} names a port twice", hint="each daemon listens on its own")  # fmt: skip
    return [int(each) for each in found]


def _database(text: str) -> tuple[str, int]:
    host, _, port = text.partition(":")
    if port and not (port.isascii() and port.isdigit() and len(port) < 6):
        raise OuvrageError("fleet/port", f"{port[:20]!r} is no port", hint="--database db.example.org:3306")  # fmt: skip
    return host, int(port or 3306)


def _lines(code: str, known: Iterable[Named], said: Iterable[str]) -> tuple[Named, ...]:
    """``NAME=VALUE`` taken into what is known; one without a value is taken out."""
    values = {each.name: each.value for each in known}
    for text in said:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise OuvrageError(code, f"{text[:60]!r} is no NAME=VALUE", hint="NAME=VALUE; NAME= takes it back")  # fmt: skip
        values.pop(name.strip(), None)
        if value.strip():
            values[name.strip()] = value.strip()
    return tuple(Named(name=name, value=value) for name, value in values.items())
