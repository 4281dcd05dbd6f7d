"""What ``ouvrage init`` was given, from options and a file, as statements; and what it then says.

Decides how a file of an owner's is laid out, that a word it does not know is refused where it stands,
and what is assumed for what is left out: the defaults of the terms, with their sources, recorded as
assumed so that a report made next year says the same. Sums that are assumed to be nothing are not
recorded; they are told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text, significant
from ouvrage.base.text import safe
from ouvrage.books.gaps_text import WORDS
from ouvrage.books.period import day_of, day_start
from ouvrage.books.record import OwnerRecord
from ouvrage.books.terms import rule_for
from ouvrage.cli.booking import Booked, Stated
from ouvrage.cli.output import table
from ouvrage.cli.owning import (
    Place,
    amount,
    asset_stated,
    assumed,
    check_currency,
    check_zone,
    day,
    device_stated,
    loan_stated,
    node_stated,
    site_stated,
    term_stated,
)
from ouvrage.model.assets import Asset, Loan
from ouvrage.model.sites import DevicePlaced
from ouvrage.pricing.words import mark

SITE_TERMS: dict[str, tuple[str, str]] = {
    "electricity": ("electricity", "What a kilowatt-hour costs: 0.28/kWh."),
    "pue": ("pue", "Energy of the whole place over that of its machines: 1.2."),
    "rent": ("rent", "Rent a month."),
    "bandwidth": ("bandwidth", "Line to the internet, a month."),
    "insurance": ("insurance", "Insurance a month."),
    "tax": ("tax", "Share of the profit that is taxed: 25 %."),
    "support_hours": (
        "support_hours_month",
        "Hours of support in a month in which none is logged.",
    ),
    "support_price": ("support_price", "What an hour of it is worth."),
}
"""Option → the term of the site, and what it is."""
_SITE = {"name", "currency", "zone", "since", *SITE_TERMS}
_NODE = {
    *("name", "gpus", "model", "since", "price", "bought", "life_months", "residual"),
    *("idle_watts", "load_watts", "loan", "loan_rate", "loan_months", "loan_shape", "part"),
}
_PART = {"name", "price", "bought", "life_months", "residual", "method", "warranty_until", "gpu"}
_CHANNEL = {"fee", "payout_fee", "stake"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was given: the site, the machines, the channels, each as plain values with its place."""

    site: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]]
    channels: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The statements to record, the place they are about, and what was assumed: (what, value, why)."""

    place: Place
    facts: Sequence[Stated]
    nodes: Sequence[str]
    assumed: Sequence[tuple[str, str, str]]


def read_plan(file: Path) -> dict[str, Any]:
    """A file of an owner's, its words checked. Raises ``OuvrageError`` ``init/...``."""
    data = load_toml(str(file), read_text(file, "init"), "init/toml")
    _only(data, {"site", "node", "channel"}, str(file))
    _only(_table(data, "site", file), _SITE, f"{file}: [site]")
    nodes = data.get("node", [])
    if not isinstance(nodes, list):
        raise _laid_out(f"{file}: node", "is no list of machines", "[[node]]")
    for node in nodes:
        _only(node, _NODE, f"{file}: [[node]]")
        for part in node.get("part", []):
            _only(part, _PART, f"{file}: [[node.part]]")
    for name, channel in _table(data, "channel", file).items():
        _only(channel, _CHANNEL, f"{file}: [channel.{name}]")
    return data


