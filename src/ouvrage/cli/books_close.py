"""``ouvrage books close`` and ``reopen``: a month is checked, sealed, and opened again with a reason.

Decides that only whole months are closed, that nothing is sealed while an item is open, and what is told
of a closed month whose figures have moved since. What a month must fulfil is decided by the books.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.books.account import account
from ouvrage.books.closing import (
    ACCEPTED,
    CLOSING_KINDS,
    OPEN,
    Check,
    Closings,
    checklist,
    chosen,
    closings,
)
from ouvrage.books.closing_text import check_json, checks_text, moved_json, moved_lines
from ouvrage.books.pnl import sheet_of
from ouvrage.books.pnl_text import period_words
from ouvrage.books.sealing import COLUMNS, Moved, as_sealed, moved_since, sealed_rows, sums_sha256
from ouvrage.cli.booking import Stated, book
from ouvrage.cli.books_asked import Asked, Wanted, asked, site_option
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, wrote
from ouvrage.evidence.figures import Sheet
from ouvrage.model.closings import Accepted, BooksClosed, BooksReopened, ItemAccepted
from ouvrage.store.closed_months import keep, parquet


def _month(name: str) -> str:
    if not re.fullmatch("[0-9]{4}-(0[1-9]|1[0-2])", name):
        raise OuvrageError(
            "close/month",
            f"{name!r} is no month",
            hint="write it as 2026-11; a year is twelve of them",
        )
    return name


def said(ledger: Ledger, site: str, as_of: int | None = None) -> Closings:
    """What is known about the closed months of a site."""
    kinds = (*CLOSING_KINDS, "ledger.withdrawal")
    return closings(
        (entry for kind in kinds for entry in ledger.store.records(kind=kind, as_of=as_of)), site
    )


@click.command("close")
@click.argument("month", metavar="MONTH")
@site_option
@click.option("--accept", "accepts", metavar="ITEM", multiple=True, help="Let an open item stand; `assumed` means all that begin so.")  # fmt: skip
@click.option("--why", metavar="TEXT", help="Why it may stand.")
@json_option
@plain_option
def close(
    month: str,
    site: str | None,
    accepts: tuple[str, ...],
    why: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Go through a month's checklist and seal it.

    Without an open item the month's figures and calendar are sealed into a Parquet file whose hash is
    recorded. Later facts then show as what they move, and never in silence. Exit code 1 while
    something is open.
    """
    if accepts and not (why or "").strip():
        raise OuvrageError("close/why", "it is not said why it may stand", hint="--why TEXT")
    with opened() as ledger:
        question = asked(ledger, Wanted(site=site, period=_month(month)))
        held = said(ledger, question.site)
        if month in held.sealed:
            raise OuvrageError(
                "close/closed", f"{period_words(question.period)} of {question.site} is closed already",
                hint=f"ouvrage books reopen {month} --why TEXT",
            )  # fmt: skip
        record = question.books.record
        checks = checklist(record, question.site, question.period, held.of(month))
        if accepts:
            _accept(ledger, question, chosen(checks, accepts), (why or "").strip())
            accepted = said(ledger, question.site).of(month)
            checks = checklist(record, question.site, question.period, accepted)
        waits = [check for check in checks if check.state == OPEN]
        sealed = None if waits else _seal(ledger, question, checks, held.last.get(month, 0) + 1)
    _tell(question, checks, sealed, as_json=as_json, plain=plain)
    return 1 if waits else 0


def _accept(ledger: Ledger, question: Asked, items: Sequence[Check], why: str) -> None:
    period, site = question.period, question.site
    stated = [
        Stated(
            natural=f"accepted/{site}/{period.name}/{check.item}",
            value=ItemAccepted(
                site=site, period=period.name, item=check.item, found=check.found, why=why
            ),
            subject=f"site:{site}",
            valid_from=period.from_us,
            valid_to=period.to_us,
            grade=Grade.REPORTED,
        )
        for check in items
    ]
    book(ledger, stated, typed=True)


def _seal(ledger: Ledger, question: Asked, checks: Sequence[Check], number: int) -> BooksClosed:
    period, site, record = question.period, question.site, question.books.record
    accepted = tuple(
        Accepted(item=c.item, found=c.found, why=c.why) for c in checks if c.state == ACCEPTED
    )
    rows = sealed_rows(record, site, period, accepted)
    file = f"{site}-{period.name}-{number}.parquet"
    sha256 = keep(ledger.home, file, parquet(rows, COLUMNS))
    wrote()
    seal = BooksClosed(
        site=site, period=period.name, number=number, as_of_us=record.as_of, file=file,
        file_sha256=sha256, rows=len(rows), sums_sha256=sums_sha256(rows), accepted=accepted,
    )  # fmt: skip
    _record(ledger, question, f"closed/{site}/{period.name}/{number}", seal)
    return seal


