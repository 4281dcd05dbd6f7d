"""``ouvrage quote``: which offer finishes the work for the least money, with every line of its price.

Decides where the work and the offers come from, and which currency they are compared in; the quotes
and their order are made by ``pricing.market``.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.catalogues.files import load_catalogue
from ouvrage.adapters.catalogues.forms import iterate
from ouvrage.adapters.catalogues.rows import number_in
from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import home
from ouvrage.adapters.market_terms import Billings, starter
from ouvrage.adapters.nccl import Interconnect, interconnect_of, load_interconnect
from ouvrage.adapters.profile_files import load_profile, seconds_in, tax_in
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import utc_text
from ouvrage.cli.options import html_option, json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table, write_file
from ouvrage.metering.topology import topology_in, topology_words
from ouvrage.model.around import RunTopology
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.communication import disagreement
from ouvrage.pricing.market.filters import filtered
from ouvrage.pricing.market.listed import Listed
from ouvrage.pricing.market.lots import Lot, lots_of
from ouvrage.pricing.market.profile import Profile, Timing
from ouvrage.pricing.market.ranking import TOP, Ranker, Ranking
from ouvrage.pricing.market.ranking_text import (
    HEAD,
    excluded_line,
    headline,
    ranking_json,
    rows,
    second_words,
    warnings,
)
from ouvrage.pricing.market.scaling import configuration_of

SUFFIXES = (".csv", ".json", ".toml")


@dataclass(slots=True, kw_only=True)
class Offered:
    """The offers to rank, times that their rows state, and what was noticed while reading them."""

    lots: list[Lot]
    stated: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class QuoteGroup(click.Group):
    """A quote needs no word after it; ``verify`` is the one verb beside it, imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verb beside."""
        return ["verify"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, imported now."""
        if cmd_name != "verify":
            return None
        from ouvrage.cli.quote_verify import verify

        return verify


