"""Electricity bills against what the books make of meters and states over the same days.

Decides that a bill is compared over its own period, energy with energy and money with money. The
difference in money is divided exactly into what more energy cost at the books' price and what another
price cost for the energy billed. Why the energy differs nobody can compute; the likely causes are told
in order of how much they could matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.books.account import Account, account, money
from ouvrage.books.differences import SAME, Cause, Difference, Side
from ouvrage.books.electricity import ENERGY
from ouvrage.books.money import converted
from ouvrage.books.period import Period, day_of
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.spans import Span, merged
from ouvrage.books.tariffs import KWH
from ouvrage.model.cash import CostBill

_TAX_NEAR = Fraction(1, 100)
"""Prices that differ by no more than this share are taken for the same price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """The books' own energy (kWh) and money over the period of a bill, machines and cooling.

    ``beside`` is the part of the money that does not depend on the energy: standing charges, a peak.
    """

    read: Fraction
    estimated: Fraction
    cooling: Fraction
    cost: Fraction
    beside: Fraction
    grade: Grade
    facts: tuple[str, ...]

    @property
    def kwh(self) -> Fraction:
        """All of it."""
        return self.read + self.estimated + self.cooling


def electricity_bills(
    record: OwnerRecord, site: str, period: Period
) -> list[tuple[Known[CostBill], Period]]:
    """The electricity bills of a site that touch a period, each with its own period."""
    nodes = {each.value.node for each in record.nodes if each.value.site == site}
    ours = {f"site:{site}", *(f"node:{node}" for node in nodes)}
    return [
        (each, _own_period(each, period))
        for each in record.bills
        if each.value.sort == "electricity"
        and each.value.about in ours
        and each.valid_from < each.end
        and each.meets(period.from_us, period.to_us)
    ]


def _own_period(each: Known[CostBill], period: Period) -> Period:
    begins, ends = (day_of(at, period.zone) for at in (each.valid_from, each.end))
    name = f"{begins}..{ends}"
    return Period(from_us=each.valid_from, to_us=each.end, name=name, zone=period.zone)


def unbilled(record: OwnerRecord, site: str, period: Period) -> list[Span]:
    """The parts of a period that no electricity bill covers."""
    covered = merged(
        (each.valid_from, each.end) for each, _ in electricity_bills(record, site, period)
    )
    found: list[Span] = []
    at = period.from_us
    for begins, ends in covered:
        if at < begins:
            found.append((at, min(begins, period.to_us)))
        at = max(at, ends)
    return [*found, (at, period.to_us)] if at < period.to_us else found


def meter_differences(record: OwnerRecord, site: str, period: Period) -> Iterator[Difference]:
    """Each electricity bill that touches a period against the books: energy, then money."""
    for each, own in electricity_bills(record, site, period):
        known_until = own.until(record.as_of or own.to_us)
        made = account(record, site, known_until)
        ours = _metered(made, each.value.about)
        if ours is None:
            continue
        bill = each.value
        name = f"electricity/{bill.number}"
        days = f"{day_of(own.from_us, own.zone)} to {day_of(own.to_us - 1, own.zone)}"
        paid = converted(
            record, bill.amount, bill.currency, made.grid.currency, each.valid_from, each
        )
        if bill.energy_j is not None:
            theirs = Side(
                words=f"bill {bill.number}", amount=Fraction(bill.energy_j, KWH), grade=each.grade
            )
            yield Difference(
                name=f"{name}/kwh", what=f"energy, {days}", unit="kWh", theirs=theirs,
                ours=Side(words="the books", amount=ours.kwh, grade=ours.grade),
                causes=tuple(_energy_causes(ours, theirs.amount)), facts=(*each.keys, *ours.facts),
            )  # fmt: skip
        yield Difference(
            name=name, what=f"electricity, {days}", unit=made.grid.currency,
            theirs=Side(words=f"bill {bill.number}", amount=paid.amount, grade=paid.grade),
            ours=Side(words="the books", amount=ours.cost, grade=ours.grade),
            causes=tuple(_money_causes(each, ours, paid.amount)), facts=(*paid.keys, *ours.facts),
        )  # fmt: skip


