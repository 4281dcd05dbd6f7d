"""A run comes to the platform: who may send it, to which project it belongs, and how it is recorded.

Decides that a node sends the runs of its own attempts and nothing else, a member the runs of a project they work in, and that a run
keeps the project it first came to. Facts are recorded in short transactions, so that nobody who looks at a page waits for a long run;
each counts once, so that an interrupted sending is simply done again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ouvrage.base.ids import code_of
from ouvrage.ledger.facts import Fact
from ouvrage.metering.exchange import Exported, read_export
from ouvrage.model.ingest import RunReceived
from ouvrage.model.runs import RunStarted
from ouvrage.model.tenancy import Project
from ouvrage.server.authorise import authorise
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict, unknown
from ouvrage.server.recording import audited, stated
from ouvrage.server.services import node_facts
from ouvrage.server.services.naming import organisation_meant, project_meant, refuse_closed
from ouvrage.server.services.offered import LARGEST, corrects_elsewhere, offered, refused
from ouvrage.store.exchange import check_samples
from ouvrage.store.platform.received import (
    ReceivedRow,
    bytes_sent,
    more_received,
    put_received,
    received_of,
    row_of,
)
from ouvrage.store.platform.tenancy import organisation_of, project_of
from ouvrage.store.platform.work import AttemptRow, attempt_of, job_of
from ouvrage.store.samples import seal
from ouvrage.store.store import Outcome
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.facts import ConflictTold, FactsTaken
from ouvrage.wire.health import NodeFactsTaken

CHUNK = 200
"""Facts that one transaction records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Home:
    """Where a run belongs: its project, whether an attempt made it, and what is known of it already."""

    org_name: str
    project: Project
    attempt: bool
    known: ReceivedRow | None


def check_sender(platform: Platform, actor: Actor, project: str | None) -> None:
    """Refuse whoever may not send a run into a named project, before anything of it is read."""
    if actor.kind == "user" and project is not None:
        with platform.reading() as connection:
            _allowed(connection, actor, project_meant(connection, actor, project))


def receive(
    platform: Platform, actor: Actor, project: str | None, content: bytes
) -> FactsTaken | NodeFactsTaken:
    """Record a sent run, or what is not known of it yet. Raises ``OuvrageError`` with nothing recorded."""
    sent = read_export(content, largest=LARGEST)
    if actor.kind == "node" and sent.run.startswith(node_facts.SUBJECT):
        return node_facts.receive(platform, actor, sent)
    exported = offered(sent, platform.source)
    size = sum(len(fact.payload) for fact in exported.facts) + len(exported.samples or b"")
    with platform.reading() as connection:
        home = _home(connection, actor, exported.run, project)
        _refuse_too_much(connection, platform, home, size)
    if home.known is None and not any(f.kind == RunStarted.KIND for f in exported.facts):
        raise refused("its start is not in it")
    named = platform.store.named(f.corrects for f in exported.facts if f.corrects)
    elsewhere = corrects_elsewhere(exported.facts, named)
    if elsewhere is not None:
        raise refused(f"{elsewhere} corrects what is not of this run")
    if exported.samples is not None:
        check_samples(exported.facts, exported.samples)
        seal(platform.state_dir, exported.run, exported.samples)
    outcomes = _recorded(platform, actor, home, exported, size)
    return _taken(home, exported, outcomes)


def _home(connection: Connection, actor: Actor, run: str, named: str | None) -> _Home:
    """The project of a run, which the sender may send it to."""
    attempt = attempt_of(connection, run)
    known = received_of(connection, run)
    if actor.kind == "node":
        return _of_attempt(connection, actor, attempt, run, known)
    if attempt is not None:
        raise _made_here(connection, actor, attempt)
    if known is None:
        if named is None:
            named = _only_project(actor)
        project = project_meant(connection, actor, named)
    else:
        project = _kept(connection, actor, known, named)
    org_name = _allowed(connection, actor, project)
    return _Home(org_name=org_name, project=project, attempt=False, known=known)


def _allowed(connection: Connection, actor: Actor, project: Project) -> str:
    """The name of the organisation into whose project the sender may send runs."""
    authorise(actor, "run.push", org=project.org, project=project.project)
    org = organisation_meant(connection, actor, project.org)
    refuse_closed(org, project)
    return org.name


def _of_attempt(
    connection: Connection,
    actor: Actor,
    attempt: AttemptRow | None,
    run: str,
    known: ReceivedRow | None,
) -> _Home:
    if attempt is None or attempt.node != actor.id:
        raise unknown("attempt", run)
    job = job_of(connection, attempt.job)
    assert job is not None
    project = project_of(connection, job.project)
    org = organisation_of(connection, job.org)
    assert project is not None
    assert org is not None
    return _Home(org_name=org.name, project=project, attempt=True, known=known)


