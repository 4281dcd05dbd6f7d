"""The fact that a statement was refused.

Decides how a refusal is remembered: under an id made from what was refused, and dated like the
fact it contests, so that the same refusal met again, anywhere, is the same fact and *exists*.
"""

from __future__ import annotations

from ouvrage.base.canonical import sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Fact, first_difference
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.records import Conflict


def conflict_fact(stored: Fact, offered: Fact, *, source: str) -> Fact:
    """What ``source`` states when ``offered`` comes under the identity of ``stored``."""
    difference = first_difference(stored, offered)
    if difference is None:
        raise RuntimeError(f"{stored.key} was taken for a conflict with itself")
    conflict = Conflict(
        key=stored.key,
        field=difference.field,
        stored=difference.stored,
        offered=difference.offered,
        stored_sha256=stored.sha256,
        offered_sha256=offered.sha256,
    )
    return fact_of(
        conflict,
        source=source,
        id=f"conflict/{sha256_hex(f'{stored.key} {offered.sha256}')[:32]}",
        subject=stored.subject,
        valid_from=stored.valid_from,
        valid_to=stored.valid_to,
        grade=Grade.MEASURED,
    )
