"""Usage under a plan: every charge with the rule that made it, and what could not be priced.

Decides the order of the steps, and nothing that a plan could decide: versions cut usage, meters make
sessions, reservations cover them, increments round them, tiers price them, and rounding and tax are
posted at the end. Exact fractions throughout; the clock and the files are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text
from ouvrage.pricing.rates.bill import Balance, Bill, Charge, Unrated, completed, total_of
from ouvrage.pricing.rates.charging import ONE, Pricer
from ouvrage.pricing.rates.commitments import purchases
from ouvrage.pricing.rates.given import check_known, currency_of, filled, missing
from ouvrage.pricing.rates.pieces import Piece, pieces_of
from ouvrage.pricing.rates.plan import LIFECYCLE, Plan, Prepaid, Rule, Version, day_text
from ouvrage.pricing.rates.prepaid import DEPOSIT, deposits, settled, used_up
from ouvrage.pricing.rates.quantity import Rate
from ouvrage.pricing.rates.reservations import coverage
from ouvrage.pricing.rates.sessions import Session, amount_in, clipped, sessions
from ouvrage.pricing.rates.steps import Billed, billed, seam
from ouvrage.pricing.rates.usage import LAST_US, Resource, Row, Usage
from ouvrage.pricing.rates.validity import check_covered, holds


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
    versions = _ruling(plan, usage, until)
    paid_in = currency_of(plan, versions, given, currency)
    _check_deposits(usage, paid_in)

    def charged(part: Usage, end: int | None) -> tuple[list[Charge], list[str]]:
        pricer = Pricer(plan=plan, usage=part, currency=paid_in)
        rating = _Rating(plan=plan, usage=part, rates=given, until=end, pricer=pricer)
        return [each for version in versions for each in rating.version(version)], rating.notes

    charges, notes = charged(usage, until)
    prepaid = versions[-1].prepaid
    balance, stopped = None, None
    if prepaid is not None and deposits(usage):
        last = until or max(row.at for row in usage.rows)
        named = _made_of(versions)
        cost = lambda part, end: total_of(charged(part, end)[0])  # noqa: E731 one line, used here
        if prepaid.negative == "stops":
            stopped = settled(prepaid, usage, last, named, cost)
            charges, notes = charged(stopped.usage, until) if stopped.stops else (charges, notes)
            spent = None
        else:
            spent = used_up(usage, last, named, cost)
        balance = _balance(prepaid, usage, total_of(charges), spent)
    return Bill(
        plan=plan.name,
        currency=paid_in,
        charges=tuple(charges),
        total=total_of(charges),
        tax=versions[-1].tax,
        unrated=tuple(_unrated(plan, versions, usage)),
        notes=(*usage.notes, *notes, *_doubts(versions, usage), *_readings(plan)),
        balance=balance,
        stops=() if stopped is None else stopped.stops,
        not_run=() if stopped is None else stopped.not_run,
    )


def _made_of(versions: Sequence[Version]) -> frozenset[str]:
    """Quantities that say what a machine is made of, since its meter has starts of its own."""
    forms = [form for version in versions for rule in version.rules for form in _forms(rule)]
    return frozenset(name for form in forms if form.meter.starts for name in form.of)


def _check_deposits(usage: Usage, currency: str) -> None:
    for row in deposits(usage):
        if row.unit != currency:
            raise OuvrageError(
                "usage/currency",
                f"a deposit in {row.unit} cannot pay a bill in {currency}",
                where=(usage.where(row),),
                hint=f"write the deposit in {currency}",
            )


def _balance(prepaid: Prepaid, usage: Usage, total: Fraction, spent: int | None) -> Balance:
    """What is left of the deposits that the usage states."""
    deposited = sum((row.quantity for row in deposits(usage) if row.quantity), Fraction(0))
    return Balance(
        deposited=deposited, left=deposited - total, negative=prepaid.negative, spent_at=spent
    )


def _check_period(plan: Plan, usage: Usage, until: int | None) -> None:
    if until is not None and until > LAST_US:
        raise OuvrageError(
            "usage/until",
            f"usage cannot be rated until {day_text(until)}",
            hint="give --until a moment before the year 9900",
        )
    rows = sorted(usage.rows, key=lambda row: row.at)
    first, last = rows[0], rows[-1]
    end = plan.versions[-1].valid_until
    check_covered(
        plan, first.at, max(last.at, until or last.at), (usage.where(first), usage.where(last))
    )
    if end is not None and last.at == end and last.quantity:
        check_covered(plan, first.at, end + 1, (usage.where(last),))


def _ruling(plan: Plan, usage: Usage, until: int | None) -> list[Version]:
    """The versions that rule some of the usage."""
    moments = [row.at for row in usage.rows]
    first, last = min(moments), max(*moments, until or moments[0], moments[0])
    return [
        version
        for version in plan.versions
        if (version.valid_until is None or first < version.valid_until)
        and (version.valid_from is None or version.valid_from <= last)
    ]


def _unrated(plan: Plan, versions: Sequence[Version], usage: Usage) -> Iterable[Unrated]:
    """Quantities that no rule counts or includes, in any version or in one that rules a part of them."""
    for resource in usage.resources:
        for name in sorted(resource.quantities):
            without = [
                version
                for version in versions
                if name not in _priced(version) and _lies_in(resource, name, version)
            ]
            when = (
                ""
                if len(without) == len(versions)
                else f" ({without[0].period})"
                if without
                else ""
            )
            if without:
                reason = f"no rule of {plan.name} prices {name}{when}; what it costs is not known"
                yield Unrated(resource=resource.name, quantity=name, reason=reason)


def _priced(version: Version) -> set[str]:
    """The quantities that a version knows."""
    rules = [form for rule in version.rules for form in _forms(rule)]
    names = {name for rule in rules for name in (*rule.of, *rule.includes)}
    return names | {DEPOSIT} if version.prepaid else names


def _lies_in(resource: Resource, name: str, version: Version) -> bool:
    """Whether a quantity was there while a version held."""
    first = min(row.at for row in resource.rows if row.event == name and row.quantity is not None)
    last = max(row.at for row in resource.rows)
    ended = version.valid_until is not None and first >= version.valid_until
    return not ended and (version.valid_from is None or last >= version.valid_from)


def _doubts(versions: Iterable[Version], usage: Usage) -> list[str]:
    """Machines whose meter never began, or ended without a beginning: free by the rule, or a row is
    missing. The reader decides."""
    found: dict[str, None] = {}
    for rule in (rule for version in versions for rule in version.rules):
        starts = rule.meter.starts
        for resource in usage.resources if starts and not rule.of else ():
            events = [row.event for row in resource.rows if row.event in LIFECYCLE]
            words = " or ".join(sorted(starts))
            if events and starts.isdisjoint(events) and not resource.quantities:
                found[f"{resource.name} never was {words}: {rule.name} never began to count"] = None
            first = next((e for e in events if e in starts | rule.meter.stops), None)
            if first in rule.meter.stops and not starts.isdisjoint(events):
                found[
                    f"{resource.name} was {first} before it was {words}: a row may be missing"
                ] = None
    return list(found)


def _readings(plan: Plan) -> list[str]:
    """That official texts contradict each other, where they do."""
    others = " and ".join(plan.conflicts_with)
    words = (
        f"one of two readings of the provider's texts; the other is {others}. Your invoice decides"
    )
    return [words] if others else []


def _forms(rule: Rule) -> tuple[Rule, ...]:
    return (rule, *(each.rule for each in rule.overrides))


@dataclass(slots=True, kw_only=True)
class _Rating:
    plan: Plan
    usage: Usage
    rates: Mapping[str, Rate]
    until: int | None
    pricer: Pricer
    notes: list[str] = field(default_factory=list)
    taken: dict[tuple[str, str], int] = field(default_factory=dict)
    """By rule and resource, how far the version before has billed a session that goes on."""
    billed_to: dict[tuple[str, str], int] = field(default_factory=dict)
    """By rule and resource, how far increments of the clock were billed."""

    def version(self, version: Version) -> list[Charge]:
        """All charges of one version, its rounding and tax included."""
        rules = [rule for rule in version.rules if self._applies(rule)]
        if not rules:
            return completed(self._included(version), version)
        rules = [filled(self.plan, rule, self.rates) for rule in rules]
        metered = {
            rule.name: self._sessions(rule, version) for rule in rules if rule.kind != "commitment"
        }
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
        wanted = {*rule.of, *rule.meter.starts}
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
            where = (rule.name, resource.name)
            kept, over = clipped(own, version, self.taken.pop(where, None), partial(seam, form))
            if over is not None:
                self.taken[where] = over
            found += kept
        return found

    def _touches(self, rule: Rule, resource: Resource) -> bool:
        """Whether a resource has rows that matter to a rule."""
        events = {row.event for row in resource.rows}
        if rule.meter.starts and not rule.of:
            return bool(events & rule.meter.starts)
        if rule.of:
            started = bool(rule.meter.starts) and bool(events & rule.meter.starts)
            return bool(events & set(rule.of)) or started
        return False

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
            pieces += pieces_of(self._billed(own.get(resource.name, []), form, resource), form)
            by_form.setdefault(id(form), (form, []))[1].extend(pieces)
        return [
            each for form, pieces in by_form.values() for each in self.pricer.priced(form, pieces)
        ]

    def _billed(self, own: Sequence[Session], form: Rule, resource: Resource) -> list[Billed]:
        """One resource's sessions as billed, the clock's increments once over all versions."""
        where = (form.name, resource.name)
        found = billed(own, form, self.billed_to.get(where))
        if form.steps.align == "clock" and found:
            self.billed_to[where] = max(each.session.end for each in found)
        return found

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
        used = min(used, held)
        rows = (("used", used, "reserved and used"), ("unused", held - used, "reserved, not used"))
        return [self.pricer.half(rule, whole, *row) for row in rows if row[1]]

    def _included(self, version: Version) -> list[Charge]:
        """Rows of nothing for what the hour already covers, so that one sees that it does."""
        counted = {name for rule in version.rules for form in _forms(rule) for name in form.of}
        found: list[Charge] = []
        for rule in version.rules:
            for name in rule.includes:
                rows = [r for r in self.usage.rows if r.event == name and r.quantity is not None]
                if name not in counted:
                    found += [self.pricer.included(rule, r) for r in rows if holds(version, r.at)]
        return found

    def _committed(self, rule: Rule, version: Version) -> list[Charge]:
        """Purchases, and what cancelling them gave back."""
        terms, rate = rule.commitment, rule.form
        assert terms is not None
        assert rate is not None
        found: list[Charge] = []
        for resource in self.usage.resources:
            for each in purchases(self.usage, resource, rule, rate):
                if holds(version, each.start):
                    found.append(self.pricer.purchase(rule, rate, each))
                    found += self.pricer.cancelled(rule, rate, each)
                    if each.cancelled is not None and not terms.refundable:
                        self._note(f"{resource.name} was cancelled; {rule.name} is not refundable")
        return found
