"""What power and its cooling cost, posted to the devices that took them.

Decides what stands under which line: kilowatt-hours with their tiers under ``electricity``; what a
supplier charges whatever is used (standing charges, the month's peak) under ``standing``; cooling by its
own meter, else by PUE, under ``cooling``. Own solar power is worth what it would have earned if sold. An
electricity bill that states its energy gives the price where nothing else does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.time import HOUR
from ouvrage.books.cells import Amount, Cell, Grid, Sums, Weights, grid_of, post
from ouvrage.books.charges import Charges, charged, needs_load
from ouvrage.books.energy import energy_of, overhead
from ouvrage.books.money import converted
from ouvrage.books.period import Period, months_in
from ouvrage.books.record import OwnerRecord
from ouvrage.books.revenue import Told
from ouvrage.books.tariffs import KWH, PriceBook
from ouvrage.books.used import EnergyAccount, Used
from ouvrage.books.wall import Part, metered
from ouvrage.evidence.fact_keys import FactKeys

ENERGY, IDLE_ENERGY, LOAD_ENERGY = "memo.kwh", "memo.idle_kwh", "memo.load_kwh"
"""Lines that are no money: energy used, what idling alone takes, what work all the time would take."""
CARBON = "memo.carbon"
"""Kilograms of carbon dioxide, where somebody says how much a kilowatt-hour takes."""
_SOLAR = (
    "own solar power used, at what it would have earned instead of the price of a kilowatt-hour"
)


def powered(record: OwnerRecord, grid: Grid, sums: Sums, told: Told) -> dict[str, str]:
    """Post power, cooling and what a supplier charges beside; by device, why one is not known."""
    record = priced_by_bills(record, grid)
    book = PriceBook(record, grid.site, grid.period.from_us, grid.period.to_us)
    solar = _solar_parts(record, grid)
    taken = energy_of(record, grid, book, load=bool(solar))
    for note in taken.notes:
        told.add(note)
    why: dict[str, str] = {}
    for used in taken.used:
        reason = _unknown(grid, used, book)
        if reason is None:
            _power(grid, used, book, sums)
        else:
            why[used.cell.device] = reason
    _beside_devices(grid, taken, book, sums)
    shares = _by_energy(taken)
    charges = charges_in(record, grid, taken if solar else None)
    _charge(grid, charges, shares, sums)
    _sunshine(grid, solar, taken, book, shares, sums, told)
    return why


def _unknown(grid: Grid, used: Used, book: PriceBook) -> str | None:
    """Why the cost of some energy is not known, or None."""
    if used.energy_j is None:
        return (
            f"nobody said what {used.cell.device} draws: no meter reads it, and no power is "
            "known here for its model"
        )
    if book.at(used.from_us).price is None:
        return f"no price of electricity is stated, and none is assumed in {grid.currency}"
    return None


def _power(grid: Grid, used: Used, book: PriceBook, sums: Sums) -> None:
    source = book.at(used.from_us).source
    assert source is not None
    kwh, cell = (used.energy_j or Fraction(0)) / KWH, [(used.cell, 1)]
    power = Amount(
        line="cost.electricity",
        value=used.money(book) or Fraction(0),
        grade=max(used.grade, source.grade),
        method=f"{used.method} x {source.words}",
        keys=FactKeys(used.keys, source.keys),
    )
    post(sums, power, cell)
    memo = Amount(line=ENERGY, value=kwh, grade=used.grade, method=used.method, keys=used.keys)
    post(sums, memo, cell)
    factor = Fraction(1)
    if not used.cooled:
        factor = overhead(grid, used.cell.node, used.from_us)
        _cooling(grid, power, factor, used, sums)
    _carbon(grid, kwh * factor, used, sums)
    about, hours = f"device:{used.cell.device}", Fraction(used.us, HOUR)
    for line, name in ((IDLE_ENERGY, "idle_power_w"), (LOAD_ENERGY, "load_power_w")):
        watts = grid.terms.at(about, name, used.from_us)
        if watts is not None:
            value = watts.value * hours / 1000
            value = min(value, kwh) if line == IDLE_ENERGY else value
            how = f"{name} x the time ({watts.said_by or 'as stated'})"
            post(
                sums,
                Amount(line=line, value=value, grade=watts.grade, method=how, keys=watts.keys),
                cell,
            )


def _cooling(grid: Grid, power: Amount, factor: Fraction, used: Used, sums: Sums) -> None:
    pue = grid.terms.at(f"node:{used.cell.node}", "pue", used.from_us)
    if pue is None or (factor == 1 and pue.value != 1):
        return
    cooling = Amount(
        line="cost.cooling",
        value=power.value * (factor - 1),
        grade=max(power.grade, pue.grade),
        method=f"power x (PUE - 1) ({pue.said_by or 'as stated'})",
        keys=FactKeys(power.keys, pue.keys),
    )
    post(sums, cooling, [(used.cell, 1)])


def _carbon(grid: Grid, kwh: Fraction, used: Used, sums: Sums) -> None:
    factor = grid.terms.at(f"site:{grid.site}", "carbon", used.from_us)
    if factor is not None:
        how = f"energy with its cooling x {factor.said_by or 'what is stated'}"
        kg = Amount(
            line=CARBON, value=kwh * factor.value / 1000, grade=max(used.grade, factor.grade),
            method=how, keys=FactKeys(used.keys, factor.keys),
        )  # fmt: skip
        post(sums, kg, [(used.cell, 1)])


def _beside_devices(grid: Grid, taken: EnergyAccount, book: PriceBook, sums: Sums) -> None:
    """What meters read that no device took: machines without one, and cooling with its own meter."""
    lost = [(each.about, each.part, each.joules, "cost.electricity") for each in taken.lost]
    cooling = [(about, part, part.joules, "cost.cooling") for about, part in taken.cooling]
    for about, part, joules, line in (*lost, *cooling):
        source = book.at(part.from_us).source
        if source is None or not joules:
            continue
        words = "beside every GPU" if line == "cost.electricity" else "of the cooling"
        amount = Amount(
            line=line, value=_cost(part, joules, book), grade=max(part.grade, source.grade),
            method=f"read by a meter {words} x {source.words}", keys=(*part.keys, *source.keys),
        )  # fmt: skip
        weights = grid.weights(about, part.from_us, part.to_us)
        post(sums, amount, weights)
        if line == "cost.electricity":
            memo = replace(amount, line=ENERGY, value=Fraction(joules, KWH), grade=part.grade)
            post(sums, memo, weights)


def _cost(part: Part, joules: int, book: PriceBook) -> Fraction:
    priced = book.integral(part.from_us, part.to_us)
    return Fraction(joules * priced, book.denominator * KWH * (part.to_us - part.from_us))


def _by_energy(taken: EnergyAccount) -> Weights:
    found: dict[Cell, int] = {}
    for used in taken.used:
        found[used.cell] = found.get(used.cell, 0) + int(used.energy_j or 0)
    return [(cell, joules) for cell, joules in found.items() if joules]


def charges_in(record: OwnerRecord, grid: Grid, taken: EnergyAccount | None = None) -> Charges:
    """What a supplier charges beside kilowatt-hours over a grid's period.

    Tiers and peaks count whole calendar months, so the energy of these is looked at, as far as known.
    ``taken`` is the energy of the period where its load is at hand already.
    """
    period = grid.period
    if not needs_load(record, grid.site, period):
        return charged(record, grid.site, (), period)
    months = list(months_in(period.from_us, period.to_us, period.zone))
    ends = max(period.to_us, min(months[-1].to_us, record.as_of))
    wide = Period(from_us=months[0].from_us, to_us=ends, name="", zone=period.zone)
    same = (wide.from_us, wide.to_us) == (period.from_us, period.to_us)
    if taken is None or not same:
        whole = grid if same else grid_of(record, grid.site, wide)
        book = PriceBook(record, grid.site, wide.from_us, wide.to_us)
        taken = energy_of(record, whole, book, load=True)
    return charged(record, grid.site, taken.load, period)


def _charge(grid: Grid, charges: Charges, shares: Weights, sums: Sums) -> None:
    by_time = grid.weights(f"site:{grid.site}", grid.period.from_us, grid.period.to_us)
    for value, line, weights, how in (
        (charges.tiers, "cost.electricity", shares or by_time, "tiers of the tariff by the month's energy"),
        (charges.standing, "cost.standing", by_time, "standing charges of the tariff"),
        (charges.demand, "cost.standing", by_time, "the month's highest quarter-hour x the tariff's charge"),
    ):  # fmt: skip
        if value:
            measured = Grade.ASSUMED if how.startswith(("tiers", "the month's")) else charges.grade
            grade = max(charges.grade, measured)
            amount = Amount(line=line, value=value, grade=grade, method=how, keys=charges.keys)
            post(sums, amount, weights)


def _solar_parts(record: OwnerRecord, grid: Grid) -> list[Part]:
    about = f"site:{grid.site}"
    period = grid.period
    reads = [
        read
        for read in record.energy
        if read.about == about
        and read.scope == "solar"
        and read.meets(period.from_us, period.to_us)
    ]
    return metered(reads, ("solar",), period.from_us, period.to_us)


def _sunshine(
    grid: Grid,
    solar: Sequence[Part],
    taken: EnergyAccount,
    book: PriceBook,
    shares: Weights,
    sums: Sums,
    told: Told,
) -> None:
    """Own solar power, as far as the machines used it at the time, at what it would have earned."""
    if not solar or not shares:
        return
    if f"site:{grid.site}" in taken.read_j:
        told.add("own solar power is not counted: the site's meter reads what was bought beside it")
        return
    curve, saved, keys, grades = Curve(taken.load), Fraction(0), {}, [Grade.MEASURED]
    for part in solar:
        own = min(part.joules, curve.joules(part.from_us, part.to_us))
        length = (part.to_us - part.from_us) * KWH
        for begins, ends, step in book.within(part.from_us, part.to_us):
            if step.price is not None and step.source is not None and own:
                saved += own * (step.price - (step.export or 0)) * Fraction(ends - begins, length)
                grades += [part.grade, step.source.grade]
                keys.update(dict.fromkeys((*part.keys, *step.source.keys)))
    if saved:
        grade = max([*grades, *(used.grade for used in taken.used)])
        amount = Amount(
            line="cost.electricity", value=-saved, grade=grade, method=_SOLAR, keys=tuple(keys)
        )
        post(sums, amount, shares)


class Curve:
    """The power of a site over time, to ask how much was used between two moments, in whole joules."""

    def __init__(self, load: Iterable[tuple[int, int, Fraction]]) -> None:
        steps: dict[int, int] = {}
        for begins, ends, joules in load:
            microwatts = int(joules * 10**12 / (ends - begins))
            steps[begins] = steps.get(begins, 0) + microwatts
            steps[ends] = steps.get(ends, 0) - microwatts
        self._at = sorted(steps)
        self._level: list[int] = []
        self._used: list[int] = []
        level, used, before = 0, 0, self._at[0] if self._at else 0
        for at in self._at:
            used += level * (at - before)
            level, before = level + steps[at], at
            self._level.append(level)
            self._used.append(used)

    def joules(self, from_us: int, to_us: int) -> int:
        """What was used between two moments."""
        return (self._until(to_us) - self._until(from_us)) // 10**12

    def _until(self, at_us: int) -> int:
        index = bisect_right(self._at, at_us) - 1
        return (
            0 if index < 0 else self._used[index] + self._level[index] * (at_us - self._at[index])
        )


def priced_by_bills(record: OwnerRecord, grid: Grid) -> OwnerRecord:
    """The record with the price of electricity bills that state their energy, where nothing else does."""
    about = f"site:{grid.site}"
    if any(each.grade < Grade.ASSUMED for each in record.terms.get((about, "electricity"), ())):
        return record
    for each in record.bills:
        bill, share = each.value, grid.period.overlap(each.valid_from, each.end)
        if bill.sort == "electricity" and bill.energy_j and share and grid.holds(bill.about):
            money = converted(
                record, bill.amount, bill.currency, grid.currency, each.valid_from, each
            )
            price = money.amount * KWH / bill.energy_j
            said_by = f"bill {bill.number}"
            record = record.with_term(about, "electricity", price, like=each, said_by=said_by)
    return record
