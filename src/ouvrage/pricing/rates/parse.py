"""A plan's file, already loaded into a dictionary, becomes a ``Plan``; or a refusal says why not.

Decides the form of the file: which fields there are, what each may hold, and which combinations mean
something. It does not read the file and judges no price. The form is described in
``docs/guides/rates.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ouvrage.pricing.rates.parse_rule import parse_rule
from ouvrage.pricing.rates.places import Located
from ouvrage.pricing.rates.plan import (
    CONFIDENCES,
    Money,
    Plan,
    Prepaid,
    Source,
    Tax,
    Version,
)
from ouvrage.pricing.rates.quantity import GB_BINARY, GB_DECIMAL
from ouvrage.pricing.rates.reader import Reader
from ouvrage.pricing.rates.validity import check_versions

FORMAT = "ouvrage-rate-plan/1"
MODES = ("half-even", "half-up", "up", "down")
_GB = {"10^9": GB_DECIMAL, "2^30": GB_BINARY}
_VERSION_FIELDS = ("currency", "tax", "gb", "money", "prepaid", "valid_from", "valid_until")


def parse_plan(data: Mapping[str, Any], file: Located) -> Plan:
    """The plan that a loaded file holds."""
    top = Reader(data, (), file)
    top.choice("format", (FORMAT,), "")
    top.must("format", f"{FORMAT!r}")
    name = top.needed_text("name")
    sources = {each.id: each for each in _sources(top)}
    top.must("version", "at least one [[version]]")
    versions = tuple(_version(each, sources) for each in top.tables("version"))
    if not versions:
        raise top.refuse("version", "at least one [[version]]")
    check_versions(name, versions, file)
    plan = Plan(
        name=name,
        title=top.needed_text("title"),
        provider=top.text("provider"),
        file=file.file,
        versions=versions,
        sources=sources,
        conflicts_with=top.words("conflicts_with"),
        note=top.text("note"),
    )
    top.done()
    return plan


def _sources(top: Reader) -> list[Source]:
    below = top.table("source")
    if below is None:
        return []
    readers = [(name, below.table(name)) for name in below.data]
    return [_source(name, each) for name, each in readers if each is not None]


def _source(name: str, each: Reader) -> Source:
    each.must("confidence", f"one of {', '.join(CONFIDENCES)}")
    source = Source(
        id=name,
        at=each.needed_text("at"),
        dated=_day(each, "dated"),
        read=_day(each, "read"),
        confidence=each.choice("confidence", CONFIDENCES, ""),
        says=each.text("says"),
    )
    each.done()
    return source


def _day(each: Reader, key: str) -> str:
    """A date, or words such as ``undated`` where a text has none."""
    each.must(key, "a date, or 'undated'")
    value = each.data[key]
    return value if isinstance(value, str) and value else f"{value}"


def _version(each: Reader, sources: Mapping[str, Source]) -> Version:
    gb = _GB[each.choice("gb", tuple(_GB), "10^9")]
    rules = tuple(parse_rule(rule, gb) for rule in each.tables("rule"))
    if not rules:
        raise each.refuse("rule", "at least one [[version.rule]]", found="missing")
    version = Version(
        valid_from=each.moment("valid_from"),
        valid_until=each.moment("valid_until"),
        currency=each.read("currency", _currency, None),
        rules=rules,
        gb=gb,
        money=_money(each.table("money")),
        tax=_tax(each),
        prepaid=_prepaid(each.table("prepaid")),
        fields=tuple(key for key in _VERSION_FIELDS if key in each.data),
        evidence=each.pairs("evidence", str),
    )
    each.done()
    _check(each, version, sources)
    return version


def _currency(value: Any) -> str:
    if not isinstance(value, str) or len(value) != 3 or not value.isalpha() or not value.isupper():
        raise ValueError("a currency code such as EUR")
    return value


def _money(below: Reader | None) -> Money:
    if below is None:
        return Money()
    money = Money(
        mode=below.choice("mode", MODES, "half-even"),
        step=below.number("step"),
        level=below.choice("level", ("none", "charge", "total"), "none"),
    )
    if money.level != "none" and not money.step:
        raise below.refuse("step", "the step to round to, such as 0.01", found="missing")
    below.done()
    return money


def _tax(each: Reader) -> Tax:
    below = each.table("tax")
    if below is None:
        return Tax()
    tax = Tax(
        status=below.choice("status", ("excluded", "included", "none", "unknown"), "unknown"),
        rate=below.share("rate") if below.has("rate") else None,
        name=below.text("name") or "tax",
    )
    below.done()
    return tax


def _prepaid(below: Reader | None) -> Prepaid | None:
    if below is None:
        return None
    prepaid = Prepaid(
        negative=below.choice("negative", ("stops", "accrues"), "stops"),
        stop_below_us=below.duration("stop_below"),
    )
    below.done()
    return prepaid


def _check(each: Reader, version: Version, sources: Mapping[str, Source]) -> None:
    """What can only be seen from the whole version: names, sources, reservations."""
    names = [rule.name for rule in version.rules]
    for index, rule in enumerate(version.rules):
        at = Reader(each.data["rule"][index], (*each.path, "rule", index), each.file)
        if rule.name in names[:index]:
            raise at.refuse("name", "a name that no other rule of the version has")
        for key, source in rule.evidence.items():
            if source not in sources:
                raise at.refuse("evidence", f"the name of a [source.…]: {key} = {source!r} is none")
        kinds = {other.name: other.kind for other in version.rules}
        if rule.covered_by and kinds.get(rule.covered_by) != "reservation":
            raise at.refuse("covered_by", "the name of a rule of kind reservation")
    for key, source in version.evidence.items():
        if source not in sources:
            raise each.refuse("evidence", f"the name of a [source.…]: {key} = {source!r} is none")
