"""A fleet as facts alone: verdicts go in, and each response is recorded and its rungs carried out as a test says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.health.laws import LAWS
from ouvrage.health.record import HealthRecord
from ouvrage.health.response import Ordered, Response, respond
from ouvrage.health.situation import Situation
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.health import MaintenanceWindow, Remedy, Verdict
from ouvrage.model.machines import DeviceSeen, NodeEnrolled
from ouvrage.model.work import Named
from tests.health.rules import BOUNDS
from tests.support.facts import SOURCE

S = 1_000_000
MINUTE = 60 * S
HOUR = 60 * MINUTE
NOON = 1_794_398_400_000_000


@dataclass
class Fleet:
    """``now`` moves as a test says; ``facts`` is the ledger."""

    now: int = NOON
    turned_on: frozenset[str] = frozenset()
    busy: set[tuple[str, str | None]] = field(default_factory=set)
    observed: frozenset[str] = frozenset()
    silent: Mapping[str, int] = field(default_factory=dict)
    facts: list[Recorded] = field(default_factory=list)
    record: HealthRecord = field(default_factory=HealthRecord)
    pages: list[str] = field(default_factory=list)
    ordered: tuple[Ordered, ...] = ()

    def put(self, value: Any, subject: str = "node:n1") -> Recorded:
        seq = len(self.facts) + 1
        fact = fact_of(
            value, source=SOURCE, id=f"{value.KIND}/{seq}", subject=subject, valid_from=self.now,
            valid_to=None, grade=Grade.MEASURED,
        )  # fmt: skip
        entry = Recorded(seq=seq, recorded_at=self.now, fact=fact)
        self.facts.append(entry)
        self.record.take(entry)
        return entry

    def node(self, name: str = "n1", gpus: int = 2, boot: str = "boot-1") -> None:
        devices = tuple(
            DeviceSeen(device=f"{name}-g{n}", slot=n, model="RTX", memory_mib=1)
            for n in range(gpus)
        )
        self.put(
            NodeEnrolled(
                node=name, name=name, cpus=(0,), memory_mib=1, disk_mib=1, devices=devices,
                isolations=(), cgroup="v1", boot=boot, version="0",
            )
        )  # fmt: skip

    def verdict(
        self, verdict: str = "CRITICAL", action: str = "gpu_reset", *, node: str = "n1",
        device: str | None = "n1-g0", check: str = "xid", code: str = "xid-95", boot: str = "boot-1",
        epoch: int | None = None, since: int | None = None, shadow: bool = False,
        evidence: tuple[Named, ...] = (), at_drain: str = "none", fence: str = "none",
    ) -> Recorded:  # fmt: skip
        return self.put(
            Verdict(
                node=node, device=device, check=check, verdict=verdict, code=code,
                evidence=evidence, action="none" if verdict == "OK" else action,
                at_drain=at_drain, fence=fence,
                since_us=self.now - NOON if since is None else since, boot=boot,
                epoch=self.record.machine(node).moves if epoch is None else epoch, shadow=shadow,
            )
        )  # fmt: skip

    def ok(self, **more: Any) -> Recorded:
        return self.verdict("OK", code="", **more)

    def look(self, after: int = 0) -> Response:
        """Respond and record it, until there is nothing more to say; the first response."""
        self.now += after
        first = found = self._respond()
        for _ in range(4):
            news = (*found.moves, *found.fences, *found.remedies, *found.pages)
            for value in news:
                self.put(value)
            self.pages += [page.words for page in found.pages]
            if not news:
                break
            found = self._respond()
        assert not (found.moves or found.fences or found.remedies or found.pages), "never enough"
        self.ordered = found.ordered
        return first

    def _respond(self) -> Response:
        situation = Situation(
            record=self.record, nodes=frozenset(self.record.machines), busy=frozenset(self.busy),
            turned_on=self.turned_on, observed=self.observed, silent=self.silent,
        )  # fmt: skip
        return respond(situation, self.now, BOUNDS)

    def climb(self, outcome: str = "done", by: str = "automation") -> Ordered:
        """Carry out the one rung that is ordered."""
        (order,) = self.ordered
        self.remedy(order.rung, outcome, by, order.place, order.epoch)
        return order

    def remedy(
        self, rung: str, outcome: str = "done", by: str = "sam",
        place: tuple[str, str | None] = ("n1", "n1-g0"), epoch: int = 0,
    ) -> None:  # fmt: skip
        self.put(
            Remedy(
                node=place[0], device=place[1], rung=rung, outcome=outcome, verified=None,
                dry_run=False, by=by, why="", epoch=epoch,
            )
        )  # fmt: skip

    def window(self, from_us: int, to_us: int, *, cancelled: bool = False) -> None:
        self.put(
            MaintenanceWindow(
                window="w1", node="n1", from_us=from_us, to_us=to_us, why="new fans", by="sam",
                cancelled=cancelled,
            )
        )  # fmt: skip

    def state(self, device: str | None = "n1-g0", node: str = "n1") -> str:
        return self.record.standing((node, device)).state

    def held(self, node: str = "n1", device: str | None = "n1-g0") -> frozenset[str]:
        return self.record.fences().holders(node, device)

    def path(self, device: str | None = "n1-g0") -> list[str]:
        return [m.move.to_state for m in self.record.moves if m.move.device == device]

    def lawful(self) -> None:
        for law in LAWS:
            assert list(law.check(self.facts)) == [], law.name
