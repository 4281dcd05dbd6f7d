"""How the server states what happened: facts under its own source, and the audit trail among them.

Decides the id of such a fact (its kind, what it is about, and a new id) and its grade: the platform's own record is
``metered``. A trail is the facts about ``audit:ORG``, so that a tenant is shown its own and the owner all.
"""

from __future__ import annotations

from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.tenancy import AuditEntry
from ouvrage.server.context import Actor, Platform
from ouvrage.store.transaction import Transaction

LONGEST_DETAIL = 500


def stated(
    platform: Platform,
    value: Any,
    *,
    subject: str,
    at_us: int,
    until_us: int | None = None,
    natural: str | None = None,
    grade: Grade = Grade.METERED,
) -> Fact:
    """A fact that the server states: from ``at_us`` on, or for a period.

    ``natural`` is its id where the same statement may come twice and must be one fact; else a new id is made.
    """
    return fact_of(
        value,
        source=platform.source,
        id=natural or f"{value.KIND}/{subject}/{platform.ids()}",
        subject=subject,
        valid_from=at_us,
        valid_to=until_us,
        grade=grade,
    )


def trail_of(org: str | None) -> str:
    """The subject of an organisation's trail; None: of what concerns the owner alone."""
    return f"audit:{org or 'platform'}"


def audited(
    platform: Platform,
    actor: Actor,
    action: str,
    *,
    at_us: int,
    org: str | None,
    target: str | None = None,
    outcome: str = "done",
    detail: str = "",
) -> Fact:
    """A line of the audit trail, as a fact."""
    entry = AuditEntry(
        actor=actor.id,
        login=actor.login,
        action=action,
        target=target,
        org=org,
        outcome=outcome,
        detail=detail[:LONGEST_DETAIL],
        address=actor.address,
    )
    return stated(platform, entry, subject=trail_of(org), at_us=at_us, until_us=at_us)


def record(
    tx: Transaction,
    platform: Platform,
    actor: Actor,
    action: str,
    *,
    org: str | None,
    target: str | None = None,
    detail: str = "",
    facts: tuple[Fact, ...] = (),
) -> None:
    """Append facts and the line of the trail that says who caused them, in the open transaction."""
    line = audited(platform, actor, action, at_us=tx.now_us, org=org, target=target, detail=detail)
    tx.note([*facts, line])
