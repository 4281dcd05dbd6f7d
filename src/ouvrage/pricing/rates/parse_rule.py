"""One rule of a plan, from its table.

Decides the form of rules, and which combinations of fields mean something: a price per month needs a
month's length, increments on the clock need an increment, tiers must rise. Overrides are the same
table with some fields replaced, so they can say nothing that a rule could not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ouvrage.pricing.rates.clock import zone_exists
from ouvrage.pricing.rates.plan import (
    GIVEN,
    LIFECYCLE,
    PARTS,
    Calendar,
    Commitment,
    Grouping,
    Meter,
    Override,
    Rule,
    Steps,
    Tier,
)
from ouvrage.pricing.rates.quantity import (
    MONTH,
    Rate,
    converted,
    duration_us,
    measure,
    parse_rate,
    plain_number,
)
from ouvrage.pricing.rates.reader import Reader

EVENTS = tuple(event for event in LIFECYCLE if event != "cancelled")
DIRECTIONS = {"out": ("egress",), "in": ("ingress",), "both": ("egress", "ingress")}
CALENDARS = ("day", "month")
FREE = "free"
_UNPRICED = ("name", "part", "kind", "note", "evidence", "override")


def parse_rule(each: Reader, gb: int) -> Rule:
    """The rule of a table, its overrides included; ``gb`` is what the version means by a GB."""
    forms = each.tables("override")
    rule = _rule(each, gb)
    overrides = tuple(_override(each, form, gb) for form in forms)
    return replace(rule, overrides=overrides)


def _override(each: Reader, form: Reader, gb: int) -> Override:
    form.must("when", "settings of a resource, such as { os = 'suse' }")
    when = form.pairs("when", str)
    if not when:
        raise form.refuse("when", "settings of a resource, such as { os = 'suse' }")
    base = {key: value for key, value in each.data.items() if key != "override"}
    own = {key: value for key, value in form.data.items() if key != "when"}
    for key in ("name", "kind", "part", "covered_by"):
        if key in own:
            raise form.refuse(key, "a field that an override may replace")
    evidence = {**base.get("evidence", {}), **own.get("evidence", {})}
    merged = Reader({**base, **own, "evidence": evidence}, form.path, form.file)
    rule = _rule(merged, gb)
    return Override(when=when, rule=rule, fields=_fields(own, rule.rate_name))


def _rule(each: Reader, gb: int) -> Rule:
    each.has("override")
    kind = each.choice("kind", ("metered", "reservation", "commitment"), "metered")
    rate, rate_name = _price(each)
    rule = Rule(
        name=each.needed_text("name"),
        part=each.choice("part", PARTS, "other"),
        kind=kind,
        rate=rate,
        rate_name=rate_name,
        tiers=_tiers(each, gb),
        of=_counted(each, kind),
        meter=_meter(each.table("meter"), each),
        steps=_steps(each),
        calendar=_calendar(each),
        grouping=_grouping(each, rate, gb),
        commitment=_commitment(each) if kind == "commitment" else None,
        includes=each.words("includes"),
        covered_by=each.text("covered_by"),
        note=each.text("note"),
        fields=_fields(each.data, rate_name),
        evidence=each.pairs("evidence", str),
    )
    each.done()
    _check(each, rule)
    return rule


def _fields(table: Mapping[str, Any], rate_name: str | None) -> tuple[str, ...]:
    """The fields on which a bill depends; a price that the caller gives is none of the plan's."""
    given = {"price"} if rate_name else set[str]()
    return tuple(key for key in table if key not in _UNPRICED and key not in given)


def _price(each: Reader) -> tuple[Rate | None, str | None]:
    """A written rate, or the name of one given on the command line: ``rate`` or ``rate gpu``."""
    text = each.text("price")
    if text is None:
        return None, None
    word, _, name = text.partition(" ")
    if word == GIVEN:
        return None, name.strip() or GIVEN
    return each.read("price", _rate, None), None


def _rate(value: Any) -> Rate:
    rate = parse_rate(str(value))
    if rate.currency:
        raise ValueError("a rate without a currency; the version's own holds for all its rules")
    return rate


def _tiers(each: Reader, gb: int) -> tuple[Tier, ...]:
    tiers = tuple(_tier(below, gb) for below in each.tables("tiers"))
    ends = [tier.up_to for tier in tiers]
    if any(end is None for end in ends[:-1]) or (ends and ends[-1] is not None):
        raise each.refuse("tiers", "an up_to in every tier but the last, and none in the last")
    rising = [end for end in ends if end is not None]
    if any(after <= before for before, after in pairwise(rising)):
        raise each.refuse("tiers", "tiers whose up_to rises")
    return tiers


def _tier(below: Reader, gb: int) -> Tier:
    below.must("price", "a rate, or 'free'")
    free = below.data["price"] == FREE
    rate = None if free else below.read("price", _rate, None)
    below.has("price")
    basis = None if rate is None else rate.basis
    up_to = below.read("up_to", lambda value: _quantity(value, basis, gb), None)
    below.done()
    return Tier(up_to=up_to, rate=rate)


def _quantity(value: Any, basis: str | None, gb: int) -> Fraction:
    """``10 TB`` in the unit of a price; a bare number is in that unit already."""
    if not isinstance(value, str) or value.strip().replace(".", "").isdigit():
        number = plain_number(value)
    else:
        amount, unit = measure(value)
        to = (basis or unit).rpartition("-")[0] or basis or unit
        found = amount if unit == basis else converted(amount, unit, to, gb)
        if found is None:
            raise ValueError(f"a quantity in {basis}")
        number = found
    if number < 0:
        raise ValueError("a quantity that is not negative")
    return number


