"""Orders for attempts, as a server would give them, and a place on the disk where they are executed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ouvrage.adapters.clock import new_id
from ouvrage.adapters.sandbox_cgroup import group, standing
from ouvrage.agent.enclosure import Order, group_prefix
from ouvrage.agent.files import RESULT, AttemptFiles
from ouvrage.agent.nursery import Nursery
from ouvrage.wire.runner import Start

UID = 1_900_000_000


def an_order(*command: str, **changed: Any) -> Start:
    told: dict[str, Any] = {
        "attempt": new_id(), "job": new_id(), "project": new_id(), "lease": new_id(),
        "label": "a job", "isolation": "sandbox", "command": list(command), "image": None,
        "workdir": "/scratch", "environment": [], "secrets": [], "inputs": [], "outputs": [],
        "volumes": [], "checkpoint": None, "devices": [], "cpus": [0], "memory_mib": 64,
        "disk_mib": 16, "pids": 64, "network": "none", "egress": [], "port": None, "unit": None,
        "unit_regex": None, "price": None, "time_limit_us": None, "grace_us": 1_000_000,
        "log_limit_bytes": 1 << 20, "not_before": 0,
    }  # fmt: skip
    return Start.model_validate(told | changed)


class Node:
    """A runner's state directory without a runner."""

    def __init__(self, state: Path) -> None:
        self.state = state
        os.makedirs("/run/ouvrage", exist_ok=True)
        self.nursery = Nursery(state)

    def files(self, start: Start) -> AttemptFiles:
        return AttemptFiles(self.state / "attempts", start.attempt)

    def begin(self, start: Start, *, uid: int = UID, see: tuple[str, ...] = ()) -> AttemptFiles:
        files = self.files(start)
        order = Order(start=start, uid=uid, see=see, nodes=())
        files.keep(order.as_json(), [pair.model_dump() for pair in start.secrets])
        self.nursery.start(start.attempt)
        return files

    def run(self, start: Start, **choices: Any) -> dict[str, Any]:
        from .meter import until

        files = self.begin(start, **choices)
        until((files / RESULT).exists, f"a result; {self.trouble(files)}")
        return json.loads((files / RESULT).read_text())

    def trouble(self, files: AttemptFiles) -> str:
        path = files / "supervisor.txt"
        return path.read_text() if path.exists() else ""

    def log(self, start: Start) -> str:
        return (self.files(start) / "log").read_text("utf-8", "replace")

    def close(self) -> None:
        """End what a test that failed left running: it would outlive the test."""
        self.nursery.close()
        for name in standing(group_prefix(self.state)):
            left = group(name)
            left.kill()
            left.remove()


def missing() -> str | None:
    """Why no sandbox can be made on this machine, None where it can."""
    from ouvrage.adapters.bubblewrap import find
    from ouvrage.adapters.sandbox_cgroup import version
    from ouvrage.base.errors import OuvrageError

    if os.geteuid():
        return "sandboxes are made by root"
    try:
        find()
    except OuvrageError as error:
        return error.message
    return "no control groups can be made here" if version() == "none" else None
