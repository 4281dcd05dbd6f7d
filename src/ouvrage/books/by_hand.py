"""What somebody said of a payment and a document: that the one pays the other, or that it does not.

Decides what may be said: no payment of the other direction, none in a currency without a rate, none whose
amount is further off than a charge on the way would be, unless it is said to be a part; no line pays more
than it moved and no document is paid twice. What does not fit what is known now (a line that was
withdrawn, a document that asks for less since) counts for nothing and is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text, fixed, number
from ouvrage.base.time import utc_text
from ouvrage.books.bank_items import Item
from ouvrage.books.money import factor_of, rate_at
from ouvrage.books.paying import BY_HAND, Match, Share
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.model.cash import PaymentMatched

Pairs = frozenset[tuple[str, str]]
"""Pairs of a line and a document, by what stays of their keys."""
NEAR, FX_NEAR = Fraction(1, 100), Fraction(3, 100)
"""How far a payment in full may be from its document: a charge on the way; a bank's own exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Astray:
    """A statement by hand that does not fit what is known now, and why."""

    payment: str
    document: str
    why: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ByHand:
    """What was said: matches, pairs that do not belong together, and what does not fit."""

    matches: tuple[Match, ...]
    apart: Pairs
    astray: tuple[Astray, ...]


def by_hand(record: OwnerRecord, claims: Sequence[Item], lines: Sequence[Item]) -> ByHand:
    """The statements by hand in force against the documents and lines that are known."""
    papers = {item.lasting: item for item in claims}
    moved = {item.lasting: item for item in lines}
    shares: list[Share] = []
    astray: list[Astray] = []
    for said in record.by_hand:
        if said.value.amount is None or said.value.took is None:
            continue
        share = _share(said, papers, moved)
        why = share if isinstance(share, str) else _too_much(share, shares)
        if isinstance(share, Share) and not why:
            shares.append(share)
        else:
            astray.append(Astray(payment=said.value.payment, document=said.value.document,
                                 why=str(why), key=said.key))  # fmt: skip
    no = ((s.value.payment, s.value.document) for s in record.by_hand if s.value.amount is None)
    return ByHand(matches=_matches(record, shares), apart=frozenset(no), astray=tuple(astray))


def _share(
    said: Known[PaymentMatched], papers: Mapping[str, Item], moved: Mapping[str, Item]
) -> Share | str:
    claim, line = papers.get(said.value.document), moved.get(said.value.payment)
    if line is None:
        return "its line of the bank is not known any more"
    if claim is None:
        return "its document is not known any more"
    return Share(
        claim=claim, line=line, amount=number(said.value.amount or "0"),
        took=number(said.value.took or "0"), fact=said.key,
    )  # fmt: skip


def _too_much(share: Share, before: Iterable[Share]) -> str:
    owed, rest = _free(share.claim, share.line, before)
    if share.amount * owed <= 0 or abs(share.amount) > abs(owed):
        return "its document does not ask for so much any more"
    if share.took * rest <= 0 or abs(share.took) > abs(rest):
        return "its line of the bank does not hold so much any more"
    return ""


def _free(claim: Item, line: Item, shares: Iterable[Share]) -> tuple[Fraction, Fraction]:
    """What is still owed of a document, and what of a line pays nothing yet."""
    owed, rest = claim.amount, line.amount
    for share in shares:
        owed -= share.amount if share.claim.key == claim.key else 0
        rest -= share.took if share.line.key == line.key else 0
    return owed, rest


def _matches(record: OwnerRecord, shares: Sequence[Share]) -> tuple[Match, ...]:
    """Shares that have a line or a document in common are one match."""
    groups: list[list[Share]] = []
    for share in shares:
        ends = {share.claim.key, share.line.key}
        with_it = [g for g in groups if any(ends & {s.claim.key, s.line.key} for s in g)]
        groups = [g for g in groups if g not in with_it]
        groups.append([*(s for g in with_it for s in g), share])
    whys = {said.key: said.value.why for said in record.by_hand}
    return tuple(
        Match(shares=tuple(group), certainty=BY_HAND, reason=_reason(whys[s.fact] for s in group))
        for group in groups
    )


