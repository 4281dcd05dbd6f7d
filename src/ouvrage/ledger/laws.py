"""A law: something that must hold over any set of facts, as a function anyone can run.

Each pure layer exports ``LAWS``; ``ouvrage verify`` collects and runs them over the store, tests run
them after every step. A law yields a breach for each thing broken and never mends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ouvrage.ledger.facts import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One thing that does not hold: the law's name, where, and what was found."""

    law: str
    where: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """``check`` gets every record of the ledger in order of ``seq`` and yields what it found broken."""

    name: str
    statement: str
    check: Callable[[Sequence[Recorded]], Iterable[tuple[str, str]]]

    def breaches(self, records: Sequence[Recorded]) -> list[Breach]:
        """Every breach of this law in these records."""
        return [
            Breach(law=self.name, where=where, found=found) for where, found in self.check(records)
        ]
