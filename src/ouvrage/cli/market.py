"""``ouvrage market``: what others sell, as they list it, with its age and its source.

Decides how catalogues are brought in and how offers are laid out. What stands, what changed and how
prices lay is decided by ``pricing.market``; which offer is good for a piece of work is a quote's matter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.catalogues.files import load_catalogue
from ouvrage.adapters.catalogues.forms import FORMS, iterate
from ouvrage.adapters.catalogues.rows import Parsed
from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.ledger import opened
from ouvrage.cli.market_text import change_lines, listed_text, offer_json, offer_text, watch_text
from ouvrage.cli.market_view import (
    Market,
    bands,
    called,
    history,
    last_two,
    market_of,
    readings,
    whole,
)
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.model.offers import PROVIDER_KINDS, MarketOffer, MarketReading
from ouvrage.pricing.market.filters import filtered
from ouvrage.pricing.market.listed import Listed
from ouvrage.pricing.market.lots import by_price, cheapest_hours
from ouvrage.pricing.market.readings import (
    bands_of,
    changes,
    identified,
    offer_facts,
    reading_fact,
    subject_of,
)
from ouvrage.store.market_table import current_market
from ouvrage.store.store import Outcome, Store

_MOST_FAULTS = 20


@click.group()
def market() -> None:
    """Others' offers: what is for sale, since when, and who says so.

    \b
    Begin:  ouvrage market import starter
    Then:   ouvrage market list --gpu "RTX 4090"
    """


@market.command(name="import")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--as", "form", type=click.Choice(sorted(FORMS)), help="The form, if it is not told.")
@click.option("--source", "catalogue", metavar="NAME", help="What to call the catalogue.")
@click.option("--provider", metavar="NAME", help="Whose offers these are, where no row says it.")
@click.option("--currency", metavar="CODE", help="The currency of prices that name none.")
@click.option("--read", "read_on", metavar="DATE", help="The day the file was read (today).")
@json_option
def import_(
    files: tuple[str, ...],
    form: str | None,
    catalogue: str | None,
    provider: str | None,
    currency: str | None,
    read_on: str | None,
    as_json: bool,
) -> int:
    """Bring catalogues of offers in.

    FILE is SkyPilot's or gpuhunt's CSV, Vast.ai's offers in JSON, your own TOML, JSON or CSV, or
    `starter`. What was known already stays one fact. Rows that cannot be read are listed and counted,
    the others are kept, and the exit code is 1.
    """
    day = _day(read_on)
    told = []
    loaded = [
        load_catalogue(
            name,
            read_on=day,
            form=form,
            catalogue=catalogue,
            provider=provider,
            currency=currency,
        )
        for name in files
    ]
    with opened() as ledger:
        for name, (parsed, context, digest) in zip(files, loaded, strict=True):
            source = source_id(ledger.home)
            counts = _kept(ledger.store, source, parsed, context.catalogue, name, digest, day)
            told.append(_imported(parsed, context.catalogue, name, counts))
    if as_json:
        say_json({"imported": told})
    else:
        for each in told:
            say_text("\n".join(_import_lines(each)))
    return 1 if any(each["refused"] for each in told) else 0


def _day(text: str | None) -> str:
    today = utc_text(now_us())[:10]
    if text is None:
        return today
    from ouvrage.cli.options import moment

    day = utc_text(moment(text))[:10]
    if day > today:
        raise OuvrageError(
            "market/future", f"{text} has not come yet", hint="--read is the day the file was read"
        )
    return day


def _kept(
    store: Store,
    source: str,
    parsed: Parsed,
    catalogue: str,
    file: str,
    digest: str,
    day: str,
) -> dict[str, int]:
    """Record a reading and the offers that are new in it; how many are new, changed and known."""
    known = set(store.ids(subject=subject_of(catalogue), kind=MarketOffer.KIND))
    by_id: dict[str, MarketOffer] = {}
    payloads: dict[str, str] = {}
    for offer in parsed.offers:
        each, payload = identified(offer)
        by_id[each], payloads[each] = offer, payload
    keys = {each.split("/")[1] for each in known}
    new = [each for each in by_id if each not in known]
    changed = sum(1 for each in new if by_id[each].key in keys)
    reading = MarketReading(
        catalogue=catalogue,
        form=parsed.form,
        file=Path(file).name,
        sha256=digest,
        read_on=day,
        rows=parsed.rows,
        merged=parsed.merged,
        refused=parsed.refused,
        notes=tuple(iterate(parsed)),
        seen=tuple(by_id),
        bands=bands_of(parsed.offers),
    )
    facts = [*offer_facts(by_id, known, source, payloads), reading_fact(reading, source)]
    outcomes: list[Outcome] = store.append(facts, now_us=now_us(), own_source=source)
    current_market(store)  # now, so that the next quote need not
    again = outcomes[-1].result == "exists"
    return {
        "new": len(new) - changed,
        "changed": changed,
        "exists": len(by_id) - len(new),
        "read_before": int(again),
    }


def _imported(parsed: Parsed, catalogue: str, file: str, counts: dict[str, int]) -> dict[str, Any]:
    return {
        "file": file,
        "catalogue": catalogue,
        "form": parsed.form,
        "rows": parsed.rows,
        "offers": len(parsed.offers),
        "new": counts["new"],
        "changed": counts["changed"],
        "exists": counts["exists"],
        "merged": parsed.merged,
        "refused": parsed.refused,
        "faults": [fault.as_json() for fault in parsed.faults],
        "lines": [fault.line for fault in parsed.faults],
        "notes": list(iterate(parsed)),
    }


def _import_lines(told: dict[str, Any]) -> list[str]:
    parts = [f"{told['new']} new", f"{told['changed']} at another price", f"{told['exists']} known"]
    lines = [
        f"{told['offers']} offers from {told['file']} as {told['catalogue']}: {', '.join(parts)}",
        f"  {told['rows']} rows in the form of {told['form']}"
        + (f", {told['merged']} that repeat others" if told["merged"] else ""),
    ]
    lines += [f"  note: {words}" for words in told["notes"]]
    if told["refused"]:
        lines.append(f"  {told['refused']} rows could not be read:")
        lines += [f"    {line}" for line in told["lines"][:_MOST_FAULTS]]
        if len(told["lines"]) > _MOST_FAULTS:
            lines.append(f"    and {len(told['lines']) - _MOST_FAULTS} more; --json lists them all")
    return [safe(line) for line in lines]


@market.command(name="list")
@click.option("--gpu", metavar="MODEL", help="Of this GPU.")
@click.option("--memory", metavar="GIB", help="With at least so much memory a GPU.")
@click.option("--region", metavar="TEXT", help="Whose region holds this text.")
@click.option("--kind", type=click.Choice(PROVIDER_KINDS), help="Of this kind of provider.")
@click.option("--provider", metavar="TEXT", help="Whose provider's name holds this text.")
@click.option("--interruptible/--on-demand", default=None, help="Only those, or none of those.")
@click.option("--price", metavar="MAX", help="At no more than this an hour.")
@click.option("--age", metavar="DAYS", help="Seen at this price no longer ago.")
@click.option(
    "--where", metavar="FILTER", default="", help="Any filter, as `quote --offers` takes."
)
@click.option("--top", metavar="N", type=click.IntRange(1), default=30, help="Show so many (30).")
@json_option
@plain_option
def list_(where: str, top: int, as_json: bool, plain: bool, **asked: Any) -> None:
    """The offers as last read, the cheapest hour first.

    Offers that their catalogue no longer holds are left out.
    """
    words = [f"{name}={value}" for name, value in asked.items() if _said(value)]
    words = [word.replace("=True", "=yes").replace("=False", "=no") for word in words]
    with opened() as ledger:
        view = market_of(ledger)
        lots = filtered(view.lots, ",".join([*words, where]), view.today)
        found = whole(ledger, by_price(lots, top))
    count = sum(map(len, lots))
    if as_json:
        offers = [offer_json(each, view.today) for each in found]
        say_json({"today": view.today, "count": count, "offers": offers})
        return
    say_text(listed_text(found, count, cheapest_hours(lots), view, plain))


def _said(value: object) -> bool:
    return value is not None and value != ""


@market.command()
@click.argument("offer", metavar="OFFER")
@json_option
@plain_option
def show(offer: str, as_json: bool, plain: bool) -> None:
    """One offer with everything known about it.

    Its source, its terms, what was made of its row, and its prices so far. OFFER is its key, or its
    name where that is one offer's alone.
    """
    with opened() as ledger:
        view = market_of(ledger)
        [found] = whole(ledger, [_one(offer, view)])
        past = history(ledger, found.offer)
    if as_json:
        say_json({**offer_json(found, view.today), "history": [price_json(each) for each in past]})
        return
    say_text(offer_text(found, past, view.today, plain))


def price_json(offer: MarketOffer) -> dict[str, str]:
    """One price that an offer has had."""
    first = offer.dated or offer.first_read
    return {"first_read": first, "price": offer.price, "currency": offer.currency, "per": offer.per}


def _one(text: str, view: Market) -> Listed:
    found = called(view, text)
    if len(found) == 1:
        return found[0]
    if found:
        raise OuvrageError(
            "market/ambiguous",
            f"{len(found)} offers are called {text!r}",
            where=tuple(
                f"{each.offer.key}  {each.offer.catalogue}  {each.offer.region or '-'}  "
                f"{each.offer.price} {each.offer.currency}/{each.offer.per}"
                for each in found[:10]
            ),
            hint="name it by its key",
        )
    raise OuvrageError(
        "market/unknown",
        f"no offer has the key or the name {text!r}",
        hint="ouvrage market list shows them",
    )


@market.command()
@click.option("--catalogue", metavar="NAME", help="Of this catalogue only.")
@json_option
def diff(catalogue: str | None, as_json: bool) -> None:
    """What the last reading of each catalogue says otherwise than the one before."""
    told: list[dict[str, Any]] = []
    lines: list[str] = []
    with opened() as ledger:
        known = readings(ledger)
        for name in _catalogues(known, catalogue):
            days, before, after = last_two(ledger, name, known)
            found = changes(before, after) if len(days) == 2 else []
            changed = [_change(each) for each in found]
            told.append({"catalogue": name, "readings": days, "changes": changed})
            lines += change_lines(name, days, found)
    if as_json:
        say_json({"catalogues": told})
        return
    say_text("\n".join(safe(line) for line in lines))


def _catalogues(known: list[MarketReading], asked: str | None) -> list[str]:
    """The names of the catalogues that are meant; refused where there is none."""
    there = sorted({reading.catalogue for reading in known})
    names = [name for name in there if asked in (None, name)]
    if not names:
        raise OuvrageError(
            "market/no-catalogue",
            f"no catalogue is called {asked!r}" if asked else "nothing was imported yet",
            hint=f"there are: {', '.join(there)}" if there else "ouvrage market import starter",
        )
    return names


def _change(change: Any) -> dict[str, Any]:
    return {
        "what": change.what,
        "key": change.offer.key,
        "offer": change.offer.name,
        "price": change.offer.price,
        "before": None if change.before is None else change.before.price,
        "currency": change.offer.currency,
        "per": change.offer.per,
    }


@market.command()
@click.option("--gpu", metavar="MODEL", help="Of this GPU only.")
@click.option("--catalogue", metavar="NAME", help="Of this catalogue only.")
@json_option
def watch(gpu: str | None, catalogue: str | None, as_json: bool) -> None:
    """How the price of a GPU-hour lay at each reading: P10, P50 and P90.

    For owners who price against others. Import the same catalogue again from time to time.
    """
    with opened() as ledger:
        rows = bands(readings(ledger), gpu, catalogue)
    if as_json:
        say_json({"bands": rows})
        return
    say_text(watch_text(rows))
