"""Pieces priced: tiers and allowances applied in order, and each result written as a charge.

Decides whose quantities are added up together, and the words in which a charge says how it came
about. What there is to price, and the order of rules, is decided by ``rating``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.pricing.rates.bill import Charge
from ouvrage.pricing.rates.clock import month_us
from ouvrage.pricing.rates.commitments import Purchase, refund
from ouvrage.pricing.rates.given import grade_of_price
from ouvrage.pricing.rates.pieces import Piece, exact_quantity, exact_unit, grouped, period_of
from ouvrage.pricing.rates.plan import Plan, Rule, Tier
from ouvrage.pricing.rates.quantity import MONTH, Rate, seconds_text
from ouvrage.pricing.rates.tiers import Slice, reached, slices
from ouvrage.pricing.rates.usage import Row, Usage

ONE = Fraction(1)


class Fixed(NamedTuple):
    """What is known of a charge whose amount is not a quantity × a rate."""

    kind: str
    start: int
    end: int
    amount: Fraction
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricer:
    """Prices pieces of one usage under one plan, in one currency."""

    plan: Plan
    usage: Usage
    currency: str

    def priced(self, rule: Rule, pieces: Sequence[Piece]) -> list[Charge]:
        """Pieces through tiers and allowance, in order of time within each group."""
        form = rule.form
        assert form is not None
        tiers = rule.tiers or (Tier(up_to=None, rate=rule.rate),)
        totals = self._totals(rule, form, pieces)
        reached_so_far: dict[tuple[str, int], Fraction] = {}
        found: list[Charge] = []
        for piece in sorted(pieces, key=lambda each: (each.start, each.resource)):
            key = self._group(rule, piece)
            before = reached_so_far.get(key, Fraction(0)) if grouped(rule) else Fraction(0)
            parts, after = self._slices(rule, form, piece, before, tiers, totals.get(key))
            reached_so_far[key] = after
            found += [self._charge(rule, form, piece, part) for part in parts]
        return found

    def _totals(
        self, rule: Rule, form: Rate, pieces: Sequence[Piece]
    ) -> dict[tuple[str, int], Fraction]:
        """The whole quantity of each group, where it decides the tier."""
        totals: dict[tuple[str, int], Fraction] = {}
        if rule.grouping.tiering == "whole" and grouped(rule):
            for piece in pieces:
                key = self._group(rule, piece)
                totals[key] = totals.get(key, Fraction(0)) + piece.quantity(rule, form)
        return totals

    def _group(self, rule: Rule, piece: Piece) -> tuple[str, int]:
        """Whose quantities are added up with this one, and for which period."""
        if not grouped(rule):
            return "", 0
        scope = rule.grouping.scope
        if scope == "account":
            return "", period_of(rule, piece.start)
        if scope == "resource":
            return piece.resource, period_of(rule, piece.start)
        resource = next(each for each in self.usage.resources if each.name == piece.resource)
        return resource.setting(scope, piece.start) or "", period_of(rule, piece.start)

    def _slices(
        self,
        rule: Rule,
        form: Rate,
        piece: Piece,
        before: Fraction,
        tiers: Sequence[Tier],
        total: Fraction | None,
    ) -> tuple[list[Slice], Fraction]:
        free, quantity = rule.grouping.free, piece.quantity(rule, form)
        if rule.grouping.tier_by == "level" and piece.level:
            parts = slices(Fraction(0), piece.level, free, tiers)
            share = quantity / piece.level
            scaled = [Slice(quantity=p.quantity * share, rate=p.rate, words=p.words) for p in parts]
            return scaled, before
        if total is not None:
            index = reached(max(total - free, Fraction(0)), tiers)
            tiers = (Tier(up_to=None, rate=tiers[index].rate),)
        parts = slices(before, quantity, free, tiers)
        if not parts:
            parts = [Slice(quantity=quantity, rate=tiers[0].rate, words="")]
        return parts, before + quantity

    def _charge(self, rule: Rule, form: Rate, piece: Piece, part: Slice) -> Charge:
        amount = part.quantity * part.rate.amount * piece.weight if part.rate else Fraction(0)
        return Charge(
            resource=piece.resource,
            rule=rule.name,
            part=rule.part,
            kind="usage" if part.rate else "free",
            start=piece.start,
            end=piece.end,
            quantity=exact_quantity(part.quantity, rule, form, piece.start),
            unit=exact_unit(form),
            rate=part.rate,
            multiplier=piece.weight,
            amount=amount,
            because=self._because(rule, form, piece, part),
            confidence=self.plan.confidence(rule),
            grade=grade_of_price(rule),
        )

    def _because(self, rule: Rule, form: Rate, piece: Piece, part: Slice) -> str:
        words = [piece.because]
        if part.rate is not None:
            words.append(f"at {part.rate.words(self.currency)}")
        if piece.weight != 1:
            words.append(f"× {decimal_text(piece.weight)} in this state")
        if part.words:
            words.append(part.words)
        if form.per == MONTH:
            words.append(
                f"a month of {seconds_text(month_us(rule.calendar, piece.start) // 3600)} h"
            )
        return ", ".join(words)

    def _fixed(self, rule: Rule, rate: Rate, each: Purchase, fixed: Fixed) -> Charge:
        return Charge(
            resource=each.row.resource,
            rule=rule.name,
            part=rule.part,
            kind=fixed.kind,
            start=fixed.start,
            end=fixed.end,
            quantity=each.row.quantity or Fraction(0),
            unit=each.row.unit or "",
            rate=rate,
            multiplier=ONE,
            amount=fixed.amount,
            because=fixed.because,
            confidence=self.plan.confidence(rule),
            grade=grade_of_price(rule),
        )

    def included(self, rule: Rule, row: Row) -> Charge:
        """A row of nothing for a quantity that another charge covers."""
        return Charge(
            resource=row.resource,
            rule=rule.name,
            part=rule.part,
            kind="included",
            start=row.at,
            end=row.at,
            quantity=row.quantity or Fraction(0),
            unit=row.unit or "",
            rate=None,
            multiplier=ONE,
            amount=Fraction(0),
            because=f"{row.event} is included in {rule.name}",
            confidence=self.plan.confidence(rule),
            grade=Grade.LISTED,
        )

    def half(self, rule: Rule, whole: Piece, kind: str, place_us: Fraction, words: str) -> Charge:
        """The used or the unused row of a reservation."""
        rate = rule.form
        assert rate is not None
        piece = replace(whole, level=place_us / (whole.end - whole.start), because=words)
        part = Slice(quantity=piece.quantity(rule, rate), rate=rate, words="")
        return replace(self._charge(rule, rate, piece, part), kind=kind)

    def purchase(self, rule: Rule, rate: Rate, each: Purchase) -> Charge:
        """The charge for a term bought."""
        assert rule.commitment is not None
        upfront = rule.commitment.upfront
        words = f"{'paid at once' if upfront else 'due over the term'}: {each.words}"
        end = each.start if upfront else each.end
        return self._fixed(rule, rate, each, Fixed("commitment", each.start, end, each.paid, words))

    def cancelled(self, rule: Rule, rate: Rate, each: Purchase) -> list[Charge]:
        """What cancelling early gave back; nothing where the terms give nothing back."""
        terms, at = rule.commitment, each.cancelled
        assert terms is not None
        if at is None or not terms.refundable:
            return []
        back = refund(each, terms, at)
        return [self._fixed(rule, rate, each, Fixed("refund", at, at, -back.amount, back.words))]
