"""What devices earned: by what channels say, and by leases where no channel says anything.

Decides to which device an amount belongs (the one that it names, else those that were sold on that
channel then, by time, else all of the machine, by time), what of a statement lies in the period (by
time), and what the channel keeps. A channel's own statement counts before the owner's word about a
lease on it, which is then left out: the same hour is not earned twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import number
from ouvrage.base.time import HOUR
from ouvrage.books.calendar import leases_of, slots_of
from ouvrage.books.cells import Amount, Cell, Grid, Sums, Weights, post
from ouvrage.books.money import Converted, converted
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.terms import pieces
from ouvrage.model.earnings import COMPONENTS, Earning, OwnerLease

OWN_USE = "own-use"
LINES = tuple(name for name in COMPONENTS if name != "credit")
FAILED = "cost.failed"
_ONE = Fraction(1)
SOLD_HOURS, ASKED_HOURS, ASKED = "memo.sold_hours", "memo.asked_hours", "memo.asked"
"""Lines that are no money: hours a channel states, hours at a price asked, and that price times them."""


@dataclass(slots=True)
class Told:
    """What the statement must say beside its figures, each once."""

    notes: dict[str, None]

    def add(self, note: str | None) -> None:
        """Remember a note; None is none."""
        if note is not None:
            self.notes[note] = None


def earned(record: OwnerRecord, grid: Grid, sums: Sums, told: Told) -> None:
    """Post everything earned in the period, and what the channels keep of it."""
    for each in record.earnings:
        if grid.period.overlap(each.valid_from, each.end) and grid.holds(each.value.about):
            _channel_says(record, grid, each, sums, told)
    for about in _strangers(record, grid):
        told.add(
            f"what is stated about {about} is not counted: no site has it; ouvrage own says where it stands"
        )
    covered = _covered(record)
    for node in grid.nodes:
        for lease, cell, from_us, to_us in _leased(grid, node, told):
            for begins, ends in _without(
                covered.get((lease.value.channel, cell.node), []), from_us, to_us
            ):
                _lease_earns(record, grid, lease, cell, (begins, ends), sums, told)
    _own_use(record, grid, sums)


def _strangers(record: OwnerRecord, grid: Grid) -> list[str]:
    """What earned or cost something in the period and stands at no site, told with the first site's."""
    if not record.sites or record.sites[0].value.site != grid.site:
        return []
    sites = {f"site:{each.value.site}" for each in record.sites}
    known = {*sites, *(f"node:{n}" for n in record.homes), *(f"device:{d}" for d in record.placed)}
    stated = [
        each.value.about
        for each in (*record.earnings, *record.bills)
        if each.meets(grid.period.from_us, grid.period.to_us)
    ]
    return sorted(
        about for about in set(stated) - known if not about.startswith(("channel:", "tenant:"))
    )


def _channel_says(
    record: OwnerRecord, grid: Grid, each: Known[Earning], sums: Sums, told: Told
) -> None:
    earning, period = each.value, grid.period
    within, length = period.overlap(each.valid_from, each.end), each.end - each.valid_from
    share = _ONE if within == length else Fraction(within, length)
    money = converted(
        record, earning.amount, earning.currency, grid.currency, each.valid_from, each
    )
    told.add(money.note)
    from_us, to_us = max(each.valid_from, period.from_us), min(each.end, period.to_us)
    sold = grid.weights(earning.about, from_us, to_us, earning.channel)
    weights = _sold_by(sold or grid.weights(earning.about, from_us, to_us), earning)
    if not sold and not grid.stood(earning.about, from_us, to_us):
        told.add(
            f"{earning.channel} says that {earning.about} earned when no GPU of it was in service; "
            "it is counted, and those hours are not: see ouvrage own show"
        )
    credit = earning.component == "credit"
    line = (
        FAILED
        if credit
        else f"revenue.{earning.component if earning.component in LINES else 'other'}"
    )
    how = "what the channel says was earned" if not credit else "what the channel gave back"
    value = -money.amount if credit else money.amount
    value = value if share is _ONE else value * share
    post(sums, _amount(line, value, money, how), weights)
    if earning.component == "gpu":
        _asked(record, grid, each, value, share, weights, sums)
    if earning.component != OWN_USE and not credit:
        _fee(record, grid, each, money, share, weights, sums)


