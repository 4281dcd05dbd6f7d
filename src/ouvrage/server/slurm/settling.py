"""What follows from what a Slurm says of its jobs: an attempt is ordered, told to stop, or was never started.

Decides for one row at a time, in one transaction, from what was read before it: a job with a node gets its attempt ordered there; a place that was
taken back ends it; a job that Slurm knows no more, and accounting neither, is asked for again, after so long that no request can still be under
way. What an attempt's end is stays the runner's to say, where there is one to say it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from ouvrage.adapters.slurm_commands import Accounted, Queued, SlurmNode
from ouvrage.adapters.slurm_rest import Given
from ouvrage.base.time import SECOND
from ouvrage.model.fleet import ClusterPlaced
from ouvrage.model.machines import FenceSet
from ouvrage.model.selling import OwnOffer, Placed
from ouvrage.model.work import AttemptOrdered
from ouvrage.placement.slurm_words import DONE, HAS_PLACE, TAKEN, WAITING
from ouvrage.server.context import SERVER, Platform
from ouvrage.server.engine import order, stop
from ouvrage.server.recording import record, stated
from ouvrage.server.services.attempts import End, end, end_job
from ouvrage.server.services.snapshots import is_away, placed_needs
from ouvrage.server.slurm.asking import Mismatch, placed_on
from ouvrage.server.slurm.turns import in_turn
from ouvrage.store.platform.machines import (
    NodeRow,
    all_nodes,
    all_runners,
    fenced_devices,
    fences_held,
    set_fence,
)
from ouvrage.store.platform.selling import offers_by_id
from ouvrage.store.platform.slurm_jobs import (
    SlurmJobRow,
    change_slurm_job,
    open_slurm_jobs,
    slurm_job_of,
)
from ouvrage.store.platform.work import AttemptRow, JobRow, attempt_of, job_of
from ouvrage.store.transaction import Transaction

SETTLE_US = 60 * SECOND
"""After so long no submit can still be under way: slurmrestd and the controller give up on one another well before."""
LINGER_US = 10 * SECOND
"""So long a batch job may take to end after its attempt has."""
MARGIN_US = 2 * SECOND
"""So much earlier than Slurm would an attempt is ended that makes room, so that its scratch and log are kept as ever."""
UNTOLD_US = 30 * SECOND
"""So long after a place was over its runner may be silent about an attempt of which it has told nothing."""
FENCE = "scheduler"
_BROKEN = "the batch job that was to hold a place ended at once: is there a directory of places, and does the runner know it?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What Slurm said: the controller's jobs and accounting's by attempt, those with a node in full, and the nodes.

    ``looked``: the rows as they stood before that, by attempt; what has changed since is not judged by it. ``strange``: attempts of which nothing was open here, and that have a job which is not done. ``kill_wait_us``: from Slurm's SIGTERM to its SIGKILL.
    """

    queue: Mapping[str, Sequence[Queued]]
    given: Mapping[str, Given]
    accounted: Mapping[str, Sequence[Accounted]]
    layout: Mapping[str, SlurmNode]
    looked: Mapping[str, SlurmJobRow]
    strange: Set[str] = frozenset()
    kill_wait_us: int = 0


def mine(found: Sequence[Queued], number: int | None) -> Queued | None:
    """Of the jobs that bear an attempt's name the one that counts: the one whose number is known, else the first that is not done."""
    known = [each for each in found if each.number == number]
    if known:
        return known[0]
    live = [each for each in found if each.state not in DONE]
    return min(live or found, key=lambda each: each.number, default=None)


