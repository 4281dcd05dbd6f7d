"""What follows from the health of machines: a look records what ``health/response`` answers, and lets it be carried out.

Decides nothing about health. One server process at a time looks, under a claim: it reads what is new, asks, records moves, fences, remedies
and pages in one transaction with the rows that placement reads, and wakes whoever that concerns. A power cycle is the server's to carry
out, since it alone outlasts the machine; every other rung a node climbs by itself (``NodeDuties``). What was intended is recorded first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from ouvrage.adapters.health_owner import OwnerFile
from ouvrage.adapters.health_tables import thresholds
from ouvrage.base.grades import Grade
from ouvrage.base.time import MINUTE
from ouvrage.health.owner import Owner
from ouvrage.health.record import HealthRecord
from ouvrage.health.response import Ordered, Response, respond
from ouvrage.health.situation import Situation, place_name
from ouvrage.health.states import AUTOMATION
from ouvrage.ledger.facts import Fact
from ouvrage.model.health import Remedy, StateMove
from ouvrage.server.context import SERVER, Platform
from ouvrage.server.engine import stop
from ouvrage.server.recording import record, stated
from ouvrage.server.services.blaming import blame_late
from ouvrage.server.services.node_health import WATCH
from ouvrage.server.wakes import ENGINE, HEALTH
from ouvrage.store.platform.claims import moments, take_claim
from ouvrage.store.platform.machines import all_nodes, all_runners, set_fence
from ouvrage.store.platform.work import AttemptRow, open_attempts
from ouvrage.store.transaction import Transaction

CLAIM = "health"
BY_SERVER = frozenset({"power_cycle"})
"""Rungs that the server climbs."""

_ENDS_WORK = frozenset({"gpu_reset", "reboot", "power_cycle"})
"""What asks for one of these is broken, so that what runs on it is lost or in doubt."""

_log = structlog.get_logger("ouvrage.server")
Cycle = Callable[[str], None]
"""Takes a node's power away and gives it back, by its name; raises where that did not happen."""


@dataclass(slots=True)
class HealthLoop:
    """One server process's look at health. ``cycle`` None: no node's power can be reached."""

    platform: Platform
    token: str
    cycle: Cycle | None = None
    monotonic: Callable[[], int] | None = None
    owner: OwnerFile = field(init=False)
    listens_us: int = field(init=False)
    """Since when it hears of nodes: silence before that is our own."""
    _last: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.owner = OwnerFile(self.platform.state_dir)
        self.listens_us = self.platform.clock()
        self._last = (self.listens_us, self._monotonic())

    def _monotonic(self) -> int:
        return (self.monotonic or self.platform.monotonic)()

    def _listens(self, now_us: int) -> int:
        """Since when it hears of nodes: a clock that jumped, or a machine that slept, begins anew."""
        (last, steady), now = self._last, (now_us, self._monotonic())
        self._last = now
        if abs(now[0] - last - (now[1] - steady)) > MINUTE:
            self.listens_us = now_us
        return self.listens_us

    def look(self) -> Response | None:
        """Look once; None where another process does."""
        platform, owner = self.platform, self.owner.read()
        if self.owner.fault is not None:
            _log.error("health.owner", why=self.owner.fault)
        with platform.writing() as tx:
            for_us = platform.limits.claim_us
            if not take_claim(tx.connection, CLAIM, self.token, now_us=tx.now_us, for_us=for_us):
                return None
            running = open_attempts(tx.connection)
            with platform.health.at(tx.connection) as known:
                found = respond(self._situation(tx, known, owner, running), tx.now_us, thresholds())
                names = {node: machine.name for node, machine in known.machines.items()}
                facts = _facts(platform, tx, found, names)
                told = _stopped(platform, tx, found, known, owner, running)
                mine = [each for each in found.ordered if each.rung in BY_SERVER]
                facts += [_begun(platform, tx, each, names) for each in mine]
                blame_late(platform, tx, known)
            tx.note(facts)
        if facts or told:
            platform.wakes.tell(ENGINE, HEALTH, *(f"node:{node}" for node in told))
        elif found.ordered:
            platform.wakes.tell(*(f"node:{each.place[0]}" for each in found.ordered))
        for each in mine:
            threading.Thread(
                target=self._cycled, args=(each, names), name="ouvrage-power", daemon=True
            ).start()
        return found

    def _situation(
        self, tx: Transaction, known: HealthRecord, owner: Owner, running: list[AttemptRow]
    ) -> Situation:
        rows, runners = all_nodes(tx.connection), all_runners(tx.connection)
        silent: dict[str, int] = {}
        unwatched: dict[str, int] = {}
        watches, since = moments(tx.connection, WATCH), self._listens(tx.now_us)
        for row in rows:
            runner, heard = runners.get(row.node), known.machine(row.node).heard
            # Of what nothing ever looks at, silence says nothing.
            if runner is not None and heard:
                silent[row.node] = tx.now_us - max(runner.seen_us, since)
            if heard and row.node in watches and row.name not in owner.unwatched:
                unwatched[row.node] = tx.now_us - max(watches[row.node], since)
        return Situation(
            record=known,
            nodes=frozenset(row.node for row in rows),
            busy=frozenset(
                (each.node, device)
                for each in running
                for device in (each.placed.devices or (None,))
            ),
            turned_on=owner.turned_on - (frozenset() if self.cycle else BY_SERVER),
            observed=frozenset(row.node for row in rows if row.name in owner.observed),
            silent=silent,
            unwatched=unwatched,
        )

    def _cycled(self, ordered: Ordered, names: Mapping[str, str]) -> None:
        """Cycle a node's power and record what came of it."""
        outcome, why = "done", "its power was off, and is on again"
        try:
            assert self.cycle is not None
            self.cycle(names[ordered.place[0]])
        except Exception as error:  # noqa: BLE001 - whatever a BMC does, its rung has failed and is recorded
            outcome, why = "failed", f"{type(error).__name__}: {error}"[:300]
        with self.platform.writing() as tx:
            fact = _remedy(self.platform, tx, ordered, names, outcome, why)
            tx.note([fact])
        self.platform.wakes.tell(HEALTH)


