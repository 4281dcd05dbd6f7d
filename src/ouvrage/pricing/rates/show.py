"""A plan and a bill as people read them, and a plan as JSON.

Decides which words describe a rule, and lists every cell of a plan with who vouches for it, so that
what is not confirmed is seen before anybody pays by it. No figure is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.numbers import decimal_text
from ouvrage.pricing.rates.plan import Meter, Override, Plan, Rule, Source, Steps, Version, day_text
from ouvrage.pricing.rates.quantity import seconds_text

_HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One field of a plan, and how well it is known. ``rule`` is None for fields of the version."""

    version: int
    rule: str | None
    field: str
    source: str | None
    confidence: str

    @property
    def words(self) -> str:
        """``instance: minimum``."""
        return f"{self.rule}: {self.field}" if self.rule else self.field


def cells(plan: Plan) -> Iterator[Cell]:
    """Every field on which a bill depends."""
    for number, version in enumerate(plan.versions):
        for name in version.fields:
            source = version.evidence.get(name, version.evidence.get("all"))
            yield _cell(plan, number, None, name, source)
        for rule in version.rules:
            for name in rule.fields:
                yield _cell(plan, number, rule.name, name, rule.source_of(name))
            for each in rule.overrides:
                where = f"{rule.name} where {each.words}"
                for name in each.fields:
                    yield _cell(plan, number, where, name, each.rule.source_of(name))


def _cell(plan: Plan, version: int, rule: str | None, name: str, source: str | None) -> Cell:
    return Cell(
        version=version, rule=rule, field=name, source=source, confidence=plan.standing(source)
    )


def doubtful(plan: Plan) -> list[Cell]:
    """The cells that nobody confirms at the source."""
    return [cell for cell in cells(plan) if cell.confidence != "verified"]


def confidence_words(plan: Plan) -> str:
    """``verified``, or how many cells are not."""
    counts: dict[str, int] = {}
    for cell in cells(plan):
        counts[cell.confidence] = counts.get(cell.confidence, 0) + 1
    rest = [f"{n} {word}" for word, n in counts.items() if word != "verified"]
    return ", ".join(rest) or "verified"


def plan_json(plan: Plan) -> dict[str, Any]:
    """What ``ouvrage rates show --json`` prints."""
    return {
        **summary_json(plan),
        "note": plan.note,
        "sources": [_source_json(source) for source in plan.sources.values()],
        "versions": [_version_json(plan, n) for n in range(len(plan.versions))],
    }


def summary_json(plan: Plan) -> dict[str, Any]:
    """What ``ouvrage rates list --json`` prints of a plan."""
    first, last = plan.versions[0], plan.versions[-1]
    return {
        "name": plan.name,
        "title": plan.title,
        "provider": plan.provider,
        "currency": last.currency,
        "valid_from": None if first.valid_from is None else day_text(first.valid_from),
        "valid_until": None if last.valid_until is None else day_text(last.valid_until),
        "conflicts_with": list(plan.conflicts_with),
        "not_verified": [
            {
                "version": cell.version,
                "rule": cell.rule,
                "field": cell.field,
                "confidence": cell.confidence,
                "source": cell.source,
            }
            for cell in doubtful(plan)
        ],
    }


def _source_json(source: Source) -> dict[str, str | None]:
    return {
        "id": source.id,
        "at": source.at,
        "dated": source.dated,
        "read": source.read,
        "confidence": source.confidence,
        "says": source.says,
    }


def _version_json(plan: Plan, number: int) -> dict[str, Any]:
    version = plan.versions[number]
    start, end = version.valid_from, version.valid_until
    return {
        "valid_from": None if start is None else day_text(start),
        "valid_until": None if end is None else day_text(end),
        "currency": version.currency,
        "tax": version.tax.status,
        "rules": [_rule_json(plan, version, rule) for rule in version.rules],
    }


def _rule_json(plan: Plan, version: Version, rule: Rule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "part": rule.part,
        "kind": rule.kind,
        "price": price_words(rule, version.currency),
        "words": list(rule_words(rule)),
        "confidence": plan.confidence(rule),
        "evidence": {name: rule.source_of(name) for name in rule.fields},
        "overrides": [
            {"when": dict(each.when), "words": list(rule_words(each.rule))}
            for each in rule.overrides
        ],
        "note": rule.note,
    }


def plan_text(plan: Plan) -> str:
    """What ``ouvrage rates show`` prints."""
    lines = [f"{plan.name}: {plan.title}"]
    if plan.note:
        lines.append(f"  {plan.note}")
    if plan.conflicts_with:
        lines.append(f"  contradicts: {', '.join(plan.conflicts_with)} (your own invoice decides)")
    for number, version in enumerate(plan.versions):
        lines += ["", *_version_lines(plan, number, version)]
    if plan.sources:
        lines += ["", "  sources"]
        lines += [_source_line(source) for source in plan.sources.values()]
    doubts = doubtful(plan)
    lines += ["", _doubt_line(plan, len(doubts))]
    return "\n".join(lines)


def _doubt_line(plan: Plan, doubts: int) -> str:
    use = f"Use it: ouvrage rates apply {plan.name} --usage USAGE.csv"
    return f"{doubts} fields are not verified (marked).  {use}" if doubts else use


