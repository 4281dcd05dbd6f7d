"""A runner that runs nothing: it speaks the wire over real HTTP and ends attempts as the test tells it to.

Keeps what a real runner keeps on its disk (which attempts it knows, its events with their sequence, the logs), so that it can be
cut off, told things twice, and started again with or without its memory.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from ouvrage.wire.runner import (
    Ask,
    Began,
    Device,
    Ended,
    Enrol,
    Enrolled,
    Event,
    Held,
    Inventory,
    LogPlace,
    Orders,
    Progress,
    Received,
    Report,
    Standing,
    Start,
    Stop,
    Used,
)

NO_CA = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Never used: the system's list takes a tenth of a second to read."""
NOTHING = Used(
    memory_bytes=None, cpu_us=None, processes=None, disk_bytes=None, sent_bytes=None,
    received_bytes=None, oom_kills=None,
)  # fmt: skip


def inventory(name: str = "node-1", *, cpus: int = 4, gpus: int = 0, **more: Any) -> Inventory:
    """A node of some cores and GPUs."""
    devices = [
        Device(device=f"GPU-{name}-{n}", slot=n, model="NVIDIA GeForce RTX 4090", memory_mib=24564)
        for n in range(gpus)
    ]
    values: dict[str, Any] = {
        "name": name, "cpus": list(range(cpus)), "memory_mib": 65536, "disk_mib": 100_000,
        "devices": devices, "isolations": ["sandbox", "none"], "cgroup": "v1", "boot": "boot-1",
        "version": "0",
    }  # fmt: skip
    return Inventory(**{**values, **more})


@dataclass
class Twin:
    """An enrolled runner. ``states`` are the attempts it knows and how far they are."""

    http: httpx2.Client
    node: str
    key: str
    clock: Callable[[], int]
    sequence: int = 0
    states: dict[str, str] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    told: list[Event] = field(default_factory=list)

    @classmethod
    def enrolled(
        cls, url: str, token: str, clock: Callable[[], int], inv: Inventory | None = None
    ) -> Twin:
        """A runner that joins with a one-time token."""
        http = httpx2.Client(base_url=url, timeout=60, verify=NO_CA)
        asked = Enrol(token=token, inventory=inv or inventory())
        answer = http.post("/v1/runner/enrol", content=asked.model_dump_json(), headers=_JSON)
        assert answer.status_code == 201, answer.text
        joined = Enrolled.model_validate_json(answer.content)
        return cls(http=http, node=joined.node, key=joined.key, clock=clock)

    def send(self, method: str, path: str, content: bytes | str, **params: Any) -> httpx2.Response:
        headers = {**_JSON, "Authorization": f"Bearer {self.key}"}
        return self.http.request(method, path, content=content, headers=headers, params=params)

    def ask(self, wait_s: float = 0, *, inv: Inventory | None = None) -> Orders:
        """Ask for orders and take them up: what is to start is known from now on."""
        known = [Standing(attempt=a, state=s) for a, s in self.states.items()]  # type: ignore[arg-type]  # states are the wire's words
        asked = Ask(inventory=inv, known=known, wait_s=wait_s)
        answer = self.send("POST", "/v1/runner/orders", asked.model_dump_json())
        assert answer.status_code == 200, answer.text
        orders = Orders.model_validate_json(answer.content)
        for order in orders.orders:
            self._take_up(order)
        return orders

    def _take_up(self, order: Any) -> None:
        if isinstance(order, Start):
            if order.attempt not in self.states:
                self.starts.append(order)
                self.states[order.attempt] = "starting"
        elif isinstance(order, Stop):
            self.stops.append(order)
            if self.states.get(order.attempt) in ("starting", "running"):
                self.states[order.attempt] = "stopping"
        else:
            self.states.pop(order.attempt, None)

    def _next(self) -> int:
        self.sequence += 1
        return self.sequence

    def report(self, events: Iterable[Event]) -> Received:
        """Send events, whatever they are."""
        body = Report(events=list(events)).model_dump_json()
        answer = self.send("POST", "/v1/runner/events", body)
        assert answer.status_code == 200, answer.text
        return Received.model_validate_json(answer.content)

    def began(self, attempt: str, at: int | None = None) -> Began:
        """The event that an attempt began; it is not sent."""
        at = self.clock() if at is None else at
        self.states[attempt], self.begun[attempt] = "running", at
        event = Began(sequence=self._next(), attempt=attempt, at=at)
        self.told.append(event)
        return event

    def held(self, attempt: str, word: str = "HERE") -> Held:
        """The event that Slurm's place for an attempt is there, or was sent a signal; it is not sent."""
        return Held(sequence=self._next(), attempt=attempt, at=self.clock(), word=word)

    def progress(self, attempt: str, units: int, *, idle_us: int = 0, **more: Any) -> Progress:
        """The event of some units done; it is not sent."""
        event = Progress(
            sequence=self._next(), attempt=attempt, at=self.clock(), unit="epoch", units=units,
            unit_us=1000, idle_us=idle_us, used=NOTHING, **more,
        )  # fmt: skip
        self.told.append(event)
        return event

    def ended(self, attempt: str, outcome: str = "done", **more: Any) -> Ended:
        """The event that an attempt ended; it is not sent."""
        at = more.pop("ended", None) or self.clock()
        began = self.begun.get(attempt)
        self.states[attempt] = "ended"
        values: dict[str, Any] = {
            "began": began, "ended": at, "wall_us": 0 if began is None else at - began,
            "exit_code": 0 if outcome == "done" else 1, "signal": None, "outcome": outcome,
            "cause": "program", "reason": outcome, "isolation": "sandbox", "used": NOTHING,
            "scrub": "clean", "scrub_detail": "",
        }  # fmt: skip
        event = Ended(sequence=self._next(), attempt=attempt, **{**values, **more})
        self.told.append(event)
        return event

    def log(self, attempt: str, offset: int, content: bytes) -> LogPlace:
        """Append to an attempt's log."""
        answer = self.send("PUT", f"/v1/runner/attempts/{attempt}/log", content, offset=offset)
        assert answer.status_code == 200, answer.text
        return LogPlace.model_validate_json(answer.content)

    def close(self) -> None:
        self.http.close()


_JSON = {"Content-Type": "application/json"}