@dataclass(slots=True)
class Settling:
    """One transaction's work. ``take_back``: numbers of jobs to cancel and why; ``nodes`` whose runners have something new to do."""

    platform: Platform
    tx: Transaction
    seen: Seen
    started: list[str] = field(default_factory=list[str])
    stopped: list[str] = field(default_factory=list[str])
    nodes: set[str] = field(default_factory=set[str])
    take_back: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    _changed: dict[str, SlurmJobRow] = field(default_factory=dict[str, SlurmJobRow])

    def all(self) -> None:
        """Every row that is not over, and jobs of rows that are."""
        self._revived()
        for read in open_slurm_jobs(self.tx.connection):
            if self.seen.looked.get(read.attempt) != read:
                continue
            row = self._changed.get(read.attempt, read)
            found = self.seen.queue.get(row.attempt, ())
            job = mine(found, row.number)
            self.take_back += [
                (each.number, "a second job of the same attempt")
                for each in found
                if each is not job and each.state not in DONE
            ]
            if row.state == "placed":
                self._placed(row, job)
            elif row.state != "wanted":
                self._waiting(row, job)

    def _revived(self) -> None:
        """A controller that was killed may queue anew, from what it had saved, jobs that were over; another platform's are not ours to end."""
        for attempt in self.seen.strange:
            row = slurm_job_of(self.tx.connection, attempt)
            if row is not None and row.state == "over":
                self.take_back += [
                    (each.number, "it was over already")
                    for each in self.seen.queue[attempt]
                    if each.state not in DONE
                ]

    # Before it has a place

    def _waiting(self, row: SlurmJobRow, job: Queued | None) -> None:
        if job is None:
            self._missing(row)
        elif job.state in DONE or job.state in HAS_PLACE:
            self._has_place(row, job)
        else:
            if (row.state, row.number, row.word, row.reason) != (
                "queued",
                job.number,
                job.state,
                job.reason,
            ):
                self._note(
                    row, state="queued", number=job.number, word=job.state, reason=job.reason
                )
            if row.withdrawn is not None:
                self.take_back.append((job.number, row.withdrawn))

    def _missing(self, row: SlurmJobRow) -> None:
        """The controller does not know it: it has ended and been forgotten, or never was, or the request is still under way."""
        if row.attempt not in self.seen.accounted:
            return  # it came up after the look
        past = self.seen.accounted[row.attempt]
        if past:
            self._ended_unseen(row, past[-1].state, past[-1].node)
        elif (row.asked_us or 0) < self.tx.now_us - SETTLE_US:
            state = "over" if row.withdrawn is not None else "wanted"
            self._note(row, state=state, number=None, word=None, reason=None)

    def _has_place(self, row: SlurmJobRow, job: Queued) -> None:
        if row.withdrawn is not None:
            if job.state in DONE:
                self._note(row, state="over", word=job.state)
            else:
                self.take_back.append((job.number, row.withdrawn))
        elif job.node is None:
            self._ended_unseen(row, job.state, None)
        elif row.attempt in self.seen.given:
            self._order(row, job, self.seen.given[row.attempt])

    def _ended_unseen(self, row: SlurmJobRow, state: str, node: str | None) -> None:
        """It ended at Slurm before anything was ordered: whoever cancelled it there meant the job."""
        self._note(row, state="over", word=state, node=node)
        job = job_of(self.tx.connection, row.job)
        if job is None or job.state != "waiting" or row.withdrawn is not None:
            return
        if state == "CANCELLED":
            words = TAKEN["CANCELLED"].words
            end_job(self.platform, self.tx, job, "cancelled", "job/cancelled", words)

    def _order(self, row: SlurmJobRow, slurm: Queued, given: Given) -> None:
        """Order the attempt where Slurm gave it a place; one that cannot be used ends as never started."""
        tx = self.tx
        job = job_of(tx.connection, row.job)
        node = self._node_of(given.node or slurm.node or "")
        if job is None or job.state != "waiting" or node is None:
            words = "the node has no runner" if node is None else "its job waits no more"
            self._note(row, state="over", number=slurm.number, word=slurm.state)
            self.take_back += [] if slurm.state in DONE else [(slurm.number, words)]
            return
        if slurm.state not in DONE:
            row, job = self._in_turn(row, job)
        disk = placed_needs(job, self._terms(job)).disk_mib
        try:
            placed, fault = (
                placed_on(node, given, self.seen.layout.get(given.node or ""), disk),
                None,
            )
        except Mismatch as mismatch:
            placed, fault = (
                Placed(node=node.node, devices=(), cpus=(), memory_mib=0, disk_mib=0),
                str(mismatch),
            )
            self._withhold(node, fault, row.attempt)
        fault = fault or self._unfit(node, placed, slurm)
        ordered = AttemptOrdered(
            attempt=row.attempt, job=job.job, number=job.attempts + 1, lease=self.platform.ids(), placed=placed,
            why=f"Slurm gave it {given.node} as job {slurm.number}",
        )  # fmt: skip
        tx.note([order(self.platform, tx, job, ordered), self._at_slurm(row.attempt, given)])
        self._note(
            row,
            state="placed",
            number=slurm.number,
            word=slurm.state,
            reason=slurm.reason,
            node=given.node,
        )
        if fault is None:
            self.started.append(job.job)
            self.nodes.add(node.node)
        else:
            self._never_started(row, fault)

    def _in_turn(self, row: SlurmJobRow, job: JobRow) -> tuple[SlurmJobRow, JobRow]:
        """The row and the job that the place is for."""
        mine, *others = in_turn(self.tx.connection, row, job)
        self._changed |= {other.attempt: other for other in others}
        return mine, (job_of(self.tx.connection, mine.job) if others else None) or job

    def _at_slurm(self, attempt: str, given: Given) -> Any:
        """The fact that a job of Slurm's is a place of ours: accounting tells of it too."""
        placed = ClusterPlaced(
            cluster=given.cluster, job=str(given.number), submit_us=given.submit_us, attempt=attempt
        )
        return stated(
            self.platform,
            placed,
            subject=attempt,
            natural=f"attempt/{attempt}/slurm",
            at_us=given.submit_us,
        )

    def _unfit(self, node: NodeRow, placed: Placed, slurm: Queued) -> str | None:
        """Why a place cannot be used, although it is one."""
        if slurm.state == "FAILED":
            self._withhold(node, _BROKEN, slurm.name)
            return _BROKEN
        if slurm.state in DONE:
            return f"its place was over before it was seen: Slurm says {slurm.state}"
        if is_away(
            all_runners(self.tx.connection).get(node.node), self.tx.now_us, self.platform.limits
        ):
            return "the runner of its node is not heard"
        fenced = fenced_devices(fences_held(self.tx.connection, node.node))
        held = [device for device in (None, *placed.devices) if (node.node, device) in fenced]
        return "its place is withheld from new work" if held else None

    def _never_started(self, row: SlurmJobRow, why: str) -> None:
        attempt = attempt_of(self.tx.connection, row.attempt)
        if attempt is not None:
            how = End(
                began_us=None, ended_us=self.tx.now_us, wall_us=0, outcome="never started", cause="platform", reason=why
            )  # fmt: skip
            end(self.platform, self.tx, attempt, how)

    def _withhold(self, node: NodeRow, why: str, by: str) -> None:
        """Give no new work to a node that does not keep to what Slurm was told of it."""
        fence = FenceSet(node=node.node, device=None, holder=FENCE, held=True, why=why, by=by)
        if set_fence(self.tx.connection, fence, self.tx.now_us):
            fact = stated(self.platform, fence, subject=f"node:{node.name}", at_us=self.tx.now_us)
            record(
                self.tx, self.platform, SERVER, "node.fence", org=None, target=node.node, detail=why, facts=(fact,)
            )  # fmt: skip

    # While it has one

    def _placed(self, row: SlurmJobRow, job: Queued | None) -> None:
        attempt = attempt_of(self.tx.connection, row.attempt)
        if attempt is None or attempt.over:
            self._after(row, job, attempt)
            return
        word = self._word(row, job)
        if word != row.word:
            self._note(row, word=word)
        taken = TAKEN.get(word)
        if taken is not None:
            self._stop(attempt, taken.stop, f"{taken.words} ({word})", self._left(attempt, job))
        elif word in WAITING or (job is not None and job.restarts):
            self._stop(
                attempt, "preempted", f"Slurm took its place back and queued it anew ({word})", 0
            )
            self.take_back += [(job.number, "each attempt has one place")] if job else []
        elif job is not None and job.preempted:
            self._stop(attempt, "preempted", TAKEN["PREEMPTED"].words, self._notice(attempt, job))
        elif word in DONE and attempt.began_us is None and self._long_over(job):
            self._broken(row, attempt, word)

    def _word(self, row: SlurmJobRow, job: Queued | None) -> str:
        """Slurm's state. While a job is being cleared away the controller does not say how it ended, and accounting does."""
        if job is not None and job.state != "COMPLETING":
            return job.state
        past = self.seen.accounted.get(row.attempt, ())
        told = past[-1].state if past else ""
        return told if told in DONE else (job.state if job else row.word or "")

    def _stop(self, attempt: AttemptRow, why: str, words: str, grace_us: int) -> None:
        if attempt.stop is None:
            stop(self.platform, self.tx, attempt, why=why, reason=words, grace_us=grace_us)
            self.stopped.append(attempt.attempt)
            self.nodes.add(attempt.node)

    def _notice(self, attempt: AttemptRow, slurm: Queued) -> int:
        """How long it may take to end once it was told to make room: as its offer says, and a little less than Slurm allows."""
        job = job_of(self.tx.connection, attempt.job)
        terms = self._terms(job) if job is not None else None
        own = job.spec.grace_us if job is not None else 0
        notice = terms.notice_us if terms is not None and terms.interruptible else own
        if slurm.ends_us is None:
            return notice
        return max(0, min(notice, slurm.ends_us - MARGIN_US - self.tx.now_us))

    def _left(self, attempt: AttemptRow, slurm: Queued | None) -> int:
        """What is left of Slurm's own time from SIGTERM to SIGKILL, where it is clearing the place away."""
        if slurm is None or slurm.state != "COMPLETING" or slurm.ends_us is None:
            return 0
        job = job_of(self.tx.connection, attempt.job)
        own = job.spec.grace_us if job is not None else 0
        until = slurm.ends_us + self.seen.kill_wait_us - MARGIN_US
        return max(0, min(own, until - self.tx.now_us))

    def _long_over(self, job: Queued | None) -> bool:
        """Whether a batch job ended so long ago that its runner would have told by now."""
        return job is not None and (job.ends_us or self.tx.now_us) < self.tx.now_us - UNTOLD_US

    def _broken(self, row: SlurmJobRow, attempt: AttemptRow, word: str) -> None:
        """The batch job ended by itself, and the runner has not begun: something between the two does not work on that node."""
        node = self._node_of(row.node or "")
        if node is not None:
            self._withhold(node, _BROKEN, row.attempt)
        self._stop(attempt, "preempted", f"{_BROKEN} ({word})", 0)

    def _after(self, row: SlurmJobRow, job: Queued | None, attempt: AttemptRow | None) -> None:
        """Its attempt is over: so is the batch job, or it is ended."""
        if job is None or job.state in DONE:
            self._note(row, state="over", word=job.state if job else row.word)
            return
        lately = attempt is not None and (attempt.ended_us or 0) > self.tx.now_us - LINGER_US
        knows = attempt is not None and attempt.known_us is not None
        if not (lately and knows) and job.state != "COMPLETING":
            self.take_back.append((job.number, "its attempt is over"))

    # What is looked up

    def _node_of(self, name: str) -> NodeRow | None:
        """Our node of a node of Slurm's: the one of the same name."""
        nodes: dict[str, NodeRow] = self.tx.memo.get("nodes") or self.tx.memo.setdefault(
            "nodes", {row.name: row for row in all_nodes(self.tx.connection)}
        )
        return nodes.get(name.lower())

    def _terms(self, job: JobRow) -> OwnOffer | None:
        if job.offer is None:
            return None
        return offers_by_id(self.tx.connection, [job.offer])[job.offer].terms

    def _note(self, row: SlurmJobRow, **values: object) -> None:
        change_slurm_job(self.tx.connection, row.attempt, **values)