def _version_lines(plan: Plan, number: int, version: Version) -> Iterator[str]:
    tax = version.tax
    rate = "" if tax.rate is None else f" {decimal_text(tax.rate * 100)} %"
    yield f"  {version.period}   {version.currency or 'any currency'}   tax: {tax.status}{rate}"
    marks = [c for c in doubtful(plan) if c.version == number]
    for cell in (cell for cell in marks if cell.rule is None):
        yield f"    {cell.field}: {cell.confidence}"
    if version.prepaid:
        below = seconds_text(version.prepaid.stop_below_us)
        ends = f" below {below} s of balance" if version.prepaid.stop_below_us else ""
        yield f"    prepaid: {version.prepaid.negative}{ends}"
    for rule in version.rules:
        yield f"    {rule.name} ({rule.part}): {price_words(rule, version.currency)}"
        yield from (f"      {words}" for words in rule_words(rule))
        for each in rule.overrides:
            yield f"      where {each.words}: {_override_words(rule, each, version.currency)}"
        if rule.note:
            yield f"      note: {rule.note}"
        for word in ("secondary", "conflict", "unverified"):
            fields = [c.field for c in marks if c.rule == rule.name and c.confidence == word]
            if fields:
                yield f"      {word}: {', '.join(fields)}"


def _override_words(rule: Rule, each: Override, currency: str | None) -> str:
    """What differs from the rule itself."""
    usual = {price_words(rule, currency), *rule_words(rule)}
    words = [price_words(each.rule, currency), *rule_words(each.rule)]
    return "; ".join(word for word in words if word not in usual)


def _source_line(source: Source) -> str:
    says = f": {source.says}" if source.says else ""
    return f"    {source.id} ({source.confidence}, {source.dated}, read {source.read})  {source.at}{says}"


def price_words(rule: Rule, currency: str | None) -> str:
    """The price or the tiers of a rule."""
    shown = currency or ""
    if rule.rate is not None:
        return rule.rate.words(shown)
    if rule.tiers:
        parts = [
            f"{'free' if tier.rate is None else tier.rate.words(shown)}"
            + (f" to {decimal_text(tier.up_to)}" if tier.up_to is not None else " above")
            for tier in rule.tiers
        ]
        return f"{rule.grouping.tiering} tiers: {', '.join(parts)}"
    return f"given with --rate{'' if rule.rate_name == 'rate' else f' {rule.rate_name}=…'}"


def rule_words(rule: Rule) -> Iterator[str]:
    """A rule in words, one line for each thing that it decides."""
    if rule.of:
        yield f"counts {', '.join(rule.of)}"
    yield from _meter_words(rule.meter)
    yield from _step_words(rule.steps, rule)
    yield from _group_words(rule)
    yield from _commitment_words(rule)
    if rule.includes:
        yield f"includes {', '.join(rule.includes)}"
    if rule.covered_by:
        yield f"paid by {rule.covered_by} as far as that reaches"


def _meter_words(meter: Meter) -> Iterator[str]:
    if meter.starts:
        stops = " or ".join(sorted({*meter.stops, "terminated"}))
        yield f"from {' or '.join(sorted(meter.starts))} to {stops}"
    for state, weight in meter.states.items():
        yield f"while {state}: " + ("free" if not weight else f"× {decimal_text(weight)}")


def _step_words(steps: Steps, rule: Rule) -> Iterator[str]:
    zone = rule.calendar.zone
    each = "for each start" if steps.count_per == "start" else "for the resource"
    step = steps.calendar or (f"{seconds_text(steps.increment_us)} s" if steps.increment_us else "")
    if step and steps.align == "clock":
        yield f"every {'commenced' if steps.rounding == 'up' else 'whole'} {step} of the clock in {zone}"
    elif step:
        yield f"rounded {steps.rounding} to whole {step}, {each}"
    if steps.minimum_us:
        yield f"at least {seconds_text(steps.minimum_us)} s for each {steps.minimum_per}"
    if rule.calendar.split:
        yield f"a row for each {rule.calendar.split} from {_clock(rule)} in {zone}"
    if rule.calendar.month_us is not None:
        length = decimal_text(Fraction(rule.calendar.month_us, _HOUR))
        yield "a month is " + (f"{length} h" if rule.calendar.month_us else "the calendar's own")


def _clock(rule: Rule) -> str:
    minutes = rule.calendar.day_starts_us // 60_000_000
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _group_words(rule: Rule) -> Iterator[str]:
    grouping = rule.grouping
    if rule.tiers or grouping.free:
        yield f"added up per {grouping.scope} and {grouping.period}, tiers by {grouping.tier_by}"
    if grouping.free:
        yield f"{decimal_text(grouping.free)} free"


def _commitment_words(rule: Rule) -> Iterator[str]:
    terms = rule.commitment
    if terms is None:
        return
    yield "paid at once" if terms.upfront else "due over the term"
    if terms.discount:
        yield f"{decimal_text(terms.discount * 100)} % off"
    if terms.refundable:
        fee = f"{decimal_text(terms.fee * 100)} % of the {terms.fee_on}"
        yield f"cancelled early: unused − discount received − {fee}, at least {decimal_text(terms.floor)}"
    else:
        yield "not refundable"