def _facts(
    platform: Platform, tx: Transaction, found: Response, names: Mapping[str, str]
) -> list[Fact]:
    """Facts of a response, and the rows and lines of the trail that go with them."""
    facts = [_said(platform, tx, each, names[each.node]) for each in found.moves]
    for fence in found.fences:
        if not set_fence(tx.connection, fence, tx.now_us):
            continue
        name = names[fence.node]
        action = "node.fence" if fence.held else "node.unfence"
        detail = f"{fence.device or 'all of it'}: {fence.why}"
        fact = _said(platform, tx, fence, name)
        record(
            tx, platform, SERVER, action, org=None, target=fence.node, detail=detail, facts=(fact,)
        )
    facts += [_said(platform, tx, each, names[each.node]) for each in found.remedies]
    for page in found.pages:
        subject = names.get(page.node or "", "fleet")
        _log.warning("health.page", words=page.words, runbook=page.runbook)
        fact = _said(platform, tx, page, subject)
        record(
            tx, platform, SERVER, "health.page", org=None, target=page.node, detail=page.words,
            facts=(fact,),
        )  # fmt: skip
    return facts


def _said(platform: Platform, tx: Transaction, value: Any, name: str) -> Fact:
    return stated(platform, value, subject=f"node:{name}", at_us=tx.now_us, until_us=tx.now_us)


def _begun(platform: Platform, tx: Transaction, ordered: Ordered, names: Mapping[str, str]) -> Fact:
    return _remedy(platform, tx, ordered, names, "waiting", ordered.why)


def _remedy(
    platform: Platform, tx: Transaction, ordered: Ordered, names: Mapping[str, str],
    outcome: str, why: str,
) -> Fact:  # fmt: skip
    node, device = ordered.place
    remedy = Remedy(
        node=node, device=device, rung=ordered.rung, outcome=outcome, verified=None, dry_run=False,
        by=AUTOMATION, why=why, epoch=ordered.epoch,
    )  # fmt: skip
    return stated(
        platform, remedy, subject=f"node:{names[node]}", at_us=tx.now_us, until_us=tx.now_us,
        grade=Grade.MEASURED,
    )  # fmt: skip


def _stopped(
    platform: Platform, tx: Transaction, found: Response, known: HealthRecord, owner: Owner,
    running: list[AttemptRow],
) -> set[str]:  # fmt: skip
    """End what runs on a part that is broken, where its owner turned that on: it goes on elsewhere, and nobody pays for it."""
    told: set[str] = set()
    if "restart_job" not in owner.turned_on:
        return told
    for move in found.moves:
        against = known.against((move.node, move.device))
        if move.to_state != "fenced" or not against:
            continue
        if against[0].asks not in _ENDS_WORK:
            continue
        for attempt in running:
            if attempt.node == move.node and _on(attempt, move):
                name = place_name((move.node, move.device), known)
                stop(platform, tx, attempt, why="hardware", reason=f"{name}: {move.reason}")
                told.add(move.node)
    return told


def _on(attempt: AttemptRow, move: StateMove) -> bool:
    return move.device is None or move.device in attempt.placed.devices
