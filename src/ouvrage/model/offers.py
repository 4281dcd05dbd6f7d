"""What others sell, as they list it: an offer, a reading of a catalogue, a rate of exchange.

An offer keeps the row that it was read from, so that a doubt can be settled at its source. What is
not stated is None and never a default; a price is kept as it was written and never turned into
another unit. Whether an offer is good for anything is decided by a quote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

PROVIDER_KINDS = ("hyperscaler", "gpu-cloud", "decentralised-host")
SPLITS = ("node", "gpu", "gpu+host", "host")
TAXES = ("excluded", "included", "none", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketOffer:
    """One configuration at one price, listed by one catalogue.

    ``key`` identifies the offer among readings of its catalogue: everything but what may change, such
    as the price. ``gpus`` and ``vcpus`` are decimal texts, since shares of both are sold;
    ``gpu_memory_mib`` is that of one GPU. ``split`` says what the price is for: the whole ``node``,
    the ``gpu`` alone (it needs a host), ``gpu+host`` for each GPU, or the ``host`` alone. ``plan``
    names the rate plan of its increments. ``mtbf_h`` is the mean time between interruptions, and
    ``interconnect_gb_s`` the measured bandwidth of a ring through its GPUs. ``dated`` is
    the day that the row itself gives for its price, ``first_read`` that on which it was first read here; ``raw`` the row as it came; ``quirks`` what was made of it.
    """

    KIND: ClassVar[str] = "market.offer"
    VERSION: ClassVar[int] = 1

    key: str
    catalogue: str
    name: str
    provider: str
    provider_kind: str
    region: str | None
    gpu: str | None
    gpus: str
    gpu_memory_mib: int | None
    vcpus: str | None
    memory_mib: int | None
    disk_gb: str | None
    price: str
    currency: str
    per: str
    split: str
    interruptible: bool
    tax: str
    plan: str | None
    storage_gb_month: str | None
    egress_gb: str | None
    ingress_gb: str | None
    mtbf_h: str | None
    interconnect_gb_s: str | None
    counterparty: str | None
    terms: str | None
    bundled: tuple[str, ...]
    source: str
    dated: str | None
    first_read: str
    quirks: tuple[str, ...]
    raw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBand:
    """Prices for one GPU-hour of one model in one reading, as decimal texts.

    Percentiles are prices that were asked: the smallest at or below which that share of the offers
    lies.
    """

    gpu: str
    interruptible: bool
    currency: str
    offers: int
    p10: str
    p25: str
    p50: str
    p75: str
    p90: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketReading:
    """A catalogue was read on a day. ``seen`` are the ids of the offers in it, whenever first read.

    ``refused`` counts rows that could not be read, ``merged`` those that repeat another.
    """

    KIND: ClassVar[str] = "market.reading"
    VERSION: ClassVar[int] = 1

    catalogue: str
    form: str
    file: str
    sha256: str
    read_on: str
    rows: int
    merged: int
    refused: int
    notes: tuple[str, ...]
    seen: tuple[str, ...]
    bands: tuple[PriceBand, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRate:
    """One ``base`` bought ``rate`` of ``quote`` on a day, as somebody says."""

    KIND: ClassVar[str] = "fx.rate"
    VERSION: ClassVar[int] = 1

    base: str
    quote: str
    rate: str
    day: str
    said_by: str
