"""``ouvrage books energy``: how much power the machines took, who says so, and what it cost by the hour.

Decides nothing about figures: it finds the period and prints energy by who read it and by price.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import click

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text, fixed, significant
from ouvrage.base.text import safe
from ouvrage.books.account import Account, account, money
from ouvrage.books.charges import Priced, energy_cost
from ouvrage.books.electricity import CARBON, priced_by_bills
from ouvrage.books.energy import energy_of
from ouvrage.books.period import Period
from ouvrage.books.pnl_text import period_words
from ouvrage.books.tariffs import KWH, PriceBook
from ouvrage.books.used import EnergyAccount
from ouvrage.cli.books_asked import Asked, Wanted, asked, question_options, same_period
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.pricing.words import mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """The energy of a site over a period, what it cost by band, and the account with its lines."""

    taken: EnergyAccount
    priced: Priced
    made: Account

    def line(self, name: str) -> Fraction:
        """What stands under a line of the account."""
        return money(sum(held.nano for (line, _), held in self.made.sums.items() if line == name))

    @property
    def kwh(self) -> Fraction:
        """All energy of the machines, without their cooling."""
        lost = sum(each.joules for each in self.taken.lost)
        return (self.taken.metered_j + lost + self.taken.estimated_j) / KWH

    @property
    def covered(self) -> Fraction:
        """The share of the devices' time that a meter reads."""
        return Fraction(self.taken.metered_us, self.taken.us) if self.taken.us else Fraction(0)


def power_of(question: Asked) -> Power:
    """The energy that a question is about."""
    made = account(question.books.record, question.site, question.passed)
    record = priced_by_bills(question.books.record, made.grid)
    period = question.passed
    book = PriceBook(record, question.site, period.from_us, period.to_us)
    taken = energy_of(record, made.grid, book, load=True)
    return Power(
        taken=taken, priced=energy_cost(record, question.site, taken.load, period), made=made
    )


@click.command("energy")
@question_options
@json_option
@plain_option
def energy_(
    wanted: Wanted,
    as_json: bool,
    plain: bool,
) -> None:
    """Energy of the machines: read by meters or estimated, and what it cost by the hour's price."""
    with opened() as ledger:
        question = asked(ledger, wanted)
        found = power_of(question)
    if as_json:
        say_json(_json(found, question))
    else:
        say_text(_told(found, question.site, question.period, plain))


def _json(found: Power, question: Asked) -> dict[str, Any]:
    taken, priced = found.taken, found.priced
    return {
        "site": question.site,
        "period": question.period.name,
        "currency": found.made.grid.currency,
        "energy_kwh": decimal_text(found.kwh),
        "metered_j": taken.metered_j + sum(each.joules for each in taken.lost),
        "estimated_j": decimal_text(taken.estimated_j),
        "cooling_j": sum(part.joules for _, part in taken.cooling),
        "covered": decimal_text(found.covered),
        "read_j": dict(sorted(taken.read_j.items())),
        "bands": [
            {
                "band": line.band,
                "kwh": decimal_text(line.kwh),
                "price": None if line.price is None else decimal_text(line.price),
                "amount": None if line.price is None else decimal_text(line.amount),
            }
            for line in priced.lines
        ],
        "tiers": decimal_text(priced.charges.tiers),
        "standing": decimal_text(priced.charges.standing),
        "demand": decimal_text(priced.charges.demand),
        "cost": {
            name: decimal_text(found.line(f"cost.{name}"))
            for name in ("electricity", "cooling", "standing")
        },
        "carbon_kg": decimal_text(found.line(CARBON)) if _has_carbon(found) else None,
        "unknown": found.made.unknown.get("electricity", {}),
        "notes": list(taken.notes),
    }


def _has_carbon(found: Power) -> bool:
    return any(line == CARBON for line, _ in found.made.sums)


def _told(found: Power, site: str, period: Period, plain: bool) -> str:
    code, taken = found.made.grid.currency, found.taken
    cost = sum(
        (found.line(f"cost.{name}") for name in ("electricity", "cooling", "standing")), Fraction(0)
    )
    said = Grade.ASSUMED if taken.estimated_j else Grade.MEASURED
    lines = [
        f"{site} used {fixed(found.kwh, 1)} kWh{mark(said, plain)} in {period_words(period)} for "
        f"{fixed(cost, 2)} {code}; a meter read {fixed(found.covered * 100, 0)} % of the time.",
        "",
    ]
    shown = [
        (
            safe(line.band),
            fixed(line.kwh, 1),
            "unknown" if line.price is None else significant(line.price, 5),
            "unknown" if line.price is None else fixed(line.amount, 2),
        )
        for line in found.priced.lines
    ]
    head = ("band", "kWh", f"{code}/kWh", code)
    lines += [f"  {line}" for line in table(head, shown, "<>>>").splitlines()] if shown else []
    return "\n".join([*lines, "", *_rest(found, code), _more(period)])


def _rest(found: Power, code: str) -> Iterator[str]:
    taken, charges = found.taken, found.priced.charges
    lost = sum(each.joules for each in taken.lost)
    yield (
        f"  read      {fixed(Fraction(taken.metered_j, KWH), 1)} kWh given to GPUs, {fixed(Fraction(lost, KWH), 1)} "
        f"beside them; estimated {fixed(taken.estimated_j / KWH, 1)}"
    )
    cooling = found.line("cost.cooling")
    if cooling:
        yield f"  cooling   {fixed(cooling, 2)} {code}, in the bands above"
    for amount, words in (
        (charges.tiers, "tiers    "),
        (charges.standing, "standing "),
        (charges.demand, "demand   "),
    ):
        if amount:
            peak = f", {fixed(charges.peak_kw, 3)} kW at the highest" if words[0] == "d" else ""
            yield f"  {words} {fixed(amount, 2)} {code}{peak}"
    if _has_carbon(found):
        yield f"  carbon    {fixed(found.line(CARBON), 1)} kg"
    for device, why in sorted(found.made.unknown.get("electricity", {}).items()):
        yield f"  {safe(device)}: {safe(why)}"
    for note in taken.notes:
        yield f"  note: {safe(note)}"


def _more(period: Period) -> str:
    return (
        f"What it means for the margin: ouvrage books pnl{same_period(period)}      "
        "Prices: ouvrage own tariff FILE"
    )
