"""The laws of evidence, over the claims in a ledger and over any sheet of figures.

A claim never becomes a measurement, and no figure stands on nothing. What a figure says is not
judged here, only whether its way back is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.evidence.figures import Figure, Sheet
from ouvrage.evidence.published import claim_sheet
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
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
    for entry in in_force(records):
        better = entry.fact.grade in (Grade.MEASURED, Grade.METERED)
        if entry.fact.kind == Claim.KIND and better:
            yield entry.fact.key, f"a claim that calls itself {entry.fact.grade.word}"


def _claims_are_readable(records: Sequence[Recorded]) -> Iterable[tuple[str, str]]:
    for entry in in_force(records):
        if entry.fact.kind != Claim.KIND:
            continue
        claim = read(entry.fact)
        if not isinstance(claim, Claim):
            yield entry.fact.key, claim.reason
            continue
        try:
            claim_sheet(claim, 0)
        except ArithmeticError:
            yield entry.fact.key, "holds a price or cost that is no number"


LAWS: tuple[Law, ...] = (
    Law(
        name="evidence/claims-stay-claims",
        statement="what somebody else asserts is never measured or metered",
        check=_claims_stay_claims,
    ),
    Law(
        name="evidence/claims-readable",
        statement="every claim can be read, and its prices and costs are numbers",
        check=_claims_are_readable,
    ),
)
