"""What a machine cost: every line, from bills where there are any, else from what was agreed.

Decides which statement counts for which time: a bill replaces the agreed monthly sum for the days
that it covers, and is itself spread evenly over them. What concerns a site or a node comes down to its
devices by the time that they stood there. What nobody stated is assumed to be nothing only where the
terms say so; a purchase price and a power that nobody knows stay unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

from ouvrage.base.time import HOUR
from ouvrage.books.cells import Amount, Cell, Grid, Sums, Weights, post
from ouvrage.books.depreciation import depreciation
from ouvrage.books.electricity import powered
from ouvrage.books.hours import NO_HOURS, hours_worked
from ouvrage.books.loans import interest_in
from ouvrage.books.money import converted
from ouvrage.books.period import Period, months_in
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.revenue import Told
from ouvrage.books.terms import stated, term
from ouvrage.model.assets import Asset, AssetRetired
from ouvrage.model.cash import CostBill, SupportTime

VARIABLE = ("electricity", "cooling", "fee", "bandwidth", "failed")
FIXED = (
    "standing",
    "parts",
    "support",
    "depreciation",
    "interest",
    "equipment_lease",
    "rent",
    "insurance",
    "stake",
    "other",
)
LINE_OF_BILL = {
    "cooling": "cooling",
    "bandwidth": "bandwidth",
    "rent": "rent",
    "insurance": "insurance",
    "platform-fee": "fee",
    "gas": "fee",
    "parts": "parts",
    "repair": "parts",
    "support": "support",
    "equipment-lease": "equipment_lease",
    "interest": "interest",
    "tax": "tax",
    "other": "other",
}
"""On which line a bill of each sort stands; one of electricity gives a price and no sum."""
_MONTHLY = {
    "rent": "rent",
    "bandwidth": "bandwidth",
    "insurance": "insurance",
    "equipment_lease": "equipment-lease",
}
"""Terms that are a sum a month, and the sort of bill that replaces each."""


Unknown = dict[str, dict[str, str]]
"""By line and device: why that cost is not known."""


def spent(record: OwnerRecord, grid: Grid, sums: Sums, told: Told) -> Unknown:
    """Post every cost of the period but the tax on profit; what is not known, and why."""
    electricity = powered(record, grid, sums, told)
    _bills(record, grid, sums, told)
    for name, sort in _MONTHLY.items():
        _monthly(record, grid, name, sort, sums)
    _support(record, grid, sums)
    _loans(record, grid, sums, told)
    _stakes(record, grid, sums)
    _payouts(record, grid, sums)
    found = {
        "electricity": electricity,
        "cooling": electricity,
        "depreciation": _depreciation(record, grid, sums, told),
    }
    return {line: devices for line, devices in found.items() if devices}


def _bills(record: OwnerRecord, grid: Grid, sums: Sums, told: Told) -> None:
    for each in record.bills:
        bill, period = each.value, grid.period
        line, us = LINE_OF_BILL.get(bill.sort), period.overlap(each.valid_from, each.end)
        at_once = each.valid_from == each.end and period.from_us <= each.valid_from < period.to_us
        if line is None or not (us or at_once) or not _concerns(record, grid, bill.about):
            continue
        money = converted(record, bill.amount, bill.currency, grid.currency, each.valid_from, each)
        told.add(money.note)
        share = Fraction(1) if at_once else Fraction(us, each.end - each.valid_from)
        amount = Amount(
            line=f"cost.{line}", value=money.amount * share, grade=money.grade,
            method="as billed, spread over the days of the bill", keys=money.keys,
        )  # fmt: skip
        about = bill.about if grid.holds(bill.about) else f"site:{grid.site}"
        only = bill.about[8:] if bill.about.startswith("channel:") else None
        from_us, to_us = max(each.valid_from, period.from_us), min(each.end, period.to_us)
        weights = _of_channel(sums, only) if only else []
        post(sums, amount, weights or grid.weights(about, from_us, max(to_us, from_us + 1)))


def _concerns(record: OwnerRecord, grid: Grid, about: str) -> bool:
    """Whether a cost is of this site: what stands at none, a channel's or a tenant's, is of the first."""
    first = record.sites[0].value.site if record.sites else ""
    nowhere = about.startswith(("channel:", "tenant:"))
    return grid.holds(about) or (nowhere and grid.site == first)


def _of_channel(sums: Sums, channel: str) -> list[tuple[Cell, int]]:
    """The cells that earned on a channel, by what they earned."""
    found: dict[Cell, int] = {}
    for (line, cell), held in sums.items():
        if cell.channel == channel and line.startswith("revenue.") and held.nano > 0:
            found[cell] = found.get(cell, 0) + held.nano
    return list(found.items())


def _billed(record: OwnerRecord, sort: str, about: str) -> list[Known[CostBill]]:
    return [each for each in record.bills if each.value.sort == sort and each.value.about == about]


def _monthly(record: OwnerRecord, grid: Grid, name: str, sort: str, sums: Sums) -> None:
    """A sum a month of the site or of a node, for the days that no bill covers."""
    for about in (f"site:{grid.site}", *(f"node:{node}" for node in grid.nodes)):
        bills = _billed(record, sort, about)
        for month in months_in(grid.period.from_us, grid.period.to_us, grid.period.zone):
            for from_us, to_us, held in _pieces(record, about, name, month, grid.period):
                billed = sum(min(each.end, to_us) - max(each.valid_from, from_us)
                             for each in bills if each.meets(from_us, to_us))  # fmt: skip
                amount = Amount(
                    line=f"cost.{name}",
                    value=held.value * Fraction(max(0, to_us - from_us - billed), month.us),
                    grade=held.grade,
                    method=f"the sum a month x the share of the month ({held.said_by or 'as stated'})",
                    keys=held.keys,
                )
                if amount.value:
                    post(sums, amount, grid.weights(about, from_us, to_us))


def _pieces(
    record: OwnerRecord, about: str, name: str, month: Period, period: Period
) -> Iterable[tuple[int, int, Known[Fraction]]]:
    """A term about this very object over the part of a month that lies in a period."""
    begins, ends = max(month.from_us, period.from_us), min(month.to_us, period.to_us)
    cuts = {begins, ends}
    for each in record.terms.get((about, name), ()):
        cuts |= {at for at in (each.valid_from, each.end) if begins < at < ends}
    ordered = sorted(cuts)
    for from_us, to_us in pairwise(ordered):
        held = stated(record, about, name, from_us)
        if held is not None:
            yield from_us, to_us, held


def _support(record: OwnerRecord, grid: Grid, sums: Sums) -> None:
    """Logged time at the price of an hour; a stated number of hours in months without any."""
    logged: set[str] = set()
    for each in record.support:
        if not grid.period.from_us <= each.valid_from < grid.period.to_us:
            continue
        if not _concerns(record, grid, each.value.about):
            continue
        about = each.value.about if grid.holds(each.value.about) else f"site:{grid.site}"
        price = term(record, about, "support_price", each.valid_from)
        logged.add(_month(each.valid_from, grid.period))
        if price is not None and price.value:
            amount = Amount(
                line="cost.support", value=price.value * Fraction(each.value.duration_us, HOUR),
                grade=max(each.grade, price.grade), method="logged time x the price of an hour",
                keys=(*each.keys, *price.keys),
            )  # fmt: skip
            post(sums, amount, _helped(grid, about, each))
    _usual_support(record, grid, logged, sums)


def _helped(grid: Grid, about: str, each: Known[SupportTime]) -> Weights:
    """The cells of the tenant for whom the time was, where it had anything then; else of the object."""
    tenant, period = each.value.tenant, grid.period
    of_tenant = [
        (cell, us)
        for cell, us in grid.weights(about, period.from_us, period.to_us)
        if tenant is not None and cell.tenant == tenant
    ]
    return of_tenant or grid.weights(about, each.valid_from, each.valid_from + 1)


def _month(at_us: int, period: Period) -> str:
    return next(months_in(at_us, at_us + 1, period.zone)).name


def _usual_support(record: OwnerRecord, grid: Grid, logged: set[str], sums: Sums) -> None:
    about = f"site:{grid.site}"
    for month in months_in(grid.period.from_us, grid.period.to_us, grid.period.zone):
        begins = max(month.from_us, grid.period.from_us)
        hours, price = (
            term(record, about, name, begins) for name in ("support_hours_month", "support_price")
        )
        if month.name in logged or hours is None or price is None:
            continue
        share = Fraction(grid.period.overlap(month.from_us, month.to_us), month.us)
        amount = Amount(
            line="cost.support", value=hours.value * price.value * share,
            grade=max(hours.grade, price.grade), method="hours a month x the price of an hour",
            keys=(*hours.keys, *price.keys),
        )  # fmt: skip
        if amount.value:
            post(sums, amount, grid.weights(about, begins, min(month.to_us, grid.period.to_us)))


def _loans(record: OwnerRecord, grid: Grid, sums: Sums, told: Told) -> None:
    for each in record.loans:
        loan = each.value
        if not grid.holds(loan.about):
            continue
        interest = interest_in(each, grid.period)
        money = converted(
            record, loan.principal, loan.currency, grid.currency, grid.period.from_us, each
        )
        told.add(money.note)
        amount = Amount(
            line="cost.interest", value=interest * money.amount / Fraction(loan.principal),
            grade=money.grade, method="interest of the loan's schedule, without what is paid back",
            keys=money.keys,
        )  # fmt: skip
        if amount.value:
            post(sums, amount, grid.weights(loan.about, grid.period.from_us, grid.period.to_us))


def _stakes(record: OwnerRecord, grid: Grid, sums: Sums) -> None:
    """What money tied up in stakes would have earned elsewhere."""
    if not record.sites or record.sites[0].value.site != grid.site:
        return
    for about, name in record.terms:
        held = stated(record, about, name, grid.period.from_us) if name == "stake" else None
        rate = term(record, f"site:{grid.site}", "opportunity_rate", grid.period.from_us)
        if held is None or rate is None:
            continue
        year = 365 * 24 * HOUR
        amount = Amount(
            line="cost.stake", value=held.value * rate.value * Fraction(grid.period.us, year),
            grade=max(held.grade, rate.grade), method="the stake x what it would earn elsewhere",
            keys=(*held.keys, *rate.keys),
        )  # fmt: skip
        weights = _of_channel(sums, about.partition(":")[2])
        post(
            sums,
            amount,
            weights or grid.weights(f"site:{grid.site}", grid.period.from_us, grid.period.to_us),
        )


def _payouts(record: OwnerRecord, grid: Grid, sums: Sums) -> None:
    """The charge for each payout that a channel announced in the period."""
    if not record.sites or record.sites[0].value.site != grid.site:
        return
    for each in record.invoices:
        at_us, channel = each.value.issued_us, each.value.channel
        if not grid.period.from_us <= at_us < grid.period.to_us:
            continue
        charge = grid.terms.at(f"channel:{channel}", "payout_fee", at_us)
        if charge is not None and charge.value:
            amount = Amount(
                line="cost.fee", value=charge.value, grade=max(charge.grade, each.grade),
                method=f"a charge for each payout ({charge.said_by or 'as stated'})",
                keys=(*charge.keys, *each.keys),
            )  # fmt: skip
            weights = _of_channel(sums, channel)
            post(sums, amount, weights or grid.weights(f"site:{grid.site}", at_us, at_us + 1))


def _depreciation(record: OwnerRecord, grid: Grid, sums: Sums, told: Told) -> dict[str, str]:
    """What the parts lost; unknown where a device stands for which no price is recorded."""
    retired = {each.value.asset: each for each in record.retirements}
    priced: set[str] = set()
    for each in record.assets:
        if grid.holds(each.value.about):
            priced.add(each.value.about)
            _part_loses(record, grid, each, retired.get(each.value.asset), sums, told)
    if f"site:{grid.site}" in priced:
        return {}
    return {
        device: f"no price of purchase is recorded for {device} or {node}"
        for node, devices in grid.stretches.items()
        for device in devices
        if not {f"node:{node}", f"device:{device}"} & priced
    }


_LOSES = {
    "straight-line": "price less residual value over the part's life",
    "declining": "a share of what the part is still worth each year",
    "hours": "price less residual value over the part's hours of work",
    "retired": "what the part lost until it left use, and then less than it was worth",
}


def _part_loses(
    record: OwnerRecord,
    grid: Grid,
    each: Known[Asset],
    retired: Known[AssetRetired] | None,
    sums: Sums,
    told: Told,
) -> None:
    asset = each.value
    worked = hours_worked(record, grid, each) if asset.method == "hours" else NO_HOURS
    lost = depreciation(each, retired, grid.period, worked, grid.period.zone)
    if not lost:
        return
    money = converted(record, asset.price, asset.currency, grid.currency, each.valid_from, each)
    told.add(money.note)
    amount = Amount(
        line="cost.depreciation", value=lost * money.amount / Fraction(asset.price),
        grade=money.grade, method=_LOSES[asset.method if retired is None else "retired"],
        keys=money.keys,
    )  # fmt: skip
    from_us = max(each.valid_from, grid.period.from_us)
    to_us = min(grid.period.to_us, retired.valid_from if retired else grid.period.to_us)
    post(sums, amount, grid.weights(asset.about, from_us, max(to_us, from_us + 1)))
