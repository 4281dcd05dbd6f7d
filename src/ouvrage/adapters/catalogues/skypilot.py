"""SkyPilot's ``catalogs/v8/<cloud>/vms.csv``.

The file states neither currency, unit, tax nor date: it is taken as USD for an hour, and the day of
reading is the caller's. What each cloud's file means by its columns differs, and every such difference
that was found is handled here and named in the result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from ouvrage.adapters.catalogues.google_pairs import add_pairs, family
from ouvrage.adapters.catalogues.made import made, squeezed
from ouvrage.adapters.catalogues.rows import NO_CURRENCY, Context, Parsed, Row
from ouvrage.base.numbers import decimal_text
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.gpus import model_of

GIB_AS_MIB = "SizeInMiB below 1024 is taken as GiB"
TOTAL_AS_ONE = "SizeInMiB is the sum over the GPUs here and was divided"
TOTAL_OF_ONE = "TotalGpuMemoryInMiB is that of one GPU; the size of each is used"
SPOT_IS_PRICE = "SpotPrice equals Price: not taken as an interruptible offer"
SPOT_IS_ZERO = "a SpotPrice of 0 is no price: not taken as an interruptible offer"
EVERY_REGION = "every type is listed in every region: one offer each, its region unknown"
HOST_ALONE = "the price of a host row is the host's alone; its GPUs have a row of their own"
GPU_ALONE = "the price of this row is the GPUs' alone; it needs a host"
NO_GPU_INFO = "no GpuInfo: the memory of one GPU is unknown"
NO_PRICE = "the row has neither Price nor SpotPrice: nothing is offered"


@dataclass(frozen=True, slots=True)
class _Info:
    each_mib: int | None
    total_mib: int | None


def offers(rows: Iterable[Row], context: Context) -> Parsed:
    """The offers in a cloud's file."""
    parsed = Parsed(form="skypilot")
    cloud = context.provider or _cloud(context)
    zones: dict[int, str] = {}
    for row in rows:
        parsed.rows += 1
        found = _offers_of(row, cloud, context, parsed)
        if row.faults:
            parsed.faults += row.faults
            parsed.refused += 1
            continue
        for offer in found:
            zones[len(parsed.offers)] = row.text("AvailabilityZone") or offer.region or ""
            parsed.offers.append(offer)
    if parsed.offers:
        parsed.note(NO_CURRENCY, len(parsed.offers))
    if squeezed(cloud) == "lambda":
        _one_region(parsed)
    if squeezed(cloud) == "gcp":
        add_pairs(parsed, zones)
    return parsed


def _cloud(context: Context) -> str:
    parts = context.catalogue.split("/")
    return parts[-1] or "unknown"


def _offers_of(row: Row, cloud: str, context: Context, parsed: Parsed) -> list[MarketOffer]:
    quirks: list[str] = []
    gpus = row.number("AcceleratorCount") or Fraction(0)
    accelerator = row.text("AcceleratorName")
    if accelerator and not gpus:
        row.fault("AcceleratorCount", row.cells.get("AcceleratorCount"), "how many GPUs")
    name, memory = row.text("InstanceType"), _memory_each(row, cloud, gpus, quirks)
    if not name and not accelerator:
        row.fault("InstanceType", None, "a type, or an accelerator's name")
    prices = _prices(row, quirks)
    base = {
        "provider": cloud,
        "region": row.text("AvailabilityZone") or row.text("Region"),
        "gpu": model_of(accelerator, memory) if accelerator else None,
        "gpus": decimal_text(gpus),
        "gpu_memory_mib": memory if accelerator else None,
        "vcpus": row.count("vCPUs"),
        "memory_mib": row.mib("MemoryGiB", 1024),
        "currency": context.currency or "USD",
        "split": _split(cloud, name, accelerator, quirks),
        "name": name or f"{decimal_text(gpus)}x {accelerator}",
        "raw": row.raw,
    }
    if row.faults:
        return []
    for words in quirks:
        parsed.note(words)
    told = (NO_CURRENCY, *quirks)
    return [
        made(context, **base, price=price, interruptible=spot, quirks=told)
        for price, spot in prices
    ]


def _prices(row: Row, quirks: list[str]) -> list[tuple[str, bool]]:
    price, spot = row.decimal("Price"), row.decimal("SpotPrice")
    found = [(price, False)] if price is not None else []
    if spot is not None and price is not None and Fraction(spot) == Fraction(price):
        quirks.append(SPOT_IS_PRICE)
    elif spot is not None and not Fraction(spot):
        quirks.append(SPOT_IS_ZERO)
    elif spot is not None:
        found.append((spot, True))
    if not found and not row.faults:
        row.fault("Price", row.cells.get("Price"), "a price, or one in SpotPrice")
    return found


def _split(cloud: str, name: str | None, accelerator: str | None, quirks: list[str]) -> str:
    if squeezed(cloud) != "gcp":
        return "node"
    if accelerator and not name:
        quirks.append(GPU_ALONE)
        return "gpu"
    if not accelerator and family(name or ""):
        quirks.append(HOST_ALONE)
        return "host"
    return "node"


def _memory_each(row: Row, cloud: str, gpus: Fraction, quirks: list[str]) -> int | None:
    """The memory of one GPU in MiB, as far as the row tells."""
    text = row.text("GpuInfo")
    if not gpus or not row.text("AcceleratorName"):
        return None
    info = _gpu_info(text) if text else None
    if info is None:
        quirks.append(NO_GPU_INFO)
        return None
    each, total = info.each_mib, info.total_mib
    if each is None and total is not None:
        each = round(total / gpus) if gpus >= 1 else total
    elif each is not None and total == each and gpus > 1:
        if squeezed(cloud) == "vast":
            quirks.append(TOTAL_AS_ONE)
            each = round(each / gpus)
        else:
            quirks.append(TOTAL_OF_ONE)
    if each is not None and 0 < each < 1024:
        quirks.append(GIB_AS_MIB)
        each *= 1024
    return each or None


@lru_cache(maxsize=4096)
def _gpu_info(text: str) -> _Info | None:
    """What a GpuInfo cell says: a dictionary as Python writes one; None for anything else."""
    if not text.startswith("{"):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    if not isinstance(value, dict):
        return None
    gpus = value.get("Gpus")
    first = gpus[0] if isinstance(gpus, list) and gpus and isinstance(gpus[0], dict) else {}
    inner = first.get("MemoryInfo")
    each = inner.get("SizeInMiB") if isinstance(inner, dict) else None
    return _Info(_whole(each), _whole(value.get("TotalGpuMemoryInMiB")))


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value) if 0 < value < 10**9 else None


def _one_region(parsed: Parsed) -> None:
    """A type that is listed everywhere says nothing about where it can be had."""
    kept: dict[tuple[object, ...], MarketOffer] = {}
    for offer in parsed.offers:
        told = replace(offer, region=None, quirks=(*offer.quirks, EVERY_REGION))
        same = (offer.name, offer.gpu, offer.gpus, offer.price, offer.interruptible)
        if same in kept:
            parsed.merged += 1
        else:
            kept[same] = told
    if parsed.offers:
        parsed.note(EVERY_REGION, len(parsed.offers))
    parsed.offers = list(kept.values())
