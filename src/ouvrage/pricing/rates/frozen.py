"""A rate plan as one line of text, frozen into an offer, and whether a lease can be billed by it.

Decides the form in which a plan is kept beside what was sold: the plan's own file as canonical JSON, with dates and
decimals as texts, so that the same rules are read again in years. It also refuses a plan that a single lease cannot be
billed by: one with free amounts or tiers over a whole account, with reservations, or counting what no lease tells.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text
from ouvrage.pricing.rates.parse import parse_plan
from ouvrage.pricing.rates.pieces import grouped
from ouvrage.pricing.rates.places import Located
from ouvrage.pricing.rates.plan import GIVEN, Plan, Rule, Tax, Version, day_text

TOLD = ("gpus", "cpus", "vcpus", "memory", "storage", "disk", "egress", "ingress")
"""The quantities that a lease tells: what it holds, and the bytes that it sent and received."""
_DATES = ("valid_from", "valid_until")


def frozen(data: Mapping[str, Any]) -> str:
    """The canonical text of a plan's loaded file."""
    return canonical(_plain(data))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return decimal_text(value)
    return value.isoformat() if isinstance(value, date) else value


@lru_cache(maxsize=256)
def thawed(text: str) -> Plan:
    """The plan that a frozen text holds. Raises ``OuvrageError`` ``rate-plan/...`` where it holds none."""
    try:
        data = json.loads(text, parse_float=Decimal)
        versions = [{**each, **_dates(each)} for each in data["version"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise OuvrageError(
            "rate-plan/frozen",
            f"the plan of an offer is no rate plan: {type(error).__name__}",
            hint="an offer's plan is the text that ouvrage offer create makes of a plan's file",
        ) from error
    name = str(data.get("name", "?"))
    plan = parse_plan({**data, "version": versions}, Located(file=f"the plan {name} of the offer"))
    return replace(plan, sha256=sha256_hex(text))


def _dates(version: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in _DATES:
        if key in version:
            text = str(version[key])
            found[key] = (
                date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
            )
    return found


@lru_cache(maxsize=256)
def lease_plan(text: str) -> Plan:
    """A frozen plan as a lease is billed by it: taxes and balances are the tenant's, not the plan's."""
    plan = thawed(text)
    versions = tuple(replace(each, tax=Tax(status="none"), prepaid=None) for each in plan.versions)
    return replace(plan, versions=versions)


def asks_for_rate(plan: Plan) -> bool:
    """Whether a plan leaves the price of time to the offer."""
    return any(GIVEN in (form.rate_name for form in _forms(rule)) for rule in _rules(plan))


def check_for_sale(
    plan: Plan, rate: str | None, currency: str | None = None, at_us: int | None = None
) -> None:
    """Refuse a plan that no lease from ``at_us`` on can be billed by in a currency, or that lacks its price.

    Raises ``OuvrageError`` ``offer/plan``.
    """
    fault = next((f for version in plan.versions for f in _faults(version)), None)
    fault = fault or next(_unfit(plan, currency, at_us), None)
    named = sorted(
        {form.rate_name for rule in _rules(plan) for form in _forms(rule) if form.rate_name}
    )
    if fault is None and [name for name in named if name != GIVEN]:
        fault = f"it leaves open {', '.join(name for name in named if name != GIVEN)}"
    if fault is None and asks_for_rate(plan) and rate is None:
        fault = "it leaves the price of time to the offer, which states none"
    if fault is not None:
        raise OuvrageError(
            "offer/plan",
            f"{plan.name} cannot bill a lease: {fault}",
            hint="per-second and per-minute-up bill any rate by time; ouvrage rates list shows more",
        )


def _unfit(plan: Plan, currency: str | None, at_us: int | None) -> Iterator[str]:
    begins, ends = plan.versions[0].valid_from, plan.versions[-1].valid_until
    if ends is not None:
        yield f"it ends on {day_text(ends)}, and a lease may go on"
    if at_us is not None and begins is not None and begins > at_us:
        yield f"it begins on {day_text(begins)}"
    for version in plan.versions:
        if currency is not None and version.currency not in (None, currency):
            yield f"its prices are in {version.currency}, the offer's in {currency}"


def _rules(plan: Plan) -> list[Rule]:
    return [rule for version in plan.versions for rule in version.rules]


def _forms(rule: Rule) -> tuple[Rule, ...]:
    return (rule, *(each.rule for each in rule.overrides))


def _faults(version: Version) -> list[str]:
    found: list[str] = []
    for rule in (form for each in version.rules for form in _forms(each)):
        strange = [name for name in rule.of if name not in TOLD]
        if rule.kind != "metered":
            found.append(f"{rule.name} is a {rule.kind}")
        elif strange:
            found.append(f"{rule.name} counts {strange[0]}, which no lease tells")
        elif grouped(rule) and rule.grouping.scope != "resource":
            found.append(f"{rule.name} has tiers or free amounts over more than one lease")
    return found
