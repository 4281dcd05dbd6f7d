"""The engine that leaves the choice of places to a Slurm: it asks for them, sees what was given, and has our runners execute there.

Decides that what is to be asked is a row before anybody asks, so that an answer that was lost never makes a second job; that an attempt is ordered
once Slurm gave it a node, exactly as the embedded engine orders it; and that a place which Slurm takes back ends its attempt. Order, shares,
preemption and backfill are Slurm's. Nothing outside is touched inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from ouvrage.adapters.slurm_commands import CommandFailed, Commands
from ouvrage.adapters.slurm_job import Asked, as_json, as_options
from ouvrage.adapters.slurm_rest import Denied, Rest, Unanswered
from ouvrage.base.time import SECOND
from ouvrage.placement.why import Why
from ouvrage.server.context import Platform
from ouvrage.server.engine import PLACEMENT, Observed, cancel_job
from ouvrage.server.services.holds import ALWAYS
from ouvrage.server.services.snapshots import Holding
from ouvrage.server.services.strangers import waits_for_proof
from ouvrage.server.slurm.accounts import Accounts
from ouvrage.server.slurm.asking import Ask, asks_for
from ouvrage.server.slurm.credential import Credential
from ouvrage.server.slurm.drains import RESUME, steps, withheld
from ouvrage.server.slurm.looking import Looking
from ouvrage.server.slurm.settings import SlurmSettings
from ouvrage.server.slurm.settling import Seen, Settling
from ouvrage.server.slurm.wanting import intend, planning_of, why_waiting
from ouvrage.store.platform.claims import take_claim
from ouvrage.store.platform.machines import all_nodes
from ouvrage.store.platform.slurm_jobs import SlurmJobRow, change_slurm_job, open_slurm_jobs
from ouvrage.store.platform.work import JobRow, any_waiting, jobs_by_id
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.places import script_of

_ALL_US = 5 * SECOND
_AGAIN_US = 5 * SECOND
"""So long what Slurm refused is not asked again."""
_AT_ONCE = 100
"""So many jobs are asked for before their answers are written down."""
_REFUSED = "refused"

_log = structlog.get_logger("ouvrage.server")


def on_slurm(platform: Platform, token: str, settings: SlurmSettings) -> OnSlurm:
    """The engine of a platform whose places a Slurm gives out."""
    commands = Commands(settings.user, settings.conf)
    credential = Credential(commands, platform.monotonic)
    rest = Rest(settings.rest, settings.user, credential.now)
    return OnSlurm(
        platform=platform, token=token, settings=settings, commands=commands, rest=rest, credential=credential,
        looking=Looking(commands, rest, credential, platform.monotonic), accounts=Accounts(settings, commands),
    )  # fmt: skip


@dataclass(slots=True, kw_only=True)
class OnSlurm:
    """Places by Slurm, execution by our runners. ``holding`` says what may not be asked for, money among it."""

    platform: Platform
    token: str
    settings: SlurmSettings
    commands: Commands
    rest: Rest
    credential: Credential
    looking: Looking
    accounts: Accounts
    holding: list[Holding] = field(default_factory=lambda: list(ALWAYS))
    _trouble: str = ""
    _all_next_us: int = 0

    def __post_init__(self) -> None:
        self.holding.append(waits_for_proof(self.platform))

    def submit(self, tx: Transaction, job: JobRow) -> None:
        """Nothing more than its row: every look sees it."""

    def withhold(self, tx: Transaction, node: str, device: str | None) -> None:
        """Nothing more than the fence's row: every look sees it."""

    def close(self) -> None:
        """Let go of slurmrestd."""
        self.rest.close()

    def cancel(self, tx: Transaction, job: JobRow, *, why: str, reason: str) -> None:
        """End a job; what Slurm has of it is taken back at the next look."""
        cancel_job(self.platform, tx, job, why=why, reason=reason)

    def observe(self) -> Observed:
        """One look: write down what is to be asked, see what Slurm says, follow that, ask. By one server process at a time."""
        try:
            self._drain()
            return self._observe()
        except CommandFailed as trouble:
            if str(trouble) != self._trouble:
                _log.warning("slurm.away", why=str(trouble))
            self._trouble = str(trouble)
            return Observed()

    def _observe(self) -> Observed:
        with self.platform.reading() as connection:
            busy = any_waiting(connection) or open_slurm_jobs(connection)
        every = self._all_due()
        if not busy and not every:
            return Observed()
        with self.platform.writing() as tx:
            if not self._claim(tx):
                return Observed()
            refused = intend(self.platform, tx, self.holding, every=every)
        with self.platform.reading() as connection:
            rows = open_slurm_jobs(connection)
        settled = self._settle(self.looking.look(rows))
        self._trouble = ""
        self._take_back(settled.take_back)
        self._ask()
        self.platform.wakes.tell(*(f"node:{node}" for node in settled.nodes))
        return Observed(
            started=tuple(settled.started),
            stopped=tuple(settled.stopped),
            refused=tuple(sorted(refused)),
        )

    def _all_due(self) -> bool:
        """Whether to look at everything: money ends, deadlines pass and controllers revive jobs, and nobody says so."""
        now = self.platform.monotonic()
        due = now >= self._all_next_us
        if due:
            self._all_next_us = now + _ALL_US
        return due

    def _claim(self, tx: Transaction) -> bool:
        for_us = self.platform.limits.claim_us
        return take_claim(tx.connection, PLACEMENT, self.token, now_us=tx.now_us, for_us=for_us)

    def _drain(self) -> None:
        """Drain the nodes that are withheld here, and let those go on that are no more; other people's drains are theirs."""
        with self.platform.reading() as connection:
            wanted = withheld(connection)
            names = {row.name for row in all_nodes(connection)}
        if not names or not steps(self.looking.nodes(), wanted, names):
            return
        with self.platform.writing() as tx:
            if not self._claim(tx):
                return
        self.looking.forget_nodes()  # somebody may have drained one since, for a reason of theirs
        for node, due in steps(self.looking.nodes(), wanted, names):
            if due == RESUME:
                self.commands.resume(node)
            else:
                self.commands.drain(node, due)
            _log.info("slurm.node", node=node, step=due or "resumed")
        self.looking.forget_nodes()

    def _settle(self, seen: Seen) -> Settling:
        """Follow what was seen, in one transaction."""
        with self.platform.writing() as tx:
            settling = Settling(self.platform, tx, seen)
            if self._claim(tx):
                settling.all()
        return settling

    def _take_back(self, asked: Iterable[tuple[int, str]]) -> None:
        for number, why in asked:
            try:
                self.rest.cancel(number)
                _log.info("slurm.taken_back", job=number, why=why)
            except (Denied, Unanswered) as trouble:  # the next look finds it still there
                self.credential.doubt()
                _log.warning("slurm.not_taken_back", job=number, why=str(trouble))

    # Asking

    def _ask(self) -> None:
        """Ask for what is wanted. That somebody asks is written down before, and the answers after."""
        while asks := self._next():
            answers = self._answers(asks)
            with self.platform.writing() as tx:
                for attempt, values in answers.items():
                    change_slurm_job(tx.connection, attempt, **values)
            if any(not values for values in answers.values()):
                return  # whoever follows would wait as long

    def _answers(self, asks: Sequence[Ask]) -> Mapping[str, Mapping[str, Any]]:
        """By attempt, what its row becomes: nothing else than it is where nobody knows."""
        found: dict[str, Mapping[str, Any]] = {}
        unanswered = False
        for ask in asks:
            try:
                found[ask.row.attempt] = {"state": "wanted"} if unanswered else self._answer(ask)
            except Unanswered as trouble:
                _log.warning("slurm.unanswered", attempt=ask.row.attempt, why=str(trouble))
                found[ask.row.attempt] = {}
                unanswered = True
            except (Denied, CommandFailed) as trouble:
                self.credential.doubt()
                found[ask.row.attempt] = _refusal(str(trouble))
        return found

    def _answer(self, ask: Ask) -> Mapping[str, Any]:
        if ask.asked is None:
            return _refusal(ask.reason)
        number = self._submit(ask.row.attempt, ask.asked)
        return {"state": "queued", "number": number, "word": None, "reason": None}

    def _submit(self, attempt: str, asked: Asked) -> int:
        script = script_of(attempt, self.settings.places)
        if asked.not_on:
            return self.commands.submit(script, as_options(asked))
        return self.rest.submit(script, as_json(asked))

    def _next(self) -> list[Ask]:
        """The next places to ask for, written down as being asked."""
        layout = self.looking.nodes()
        with self.platform.reading() as connection:
            now = self.platform.clock()
            rows = [row for row in open_slurm_jobs(connection) if _is_due(row, now)][:_AT_ONCE]
            jobs = list(jobs_by_id(connection, [row.job for row in rows]).values())
            planning = planning_of(self.platform, connection, now, self.holding, jobs)
            asks = asks_for(connection, rows, planning, layout, self.accounts, self.settings)
        if not asks:
            return []
        with self.platform.writing() as tx:
            if not self._claim(tx):
                return []
            # A claim can have run out and been taken again since they were read: whoever held it meanwhile may have asked.
            due = {row.attempt for row in open_slurm_jobs(tx.connection) if _is_due(row, now)}
            asks = [ask for ask in asks if ask.row.attempt in due]
            for ask in asks:
                change_slurm_job(tx.connection, ask.row.attempt, state="asked", asked_us=tx.now_us)
        return asks

    # Why it waits

    def explain(self, connection: Connection, job: JobRow) -> Why | None:
        """Why a job waits: our own reason where there is one, else Slurm's."""
        if job.state != "waiting":
            return None
        now = self.platform.clock()
        planning = planning_of(self.platform, connection, now, self.holding, [job])
        row = next(iter(open_slurm_jobs(connection, job.job)), None)
        return why_waiting(planning, job, row)


def _refusal(words: str) -> Mapping[str, Any]:
    """What becomes of a row that Slurm does not take: it is asked again later."""
    return {"state": "wanted", "word": _REFUSED, "reason": words}


def _is_due(row: SlurmJobRow, now_us: int) -> bool:
    """Whether it is to be asked for now: what was refused, after a while."""
    paused = row.word == _REFUSED and (row.asked_us or 0) > now_us - _AGAIN_US
    return row.state == "wanted" and not paused
