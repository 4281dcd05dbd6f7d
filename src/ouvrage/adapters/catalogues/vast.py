"""Vast.ai's offers, as the marketplace's search answers them in JSON.

``dph_total`` is USD for an hour with the default disk in it; ``inet_*_cost`` USD for a GB; ``gpu_ram``
and ``cpu_ram`` are labelled MB and hold MiB; ``storage_cost`` is USD for a GB and month. One machine is
listed several times: as many equal slices, and in slices of several sizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ouvrage.adapters.catalogues.made import made
from ouvrage.adapters.catalogues.rows import Context, Parsed, Row, number_in
from ouvrage.base.numbers import decimal_text
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.gpus import model_of

PER_HOUR = "dph_total is taken as USD for an hour, the default disk in it"
MIB = "gpu_ram and cpu_ram are labelled MB and hold MiB"
PER_GB = (
    "inet_up_cost and inet_down_cost are taken as USD for a GB, storage_cost for a GB and month"
)
SLICES = "another equal slice of the same machine: the one with the best score was kept"
BID = "min_bid is taken as the price of an interruptible offer"
DATACENTER = "hosting_type 1: the host is a data centre"
RENTED = "rented: true; listed, but not to be had now"


def offers(rows: Iterable[Row], context: Context) -> Parsed:
    """The offers in an answer, one for each machine, number of GPUs and way of renting."""
    parsed = Parsed(form="vast")
    best: dict[tuple[object, ...], tuple[Fraction, MarketOffer]] = {}
    for row in rows:
        parsed.rows += 1
        score = number_in(row.cells.get("score")) or Fraction(0)
        made_of = _offers_of(row, context, parsed)
        if row.faults:
            parsed.faults += row.faults
            parsed.refused += 1
            continue
        repeated = False
        for offer in made_of:
            same = (row.text("machine_id") or row.text("id"), offer.gpus, offer.interruptible)
            held = best.get(same)
            repeated = repeated or held is not None
            if held is None or score > held[0]:
                best[same] = (score, offer)
        if repeated:
            parsed.merged += 1
            parsed.note(SLICES)
    parsed.offers = [offer for _, offer in best.values()]
    return parsed


def _offers_of(row: Row, context: Context, parsed: Parsed) -> list[MarketOffer]:
    quirks = [PER_HOUR, MIB, PER_GB]
    if number_in(row.cells.get("hosting_type")) == 1:
        quirks.append(DATACENTER)
    if row.flag("rented"):
        quirks.append(RENTED)
    stated = _stated(row, context)
    price, bid = row.decimal("dph_total", needed=True), row.decimal("min_bid")
    if row.faults or price is None:
        return []
    for words in quirks:
        parsed.note(words)
    found = [made(context, **stated, price=price, interruptible=False, quirks=tuple(quirks))]
    if bid is not None and Fraction(bid):
        parsed.note(BID)
        found.append(replace(found[0], price=bid, interruptible=True, quirks=(*quirks, BID)))
    return found


def _stated(row: Row, context: Context) -> dict[str, Any]:
    gpus, memory = row.number("num_gpus", needed=True), row.mib("gpu_ram", 1)
    named = row.text("gpu_name", needed=True)
    machine = row.text("machine_id") or row.text("id")
    if not machine:
        row.fault("machine_id", None, "the id of a machine")
    if gpus == 0:
        row.fault("num_gpus", "0", "how many GPUs")
    host = row.text("host_id")
    count = decimal_text(gpus or Fraction(0))
    return {
        "provider": context.provider or "vast",
        "name": f"m{machine} {count}x {named}",
        "region": row.text("geolocation"),
        "gpu": model_of(named or "", memory),
        "gpus": count,
        "gpu_memory_mib": memory,
        "vcpus": row.count("cpu_cores_effective"),
        "memory_mib": row.mib("cpu_ram", 1),
        "disk_gb": row.count("disk_space"),
        "storage_gb_month": row.decimal("storage_cost"),
        "egress_gb": row.decimal("inet_up_cost"),
        "ingress_gb": row.decimal("inet_down_cost"),
        "currency": context.currency or "USD",
        "tax": "none",
        "counterparty": f"host {host} at Vast.ai" if host else None,
        "raw": row.raw,
    }