def _asked(
    record: OwnerRecord,
    grid: Grid,
    each: Known[Earning],
    value: Fraction,
    share: Fraction,
    weights: Weights,
    sums: Sums,
) -> None:
    """Remember what was asked per hour and for how many hours: as stated, else as it follows."""
    earning = each.value
    hours = None if earning.sold_us is None else Fraction(earning.sold_us, HOUR) * share
    if hours is not None:
        post(sums, _memo(SOLD_HOURS, hours, each, "the time sold that the channel states"), weights)
    if earning.list_price is None or not number(earning.list_price):
        return
    price, at_us = earning.list_price, each.valid_from
    asked = converted(record, price, earning.currency, grid.currency, at_us, each)
    hours = value / asked.amount if hours is None else hours
    post(sums, _memo(ASKED_HOURS, hours, each, "earned / the price asked"), weights)
    post(sums, _memo(ASKED, hours * asked.amount, each, "the price asked"), weights)


def _memo(line: str, value: Fraction, each: Known[Any], how: str) -> Amount:
    return Amount(line=line, value=value, grade=each.grade, method=how, keys=each.keys)


def _amount(line: str, value: Fraction, money: Converted, how: str) -> Amount:
    return Amount(line=line, value=value, grade=money.grade, method=how, keys=money.keys)


def _sold_by(found: Weights, earning: Earning) -> Weights:
    """The cells that an earning belongs to, on its own channel and of its tenant."""
    merged: dict[Cell, int] = {}
    channel, tenant = earning.channel, earning.tenant
    if not tenant and all(cell.channel == channel for cell, _ in found):
        return found
    for cell, us in found:
        named = Cell(cell.node, cell.device, channel, tenant or cell.tenant)
        merged[named] = merged.get(named, 0) + us
    return list(merged.items())


def _fee(
    record: OwnerRecord,
    grid: Grid,
    each: Known[Earning],
    money: Converted,
    share: Fraction,
    weights: Weights,
    sums: Sums,
) -> None:
    earning = each.value
    if earning.fee is not None:
        kept = converted(
            record, earning.fee, earning.currency, grid.currency, each.valid_from, each
        )
        fee = _amount("cost.fee", kept.amount * share, kept, "the fee that the channel states")
        return post(sums, fee, weights)
    if _fee_billed(record, earning.channel, each.valid_from):
        return None
    return _fee_by_term(
        grid,
        earning.channel,
        each.valid_from,
        _amount("", money.amount * share, money, ""),
        weights,
        sums,
    )


def _fee_billed(record: OwnerRecord, channel: str, at_us: int) -> bool:
    """Whether the channel billed its fee for that time; it is then a cost of its own."""
    return any(
        each.value.sort == "platform-fee"
        and each.value.about == f"channel:{channel}"
        and each.at(at_us)
        for each in record.bills
    )


def _fee_by_term(
    grid: Grid, channel: str, at_us: int, gross: Amount, weights: Weights, sums: Sums
) -> None:
    rate = grid.terms.at(f"channel:{channel}", "fee", at_us)
    if rate is not None and (
        rate.value or rate.key
    ):  # own tenants pay no platform: nothing is assumed
        fee = Amount(
            line="cost.fee",
            value=gross.value * rate.value,
            grade=max(gross.grade, rate.grade),
            method=f"earned x the channel's fee ({rate.said_by or 'as stated'})",
            keys=(*gross.keys, *rate.keys),
        )
        post(sums, fee, weights)


Spans = list[tuple[int, int]]


