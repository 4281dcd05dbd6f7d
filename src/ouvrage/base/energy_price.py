"""A price of energy: an amount of one currency per kilowatt-hour, kept as it was stated.

Decides only how such a price is written. It is no price of time, so neither can be taken for the
other: a rate per hour where a tariff was meant is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.price import written


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyPrice:
    """``amount`` (decimal text) per kilowatt-hour; ``currency`` None where the text names none."""

    amount: str
    currency: str | None

    @property
    def per_kwh(self) -> Fraction:
        """The amount as an exact number."""
        return Fraction(Decimal(self.amount))

    def in_currency(self, currency: str | None) -> EnergyPrice:
        """The same in a currency that is named: its own, else ``currency``, else ``EUR``.

        Raises ``OuvrageError`` ``price/two-currencies`` where both are named and differ.
        """
        if self.currency and currency and self.currency != currency:
            raise OuvrageError(
                "price/two-currencies",
                f"--electricity is in {self.currency}, --currency says {currency}",
                hint="no exchange rate is assumed; give both prices in one currency",
            )
        return EnergyPrice(amount=self.amount, currency=self.currency or currency or "EUR")


def parse_energy_price(text: str) -> EnergyPrice:
    """Read ``0.25/kWh``, ``0.25 EUR/kWh`` or ``$0.25/kWh``; ``OuvrageError`` ``electricity/...``."""
    found = written(text)
    if found is None or found.per is None:
        raise _bad("electricity/unreadable", f"{text!r} is not a price of energy")
    if found.per.lower() != "kwh":
        raise _bad("electricity/unit", f"{text!r} is per {found.per}, not per kWh")
    if Decimal(found.amount) < 0:
        raise _bad("electricity/negative", f"{text!r} is negative")
    return EnergyPrice(amount=found.amount, currency=found.currency)


def _bad(code: str, message: str) -> OuvrageError:
    return OuvrageError(code, message, hint="write an amount per kilowatt-hour: 0.25/kWh")
