"""The engine that leaves the choice of places to a Slurm: it asks for them, sees what was given, and has our runners execute there.

Decides that what is to be asked is a row before anybody asks, so that an answer that was lost never makes a second job; that an attempt is ordered
once Slurm gave it a node, exactly as the embedded engine orders it; and that a place which Slurm takes back ends its attempt. Order, shares,
preemption and backfill are Slurm's. Nothing outside is touched inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import structlog

from ouvrage.adapters.slurm_commands import Accounted, CommandFailed, Commands, Queued, SlurmNode
from ouvrage.adapters.slurm_job import Asked, as_json, as_options
from ouvrage.adapters.slurm_rest import Denied, Given, Rest, Unanswered
from ouvrage.base.time import SECOND
from ouvrage.placement.decide import Planning, kept_back
from ouvrage.placement.slurm_words import DONE, HAS_PLACE, why_it_waits
from ouvrage.placement.snapshot import Waiting
from ouvrage.placement.why import Why
from ouvrage.server.context import Platform
from ouvrage.server.engine import PLACEMENT, Observed, cancel_job
from ouvrage.server.services.attempts import end_job
from ouvrage.server.services.holds import ALWAYS, hopeless
from ouvrage.server.services.snapshots import POLICY, Holding, snapshot_of
from ouvrage.server.services.strangers import waits_for_proof
from ouvrage.server.slurm_asking import asked_for, partition_of
from ouvrage.server.slurm_drains import RESUME, step, withheld
from ouvrage.server.slurm_seen import Seen, Settling, mine
from ouvrage.server.slurm_settings import SlurmSettings
from ouvrage.store.platform.claims import take_claim
from ouvrage.store.platform.machines import all_nodes
from ouvrage.store.platform.selling import offers_by_id
from ouvrage.store.platform.slurm_jobs import (
    SlurmJobRow,
    change_slurm_job,
    needless_rows,
    open_slurm_jobs,
    put_slurm_job,
    unasked_jobs,
)
from ouvrage.store.platform.tenancy import organisation_of, project_of
from ouvrage.store.platform.work import JobRow, any_waiting, jobs_by_id, jobs_in
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.places import attempt_named, name_of, script_of

_TOKEN_S = 3600
_LAYOUT_US = 10 * SECOND
_ALL_US = 5 * SECOND
_AT_ONCE = 100
"""So many jobs are asked for before their answers are written down."""

_log = structlog.get_logger("ouvrage.server")


def on_slurm(platform: Platform, token: str, settings: SlurmSettings) -> OnSlurm:
    """The engine of a platform whose places a Slurm gives out."""
    commands = Commands(settings.user, settings.conf)
    pass_ = _Pass(commands, platform)
    return OnSlurm(
        platform=platform,
        token=token,
        settings=settings,
        commands=commands,
        rest=Rest(settings.rest, settings.user, pass_.now),
    )


class _Pass:
    """The JWT that is shown to slurmrestd, renewed halfway through its life."""

    def __init__(self, commands: Commands, platform: Platform) -> None:
        self._commands, self._platform = commands, platform
        self._token, self._until_us = "", 0

    def now(self) -> str:
        """One that holds for a while yet."""
        now = self._platform.monotonic()
        if now >= self._until_us:
            self._token = self._commands.token(_TOKEN_S)
            self._until_us = now + _TOKEN_S * SECOND // 2
        return self._token


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """One place to ask for."""

    row: SlurmJobRow
    asked: Asked
    project: str


@dataclass(slots=True, kw_only=True)
class OnSlurm:
    """Places by Slurm, execution by our runners. ``holding`` says what may not be asked for, money among it."""

    platform: Platform
    token: str
    settings: SlurmSettings
    commands: Commands
    rest: Rest
    holding: list[Holding] = field(default_factory=lambda: list(ALWAYS))
    _layout: Mapping[str, SlurmNode] = field(default_factory=dict[str, SlurmNode])
    _layout_until_us: int = 0
    _accounts: dict[str, str] = field(default_factory=dict[str, str])
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
        if not busy and not self._all_due():
            return Observed()
        refused = self._intend()
        if refused is None:
            return Observed()
        with self.platform.reading() as connection:
            rows = open_slurm_jobs(connection)
        settled = self._settle(self._look(rows))
        self._trouble = ""
        self._take_back(settled.take_back)
        self._ask()
        self.platform.wakes.tell(*(f"node:{node}" for node in settled.nodes))
        return Observed(
            started=tuple(settled.started),
            stopped=tuple(settled.stopped),
            refused=tuple(sorted(refused)),
        )

    def _drain(self) -> None:
        """Drain the nodes that are withheld here, and let those go on that are no more; other people's drains are theirs."""
        with self.platform.reading() as connection:
            wanted = withheld(connection)
            names = {row.name for row in all_nodes(connection)}
        if not names:
            return
        for node in self._nodes().values():
            due = step(node, wanted.get(node.name.lower()), ours=node.name.lower() in names)
            if due is None:
                continue
            with self.platform.writing() as tx:
                if not self._claim(tx):
                    return
            self._layout_until_us = 0
            if due == RESUME:
                self.commands.resume(node.name)
            else:
                self.commands.drain(node.name, due)
            _log.info("slurm.node", node=node.name, step=due or RESUME)

    # What is wanted

    def _intend(self) -> set[str] | None:
        """Bring the rows in line with the jobs that wait; the jobs that were refused. None: another process looks."""
        platform = self.platform
        with platform.writing() as tx:
            if not self._claim(tx):
                return None
            unasked = unasked_jobs(tx.connection)
            every = jobs_in(tx.connection, ("waiting",)) if self._all_due() else unasked
            refused = self._refuse(tx, every)
            held = self._held(
                tx.connection, [job for job in every if job.job not in refused], tx.now_us
            )
            for job in unasked:
                if job.job not in refused and job.job not in held:
                    row = SlurmJobRow(attempt=platform.ids(), job=job.job, state="wanted", made_us=tx.now_us)  # fmt: skip
                    put_slurm_job(tx.connection, row)
            for row in needless_rows(tx.connection):
                _withdraw(tx, row, "its job waits no more")
            for job in [name for name, back in held.items() if back]:
                for row in open_slurm_jobs(tx.connection, job):
                    if row.state != "placed" and row.withdrawn is None:
                        _withdraw(tx, row, "its job may not start for now")
        return refused

    def _all_due(self) -> bool:
        """Whether jobs that Slurm has already are to be looked at too: money ends and deadlines pass, and nobody says so."""
        now = self.platform.monotonic()
        due = now >= self._all_next_us
        if due:
            self._all_next_us = now + _ALL_US
        return due

    def _claim(self, tx: Transaction) -> bool:
        for_us = self.platform.limits.claim_us
        return take_claim(tx.connection, PLACEMENT, self.token, now_us=tx.now_us, for_us=for_us)

    def _refuse(self, tx: Transaction, waiting: Sequence[JobRow]) -> set[str]:
        found = list(hopeless(tx.connection, waiting, tx.now_us))
        for job, code, reason in found:
            end_job(self.platform, tx, job, "refused", code, reason)
        return {job.job for job, _, _ in found}

    def _held(self, connection: Connection, jobs: Sequence[JobRow], now_us: int) -> dict[str, bool]:
        """The jobs that may not be asked for now; True: nor may they stay at Slurm, if they are there already."""
        planning = self._planning(connection, now_us, jobs)
        found: dict[str, bool] = {}
        for job in planning.snapshot.waiting:
            if kept_back(job, now_us) is not None:
                found[job.job] = bool(job.holds)
            elif isinstance(able(planning, job), Why):
                found[job.job] = False
        return found

    def _planning(self, connection: Connection, now_us: int, jobs: Sequence[JobRow]) -> Planning:
        stands = snapshot_of(connection, now_us, self.platform.limits, self.holding, jobs)
        return Planning(stands, now_us)

    # What Slurm says

    def _look(self, rows: Sequence[SlurmJobRow]) -> Seen:
        """What the controller and accounting say of these rows. Raises ``CommandFailed`` where nothing can be said."""
        queue: dict[str, list[Queued]] = {}
        for each in self.commands.queue():
            attempt = attempt_named(each.name)
            if attempt is not None:
                queue.setdefault(attempt, []).append(each)
        live = {
            name for name, found in queue.items() if any(each.state not in DONE for each in found)
        }
        strange = live - {row.attempt for row in rows}
        given: dict[str, Given] = {}
        accounted: dict[str, Sequence[Accounted]] = {}
        for row in rows:
            found = mine(queue.get(row.attempt, ()), row.number)
            if found is None:
                ask = row.state != "wanted"
            else:
                ask = found.state == "COMPLETING"
                if (
                    row.state in ("asked", "queued")
                    and found.node
                    and found.state in HAS_PLACE + DONE
                ):
                    given |= self._told(row.attempt, found.number)
            if ask:
                accounted |= self._accounted(row.attempt)
        layout = self._nodes() if given else {}
        return Seen(queue=queue, given=given, accounted=accounted, layout=layout, strange=strange)

    def _told(self, attempt: str, number: int) -> dict[str, Given]:
        """The job of an attempt in full, where slurmrestd tells it. A number may have been given to another job meanwhile."""
        try:
            found = self.rest.job(number)
        except (Denied, Unanswered) as trouble:
            _log.warning("slurm.not_told", job=number, why=str(trouble))
            return {}
        return {attempt: found} if found is not None and found.name == name_of(attempt) else {}

    def _accounted(self, attempt: str) -> dict[str, Sequence[Accounted]]:
        """What accounting has of an attempt. Where it does not answer nothing is known, and the row stays as it is."""
        try:
            return {attempt: self.commands.accounted(name_of(attempt))}
        except CommandFailed as trouble:
            _log.warning("slurm.accounting_away", why=str(trouble))
            return {}

    def _nodes(self) -> Mapping[str, SlurmNode]:
        now = self.platform.monotonic()
        if now >= self._layout_until_us:
            self._layout = {node.name: node for node in self.commands.nodes()}
            self._layout_until_us = now + _LAYOUT_US
        return self._layout

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
                _log.warning("slurm.not_taken_back", job=number, why=str(trouble))

    # Asking

    def _ask(self) -> None:
        """Ask for what is wanted. That somebody asks is written down before, and the answers after."""
        while asks := self._next():
            answers: dict[str, dict[str, Any]] = {}
            for ask in asks:
                try:
                    answers[ask.row.attempt] = {
                        "number": self._submit(ask),
                        "state": "queued",
                        "reason": None,
                    }
                except Unanswered as trouble:
                    _log.warning("slurm.unanswered", attempt=ask.row.attempt, why=str(trouble))
                    break  # whoever follows would wait as long
                except (Denied, CommandFailed) as trouble:
                    answers[ask.row.attempt] = {
                        "state": "wanted",
                        "reason": str(trouble),
                        "word": "refused",
                    }
            with self.platform.writing() as tx:
                for ask in asks:
                    never = {"state": "wanted"}  # it was not even tried
                    tried = ask.row.attempt in answers or ask is asks[len(answers)]
                    values = answers.get(ask.row.attempt) or ({} if tried else never)
                    if values:
                        change_slurm_job(tx.connection, ask.row.attempt, **values)
            if len(answers) < len(asks):
                return

    def _submit(self, ask: _Ask) -> int:
        script = script_of(ask.row.attempt, self.settings.places)
        if ask.asked.not_on:
            return self.commands.submit(script, as_options(ask.asked))
        return self.rest.submit(script, as_json(ask.asked))

    def _next(self) -> list[_Ask]:
        """The next places to ask for, written down as being asked."""
        layout = self._nodes()
        with self.platform.writing() as tx:
            rows = [row for row in open_slurm_jobs(tx.connection) if _is_due(row, tx.now_us)][
                :_AT_ONCE
            ]
            if not rows or not self._claim(tx):
                return []
            asks = self._asks(tx.connection, rows, layout, tx.now_us)
            for ask in asks:
                change_slurm_job(tx.connection, ask.row.attempt, state="asked", asked_us=tx.now_us)
        for project in {ask.project for ask in asks}:
            self._account_there(project)
        return asks

    def _asks(
        self, connection: Connection, rows: Sequence[SlurmJobRow], layout: Mapping[str, SlurmNode], now_us: int
    ) -> list[_Ask]:  # fmt: skip
        jobs = jobs_by_id(connection, [row.job for row in rows])
        planning = self._planning(connection, now_us, list(jobs.values()))
        waiting = {each.job: each for each in planning.snapshot.waiting}
        offers = offers_by_id(connection, [job.offer for job in jobs.values() if job.offer])
        found: list[_Ask] = []
        for row in rows:
            job = jobs[row.job]
            offer = offers[job.offer].terms.name if job.offer else None
            wanted = waiting[row.job]
            may = able(planning, wanted)
            if isinstance(may, Why):
                continue  # since it was written down; it is asked for once it can be anywhere
            barred = _barred(may, layout, partition_of(self.settings, offer))
            account = self._account_of(connection, job.project)
            asked = asked_for(
                row.attempt, wanted, offer, account, barred, self.settings, POLICY.turnover_us
            )
            found.append(_Ask(row=row, asked=asked, project=job.project))
        return found

    # Accounts

    def _account_of(self, connection: Connection, project: str) -> str:
        found = project_of(connection, project)
        assert found is not None
        org = organisation_of(connection, found.org)
        assert org is not None
        return self.settings.accounts.get(f"{org.name}/{found.name}", f"{org.name}-{found.name}")

    def _account_there(self, project: str) -> None:
        """See to it that a project's account is there, with its weight; one that the owner named is left as it is."""
        with self.platform.reading() as connection:
            account = self._account_of(connection, project)
            found = project_of(connection, project)
            org = organisation_of(connection, found.org) if found else None
        if found is None or org is None or self._accounts.get(project) == account:
            return
        if account not in self.settings.accounts.values():
            share = max(1, round(100 * Fraction(found.weight)))
            try:
                given = (self.settings.qos, self.settings.interruptible_qos)
                qos = [name for name in given if name is not None]
                self.commands.make_account(org.name, None, org.name, 1, ())
                self.commands.make_account(account, org.name, found.name, share, qos)
            except CommandFailed as trouble:  # the submit that follows is refused, and says so
                _log.warning("slurm.no_account", account=account, why=str(trouble))
                return
        self._accounts[project] = account

    # Why it waits

    def explain(self, connection: Connection, job: JobRow) -> Why | None:
        """Why a job waits: our own reason where there is one, else Slurm's."""
        if job.state != "waiting":
            return None
        now = self.platform.clock()
        planning = self._planning(connection, now, [job])
        waiting = planning.snapshot.waiting[0]
        own = kept_back(waiting, now)
        if own is not None:
            return own
        where = able(planning, waiting)
        if isinstance(where, Why):
            return where
        row = next(iter(open_slurm_jobs(connection, job.job)), None)
        return _explained(job.job, row)


