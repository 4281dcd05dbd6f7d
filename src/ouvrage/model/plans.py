"""What an owner expects of a period: hours sold, at which rate, and what it will cost.

A plan is a statement like any other: another one for the same time corrects it and counts one more. What
became of it is found out by the books.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSale:
    """``hours`` of GPUs sold at ``rate`` an hour (decimal text), on a channel, of a class, or of any."""

    channel: str | None
    gpu_class: str | None
    hours: str
    rate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCost:
    """A cost of the statement (``electricity``, ``rent``) that is expected to be ``amount``."""

    line: str
    amount: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerPlan:
    """What is expected of ``about`` (a site or a node) over the fact's period; ``number`` counts versions.

    Amounts are decimal text in ``currency``. A cost that is not named is not planned, which does not
    mean that there is none.
    """

    KIND: ClassVar[str] = "owner.plan"
    VERSION: ClassVar[int] = 1

    about: str
    number: int
    sales: tuple[PlannedSale, ...]
    costs: tuple[PlannedCost, ...]
    currency: str
    said_by: str
