"""The tables of work as the facts give them: to hold against what they hold, and to make them anew.

Decides which columns follow from facts. How far an open attempt is, what a runner was heard to say and what was asked to stop stand in tables
alone; they are left out of the comparison, and made anew a runner tells them again. Nothing that ended is ever open again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Table, delete, insert, select

from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.laws import Law
from ouvrage.ledger.view import in_force
from ouvrage.model.machines import FenceSet, NodeEnrolled, NodeListed
from ouvrage.model.selling import LeaseEnded, LeaseGranted, OfferWithdrawn, OwnOffer
from ouvrage.model.work import (
    AttemptEnded,
    AttemptOrdered,
    JobEnded,
    JobSpec,
    JobSubmitted,
)
from ouvrage.store.engine import reading, told, writing
from ouvrage.store.platform.json_rows import text_of, value_of
from ouvrage.store.platform.work_tables import attempts, fences, jobs, leases, nodes, offers
from ouvrage.store.store import Store, wait_for_head

Row = dict[str, Any]
_TABLES: dict[str, tuple[Table, tuple[str, ...]]] = {
    "node": (nodes, ("node",)),
    "fence": (fences, ("node", "device", "holder")),
    "offer": (offers, ("offer",)),
    "lease": (leases, ("lease",)),
    "job": (jobs, ("job",)),
    "attempt": (attempts, ("attempt",)),
}
_LIVE: dict[str, frozenset[str]] = {
    "lease": frozenset({"ending"}),
    "job": frozenset({"not_on", "not_before_us"}),
    "attempt": frozenset(
        {
            "sent_us", "known_us", "missing_us", "stop", "stop_reason", "stop_grace_us",
            "progress", "forgotten",
        }
    ),
}  # fmt: skip
"""Columns that facts do not give."""
_WHILE_OPEN: dict[str, frozenset[str]] = {
    "job": frozenset({"code", "reason", "ended_us"}),
    "attempt": frozenset({"began_us"}),
}
"""Columns that facts give once it has ended."""
_UNDER_WAY = ("starting", "running", "stopping")


@dataclass(slots=True)
class _Given:
    """The rows that facts give, by table and key."""

    rows: dict[tuple[str, ...], Row] = field(default_factory=dict)

    def take(self, entry: Recorded, value: object) -> None:
        """What one fact changes."""
        at_us, until = entry.fact.valid_from, entry.fact.valid_to
        if isinstance(value, (NodeEnrolled, NodeListed, FenceSet)):
            self._machine(value, at_us)
        elif isinstance(value, (OwnOffer, OfferWithdrawn, LeaseGranted, LeaseEnded)):
            self._selling(value, at_us)
        elif isinstance(value, (JobSubmitted, JobEnded)):
            self._job(value, at_us, until or at_us)
        elif isinstance(value, (AttemptOrdered, AttemptEnded)):
            self._attempt(value, at_us, until or at_us)

    def _machine(self, value: NodeEnrolled | NodeListed | FenceSet, at_us: int) -> None:
        if isinstance(value, NodeEnrolled):
            before = self.rows.get(("node", value.node), {})
            self.rows["node", value.node] = {
                "node": value.node, "name": value.name, "cpus": text_of(value.cpus),
                "memory_mib": value.memory_mib, "disk_mib": value.disk_mib,
                "devices": text_of(value.devices), "isolations": text_of(value.isolations),
                "cgroup": value.cgroup, "boot": value.boot, "version": value.version,
                "listed": before.get("listed", 1), "enrolled_us": before.get("enrolled_us", at_us),
            }  # fmt: skip
        elif isinstance(value, NodeListed):
            self.rows["node", value.node]["listed"] = int(value.listed)
        else:
            device = value.device or ""
            key = ("fence", value.node, device, value.holder)
            row = {
                "node": value.node, "device": device, "holder": value.holder, "why": value.why,
                "said_by": value.by, "since_us": at_us,
            }  # fmt: skip
            self.rows.pop(key, None)
            if value.held:
                self.rows[key] = row

    def _selling(
        self, value: OwnOffer | OfferWithdrawn | LeaseGranted | LeaseEnded, at_us: int
    ) -> None:
        if isinstance(value, OwnOffer):
            self.rows["offer", value.offer] = {
                "offer": value.offer, "name": value.name, "audience": value.audience,
                "terms": text_of(value), "created_us": at_us, "withdrawn_us": None,
            }  # fmt: skip
        elif isinstance(value, OfferWithdrawn):
            self.rows["offer", value.offer]["withdrawn_us"] = at_us
        elif isinstance(value, LeaseGranted):
            self.rows["lease", value.lease] = {
                "lease": value.lease, "offer": value.offer, "org": value.org,
                "project": value.project, "kind": value.kind, "attempt": value.attempt,
                "node": value.placed.node, "placed": text_of(value.placed), "from_us": at_us,
                "until_us": value.until_us, "ended_us": None, "end": None, "billable_us": None,
                "ending": None,
            }  # fmt: skip
        else:
            ended = {
                "ended_us": value.at_us,
                "end": value.end,
                "billable_us": value.billable_us,
            }
            self.rows["lease", value.lease] |= ended

    def _job(self, value: JobSubmitted | JobEnded, at_us: int, until_us: int) -> None:
        if isinstance(value, JobEnded):
            ended = {"state": value.state, "code": value.code, "reason": value.reason}
            self.rows["job", value.job] |= {**ended, "ended_us": until_us}
            return
        self.rows["job", value.job] = {
            "job": value.job, "org": value.org, "project": value.project, "user_id": value.user,
            "name": value.spec.name, "offer": value.offer, "lease": value.lease,
            "spec": text_of(value.spec), "submitted_us": at_us, "state": "waiting", "attempts": 0,
            "ended_us": None, "code": None, "reason": None, "not_on": "[]", "not_before_us": 0,
        }  # fmt: skip

    def _attempt(self, value: AttemptOrdered | AttemptEnded, at_us: int, until_us: int) -> None:
        job = self.rows["job", value.job]
        if isinstance(value, AttemptOrdered):
            job |= {"state": "starting", "attempts": value.number}
            blank = dict.fromkeys(column.name for column in attempts.columns)
            self.rows["attempt", value.attempt] = {
                **blank, "attempt": value.attempt, "job": value.job, "org": job["org"],
                "number": value.number, "lease": value.lease, "node": value.placed.node,
                "placed": text_of(value.placed), "ordered_us": at_us, "state": "ordered",
                "sent_us": at_us, "forgotten": 0,
            }  # fmt: skip
            return
        began = None if at_us == until_us and value.wall_us == 0 else at_us
        row = self.rows["attempt", value.attempt]
        row |= {
            "state": "ended", "began_us": began, "ended_us": until_us, "wall_us": value.wall_us,
            "exit_code": value.exit_code, "signal": value.signal, "outcome": value.outcome,
            "cause": value.cause, "reason": value.reason, "isolation": value.isolation,
            "peaks": text_of(value.peaks), "scrub": value.scrub,
            "scrub_detail": value.scrub_detail,
        }  # fmt: skip
        if job["state"] == "starting":
            job["state"] = "waiting"


def rows_given(records: Sequence[Recorded]) -> dict[tuple[str, ...], Row]:
    """By table and key, the row that the facts give."""
    given = _Given()
    kinds = {
        kind.KIND
        for kind in (
            NodeEnrolled, NodeListed, FenceSet, OwnOffer, OfferWithdrawn, LeaseGranted, LeaseEnded,
            JobSubmitted, JobEnded, AttemptOrdered, AttemptEnded,
        )
    }  # fmt: skip
    ours = in_force(entry for entry in records if entry.fact.kind in kinds)
    for entry in sorted(ours, key=lambda entry: entry.seq):
        given.take(entry, read(entry.fact))
    return given.rows


def rows_held(store: Store) -> dict[tuple[str, ...], Row]:
    """By table and key, the row that the tables hold."""
    held: dict[tuple[str, ...], Row] = {}
    with told(store.engine), reading(store.engine) as connection:
        for name, (table, key) in _TABLES.items():
            for row in connection.execute(select(table)):
                values = dict(row._mapping)
                held[(name, *(values[part] for part in key))] = values
    return held


def _comparable(name: str, row: Row) -> Row:
    """A row without what facts do not give."""
    left_out = _LIVE.get(name, frozenset[str]())
    open_ = row.get("ended_us") is None
    if open_:
        left_out |= _WHILE_OPEN.get(name, frozenset())
    found = {column: value for column, value in row.items() if column not in left_out}
    if name == "attempt" and open_:
        found["state"] = "open"
    elif name == "attempt" and found["began_us"] in (None, found["ended_us"]):
        del found["began_us"]  # a fact of a moment does not tell a beginning from none
    elif name == "job":
        found["state"] = "starting" if found["state"] in _UNDER_WAY else found["state"]
        found["spec"] = text_of(value_of(JobSpec, found["spec"]))  # one of an earlier form
    return found


def work_law(store: Store) -> Law:
    """The law that the tables are what the facts give."""

    def check(records: Sequence[Recorded]) -> Iterator[tuple[str, str]]:
        given, held = rows_given(records), rows_held(store)
        for key in sorted(given.keys() | held.keys()):
            ours, theirs = given.get(key), held.get(key)
            if ours is None or theirs is None:
                yield " ".join(key), "stands in a table or in facts alone"
                continue
            ours, theirs = _comparable(key[0], ours), _comparable(key[0], theirs)
            odd = sorted(name for name in ours if ours[name] != theirs.get(name))
            if odd:
                yield " ".join(key), f"{odd[0]} is not what the facts give"

    return Law(
        name="store/work",
        statement="nodes, offers, leases, jobs and attempts in tables are what the facts state",
        check=check,
    )


def rebuild_work(store: Store) -> int:
    """Make the tables of work anew from the facts; how many rows they have. For a store that was restored."""
    given = rows_given(store.records())
    with told(store.engine), writing(store.engine) as connection:
        wait_for_head(connection)
        for name, (table, _) in _TABLES.items():
            connection.execute(delete(table))
            rows = [_revived(row, given) for key, row in given.items() if key[0] == name]
            if rows:
                connection.execute(insert(table), rows)
    return len(given)


def rebuild_odd_work(store: Store) -> bool:
    """Make the tables anew where they are not what the facts give; whether they were not.

    Where they agree they are left alone, since they hold more than facts do.
    """
    odd = bool(work_law(store).breaches(store.records()))
    if odd:
        rebuild_work(store)
    return odd


def _revived(row: Row, given: dict[tuple[str, ...], Row]) -> Row:
    """An open attempt whose lease has begun runs since then; whatever else is open, its runner will tell."""
    if row.get("state") != "ordered":
        return row
    lease = given.get(("lease", row["lease"]))
    if lease is None or lease["kind"] != "job":
        return row
    return {**row, "state": "running", "began_us": lease["from_us"]}