def _metered(made: Account, about: str) -> Metered | None:
    """What the books say of an object over a bill's period; None where its power is not known."""
    node = about.partition(":")[2] if about.startswith("node:") else None
    if made.unknown.get("electricity"):
        return None
    sums: dict[str, Fraction] = {}
    grades: set[Grade] = set()
    facts: dict[str, None] = {}
    by_meter = Fraction(0)
    for (line, cell), held in made.sums.items():
        if node is not None and cell.node != node:
            continue
        if line in (ENERGY, "cost.electricity", "cost.cooling", "cost.standing"):
            sums[line] = sums.get(line, Fraction(0)) + money(held.nano)
            grades |= set(held.by_grade)
            facts.update(dict.fromkeys(held.keys))
        if line == ENERGY:
            read = sum(n for grade, n in held.by_grade.items() if grade < Grade.ASSUMED)
            by_meter += money(min(read, held.nano))
    kwh, power = sums.get(ENERGY, Fraction(0)), sums.get("cost.electricity", Fraction(0))
    cooling, beside = (sums.get(f"cost.{n}", Fraction(0)) for n in ("cooling", "standing"))
    return Metered(
        read=by_meter, estimated=kwh - by_meter, cooling=kwh * cooling / power if power else Fraction(0),
        cost=power + cooling + beside, beside=beside, grade=weakest(grades) if grades else Grade.ASSUMED, facts=tuple(facts),
    )  # fmt: skip


def _energy_causes(ours: Metered, billed: Fraction) -> Iterator[Cause]:
    """Why a bill may state other energy than the books, what could matter most first."""
    more = billed - ours.kwh
    if abs(more) <= SAME:
        return
    parts = [
        (ours.estimated, "are estimated from watts and states where no meter reads"),
        (ours.cooling, "are cooling by a stated PUE, which no meter reads"),
    ]
    for kwh, words in sorted(parts, key=lambda part: -part[0]):
        if kwh:
            yield Cause(words=f"{fixed(kwh, 1)} kWh of the books {words}")
    if more > 0 and ours.read:
        yield Cause(words="losses between the supplier's meter and ours, and what else hangs there")
    elif more > 0:
        yield Cause(words="what else hangs behind the supplier's meter")
    elif ours.read:
        yield Cause(
            words="a meter that counts twice, power of one's own, or other days on the bill"
        )
    else:
        yield Cause(words="power of one's own, or other days on the bill")


def _money_causes(each: Known[CostBill], ours: Metered, paid: Fraction) -> Iterator[Cause]:
    """A difference in money as energy at the books' price and price of the energy billed."""
    bill = each.value
    if abs(paid - ours.cost) <= SAME:
        return
    if bill.energy_j is None or not ours.kwh:
        yield Cause(
            words="the bill states no energy, so that price and energy cannot be told apart"
        )
        return
    billed = Fraction(bill.energy_j, KWH)
    price = (ours.cost - ours.beside) / ours.kwh
    by_energy = (billed - ours.kwh) * price
    if by_energy:
        more = "more" if by_energy > 0 else "less"
        yield Cause(
            words=f"{fixed(abs(billed - ours.kwh), 1)} kWh {more} than the books, at their price",
            amount=by_energy,
        )
    by_price = paid - ours.cost - by_energy
    if by_price and billed:
        yield Cause(words=_price_words(bill, (paid - ours.beside) / billed, price), amount=by_price)


def _price_words(bill: CostBill, billed: Fraction, price: Fraction) -> str:
    """Why the price of a bill is not that of the books."""
    taxed = billed
    if bill.tax is not None and Fraction(bill.amount):
        taxed = billed * (1 + Fraction(bill.tax) / Fraction(bill.amount))
    if taxed != billed and abs(taxed - price) <= price * _TAX_NEAR:
        return "the books' price holds the tax that the bill states apart"
    return safe(
        f"billed at {fixed(billed, 4)} a kWh, the books reckon {fixed(price, 4)}: a tariff, a standing "
        "charge or a peak that was not stated"
    )
