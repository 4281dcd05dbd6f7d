"""Entries of double entry, and the names of the accounts that they stand on.

Decides how an account is named after an owner's objects, so that programs that keep books take the names
as they are. Which accounts a sum stands on is decided where it is entered.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

EXCHANGE, RESIDUE, UNMATCHED, OWNER = (
    "Equity:Exchange", "Equity:Residue", "Assets:Unmatched", "Equity:Owner",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """``nano`` of the books' currency to an account: above zero a debit, below zero a credit."""

    account: str
    nano: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Postings of one day that add up to nothing, what they are about, and the facts behind them."""

    day: date
    text: str
    postings: tuple[Posting, ...]
    facts: tuple[str, ...]


class Names:
    """Names of accounts: letters, digits and hyphens, a capital first, no two names the same."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}

    def of(self, sort: str, name: str) -> str:
        """The part of an account's name that stands for an object."""
        found = self._given.get((sort, name))
        if found is None:
            plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in name).strip("-")
            plain = (plain[:1].upper() + plain[1:]) or "X"
            taken = {each for (kind, _), each in self._given.items() if kind == sort}
            found, number = plain, 2
            while found in taken:
                found, number = f"{plain}-{number}", number + 1
            self._given[sort, name] = found
        return found


def title(line: str) -> str:
    """``Equipment-lease`` of ``equipment_lease``: a line of the statement in an account's name."""
    return line.replace("_", "-").capitalize()


def accrued(line: str) -> str:
    """The account of a cost that is owed and not billed yet."""
    return f"Liabilities:Accrued:{title(line)}"
