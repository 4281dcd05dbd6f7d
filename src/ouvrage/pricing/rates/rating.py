"""Usage under a plan: every charge with the rule that made it, and what could not be priced.

Decides the order of the steps, and nothing that a plan could decide: versions cut usage, meters make
sessions, reservations cover them, increments round them, tiers price them, and rounding and tax are
posted at the end. Exact fractions throughout; the clock and the files are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.pricing.rates.bill import (
    Bill,
    Charge,
    Unrated,
    balance_of,
    completed,
    total_of,
)
from ouvrage.pricing.rates.clock import month_us
from ouvrage.pricing.rates.commitments import Purchase, purchases, refund
from ouvrage.pricing.rates.given import (
    check_known,
    currency_of,
    filled,
    grade_of_price,
    missing,
)
from ouvrage.pricing.rates.pieces import (
    Piece,
    exact_quantity,
    exact_unit,
    grouped,
    period_of,
    pieces_of,
)
from ouvrage.pricing.rates.plan import LIFECYCLE, Plan, Rule, Tax, Tier, Version
from ouvrage.pricing.rates.quantity import MONTH, Rate, seconds_text
from ouvrage.pricing.rates.reservations import coverage
from ouvrage.pricing.rates.sessions import Session, amount_in, clipped, sessions
from ouvrage.pricing.rates.steps import billed
from ouvrage.pricing.rates.tiers import Slice, reached, slices
from ouvrage.pricing.rates.usage import Resource, Row, Usage
from ouvrage.pricing.rates.validity import check_covered, holds

DEPOSIT = "deposit"
ONE = Fraction(1)


def apply_plan(
    plan: Plan,
    usage: Usage,
    rates: Mapping[str, Rate] | None = None,
    *,
    currency: str | None = None,
    until: int | None = None,
) -> Bill:
    """What the usage costs under the plan, with ``rates`` where the plan leaves a price open."""
    given = rates or {}
    check_known(plan, given)
    _check_period(plan, usage, until)
    rating = _Rating(
        plan=plan, usage=usage, rates=given, until=until, currency=currency_of(plan, given, currency)
    )
    charges = [each for version in plan.versions for each in rating.version(version)]
    total = total_of(charges)
    prepaid = plan.versions[-1].prepaid
    deposits = [row.quantity for row in usage.rows if row.event == DEPOSIT and row.quantity]
    return Bill(
        plan=plan.name,
        currency=rating.currency,
        charges=tuple(charges),
        total=total,
        tax=plan.versions[-1].tax if plan.versions else Tax(),
        unrated=tuple(_unrated(plan, usage)),
        notes=(*usage.notes, *rating.notes),
        balance=balance_of(sum(deposits, Fraction(0)), total, prepaid) if prepaid else None,
    )


def _check_period(plan: Plan, usage: Usage, until: int | None) -> None:
    rows = sorted(usage.rows, key=lambda row: row.at)
    first, last = rows[0], rows[-1]
    end = plan.versions[-1].valid_until
    check_covered(plan, first.at, max(last.at, until or last.at), (usage.where(first), usage.where(last)))
    if end is not None and last.at == end and last.quantity:
        check_covered(plan, first.at, end + 1, (usage.where(last),))


def _unrated(plan: Plan, usage: Usage) -> Iterable[Unrated]:
    """Quantities that no rule of any version counts or includes."""
    rules = [form for v in plan.versions for rule in v.rules for form in _forms(rule)]
    known = {name for rule in rules for name in (*rule.of, *rule.includes)}
    if any(version.prepaid for version in plan.versions):
        known.add(DEPOSIT)
    for resource in usage.resources:
        for name in sorted(resource.quantities - known):
            yield Unrated(
                resource=resource.name,
                quantity=name,
                reason=f"no rule of {plan.name} prices {name}; what it costs is not known",
            )


def _forms(rule: Rule) -> tuple[Rule, ...]:
    return (rule, *(each.rule for each in rule.overrides))


@dataclass(slots=True, kw_only=True)
class _Rating:
    plan: Plan
    usage: Usage
    rates: Mapping[str, Rate]
    until: int | None
    currency: str
    notes: list[str] = field(default_factory=list)

    def version(self, version: Version) -> list[Charge]:
        """All charges of one version, its rounding and tax included."""
        rules = [rule for rule in version.rules if self._applies(rule)]
        if not rules:
            return completed(self._included(version), version)
        rules = [filled(self.plan, rule, self.rates) for rule in rules]
        metered = {rule.name: self._sessions(rule, version) for rule in rules if rule.kind != "commitment"}
        charges: list[Charge] = []
        for rule in rules:
            if rule.kind == "reservation":
                charges += self._reserved(rule, rules, metered)
        for rule in rules:
            if rule.kind == "metered":
                charges += self._metered(rule, version, metered[rule.name])
            elif rule.kind == "commitment":
                charges += self._committed(rule, version)
        charges += self._included(version)
        return completed(sorted(charges, key=lambda each: (each.start, each.resource)), version)

    def _applies(self, rule: Rule) -> bool:
        """Whether the usage holds anything that a rule could price."""
        wanted = set(rule.of) or set(rule.meter.starts) or set(LIFECYCLE)
        return any(row.event in wanted for row in self.usage.rows)

    def _form(self, rule: Rule, resource: Resource) -> Rule:
        """The rule as it is for a resource with its settings."""
        at = resource.rows[0].at
        for each in rule.overrides:
            if all(resource.setting(name, at) == value for name, value in each.when.items()):
                chosen = each.rule
                break
        else:
            chosen = rule
        if chosen.form is None:
            raise missing(self.plan, chosen)
        return chosen

    def _sessions(self, rule: Rule, version: Version) -> list[Session]:
        found: list[Session] = []
        for resource in self.usage.resources:
            if not self._touches(rule, resource):
                continue
            form = self._form(rule, resource)
            if form.form is None or form.form.per is None:
                continue
            own = sessions(self.usage, resource, form, version, self.until)
            found += clipped(own, version.valid_from, version.valid_until)
        return found

    def _touches(self, rule: Rule, resource: Resource) -> bool:
        """Whether a resource has rows that matter to a rule; a meter that never began is noted."""
        events = {row.event for row in resource.rows}
        if rule.meter.starts and not rule.of:
            if not events & rule.meter.starts and events & set(LIFECYCLE):
                starts = " or ".join(sorted(rule.meter.starts))
                self._note(f"{resource.name} never was {starts}: {rule.name} never began to count it")
            return bool(events & rule.meter.starts)
        if rule.of:
            started = bool(rule.meter.starts) and bool(events & rule.meter.starts)
            return bool(events & set(rule.of)) or started
        return bool(events & set(LIFECYCLE))

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _metered(self, rule: Rule, version: Version, found: list[Session]) -> list[Charge]:
        """The charges of a metered rule over all resources, forms of the rule kept apart."""
        by_form: dict[int, tuple[Rule, list[Piece]]] = {}
        own: dict[str, list[Session]] = {}
        for session in found:
            own.setdefault(session.resource, []).append(session)
        for resource in self.usage.resources:
            if not self._touches(rule, resource):
                continue
            form = self._form(rule, resource)
            pieces = self._amounts(form, resource, version)
            pieces += pieces_of(billed(own.get(resource.name, []), form), form)
            by_form.setdefault(id(form), (form, []))[1].extend(pieces)
        return [each for form, pieces in by_form.values() for each in self._priced(form, pieces)]

    def _amounts(self, rule: Rule, resource: Resource, version: Version) -> list[Piece]:
        """Quantities that moved at a moment."""
        rate = rule.form
        if rate is None or rate.per is not None:
            return []
        rows = [row for row in resource.rows if row.event in rule.of and row.quantity is not None]
        return [self._amount(row, rate, version) for row in rows if holds(version, row.at)]

    def _amount(self, row: Row, rate: Rate, version: Version) -> Piece:
        amount = amount_in(self.usage, row, rate, version.gb)
        words = f"{row.event} {decimal_text(row.quantity or 0)} {row.unit}"
        return Piece(
            resource=row.resource, start=row.at, end=row.at, level=amount, weight=ONE, because=words
        )

    def _priced(self, rule: Rule, pieces: Sequence[Piece]) -> list[Charge]:
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
            words.append(f"a month of {seconds_text(month_us(rule.calendar, piece.start) // 3600)} h")
        return ", ".join(words)

    def _reserved(
        self, rule: Rule, rules: Sequence[Rule], metered: dict[str, list[Session]]
    ) -> list[Charge]:
        """The used and the unused row of each reservation; what it covers is metered no more."""
        covered = [each for each in rules if each.covered_by == rule.name]
        found = metered[rule.name]
        shared = coverage([s for each in covered for s in metered[each.name]], found)
        for each in covered:
            metered[each.name] = [s for s in shared.uncovered if s.rule == each.name]
        charges: list[Charge] = []
        for session, used in zip(found, shared.used, strict=True):
            charges += self._halves(rule, session, used)
        return charges

    def _halves(self, rule: Rule, session: Session, used: Fraction) -> list[Charge]:
        pieces = pieces_of(billed([session], rule), rule)
        held = sum((piece.level * (piece.end - piece.start) for piece in pieces), Fraction(0))
        whole = Piece(
            resource=session.resource,
            start=session.start,
            end=max(piece.end for piece in pieces),
            level=ONE,
            weight=ONE,
            because="",
        )
        rows = (("used", used, "reserved and used"), ("unused", held - used, "reserved, not used"))
        return [self._half(rule, whole, *row) for row in rows if row[1]]

    def _half(self, rule: Rule, whole: Piece, kind: str, place_us: Fraction, words: str) -> Charge:
        rate = rule.form
        assert rate is not None
        piece = replace(whole, level=place_us / (whole.end - whole.start), because=words)
        part = Slice(quantity=piece.quantity(rule, rate), rate=rate, words="")
        return replace(self._charge(rule, rate, piece, part), kind=kind)

    def _committed(self, rule: Rule, version: Version) -> list[Charge]:
        """Purchases, and what cancelling them gave back."""
        terms, rate = rule.commitment, rule.form
        assert terms is not None and rate is not None
        found: list[Charge] = []
        for resource in self.usage.resources:
            for each in purchases(self.usage, resource, rule, rate):
                if holds(version, each.start):
                    found.append(self._purchase(rule, rate, each))
                    found += self._cancelled(rule, rate, each)
        return found

    def _purchase(self, rule: Rule, rate: Rate, each: Purchase) -> Charge:
        assert rule.commitment is not None
        when = "paid at once" if rule.commitment.upfront else "due over the term"
        end = each.start if rule.commitment.upfront else each.end
        return self._fixed(rule, rate, each, "commitment", each.start, end, each.paid, f"{when}: {each.upfront_words}")

    def _cancelled(self, rule: Rule, rate: Rate, each: Purchase) -> list[Charge]:
        terms = rule.commitment
        assert terms is not None
        if each.cancelled is None:
            return []
        if not terms.refundable:
            self._note(f"{each.row.resource} was cancelled early; {rule.name} is not refunded")
            return []
        back = refund(each, terms, each.cancelled)
        at = each.cancelled
        return [self._fixed(rule, rate, each, "refund", at, at, -back.amount, back.words)]

    def _fixed(
        self,
        rule: Rule,
        rate: Rate,
        each: Purchase,
        kind: str,
        start: int,
        end: int,
        amount: Fraction,
        because: str,
    ) -> Charge:
        return Charge(
            resource=each.row.resource,
            rule=rule.name,
            part=rule.part,
            kind=kind,
            start=start,
            end=end,
            quantity=each.row.quantity or Fraction(0),
            unit=each.row.unit or "",
            rate=rate,
            multiplier=ONE,
            amount=amount,
            because=because,
            confidence=self.plan.confidence(rule),
            grade=grade_of_price(rule),
        )

    def _included(self, version: Version) -> list[Charge]:
        """Rows of nothing for what the hour already covers, so that one sees that it does."""
        counted = {name for rule in version.rules for form in _forms(rule) for name in form.of}
        found: list[Charge] = []
        for rule in version.rules:
            for name in rule.includes:
                rows = [r for r in self.usage.rows if r.event == name and r.quantity is not None]
                if name not in counted:
                    found += [self._nothing(rule, r) for r in rows if holds(version, r.at)]
        return found

    def _nothing(self, rule: Rule, row: Row) -> Charge:
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
