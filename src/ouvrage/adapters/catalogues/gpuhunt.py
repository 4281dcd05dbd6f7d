"""gpuhunt's catalogue, the one that dstack uses: one CSV a provider.

Prices are USD for an hour of the whole instance, as gpuhunt documents them; the file states neither
currency nor date. Older files lack some columns, and exports have one for the provider; both are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ouvrage.adapters.catalogues.made import made
from ouvrage.adapters.catalogues.rows import Context, Parsed, Row
from ouvrage.base.numbers import decimal_text
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.gpus import model_of

NO_CURRENCY = "no currency or tax is stated; taken as USD for an hour of the instance, tax unknown"
GIB = "memory and gpu_memory are taken as GiB"


def offers(rows: Iterable[Row], context: Context) -> Parsed:
    """The offers in a file."""
    parsed = Parsed(form="gpuhunt")
    fallback = context.provider or context.catalogue.split("/")[-1] or "unknown"
    for row in rows:
        parsed.rows += 1
        offer = _offer(row, fallback, context)
        if row.faults or offer is None:
            parsed.faults += row.faults
            parsed.refused += 1
        else:
            parsed.offers.append(offer)
    if parsed.offers:
        parsed.note(NO_CURRENCY, len(parsed.offers))
        parsed.note(GIB, len(parsed.offers))
    return parsed


def _offer(row: Row, fallback: str, context: Context) -> MarketOffer | None:
    gpus = row.number("gpu_count") or Fraction(0)
    named, memory = row.text("gpu_name"), row.mib("gpu_memory", 1024)
    if gpus and not named:
        row.fault("gpu_name", None, f"a model for {decimal_text(gpus)} GPUs")
    price, name = row.decimal("price", needed=True), row.text("instance_name", needed=True)
    stated = {
        "provider": row.text("provider") or fallback,
        "name": name,
        "region": row.text("location"),
        "gpu": model_of(named, memory) if named and gpus else None,
        "gpus": decimal_text(gpus),
        "gpu_memory_mib": memory if gpus else None,
        "vcpus": row.count("cpu"),
        "memory_mib": row.mib("memory", 1024),
        "disk_gb": row.count("disk_size"),
        "price": price,
        "currency": context.currency or "USD",
        "interruptible": row.flag("spot"),
        "bundled": tuple(f"flag {word}" for word in (row.text("flags") or "").split()),
        "quirks": (NO_CURRENCY, GIB),
        "raw": row.raw,
    }
    return None if row.faults else made(context, **stated)
