"""What the books need of a machine that was proved: power, heat, the least price, what supplies and circuit have left.

Decides the formulas; the price floor is that of the statement (``books/pnl``): power under load with cooling at its price, over
what the channel leaves. Without a meter at the wall none of them is known, and each says so: a GPU's own sensor is not the bill.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.books.known import Known
from ouvrage.books.record import OwnerRecord
from ouvrage.books.tariffs import price_at
from ouvrage.books.terms import term
from ouvrage.health.service_level import Promise
from ouvrage.model.health import CertifiedFigure
from ouvrage.model.hosts import HostReading, reading

BTU_H = Fraction(3412142, 1_000_000)
"""British thermal units an hour for each watt, in which air conditioning is sold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """A machine in its owner's books: at a site, sold through a channel (None: not said)."""

    record: OwnerRecord
    node: str
    site: str
    currency: str
    channel: str | None
    at_us: int

    def term(self, name: str, about: str | None = None) -> Known[Fraction] | None:
        """A term of the machine's, or of something else."""
        return term(self.record, about or f"node:{self.node}", name, self.at_us)


def _value(readings: Sequence[HostReading], id: str) -> tuple[Fraction | None, str]:
    """A reading's value and how it was found, or why it was not."""
    for each in readings:
        if each.id == id:
            return (None if each.low is None else Fraction(each.low)), each.how
    return None, "not read"


def headroom(
    readings: Sequence[HostReading], owned: Owned | None, bounds: Mapping[str, Fraction]
) -> Iterator[HostReading]:
    """What the power supplies and the circuit have left beside the most that was read at the wall."""
    most, how = _value(readings, "power.wall_most")
    for id, name, share in (
        ("power.psu_left", "psu_w", Fraction(1)),
        ("power.circuit_left", "circuit_w", bounds["circuit_share"]),
    ):
        known = None if owned is None else owned.term(name)
        if most is None or known is None:
            about = f"nobody said what they carry: ouvrage own term node:NAME {name} 1600"
            yield reading(id, "W", how if most is None else about)
            continue
        left = known.value * share - most
        words = f"{decimal_text(known.value)} W ({known.said_by}) x {decimal_text(share)}, less {fixed(most, 1)} W at most"
        yield reading(id, "W", words, left, left)


def figures(
    readings: Sequence[HostReading], owned: Owned | None, promised: Promise
) -> tuple[CertifiedFigure, ...]:
    """Every figure of a certificate, known or not."""
    watts, how = _value(readings, "power.wall")
    return (
        _figure("wall", watts, "W", Grade.MEASURED, how),
        _figure("energy", None if watts is None else watts / 1000, "kWh/h", Grade.MEASURED, how),
        _figure("heat", None if watts is None else watts * BTU_H, "BTU/h", Grade.MEASURED, f"{how}; all of it becomes heat"),
        _floor(watts, how, owned),
        *(_left(readings, id, name) for id, name in (("power.psu_left", "psu_headroom"), ("power.circuit_left", "circuit_headroom"))),
        _figure("service_level", promised.percent, "%", Grade.MEASURED, promised.how),
    )  # fmt: skip


def _left(readings: Sequence[HostReading], id: str, name: str) -> CertifiedFigure:
    value, how = next(((Fraction(r.low), r.how) for r in readings if r.id == id and r.low is not None), (None, _value(readings, id)[1]))  # fmt: skip
    return _figure(name, value, "W", Grade.REPORTED, how)


def _figure(
    name: str, value: Fraction | None, unit: str, grade: Grade, how: str
) -> CertifiedFigure:
    text = None if value is None else decimal_text(Fraction(round(value * 10**6), 10**6))
    return CertifiedFigure(name=name, value=text, unit=unit, grade=grade.word, how=how)


def _floor(watts: Fraction | None, how: str, owned: Owned | None) -> CertifiedFigure:
    """The price of an hour below which selling loses money: power with its cooling, over what the channel leaves."""
    if owned is None:
        why = "the machine is in no books: ouvrage init --node NAME --electricity 0.28/kWh"
        return _figure("price_floor", None, "per h", Grade.ASSUMED, why)
    unit = f"{owned.currency}/h"
    price = price_at(owned.record, owned.site, owned.at_us)
    if price is None:
        price = owned.term("electricity", f"site:{owned.site}")
    if watts is None or price is None:
        why = how if watts is None else "no price of electricity is stated"
        return _figure("price_floor", None, unit, Grade.ASSUMED, why)
    pue = owned.term("pue")
    fee = None if owned.channel is None else owned.term("fee", f"channel:{owned.channel}")
    cooled = watts / 1000 * price.value * (pue.value if pue else 1)
    kept = 1 - (fee.value if fee else 0)
    if kept <= 0:
        return _figure("price_floor", None, unit, Grade.ASSUMED, "the channel keeps everything")
    grade = weakest([Grade.MEASURED, *(each.grade for each in (price, pue, fee) if each)])
    words = f"{fixed(watts / 1000, 4)} kWh/h x {decimal_text(price.value)} {owned.currency}/kWh"
    words += f" x PUE {decimal_text(pue.value)}" if pue else ""
    words += f", / {decimal_text(kept)} that {owned.channel} leaves" if fee and fee.value else ""
    return _figure("price_floor", cooled / kept, unit, grade, words)
