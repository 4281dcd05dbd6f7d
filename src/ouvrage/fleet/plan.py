"""The whole of a fleet as files by role, the commands that put them to use, and what differs from what is there.

Decides which host gets what, with whose rights, and in which order things are started: what everybody believes one another by first, then
accounting, then the controller, then nodes. Writing, asking and starting are others'.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from ouvrage.fleet.hooks import HOOKS, hook
from ouvrage.fleet.layout import Layout
from ouvrage.fleet.slurm_files import (
    CGROUP_CONF,
    INTERRUPTIBLE,
    accounting_sql,
    gres_conf,
    slurm_conf,
    slurmdbd_conf,
)
from ouvrage.fleet.submit_lua import job_submit_lua
from ouvrage.model.bringup import FleetMember, FleetSettings

ALL, CONTROLLER, NODE = ROLES = ("all", "controller", "node")
"""Every host, the one with the controller, and those that run jobs. A host may be both of the last two."""
HIDDEN = "(secret, not shown)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The fleet's secrets: what hosts believe one another by, what signs tokens, the accounting's password in hexadecimal."""

    munge: bytes
    jwt: bytes
    password: str


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file as it is on every host of a ``role``. ``secret``: its content is never shown."""

    role: str
    path: str
    data: bytes
    owner: str
    mode: int
    secret: bool = False

    @property
    def sha256(self) -> str:
        """Its content in short."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """A directory that must be there first."""

    role: str
    path: str
    owner: str
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A line of shell that a host of a ``role`` is given once its files lie there, and what it is for."""

    role: str
    line: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that a fleet's hosts must have, and what they are told then, in order."""

    directories: tuple[Directory, ...]
    files: tuple[File, ...]
    commands: tuple[Command, ...]

    def of(self, role: str) -> tuple[File, ...]:
        """The files of a host of a role, those for all included."""
        return tuple(each for each in self.files if each.role in (ALL, role))


def plan_of(
    settings: FleetSettings, members: Sequence[FleetMember], keys: Keys, *, packages: bool = False
) -> Plan:
    """The plan of a fleet; the same values give the same bytes. ``packages``: newer ones of Slurm are installed too."""
    at = Layout(settings.root)
    return Plan(
        directories=tuple(_directories(at, members)),
        files=tuple(_files(settings, members, keys, at)),
        commands=tuple(_commands(settings, members, at, packages)),
    )


def _directories(at: Layout, members: Sequence[FleetMember]) -> Iterator[Directory]:
    yield Directory(role=ALL, path=at.etc, owner="root", mode=0o755)
    yield Directory(role=ALL, path=at.hooks, owner="root", mode=0o755)
    yield Directory(role=ALL, path=at.log, owner="slurm", mode=0o755)
    if at.own:
        yield Directory(role=ALL, path=f"{at.root}/etc/munge", owner="munge", mode=0o700)
        yield Directory(role=ALL, path=at.run, owner="slurm", mode=0o755)
        yield Directory(role=ALL, path=f"{at.root}/run/munge", owner="munge", mode=0o755)
    yield Directory(role=CONTROLLER, path=at.state, owner="slurm", mode=0o700)
    for name in [m.node for m in members] if at.own else []:
        path = at.spool.replace("%n", name)
        yield Directory(role=NODE, path=path, owner="root", mode=0o755)


def _files(
    settings: FleetSettings, members: Sequence[FleetMember], keys: Keys, at: Layout
) -> Iterator[File]:
    yield File(role=ALL, path=at.munge_key, data=keys.munge, owner="munge", mode=0o400, secret=True)
    texts = {
        "slurm.conf": slurm_conf(settings, members),
        "gres.conf": gres_conf(members),
        "cgroup.conf": CGROUP_CONF,
    }
    for name, text in texts.items():
        yield File(role=ALL, path=f"{at.etc}/{name}", data=text.encode(), owner="root", mode=0o644)
    for name in HOOKS.values():
        data = hook(name).encode()
        yield File(role=ALL, path=f"{at.hooks}/{name}", data=data, owner="root", mode=0o755)
    yield File(role=CONTROLLER, path=at.jwt_key, data=keys.jwt, owner="slurm", mode=0o600, secret=True)  # fmt: skip
    yield File(
        role=CONTROLLER, path=f"{at.etc}/slurmdbd.conf", owner="slurm", mode=0o600,
        data=slurmdbd_conf(settings, keys.password).encode(), secret=True,
    )  # fmt: skip
    lua = job_submit_lua(members, settings.refused).encode()
    yield File(role=CONTROLLER, path=f"{at.etc}/job_submit.lua", data=lua, owner="root", mode=0o644)
    yield File(
        role=CONTROLLER, path=f"{at.hooks}/accounting.sql", owner="root", mode=0o600,
        data=accounting_sql(keys.password).encode(), secret=True,
    )  # fmt: skip
    told = _accounting_sh(settings, at).encode()
    yield File(role=CONTROLLER, path=f"{at.hooks}/accounting.sh", data=told, owner="root", mode=0o755)  # fmt: skip
    if not at.own:
        unit = _rest_unit(settings).encode()
        yield File(role=CONTROLLER, path=_REST, data=unit, owner="root", mode=0o644)


_REST = "/etc/systemd/system/slurmrestd.service.d/ouvrage.conf"


