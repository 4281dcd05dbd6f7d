"""A check of this host from end to end: each test in a child, under a deadline, in turn.

Decides how long each may take and what is said where one does not answer. What the readings mean is not
decided here. Whatever ends it, Ctrl-C among others, ends the test that runs and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ouvrage.adapters.host_network import Peer
from ouvrage.adapters.host_speed import this_host
from ouvrage.meter.feed import command
from ouvrage.meter.host_gpus import Load, gpu_readings
from ouvrage.model.hosts import HostReading, reading
from ouvrage.model.runs import Host
from ouvrage.pricing.market.host_checks import host_readings
from ouvrage.pricing.market.promises import KINDS

MIB = 1 << 20
NOT_ASKED = "not read by the short check: --long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be checked, and how thoroughly."""

    directory: str
    long: bool
    peer: Peer | None
    load: Load | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One child: its name, words for whoever waits, settings, its deadline, and what it reads."""

    name: str
    words: str
    settings: dict[str, Any]
    deadline_s: float
    ids: tuple[str, ...]


Tell = Callable[[str], None]


def tests_of(plan: Plan) -> list[Test]:
    """The tests of a plan, in order."""
    long = plan.long
    peer = plan.peer
    cpu = {"alone_s": 3, "together_s": 5} if long else {"alone_s": 0.7, "together_s": 1.0}
    size, seconds, latency = (2048, 8, 2) if long else (256, 1.2, 0)
    disk = {
        "directory": plan.directory,
        "size": size * MIB,
        "seconds": seconds,
        "latency_s": latency,
    }
    network = {
        "url": None if peer is None else peer.url,
        "mbit": None if peer is None else peer.mbit,
        "seconds": 8 if long else 2,
    }
    found = [
        _test("cpu", "cores", cpu, 30 if long else 8),
        _test("disk", "disk", disk, 60 if long else 10),
        _test("network", "network", network, 30 if long else 8),
    ]
    if long:
        found.insert(1, _test("memory", "memory", {"seconds": 2}, 15))
    return found


def _test(name: str, words: str, settings: dict[str, Any], deadline_s: float) -> Test:
    first = {"network": "net"}.get(name, name)
    ids = {
        "cpu": ("cpu.thread", "cpu.delivered"),
        "memory": ("memory.copy",),
        "disk": ("disk.size", "disk.write", "disk.read"),
        "net": ("net.down", "net.up"),
    }[first]
    return Test(name=name, words=words, settings=settings, deadline_s=deadline_s, ids=ids)


def check_host(plan: Plan, tell: Tell) -> tuple[Host, list[HostReading]]:
    """Every reading of this host. ``tell`` gets words before each test."""
    host = this_host()
    found = host_readings(host)
    for test in tests_of(plan):
        tell(test.words)
        found += run_test(test)
    tell("GPUs" if plan.load is None else f"GPUs under load for {plan.load.seconds:g} s")
    found += gpu_readings(30 if plan.long else 8, plan.load)
    if not plan.long:
        found += [reading(id, KINDS[id].unit, NOT_ASKED) for id in ("memory.copy", "disk.latency")]
    return host, found


def run_test(test: Test) -> list[HostReading]:
    """The readings of one test; where it does not come to its end, readings that say so."""
    child = subprocess.Popen(
        command("ouvrage.meter.host_probe", test.name, json.dumps(test.settings)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        out, _ = child.communicate(timeout=test.deadline_s)
    except subprocess.TimeoutExpired:
        return _without(test, f"no answer within {test.deadline_s:g} s")
    finally:
        _end(child)
    try:
        return [HostReading(**each) for each in json.loads(out)]
    except (ValueError, TypeError):
        return _without(test, f"the test ended with {child.returncode} and without an answer")


def _without(test: Test, how: str) -> list[HostReading]:
    return [reading(id, KINDS[id].unit, how) for id in test.ids]


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and all it started; one that waits for a dead disk is left to the kernel."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(1)
    if child.stdout is not None:
        child.stdout.close()
    child.returncode = child.returncode or 0
