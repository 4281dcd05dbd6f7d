"""Checks of hosts in the ledger, and the offers that a host can be held to.

Decides where an offer comes from: a file of offers, a kept quote, or an offer that was imported; and which
is meant where there are several. What a check says is decided by ``pricing.market``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.catalogues.files import load_catalogue
from ouvrage.adapters.json_text import load_json
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.ledger import Ledger
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.model.hosts import HostChecked, HostPromise
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.promises import promised

SUFFIXES = (".csv", ".json", ".toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTo:
    """An offer as a host is held to it. ``fact`` is its fact, where it was imported."""

    name: str
    provider: str
    fact: str | None
    promises: tuple[HostPromise, ...]


def host_checks(ledger: Ledger, as_of: int | None = None) -> list[HostChecked]:
    """The checks of hosts that are recorded, in order of their moment."""
    entries = in_force(ledger.store.records(kind=HostChecked.KIND, as_of=as_of))
    found = [value for e in entries if isinstance(value := read(e.fact), HostChecked)]
    return sorted(found, key=lambda each: (each.started_us, each.check))


def is_file(which: str) -> bool:
    """Whether an offer is named by a file."""
    return which.lower().endswith(SUFFIXES) or Path(which).is_file()


def offer_in_file(file: str, name: str | None, today: str) -> HeldTo:
    """The offer in a file of offers, or in a kept quote; ``name`` says which where there are several."""
    if file.lower().endswith(".json"):
        value = load_json(file, read_text(Path(file), "offer"), "offer/json")
        if isinstance(value, dict) and "ranked" in value:
            from ouvrage.cli.quote_verify import promise_in

            quoted = promise_in(Path(file), name)
            return HeldTo(
                name=quoted.offer, provider=quoted.provider, fact=None, promises=quoted.host
            )
    parsed, _, _ = load_catalogue(file, read_on=today)
    if parsed.faults:
        raise OuvrageError(
            "offer/unreadable",
            f"{file} holds rows that cannot be read; a host is held to none of it",
            where=tuple(fault.line for fault in parsed.faults[:5]),
            hint="mend the row that is named",
        )
    return _held(_chosen([(offer, None) for offer in parsed.offers], file, name))


def offer_in_market(ledger: Ledger, which: str) -> HeldTo:
    """The imported offer of this name or key."""
    from ouvrage.cli.market_view import called, market_of, whole

    listed = [(each.offer, each.fact) for each in whole(ledger, called(market_of(ledger), which))]
    return _held(_chosen(listed, "what was imported", which))


def _chosen(
    offers: list[tuple[MarketOffer, str | None]], where: str, name: str | None
) -> tuple[MarketOffer, str | None]:
    found = [each for each in offers if name is None or name in (each[0].name, each[0].key)]
    if len(found) == 1:
        return found[0]
    shown = ", ".join(f"{offer.name[:40]} ({offer.key})" for offer, _ in (found or offers)[:5])
    if found:
        raise OuvrageError(
            "offer/several",
            f"{len(found)} offers in {where} could be meant",
            where=(shown,),
            hint="say which, by its name or key: --name NAME with a file, --offer KEY without",
        )
    raise OuvrageError(
        "offer/none",
        f"there is no offer called {name!r} in {where}" if name else f"{where} holds no offer",
        where=(shown,) if shown else (),
        hint="--offer FILE, or the name of an imported offer: ouvrage market list",
    )


def _held(found: tuple[MarketOffer, str | None]) -> HeldTo:
    offer, fact = found
    return HeldTo(name=offer.name, provider=offer.provider, fact=fact, promises=promised(offer))
