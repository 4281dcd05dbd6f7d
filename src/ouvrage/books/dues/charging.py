"""Charges of a lease: what its cost has grown by since it was last charged, rule by rule.

Decides when a lease is charged (at the end of each month that it runs over, and at its end) and that a charge is the
cost until then less what was charged before, so that cutting by months never changes the total. Where less is owed
than was charged, since the failure was not the tenant's, credits name the charges that they give back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.canonical import sha256_hex
from ouvrage.base.numbers import decimal_text, number
from ouvrage.books.dues.lease import CostLine, Lease, amount_nano, amount_text, cost_lines
from ouvrage.books.known import Known
from ouvrage.books.period import months_in
from ouvrage.model.dues import LeaseCharge
from ouvrage.pricing.rates.record import exact_text

Charged = Known[LeaseCharge]
CREDIT_NOTE = "credit note"
"""The rule of a credit that the owner gives of their own accord: no plan charges it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """What was charged of one rule before, less the rule's own credits.

    ``open`` are the charges with what no credit at all gave back of each.
    """

    nano: int
    quantity: Fraction
    open: tuple[tuple[Charged, int], ...]


def charges_due(
    lease: Lease, before: Sequence[Charged], at_us: int, zone: str = "UTC"
) -> list[Charged]:
    """The charges that a lease needs at a moment and has not: of months that ended, and of its end.

    ``before`` are all its charges so far. Doing it again at once gives nothing.
    """
    found: list[Charged] = []
    for cut in _cuts(lease, before, at_us, zone):
        found += _charges_at(lease, [*before, *found], cut)
    return found


def _cuts(lease: Lease, before: Sequence[Charged], at_us: int, zone: str) -> Iterator[int]:
    done = _charged_to(lease, before)
    stops = lease.stops_us
    last = at_us if stops is None else min(at_us, stops)
    for month in months_in(done, last, zone):
        if done < month.to_us < last:
            yield month.to_us
    over = lease.ended is not None and lease.ended.at_us <= at_us
    month_ended = last > done and any(month.to_us == last for month in months_in(done, last, zone))
    if over or month_ended:
        yield max(last, lease.from_us)


def _charged_to(lease: Lease, before: Iterable[Charged]) -> int:
    return max((each.end for each in before if not each.value.credits), default=lease.from_us)


def _charges_at(lease: Lease, before: Sequence[Charged], at_us: int) -> Iterator[Charged]:
    lines = {line.rule: line for line in cost_lines(lease, at_us)}
    rules = dict.fromkeys((*lines, *(each.value.rule for each in before)))
    begins = min(_charged_to(lease, before), at_us)
    for rule in rules:
        had, line = _had(before, rule), lines.get(rule)
        owed = line.nano if line else 0
        if line is not None and (
            owed > had.nano or (owed == had.nano and line.quantity > had.quantity)
        ):
            yield _charge(lease, line, had, begins, at_us)
        elif owed < had.nano:
            yield from _credits(lease, had, had.nano - owed)


def _had(before: Sequence[Charged], rule: str) -> _Before:
    given = _given(before)
    ours = [each for each in before if each.value.rule == rule]
    charges = [each for each in ours if not each.value.credits]
    left = [(e, amount_nano(e.value.amount) + given.get(e.value.charge, 0)) for e in charges]
    return _Before(
        nano=charged_nano(ours),
        quantity=sum((number(each.value.quantity) for each in charges), Fraction(0)),
        open=tuple(left),
    )


def _charge(lease: Lease, line: CostLine, had: _Before, begins: int, ends: int) -> Charged:
    words, quantity = line.words, line.quantity - had.quantity
    if had.open:
        words += f"; less {decimal_text(had.quantity)} {line.unit} charged before".replace(
            "  ", " "
        )
    value = LeaseCharge(
        charge=sha256_hex(f"{lease.lease}\n{line.rule}\n{begins}")[:32],
        org=lease.org,
        project=lease.project,
        lease=lease.lease,
        attempt=lease.attempt,
        job=lease.job,
        amount=amount_text(line.nano - had.nano),
        currency=lease.offer.currency,
        rule=line.rule,
        words=words,
        price=line.price,
        quantity=exact_text(quantity),
        unit=line.unit,
        credits=None,
    )
    return Known(value=value, valid_from=begins, valid_to=ends, grade=lease.grade, key="")


def _credits(lease: Lease, had: _Before, less: int) -> Iterator[Charged]:
    """Give back ``less`` nano-units, the latest charge first."""
    why = lease.ended.outcome if lease.ended and lease.ended.outcome else "charged too much before"
    for each, left in reversed(had.open):
        back = min(left, less)
        if back > 0:
            yield credit_of(each, back, f"given back: {why}")
            less -= back


def credit_of(charged: Charged, back: int, words: str, rule: str | None = None) -> Charged:
    """A credit of ``back`` nano-units of a charge, over the same time, under its rule or another.

    Its id follows from what it gives back and why, so that making it again makes the same one.
    """
    old = charged.value
    value = LeaseCharge(
        charge=sha256_hex(f"{old.charge}\ncredit\n{back}\n{words}")[:32],
        org=old.org,
        project=old.project,
        lease=old.lease,
        attempt=old.attempt,
        job=old.job,
        amount=amount_text(-back),
        currency=old.currency,
        rule=rule or old.rule,
        words=words,
        price=old.price,
        quantity="0",
        unit=old.unit,
        credits=old.charge,
    )
    return Known(
        value=value, valid_from=charged.valid_from, valid_to=charged.valid_to,
        grade=charged.grade, key="",
    )  # fmt: skip


def credits_of(
    charges: Sequence[Charged], words: str, only: Collection[str] | None = None
) -> list[Charged]:
    """Credits of all that is left of some charges (of ``only`` these), given by the owner of their own accord.

    ``charges`` are all charges and credits that could be about them.
    """
    given = _given(charges)
    found: list[Charged] = []
    for each in charges:
        left = amount_nano(each.value.amount) + given.get(each.value.charge, 0)
        wanted = only is None or each.value.charge in only
        if wanted and left > 0 and not each.value.credits:
            found.append(credit_of(each, left, words, CREDIT_NOTE))
    return found


def _given(charges: Iterable[Charged]) -> dict[str, int]:
    """By charge, what its credits come to: below zero."""
    given: dict[str, int] = {}
    for each in charges:
        if each.value.credits:
            back = amount_nano(each.value.amount)
            given[each.value.credits] = given.get(each.value.credits, 0) + back
    return given


def of_cost(charges: Iterable[Charged]) -> list[Charged]:
    """The charges without what the owner gave back of their own accord: what leases' costs came to."""
    return [each for each in charges if each.value.rule != CREDIT_NOTE]


def charged_nano(charges: Iterable[Charged]) -> int:
    """The sum of some charges and credits in nano-units."""
    return sum(amount_nano(each.value.amount) for each in charges)
