"""The laws of evidence, over the claims in a ledger and over any sheet of figures.

A claim never becomes a measurement, and no figure stands on nothing. What a figure says is not
judged here, only whether its way back is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.evidence.claims import CLAIMED, Entry, claim_fault, claims_in
from ouvrage.evidence.figures import Figure, Sheet
from ouvrage.evidence.observations import faults, observations_in
from ouvrage.evidence.published import entry_sheet
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import KINDS, Unread, read
from ouvrage.ledger.laws import Law
from ouvrage.ledger.view import in_force
from ouvrage.model.claims import Claim


def sheet_breaches(sheet: Sheet, keys: set[str]) -> Iterable[tuple[str, str]]:
    """What is broken in a sheet: inputs and facts that do not exist, shares that do not add up."""
    for path, figure in sheet.figures.items():
        where = f"{sheet.object}:{path}"
        for name in figure.inputs:
            if name not in sheet.figures:
                yield where, f"made from {name}, which does not exist"
        for key in figure.facts:
            if key not in keys:
                yield where, f"stands on {key}, which is not in the ledger"
        yield from ((where, found) for found in _figure_faults(figure))


def _figure_faults(figure: Figure) -> Iterable[str]:
    if figure.value is None:
        if not figure.why:
            yield "unknown without a reason"
        return
    if not (figure.inputs or figure.facts):
        yield "stands on nothing"
    if sum(figure.shares.values()) != Fraction(1):
        yield "the shares at each grade do not add up to 1"
    elif figure.grade != max(figure.shares):
        yield "its grade is not the weakest among its shares"


def _claims_stay_claims(records: Sequence[Recorded]) -> Iterable[tuple[str, str]]:
    for entry in claims_in(in_force(records)):
        where = entry.recorded.fact.key
        if entry.grade not in CLAIMED:
            yield where, f"a claim that calls itself {entry.grade.word}"
        for figure in _figures_of(entry) or ():
            if figure.grade is not None and figure.grade < entry.grade:
                yield where, f"its figure {figure.path} calls itself {figure.grade.word}"


def _claims_are_readable(records: Sequence[Recorded]) -> Iterable[tuple[str, str]]:
    for entry in in_force(records):
        claim = read(entry.fact) if entry.fact.kind == Claim.KIND else None
        if isinstance(claim, Unread) and (entry.fact.kind, entry.fact.version) in KINDS:
            yield entry.fact.key, claim.reason
    for entry in claims_in(in_force(records)):
        where = entry.recorded.fact.key
        if _figures_of(entry) is None:
            yield where, "holds a price or cost that is no number"
        fault = claim_fault(entry.claim, Grade.REPORTED)
        if fault is not None and entry.recorded.fact.version == Claim.VERSION:
            yield where, fault[0]


def _figures_of(entry: Entry) -> list[Figure] | None:
    """Every figure made from a claim; None where it holds texts that are no numbers."""
    try:
        return list(entry_sheet(entry, 0).figures.values())
    except ArithmeticError:
        return None


def _observations_say_what_was_answered(
    records: Sequence[Recorded],
) -> Iterable[tuple[str, str]]:
    for seen in observations_in(in_force(records)):
        for fault in faults(seen.observation, seen.grade):
            yield seen.recorded.fact.key, f"an observation that {fault}"


LAWS: tuple[Law, ...] = (
    Law(
        name="evidence/claims-stay-claims",
        statement="what somebody else asserts is never measured or metered, nor is a figure made from it",
        check=_claims_stay_claims,
    ),
    Law(
        name="evidence/claims-readable",
        statement="every claim can be read, is whole, and its prices and costs are numbers",
        check=_claims_are_readable,
    ),
    Law(
        name="evidence/observations",
        statement="an observation holds the answer it was made from and says no more than was answered",
        check=_observations_say_what_was_answered,
    ),
)
