"""A made-up owner's year as facts: what a real one's feeds, meters, bills and bank would have stated.

Decides which statements a world leaves behind, each of grade ``simulated``, so that nothing made from
them can pass for a record. Whether and to whom a GPU is let is drawn hour by hour from a seed; the same
seed gives the same facts, down to their ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.time import DAY, HOUR, MINUTE
from ouvrage.books.period import day_start
from ouvrage.ledger.stated import Stated
from ouvrage.model.assets import Asset, AssetRetired, Loan
from ouvrage.model.cash import BankLine, CostBill, SupportTime
from ouvrage.model.earnings import ChannelInvoice, Earning
from ouvrage.model.meters import EnergyRead
from ouvrage.model.occupancy import DeviceState
from ouvrage.model.sites import DevicePlaced, Node, Site, Term
from ouvrage.model.tariffs import Tariff, TariffBand
from ouvrage.planning.chance import Chance
from ouvrage.planning.simulated_world import (
    ANCHOR,
    DAYS,
    DOWN,
    FREE,
    GPUS,
    MAINTENANCE,
    MARKET,
    OWN,
    SMALL_TENANTS,
    SUMMER,
    ZONE,
    World,
    arrival,
    date_of,
    hours_of,
    maintenance,
    start_of,
)

SITE, NODE, MODEL, CURRENCY = "demo-garage", "demo-1", "RTX 4090", "EUR"
SAID_BY = "the simulator of ouvrage demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What one GPU was doing for some hours; ``luck`` is the price paid in thousandths of the usual one."""

    state: str
    cause: str
    channel: str | None = None
    tenant: str | None = None
    lease: str | None = None
    luck: int = 1000


@dataclass(slots=True)
class _Year:
    """What was drawn: stretches by GPU, earnings by day, channel and tenant, hours let by day.

    Earnings are millionths of the currency with the hours for which they were paid.
    """

    first: int
    after: int
    stretches: list[tuple[int, int, int, Hold]] = field(default_factory=list)
    earned: dict[tuple[int, str, str | None], tuple[int, int]] = field(default_factory=dict)
    let_h: dict[int, int] = field(default_factory=dict)


def simulated_owner(world: World, seed: int, *, first: int = 0, days: int = DAYS) -> list[Stated]:
    """Every statement of a year of this world up to day ``days``, as this seed draws it.

    What happens is drawn from day ``first`` on; what was bought and agreed is there from the beginning.
    """
    chance = Chance(seed)
    year = _drawn(world, chance, first, days)
    return [
        *_place(world),
        *_terms(world),
        *_bought(world, days),
        *_states(world, year),
        *_earnings(world, year),
        *_payouts(world, year),
        *_energy(world, year, chance),
        *_running(world, year),
        *_support(world, chance, year),
    ]


def gpu_name(gpu: int, *, second: bool = False) -> str:
    """A GPU's name; the one that replaced a broken one has its own."""
    return f"{NODE}-gpu{gpu}{'b' if second else ''}"


def _stated(
    natural: str, value: Any, subject: str, from_us: int, to_us: int | None = None
) -> Stated:
    return Stated(
        natural=f"demo/{natural}",
        value=value,
        subject=subject,
        valid_from=from_us,
        valid_to=to_us,
        grade=Grade.SIMULATED,
    )


def _drawn(world: World, chance: Chance, first: int, days: int) -> _Year:
    year = _Year(first=first, after=days)
    for gpu in range(GPUS):
        hold, since = Hold(state="", cause=""), start_of(first)
        for day in range(first, days):
            chances, prices = arrival(world, day), _prices(world, day)
            begins = start_of(day)
            for hour in range(hours_of(day)):
                at = begins + hour * HOUR
                after = _next(world, chance, gpu, (day, hour), chances, hold)
                if after is not hold:
                    if hold.state:
                        year.stretches.append((gpu, since, at, hold))
                    hold, since = after, at
                if hold.channel is not None:
                    _let(year, day, hold, prices)
        year.stretches.append((gpu, since, start_of(days), hold))
    return year


def _prices(world: World, day: int) -> tuple[int, int, int]:
    """What an hour costs on a day on the marketplace, for own tenants, for the long one; in millionths."""
    asked = (world.ask_on(day) * world.discount, world.own_asked, world.anchor_price)
    market, own, anchor = (round(price * 1_000_000) for price in asked)
    return market, own, anchor


_BROKEN = Hold(state=DOWN, cause="xid 79")
_UPDATES = Hold(state=MAINTENANCE, cause="updates")
_FREE = Hold(state=FREE, cause="no demand")