def _covered(record: OwnerRecord) -> Mapping[tuple[str, str], Spans]:
    """For which time a channel itself said what a node earned with its GPUs."""
    homes = {each.value.device: each.value.node for each in record.devices}
    found: dict[tuple[str, str], Spans] = {}
    for each in record.earnings:
        if each.value.component == "gpu":
            sort, _, name = each.value.about.partition(":")
            node = name if sort == "node" else homes.get(name, "")
            found.setdefault((each.value.channel, node), []).append((each.valid_from, each.end))
    return found


def _without(covered: Spans, from_us: int, to_us: int) -> Iterable[tuple[int, int]]:
    """What is left of a stretch of time outside the covered ones."""
    at = from_us
    for begins, ends in sorted(covered):
        if ends <= at or begins >= to_us:
            continue
        if begins > at:
            yield at, begins
        at = ends
    if at < to_us:
        yield at, to_us


def _leased(
    grid: Grid, node: str, told: Told
) -> Iterable[tuple[Known[OwnerLease], Cell, int, int]]:
    """The leases of a node, with the device and the time of each in the period."""
    part = grid.parts[node]
    found = leases_of(part, node, grid.period)
    by_key = {each.key: each for each in part.leases}
    for homeless in found.homeless:
        lease = homeless.value
        told.add(
            f"lease {lease.lease} is for {lease.count} of {lease.about}, which do not all stand there "
            "free then; what has no device is not counted"
        )
    slots = slots_of(part, node, grid.period)
    for said in found.said:
        for slot in slots:
            from_us, to_us = max(said.from_us, slot.from_us), min(said.to_us, slot.to_us)
            named = said.device is None or said.device == slot.device
            if named and said.slots and slot.number in said.slots and from_us < to_us:
                cell = Cell(node, slot.device, said.channel, said.tenant)
                yield by_key[said.key], cell, from_us, to_us


def _lease_earns(
    record: OwnerRecord,
    grid: Grid,
    each: Known[OwnerLease],
    cell: Cell,
    span: tuple[int, int],
    sums: Sums,
    told: Told,
) -> None:
    lease = each.value
    money = converted(record, lease.price, lease.currency, grid.currency, span[0], each)
    told.add(money.note)
    value = money.amount * Fraction(span[1] - span[0], HOUR)
    how = "the lease's price x the time of its devices"
    own = lease.channel == OWN_USE
    gross = _amount(f"revenue.{OWN_USE if own else 'gpu'}", value, money, how)
    post(sums, gross, [(cell, 1)])
    if lease.list_price is not None:
        hours = Fraction(span[1] - span[0], HOUR)
        asked = converted(record, lease.list_price, lease.currency, grid.currency, span[0], each)
        post(sums, _memo(ASKED_HOURS, hours, each, "the lease's hours"), [(cell, 1)])
        post(sums, _memo(ASKED, hours * asked.amount, each, "the price asked"), [(cell, 1)])
    if not own:
        _fee_by_term(grid, lease.channel, span[0], gross, [(cell, 1)], sums)


def _own_use(record: OwnerRecord, grid: Grid, sums: Sums) -> None:
    """The owner's own use at the internal price, where nothing else states what it is worth."""
    stated = {lease.value.lease for lease in record.leases}
    covered = {each.value.about for each in record.earnings if each.value.component == OWN_USE}
    for stretch in grid.all():
        if (
            stretch.channel != OWN_USE
            or stretch.lease in stated
            or f"node:{stretch.node}" in covered
        ):
            continue
        about = f"device:{stretch.device}"
        for begins, ends, price in pieces(
            record, about, "own_use_price", stretch.from_us, stretch.to_us
        ):
            if price is not None and price.value:
                amount = Amount(
                    line=f"revenue.{OWN_USE}",
                    value=price.value * Fraction(ends - begins, HOUR),
                    grade=max(price.grade, stretch.grade or Grade.ASSUMED),
                    method="the internal price x the time of own use",
                    keys=(*price.keys, *stretch.facts),
                )
                post(
                    sums, amount, [(Cell(stretch.node, stretch.device, OWN_USE, stretch.tenant), 1)]
                )
