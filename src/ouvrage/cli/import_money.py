"""``ouvrage import earnings``, ``bank``, ``bills`` and ``mapping``: tables and statements about money.

Decides which mapping reads a file, what a file is about where it does not say, and that amounts in
another currency than the books' are told with the rate that is missing; nothing is converted here.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import click

from ouvrage.adapters.feeds import mapped_earnings
from ouvrage.adapters.feeds.bank import Line, read_bank, statements
from ouvrage.adapters.feeds.bills_csv import Defaults, read_bills
from ouvrage.adapters.feeds.camt import read_camt
from ouvrage.adapters.feeds.mapping import TableMap, load_mapping, shipped, shipped_text
from ouvrage.adapters.feeds.table import decoded
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.grades import Grade
from ouvrage.base.names import check_name
from ouvrage.base.numbers import fixed
from ouvrage.cli.import_told import (
    Imported,
    about_of,
    counted,
    covered,
    joined,
    missing_days,
    nodes_of,
    pairs,
    rates_needed,
    read_bytes,
    recorded,
    site_zone,
    tell,
)
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.ledger.stated import Stated
from ouvrage.model.cash import COSTS, BankLine, CostBill
from ouvrage.model.earnings import Earning


@click.command(name="earnings")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--mapping", "name", metavar="NAME|FILE", required=True, help="Which columns mean what."
)
@click.option("--machine", "machines", metavar="ID=NODE", multiple=True, help="Which node it is.")
@click.option("--about", metavar="WHAT", help="What rows without a machine are about: node:n1.")
@click.option("--channel", metavar="NAME", help="What you call the channel (as in the mapping).")
@click.option("--zone", metavar="ZONE", help="The zone of its days (the mapping's, the site's).")
@json_option
@plain_option
def earnings(
    files: tuple[Path, ...],
    name: str,
    machines: tuple[str, ...],
    about: str | None,
    channel: str | None,
    zone: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Earnings from a marketplace's CSV, by a mapping of its columns.

    Ready mappings: `ouvrage import mapping`. A row of gas or of a fee becomes a cost. Tokens stay tokens
    until a rate of the day is recorded: `ouvrage fx set AKT/USD 0.50 --day DAY --by WHO`.
    """
    mapping = load_mapping(name, "earnings")
    called = channel or mapping.channel or mapping.name
    check_name("channel", called, "--channel akash")
    with opened() as ledger:
        where = site_zone(ledger, zone)
        read: list[tuple[Told, list[mapped_earnings.Earned]]] = []
        for path in files:
            told = Told(form=f"earnings ({mapping.name})", file=str(path))
            if mapping.seen != "export":
                told.note(
                    f"the mapping {mapping.name} was never held against a real export: check the sums"
                )
            text = decoded(read_bytes(path), mapping.encoding, str(path))
            read.append((told, mapped_earnings.read_earnings(text, told, mapping, where)))
        ids = mapped_earnings.machines_in(each for _, found in read for each in found)
        node_of = nodes_of(ledger, called, ids, pairs(machines), read[0][0])
        subjects: dict[str | None, str] = {m: f"node:{node}" for m, node in node_of.items()}
        if any(each.machine is None for _, found in read for each in found):
            subjects[None] = about_of(ledger, about)
        said = mapped_earnings.statements(
            [found for _, found in read], called, subjects, Grade.METERED
        )
        for (told, _), stated in zip(read, said, strict=True):
            told.stated += stated
        done = _both(ledger, [told for told, _ in read])
    done.more = "What it comes to: ouvrage books pnl"
    return tell(done, as_json, plain)


def _both(ledger: Ledger, every: list[Told]) -> Imported:
    """Record earnings and the costs that stood among them."""
    said = [each for told in every for each in told.stated]
    costs = [each for each in said if isinstance(each.value, CostBill)]
    done = recorded(ledger, every, Earning.KIND)
    if costs:
        more = recorded(ledger, every, CostBill.KIND)
        done.booked, done.older = joined(done.booked, more.booked), done.older + more.older
    earned = [each for each in said if isinstance(each.value, Earning)]
    rates_needed(ledger, every[0], said)
    done.missing = missing_days(earned)
    paid = f", costs of {_sums(costs)}" if costs else ""
    done.first = f"{_sums(earned) or 'nothing'} ◐ earned{paid}, {covered(said)}"
    return done


def _sums(stated: Iterable[Stated]) -> str:
    sums: dict[str, Fraction] = {}
    for each in stated:
        code = each.value.currency
        sums[code] = sums.get(code, Fraction(0)) + Fraction(each.value.amount)
    return " and ".join(f"{fixed(amount, 2)} {code}" for code, amount in sorted(sums.items()))