def _next(
    world: World,
    chance: Chance,
    gpu: int,
    at: tuple[int, int],
    chances: tuple[float, float],
    hold: Hold,
) -> Hold:
    """What the GPU does in this hour, given what it did in the one before."""
    day, hour = at
    if world.broken(gpu, day):
        return _BROKEN
    if hour in maintenance(day):
        return _UPDATES
    if world.anchored(gpu, day):
        if hold.tenant == ANCHOR:
            return hold
        return _lease(OWN, ANCHOR, f"{ANCHOR}-{gpu}", 1000)
    if hold.channel is not None and hold.tenant != ANCHOR:
        return _FREE if chance.unit() < 1.0 / world.lease_h else hold
    drawn = chance.unit() if hold is _FREE or not hold.state or hold.channel is None else 1.0
    if drawn < chances[0]:
        return _lease(MARKET, None, f"v{gpu}-{day}-{hour}", 920 + chance.below(161))
    if drawn < sum(chances):
        tenant = SMALL_TENANTS[chance.below(len(SMALL_TENANTS))]
        return _lease(OWN, tenant, f"o{gpu}-{day}-{hour}", 1000)
    return _FREE


def _lease(channel: str, tenant: str | None, lease: str, luck: int) -> Hold:
    return Hold(
        state="working", cause="leased", channel=channel, tenant=tenant, lease=lease, luck=luck
    )


def _let(year: _Year, day: int, hold: Hold, prices: tuple[int, int, int]) -> None:
    market, own, anchor = prices
    if hold.channel == MARKET:
        price = market * hold.luck // 1000
    else:
        price = anchor if hold.tenant == ANCHOR else own
    key = (day, hold.channel or "", hold.tenant)
    amount, hours = year.earned.get(key, (0, 0))
    year.earned[key] = (amount + price, hours + 1)
    year.let_h[day] = year.let_h.get(day, 0) + 1


def _place(world: World) -> Iterator[Stated]:
    site, first = f"site:{SITE}", start_of(0)
    yield _stated("site", Site(site=SITE, currency=CURRENCY, zone=ZONE), site, first)
    yield _stated("node", Node(node=NODE, site=SITE), f"node:{NODE}", first)
    replaced = start_of(world.fail_day + world.down_days)
    for gpu in range(GPUS):
        ends = replaced if gpu == world.fails else None
        yield _placed(gpu, gpu_name(gpu), first, ends)
        if ends is not None:
            yield _placed(gpu, gpu_name(gpu, second=True), ends, None)
    bands = tuple(
        TariffBand(name=name, months=months, weekdays=tuple(range(7)), hours=tuple(range(24)),
                   per_kwh=decimal_text(price), export_per_kwh=None)
        for name, months, price in (
            ("winter", tuple(m for m in range(1, 13) if m not in SUMMER), world.kwh),
            ("summer", SUMMER, world.summer_kwh),
        )
    )  # fmt: skip
    sheet = Tariff(
        name="a year with a dear summer", site=SITE, currency=CURRENCY, zone=ZONE, bands=bands, tiers=(),
        standing_per_day=None, standing_per_month=None, demand_per_kw_month=None, tax_included=True,
    )  # fmt: skip
    yield _stated("tariff", sheet, site, first)


def _placed(gpu: int, name: str, from_us: int, to_us: int | None) -> Stated:
    placed = DevicePlaced(device=name, node=NODE, model=MODEL, slot=gpu)
    return _stated(f"device/{name}", placed, f"device:{name}", from_us, to_us)


def _terms(world: World) -> Iterator[Stated]:
    site, node = f"site:{SITE}", f"node:{NODE}"
    stated = (
        (site, "pue", world.pue, "1"), (site, "rent", world.rent, "EUR/month"),
        (site, "bandwidth", world.bandwidth, "EUR/month"),
        (site, "insurance", world.insurance, "EUR/month"), (site, "tax", world.tax, "1"),
        (site, "support_price", world.support_price, "EUR/h"),
        (site, "support_hours_month", Fraction(0), "h"),
        (site, "opportunity_rate", world.opportunity, "1"),
        (site, "own_use_price", world.own_use_price, "EUR/h"),
        (node, "idle_power_w", Fraction(world.idle_w), "W"),
        (node, "load_power_w", Fraction(world.load_w), "W"),
        (f"channel:{MARKET}", "fee", world.market_fee, "1"),
        (f"channel:{OWN}", "fee", world.own_fee, "1"),
        (f"channel:{MARKET}", "payout_fee", Fraction(0), "EUR"),
        (f"channel:{OWN}", "payout_fee", Fraction(0), "EUR"),
    )  # fmt: skip
    for about, name, value, unit in stated:
        yield _term(about, name, value, unit, start_of(0))
    for name, month, price in (
        ("winter", 1, world.kwh), ("summer", SUMMER[0], world.summer_kwh),
        ("autumn", SUMMER[-1] + 1, world.kwh),
    ):  # fmt: skip
        begins = day_start(date_of(0).replace(month=month), ZONE)
        yield _term(site, "electricity", price, "EUR/kWh", begins, f"/{name}")


