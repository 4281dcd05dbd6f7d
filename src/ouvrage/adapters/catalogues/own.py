"""Offers written by hand, in TOML, JSON or CSV: the names of ``MarketOffer``, and what people call them.

Only a name and a price are needed. What is left out is unknown; a currency that no row states is taken
as the house's default and said to be so. Columns that mean nothing here are named and kept in the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ouvrage.adapters.catalogues.made import kind_of, made, plan_of
from ouvrage.adapters.catalogues.rows import Context, Parsed, Row, printable
from ouvrage.adapters.rate_files import shipped_names
from ouvrage.base.errors import OuvrageError
from ouvrage.base.price import parse_price
from ouvrage.model.offers import PROVIDER_KINDS, SPLITS, TAXES, MarketOffer
from ouvrage.pricing.market.gpus import model_of
from ouvrage.pricing.market.promises import COLUMNS, NUMBERS

DEFAULT_CURRENCY = "EUR"
NO_CURRENCY = f"no currency is stated; taken as {DEFAULT_CURRENCY}"
ALIASES = {
    "name": ("name", "offer", "id", "instance", "instance_type", "configuration", "host"),
    "provider": ("provider", "vendor", "cloud", "seller"),
    "provider_kind": ("provider_kind", "kind"),
    "region": ("region", "location", "zone"),
    "gpu": ("gpu", "gpu_model", "gpu_name", "accelerator"),
    "gpus": ("gpus", "gpu_count", "count", "num_gpus"),
    "gpu_memory_gib": (
        "gpu_memory_gib",
        "gpu_memory_gb",
        "gpu_memory",
        "vram_gib",
        "vram_gb",
        "vram",
    ),
    "vcpus": ("vcpus", "vcpu", "cpu", "cpus", "cores"),
    "memory_gib": ("memory_gib", "memory_gb", "memory", "ram_gib", "ram_gb", "ram"),
    "disk_gb": ("disk_gb", "disk_gib", "disk", "disk_size"),
    "price": ("price_per_hour", "price", "hourly", "price_per_h", "hourly_price"),
    "currency": ("currency",),
    "per": ("per",),
    "split": ("split", "price_split"),
    "interruptible": ("interruptible", "spot", "preemptible"),
    "tax": ("tax",),
    "plan": ("plan", "rate_plan"),
    "storage_gb_month": ("storage_gb_month", "storage_price", "storage_per_gb_month"),
    "egress_gb": ("egress_gb", "egress_price", "egress_per_gb", "egress"),
    "ingress_gb": ("ingress_gb", "ingress_price", "ingress_per_gb", "ingress"),
    "mtbf_h": ("mtbf_h", "mtbf_hours", "mtbf"),
    "interconnect_gb_s": ("interconnect_gb_s", "busbw_gb_s"),
    "counterparty": ("counterparty",),
    "terms": ("terms", "terms_document"),
    "bundled": ("bundled", "includes"),
    "source": ("source",),
    "read": ("date_read", "read", "date", "read_on"),
    "seconds_per_unit": ("seconds_per_unit", "s_per_unit", "unit_seconds", "seconds"),
}
PRICES = set(ALIASES["price"])
_KNOWN = {alias for group in ALIASES.values() for alias in group} | COLUMNS
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PER = {"h": "h", "hour": "h", "hr": "h", "s": "s", "min": "min", "day": "day", "d": "day"}


def offers(rows: Iterable[Row], context: Context) -> Parsed:
    """The offers in a file of one's own."""
    parsed = Parsed(form="own")
    for row in rows:
        parsed.rows += 1
        unused = sorted({str(name) for name in row.cells} - _KNOWN - {""})
        named = Row(_named(row), row.place, context)
        offer = _offer(named, row.raw, context)
        seconds = named.decimal("seconds_per_unit")
        for name in sorted(NUMBERS & row.cells.keys()):
            row.number(name)  # promises of the host: kept in the row, read from there
        named.faults += row.faults
        if named.faults or offer is None:
            parsed.faults += named.faults
            parsed.refused += 1
            continue
        for name in unused:
            parsed.note(f"{name[:60]!r} means nothing here; kept with the row")
        for words in offer.quirks:
            parsed.note(words)
        if seconds is not None:
            parsed.stated[str(len(parsed.offers))] = seconds
        parsed.offers.append(offer)
    return parsed


