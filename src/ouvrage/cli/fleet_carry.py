"""A fleet's plan, shown first; then written to a directory, or carried to its hosts.

Decides that without ``--to`` or ``--apply`` nothing is written at all, that a file which somebody else wrote is never replaced
unasked, that all hosts are asked before any is changed (a node that does not answer keeps what it has), and the order: every host has its files before anything is started, the
controller before the nodes. What stands in the files is decided by ``fleet/plan``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.fleet_hosts import Host, There, bundle_of, in_directory, write_directory
from ouvrage.adapters.fleet_keys import keys_of
from ouvrage.adapters.slurm_conf import read_conf
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.cli.agent import host_name
from ouvrage.cli.booking import book
from ouvrage.cli.fleet_kept import Fleet
from ouvrage.cli.ledger import Ledger
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.fleet.install import HOSTS, LISTED, SCRIPT, hosts_ini, inside, install_sh, listed
from ouvrage.fleet.plan import ALL, CONTROLLER, NODE, File, Keys, Plan, diff, plan_of
from ouvrage.ledger.stated import Stated

_NO_KEYS = Keys(munge=b"", jwt=b"", password="")
_OURS = "Written by ouvrage fleet"
SHOWN, WRITTEN, APPLIED = "shown", "written", "applied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a plan goes: to a directory, to the hosts, or (neither) nowhere. ``whole``: new files are shown in full."""

    to: Path | None
    apply: bool
    replace: bool
    whole: bool
    as_json: bool

    @property
    def writes(self) -> bool:
        """Whether anything is written."""
        return self.to is not None or self.apply


def where_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """``--to``, ``--apply``, ``--replace``, ``--diff`` and ``--json``; the verb gets them as ``where``."""

    def told(*args: Any, **values: Any) -> Any:
        own = {name: values.pop(name) for name in ("to", "apply", "replace", "whole", "as_json")}
        if own["to"] is not None and own["apply"]:
            raise OuvrageError(
                "fleet/which", "a plan goes to one place", hint="--to DIR, or --apply"
            )
        return verb(*args, where=Where(**own), **values)

    told.__doc__, told.__name__ = verb.__doc__, verb.__name__
    asking: Any = told
    inherited = getattr(verb, "__click_params__", [])
    asking.__click_params__ = inherited
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON value."),
        click.option("--diff", "whole", is_flag=True, help="Show new files in full, not only what changes."),
        click.option("--replace", is_flag=True, help="Also in the place of files that somebody else wrote; those are kept beside."),
        click.option("--apply", is_flag=True, help="On the hosts: over SSH, and on this machine."),
        click.option("--to", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
                     help="As files, for images and Ansible; with a script that puts them in place."),
    ):  # fmt: skip
        asking = option(asking)
    return asking


@dataclass(slots=True, kw_only=True)
class Carry:
    """A plan and whom it is held against: by name the roles of each and what it has (``there``)."""

    before: Fleet | None
    after: Fleet
    plan: Plan
    where: Where
    hosts: tuple[tuple[Host, tuple[str, ...]], ...] = ()
    there: dict[str, tuple[tuple[str, ...], Mapping[str, There]]] = field(default_factory=dict)

    away: dict[str, str] = field(default_factory=dict)
    """Hosts that did not answer, and why: of many nodes one is always down, and the others go on."""

    def held(self) -> Iterator[tuple[str, File, There | None]]:
        """Every file that somebody should have, with his name and what he has."""
        for name, (roles, there) in self.there.items():
            for file in self.plan.files:
                if file.role in (ALL, *roles):
                    yield name, file, there.get(file.path)

    def changes(self) -> dict[str, tuple[File, str, There | None]]:
        """Every file by path with ``new``, ``changed`` or ``as it is``: the furthest of those who should have it."""
        found: dict[str, tuple[File, str, There | None]] = {}
        weight = ("as it is", "changed", "new")
        for _, file, have in self.held():
            word = (
                "new" if have is None else "as it is" if have.sha256 == file.sha256 else "changed"
            )
            known = found.get(file.path)
            if known is None or weight.index(word) > weight.index(known[1]):
                found[file.path] = (file, word, have)
        return found


