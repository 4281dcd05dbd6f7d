"""``ouvrage fx import``: dated rates of exchange from files.

Decides which currencies of a file that has all of them are taken where none is named: those in which
anything is recorded. Reading is the feed's, recording that of every import.
"""

from __future__ import annotations

from pathlib import Path

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.feeds.fx_rates import BASE_OF_BANK, Wanted, is_bank_layout, read_rates
from ouvrage.adapters.feeds.table import decoded
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.cli.book_ledger import books_of
from ouvrage.cli.import_told import counted, covered, read_bytes, recorded, tell
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option, moment, plain_option
from ouvrage.model.offers import ExchangeRate
from ouvrage.pricing.words import mark


@click.command("import")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--currency", "currencies", metavar="CODE", multiple=True, help="Only this one.")
@click.option("--since", metavar="DAY", help="Only from this day on.")
@click.option("--by", "said_by", metavar="WHO", help="Who says them, where the file does not.")
@json_option
@plain_option
def import_(
    files: tuple[Path, ...],
    currencies: tuple[str, ...],
    since: str | None,
    said_by: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Rates from a CSV with the columns date, base, quote, rate, or the ECB's eurofxref-hist.csv.

    Of a file with a column for each currency those are taken in which anything is recorded here, unless
    --currency names some. The same file again changes nothing; another rate of the same day corrects.
    """  # fmt: skip
    every: list[Told] = []
    with opened() as ledger:
        for path in files:
            text = decoded(read_bytes(path), None, str(path))
            told = Told(form="rates of exchange", file=str(path))
            names = frozenset(currencies)
            if is_bank_layout(text):
                names = names or _in_use(ledger, path)
                told.form = "rates of exchange, a column each"
            begins = moment(since) if since else 0
            wanted = Wanted(currencies=names, since_us=begins, said_by=said_by, now_us=now_us())
            read_rates(text, told, wanted)
            every.append(told)
        done = recorded(ledger, every, ExchangeRate.KIND)
    said = [each for told in every for each in told.stated]
    pairs = sorted({f"{each.value.base}/{each.value.quote}" for each in said})
    of = f" of {', '.join(pairs)}" if pairs else ""
    done.first = (
        f"{counted(len(said), 'rate')}{mark(Grade.REPORTED, plain or as_json)}{of}, {covered(said)}"
    )
    done.more = "All of them: ouvrage fx list"
    return tell(done, as_json, plain)


def _in_use(ledger: Ledger, path: Path) -> frozenset[str]:
    """The currencies in which anything of the owner's is stated; a refusal where there is none."""
    record = books_of(ledger, None).record
    stated = (*record.sites, *record.assets, *record.loans, *record.leases, *record.earnings)
    moved = (*record.invoices, *record.bills, *record.payments)
    found = {each.value.currency for each in (*stated, *moved)} - {BASE_OF_BANK}
    if not found:
        raise OuvrageError(
            "fx/which", f"{path} has many currencies, and none is in use here",
            hint="name those that you want: --currency USD",
        )  # fmt: skip
    return frozenset(found)