def _reason(whys: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(why for why in whys if why)) or "somebody said so"


def paying(
    record: OwnerRecord, line: Item, claim: Item, shares: Sequence[Share], *, part: bool, why: str
) -> PaymentMatched:
    """The statement that a line pays a document, in full or as far as it reaches.

    ``shares`` is what was said by hand before. Raises ``OuvrageError`` ``match/...``.
    """
    others = [s for s in shares if (s.line.key, s.claim.key) != (line.key, claim.key)]
    owed, rest = _free(claim, line, others)
    _check_free(line, claim, others, owed, rest)
    factor = _factor(record, line, claim)
    took = rest if not part else _smaller(rest, owed * factor)
    amount = owed if not part else _smaller(owed, rest / factor)
    if not part:
        near = NEAR if line.currency == claim.currency else FX_NEAR
        if abs(rest - owed * factor) > max(abs(claim.less), near * abs(owed * factor)):
            raise _no_sum(line, claim, owed, rest, factor)
    return PaymentMatched(
        payment=line.lasting, document=claim.lasting, amount=decimal_text(amount),
        took=decimal_text(took), why=why,
    )  # fmt: skip


def _check_free(
    line: Item, claim: Item, others: Sequence[Share], owed: Fraction, rest: Fraction
) -> None:
    if not rest:
        said = next(share for share in others if share.line.key == line.key)
        raise OuvrageError(
            "match/taken", f"{line.name} was said to pay {said.claim.name}",
            hint=f"if it does not: ouvrage books match {line.name} {said.claim.name} --undo --why TEXT",
        )  # fmt: skip
    if not owed:
        said = next(share for share in others if share.claim.key == claim.key)
        raise OuvrageError(
            "match/paid", f"{claim.name} was said to be paid by {said.line.name}",
            hint=f"if it is not: ouvrage books match {said.line.name} {claim.name} --undo --why TEXT",
        )  # fmt: skip
    if (owed > 0) != (rest > 0):
        raise OuvrageError(
            "match/direction",
            f"{line.name} {'came into' if rest > 0 else 'left'} the bank, and {claim.name} "
            f"{'comes in' if owed > 0 else 'is to be paid'}",
            hint="name a line of the same direction: ouvrage books reconcile lists them",
        )


def _factor(record: OwnerRecord, line: Item, claim: Item) -> Fraction:
    """What one of the document's currency was worth in the line's on its day."""
    if line.currency == claim.currency:
        return Fraction(1)
    rate = rate_at(record, claim.currency, line.currency, line.day_us)
    if rate is None:
        day = utc_text(line.day_us)[:10]
        raise OuvrageError(
            "match/currency",
            f"{line.name} is in {line.currency} and {claim.name} in {claim.currency}, and no rate of {day} is known",
            hint=f"ouvrage fx set {claim.currency}/{line.currency} RATE --day {day} --by WHO",
        )
    return factor_of(rate.value, claim.currency)


def _smaller(one: Fraction, other: Fraction) -> Fraction:
    return min(one, other, key=abs)


def _no_sum(
    line: Item, claim: Item, owed: Fraction, rest: Fraction, factor: Fraction
) -> OuvrageError:
    worth = (
        "" if factor == 1 else f", {fixed(owed * factor, 2)} {line.currency} at the rate of the day"
    )
    less = abs(rest) < abs(owed * factor)
    left = "the rest of the document stays open" if less else "the rest of the line stays unmatched"
    return OuvrageError(
        "match/amount",
        f"{line.name} is {fixed(rest, 2)} {line.currency} and {claim.name} {fixed(owed, 2)} "
        f"{claim.currency}{worth}: they do not add up",
        hint=f"if the one is a part of the other, add --part: {left}",
    )