@click.command(name="bank")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--mapping", "name", metavar="NAME|FILE", default="bank", help="For CSV (bank).")
@click.option("--account", metavar="IBAN", help="The account, where a CSV does not name it.")
@click.option("--currency", metavar="CODE", help="The currency, where a CSV does not name it.")
@click.option("--zone", metavar="ZONE", help="The zone of its days (the site's).")
@json_option
@plain_option
def bank(
    files: tuple[Path, ...],
    name: str,
    account: str | None,
    currency: str | None,
    zone: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Lines of a bank account, from camt.053 or CSV.

    A line is the same when the bank's reference is; where it gives none, when day, amount and words are:
    two equal lines on one day are two. Nothing is matched with bills or payouts here.
    """
    mapping = load_mapping(name, "bank")
    every: list[Told] = []
    with opened() as ledger:
        where = site_zone(ledger, zone)
        for path in files:
            told = Told(form="bank", file=str(path))
            data = read_bytes(path)
            lines = _lines(data, told, path, mapping, account, currency)
            told.stated += statements(lines, where)
            every.append(told)
        done = recorded(ledger, every, BankLine.KIND)
        said = list({each.natural: each for told in every for each in told.stated}.values())
        rates_needed(ledger, every[0], said)
    came = [each for each in said if Fraction(each.value.amount) > 0]
    left = [each for each in said if Fraction(each.value.amount) < 0]
    done.first = f"{counted(len(said), 'line')}: {_sums(came) or 'nothing'} ◐ came, {_sums(left) or 'nothing'} left, {covered(said, where)}"
    done.more = "What they pay for: ouvrage books reconcile"
    return tell(done, as_json, plain)


def _lines(
    data: bytes,
    told: Told,
    path: Path,
    mapping: TableMap,
    account: str | None,
    currency: str | None,
) -> list[Line]:
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<" or (
        data[:2] in (b"\xff\xfe", b"\xfe\xff") and b"<\0" in data[:8]
    ):
        told.form = "camt.053"
        return read_camt(data, told)
    return read_bank(decoded(data, mapping.encoding, str(path)), told, mapping, account, currency)


@click.command(name="bills")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--mapping", "name", metavar="NAME|FILE", default="bills", help="Of its columns (bills)."
)
@click.option("--about", metavar="WHAT", help="What they are about, where a row does not say.")
@click.option("--sort", type=click.Choice(COSTS), help="What for, where a row does not say.")
@click.option("--currency", metavar="CODE", help="The currency, where a row does not say.")
@click.option("--zone", metavar="ZONE", help="The zone of their days (the site's).")
@json_option
@plain_option
def bills(
    files: tuple[Path, ...],
    name: str,
    about: str | None,
    sort: str | None,
    currency: str | None,
    zone: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Bills from a CSV: number, sort, about, amount, tax, currency, from, to, kwh, due.

    The same number of the same sort is the same bill: a corrected file corrects it.
    """
    mapping = load_mapping(name, "bills")
    every: list[Told] = []
    with opened() as ledger:
        where = site_zone(ledger, zone)
        defaults = Defaults(about=about, sort=sort, currency=currency, zone=where)
        for path in files:
            told = Told(form="bills", file=str(path))
            read_bills(
                decoded(read_bytes(path), mapping.encoding, str(path)), told, mapping, defaults
            )
            every.append(told)
        done = recorded(ledger, every, CostBill.KIND)
        said = [each for told in every for each in told.stated]
        rates_needed(ledger, every[0], said)
    done.first = (
        f"{counted(len(said), 'bill')} of {_sums(said) or 'nothing'} ◐, {covered(said, where)}"
    )
    done.more = "What they do to the margin: ouvrage books pnl"
    return tell(done, as_json, plain)


@click.command(name="mapping")
@click.argument("name", metavar="NAME", required=False)
@json_option
def mapping_(name: str | None, as_json: bool) -> None:
    """The ready mappings, or one as text: copy it and name your own columns.

    \b
    ouvrage import mapping clore > mine.toml
    ouvrage import earnings FILE --mapping mine.toml
    """
    if name is not None:
        text = shipped_text(name)
        if as_json:
            say_json({"name": name, "toml": text})
        else:
            say_text(text.rstrip("\n"))
        return
    found = [load_mapping(each, _sort_of(each)) for each in shipped()]
    if as_json:
        say_json(
            {
                "mappings": [
                    {"name": m.name, "sort": m.sort, "seen": m.seen, "source": m.source}
                    for m in found
                ]
            }
        )
        return
    rows = [(m.name, m.sort, _SEEN[m.seen], m.source[:70]) for m in found]
    say_text(table(("name", "sort", "held against", "after"), rows, "<<<<"))


_SEEN = {"never": "nothing", "documentation": "documentation only", "export": "our own form"}


def _sort_of(name: str) -> str:
    return {"bank": "bank", "bills": "bills"}.get(name, "earnings")
