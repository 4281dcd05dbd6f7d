"""Accounts of whole months that are kept beside the store, so that a large owner's are made once.

Decides where they lie, when one is read instead of being made, and which are made when facts come in:
those of the months that the facts are about. They are a projection: what is kept says up to which fact
of which ledger it was made, and a file that is lost, old or cut is made anew. Owners of few devices have none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ouvrage import __version__, books
from ouvrage.base.errors import OuvrageError
from ouvrage.books.account import Account, account
from ouvrage.books.kept import FORM, OTHERS, account_of, kept_of, may_be_kept, stands
from ouvrage.books.known import DAILY, MOST_DEVICES
from ouvrage.books.period import months_in, period_named
from ouvrage.books.record import record_of_lines
from ouvrage.cli.book_ledger import Books, within
from ouvrage.cli.books_asked import Asked, Wanted, asked
from ouvrage.cli.ledger import Ledger
from ouvrage.cli.output import write_file

_MOST_MONTHS = 3
"""The latest months that are made when facts come in: a year brought in at once waits for its questions."""


def accounted(ledger: Ledger, wanted: Wanted, *, with_facts: bool = False) -> tuple[Asked, Account]:
    """What is asked about and its account: as it was kept, where that holds; else made, and kept.

    ``with_facts``: the account has to name its facts.
    """
    if wanted.as_of is None and wanted.period is not None and not with_facts:
        found = _kept(ledger, wanted.site, wanted.period)
        if found is not None:
            return found
    seq = ledger.store.head().seq
    question = asked(ledger, wanted)
    made = account(question.books.record, question.site, question.passed)
    if wanted.as_of is None:
        _keep(ledger, question, made, seq)
    return question, made


def keep_touched(ledger: Ledger, spans: Iterable[tuple[int, int]]) -> None:
    """Make the accounts of the months anew in which daily facts were stated, as far as these are over."""
    times, light = dict.fromkeys(spans), _light(ledger)
    for site in sorted({each.value.site for each in light.record.sites}):
        zone = light.zone(site)
        months = {month.name for span in times for month in months_in(*span, zone)}
        for name in sorted(months)[-_MOST_MONTHS:]:
            with suppress(OuvrageError):  # one that lacks a rate, say: told when somebody asks
                accounted(ledger, Wanted(site=site, period=name))


def _light(ledger: Ledger) -> Books:
    """The books without the facts of the daily kinds."""
    record = record_of_lines(ledger.store.lines(OTHERS))
    return Books(record=record, ledger=ledger, known=record.as_of)


def _file(ledger: Ledger, site: str, period: str) -> Path:
    return ledger.home / "kept" / "books" / f"{site}-{period}.json"


def _kept(ledger: Ledger, site: str | None, name: str) -> tuple[Asked, Account] | None:
    if not _file(ledger, "", "").parent.is_dir():
        return None
    light = _light(ledger)
    site = light.site(site)
    period = period_named(name, light.zone(site))
    held = _read(_file(ledger, site, period.name))
    if held is None or ledger.store.sha256_at(held["seq"]) != held["sha256"]:
        return None
    since = ledger.store.lines((*OTHERS, *DAILY), after=held["seq"])
    if not all(stands(line, period) for line in since):
        return None
    known = max([held["as_of"], *(line.recorded_at for line in since)])
    light = replace(light, record=replace(light.record, as_of=known), known=known)
    then, passed = within(light, ledger, period, None)
    if not may_be_kept(then.record, period, passed):
        return None
    question = Asked(books=then, site=site, period=period, passed=passed)
    return question, account_of(held["account"], then.record, site, passed)


def _read(file: Path) -> Any:
    """What is kept, as this version keeps it; None for a file that is not there or is none of it."""
    try:
        held = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    ours = isinstance(held, dict) and (held.get("form"), held.get("version")) == (FORM, _version())
    return held if ours else None


@cache
def _version() -> str:
    """The program's version and when its books were last written: what other code made is made anew."""
    with os.scandir(Path(books.__file__).parent) as files:
        newest = max(each.stat().st_mtime_ns for each in files if each.name.endswith(".py"))
    return f"{__version__}/{newest}"


def _keep(ledger: Ledger, question: Asked, made: Account, seq: int) -> None:
    """Keep an account that was made from all facts up to a place in the ledger, perhaps from more."""
    many = len(made.grid.models) > MOST_DEVICES
    if not many or not may_be_kept(made.record, question.period, question.passed):
        return
    file = _file(ledger, question.site, question.period.name)
    held = {
        "form": FORM, "version": _version(), "seq": seq, "sha256": ledger.store.sha256_at(seq),
        "as_of": question.books.known, "account": kept_of(made),
    }  # fmt: skip
    with suppress(OSError, OuvrageError):  # a home that cannot be written is asked all the same
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, json.dumps(held, ensure_ascii=False, separators=(",", ":")))