def hosts_of(fleet: Fleet) -> tuple[tuple[Host, tuple[str, ...]], ...]:
    """Every host once with its roles, the controller's first; this machine is not asked over SSH."""
    here = host_name()
    settings = fleet.settings
    wanted = [(settings.controller, settings.address or settings.controller, CONTROLLER)]
    wanted += [(each.host, each.address, NODE) for each in fleet.members]
    found: dict[str | None, tuple[Host, tuple[str, ...]]] = {}
    for name, address, role in wanted:
        ssh = None if name.lower() == here else address
        host, roles = found.get(ssh, (Host(name=name, ssh=ssh), ()))
        found[ssh] = (host, roles if role in roles else (*roles, role))
    return tuple(found.values())


def planned(
    ledger: Ledger, before: Fleet | None, after: Fleet, where: Where, *, packages: bool = False
) -> Carry:
    """The plan of a fleet, held to what is there. Raises ``OuvrageError`` ``fleet/foreign``, ``fleet/user``, ``fleet/host``."""
    keys = keys_of(ledger.home, make=False)
    settings, members = after.settings, after.members
    plan = plan_of(settings, members, keys or _NO_KEYS, packages=packages)
    carry = Carry(before=before, after=after, plan=plan, where=where)
    if where.apply:
        carry.hosts = hosts_of(after)
        _ask_hosts(carry)
    elif where.to is not None:
        files = {inside(each): each for each in plan.files}
        carry.there["directory"] = ((CONTROLLER, NODE), in_directory(where.to, files))
    else:
        had = (
            ()
            if before is None or keys is None
            else plan_of(before.settings, before.members, keys).files
        )
        carry.there["record"] = ((CONTROLLER, NODE), {each.path: _as_there(each) for each in had})
    _no_foreign(carry)
    if where.writes and keys is None:  # made when nothing stands against it any more
        made = keys_of(ledger.home, make=True) or _NO_KEYS
        carry.plan = plan_of(settings, members, made, packages=packages)
    return carry


def _as_there(file: File) -> There:
    return There(sha256=file.sha256, data=file.data, first=_OURS)


def _ask_hosts(carry: Carry) -> None:
    numbers: dict[str, str | None] = {}
    for host, roles in carry.hosts:
        files = [each for each in carry.plan.files if each.role in (ALL, *roles)]
        try:
            seen = host.see(files, "/dev/nvidia")
        except OuvrageError as error:
            if CONTROLLER in roles:
                raise
            carry.away[host.name] = error.message
            continue
        carry.there[host.name] = (roles, seen.files)
        numbers[host.name] = seen.slurm_user
    carry.hosts = tuple(each for each in carry.hosts if each[0].name not in carry.away)
    if None in numbers.values() or len(set(numbers.values())) > 1:
        told = ", ".join(f"{name}: {number or 'no such user'}" for name, number in numbers.items())
        raise OuvrageError(
            "fleet/user", f"the user slurm is not the same on every host: {told}",
            hint="install Slurm and munge on each, and give the user slurm one number everywhere before anything runs as it",
        )  # fmt: skip


def _no_foreign(carry: Carry) -> None:
    """Refuse to write over a configuration that is not ours, unless that is asked for."""
    if carry.where.replace:
        return
    lines: list[str] = []
    for name, file, have in carry.held():
        if have is None or not file.path.endswith((".conf", ".lua")) or _OURS in have.first:
            continue
        lines.append(f"{name}: {file.path} begins with {have.first[:60]!r}")
        if have.data is not None and file.path.endswith("/slurm.conf"):
            conf = read_conf(have.data.decode("utf-8", "replace"), file.path)
            lines += [f"  it does not parse: {each.line}" for each in conf.faults[:8]]
    if lines:
        raise OuvrageError(
            "fleet/foreign", "there is a configuration that Ouvrage did not write", where=tuple(map(safe, lines)),
            hint="ouvrage fleet adopt reads such a cluster; --replace puts ours in its place and keeps each as FILE.before-ouvrage",
        )  # fmt: skip


def contents_of(carry: Carry, roles: Sequence[str] = (CONTROLLER, NODE)) -> dict[str, bytes]:
    """A written plan: every file by where it lies in it. A node's has none of the controller's secrets."""
    settings, members = carry.after.settings, carry.after.members
    return {
        **{inside(each): each.data for each in carry.plan.files if each.role in (ALL, *roles)},
        SCRIPT: install_sh(carry.plan).encode(),
        LISTED: (json.dumps(listed(carry.plan), indent=1) + "\n").encode(),
        HOSTS: hosts_ini(settings, members).encode(),
    }


