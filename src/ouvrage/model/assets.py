"""What an owner bought and how it was paid: parts with a price and a life, loans.

Only what was agreed is kept here. What it costs in a month follows from it by a schedule, which the
books compute anew each time, so that a corrected price corrects every month.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

DEPRECIATION = ("straight-line", "declining", "hours")
LOANS = ("annuity", "linear", "bullet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A part of ``about`` (``device:ID``, ``node:NAME`` or ``site:NAME``), bought for ``price``.

    In use from ``valid_from``. Money is decimal text in ``currency``. ``method`` is one of
    ``DEPRECIATION``: over ``life_months``, by ``declining_share`` of the remaining value a year, or
    over ``life_hours`` of work; down to ``residual``. ``warranty_until`` is a day.
    """

    KIND: ClassVar[str] = "owner.asset"
    VERSION: ClassVar[int] = 1

    asset: str
    about: str
    what: str
    price: str
    currency: str
    method: str
    life_months: int | None
    life_hours: int | None
    declining_share: str | None
    residual: str
    warranty_until: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetPart:
    """Which parts of a machine an ``asset`` is: by their serial numbers, or ``slots`` where they tell none.

    ``supplier`` is who sold it, ``order`` the number on the bill.
    """

    KIND: ClassVar[str] = "owner.asset_part"
    VERSION: ClassVar[int] = 1

    asset: str
    serials: tuple[str, ...]
    slots: tuple[str, ...]
    supplier: str | None
    order: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetRetired:
    """A part left use at ``valid_from``, for ``proceeds`` (sold) or nothing, and ``why``."""

    KIND: ClassVar[str] = "owner.retirement"
    VERSION: ClassVar[int] = 1

    asset: str
    proceeds: str
    currency: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loan:
    """Money borrowed for ``about`` at ``valid_from``, paid back over ``months``.

    ``principal`` is decimal text in ``currency``, ``rate_per_year`` the nominal interest of a year as a
    fraction (``0.06``), ``shape`` one of ``LOANS``.
    """

    KIND: ClassVar[str] = "owner.loan"
    VERSION: ClassVar[int] = 1

    loan: str
    about: str
    principal: str
    currency: str
    rate_per_year: str
    months: int
    shape: str