def _record(ledger: Ledger, question: Asked, natural: str, value: Any) -> None:
    stated = Stated(
        natural=natural,
        value=value,
        subject=f"site:{question.site}",
        valid_from=question.period.from_us,
        valid_to=question.period.to_us,
        grade=Grade.REPORTED,
    )
    book(ledger, [stated], typed=True)


def _tell(
    question: Asked,
    checks: Sequence[Check],
    seal: BooksClosed | None,
    *,
    as_json: bool,
    plain: bool,
) -> None:
    waits = [check for check in checks if check.state == OPEN]
    if as_json:
        say_json({
            "site": question.site, "period": question.period.name, "closed": seal is not None,
            "checks": [check_json(check) for check in checks], **(_seal_json(seal) if seal else {}),
        })  # fmt: skip
        return
    whose = f"{period_words(question.period)} of {safe(question.site)}"
    if seal is None:
        count = f"{len(waits)} of {len(checks)} items {'is' if len(waits) == 1 else 'are'} open"
        first, name = f"{whose} is not closed: {count}.", question.period.name
        more = (
            f"Let one stand: ouvrage books close {name} --accept {safe(waits[0].item)} --why TEXT"
        )
        more = f"Settle it first: {safe(waits[0].do)}" if waits[0].sort in ("time", "fx") else more
    else:
        first = f"{whose} is closed: {seal.rows} rows are sealed in closed/{seal.file}."
        more = f"Open it again: ouvrage books reopen {seal.period} --why TEXT"
    lines = [first, "", *checks_text(checks, question.period, plain)]
    lines += [] if seal is None else ["", f"  sha256 {seal.file_sha256}, recorded as a fact"]
    say_text("\n".join([*lines, "", more]))


def _seal_json(seal: BooksClosed) -> dict[str, Any]:
    return {
        "number": seal.number, "as_of": utc_text(seal.as_of_us), "file": seal.file,
        "file_sha256": seal.file_sha256, "rows": seal.rows, "sums_sha256": seal.sums_sha256,
    }  # fmt: skip


@click.command("reopen")
@click.argument("month", metavar="MONTH")
@site_option
@click.option("--why", metavar="TEXT", required=True, help="Why it is opened again.")
@json_option
def reopen(month: str, site: str | None, why: str, as_json: bool) -> None:
    """Open a closed month again. Its seal stays; closing it again makes another."""
    if not why.strip():
        raise OuvrageError("close/why", "it is not said why it is opened", hint="--why TEXT")
    with opened() as ledger:
        question = asked(ledger, Wanted(site=site, period=_month(month)))
        seal = said(ledger, question.site).sealed.get(month)
        if seal is None:
            raise OuvrageError(
                "close/open", f"{period_words(question.period)} of {question.site} is not closed",
                hint=f"ouvrage books close {month}",
            )  # fmt: skip
        opened_again = BooksReopened(
            site=question.site, period=month, number=seal.number, why=why.strip()
        )
        _record(ledger, question, f"reopened/{question.site}/{month}/{seal.number}", opened_again)
    if as_json:
        say_json(
            {"site": question.site, "period": month, "number": seal.number, "why": why.strip()}
        )
        return
    say_text(
        f"{period_words(question.period)} of {safe(question.site)} is open again; seal {seal.number} stays "
        f"in closed/{seal.file}.\nClose it again: ouvrage books close {month}"
    )


def since_closed(
    ledger: Ledger, question: Asked, now: Sheet, as_of: int | None
) -> tuple[BooksClosed, list[Moved]] | None:
    """The seal of the period that is asked about, and what has moved since; None for an open one."""
    seal = said(ledger, question.site, as_of).sealed.get(question.period.name)
    held = None if seal is None else as_sealed(question.books.records, seal)
    if seal is None or held is None:
        return None
    made = account(held[0], seal.site, held[1])
    return seal, moved_since(sheet_of(made, made.cells, now.object, None), now)


def closed_lines(found: tuple[BooksClosed, list[Moved]] | None) -> list[str]:
    """What is told below a statement of a closed month."""
    return [] if found is None else moved_lines(*found)


def closed_json(found: tuple[BooksClosed, list[Moved]] | None) -> dict[str, Any] | None:
    """The same for ``--json``; None for an open month."""
    if found is None:
        return None
    return {**_seal_json(found[0]), "moved": [moved_json(each) for each in found[1]]}
