"""Which channel pays: what each leaves for an hour of a GPU that it took, let or waited for.

Decides that the free time before a lease counts against the channel that ended it, since a channel that
pays well and comes seldom keeps a GPU waiting; that fees and power are its own; and that money paid late
costs what it would have earned meanwhile. Time lost to faults belongs to no channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ouvrage.base.numbers import NANO
from ouvrage.base.time import DAY, HOUR
from ouvrage.books.account import Account
from ouvrage.books.calendar import SOLD, Stretch
from ouvrage.books.cells import UNNAMED
from ouvrage.books.electricity import ENERGY, IDLE_ENERGY
from ouvrage.books.paying import Match
from ouvrage.books.reconcile_bank import banked
from ouvrage.books.record import OwnerRecord
from ouvrage.books.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPay:
    """A channel's hours let, the free hours before its leases, and its money in the books' currency.

    ``power`` is of both; ``delay_days`` from earning to payment on average, None where no payment is
    known; ``late`` what the money would have earned meanwhile.
    """

    channel: str
    sold_h: float
    waited_h: float
    revenue: float
    fees: float
    power: float
    delay_days: float | None
    late: float

    @property
    def per_owned_hour(self) -> float:
        """What it left for each hour that it took."""
        hours = self.sold_h + self.waited_h
        return (self.revenue - self.fees - self.power - self.late) / hours if hours else 0.0


def channels_of(made: Account, scope: Scope, opportunity: float) -> tuple[ChannelPay, ...]:
    """What each channel paid over an account's period in a scope, the best first."""
    models, matches = made.grid.models, banked(made.record).matches
    sums: dict[str, dict[str, float]] = {}
    idle = kwh = power = 0.0
    for (line, cell), held in made.sums.items():
        if scope.holds(cell.node, cell.device, models):
            idle += held.nano / NANO if line == IDLE_ENERGY else 0
            kwh += held.nano / NANO if line == ENERGY else 0
            power += held.nano / NANO if line in ("cost.electricity", "cost.cooling") else 0
            if cell.channel is not None:
                lines = sums.setdefault(cell.channel, {})
                lines[line] = lines.get(line, 0.0) + held.nano / NANO
    waited, sold = _waited(made, scope)
    hours = (
        sum(each.us for each in made.grid.all() if scope.holds(each.node, each.device, models))
        / HOUR
    )
    idling = idle / hours * power / kwh if hours and kwh else 0.0
    found = [
        _paid(
            name,
            lines,
            (sold.get(name, 0.0), waited.get(name, 0.0)),
            idling,
            opportunity,
            delay_days(made.record, name, matches, made.grid.period.to_us),
        )
        for name, lines in sums.items()
        if any(line.startswith("revenue.") for line in lines)
    ]
    return tuple(sorted(found, key=lambda each: (-each.per_owned_hour, each.channel)))


def _paid(
    name: str,
    lines: dict[str, float],
    hours: tuple[float, float],
    idling: float,
    opportunity: float,
    delay: float | None,
) -> ChannelPay:
    revenue = sum(amount for line, amount in lines.items() if line.startswith("revenue."))
    return ChannelPay(
        channel=name,
        sold_h=hours[0],
        waited_h=hours[1],
        revenue=revenue,
        fees=lines.get("cost.fee", 0.0) + lines.get("cost.failed", 0.0),
        power=lines.get("cost.electricity", 0.0) + lines.get("cost.cooling", 0.0) + hours[1] * idling,
        delay_days=delay,
        late=revenue * opportunity * (delay or 0.0) / 365,
    )  # fmt: skip


def _waited(made: Account, scope: Scope) -> tuple[dict[str, float], dict[str, float]]:
    """By channel: the free hours before its leases, and the hours let."""
    waited: dict[str, float] = {}
    sold: dict[str, float] = {}
    for name, devices in made.grid.stretches.items():
        for device, stretches in devices.items():
            if scope.holds(name, device, made.grid.models):
                _along(stretches, waited, sold)
    return waited, sold


def _along(stretches: Iterable[Stretch], waited: dict[str, float], sold: dict[str, float]) -> None:
    """One device through its time: free hours go to the channel that ended them, the last to none."""
    free = 0
    for stretch in stretches:
        if stretch.state in SOLD:
            channel = stretch.channel or UNNAMED
            sold[channel] = sold.get(channel, 0.0) + stretch.us / HOUR
            waited[channel] = waited.get(channel, 0.0) + free / HOUR
            free = 0
        elif stretch.state == "free":
            free += stretch.us


def delay_days(
    record: OwnerRecord, channel: str, matches: Sequence[Match], until_us: int
) -> float | None:
    """Days from the middle of an invoice's time to its payment, weighed by amount.

    By what reconciling is sure of, before a moment. None where no payment is known.
    """
    middles = {
        each.key: (each.valid_from + each.end) / 2
        for each in record.invoices
        if each.value.channel == channel
    }
    weights = total = 0.0
    for match in matches:
        for share in match.shares:
            middle = middles.get(share.claim.key)
            if middle is not None and share.line.day_us < until_us:
                amount = abs(float(share.amount))
                weights += amount
                total += amount * (share.line.day_us - middle) / DAY
    return total / weights if weights else None
