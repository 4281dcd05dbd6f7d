"""The books of a period as double entry: what the statement says, and the documents and money beside it.

Decides which accounts each line of the statement stands on, so that the income and expenses of the
journal are the statement's, to the nano-unit. Earned, invoiced and paid are three entries: what is earned
is accrued, a document turns what it covers into a receivable, money turns that into cash. Differences
stay where they arise and are seen: in ``Accrued`` what was earned and not invoiced, in ``Receivable`` and
``Payable`` what was not paid, in ``Unmatched`` money that no document surely explains. Differences of exchange
and of rounding have accounts of their own outside income and expenses, since the statement has neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from ouvrage.books.account import TAX, account
from ouvrage.books.cells import UNNAMED, Amount, Trail
from ouvrage.books.entries import Entry, Names, Posting, accrued, title
from ouvrage.books.paying import Match
from ouvrage.books.period import Period, day_of
from ouvrage.books.pnl import COSTS
from ouvrage.books.reconcile_bank import banked, in_period
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.revenue import LINES, OWN_USE
from ouvrage.books.settlement import documents

_BY_LINE = {
    "electricity": "Liabilities:Accrued:Electricity",
    "cooling": "Liabilities:Accrued:Electricity",
    "standing": "Liabilities:Accrued:Electricity",
    "support": "Equity:Own-work",
    "stake": "Equity:Opportunity",
}
"""On whose account a cost stands that no document states yet; of the others under its own name."""
BILLED = "as billed"
"""How the method of a cost begins that a bill states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The entries of a site over a period in order of days; ``notes`` are the statement's.

    ``unknown`` are the costs that nobody stated, for which there is no entry. ``possible`` are matches of
    a document and a line that are not entered until somebody says that they are so.
    """

    site: str
    currency: str
    period: Period
    entries: tuple[Entry, ...]
    unknown: tuple[str, ...]
    possible: tuple[Match, ...]
    notes: tuple[str, ...]

    @property
    def balances(self) -> dict[str, int]:
        """What each account moved by in the period, in nano-units, in order of names."""
        found: dict[str, int] = {}
        for entry in self.entries:
            for posting in entry.postings:
                found[posting.account] = found.get(posting.account, 0) + posting.nano
        return dict(sorted(found.items()))


def journal(record: OwnerRecord, site: str, period: Period) -> Journal:
    """The journal of a site over a period. Raises ``OuvrageError`` ``books/...`` as the statement does."""
    trail = Trail()
    made = account(record, site, period, trail)
    book = _Book(record, period)
    for amount, nano, channel in trail.posted:
        book.accrue(amount, nano, channel)
    posted = sum(nano for amount, nano, _ in trail.posted if amount.line == TAX)
    taxes = [held for (line, _), held in made.sums.items() if line == TAX]
    keys = [key for held in taxes for key in held.keys]
    book.add(
        _Key(book.last, "tax on the profit of the period", "Expenses:Tax", accrued("tax")),
        sum(held.nano for held in taxes) - posted,
        keys,
    )
    bank = banked(record)
    entries = [*book.entries(), *documents(record, made.grid, book.names, bank.matches)]
    first = bool(record.sites) and record.sites[0].value.site == site
    return Journal(
        site=site,
        currency=made.grid.currency,
        period=period,
        entries=tuple(sorted(entries, key=lambda entry: (entry.day, entry.text))),
        unknown=tuple(sorted(made.unknown)),
        possible=in_period(bank, period).possible if first else (),
        notes=made.notes,
    )


def lines_of(found: Journal) -> dict[str, int]:
    """The lines of the statement in nano-units, added up from the postings to their accounts.

    Costs and revenue above zero, as the statement has them.
    """
    expenses = {title(line): f"cost.{line}" for line in COSTS}
    income = {title(line): f"revenue.{line}" for line in LINES}
    lines = dict.fromkeys((*expenses.values(), *income.values()), 0)
    for name, nano in found.balances.items():
        sort, _, rest = name.partition(":")
        if sort == "Expenses":
            lines[expenses[rest.partition(":")[0]]] += nano
        elif sort == "Income":
            lines[income[rest.rpartition(":")[2]]] -= nano
    return lines


class _Key(NamedTuple):
    """What is one entry: a day, what it is about, the account it is for and the one against it."""

    day: date
    text: str
    account: str
    against: str


class _Book:
    """The statement's amounts as entries; what is of one day, account and sort is one entry."""

    def __init__(self, record: OwnerRecord, period: Period) -> None:
        self.names, self._period = Names(), period
        self.last = day_of(max(period.from_us, period.to_us - 1), period.zone)
        self._ends = {
            known.key: known.end if known.valid_to is not None else None for known in _dated(record)
        }
        self._assets = {each.key: each.value.asset for each in record.assets}
        self._sums: dict[_Key, tuple[int, dict[str, None]]] = {}

    def accrue(self, amount: Amount, nano: int, channel: str | None) -> None:
        """Enter an amount of the statement."""
        sort, _, line = amount.line.partition(".")
        if sort == "revenue":
            name = self.names.of("channel", channel or UNNAMED)
            own = "Equity:Own-use" if line == OWN_USE else f"Assets:Accrued:{name}"
            about = f"{line} earned through {channel or 'nobody named'}"
            key = _Key(self._day(amount), about, own, f"Income:{name}:{title(line)}")
            self.add(key, nano, amount.keys)
        elif sort == "cost" and amount.line != TAX:
            spent = f"Expenses:{title(line)}"
            if line in ("fee", "failed") and channel is not None:
                spent = f"{spent}:{self.names.of('channel', channel)}"
            key = _Key(
                self._day(amount),
                self._about(line, amount),
                spent,
                self._against(line, amount, channel),
            )
            self.add(key, nano, amount.keys)
        elif amount.line == TAX:
            self.add(
                _Key(self.last, "tax as billed", "Expenses:Tax", accrued("tax")), nano, amount.keys
            )

    def add(self, key: _Key, nano: int, facts: Iterable[str]) -> None:
        """Add to an entry; nothing is no entry."""
        before, keys = self._sums.get(key, (0, {}))
        keys.update(dict.fromkeys(facts))
        self._sums[key] = (before + nano, keys)

    def entries(self) -> Iterator[Entry]:
        """What was entered."""
        for key, (nano, keys) in self._sums.items():
            if nano:
                postings = (
                    Posting(account=key.account, nano=nano),
                    Posting(account=key.against, nano=-nano),
                )
                yield Entry(day=key.day, text=key.text, postings=postings, facts=tuple(keys))

    def _day(self, amount: Amount) -> date:
        """The last day of what its first dated fact states, within the period; else the period's."""
        for key in amount.keys:
            end = self._ends.get(key)
            if end is not None:
                within = min(max(self._period.from_us, end - 1), self._period.to_us - 1)
                return day_of(max(within, self._period.from_us), self._period.zone)
        return self.last

    def _about(self, line: str, amount: Amount) -> str:
        how = "" if line in ("electricity", "cooling") else f": {amount.method}"
        part = self._part(amount) if line == "depreciation" else None
        return f"{line.replace('_', ' ')}{f' of {part}' if part else ''}{how}"

    def _part(self, amount: Amount) -> str:
        return next((self._assets[key] for key in amount.keys if key in self._assets), "parts")

    def _against(self, line: str, amount: Amount, channel: str | None) -> str:
        if line == "depreciation":
            return f"Assets:Equipment:{self.names.of('asset', self._part(amount))}"
        if amount.method.startswith(BILLED):
            return accrued(line)
        if line in ("fee", "failed") and channel is not None:
            return f"Assets:Accrued:{self.names.of('channel', channel)}"
        return _BY_LINE.get(line, accrued(line))


def _dated(record: OwnerRecord) -> Iterable[Known[Any]]:
    """The facts whose own time says on which day an amount of theirs is entered."""
    return (*record.earnings, *record.leases, *record.bills, *record.support)
