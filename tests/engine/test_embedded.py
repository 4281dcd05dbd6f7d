"""The embedded engine keeps to the contract of all engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ouvrage.model.machines import FenceSet
from ouvrage.server.engine import Engine, stop
from ouvrage.store.platform.machines import set_fence
from ouvrage.store.platform.work import attempts_of, job_of
from tests.engine.contract import EngineContract
from tests.platform.working import Working, working_on


@dataclass
class Embedding:
    """The embedded engine with a runner that runs nothing."""

    working: Working
    engine: Engine

    def submit(self, **spec: Any) -> str:
        return self.working.submit(self.working.owner, "small", **spec)["job"]

    def state(self, job: str) -> str:
        return self.working.owner.get(f"/v1/jobs/{job}")["state"]

    def attempts(self, job: str) -> list[Any]:
        with self.working.server.platform.reading() as connection:
            return list(attempts_of(connection, job))

    @property
    def twin(self) -> Any:
        return self.working.twins[0]

    def begin(self, job: str) -> None:
        self.twin.ask()
        self.twin.report([self.twin.began(self.attempts(job)[-1].attempt)])

    def end(self, job: str, outcome: str = "done") -> None:
        self.twin.report([self.twin.ended(self.attempts(job)[-1].attempt, outcome)])
        self.twin.ask()

    def told_to_stop(self, job: str) -> str | None:
        attempt = self.attempts(job)[-1].attempt
        for order in self.twin.ask().orders:
            if order.order == "stop" and order.attempt == attempt:
                return order.why
        return None

    def cancel(self, job: str, why: str = "cancelled") -> None:
        platform = self.working.server.platform
        with platform.writing() as tx:
            row = job_of(tx.connection, job)
            assert row is not None
            if why == "cancelled":
                self.engine.cancel(tx, row, why=why, reason="by the test")
                return
            for each in attempts_of(tx.connection, job):
                stop(platform, tx, each, why=why, reason="by the test")

    def withhold(self, device: str | None = None) -> None:
        with self.working.server.platform.writing() as tx:
            fence = FenceSet(
                node=self.twin.node,
                device=device,
                holder="automation",
                held=True,
                why="",
                by="test",
            )
            set_fence(tx.connection, fence, tx.now_us)
            self.engine.withhold(tx, self.twin.node, device)

    def explain(self, job: str) -> str | None:
        with self.working.server.platform.reading() as connection:
            row = job_of(connection, job)
            assert row is not None
            why = self.engine.explain(connection, row)
        return why and why.code

    def move(self, us: int) -> None:
        self.working.clock.move(us)
        self.twin.ask()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Embedding]:
    with working_on(tmp_path / "state") as working:
        working.node(cpus=4)
        working.offer("small", cpus=1)
        yield Embedding(working, working.engine)


class TestEmbedded(EngineContract):
    pass
