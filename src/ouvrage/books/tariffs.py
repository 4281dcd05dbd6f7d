"""What a kilowatt-hour costs at a site at a moment.

The flat price that is stated, or assumed, for now.
"""

from __future__ import annotations

from fractions import Fraction

from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.terms import term


def price_at(record: OwnerRecord, site: str, at_us: int) -> Known[Fraction] | None:
    """The price of a kilowatt-hour in the site's currency; None where nobody can say."""
    return term(record, f"site:{site}", "electricity", at_us)
