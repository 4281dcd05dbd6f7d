"""Offers, changes and price bands as text and as JSON values.

Decides the columns, the words for an age, and what is said when somebody's offer binds nobody.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.text import safe
from ouvrage.cli.market_view import Market
from ouvrage.cli.output import shortened, table
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.listed import STALE_DAYS, Listed, gpu_memory_mib, hourly
from ouvrage.pricing.market.readings import Change
from ouvrage.pricing.words import mark, rounded

_NONE = (
    "There are no offers yet.\n\n"
    "  a few dated prices from public texts:   ouvrage market import starter\n"
    "  a catalogue that others keep:           ouvrage market import catalogs/v8/aws/vms.csv\n"
    "  your own, with name and price:          ouvrage market import offers.csv"
)
_HEAD = ("offer", "provider", "gpu", "memory", "vCPU", "RAM", "region", "per hour", "seen", "")


def age_words(days: int) -> str:
    """``today``, ``3 days old``; ``stale: 71 days old`` for a listing that nobody should count on."""
    words = "today" if not days else "1 day old" if days == 1 else f"{days} days old"
    return f"stale: {words}" if days > STALE_DAYS else words


def listed_text(
    found: Sequence[Listed],
    count: int,
    cheapest: Sequence[MarketOffer],
    view: Market,
    plain: bool,
) -> str:
    """The first of ``count`` offers as a table, the answer before it."""
    if not view.catalogues:
        return _NONE
    if not found:
        return f"None of {sum(map(len, view.lots))} offers passes this filter."
    shown = [_cheapest(each, plain) for each in cheapest]
    lines = [
        f"The cheapest hour is {', and '.join(shown)}. "
        "What finished work costs is another question: ouvrage quote.",
        "",
        table(_HEAD, [_row(each, view.today, plain) for each in found], "<<<>>><>><"),
    ]
    if count > len(found):
        lines.append(f"\n{count - len(found)} more: --top {count}")
    return "\n".join([*lines, "", f"One of them: ouvrage market show {found[0].offer.key}"])


def _cheapest(offer: MarketOffer, plain: bool) -> str:
    price = f"{rounded(hourly(offer))} {offer.currency}{mark(Grade.LISTED, plain)}"
    return f"{price} ({shortened(offer.name, 40)}, {safe(offer.provider)})"


def _row(each: Listed, today: str, plain: bool) -> tuple[str, ...]:
    offer = each.offer
    memory = gpu_memory_mib(offer)
    gpus = "" if offer.gpus in ("0", "1") else f"{offer.gpus}x "
    notes = [] if not offer.interruptible else ["interruptible"]
    notes += [f"{offer.split} only"] if offer.split in ("gpu", "host") else []
    return (
        shortened(offer.name, 32),
        shortened(offer.provider, 14),
        f"{gpus}{shortened(offer.gpu, 14)}" if offer.gpu else "–",
        "?" if memory is None else f"{_number(Fraction(memory, 1024))} GiB",
        offer.vcpus or "?",
        "?" if offer.memory_mib is None else f"{_number(Fraction(offer.memory_mib, 1024))} GiB",
        shortened(offer.region or "–", 16),
        f"{rounded(hourly(offer))} {offer.currency}{mark(Grade.LISTED, plain)}",
        age_words(each.age_days(today)),
        ", ".join(notes),
    )


def _number(value: Fraction) -> str:
    return rounded(value) if value.denominator != 1 else str(value)


def offer_json(each: Listed, today: str) -> dict[str, Any]:
    """An offer as ``--json`` prints it: what is not stated is null."""
    offer = each.offer
    return {
        "key": offer.key,
        "offer": offer.name,
        "provider": offer.provider,
        "provider_kind": offer.provider_kind,
        "catalogue": offer.catalogue,
        "region": offer.region,
        "gpu": offer.gpu,
        "gpus": offer.gpus,
        "gpu_memory_gib": _gib(offer.gpu_memory_mib),
        "vcpus": offer.vcpus,
        "memory_gib": _gib(offer.memory_mib),
        "disk_gb": offer.disk_gb,
        "price": offer.price,
        "currency": offer.currency,
        "per": offer.per,
        "split": offer.split,
        "price_per_hour": decimal_text(hourly(offer)),
        "interruptible": offer.interruptible,
        "tax": offer.tax,
        "plan": offer.plan,
        "storage_gb_month": offer.storage_gb_month,
        "egress_gb": offer.egress_gb,
        "ingress_gb": offer.ingress_gb,
        "counterparty": offer.counterparty,
        "terms": offer.terms,
        "bundled": list(offer.bundled),
        "source": offer.source,
        "first_read": offer.dated or offer.first_read,
        "seen_on": each.seen_on,
        "age_days": each.age_days(today),
        "stale": each.age_days(today) > STALE_DAYS,
        "grade": Grade.LISTED.word,
        "notes": list(offer.quirks),
        "raw": json.loads(offer.raw),
    }


def _gib(mib: int | None) -> str | None:
    return None if mib is None else decimal_text(Fraction(mib, 1024))


def unbound(offer: MarketOffer) -> str | None:
    """That nobody is bound by an offer, and for want of what; None where somebody is."""
    missing = [
        words
        for words, value in (("counterparty", offer.counterparty), ("terms", offer.terms))
        if value is None
    ]
    if not missing:
        return None
    return f"no {' and no '.join(missing)} named: nobody is bound by this price"


def offer_text(each: Listed, past: Sequence[MarketOffer], today: str, plain: bool) -> str:
    """One offer, line by line."""
    value = offer_json(each, today)
    offer = each.offer
    price = f"{offer.price} {offer.currency}/{offer.per}{mark(Grade.LISTED, plain)}"
    what = {"node": "the whole node", "gpu": "the GPUs alone", "host": "the host alone"}
    lines = [
        f"{safe(offer.name)} at {safe(offer.provider)}: {price} for "
        f"{what.get(offer.split, 'each GPU with its share of the host')}",
        f"  {age_words(each.age_days(today))}, as listed by {safe(offer.source)}",
    ]
    for name in ("gpu", "gpus", "gpu_memory_gib", "vcpus", "memory_gib", "disk_gb", "region"):
        shown = "not stated" if value[name] is None else safe(str(value[name]))
        lines.append(f"  {name.replace('_gib', ' (GiB)').replace('_', ' '):<18}{shown}")
    bundled = "; ".join(offer.bundled) or "not stated"
    lines.append(f"  {'in the hour':<18}{safe(bundled)}")
    lines.append(f"  {'counterparty':<18}{safe(offer.counterparty or 'not stated')}")
    lines.append(f"  {'terms':<18}{safe(offer.terms or 'not stated')}")
    note = unbound(offer)
    lines += [f"  note: {note}"] if note else []
    lines += [f"  note: {safe(words)}" for words in offer.quirks]
    if len(past) > 1:
        lines.append("  prices so far:")
        lines += [f"    {o.dated or o.first_read}  {o.price} {o.currency}/{o.per}" for o in past]
    return "\n".join([*lines, "", f"  the row as it came: {safe(offer.raw)}"])


_CHANGES = 50
"""More of them nobody reads; ``--json`` has them all."""


def change_lines(name: str, days: Sequence[str], found: Sequence[Change]) -> list[str]:
    """What changed in one catalogue."""
    if len(days) < 2:
        return [f"{name}: read once, on {days[0]}; import it again later to see what changed"]
    if not found:
        return [f"{name}: nothing changed from {days[0]} to {days[1]}"]
    many = "1 change" if len(found) == 1 else f"{len(found)} changes"
    lines = [f"{name}: {many} from {days[0]} to {days[1]}"]
    for change in found[:_CHANGES]:
        offer = change.offer
        before = f"{change.before.price} → " if change.before else ""
        price = f"{before}{offer.price} {offer.currency}/{offer.per}"
        lines.append(f"  {change.what:<8} {shortened(offer.name, 40):<40}  {price}")
    if len(found) > _CHANGES:
        kinds = Counter(change.what for change in found)
        told = ", ".join(f"{many} {what}" for what, many in sorted(kinds.items()))
        lines.append(f"  … of {told} in all: --json")
    return lines


def watch_text(rows: Sequence[dict[str, Any]]) -> str:
    """Price bands by GPU and day."""
    if not rows:
        return "No price bands yet. Import a catalogue now, and the same one again later."
    cells = [
        (
            shortened(row["gpu"], 20) + (", interruptible" if row["interruptible"] else ""),
            row["read_on"],
            shortened(row["catalogue"], 24),
            str(row["offers"]),
            *(rounded(Fraction(row[name])) for name in ("p10", "p50", "p90")),
            row["currency"],
        )
        for row in rows
    ]
    head = ("gpu", "read on", "catalogue", "offers", "P10", "P50", "P90", "per GPU-hour")
    return table(head, cells, "<<<>>>><")
