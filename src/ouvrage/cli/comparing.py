"""A comparison with the records it stands on, for the verbs that print it or explain it.

A published comparison is shown beside it as somebody's claim: it becomes a fact of the ledger, of
grade ``reported``, when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_text
from ouvrage.cli.ledger import Ledger
from ouvrage.evidence.published import claim_called, claim_fact
from ouvrage.ledger.facts import Recorded
from ouvrage.model.claims import Claim
from ouvrage.pricing.comparison import Comparison, compare


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRuns:
    """Runs side by side, and every record behind them."""

    comparison: Comparison
    records: tuple[Recorded, ...]


def compared(
    ledger: Ledger, runs: Sequence[str], claim_name: str | None, as_of: int | None
) -> ComparedRuns:
    """Compare runs, all as known at one moment; the first is what the others are compared with."""
    claim = claim_called(claim_name) if claim_name else None
    stated = _stated(ledger, claim, as_of) if claim else []
    behind = [*ledger.records(runs, as_of), *stated]
    moment = as_of if as_of is not None else max(entry.recorded_at for entry in behind)
    found = ledger.assessed(runs, moment)
    return ComparedRuns(
        comparison=compare([(one.view, one.sheet) for one in found], claim),
        records=tuple(behind),
    )


def _stated(ledger: Ledger, claim: Claim, as_of: int | None) -> list[Recorded]:
    """The claim as a fact of this ledger, recorded now where it is asked for the first time."""
    if as_of is None:
        own = source_id(ledger.home)
        ledger.store.append([claim_fact(claim)], now_us=now_us(), own_source=own)
    stated = ledger.store.records(subject=claim.name, as_of=as_of)
    if not stated and as_of is not None:
        raise OuvrageError(
            "claim/not-recorded",
            f"the claim {claim.name} was not in this ledger at {utc_text(as_of)}",
            hint="leave --claim out, or --as-of",
        )
    return stated
