"""The child that makes one test of the host: ``python -m ouvrage.meter.host_probe NAME SETTINGS``.

A disk may hang, a name may never resolve, a test may be killed for its memory; so each runs here, and
whoever started it waits no longer than a deadline. It prints its readings as one JSON line and ends; it
decides nothing about them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from ouvrage.adapters.parent_death import end_with_the_parent
from ouvrage.model.hosts import HostReading

Settings = dict[str, Any]


def _cpu(given: Settings) -> list[HostReading]:
    from ouvrage.adapters.host_speed import cpu_readings

    return cpu_readings(given["alone_s"], given["together_s"])


def _memory(given: Settings) -> list[HostReading]:
    from ouvrage.adapters.host_speed import memory_readings

    return memory_readings(given["seconds"])


def _disk(given: Settings) -> list[HostReading]:
    from ouvrage.adapters.host_disk import Budget, disk_readings

    budget = Budget(size=given["size"], seconds=given["seconds"], latency_s=given["latency_s"])
    return disk_readings(given["directory"], budget)


def _network(given: Settings) -> list[HostReading]:
    from ouvrage.adapters.host_network import Peer, link_readings, network_readings

    peer = None if given["url"] is None else Peer(url=given["url"], mbit=given["mbit"])
    return [*link_readings(), *network_readings(peer, given["seconds"])]


TESTS: dict[str, Callable[[Settings], list[HostReading]]] = {
    "cpu": _cpu,
    "memory": _memory,
    "disk": _disk,
    "network": _network,
}


def main(arguments: Sequence[str]) -> int:
    """Make the test that is named, with the settings given as JSON."""
    end_with_the_parent()
    name, settings = arguments
    found = TESTS[name](json.loads(settings))
    print(json.dumps([asdict(each) for each in found]), flush=True)  # noqa: T201 -- it is what a parent reads
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