def _table(data: Mapping[str, Any], name: str, file: Path) -> Mapping[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise _laid_out(f"{file}: {name}", "is no table", f"[{name}]")
    return found


def _only(found: Any, allowed: set[str], where: str) -> None:
    if not isinstance(found, dict):
        raise _laid_out(where, "is no table", where.partition(": ")[2])
    unknown = sorted(found.keys() - allowed)
    if unknown:
        raise OuvrageError(
            "init/unknown", f"{unknown[0]!r} is not a word that {where} knows", where=(where,),
            hint=f"it knows {', '.join(sorted(allowed))}",
        )  # fmt: skip


def _laid_out(where: str, found: str, wanted: str) -> OuvrageError:
    return OuvrageError("init/form", f"{where} {found}", hint=f"write it as {wanted}")


def plan_of(data: Mapping[str, Any], given: Mapping[str, str]) -> Plan:
    """A file's plan with the options over it; options are about the first machine."""
    site = {
        **data.get("site", {}),
        **{k: v for k, v in given.items() if k in _SITE - {"name", "since"}},
    }
    if "site" in given:
        site["name"] = given["site"]
    nodes = [dict(node) for node in data.get("node", [])]
    own = {name: given[name] for name in _NODE & given.keys()}
    if "node" in given:
        own["name"] = given["node"]
    if own or not nodes:
        nodes = [{**(nodes[0] if nodes else {}), **own}, *nodes[1:]]
    channels = {name: dict(terms) for name, terms in data.get("channel", {}).items()}
    if "channel" in given or "fee" in given:
        name = given.get("channel") or next(iter(channels), "own")
        channels.setdefault(name, {})
        if "fee" in given:
            channels[name]["fee"] = given["fee"]
    return Plan(site=site, nodes=nodes, channels=channels)


_CURRENCY = "nobody said; --currency CODE, which is for good: marketplaces often pay in USD"
_ZONE = "nobody said; --zone ZONE decides where a day and a month begin"


@dataclass(slots=True)
class _Making:
    """The statements as they are made, with what had to be assumed."""

    place: Place
    record: OwnerRecord
    since: int
    facts: list[Stated] = field(default_factory=list)
    assumed: list[tuple[str, str, str]] = field(default_factory=list)

    def term(self, about: str, name: str, value: Any, at_us: int) -> None:
        """A term that is given, or what is assumed for it where nothing was ever said."""
        if value is not None:
            said = "the owner"
            self.facts.append(
                term_stated(self.place, about, name, value, from_us=at_us, since="", said_by=said)
            )

    def assume(self, about: str, name: str, model: str | None, at_us: int) -> None:
        """Record a default with its source; one that is nothing, or unknown, is only told."""
        if (about, name) in self.record.terms or self._given(about, name):
            return
        rule = rule_for(name, about, model, self.place.currency)
        if rule is None:
            return
        if rule.default is None:
            self.assumed.append(
                (f"{name} of {about}", "unknown", rule.source or "nothing to go by")
            )
            return
        text = significant(rule.default, 4) if rule.unit == "W" else decimal_text(rule.default)
        unit = rule.unit.replace("CUR", self.place.currency)
        self.assumed.append(
            (f"{name} of {about}", text if unit == "1" else f"{text} {unit}", rule.source)
        )
        if rule.default:
            stated = term_stated(
                self.place, about, name, text, from_us=at_us, since="", said_by=rule.source
            )
            self.facts.append(assumed(stated))

    def _given(self, about: str, name: str) -> bool:
        return any(each.natural == f"own/term/{about}/{name}" for each in self.facts)


def facts_of(plan: Plan, record: OwnerRecord) -> Found:
    """The statements of a plan, with what is assumed for what it leaves out."""
    place = _place(plan, record)
    since = min(_since(node, place) for node in plan.nodes)
    making = _Making(place=place, record=record, since=since)
    held = record.site(place.site)
    first = min(since, held.valid_from) if held else since
    site = site_stated(place, first)
    making.facts.append(site if plan.site.keys() & {"currency", "zone"} or held else assumed(site))
    if held is None:
        making.assumed += [
            (f"{word} of site:{place.site}", value, why)
            for word, value, why in (
                ("currency", place.currency, _CURRENCY),
                ("zone", place.zone, _ZONE),
            )
            if not plan.site.get(word)
        ]
    about = f"site:{place.site}"
    for option, (name, _) in SITE_TERMS.items():
        making.term(about, name, plan.site.get(option), first)
    names = [_node(making, node, i) for i, node in enumerate(plan.nodes)]
    for name, terms in plan.channels.items():
        for term in sorted(_CHANNEL):
            making.term(f"channel:{name}", term, terms.get(term), first)
        making.assume(f"channel:{name}", "fee", None, first)
    for name in ("electricity", "pue", *(n for _, (n, _) in SITE_TERMS.items() if n != "pue")):
        making.assume(about, name, None, first)
    unique = list({each[0]: each for each in making.assumed}.values())
    return Found(place=place, facts=making.facts, nodes=names, assumed=unique)


def _place(plan: Plan, record: OwnerRecord) -> Place:
    """The site that is meant, keeping what an earlier call said of it."""
    known = [each.value.site for each in record.sites]
    name = str(plan.site.get("name") or (known[0] if known else "home"))
    held = record.site(name)
    currency = plan.site.get("currency") or (held.value.currency if held else "EUR")
    zone = plan.site.get("zone") or (held.value.zone if held else "UTC")
    check_currency(str(currency))
    check_zone(str(zone))
    if held and held.value.currency != currency:
        raise OuvrageError(
            "init/currency",
            f"{name} keeps its books in {held.value.currency}; they cannot also be in {currency}",
            hint=f"another site has books of its own: ouvrage init --site NAME --currency {currency}",
        )
    return Place(site=name, currency=str(currency), zone=str(zone))


def _since(node: Mapping[str, Any], place: Place) -> int:
    """When a machine came into service: as given, when it was bought, or two months ago."""
    text = node.get("since") or node.get("bought")
    if text is not None:
        return place.moment(str(text))
    today = day_of(now_us(), place.zone)
    last = today.replace(day=1) - timedelta(days=1)
    return day_start(date(last.year, last.month, 1), place.zone)


def _node(making: _Making, node: Mapping[str, Any], index: int) -> str:
    """A machine's statements: itself, its GPUs, its price, its loan, its power."""
    name = str(node.get("name") or _known_node(making, index))
    at_us, place, about = _since(node, making.place), making.place, f"node:{name}"
    held = next((each for each in making.record.nodes if each.value.node == name), None)
    if held is not None and not (node.get("since") or node.get("bought")):
        at_us = held.valid_from
    stated = node_stated(name, place.site, at_us, None)
    dated = bool(node.get("since") or node.get("bought"))
    if held is None or dated:
        making.facts.append(stated if dated else assumed(stated))
    if held is None and not dated:
        since = f"{day_of(at_us, place.zone)}"
        making.assumed.append((f"{name} in service since", since, "nobody said; --since DAY"))
    model = _devices(making, name, node, at_us)
    for word, term in (("idle_watts", "idle_power_w"), ("load_watts", "load_power_w")):
        making.term(about, term, node.get(word), at_us)
        making.assume(about, term, model, at_us)
    _parts(making, name, node, at_us)
    _loan(making, name, node, at_us)
    return name


def _known_node(making: _Making, index: int) -> str:
    known = [n.value.node for n in making.record.nodes if n.value.site == making.place.site]
    return known[index] if index < len(known) else f"node-{index + 1}"


def _devices(making: _Making, name: str, node: Mapping[str, Any], at_us: int) -> str | None:
    """The GPUs of a machine; those that stand there already are not stated again."""
    standing = [each for each in making.record.devices if each.value.node == name]
    model = str(node["model"]) if node.get("model") else None
    if standing and not node.keys() & {"gpus", "model"}:
        return standing[0].value.model
    count = _whole(node.get("gpus", len(standing) or 1), f"{name}: gpus")
    model = model or (standing[0].value.model if standing else None)
    for slot in range(count):
        placed = DevicePlaced(device=f"{name}-gpu{slot}", node=name, model=model, slot=slot)
        making.facts.append(device_stated(placed, at_us, None))
    if not node.keys() & {"gpus"} and not standing:
        making.assumed.append((f"GPUs in {name}", "1", "nobody said; --gpus N"))
    return model


def _whole(value: Any, what: str) -> int:
    text = str(value)
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise OuvrageError(
            "init/number", f"{what}: {text!r} is no number of things", hint="a whole number from 1"
        )
    return int(text)


def _parts(making: _Making, name: str, node: Mapping[str, Any], at_us: int) -> None:
    """What was bought: the machine as a whole, or part by part."""
    whole = [{**node, "name": name}] if node.get("price") is not None else []
    for part in (*whole, *node.get("part", [])):
        making.facts.append(_asset(making, name, part, at_us))
    held = any(each.value.about.endswith((f":{name}",)) for each in making.record.assets)
    if not whole and not node.get("part") and not held:
        making.assumed.append(
            (f"price of {name}", "unknown", "without it there is no margin; --price")
        )


def _asset(making: _Making, node: str, part: Mapping[str, Any], at_us: int) -> Stated:
    place, name = making.place, str(part.get("name", node))
    if "price" not in part:
        raise OuvrageError("init/price", f"part {name} of {node} has no price", hint="price = 1800")
    life = part.get("life_months")
    rule = rule_for("expected_life_months", f"node:{node}", None, place.currency)
    guessed = life is None
    if guessed and rule is not None and rule.default is not None:
        making.assumed.append((f"life of {name}", f"{rule.default} months", rule.source))
        life = int(rule.default)
    bought = place.moment(str(part["bought"])) if part.get("bought") else at_us
    about = f"device:{part['gpu']}" if part.get("gpu") else f"node:{node}"
    asset = Asset(
        asset=name, about=about, what=str(part.get("name", "machine")),
        price=amount(part["price"], "CUR", place.currency, f"{name}: price"),
        currency=place.currency, method=str(part.get("method", "straight-line")),
        life_months=_whole(life, f"{name}: life_months"), life_hours=None, declining_share=None,
        residual=amount(part.get("residual", "0"), "CUR", place.currency, f"{name}: residual"),
        warranty_until=str(day(str(part["warranty_until"]))) if part.get("warranty_until") else None,
    )  # fmt: skip
    stated = asset_stated(asset, bought)
    return assumed(stated) if guessed else stated


def _loan(making: _Making, name: str, node: Mapping[str, Any], at_us: int) -> None:
    if node.get("loan") is None:
        return
    place = making.place
    bought = place.moment(str(node["bought"])) if node.get("bought") else at_us
    if node.get("loan_rate") is None or node.get("loan_months") is None:
        raise OuvrageError(
            "init/loan", f"the loan for {name} has no rate or no length",
            hint="--loan 5000 --loan-rate 6% --loan-months 36",
        )  # fmt: skip
    loan = Loan(
        loan=name, about=f"node:{name}", currency=place.currency,
        principal=amount(node["loan"], "CUR", place.currency, f"{name}: loan"),
        rate_per_year=amount(node["loan_rate"], "1", place.currency, f"{name}: loan_rate"),
        months=_whole(node["loan_months"], f"{name}: loan_months"),
        shape=str(node.get("loan_shape", "annuity")),
    )  # fmt: skip
    making.facts.append(loan_stated(loan, bought))


def told(found: Found, booked: Booked, *, plain: bool) -> str:
    """What was set up, what was assumed and why, and the next step."""
    place = found.place
    many = ", ".join(safe(name) for name in found.nodes)
    if not booked.new and not booked.corrected:
        lines = [f"{place.site} is set up already as you say; nothing was changed."]
    else:
        lines = [
            f"{place.site} is set up: {many}, books in {place.currency} by the clock of "
            f"{place.zone} ({booked.words})."
        ]
    if found.assumed:
        lines += ["", f"{len(found.assumed)} things you did not say:"]
        rows = [
            (
                f"  {_in_words(what)}",
                value + (mark(Grade.ASSUMED, plain) if value != "unknown" else ""),
                safe(why),
            )
            for what, value, why in found.assumed
        ]
        lines.append(table(("  what", "assumed", "because"), rows, "<<<"))
    return "\n".join([*lines, "", _NEXT])


def _in_words(what: str) -> str:
    """``load_power_w of node:n1`` as ``power under load of n1, each GPU``."""
    name, of, about = what.partition(" of ")
    each = ", each GPU" if name in ("idle_power_w", "load_power_w") else ""
    words = WORDS.get(name, name.replace("_", " "))
    return safe(f"{words}{of}{about.rpartition(':')[2]}{each}")


_NEXT = (
    "Next: what it earned, ouvrage import vast-earnings FILE (other kinds: ouvrage import --help), "
    "then ouvrage books pnl"
)


def told_json(found: Found, booked: Booked) -> dict[str, Any]:
    """The same as ``--json`` prints it."""
    return {
        "site": found.place.site,
        "currency": found.place.currency,
        "zone": found.place.zone,
        "nodes": list(found.nodes),
        "recorded": {"new": booked.new, "same": booked.same, "corrected": booked.corrected},
        "assumed": [
            {"what": what, "value": value, "why": why} for what, value, why in found.assumed
        ],
    }
