"""What the ledger states about itself: refused statements and withdrawn ones.

Both are facts like any other, since a refusal that left no trace could not be found later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A statement was offered under an identity that already states something else.

    ``field`` is the first field that differs; ``stored`` and ``offered`` are the canonical texts of
    that field. Nothing changed.
    """

    KIND: ClassVar[str] = "ledger.conflict"
    VERSION: ClassVar[int] = 1

    key: str
    field: str
    stored: str
    offered: str
    stored_sha256: str
    offered_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """The fact that this one corrects should never have been stated; ``why`` says why."""

    KIND: ClassVar[str] = "ledger.withdrawal"
    VERSION: ClassVar[int] = 1

    why: str
