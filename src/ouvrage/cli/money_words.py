"""How amounts, accounts and periods are put into words for a terminal.

Decides what a line shows of each; the figures are the server's own, exact, and are shortened for the eye alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ouvrage.base.time import utc_us
from ouvrage.pricing.words import rounded


def short(amount: str | None, currency: str = "") -> str:
    """An exact amount as far as an eye reads it: two places where there are no more digits before them."""
    if amount is None:
        return "not known"
    value = Fraction(amount)
    text = f"{float(value):.2f}" if abs(value) >= 1 or not value else rounded(value)
    return f"{text} {currency}".strip()


def metered(plain: bool) -> str:
    """The mark of the platform's own record."""
    return " (metered)" if plain else " ◐"


def day(text: str) -> str:
    """The day of a moment as the server writes it."""
    return text[:10]


def minute(text: str | None) -> str:
    """A moment to the minute, or a dash."""
    return "–" if text is None else f"{text[:16].replace('T', ' ')} UTC"


def left_words(account: Any) -> str:
    """How long what is left lasts."""
    if account["used_up_at"] is None:
        return "what runs now does not use it up"
    if utc_us(account["used_up_at"]) <= utc_us(account["as_of"]):
        return "nothing is left to spend: work is being stopped"
    burn = short(account["burn_per_hour"], account["currency"])
    return f"at {burn} an hour it lasts until {minute(account['used_up_at'])}"