@click.group(cls=QuoteGroup, invoke_without_command=True)
@click.option("--run", "runs", metavar="RUN", multiple=True, help="The work of a metered run.")
@click.option(
    "--profile",
    "profile_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The work as described in a TOML, JSON or CSV file.",
)
@click.option("--units", metavar="N", help="How many units are to be finished.")
@click.option("--deadline", metavar="TIME", help="Within which time, such as 6h or 2day.")
@click.option("--offers", metavar="WHICH", default="", help="A filter, or a file of offers.")
@click.option("--gpu", metavar="MODEL", help="The GPU that the run had, or none.")
@click.option(
    "--nccl",
    "nccl_files",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Output of nccl-tests on such GPUs: evidence that several of them gain.",
)
@click.option(
    "--topology",
    "topology_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What joins the GPUs: output of nvidia-smi topo -m. It alone credits no gain.",
)
@click.option("--top", metavar="N", type=click.IntRange(1), default=TOP, help="Show so many (20).")
@click.option("--currency", metavar="CODE", help="The currency to compare in.")
@click.option("--tax", metavar="RATE", help="At which rate you are taxed: 0.19, or 19%.")
@click.option("--interruptible", is_flag=True, help="The work may be interrupted.")
@click.option("--excluded", "show_excluded", is_flag=True, help="List those that are not able.")
@click.option(
    "--csv",
    "csv_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the ranking as CSV.",
)
@html_option
@json_option
@plain_option
@click.pass_context
def quote(ctx: click.Context, as_json: bool, plain: bool, **asked: Any) -> int:
    """Which offer finishes this work for the least money?

    \b
    ouvrage quote --run last --units 300
    ouvrage quote --profile work.toml --offers "gpu=RTX 4090,price<=0.5"
    ouvrage quote --profile work.toml --offers offers.csv --json

    Without --offers every offer that was imported is quoted, or the starter catalogue where none was.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    ranking, offered, today = ranking_for(asked)
    _write_files(ranking, asked, today)
    if as_json:
        value = ranking_json(ranking, today)
        say_json({**value, "faults": offered.faults})
    else:
        say_text(quote_text(ranking, offered, today, plain, asked["show_excluded"]))
        if asked["html_file"]:
            say_text(f"Whole report: {asked['html_file']}")
    return 1 if offered.faults else 0


def ranking_for(asked: dict[str, Any]) -> tuple[Ranking, Offered, str]:
    """The ranking that a command asks for, the offers it stands on, and today."""
    if bool(asked["runs"]) == (asked["profile_file"] is not None):
        raise OuvrageError(
            "quote/work",
            "a quote needs the work: a run or a profile, and not both",
            hint="ouvrage quote --run last, or --profile work.toml",
        )
    today = utc_text(now_us())[:10]
    file = asked["offers"] if _is_file(asked["offers"]) else None
    with _opened() if asked["runs"] or _has_store() else nullcontext() as ledger:
        profile = _asked_of(_profile(ledger, asked), asked)
        offered = _from_file(file, today) if file else _from_market(ledger, asked, today)
        _connect(offered, *_evidence(ledger, asked))
        currency = _currency(asked["currency"]) or _common_currency(offered.lots)
        others = {lot.offer.currency for lot in offered.lots} - {currency}
        ranker = Ranker(
            profile=profile,
            currency=currency,
            billing=Billings(),
            rates=_rates(ledger, currency, others),
            stated=_timings(offered, profile),
            screen=_screen(len(offered.lots)),
        )
        ranking = ranker.rank(offered.lots, asked["top"])
        questions = _questions(ledger, {each.quote.offer.provider for each in ranking.ranked})
    ranking = replace(ranking, questions=questions)
    return replace(ranking, notes=tuple(offered.notes)), offered, today


def _opened() -> Any:
    from ouvrage.cli.ledger import opened

    return opened()


def _is_file(text: str) -> bool:
    return text.lower().endswith(SUFFIXES) or (bool(text) and Path(text).is_file())


def _profile(ledger: Any, asked: dict[str, Any]) -> Profile:
    if asked["profile_file"] is not None:
        return load_profile(asked["profile_file"])
    from ouvrage.cli.ledger import known_runs
    from ouvrage.pricing.market.run_profile import profile_of_run, together

    found = []
    for each in ledger.assessed(known_runs(ledger, asked["runs"], None)):
        profile = profile_of_run(each.view, each.sheet, gpu=asked["gpu"])
        if profile is None:
            raise OuvrageError(
                "quote/untimed",
                f"no unit of {each.view.code} could be timed, so its work cannot be quoted",
                hint="ouvrage report says why; --unit helps the meter to find units",
            )
        found.append(profile)
    return together(found)


def _asked_of(profile: Profile, asked: dict[str, Any]) -> Profile:
    """The profile with what the command line says."""
    units = profile.units
    if asked["units"] is not None:
        units = number_in(asked["units"])
        if not units:
            raise OuvrageError(
                "quote/units", f"{asked['units']!r} is no number of units", hint="--units 300"
            )
    deadline = profile.deadline_s
    if asked["deadline"] is not None:
        refused = OuvrageError(
            "quote/deadline", f"{asked['deadline']!r} is no duration", hint="--deadline 6h"
        )
        deadline = seconds_in(asked["deadline"], refused)
    may = True if asked["interruptible"] else profile.interruptible
    tax = profile.tax if asked["tax"] is None else _tax_of(asked["tax"])
    return replace(profile, units=units, deadline_s=deadline, interruptible=may, tax=tax)


def _currency(text: str | None) -> str | None:
    if text is not None and not (len(text) == 3 and text.isascii() and text.isalpha()):
        raise OuvrageError(
            "quote/currency", f"{text!r} is no currency", hint="three letters, such as EUR"
        )
    return None if text is None else text.upper()


def _tax_of(text: str) -> Fraction:
    rate = tax_in(text)
    if rate is None:
        raise OuvrageError("quote/tax", f"{text!r} is no rate of tax", hint="--tax 0.19, or 19%")
    return rate


def _from_file(file: str, today: str) -> Offered:
    parsed, _, _ = load_catalogue(file, read_on=today)
    return Offered(
        lots=lots_of(
            (Listed(offer, offer.dated or today) for offer in parsed.offers), parsed.stated
        ),
        stated=parsed.stated,
        notes=list(iterate(parsed)),
        faults=[fault.line for fault in parsed.faults],
    )


def _from_market(ledger: Any, asked: dict[str, Any], today: str) -> Offered:
    from ouvrage.cli.market_view import market_of

    view = None if ledger is None else market_of(ledger)
    lots: Sequence[Lot]
    if view is not None and view.catalogues:
        lots, notes = view.lots, []
    else:
        lots = starter()
        notes = ["nothing was imported yet: these are the starter catalogue's few dated prices"]
    return Offered(lots=filtered(lots, asked["offers"], today), notes=notes)


def _evidence(ledger: Any, asked: dict[str, Any]) -> tuple[list[Interconnect], list[RunTopology]]:
    """What was measured between GPUs and what joins them: from files, and from the runs themselves."""
    found = [load_interconnect(file) for file in asked["nccl_files"]]
    file = asked["topology_file"]
    tables = [] if file is None else [
        topology_in(read_text(file, "topology"), run="", source=file.name)
    ]  # fmt: skip
    if asked["runs"]:
        from ouvrage.cli.ledger import known_runs
        from ouvrage.metering.around import communications_of, link_tests_of
        from ouvrage.pricing.communication import run_topology

        for each in ledger.assessed(known_runs(ledger, asked["runs"], None)):
            said = communications_of(each.view)
            measured = [interconnect_of(test, said) for test in link_tests_of(each.view)]
            found += [one for one in measured if one is not None]
            joined = run_topology(each.view)
            tables += [joined] if joined else []
    return found, tables


def _connect(
    offered: Offered, measured: Iterable[Interconnect], tables: Iterable[RunTopology]
) -> None:
    """Give offers of as many GPUs of a model the bandwidth that was measured on such GPUs."""
    measured = list(measured)
    for found in measured:
        offered.notes.append(found.words)
        offered.lots = [_connected(each, found) for each in offered.lots]
    for joined in tables:
        offered.notes.append(f"joined by, as {joined.source} says: {topology_words(joined)}")
        odd = [words for found in measured if (words := disagreement(found.transports, joined))]
        offered.notes += odd
        if not measured:
            offered.notes.append(
                "what joins GPUs is not how fast they speak: no gain without nccl-tests (--nccl FILE)"
            )


def _connected(lot: Lot, found: Interconnect) -> Lot:
    offer = lot.offer
    if (offer.gpu, offer.gpus) != (found.gpu, str(found.ranks)) or offer.interconnect_gb_s:
        return lot
    return lot.stating(interconnect_gb_s=found.bus_gb_s)


def _common_currency(lots: Iterable[Lot]) -> str:
    counts: Counter[str] = Counter()
    for lot in lots:
        counts[lot.offer.currency] += len(lot)
    return max(sorted(counts), key=lambda code: counts[code]) if counts else "EUR"


def _has_store() -> bool:
    """Whether anything was ever recorded here; a quote alone creates no store."""
    return bool(os.environ.get("OUVRAGE_STORE")) or (home() / "ouvrage.db").exists()


def _rates(ledger: Any, currency: str, others: set[str]) -> dict[str, Any]:
    """Recorded rates of exchange, where several currencies meet."""
    if not others or ledger is None:
        return {}
    from ouvrage.cli.fx import rates_between

    return rates_between(ledger, currency, others)


def _questions(ledger: Any, providers: set[str]) -> dict[str, tuple[str, ...]]:
    """What is recorded as not known of these providers."""
    if ledger is None or not providers:
        return {}
    from ouvrage.cli.evidence_book import evidence_in
    from ouvrage.evidence.dossier import open_questions

    records = evidence_in(ledger)
    found = {name: open_questions(name, records) for name in sorted(providers)}
    return {name: tuple(each.question for each in asked) for name, asked in found.items() if asked}


def _timings(offered: Offered, profile: Profile) -> dict[str, Timing]:
    """Times of a unit that rows of offers state themselves: claims about that very offer."""
    if not offered.stated:
        return {}
    by_key = {each.offer.key: each.offer for lot in offered.lots for each in lot.each()}
    return {
        key: _stated(by_key[key], Fraction(seconds))
        for key, seconds in offered.stated.items()
        if key in by_key and Fraction(seconds)
    }


def _stated(offer: MarketOffer, seconds: Fraction) -> Timing:
    return Timing(
        on=configuration_of(offer),
        low=seconds,
        likely=seconds,
        high=seconds,
        grade=Grade.REPORTED,
        said_by="the offer's own row",
    )


def _screen(count: int) -> Any:
    """The vector core where there are many offers and NumPy is installed, else None."""
    if count < 2000:
        return None
    try:
        from ouvrage.planning.offer_screen import screen
    except ImportError:
        return None
    return screen


def quote_text(
    ranking: Ranking, offered: Offered, today: str, plain: bool, show_excluded: bool
) -> str:
    """The answer for a person."""
    lines = headline(ranking, plain)
    if ranking.ranked:
        head = [name.replace("{unit}", ranking.profile.unit) for name in HEAD]
        drawn = table(head, rows(ranking, plain), "><>>><<>").split("\n")
        lines += ["", *(f"  {line}" for line in drawn)]
        if ranking.able > len(ranking.ranked):
            lines.append(
                f"  … {ranking.able - len(ranking.ranked)} more able: --top {ranking.able}"
            )
        lines += ["", *(f"  {line}" for line in second_words(ranking))]
    unable = excluded_line(ranking.excluded)
    if unable:
        lines.append(f"  {unable}" + ("" if show_excluded else "      which: --excluded"))
    if show_excluded:
        lines += [
            f"    {each.offer.name[:40]}: {e.reason}"
            for e in ranking.excluded
            for each in e.lot.each()
        ]
    lines += [f"  note: {words}" for words in warnings(ranking, today)]
    if offered.faults:
        lines.append(f"  {len(offered.faults)} rows of offers could not be read:")
        lines += [f"    {line}" for line in offered.faults[:20]]
    from ouvrage.cli.rates import printable_lines

    more = "Every line of each quote: --json, or a page: --html quote.html"
    return printable_lines("\n".join([*lines, "", more]))


def _write_files(ranking: Ranking, asked: dict[str, Any], today: str) -> None:
    if asked["csv_file"]:
        write_file(asked["csv_file"], csv_text(ranking))
    if asked["html_file"]:
        from ouvrage.console.page import html
        from ouvrage.console.quote_page import quote_page

        write_file(asked["html_file"], html(quote_page(ranking, today)))


_CSV = (
    *("rank", "offer", "provider", "region", "gpu", "price_per_hour", "currency"),
    *("cost_per_unit_low", "cost_per_unit_likely", "cost_per_unit_high", "time_s"),
    *(
        "bottleneck",
        "grade",
        "rank_by_hour",
        "key",
        "not_counted",
        "cost_per_unit_compared",
        "compared_in",
    ),
)


def csv_text(ranking: Ranking) -> str:
    """The ranking as CSV, a row an offer."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for place, each in enumerate(ranking.ranked, 1):
        q, offer = each.quote, each.quote.offer
        per = q.per_unit
        writer.writerow(
            [
                place,
                *map(_cell, (offer.name, offer.provider, offer.region or "", offer.gpu or "")),
                decimal_text(q.hour),
                offer.currency,
                *(decimal_text(value) for value in (per.low, per.likely, per.high)),
                decimal_text(q.finish_s.likely),
                q.carried.bottleneck,
                q.grade.word,
                each.by_hour,
                offer.key,
                "; ".join(q.not_counted),
                decimal_text(each.cost),
                ranking.currency,
            ]
        )
    return out.getvalue()


def _cell(text: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
