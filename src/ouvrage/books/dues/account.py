"""A tenant's account at a moment: paid, charged, running, what is left, and when that will be used up.

Decides that the balance is what was paid less what was charged, less what runs and is not charged yet, less tax and
rounding of the invoices, and that what may still be spent is the balance, less the tax that the next invoice will add,
and the credit that the owner grants. The moment at which it is used up is found by the same costs that the bill will show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ouvrage.base.time import DAY, HOUR, SECOND, utc_text
from ouvrage.books.dues.charging import Charged, charged_nano, of_cost
from ouvrage.books.dues.lease import Lease, amount_nano, amount_text, burn_per_hour, cost_until
from ouvrage.model.dues import Payment, TenantInvoice
from ouvrage.model.tenancy import Organisation

HORIZON = 400 * DAY
"""How far ahead the end of a balance is looked for; what lasts longer has no end that matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An organisation's money in nano-units of its currency.

    ``tax`` and ``rounding`` are those of its invoices; ``tax_to_come`` that on what is not invoiced yet,
    None where the owner states no rate. ``burn`` is what the next hour costs if all goes on, ``used_up_us``
    when nothing may be spent any more at that rate (None: not within ``HORIZON``).
    """

    org: str
    name: str
    currency: str
    billing: str
    limit: int
    paid: int
    charged: int
    running: int
    tax: int
    rounding: int
    tax_to_come: int | None
    burn: int
    used_up_us: int | None
    at_us: int

    @property
    def balance(self) -> int:
        """Paid less owed, the running cost included."""
        return self.paid - self.charged - self.running - self.tax - self.rounding

    @property
    def left(self) -> int:
        """What may still be spent: zero or less stops work."""
        return self.balance - (self.tax_to_come or 0) + self.limit

    def looking_ahead(self, going: Sequence[Lease], tax_rate: Fraction | None) -> Account:
        """The same with the moment at which the leases that run will have used up what is left, tax included."""
        left = int(self.left / (1 + (tax_rate or Fraction(0))))
        return replace(self, used_up_us=used_up(going, left, self.at_us))

    def as_json(self) -> dict[str, Any]:
        """What ``--json`` and the API print of it."""
        amounts = {
            "paid": self.paid, "charged": self.charged, "running": self.running, "tax": self.tax,
            "rounding": self.rounding, "balance": self.balance, "credit_limit": self.limit,
            "left": self.left, "burn_per_hour": self.burn,
        }  # fmt: skip
        to_come = None if self.tax_to_come is None else amount_text(self.tax_to_come)
        used_up = None if self.used_up_us is None else utc_text(self.used_up_us)
        return {
            "org": self.org, "name": self.name, "currency": self.currency, "billing": self.billing,
            **{name: amount_text(value) for name, value in amounts.items()},
            "tax_to_come": to_come, "used_up_at": used_up, "as_of": utc_text(self.at_us),
        }  # fmt: skip


def account_of(
    organisation: Organisation,
    payments: Iterable[Payment],
    charges: Sequence[Charged],
    invoices: Sequence[TenantInvoice],
    leases: Sequence[Lease],
    at_us: int,
    tax_rate: Fraction | None,
) -> Account:
    """The account of an organisation; everything given is its own, ``leases`` those not charged whole yet."""
    paid = sum(amount_nano(each.amount) for each in payments)
    charged, running = charged_nano(charges), running_nano(leases, charges, at_us)
    tax = sum(amount_nano(each.tax) for each in invoices)
    invoiced = {name for each in invoices for name in each.charges}
    waiting = charged_nano(each for each in charges if each.value.charge not in invoiced) + running
    to_come = None if tax_rate is None else round(waiting * tax_rate)
    limit = amount_nano(organisation.credit_limit) if organisation.billing == "credit" else 0
    going = [each for each in leases if each.ended is None]
    found = Account(
        org=organisation.org, name=organisation.name, currency=organisation.currency,
        billing=organisation.billing, limit=limit, paid=paid, charged=charged, running=running, tax=tax,
        rounding=sum(amount_nano(each.rounding) for each in invoices), tax_to_come=to_come,
        burn=burn_per_hour(going, at_us, HOUR), used_up_us=None, at_us=at_us,
    )  # fmt: skip
    return found.looking_ahead(going, tax_rate)


def running_nano(leases: Iterable[Lease], charges: Iterable[Charged], at_us: int) -> int:
    """What leases cost until a moment beyond what was charged of them."""
    by_lease: dict[str, list[Charged]] = {}
    for each in of_cost(charges):
        by_lease.setdefault(each.value.lease, []).append(each)
    return sum(
        cost_until(each, at_us) - charged_nano(by_lease.get(each.lease, ())) for each in leases
    )


def used_up(leases: Sequence[Lease], left: int, at_us: int) -> int | None:
    """The first whole second after ``at_us`` at which running leases have cost ``left`` more.

    ``at_us`` itself where nothing is left; None where they never will within ``HORIZON``.
    """
    if left <= 0:
        return at_us
    if not leases:
        return None
    spent = _spending(leases, at_us)
    good, reach = 0, HOUR
    while spent(reach) < left:
        good, reach = reach, 2 * reach
        if reach > HORIZON:
            return None
    while reach - good > SECOND:
        middle = (good + reach) // 2 // SECOND * SECOND
        middle = middle if middle > good else good + SECOND
        good, reach = (middle, reach) if spent(middle) < left else (good, middle)
    return at_us + reach


def _spending(leases: Sequence[Lease], at_us: int) -> Callable[[int], int]:
    now = sum(cost_until(each, at_us) for each in leases)
    return lambda later: sum(cost_until(each, at_us + later) for each in leases) - now