def _explained(job: str, row: SlurmJobRow | None) -> Why:
    if row is not None and row.word == "refused":
        words = f"Slurm does not take it: {row.reason}; it is asked again"
        return Why(job=job, code="slurm/refused", detail={"words": words})
    if row is not None and row.state == "asked":
        words = "was handed to Slurm, whose answer was lost; it is looked for there before it is handed on again"
        return Why(job=job, code="slurm/away", detail={"words": words})
    return why_it_waits(job, (row and row.reason) or "None")


def _withdraw(tx: Transaction, row: SlurmJobRow, why: str) -> None:
    values = {"state": "over"} if row.state == "wanted" else {"withdrawn": why}
    change_slurm_job(tx.connection, row.attempt, **values)


def _is_due(row: SlurmJobRow, now_us: int) -> bool:
    """Whether it is to be asked for now: what was refused, after a while."""
    paused = row.word == "refused" and row.asked_us is not None
    return row.state == "wanted" and not (paused and (row.asked_us or 0) > now_us - _AGAIN_US)


_AGAIN_US = 5 * SECOND


def able(planning: Planning, job: Waiting) -> frozenset[str] | Why:
    """The names of the nodes where a job may be, or why there are none.

    Slurm chooses the GPUs of a node, and cannot be told to pass one over: where one is withheld, no job of ours that needs GPUs goes.
    """
    reach = planning.reach(job)
    if reach.code is not None:
        return Why(job=job.job, code=reach.code, detail=reach.detail)
    whole = [room.node for room in reach.rooms]
    if job.needs.gpus:
        whole = [node for node in whole if not any(device.fenced for device in node.devices)]
    if not whole:
        return Why(job=job.job, code="placement/fenced")
    return frozenset(node.name for node in whole)


def _barred(
    may: frozenset[str], layout: Mapping[str, SlurmNode], partition: str | None
) -> frozenset[str]:
    """The nodes of a partition on which a job may not be: they have no runner of ours, or do not suit it."""
    inside = {name for name, node in layout.items() if partition in node.partitions}
    return frozenset(name for name in inside if name.lower() not in may)