def _made_here(connection: Connection, actor: Actor, attempt: AttemptRow) -> Exception:
    """An attempt's run is the platform's own record: its node alone sends it."""
    job = job_of(connection, attempt.job)
    assert job is not None
    authorise(actor, "run.push", org=job.org, project=job.project)
    return conflict(
        "run/made-here",
        f"{code_of(attempt.attempt)} is an attempt of a job here, whose node sends it",
        hint=f"ouvrage job show {job.name}",
        field="facts",
    )


def _only_project(actor: Actor) -> str:
    """The project of a token or member that is for one alone."""
    held = {each.project for each in actor.memberships}
    if len(held) == 1 and (only := next(iter(held))) is not None:
        return only
    return "main"


def _kept(connection: Connection, actor: Actor, known: ReceivedRow, named: str | None) -> Project:
    """The project that a run belongs to already; another one is refused."""
    project = project_of(connection, known.project)
    assert project is not None
    authorise(actor, "run.push", org=project.org, project=project.project)
    if named is not None and project_meant(connection, actor, named).project != project.project:
        raise conflict(
            "run/other-project",
            f"{code_of(known.run)} belongs to the project {project.name}",
            hint="a run keeps the project it first came to; leave --project out",
            field="project",
        )
    return project


def _refuse_too_much(connection: Connection, platform: Platform, home: _Home, size: int) -> None:
    most = platform.limits.sent_bytes
    if not home.attempt and bytes_sent(connection, home.project.project) + size > most:
        raise conflict(
            "run/too-much",
            f"runs that were sent to {home.project.name} would take more than {most:,} bytes",
            hint="ask the owner of the platform for more room",
            field="facts",
        )


def _recorded(
    platform: Platform, actor: Actor, home: _Home, exported: Exported, size: int
) -> list[Outcome]:
    """Record fact after fact, the run's belonging with the first; one outcome each."""
    outcomes: list[Outcome] = []
    for number, facts in enumerate(_chunks(exported.facts)):
        with platform.writing() as tx:
            if number == 0:
                _belongs(tx, platform, actor, home, exported.run)
            outcomes += tx.append(facts)
            if number * CHUNK + len(facts) == len(exported.facts) and _news(outcomes):
                more_received(tx.connection, exported.run, size)
    return outcomes


def _chunks(facts: Sequence[Fact]) -> Iterator[Sequence[Fact]]:
    """The facts in parts, the run's start in the first one."""
    ordered = sorted(facts, key=lambda fact: fact.kind != RunStarted.KIND)
    for begin in range(0, len(ordered), CHUNK):
        yield ordered[begin : begin + CHUNK]


def _news(outcomes: Sequence[Outcome]) -> bool:
    return any(outcome.result != "exists" for outcome in outcomes)


def _belongs(tx: Transaction, platform: Platform, actor: Actor, home: _Home, run: str) -> None:
    """State whose a new run is, once; two who send it at the same time meet here one after the other."""
    found = received_of(tx.connection, run)
    if found is not None:
        if found.project != home.project.project:
            raise unknown("run", run)
        return
    received = RunReceived(
        run=run,
        org=home.project.org,
        project=home.project.project,
        attempt=home.attempt,
        by=actor.id,
    )
    fact = stated(
        platform, received, subject=f"run:{run}", natural=f"run/{run}/received", at_us=tx.now_us
    )
    put_received(tx.connection, row_of(received, tx.now_us, 0))
    line = audited(platform, actor, "run.push", at_us=tx.now_us, org=home.project.org, target=run)
    tx.append([fact] if home.attempt else [fact, line])


def _taken(home: _Home, exported: Exported, outcomes: Sequence[Outcome]) -> FactsTaken:
    by_key = {outcome.key: outcome for outcome in outcomes}
    results = [by_key[fact.key].result for fact in exported.facts]
    return FactsTaken(
        run=exported.run,
        code=code_of(exported.run),
        org_name=home.org_name,
        project=home.project.project,
        project_name=home.project.name,
        new=home.known is None,
        accepted=results.count("accepted"),
        exists=results.count("exists"),
        conflict=results.count("conflict"),
        results=results,
        conflicts=[
            ConflictTold(fact=each.key, field=each.field or "")
            for each in outcomes
            if each.result == "conflict"
        ],
        samples=exported.samples is not None,
    )
