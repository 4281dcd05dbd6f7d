"""A platform with a clock that tests move, an engine that looks when told, and runners that run nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ouvrage.ledger.facts import Recorded
from ouvrage.server.context import Settings
from ouvrage.server.engine import Embedded
from ouvrage.server.reconcile import reconcile
from ouvrage.server.work_limits import WorkLimits
from tests.support.runner_twin import Twin, inventory
from tests.support.server import QUICK, Client, Running, running

# Noon of 11 November 2026: far from the end of a day, a month and a year, at which platforms close accounts.
MIDMONTH_US = 1_794_398_400_000_000


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, at_us: int = MIDMONTH_US) -> None:
        self._lock = threading.Lock()
        self._now = at_us

    def __call__(self) -> int:
        with self._lock:
            return self._now

    def move(self, us: int) -> None:
        with self._lock:
            self._now += us


@dataclass
class Working:
    """A running platform. ``engine`` and ``reconcile`` look when a test calls them, and never by themselves."""

    server: Running
    clock: Clock
    engine: Embedded
    twins: list[Twin] = field(default_factory=list)

    @property
    def owner(self) -> Client:
        return self.server.owner

    def node(self, name: str = "node-1", **more: Any) -> Twin:
        """An enrolled node with a runner."""
        token = self.owner.post("/v1/nodes/enrolments", {})["secret"]
        return self.joined(token, name, **more)

    def joined(self, token: str, name: str = "node-1", **more: Any) -> Twin:
        """A node that joins with a one-time token."""
        twin = Twin.enrolled(self.server.url, token, self.clock, inventory(name, **more))
        self.twins.append(twin)
        return twin

    def offer(self, name: str, **more: Any) -> dict[str, Any]:
        """An offer of one core and a little memory, unless told otherwise."""
        terms = {"name": name, "cpus": 1, "memory_mib": 256, "rate": "0.30", **more}
        return self.owner.post("/v1/offers", terms)

    def tenant(self, name: str) -> Client:
        return self.server.tenant(name)

    def submit(self, who: Client, offer: str = "standard", **spec: Any) -> dict[str, Any]:
        """Submit a job; it does nothing in particular."""
        spec = {"command": ["true"], **spec}
        return who.post("/v1/jobs", {"project": "main", "offer": offer, "spec": spec})

    def reconcile(self) -> None:
        reconcile(self.server.platform, self.engine.token)

    def records(self) -> list[Recorded]:
        return self.server.platform.store.records()


@contextmanager
def working_on(
    state: Path,
    *,
    clock: Clock | None = None,
    monotonic: Callable[[], int] | None = None,
    settings: Settings = QUICK,
    **limits: Any,
) -> Iterator[Working]:
    """A platform whose loops look only at what tests tell them to."""
    clock, made = clock or Clock(), replace(WorkLimits(tick_us=0, listened_us=0), **limits)
    world: dict[str, Any] = {"clock": clock, "limits": made}
    if monotonic is not None:
        world["monotonic"] = monotonic
    with running(state, copied=True, settings=settings, **world) as server:
        engine = Embedded(platform=server.platform, token="test")
        work = Working(server, clock, engine)
        yield work
        for twin in work.twins:
            twin.close()
