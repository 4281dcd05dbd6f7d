"""What a line of a bank pays of a document, and what that leaves on either side.

Decides how lines are shared out over documents: in order of time, each document up to what it asks for,
so that no document is paid twice and no line pays more than it moved. What a payment lost or gained on
its way stays apart from both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.books.bank_items import Item

BY_HAND, CERTAIN, LIKELY, POSSIBLE = CERTAINTY = ("by hand", "certain", "likely", "possible")
"""How sure a match is, the surest first; a possible one waits until somebody says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """``line`` pays ``amount`` of ``claim``, in its currency, with ``took`` of its own.

    ``fact`` is the key of the statement by hand that says so, if one does.
    """

    claim: Item
    line: Item
    amount: Fraction
    took: Fraction
    fact: str = ""

    @property
    def on_the_way(self) -> Fraction:
        """What was lost (below zero) or gained between document and bank; of an exchange nothing is."""
        same = self.claim.currency == self.line.currency
        return self.took - self.amount if same else Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Some documents and the lines that pay them, with the reason and how certain that is."""

    shares: tuple[Share, ...]
    certainty: str
    reason: str

    @property
    def claims(self) -> tuple[Item, ...]:
        """The documents, each once."""
        return tuple({share.claim.key: share.claim for share in self.shares}.values())

    @property
    def lines(self) -> tuple[Item, ...]:
        """The lines of the bank, each once."""
        return tuple({share.line.key: share.line for share in self.shares}.values())

    @property
    def left(self) -> Fraction:
        """What is still owed of the documents."""
        return sum((_left(claim, self.shares) for claim in self.claims), Fraction(0))

    @property
    def rest(self) -> Fraction:
        """What of the lines pays none of the documents."""
        return sum((_rest(line, self.shares) for line in self.lines), Fraction(0))

    @property
    def difference(self) -> Fraction:
        """What was lost or gained on the way."""
        return sum((share.on_the_way for share in self.shares), Fraction(0))


def _left(claim: Item, shares: Sequence[Share]) -> Fraction:
    paid = (share.amount for share in shares if share.claim.key == claim.key)
    return claim.amount - sum(paid, Fraction(0))


def _rest(line: Item, shares: Sequence[Share]) -> Fraction:
    taken = (share.took for share in shares if share.line.key == line.key)
    return line.amount - sum(taken, Fraction(0))


def left_of(match: Match) -> Iterator[tuple[Item, Fraction]]:
    """The documents of a match that are paid in part, with what is still owed of each."""
    for claim in match.claims:
        if left := _left(claim, match.shares):
            yield claim, left


def rest_of(match: Match) -> Iterator[tuple[Item, Fraction]]:
    """The lines of a match that moved more than its documents ask for, with how much more."""
    for line in match.lines:
        if rest := _rest(line, match.shares):
            yield line, rest


def in_full(claim: Item, line: Item) -> tuple[Share]:
    """One line pays one document, whatever was lost or exchanged on the way."""
    return (Share(claim=claim, line=line, amount=claim.amount, took=line.amount),)


def in_turn(claims: Sequence[Item], lines: Sequence[Item]) -> tuple[Share, ...]:
    """Lines pay documents of their currency and direction one after the other, as far as they reach."""
    shares: list[Share] = []
    waiting = [(claim, claim.amount) for claim in claims]
    for line in lines:
        rest = line.amount
        while rest and waiting:
            claim, owed = waiting[0]
            paid = owed if abs(owed) <= abs(rest) else rest
            shares.append(Share(claim=claim, line=line, amount=paid, took=paid))
            rest, owed = rest - paid, owed - paid
            waiting[0] = (claim, owed)
            if not owed:
                waiting.pop(0)
    return tuple(shares)