def _rest_unit(settings: FleetSettings) -> str:
    """The interface over HTTP under a user of its own, neither root nor Slurm's, which it refuses to be."""
    return f"""# Written by ouvrage fleet.
[Service]
DynamicUser=yes
Environment=SLURM_JWT=daemon
ExecStart=
ExecStart=/usr/sbin/slurmrestd -a rest_auth/jwt 127.0.0.1:{settings.rest_port}
"""


def _commands(
    settings: FleetSettings, members: Sequence[FleetMember], at: Layout, packages: bool
) -> Iterator[Command]:
    """What hosts are told, in order. Below a root of its own nothing of the system's is started."""
    if at.own:
        return
    yield Command(role=ALL, line="systemctl enable --quiet munge && systemctl restart munge",
                  why="hosts believe one another by its key")  # fmt: skip
    if packages:
        yield from _newer(settings, at)
    if _beside(settings):
        yield Command(role=CONTROLLER, line=f"mariadb < {at.hooks}/accounting.sql",
                      why="the accounting's database and its user")  # fmt: skip
    yield Command(role=CONTROLLER, line="systemctl enable --quiet slurmdbd && systemctl restart slurmdbd",
                  why="accounting, before whoever writes to it")  # fmt: skip
    yield Command(role=CONTROLLER, line=f"sh {at.hooks}/accounting.sh",
                  why="the cluster in its accounting, and jobs that give way to others")  # fmt: skip
    if packages:
        yield Command(role=NODE, line=f"{_APT} munge slurmd slurm-client", why="one node after another, after the controller")  # fmt: skip
    if members:  # a controller without any node does not start
        yield Command(role=CONTROLLER, line="systemctl daemon-reload && systemctl enable --quiet slurmctld slurmrestd"
                      " && systemctl restart slurmctld slurmrestd", why="nodes are read when it starts; what runs goes on")  # fmt: skip
        yield Command(role=NODE, line="systemctl enable --quiet slurmd && systemctl restart slurmd",
                      why="all nodes read the same file; what runs goes on")  # fmt: skip


def _beside(settings: FleetSettings) -> bool:
    """Whether the accounting's database is on the controller's own host."""
    return settings.database in ("localhost", "127.0.0.1", settings.controller, settings.address)


_APT = "export DEBIAN_FRONTEND=noninteractive; apt-get update -q && apt-get install -q -y --only-upgrade"


def _newer(settings: FleetSettings, at: Layout) -> Iterator[Command]:
    """Newer packages on the controller's host: nothing that writes to the database runs while it is saved and changed.

    The order is https://slurm.schedmd.com/quickstart_admin.html#upgrade; nodes go on with their jobs meanwhile.
    """
    yield Command(
        role=CONTROLLER,
        line="systemctl stop slurmrestd slurmctld slurmdbd",
        why="jobs go on without them",
    )
    saved = f"{at.state}/accounting-before-upgrade.sql"
    if _beside(settings):
        yield Command(role=CONTROLLER, line=f"mariadb-dump --single-transaction slurm_acct_db > {saved}",
                      why="accounting's database, before it is changed for good")  # fmt: skip
    else:
        told = f"save slurm_acct_db of {settings.database}, then: touch {saved}"
        yield Command(role=CONTROLLER, line=f"test -e {saved} || {{ echo {told!r} >&2; exit 1; }}".replace("'", '"'),
                      why="a database elsewhere is yours to save")  # fmt: skip
    yield Command(
        role=CONTROLLER, why="newer packages",
        line=f"{_APT} munge slurmctld slurmdbd slurmrestd slurm-client slurm-wlm-mysql-plugin slurm-wlm-jwt-plugin",
    )  # fmt: skip


def _accounting_sh(settings: FleetSettings, at: Layout) -> str:
    """What accounting is told once it answers; told again it changes nothing."""
    own = f"export SLURM_CONF={at.etc}/slurm.conf\n" if at.own else ""
    return f"""#!/bin/sh
# Written by ouvrage fleet. What accounting is told once: the cluster, and jobs that give way to all others.
{own}until_ok() {{  # a daemon that was just started answers within a minute, and what is there already is no failure
  for _ in $(seq 60); do
    said=$(sacctmgr -i "$@" 2>&1) && return 0
    case $said in *"Nothing new added"*|*"lready exists"*|*"Nothing modified"*) return 0 ;; esac
    sleep 1
  done
  echo "$said" >&2
  exit 1
}}
until_ok add cluster {settings.cluster}
until_ok add qos {INTERRUPTIBLE}
until_ok modify qos normal set preempt={INTERRUPTIBLE} priority=10
"""


def diff(path: str, before: bytes | None, file: File) -> list[str]:
    """The lines in which a file differs from what is there (None: nothing); of a secret one only that it does."""
    if before == file.data:
        return []
    if file.secret:
        return [f"{path}: {'new' if before is None else 'another content'} {HIDDEN}"]
    old = "/dev/null" if before is None else f"a{path}"
    there = "" if before is None else before.decode("utf-8", "replace")
    lines = unified_diff(
        there.splitlines(), file.data.decode().splitlines(), old, f"b{path}", lineterm=""
    )
    return [line.rstrip("\n") for line in lines]


def changed(plan: Plan, role: str, there: Mapping[str, bytes | None]) -> tuple[File, ...]:
    """The files of a role whose content is another one on a host, or that it does not have."""
    return tuple(each for each in plan.of(role) if there.get(each.path) != each.data)