def _counted(each: Reader, kind: str) -> tuple[str, ...]:
    direction = each.choice("direction", tuple(DIRECTIONS), "")
    named = each.words("of")
    if direction and named:
        raise each.refuse("direction", "either 'of' or 'direction', not both")
    default = {"reservation": ("reserved",), "commitment": ("purchased",)}.get(kind, ())
    return DIRECTIONS[direction] if direction else named or default


def _meter(below: Reader | None, each: Reader) -> Meter:
    states = each.pairs("states", plain_number)
    for state in states:
        if state not in EVENTS or states[state] < 0:
            raise each.refuse("states", f"multipliers of at least 0 for {', '.join(EVENTS)}")
    if below is None:
        return Meter(states=states)
    starts = frozenset(below.words("starts", EVENTS))
    stops = frozenset(below.words("stops", EVENTS))
    below.done()
    if not starts:
        raise below.refuse("starts", "the events that start the meter", found="missing")
    return Meter(starts=starts, stops=stops, states=states)


def _steps(each: Reader) -> Steps:
    calendar = each.data.get("increment") if each.data.get("increment") in CALENDARS else None
    each.has("increment")
    align = each.choice("align", ("duration", "clock"), "clock" if calendar else "duration")
    steps = Steps(
        increment_us=0 if calendar else each.duration("increment"),
        calendar=calendar,
        rounding=each.choice("rounding", ("up", "down", "nearest"), "up"),
        minimum_us=each.duration("minimum"),
        minimum_per=each.choice("minimum_per", ("start", "resource"), "start"),
        count_per=each.choice(
            "count_per", ("start", "resource"), "resource" if align == "clock" else "start"
        ),
        align=align,
    )
    _check_steps(each, steps)
    return steps


def _check_steps(each: Reader, steps: Steps) -> None:
    if steps.align == "duration":
        if steps.calendar:
            raise each.refuse(
                "align", "'clock', where the increment is a day or month of the calendar"
            )
        return
    if not steps.calendar and not steps.increment_us:
        raise each.refuse("increment", "an increment, where align = 'clock'", found="missing")
    if steps.rounding == "nearest":
        raise each.refuse("rounding", "'up' or 'down', where align = 'clock'")
    if steps.increment_us and 86_400_000_000 % steps.increment_us:
        raise each.refuse("increment", "a part of a day, where align = 'clock'")


def _calendar(each: Reader) -> Calendar:
    return Calendar(
        zone=each.read("zone", _zone, "UTC"),
        day_starts_us=each.read("day_starts", _time_of_day, 0),
        month_us=each.read("month", _month, None),
        split=each.read("split", lambda value: _among(value, CALENDARS), None),
    )


def _among(value: Any, options: tuple[str, ...]) -> str:
    if value not in options:
        raise ValueError(f"one of {', '.join(options)}")
    return value


def _zone(value: Any) -> str:
    if not isinstance(value, str) or not zone_exists(value):
        raise ValueError("an IANA zone known to this machine, such as America/New_York")
    return value


def _time_of_day(value: Any) -> int:
    hour, colon, minute = str(value).partition(":")
    if not colon or not (hour + minute).isdigit() or int(hour) > 23 or int(minute) > 59:
        raise ValueError("a time of day such as 17:00")
    return (int(hour) * 60 + int(minute)) * 60_000_000


def _month(value: Any) -> int:
    if value == "calendar":
        return 0
    us = duration_us(str(value))
    if us <= 0:
        raise ValueError("a length such as 730 h, or 'calendar'")
    return us


def _grouping(each: Reader, rate: Rate | None, gb: int) -> Grouping:
    priced = [tier.rate for tier in _tiers(each, gb) if tier.rate]
    form = rate or (priced[0] if priced else None)
    basis = form.basis if form else None
    return Grouping(
        scope=each.text("scope") or "account",
        period=each.choice("period", ("month", "day", "always"), "month"),
        free=each.read("free", lambda value: _quantity(value, basis, gb), Fraction(0)),
        tiering=each.choice("tiering", ("marginal", "whole"), "marginal"),
        tier_by=each.choice("tier_by", ("total", "level"), "total"),
    )


def _commitment(each: Reader) -> Commitment:
    below = each.table("cancel")
    bought = Commitment(discount=each.share("discount"), upfront=each.flag("upfront", True))
    if below is None:
        return bought
    terms = replace(
        bought,
        refundable=True,
        fee=below.share("fee"),
        fee_on=below.choice("fee_on", ("discount", "unused", "remainder"), "discount"),
        floor=below.number("floor"),
    )
    below.done()
    return terms


def _check(each: Reader, rule: Rule) -> None:
    if not (rule.rate or rule.rate_name or rule.tiers):
        raise each.refuse(
            "price", "a rate, 'rate' for one given with --rate, or tiers", found="missing"
        )
    forms = {tier.rate.basis for tier in rule.tiers if tier.rate}
    if len(forms) > 1:
        raise each.refuse("tiers", "prices for one and the same unit")
    if rule.tiers and (rule.rate or rule.rate_name):
        raise each.refuse("tiers", "either 'price' or 'tiers', not both")
    form = rule.form
    if form and form.per == MONTH and rule.calendar.month_us is None:
        raise each.refuse("month", "how long a month is: 730 h, or 'calendar'", found="missing")
    if form and rule.timed is not None and rule.timed != (form.per is not None):
        what = "a price per time" if rule.timed else "a price per quantity, and not per time"
        raise each.refuse("price" if rule.rate else "tiers", f"{what}, for {rule.part}")
    if rule.kind == "metered" and not rule.of and not rule.meter.starts:
        raise each.refuse("meter", "the events that start and stop the meter", found="missing")
    if form and form.unit and not rule.of:
        raise each.refuse(
            "of", f"which quantities of the usage are counted in {form.unit}", found="missing"
        )
