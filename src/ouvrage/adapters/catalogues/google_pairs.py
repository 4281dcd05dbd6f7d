"""Google Cloud's hosts and GPUs, which are priced in rows of their own, brought to whole offers.

Decides which host may have which GPUs: a type of the accelerator families comes with its GPUs and only
with these; a general host (N1) takes 1, 2, 4 or 8 GPUs of the older models, within a limit of vCPUs and
memory for each number. Both rows must be of one zone and both interruptible or neither. The rows
themselves stay offers of their own; nothing is added up that a zone does not list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from ouvrage.adapters.catalogues.rows import NO_CURRENCY, Parsed
from ouvrage.base.numbers import decimal_text
from ouvrage.model.offers import MarketOffer

PAIRED = "host row and GPU row of one zone added up"
ATTACHED = "an N1 host row and a GPU row of one zone added up, within Google's limits for such GPUs"

_FAMILIES = (
    (re.compile(r"a2-highgpu-([0-9]+)g"), "A100"),
    (re.compile(r"a2-megagpu-([0-9]+)g"), "A100"),
    (re.compile(r"a2-ultragpu-([0-9]+)g"), "A100-80GB"),
    (re.compile(r"a3-(?:high|mega|edge)gpu-([0-9]+)g(?:-nolssd)?"), "H100"),
    (re.compile(r"a3-ultragpu-([0-9]+)g(?:-nolssd)?"), "H200"),
    (re.compile(r"a4-highgpu-([0-9]+)g(?:-nolssd)?"), "B200"),
)
_L4 = {"4": 1, "8": 1, "12": 1, "16": 1, "24": 2, "32": 1, "48": 4, "96": 8}
_N1 = re.compile(r"n1-(?:standard|highmem|highcpu)-[0-9]+")
_LIMITS: dict[str, dict[int, tuple[int, int]]] = {
    "K80": {1: (8, 52), 2: (16, 104), 4: (32, 208), 8: (64, 208)},
    "P4": {1: (24, 156), 2: (48, 312), 4: (96, 624)},
    "P100": {1: (16, 104), 2: (32, 208), 4: (64, 208)},
    "T4": {1: (48, 312), 2: (48, 312), 4: (96, 624)},
    "V100": {1: (12, 78), 2: (24, 156), 4: (48, 312), 8: (96, 624)},
}
"""By model and number of GPUs: the most vCPUs and GiB that an N1 host with them may have.

As documented at cloud.google.com/compute/docs/gpus and carried by SkyPilot's gcp_catalog.py; where zones
differ (K80, P100) the lower limit stands.
"""
Zones = dict[int, str]
"""The zone of an offer, by its place among the offers parsed so far."""


def family(name: str) -> tuple[str, int] | None:
    """The GPUs that a Google Cloud host type goes with; None for one that has no fixed GPUs."""
    for pattern, gpu in _FAMILIES:
        match = pattern.fullmatch(name)
        if match:
            return gpu, int(match[1])
    if name.startswith("g2-standard-") and name[12:] in _L4:
        return "L4", _L4[name[12:]]
    return None


def add_pairs(parsed: Parsed, zones: Zones) -> None:
    """Add the whole machines that a zone's rows make together."""
    hosts: dict[tuple[str, bool], list[MarketOffer]] = {}
    gpus: dict[tuple[str, bool], list[MarketOffer]] = {}
    for index, offer in enumerate(parsed.offers):
        where = (zones[index], offer.interruptible)
        if offer.split == "gpu":
            gpus.setdefault(where, []).append(offer)
        elif offer.gpu is None:
            hosts.setdefault(where, []).append(offer)
    added = [made for where, there in hosts.items() for made in _pairs(there, gpus.get(where, ()))]
    for words in (PAIRED, ATTACHED):
        count = sum(words in offer.quirks for offer in added)
        if count:
            parsed.note(words, count)
    parsed.offers += added


def _pairs(hosts: Iterable[MarketOffer], gpus: Iterable[MarketOffer]) -> Iterable[MarketOffer]:
    """What the hosts and the GPUs of one zone make together."""
    there = list(gpus)
    for host in hosts:
        fixed = family(host.name) if host.split == "host" else None
        if fixed is not None:
            own = [each for each in there if (each.gpu, each.gpus) == (fixed[0], str(fixed[1]))]
            yield from (_together(host, each, PAIRED) for each in own[-1:])
        elif _N1.fullmatch(host.name):
            yield from (_together(host, each, ATTACHED) for each in there if _fits(host, each))


def _fits(host: MarketOffer, gpus: MarketOffer) -> bool:
    """Whether an N1 host may have these GPUs. What is not known does not fit."""
    if gpus.gpu is None or not gpus.gpus.isdecimal():
        return False
    limit = _LIMITS.get(gpus.gpu, {}).get(int(gpus.gpus))
    if limit is None or host.vcpus is None or host.memory_mib is None:
        return False
    return Fraction(host.vcpus) <= limit[0] and host.memory_mib <= limit[1] * 1024


def _together(host: MarketOffer, gpus: MarketOffer, words: str) -> MarketOffer:
    price = Fraction(host.price) + Fraction(gpus.price)
    name = host.name if words == PAIRED else f"{host.name} with {gpus.name}"
    parts = f"of which {host.name} {host.price} and {gpus.name} {gpus.price}"
    return replace(
        host,
        name=name,
        gpu=gpus.gpu,
        gpus=gpus.gpus,
        gpu_memory_mib=gpus.gpu_memory_mib,
        price=decimal_text(price),
        split="node",
        quirks=(NO_CURRENCY, words, f"{parts} {host.currency} an hour"),
        raw=f"[{host.raw},{gpus.raw}]",
    )
