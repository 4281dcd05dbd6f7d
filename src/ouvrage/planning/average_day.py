"""An average day of a machine in plain numbers, and every figure that a decision needs from it.

Decides the arithmetic of another machine, another price, own work and stopping, each from the amounts of
a day alone, so that the same formulas serve the record, each draw of the bootstrap, and a day imagined
otherwise. Floats: what is computed here is judged, never posted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ouvrage.base.time import HOUR
from ouvrage.books.costs import FIXED
from ouvrage.books.days import Day
from ouvrage.books.electricity import ENERGY, IDLE_ENERGY, LOAD_ENERGY
from ouvrage.planning.rules import Numbers

RUNNING = tuple(name for name in FIXED if name not in ("depreciation", "interest"))


class Average(NamedTuple):
    """Hours, money and kWh of a day. ``fees`` with failed work credited, ``power`` with cooling.

    ``line`` is bandwidth, ``running`` every cost that stopping would end: rent, support, parts, …
    """

    owned: float
    sold: float
    lost: float
    revenue: float
    gpu: float
    fees: float
    power: float
    line: float
    running: float
    depreciation: float
    interest: float
    tax: float
    kwh: float
    idle_kwh: float
    load_kwh: float


def average(day: Day) -> Average:
    """A day as plain numbers."""

    def amount(*names: str) -> float:
        return float(sum(day.lines.get(name, 0) for name in names))

    return Average(
        owned=(day.owned - day.states.get("unknown", 0)) / HOUR,
        sold=day.sold / HOUR,
        lost=(day.states.get("down", 0) + day.states.get("maintenance", 0)) / HOUR,
        revenue=amount(*(line for line in day.lines if line.startswith("revenue."))),
        gpu=amount("revenue.gpu"),
        fees=amount("cost.fee", "cost.failed"),
        power=amount("cost.electricity", "cost.cooling"),
        line=amount("cost.bandwidth"),
        running=amount(*(f"cost.{name}" for name in RUNNING)),
        depreciation=amount("cost.depreciation"),
        interest=amount("cost.interest"),
        tax=amount("cost.tax"),
        kwh=amount(ENERGY),
        idle_kwh=amount(IDLE_ENERGY),
        load_kwh=amount(LOAD_ENERGY),
    )


def utilisation(row: Sequence[float]) -> float:
    """Share of the time whose state is known that was sold."""
    day = Average(*row)
    return day.sold / day.owned if day.owned else 0.0


def rate(row: Sequence[float]) -> float:
    """What an hour sold earned."""
    day = Average(*row)
    return day.gpu / day.sold if day.sold else 0.0


def downtime(row: Sequence[float]) -> float:
    """Share of the time that was lost to faults and maintenance."""
    day = Average(*row)
    return day.lost / day.owned if day.owned else 0.0


def margin(row: Sequence[float], tax: float) -> float:
    """What a day left after every cost and tax."""
    return _taxed(_before_tax(Average(*row)), tax)


def _before_tax(day: Average) -> float:
    costs = day.fees + day.power + day.line + day.running + day.depreciation + day.interest
    return day.revenue - costs - day.tax


def _taxed(profit: float, tax: float) -> float:
    return profit - tax * max(0.0, profit)


def kwh_price(day: Average) -> float:
    """What a kilowatt-hour cost with cooling."""
    return day.power / day.kwh if day.kwh else 0.0


def working_power(day: Average) -> float:
    """What the power of an hour under load costs."""
    return day.load_kwh / day.owned * kwh_price(day) if day.owned else 0.0


def more_power(day: Average) -> float:
    """What an hour sold costs in power beyond idling."""
    more = max(0.0, day.load_kwh - day.idle_kwh)
    return more / day.owned * kwh_price(day) if day.owned else 0.0


def fee_share(day: Average) -> float:
    """What channels keep of what is earned."""
    return min(1.0, day.fees / day.revenue) if day.revenue else 0.0


def even(row: Sequence[float]) -> float:
    """The share sold at which nothing is lost, as the books reckon it; infinite where no hour pays."""
    day = Average(*row)
    moving = day.fees + max(0.0, day.power - day.idle_kwh * kwh_price(day))
    left = (day.revenue - moving) / day.sold if day.sold else 0.0
    costs = day.fees + day.power + day.line + day.running + day.depreciation + day.interest
    return (costs - moving) / left / day.owned if left > 0 and day.owned else float("inf")


def keep(row: Sequence[float], rules: Numbers) -> float:
    """What running it leaves a day against stopping: without what is spent already either way."""
    day = Average(*row)
    saved = day.depreciation * rules["resale_share"]
    return day.revenue - day.fees - day.power - day.line - day.running - saved


def grown(row: Sequence[float], rules: Numbers, price: float, opportunity: float) -> float:
    """What another machine like it would leave a day, all of it paid for with money that earns elsewhere."""
    day = Average(*row)
    sells = rules["second_sells"]
    power = day.power - (1 - sells) * day.sold * more_power(day)
    earned = (day.revenue - day.fees) * sells
    return earned - power - day.line - day.running - day.depreciation - price * opportunity / 365


def repriced(row: Sequence[float], step: float, elasticity: float) -> float:
    """What a price changed by a share would add a day.

    A free GPU waits (1 + step)^elasticity times as long; tenants stay as long as they did.
    """
    day = Average(*row)
    free = max(0.0, day.owned - day.lost - day.sold)
    there = day.owned - day.lost
    waits = free * (1 + step) ** elasticity
    sold = there * day.sold / (day.sold + waits) if day.sold + waits else 0.0
    price = day.revenue * (1 - fee_share(day)) / day.sold if day.sold else 0.0
    return sold * (price * (1 + step) - more_power(day)) - day.sold * (price - more_power(day))


def repurposed(row: Sequence[float], rules: Numbers, own_price: float) -> float:
    """What own work at an internal price would add a day over letting the GPUs."""
    day = Average(*row)
    hours = (day.owned - day.lost) * rules["own_hours"]
    own = hours * (own_price - more_power(day))
    let = day.revenue - day.fees - day.sold * more_power(day)
    return own - let


def dearer(row: Sequence[float], factor: float) -> Average:
    """The same day with every price asked times a factor."""
    day = Average(*row)
    return day._replace(revenue=day.revenue * factor, gpu=day.gpu * factor, fees=day.fees * factor)


def fuller(row: Sequence[float], factor: float) -> Average:
    """The same day with the hours sold times a factor, as far as there are any."""
    day = Average(*row)
    most = (day.owned - day.lost) / day.sold if day.sold else 1.0
    factor = min(factor, max(1.0, most))
    more = (factor - 1) * day.sold
    return dearer(row, factor)._replace(
        sold=day.sold + more, power=day.power + more * more_power(day)
    )