def _named(row: Row) -> dict[str, Any]:
    """The cells under the names that are used here; the first name of a group that is filled wins."""
    found: dict[str, Any] = {}
    for name, group in ALIASES.items():
        for alias in group:
            value = row.cells.get(alias)
            if value is not None and value != "":
                found[name] = value
                break
    return found


def _offer(row: Row, raw: str, context: Context) -> MarketOffer | None:
    memory = row.mib("gpu_memory_gib", 1024)
    named = row.text("gpu")
    provider = row.text("provider") or context.provider or "own"
    price = _price(row, context)
    stated = {
        **price,
        "name": row.text("name", needed=True),
        "provider": provider,
        "provider_kind": _one_of(row, "provider_kind", PROVIDER_KINDS) or kind_of(provider),
        "region": row.text("region"),
        "gpu": model_of(named, memory) if named else None,
        "gpus": row.count("gpus") or ("1" if named else "0"),
        "gpu_memory_mib": memory,
        "vcpus": row.count("vcpus"),
        "memory_mib": row.mib("memory_gib", 1024),
        "disk_gb": row.count("disk_gb"),
        "interruptible": row.flag("interruptible"),
        "tax": _one_of(row, "tax", TAXES) or "unknown",
        "plan": _plan(row) or plan_of(provider),
        "bundled": _bundled(row),
        "dated": _day(row),
        "raw": raw,
    }
    for name in ("storage_gb_month", "egress_gb", "ingress_gb", "mtbf_h", "interconnect_gb_s"):
        stated[name] = row.decimal(name)
    for name in ("counterparty", "terms"):
        stated[name] = row.text(name)
    if row.text("source"):
        stated["source"] = row.text("source")
    return None if row.faults else made(context, **stated)


def _price(row: Row, context: Context) -> dict[str, Any]:
    """Amount, currency, unit and split, from one text such as ``0.30 USD/h`` or from columns."""
    text = row.text("price", needed=True) or ""
    currency, per = row.text("currency"), (row.text("per") or "h").lower()
    split = _one_of(row, "split", SPLITS) or "node"
    if per.startswith("gpu-"):
        split, per = "gpu+host", per[4:]
    if per not in _PER:
        row.fault("per", per, "h, s, min, day, or gpu-h")
    if "/" in text or not text.replace(".", "").isdigit():
        return _written(row, text, currency, split)
    quirks = () if currency or context.currency else (NO_CURRENCY,)
    if currency and not re.fullmatch("[A-Z]{3}", currency):
        row.fault("currency", currency, "three letters such as EUR")
    return {
        "price": row.decimal("price"),
        "currency": currency or context.currency or DEFAULT_CURRENCY,
        "per": _PER.get(per, "h"),
        "split": split,
        "quirks": quirks,
    }


def _written(row: Row, text: str, currency: str | None, split: str) -> dict[str, Any]:
    form = text if "/" in text else f"{text}/h"
    try:
        price = parse_price(form, currency)
    except OuvrageError as error:
        if text:
            row.fault("price", text, f"a price such as 0.30 or 0.30 USD/h ({error.message})"[:200])
        return {"price": None, "currency": None, "per": None, "split": split, "quirks": ()}
    return {
        "price": price.amount,
        "currency": price.currency,
        "per": price.per,
        "split": split,
        "quirks": (),
    }


def _one_of(row: Row, name: str, words: tuple[str, ...]) -> str | None:
    text = row.text(name)
    if text is None:
        return None
    word = text.lower().replace(" ", "-").replace("_", "-")
    if word not in words:
        row.fault(name, text, " or ".join(words))
        return None
    return word


def _plan(row: Row) -> str | None:
    name = row.text("plan")
    if name is not None and name not in shipped_names():
        row.fault("plan", name, "a shipped rate plan: ouvrage rates list")
    return name


def _bundled(row: Row) -> tuple[str, ...]:
    value = row.cells.get("bundled")
    if isinstance(value, list):
        return tuple(printable(each)[:200] for each in value if isinstance(each, str))
    text = row.text("bundled") or ""
    return tuple(part.strip() for part in text.split(";") if part.strip())


def _day(row: Row) -> str | None:
    value = row.cells.get("read")
    if value is None or value == "":
        return None
    text = str(value)[:10]
    if not _DATE.fullmatch(text):
        row.fault("date_read", value, "a date such as 2026-11-30")
        return None
    return text
