"""What a run must look like before a platform takes it from a stranger, since nothing taken can be taken back.

Decides on the facts alone, whoever sends them: they speak of one run and nothing else, under its own name, by kinds that concern
runs, and correct nothing but that run. Otherwise a tenant could send a fact under the identity that a charge will have, or one
that takes a charge's place. Who may send the run at all is decided in ``facts``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.admission import admit
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import read
from ouvrage.metering.exchange import Exported
from ouvrage.metering.judgement import SAID_KINDS
from ouvrage.metering.run_view import TRAVELS, statement_fault
from ouvrage.server.errors import unreadable

LARGEST = 256 << 20
"""Bytes that a sent run may unpack to."""
_RUN = re.compile(r"[0-9a-f]{32}")
_SAID = re.compile(r"accepted/[0-9a-f]{32}")


def offered(exported: Exported, own_source: str) -> Exported:
    """A sent run whose every fact may stand in the ledger. ``OuvrageError`` ``run/…`` or ``fact/…`` else."""
    if not _RUN.fullmatch(exported.run):
        raise refused("what it holds is not named as a run is")
    for number, fact in enumerate(exported.facts, 1):
        admit(fact)
        found = _fault(fact, exported.run, own_source)
        if found is not None:
            raise refused(f"fact {number} of {len(exported.facts)}, {fact.key}: {found}")
    return exported


def refused(found: str) -> OuvrageError:
    """The refusal of a run that a platform does not take."""
    return unreadable(
        "run/not-taken",
        f"this run can't be taken: {found}",
        hint="send what ouvrage run export writes, with a version no newer than the server's",
        field="facts",
    )


def _fault(fact: Fact, run: str, own_source: str) -> str | None:
    """What is wrong with one fact, beyond its form."""
    if fact.subject != run:
        return "it is about something else"
    if fact.kind not in TRAVELS:
        return f"facts of the kind {fact.kind} are not taken from outside"
    if fact.source == own_source:
        return "its source is the platform itself"
    said = fact.kind in SAID_KINDS and _SAID.fullmatch(fact.id)
    if not said and not fact.id.startswith(f"{run}/"):
        return "its id is not one of this run's"
    return statement_fault(read(fact), run)


def corrects_elsewhere(facts: Sequence[Fact], stored: Mapping[str, Recorded]) -> str | None:
    """The key of a fact among these that corrects what is not of this run; ``stored`` holds the corrected ones.

    What is not known yet might turn out to be anything, so it must come in the same file or before.
    """
    own = {fact.key for fact in facts}
    for fact in facts:
        if fact.corrects is None or fact.corrects in own:
            continue
        found = stored.get(fact.corrects)
        if found is None or found.fact.subject != fact.subject:
            return fact.key
    return None
