"""A platform with a node that really runs jobs in sandboxes: a server here, and ``ouvrage agent run`` beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.meter import SOURCES, until
from tests.support.server import Client, Running, running


@dataclass
class OwnNode:
    """The server, its one node, and an offer ``small`` of a core and a little memory."""

    server: Running
    state: Path
    runner: subprocess.Popen[bytes]

    @property
    def owner(self) -> Client:
        return self.server.owner

    def words(self) -> str:
        """What the runner said."""
        return (self.state / "agent.txt").read_text()

    def submit(self, who: Client, *command: str, **spec: Any) -> str:
        """A job's id."""
        where = {"lease": spec.pop("lease")} if "lease" in spec else {"offer": "small"}
        asked = {"project": "main", **where, "spec": {"command": list(command), **spec}}
        return who.post("/v1/jobs", asked)["job"]

    def state_of(self, who: Client, job: str) -> dict[str, Any]:
        return who.get(f"/v1/jobs/{job}")

    def until(self, who: Client, job: str, *states: str) -> dict[str, Any]:
        """The job once it is in one of these states."""

        def there() -> bool:
            return self.state_of(who, job)["state"] in states

        until(there, f"job in {states}: {self.state_of(who, job)}\n{self.words()}")
        return self.state_of(who, job)

    def until_well(self, who: Client, job: str) -> dict[str, Any]:
        """The job once its service is well."""
        self.until(who, job, "running")

        def well() -> bool:
            return (self.state_of(who, job)["service"] or {}).get("well") is True

        until(well, f"a service that is well\n{self.words()}")
        return self.state_of(who, job)

    def cancel(self, who: Client, job: str) -> None:
        who.post(f"/v1/jobs/{job}/cancel", {})
        self.until(who, job, "cancelled", "done", "failed")

    @contextmanager
    def serving(self, who: Client, program: str, name: str) -> Iterator[str]:
        """A service of somebody's that is well, written in Python; its job."""
        job = self.submit(who, "python3", "-c", program, port=8000, health="/health", name=name)
        self.until_well(who, job)
        yield job
        self.cancel(who, job)


@contextmanager
def own_node(state: Path) -> Iterator[OwnNode]:
    """A server and a runner on fresh directories below ``state``."""
    state.mkdir(exist_ok=True)
    with running(state / "state") as server:
        token = state / "enrol"
        token.write_text(server.owner.post("/v1/nodes/enrolments", {})["secret"])
        words = [sys.executable, "-m", "ouvrage", "agent", "run", "--state", str(state / "agent")]
        words += ["--server", server.url, "--enrol-file", str(token), "--name", "here"]
        words += ["--no-watch"]
        environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
        with (state / "agent.txt").open("ab") as log:
            runner = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        made = OwnNode(server, state, runner)
        try:
            until(lambda: server.owner.get("/v1/nodes")["items"], f"a node; {made.words()}")
            terms = {"name": "small", "cpus": 1, "memory_mib": 128, "disk_mib": 64, "rate": "3.60"}
            server.owner.post("/v1/offers", terms)
            yield made
        finally:
            runner.terminate()
            runner.wait(20)
