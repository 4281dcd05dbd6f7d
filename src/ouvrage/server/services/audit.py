"""The audit trail as it is shown: who did what, and what was refused.

A tenant's administrator sees the lines of their own organisation, the owner all of them.
"""

from __future__ import annotations

from ouvrage.base.numbers import whole
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.model.tenancy import AuditEntry
from ouvrage.server.authorise import authorise, is_owner_side
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import Refused, bad_request
from ouvrage.server.recording import audited, trail_of
from ouvrage.server.services.naming import organisation_meant
from ouvrage.store.platform.trail import trail
from ouvrage.wire.api import AuditTold


def listed(
    platform: Platform, actor: Actor, org: str | None, after: str, limit: int
) -> list[AuditTold]:
    """Lines of the trail, newest first: of one organisation, or of all that the actor may see."""
    before = whole(after)
    if after and before is None:
        raise bad_request(
            "list/cursor", "that is no cursor of this list", hint="hand `next` back as it is"
        )
    with platform.reading() as connection:
        subject = None
        if org is not None or not is_owner_side(actor):
            found = organisation_meant(connection, actor, org)
            authorise(actor, "audit.read", org=found.org)
            subject = trail_of(found.org)
        else:
            authorise(actor, "audit.read", org=None)
        rows = trail(connection, subject=subject, before=before, limit=limit)
    return [_told(row) for row in rows]


def _told(row: Recorded) -> AuditTold:
    entry = read(row.fact)
    assert isinstance(entry, AuditEntry)
    return AuditTold(
        seq=row.seq,
        at_us=row.fact.valid_from,
        actor=entry.actor,
        login=entry.login,
        action=entry.action,
        target=entry.target,
        org=entry.org,
        outcome=entry.outcome,
        detail=entry.detail,
        address=entry.address,
    )


def note_refusal(platform: Platform, actor: Actor, action: str, where: str, error: Refused) -> None:
    """A line that somebody known was refused something they have no right to."""
    orgs = sorted({held.org for held in actor.memberships})
    with platform.writing() as tx:
        line = audited(
            platform, actor, action,
            at_us=tx.now_us, org=orgs[0] if orgs else None, outcome=error.code, detail=where,
        )  # fmt: skip
        tx.append([line])