def _term(
    about: str, name: str, value: Fraction, unit: str, from_us: int, which: str = ""
) -> Stated:
    term = Term(about=about, name=name, value=decimal_text(value), unit=unit, said_by=SAID_BY)
    return _stated(f"term/{about}/{name}{which}", term, about, from_us)


def _bought(world: World, days: int) -> Iterator[Stated]:
    first = start_of(0)
    yield _part(
        world, "machine", f"node:{NODE}", "machine without GPUs", world.machine_price, first
    )
    for gpu in range(GPUS):
        name = gpu_name(gpu)
        yield _part(world, name, f"device:{name}", MODEL, world.gpu_price, first)
    loan = Loan(
        loan="demo-loan", about=f"node:{NODE}", principal=decimal_text(world.borrowed),
        currency=CURRENCY, rate_per_year=decimal_text(world.loan_rate), months=36, shape="annuity",
    )  # fmt: skip
    yield _stated("loan", loan, f"node:{NODE}", first)
    replaced = world.fail_day + world.down_days
    if replaced < days:
        old, new = gpu_name(world.fails), gpu_name(world.fails, second=True)
        gone = AssetRetired(asset=old, proceeds="0", currency=CURRENCY, why="broken: xid 79")
        yield _stated(f"retired/{old}", gone, f"device:{old}", start_of(replaced))
        yield _part(world, new, f"device:{new}", MODEL, world.gpu_price, start_of(replaced))


def _part(world: World, name: str, about: str, what: str, price: Fraction, from_us: int) -> Stated:
    asset = Asset(
        asset=name, about=about, what=what, price=decimal_text(price), currency=CURRENCY,
        method="straight-line", life_months=world.life_months, life_hours=None, declining_share=None,
        residual="0", warranty_until=None,
    )  # fmt: skip
    return _stated(f"asset/{name}", asset, about, from_us)


def _states(world: World, year: _Year) -> Iterator[Stated]:
    replaced = start_of(world.fail_day + world.down_days)
    for gpu, begins, ends, hold in year.stretches:
        name = gpu_name(gpu, second=gpu == world.fails and begins >= replaced)
        state = DeviceState(
            device=name, node=None, count=None, state=hold.state, cause=hold.cause,
            channel=hold.channel, tenant=hold.tenant, lease=hold.lease,
        )  # fmt: skip
        yield _stated(f"state/{gpu}/{begins}", state, f"device:{name}", begins, ends)


def _earnings(world: World, year: _Year) -> Iterator[Stated]:
    for (day, channel, tenant), (amount, hours) in sorted(
        year.earned.items(), key=lambda item: (item[0][0], item[0][1], item[0][2] or "")
    ):
        asked = world.ask_on(day) if channel == MARKET else world.own_asked
        earning = Earning(
            channel=channel, about=f"node:{NODE}", component="gpu", amount=fixed(Fraction(amount, 1_000_000), 6),
            currency=CURRENCY, fee=None, sold_us=hours * HOUR, list_price=decimal_text(asked),
            tenant=tenant, document=None,
        )  # fmt: skip
        natural = f"earning/{channel}/{tenant or ''}/{date_of(day)}"
        yield _stated(natural, earning, f"channel:{channel}", start_of(day), start_of(day + 1))


def _payouts(world: World, year: _Year) -> Iterator[Stated]:
    """The marketplace invoices by the week and pays nine days later; own tenants by 28 days, 20 later."""
    for channel, length, delay, fee in (
        (MARKET, 7, 9, world.market_fee), (OWN, 28, 20, world.own_fee),
    ):  # fmt: skip
        daily: dict[int, int] = {}
        for (day, through, _), (amount, _) in year.earned.items():
            if through == channel:
                daily[day] = daily.get(day, 0) + amount
        for first in range(year.first, year.after - length + 1, length):
            millionths = sum(daily.get(day, 0) for day in range(first, first + length))
            gross = Fraction(millionths, 1_000_000)
            if gross:
                number = f"{channel.upper()}-{date_of(first)}"
                after = first + length
                yield _invoice(channel, number, gross, fee, first, after)
                if after + delay < year.after:
                    net = fixed(Fraction(fixed(gross, 2)) - Fraction(fixed(gross * fee, 2)), 2)
                    yield _bank(number, net, channel, f"payout {number}", after + delay)


