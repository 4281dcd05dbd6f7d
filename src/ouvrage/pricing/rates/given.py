"""Rates given by the caller, put in the places where a plan leaves them open.

Decides which currency a bill is in, and refuses a rate that does not fit its rule: a price per GB
says nothing about an hour. A rate that is needed and was not given is refused, not taken as nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.pricing.rates.plan import GIVEN, Plan, Rule, Version
from ouvrage.pricing.rates.quantity import MONTH, Rate

DEFAULT_CURRENCY = "EUR"
_HINT = "for example --rate 2.52/h, or --rate NAME=2.52/h for a rate that the plan calls NAME"


def filled(plan: Plan, rule: Rule, rates: Mapping[str, Rate]) -> Rule:
    """The rule with its price, wherever that comes from."""
    overrides = tuple(
        replace(each, rule=_own(plan, each.rule, rates, needed=False)) for each in rule.overrides
    )
    return replace(_own(plan, rule, rates, needed=not rule.overrides), overrides=overrides)


def _own(plan: Plan, rule: Rule, rates: Mapping[str, Rate], *, needed: bool) -> Rule:
    if rule.rate_name is None:
        return rule
    rate = rates.get(rule.rate_name)
    if rate is None:
        if needed:
            raise missing(plan, rule)
        return rule
    _check(plan, rule, rate)
    return replace(rule, rate=rate)


def missing(plan: Plan, rule: Rule) -> OuvrageError:
    """The refusal of a bill for want of a rate."""
    name = "" if rule.rate_name == GIVEN else f"{rule.rate_name}="
    return OuvrageError(
        "rate/missing",
        f"{plan.name} has no price of its own for {rule.name}",
        hint=f"give it: --rate {name}{_example(rule)}",
    )


def _example(rule: Rule) -> str:
    return (
        "0.10/GB-month"
        if rule.part == "storage"
        else "0.09/GB"
        if rule.part == "traffic"
        else "2.52/h"
    )


def _check(plan: Plan, rule: Rule, rate: Rate) -> None:
    found = f"{rate.text}/{rate.basis}" if rate.basis else rate.text
    if rule.timed is not None and rule.timed != (rate.per is not None):
        how = "per time" if rule.timed else "per quantity and not per time"
        raise _unfit(f"{rule.name} of {plan.name} is priced {how}, and {found} is not")
    if rate.unit and not rule.of:
        raise _unfit(f"{rule.name} of {plan.name} counts no {rate.unit}: {found} does not fit")
    if rate.per == MONTH and rule.calendar.month_us is None:
        raise _unfit(f"{rule.name} of {plan.name} does not say how long a month is")


def _unfit(message: str) -> OuvrageError:
    return OuvrageError("rate/unit", message, hint=_HINT)


def grade_of_price(rule: Rule) -> Grade:
    """A typed rate is assumed, a plan's own is listed."""
    return Grade.LISTED if rule.rate_name is None else Grade.ASSUMED


def currency_of(
    plan: Plan, versions: Iterable[Version], rates: Mapping[str, Rate], asked: str | None
) -> str:
    """The one currency of a bill; two different ones are refused and never added up.

    ``versions`` are those of the plan that rule some of the usage.
    """
    stated = {version.currency: plan.name for version in versions if version.currency}
    typed = {rate.currency: "--rate" for rate in rates.values() if rate.currency}
    named = {**stated, **typed, **({asked: "--currency"} if asked else {})}
    if len(named) > 1:
        words = ", ".join(f"{who} is in {currency}" for currency, who in named.items())
        raise OuvrageError(
            "rate/two-currencies",
            f"one bill cannot be in two currencies: {words}",
            hint="give all rates in the currency of the plan",
        )
    return next(iter(named), DEFAULT_CURRENCY)


def check_known(plan: Plan, rates: Mapping[str, Rate]) -> None:
    """Refuse a rate under a name that the plan asks for nowhere."""
    asked = {name for version in plan.versions for name in _names(version)}
    for name in rates:
        if name not in asked:
            wanted = ", ".join(sorted(asked)) or "none: all its prices are its own"
            raise OuvrageError(
                "rate/unknown",
                f"{plan.name} asks for no rate called {name!r}; it asks for {wanted}",
                hint=_HINT if asked else "leave --rate out",
            )


def _names(version: Version) -> set[str]:
    rules = [form for rule in version.rules for form in (rule, *(o.rule for o in rule.overrides))]
    return {rule.rate_name for rule in rules if rule.rate_name}