def carried(ledger: Ledger, carry: Carry, facts: Sequence[Stated], first: str, again: str) -> int:
    """Record, write or apply, and say it. ``first`` answers; ``again`` is the command, for whoever has only looked."""
    where = carry.where
    done: list[str] = []
    if where.writes:
        known = {carry.before.settings, *carry.before.members} if carry.before else set()
        book(ledger, [each for each in facts if each.value not in known], typed=True)
        wrote()
    if where.to is not None:
        write_directory(where.to, contents_of(carry))
    if where.apply:
        done = _applied(carry)
    word = APPLIED if where.apply else WRITTEN if where.to else SHOWN
    if where.as_json:
        say_json(_as_json(carry, word, first, done))
    else:
        say_text(
            "\n".join(
                [first, "", *_lines(carry), *done, *([""] if done else []), _last(carry, again)]
            )
        )
    return 1 if carry.away else 0


def _applied(carry: Carry) -> list[str]:
    """Every host's files first, then what is started; the lines that the hosts printed."""
    lines: list[str] = []
    steps = [("put", role) for role in (CONTROLLER, NODE)]
    told = {each.role for each in carry.plan.commands}
    steps += [("start", role) for role in (CONTROLLER, NODE) if told & {ALL, role}]
    for what, role in steps:
        for host, roles in carry.hosts:
            if role in roles:
                bundle = bundle_of(contents_of(carry, (role,)))
                lines += _on(host, bundle, what, role, lines)
    return lines


def _on(host: Host, bundle: bytes, what: str, role: str, before: Sequence[str]) -> list[str]:
    try:
        return [f"  {host.name}: {safe(line)}" for line in host.put(bundle, what, role)]
    except OuvrageError as error:
        done = tuple(before[-6:]) or ("nothing was changed on any host before",)
        raise OuvrageError(
            error.code, f"{error.message}, while it was told to {what} as {role}", where=done, exit_code=1,
            hint="mend it; ouvrage fleet upgrade --apply does what is left and nothing twice",
        ) from error  # fmt: skip


def _lines(carry: Carry) -> list[str]:
    changes = carry.changes()
    rows = [
        (file.path, file.role, file.owner, f"{file.mode:04o}", word)
        for file, word, _ in changes.values()
    ]
    lines = [
        f"away          {name} keeps its old files: {safe(why)}" for name, why in carry.away.items()
    ]
    lines += [table(("file", "on", "owner", "mode", "which is"), rows, "<<<<<"), ""]
    if carry.plan.commands:
        told = [(c.role, c.line, c.why) for c in carry.plan.commands]
        lines += [table(("on", "command, in this order", "for"), told, "<<<"), ""]
    else:
        lines += [
            "started       by you: it stands beside the system's own, whose services are left alone",
            "",
        ]
    for file, word, have in changes.values():
        if word == "changed" or (word == "new" and carry.where.whole):
            old = have.data if have is not None and have.data is not None else None
            before = b"" if have is not None and old is None else old
            lines += [*map(safe, diff(file.path, before, file)), ""]
    return lines


def _last(carry: Carry, again: str) -> str:
    if carry.where.to is not None:
        place = shlex.quote(str(carry.where.to))
        return f"On each host, as root: sh {place}/{SCRIPT} all controller, or all node. It holds keys: keep it to yourself."
    if carry.away:
        return "When those that are away are back: ouvrage fleet upgrade --apply"
    if carry.where.apply:
        return "How it stands: ouvrage fleet status"
    return f"Nothing was written. As files: {again} --to DIR; on the hosts: {again} --apply"


def _as_json(carry: Carry, word: str, first: str, done: Sequence[str]) -> dict[str, Any]:
    return {
        "fleet": carry.after.settings.cluster,
        "result": word,
        "says": first,
        "files": [
            {"path": f.path, "on": f.role, "owner": f.owner, "mode": f"{f.mode:04o}", "sha256": None if f.secret else f.sha256,
             "is": is_, "diff": diff(f.path, None if have is None else have.data or b"", f) if is_ != "as it is" else []}
            for f, is_, have in carry.changes().values()
        ],
        "commands": [{"on": c.role, "line": c.line, "for": c.why} for c in carry.plan.commands],
        "hosts": [{"host": host.name, "roles": list(roles)} for host, roles in carry.hosts],
        "away": carry.away,
        "done": [line.strip() for line in done],
    }  # fmt: skip


def with_member(fleet: Fleet, member: Any) -> Fleet:
    """The fleet with a member added, or another one in its place."""
    others = [each for each in fleet.members if each.node != member.node]
    return replace(fleet, members=tuple(sorted([*others, member], key=lambda each: each.node)))
