"""Whose fault it was that an attempt failed, from what was seen on its machine from ten minutes before to five after its end.

Decides nothing by itself (``health/blame`` does). A fault of the machine that is known when the attempt ends makes its end the hardware's:
it is not billed, and tried again elsewhere. One that comes to light in the minutes after is recorded with it, and told to a person; what its
own lease was charged is given back on the tenant's account, as a credit for each charge, so that early and late come to the same money.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from ouvrage.adapters.health_tables import thresholds, xid_table
from ouvrage.books.dues.charging import charged_nano
from ouvrage.books.dues.lease import amount_text
from ouvrage.health.blame import HARDWARE, Blame, Ended, Fault, blamed
from ouvrage.health.record import HealthRecord
from ouvrage.model.health import CRITICAL, HealthEvent, JobBlamed, Paged, Verdict
from ouvrage.server.context import Platform
from ouvrage.server.recording import stated
from ouvrage.server.services.billing import give_back
from ouvrage.server.services.ended import End
from ouvrage.store.platform.selling import lease_of
from ouvrage.store.platform.work import AttemptRow, ended_since
from ouvrage.store.transaction import Transaction

_NUMBER = re.compile(r"^(?:xid-)?(\d{1,6})$")
_FAILED = ("failed", "time limit", "unhealthy")
SURE = Fraction(7, 10)
"""How sure it has to be before an end is the hardware's."""


def blame_now(platform: Platform, tx: Transaction, attempt: AttemptRow, how: End) -> End:
    """An end as it is told, or as the hardware's where a fault of its machine is known to have caused it."""
    itself = how.outcome == HARDWARE and attempt.stop is None
    if not itself and (how.outcome not in _FAILED or how.cause in (HARDWARE, "operator", "tenant")):
        return how
    with platform.health.at(tx.connection) as record:
        found = _blamed(record, attempt, how.ended_us)
    if itself:  # its node saw the machine fail under it, whatever a watch says
        seen = found.evidence if found is not None else (f"attempt/{attempt.attempt}/ended",)
        own = Blame(
            job=attempt.job, cause=HARDWARE, confidence=Fraction(1), evidence=seen, why=how.reason
        )
        _note(platform, tx, attempt, own, billed=False)
        return how
    if found is None:
        return how
    sure = found.cause == HARDWARE and found.confidence >= SURE
    _note(platform, tx, attempt, found, billed=not sure)
    if not sure:
        return how
    return replace(how, cause=HARDWARE, reason=f"{found.why}; {how.reason}"[:500])


def blame_late(platform: Platform, tx: Transaction, record: HealthRecord) -> None:
    """Blame the machine for what ended lately, where its fault was seen afterwards."""
    lately = tx.now_us - 2 * thresholds().us("blame.after")
    nodes = [node for node, faults in record.faults.items() if faults[-1][1] >= lately]
    for attempt in (row for node in nodes for row in ended_since(tx.connection, node, lately)):
        known = record.blames.get(attempt.attempt)
        if attempt.outcome not in _FAILED or attempt.cause == HARDWARE:
            continue
        if known is not None and known[1].cause == HARDWARE:
            continue
        found = _blamed(record, attempt, attempt.ended_us or 0)
        if found is None or found.cause != HARDWARE or found.confidence < SURE:
            continue
        _note(platform, tx, attempt, found, billed=True)
        words = f"{found.why} ended attempt {attempt.attempt[:8]}, {_given_back(platform, tx, attempt, found)}"
        page = Paged(
            key=f"blame/{attempt.attempt}", node=attempt.node, device=None, words=words,
            runbook="person",
        )  # fmt: skip
        name = record.machine(attempt.node).name
        tx.note([stated(platform, page, subject=f"node:{name}", at_us=tx.now_us)])


def _given_back(platform: Platform, tx: Transaction, attempt: AttemptRow, found: Blame) -> str:
    """Credit what an attempt's own lease was charged; in words what came of it."""
    lease = lease_of(tx.connection, attempt.lease)
    if lease is None or lease.kind != "job":
        return "in a lease for a term, which is charged whatever runs in it"
    back = give_back(platform, tx, attempt.lease, f"given back: {found.why} ended it")
    if not back:
        return "for which nothing was charged"
    return (
        f"which was billed: {amount_text(-charged_nano(back))} {back[0].value.currency} given back"
    )


def _blamed(record: HealthRecord, attempt: AttemptRow, at_us: int) -> Blame | None:
    """Whose fault it was; None where nothing was seen."""
    ended = Ended(
        job=attempt.job, tenant=attempt.org, at_us=at_us, nodes=(attempt.node,),
        devices=attempt.placed.devices,
    )  # fmt: skip
    found = blamed(ended, faults_of(record, attempt.node), (), thresholds())
    return found if found.evidence else None


def faults_of(record: HealthRecord, node: str) -> Iterable[Fault]:
    """What was seen on a node, as faults of a sort of the table."""
    table, devices = xid_table().codes, record.machine(node).devices
    for id, at_us, said in record.faults.get(node, ()):
        number = _NUMBER.match(said.code)
        row = table.get(int(number[1])) if number else None
        critical = isinstance(said, Verdict) and said.verdict == CRITICAL
        if row is None and not critical and not isinstance(said, HealthEvent):
            continue  # a warning of no code of the driver's ends no job
        yield Fault(
            id=id, node=node, device=said.device if said.device in devices else None, at_us=at_us,
            code=said.code, sort=row.sort if row else "hw" if critical else "noise",
            certain=critical,
        )  # fmt: skip


def _note(
    platform: Platform, tx: Transaction, attempt: AttemptRow, found: Blame, *, billed: bool
) -> None:
    blame = JobBlamed(
        job=attempt.job, attempt=attempt.attempt, node=attempt.node, cause=found.cause,
        percent=int(found.confidence * 100), evidence=found.evidence, why=found.why, billed=billed,
    )  # fmt: skip
    tx.note([stated(platform, blame, subject=attempt.attempt, at_us=tx.now_us)])