def _invoice(
    channel: str, number: str, gross: Fraction, fee: Fraction, first: int, after: int
) -> Stated:
    total, kept = fixed(gross, 2), fixed(gross * fee, 2)
    invoice = ChannelInvoice(
        channel=channel, number=number, issued_us=start_of(after), gross=total, fee=kept, tax=None,
        net=fixed(Fraction(total) - Fraction(kept), 2), currency=CURRENCY,
    )  # fmt: skip
    return _stated(
        f"invoice/{number}", invoice, f"channel:{channel}", start_of(first), start_of(after)
    )


def _bank(reference: str, amount: str, counterparty: str, text: str, day: int) -> Stated:
    line = BankLine(
        account="demo-account", reference=reference, amount=amount, currency=CURRENCY,
        counterparty=counterparty, text=text,
    )  # fmt: skip
    return _stated(
        f"bank/{reference}", line, "account:demo-account", start_of(day), start_of(day + 1)
    )


def _energy(world: World, year: _Year, chance: Chance) -> Iterator[Stated]:
    """A meter at the wall before the machine, a reading a day, each within one per cent, and the bills."""
    joules: dict[int, int] = {}
    for day in range(year.first, year.after):
        let, owned = year.let_h.get(day, 0), hours_of(day) * GPUS
        watt_hours = let * world.load_w + (owned - let) * world.idle_w
        joules[day] = round(watt_hours * 3600 * chance.between(0.99, 1.01))
        read = EnergyRead(
            meter="demo-plug", about=f"node:{NODE}", scope="wall", energy_j=joules[day],
            method="counter", covered_us=hours_of(day) * HOUR,
        )  # fmt: skip
        yield _stated(
            f"energy/{date_of(day)}", read, f"node:{NODE}", start_of(day), start_of(day + 1)
        )
    for first, after in _months(year):
        used = round(sum(joules[day] for day in range(first, after)) * world.pue)
        price = world.kwh_on(date_of(first).month)
        yield from _billed("electricity", used * price / 3_600_000, (first, after), year, used)


def _running(world: World, year: _Year) -> Iterator[Stated]:
    """The bills of each whole month for what the terms agree on."""
    for month in _months(year):
        for sort, amount in (
            ("rent", world.rent), ("bandwidth", world.bandwidth), ("insurance", world.insurance),
        ):  # fmt: skip
            yield from _billed(sort, amount, month, year)


def _billed(
    sort: str, amount: Fraction, month: tuple[int, int], year: _Year, joules: int | None = None
) -> Iterator[Stated]:
    """A bill of a month, and what leaves the bank for it two weeks later."""
    first, after = month
    number, site = f"{sort}-{date_of(first):%Y-%m}", f"site:{SITE}"
    bill = CostBill(
        number=number, about=site, sort=sort, what=sort, amount=fixed(amount, 2), tax=None,
        currency=CURRENCY, energy_j=joules, due=str(date_of(after + 14)),
    )  # fmt: skip
    yield _stated(f"bill/{number}", bill, site, start_of(first), start_of(after))
    if after + 14 < year.after:
        yield _bank(number, fixed(-amount, 2), sort, f"bill {number}", after + 14)


def _months(year: _Year) -> Iterator[tuple[int, int]]:
    """The whole months of what was drawn, as days of the year."""
    first: int | None = None
    for day in range(year.first, year.after + 1):
        if date_of(day).day == 1:
            if first is not None:
                yield first, day
            first = day


def _support(world: World, chance: Chance, year: _Year) -> Iterator[Stated]:
    """Support as it comes: at chance moments, each time for as long as it takes."""
    at, number = float(year.first), 0
    while True:
        at += chance.exponential(1.0 / world.support_per_day)
        if at >= year.after:
            return
        minutes = max(1, round(chance.exponential(world.support_min)))
        number += 1
        begins = start_of(0) + int(at * DAY)
        spent = SupportTime(
            about=f"node:{NODE}",
            tenant=None,
            duration_us=minutes * MINUTE,
            what="a ticket answered",
        )
        yield _stated(f"support/{number}", spent, f"node:{NODE}", begins, begins)
