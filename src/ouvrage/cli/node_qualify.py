"""``ouvrage node qualify``: can this machine do what a class of work needs, for as long as it takes?

Decides what is run in which order, and that the result is a certificate on record whatever it says. What a class needs is data;
how a machine is kept busy and looked at is the meter's. ``ouvrage node certificates`` tells which still count.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from ouvrage.adapters.audit_tables import need_table
from ouvrage.adapters.clock import monotonic_us, new_id, now_us
from ouvrage.adapters.health_sources import NotTold
from ouvrage.adapters.health_tables import thresholds, xid_table
from ouvrage.adapters.home import home
from ouvrage.adapters.host_disk import check_directory
from ouvrage.adapters.host_health import memory_controllers
from ouvrage.adapters.host_network import Peer, check_peer
from ouvrage.adapters.other_tests import other_tests
from ouvrage.adapters.power_port import PowerPort
from ouvrage.adapters.remote_config import power_port_of, remotes
from ouvrage.agent.parts import inventory_now
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.books.proven import figures, headroom
from ouvrage.cli.check import BY_NAME_ALONE
from ouvrage.cli.check_parts import CHECKS, Asked, is_absent
from ouvrage.cli.node_inventory import root_option, roots_of
from ouvrage.cli.node_proofs import moves_of, node_named, owned_node, push, recorded
from ouvrage.cli.node_proved import certificate_json, certificate_words, progress
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, wrote
from ouvrage.health.certificates import part_ids, valid_us
from ouvrage.health.findings import together
from ouvrage.health.needs import passed, proofs
from ouvrage.health.service_level import HOUR_US, promise
from ouvrage.health.xid import Rules
from ouvrage.meter.endurance import Plan, endure
from ouvrage.meter.host_check import Plan as HostPlan
from ouvrage.meter.host_check import check_host
from ouvrage.model.health import CRITICAL, NodeCertificate
from ouvrage.model.hosts import HostReading, reading

LONG_MINUTES = 2880
_TOOLS_S = 30
_MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a qualification was asked to do."""

    work_class: str
    minutes: float
    long: bool
    directory: str
    memory_share: int
    load: str | None
    wall: str | None
    peer: Peer | None
    channel: str | None
    root: str | None
    remote: PowerPort | None = None


@click.command("qualify")
@click.argument("node", metavar="[NODE]", required=False)
@click.option(
    "--for",
    "work_class",
    metavar="CLASS",
    required=True,
    help="foundation-training, fine-tuning, inference, image, video, rendering or batch.",
)
@click.option(
    "--minutes", metavar="N", type=click.FloatRange(0.02, 20_160), help="Of sustained load (30)."
)
@click.option(
    "--long", is_flag=True, help="48 hours of it, as hosting wants: a longer certificate."
)
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    default=".",
    help="A directory on the disk that work will use.",
)
@click.option(
    "--memory-share",
    metavar="PERCENT",
    type=click.IntRange(1, 90),
    default=50,
    help="Of memory to test (50).",
)
@click.option(
    "--load-command",
    "load",
    metavar="CMD",
    help="What keeps the GPUs busy for that long; ended after.",
)
@click.option(
    "--wall-meter", "wall", metavar="URL", help="A plug that tells the power: Shelly, Tasmota."
)
@click.option(
    "--network-peer", "url", metavar="URL", help="A server to measure against (GET, POST)."
)
@click.option(
    "--peer-mbit", "mbit", metavar="N", type=click.IntRange(1), help="How fast its own line is."
)
@click.option(
    "--channel", metavar="NAME", help="Where it is to be sold: its fee raises the price floor."
)
@root_option
@click.option(
    "--push", "pushed", is_flag=True, help="Also tell the platform that the node is part of."
)
@json_option
@plain_option
def node_qualify(node: str | None, pushed: bool, as_json: bool, plain: bool, **asked: Any) -> int:
    """Can this machine do what CLASS needs, for as long as it takes?

    \b
    Keeps every core, half of the memory, the disk under --dir and (with --load-command) the GPUs busy for 30 minutes,
    and compares what comes back. Run it on an idle machine. The disk is written up to 64 GiB.
    Exit code: 0 passed, 1 not. What it found is a certificate on record either way; a changed part voids it.
    """  # fmt: skip
    asked_for = _wanted(**asked)  # before anything is opened or asked
    name = node_named(node)
    wanted = replace(asked_for, remote=_remote(name))
    certificate = _certificate(name, wanted, as_json)
    fact = recorded(certificate, grade=Grade.MEASURED)
    wrote()
    if pushed:
        push(name, [fact])
    if as_json:
        say_json(certificate_json(certificate))
    else:
        say_text(certificate_words(certificate, need_table(), plain=plain))
    return 0 if certificate.passed else 1


def _remote(node: str) -> PowerPort | None:
    """The BMC or plug that ``remote.toml`` names for this machine; None where it names none."""
    return power_port_of(remotes(home())[node]) if node in remotes(home()) else None


