"""One platform on one Slurm with two runners, for all tests of this directory: each uses jobs and offers of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from ouvrage.server.slurm.engine import OnSlurm
from ouvrage.server.slurm.settings import SlurmSettings
from ouvrage.store.platform.slurm_tables import slurm_jobs
from ouvrage.store.platform.work import AttemptRow, attempts_of
from ouvrage.wire.places import name_of
from tests.support.driven import (
    PARTITION,
    PLACES_USER,
    Runners,
    partition_of_ours,
    places_of,
    runners,
    until,
)
from tests.support.orders import missing
from tests.support.relay import Relay
from tests.support.server import QUICK, Client, Running, running
from tests.support.slurm import Slurm, lab

__all__ = ["lab"]


@dataclass
class Driven:
    """A platform that Slurm gives places to. ``relay`` stands between it and slurmrestd."""

    lab: Slurm
    server: Running
    runners: Runners
    relay: Relay
    acme: Client

    @property
    def owner(self) -> Client:
        return self.server.owner

    @property
    def engine(self) -> OnSlurm:
        return self.server.app.state.engine

    def offer(self, name: str, **more: Any) -> str:
        terms = {"name": name, "cpus": 1, "memory_mib": 64, "disk_mib": 16, "rate": "3.60", **more}
        self.owner.post("/v1/offers", terms)
        return name

    def submit(self, *command: str, offer: str = "small", **spec: Any) -> str:
        asked = {"project": "main", "offer": offer, "spec": {"command": list(command), **spec}}
        return self.acme.post("/v1/jobs", asked)["job"]

    def job(self, job: str) -> dict[str, Any]:
        return self.acme.get(f"/v1/jobs/{job}")

    def until(self, job: str, *states: str) -> dict[str, Any]:
        until(
            lambda: self.job(job)["state"] in states,
            lambda: f"{states}: {self.job(job)}\n{self.runners.words()}",
        )
        return self.job(job)

    def explained(self, job: str) -> dict[str, Any]:
        return self.owner.get(f"/v1/jobs/{job}/explain")

    def queue(self, form: str = "%A %T") -> list[str]:
        """Our jobs that Slurm has and that are not over."""
        return self.lab.run("squeue", "-h", "-u", PLACES_USER, "-o", form).splitlines()

    def attempts(self, job: str) -> list[AttemptRow]:
        with self.server.platform.reading() as connection:
            return attempts_of(connection, job)

    def named(self, job: str) -> list[str]:
        """The jobs that Slurm ever had for the attempts of a job, each as number, state and node."""
        with self.server.platform.reading() as connection:
            query = select(slurm_jobs.c.attempt).where(slurm_jobs.c.job == job)
            names = ",".join(name_of(row.attempt) for row in connection.execute(query))
        form = "JobID:|,State:|,NodeList:|"
        return self.lab.run("squeue", "-h", "-t", "all", f"--name={names}", "-O", form).split()

    def cancel(self, *jobs: str) -> None:
        for job in jobs:
            self.acme.post(f"/v1/jobs/{job}/cancel", {})
        for job in jobs:
            self.until(job, "cancelled")
        self.settle()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """While the partition starts nothing."""
        self.lab.run("scontrol", "update", f"PartitionName={PARTITION}", "State=DOWN")
        try:
            yield
        finally:
            self.lab.run("scontrol", "update", f"PartitionName={PARTITION}", "State=UP")

    def settle(self) -> None:
        """Wait until Slurm has nothing of ours."""
        form = "%A %j %T %r %N"
        until(
            lambda: not self.queue(),
            lambda: f"nothing of ours at Slurm: {self.queue(form)}\n{self.runners.words()}",
        )


@pytest.fixture(scope="session")
def driven(lab: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    why = missing()
    if why:
        pytest.skip(why)
    at: Path = tmp_path_factory.mktemp("driven")
    with ExitStack() as ends:
        rest = ends.enter_context(partition_of_ours(lab))
        relay = ends.enter_context(Relay(rest))
        settings = SlurmSettings(
            rest=relay.url, user=PLACES_USER, places=str(places_of(lab)), conf=f"{lab.directory}/etc/slurm.conf",
            partition=PARTITION, interruptible_qos="spot", qos="prime", partitions={"gpus": "gpu"},
        )  # fmt: skip
        server = ends.enter_context(
            running(at / "state", settings=replace(QUICK, slurm=settings), copied=True)
        )
        tokens = [server.owner.post("/v1/nodes/enrolments", {})["secret"] for _ in range(2)]
        working = ends.enter_context(runners(lab, at, server.url, tokens))
        acme = server.tenant("acme")
        made = Driven(lab, server, working, relay, acme)
        until(lambda: len(server.owner.get("/v1/nodes")["items"]) == 2, lambda: working.words())
        made.offer("small")
        yield made