def _wanted(
    *, work_class: str, minutes: float | None, long: bool, directory: str, url: str | None, mbit: int | None, **more: Any
) -> Wanted:  # fmt: skip
    need_table().of(work_class)
    check_directory(directory)
    if (url is None and mbit is not None) or (long and minutes is not None):
        raise OuvrageError(
            "qualify/options", "--peer-mbit goes with --network-peer, and --minutes not with --long",
            hint="ouvrage node qualify --help",
        )  # fmt: skip
    peer = None if url is None else Peer(url=url, mbit=mbit)
    if peer is not None:
        check_peer(peer)
    return Wanted(
        work_class=work_class,
        minutes=LONG_MINUTES if long else (minutes or float(need_table().bounds["standard_minutes"])),
        long=long,
        directory=os.path.abspath(directory),
        peer=peer,
        **more,
    )  # fmt: skip


def _certificate(node: str, wanted: Wanted, as_json: bool) -> NodeCertificate:
    table, bar = need_table(), progress(as_json)
    parts = part_ids(inventory_now(node, roots_of(wanted.root), ask_topology=False).parts)
    try:
        readings = _readings(wanted, bar)
    finally:
        bar.clear()
    now = now_us()
    owned = owned_node(node, wanted.channel, now)
    readings += headroom(readings, owned, table.bounds)
    found = proofs(table, wanted.work_class, readings)
    tested = round(wanted.minutes * _MINUTE_S * 1_000_000)
    promised = promise(
        moves_of(node), now, levels=table.levels, least_days=table.bounds["record_days"],
        repair_us=int(table.bounds["repair_hours"] * HOUR_US),
    )  # fmt: skip
    return NodeCertificate(
        certificate=new_id(),
        node=node,
        work_class=wanted.work_class,
        passed=passed(found),
        proofs=found,
        figures=figures(readings, owned, promised),
        parts=parts,
        table=table.version,
        tested_us=tested,
        expires_us=now + valid_us(tested, table.bounds),
    )


def _readings(wanted: Wanted, bar: Any) -> list[HostReading]:
    """Everything that is measured, at rest, under load and after it."""
    plan = HostPlan(directory=wanted.directory, long=wanted.long, peer=wanted.peer, load=None)
    _, found = check_host(plan, bar.words)
    sys = roots_of(wanted.root).sys
    corrected, began = _corrected(sys), monotonic_us()
    found = _instead(found, endure(_load(wanted), bar.share))
    found.append(_gpus_used(found))
    after = _corrected(sys)
    if corrected is None or after is None:
        found.append(reading("memory.corrected", "errors", "no memory controller is watched here"))
    else:
        rise = after - corrected
        found.append(reading("memory.corrected", "errors", "as EDAC counts them", rise, rise))
    bar.words("checks of its health, other tests")
    found.append(_health(wanted, monotonic_us() - began))
    gpus = next((int(r.low) for r in found if r.id == "gpu.count" and r.low), 0)
    seconds = min(_TOOLS_S, wanted.minutes * _MINUTE_S / 2)
    return [*found, *other_tests(wanted.directory, seconds, gpus)]


def _load(wanted: Wanted) -> Plan:
    return Plan(
        seconds=wanted.minutes * _MINUTE_S,
        directory=wanted.directory,
        memory_percent=wanted.memory_share,
        gpu=wanted.load,
        wall=wanted.wall,
        sys=roots_of(wanted.root).sys,
        remote=wanted.remote,
    )


def _instead(before: Sequence[HostReading], after: Sequence[HostReading]) -> list[HostReading]:
    """Readings under load in place of those at rest, where both are there."""
    taken = {(each.id, each.part) for each in after}
    return [*(each for each in before if (each.id, each.part) not in taken), *after]


def _gpus_used(found: Sequence[HostReading]) -> HostReading:
    clocks = [each for each in found if each.id == "gpu.clock"]
    if not clocks:
        return reading("gpu.used", "", "no GPU can be read here")
    busy = sum(1 for each in clocks if each.low is not None)
    why = next((each.how for each in clocks if each.low is None), "each was busy under the load")
    return reading("gpu.used", "", why, busy, busy)


def _corrected(sys: str) -> int | None:
    try:
        controllers = memory_controllers(sys)
    except NotTold:
        return None
    return sum(each.corrected for each in controllers) if controllers else None


def _health(wanted: Wanted, took_us: int) -> HostReading:
    """How many checks are CRITICAL, with the lines of the kernel's log since the load began."""
    roots = roots_of(wanted.root)
    asked = Asked(
        rules=Rules(xids=xid_table(), bounds=thresholds()), text=None, since=took_us, expect=None, paths=(), memory=None,
        proc=roots.proc, sys=roots.sys, etc=roots.etc, var=roots.var, kmsg="/dev/kmsg", state=None, node=None,
    )  # fmt: skip
    wholes = [together(name, CHECKS[name](asked)) for name in CHECKS if name not in BY_NAME_ALONE]
    bad = [each for each in wholes if each.verdict == CRITICAL and not is_absent(each)]
    looked = sum(1 for each in wholes if not is_absent(each))
    how = f"{looked} checks afterwards" + "".join(f"; {e.check}: {e.reasons[0]}" for e in bad)
    return reading("health.verdict", "checks", how, len(bad), len(bad))
