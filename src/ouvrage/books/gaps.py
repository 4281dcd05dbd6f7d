"""What is assumed or not known in a period's books, and how far each could move the margin.

Decides which of an owner's gaps to fill first. For everything that is assumed the account is made
again with the low and with the high end of what is plausible; the difference is how far the margin
could move. What nobody can put bounds to comes first, because no margin stands without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text, significant
from ouvrage.base.time import HOUR
from ouvrage.books.account import Account, account, money, profit_nano
from ouvrage.books.energy import UNSEEN
from ouvrage.books.period import Period
from ouvrage.books.pnl import LEAST_COVERED
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.terms import RULES, rule_for, term
from ouvrage.model.assets import Asset

UNSEEN_LOAD = "load that nobody saw"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Something assumed or unknown: ``what`` about whom, ``held`` as assumed now (None: unknown).

    Were it ``low`` the margin would move by ``moves[0]``, were it ``high`` by ``moves[1]`` (in the
    books' currency; None where that cannot be said). ``why`` says where the ends are from and ``fill``
    is the command that fills the gap.
    """

    what: str
    abouts: tuple[str, ...]
    unit: str
    held: Fraction | None
    low: Fraction | None
    high: Fraction | None
    source: str
    why: str
    moves: tuple[Fraction, Fraction] | None
    fill: str

    @property
    def most(self) -> Fraction:
        """How far the margin could move at most; more than anything where that cannot be said."""
        if self.moves is None:
            return Fraction(2**62)
        return max(abs(self.moves[0]), abs(self.moves[1]))


def gaps(record: OwnerRecord, site: str, period: Period) -> tuple[Gap, ...]:
    """The gaps of a site's books over a period, the widest first; those that move nothing last."""
    made = account(record, site, period)
    base = profit_nano(made.sums, lambda _: True)
    found = [
        *_unearned(made),
        *_unpriced(made),
        *_unseen(made),
        *(_term_gap(made, base, *case) for case in _terms(made)),
        *_lives(made, base),
    ]
    return tuple(sorted(found, key=lambda gap: (-gap.most, gap.what, gap.abouts)))


def _unearned(made: Account) -> Iterator[Gap]:
    """Earnings, where of too much of the time nothing says what was earned."""
    told, owned = (sum(both[i] for both in made.covered.values()) for i in (0, 1))
    if owned and Fraction(told, owned) < LEAST_COVERED:
        blank = [device for device, (known, whole) in made.covered.items() if known < whole]
        nodes = sorted(
            n for n, devices in made.grid.stretches.items() if devices.keys() & set(blank)
        )
        yield Gap(
            what="earnings", abouts=tuple(f"node:{node}" for node in nodes), unit=made.grid.currency,
            held=None, low=None, high=None,
            source=f"of {(owned - told) // HOUR} hours no fact says what was earned",
            why="without it there is no margin", moves=None,
            fill=f"ouvrage import vast-earnings FILE --machine ID={nodes[0]}, or ouvrage own lease NAME "
            f"--of node:{nodes[0]} --tenant WHO --price AMOUNT/h --from DAY --to DAY",
        )  # fmt: skip


def _unpriced(made: Account) -> Iterator[Gap]:
    """Costs that are not known at all."""
    fills = {
        "depreciation": "ouvrage own asset NAME --of node:{node} --price AMOUNT --bought DAY",
        "electricity": "ouvrage own term node:{node} load_power_w WATTS",
        "price": "ouvrage own term site:{site} electricity AMOUNT",
    }
    nodes = {device: node for node, devices in made.grid.stretches.items() for device in devices}
    for line, devices in made.unknown.items():
        if line not in fills:
            continue
        first = sorted(devices)[0]
        node = nodes.get(first, "NODE")
        abouts = tuple(sorted({f"node:{nodes[d]}" for d in devices if d in nodes}))
        unpriced = line == "electricity" and made.grid.terms.at(*_price_of(made)) is None
        fill = fills["price"] if unpriced else fills[line]
        yield Gap(
            what=line if line != "electricity" or unpriced else "load_power_w", abouts=abouts, unit=made.grid.currency, held=None, low=None, high=None,
            source=devices[first], why="without it there is no margin", moves=None,
            fill=fill.format(node=node, site=made.grid.site),
        )  # fmt: skip


def _price_of(made: Account) -> tuple[str, str, int]:
    return f"site:{made.grid.site}", "electricity", made.grid.period.from_us


def _unseen(made: Account) -> Iterator[Gap]:
    """Hours in which nobody saw the load: their power may be that of idling or of work."""
    grid = made.grid
    hours, swing = Fraction(0), Fraction(0)
    for stretch in grid.all():
        if stretch.state not in UNSEEN:
            continue
        about, us = f"device:{stretch.device}", stretch.us
        idle, load = (
            grid.terms.at(about, n, stretch.from_us) for n in ("idle_power_w", "load_power_w")
        )
        price = grid.terms.at(f"site:{grid.site}", "electricity", stretch.from_us)
        hours += Fraction(us, HOUR)
        if idle and load and price:
            swing += (load.value - idle.value) / 2 * Fraction(us, HOUR) / 1000 * price.value
    if hours:
        owned = sum((Fraction(stretch.us, HOUR) for stretch in grid.all()), Fraction(0))
        yield Gap(
            what=UNSEEN_LOAD, abouts=tuple(f"node:{node}" for node in grid.nodes), unit="h",
            held=hours, low=Fraction(0), high=owned, source="no fact says it",
            why="their power is taken half way between idling and work", moves=(swing, -swing),
            fill=f"ouvrage own state node:{next(iter(grid.nodes), 'NODE')} STATE --from TIME --to TIME, or "
            "ouvrage import vast-machines FILE",
        )  # fmt: skip


Case = tuple[str, tuple[str, ...], Known[Fraction]]


def _terms(made: Account) -> Iterator[Case]:
    """Every term that is assumed, with the objects that share the same assumption."""
    grid = made.grid
    for name, rule in RULES.items():
        if name == "expected_life_months":
            continue
        groups: dict[tuple[Fraction, str], list[tuple[str, Known[Fraction]]]] = {}
        for about in _objects(made, rule.about):
            held = term(made.record, about, name, grid.period.from_us)
            if held is not None and held.grade == Grade.ASSUMED:
                groups.setdefault((held.value, held.said_by), []).append((about, held))
        for members in groups.values():
            yield name, tuple(about for about, _ in members), members[0][1]


def _objects(made: Account, sorts: Iterable[str]) -> Iterator[str]:
    """The objects whose term counts: the widest sort that a term can be about."""
    grid = made.grid
    if "site" in sorts:
        yield f"site:{grid.site}"
    elif "node" in sorts:
        yield from (f"node:{node}" for node in grid.nodes)
    elif "channel" in sorts:
        channels = {
            cell.channel for line, cell in made.sums if cell.channel and line.startswith("revenue.")
        }
        yield from (f"channel:{channel}" for channel in sorted(channels))


def _term_gap(
    made: Account, base: int, name: str, abouts: tuple[str, ...], held: Known[Fraction]
) -> Gap:
    grid = made.grid
    model = next(iter(grid.models.values()), None)
    nodes = {about.partition(":")[2] for about in abouts}
    for device in (d for node, ds in grid.stretches.items() if node in nodes for d in ds):
        model = grid.models.get(device, model)
    rule = rule_for(name, abouts[0], model, grid.currency) or RULES[name]
    low, high = rule.low, rule.high
    moves = [Fraction(0), Fraction(0)]
    if low is not None and high is not None:
        low, high = min(low, held.value), max(high, held.value)
        moves = [_moved(made, base, abouts, name, end) for end in (low, high)]
    unit = rule.unit.replace("CUR", grid.currency)
    return Gap(
        what=name, abouts=abouts, unit="" if unit == "1" else unit, held=held.value, low=low, high=high,
        source=held.said_by, why=rule.why, moves=(moves[0], moves[1]),
        fill=f"ouvrage own term {abouts[0]} {name} VALUE",
    )  # fmt: skip


def _moved(made: Account, base: int, abouts: Iterable[str], name: str, value: Fraction) -> Fraction:
    record = made.record
    for about in abouts:
        record = record.with_term(about, name, value, said_by="what if")
        if name == "support_hours_month" and not _paid(made):
            record = record.with_term(about, "support_price", Fraction(20), said_by="what if")
        if name == "support_price" and not _hours(made):
            record = record.with_term(about, "support_hours_month", Fraction(1), said_by="what if")
    again = account(record, made.grid.site, made.grid.period)
    return money(profit_nano(again.sums, lambda _: True) - base)


def _paid(made: Account) -> bool:
    held = term(made.record, f"site:{made.grid.site}", "support_price", made.grid.period.from_us)
    return held is not None and held.value > 0


def _hours(made: Account) -> bool:
    held = term(
        made.record, f"site:{made.grid.site}", "support_hours_month", made.grid.period.from_us
    )
    return held is not None and held.value > 0


def _lives(made: Account, base: int) -> Iterator[Gap]:
    """Parts whose life is assumed: a shorter one costs more a month."""
    rule = RULES["expected_life_months"]
    guessed = [
        each
        for each in made.record.assets
        if each.grade == Grade.ASSUMED
        and made.grid.holds(each.value.about)
        and each.value.life_months
    ]
    for months in sorted({each.value.life_months or 0 for each in guessed}):
        ours = [each for each in guessed if each.value.life_months == months]
        ends = (min(rule.low or months, months), max(rule.high or months, months))
        moves = [_with_life(made, base, ours, int(end)) for end in ends]
        yield Gap(
            what="life of the parts", abouts=tuple(each.value.about for each in ours), unit="month",
            held=Fraction(months), low=Fraction(ends[0]), high=Fraction(ends[1]), source=rule.source,
            why=rule.why, moves=(moves[0], moves[1]),
            fill="ouvrage own asset NAME --of NODE --price AMOUNT --life-months N",
        )  # fmt: skip


def _with_life(made: Account, base: int, ours: list[Known[Asset]], months: int) -> Fraction:
    keys = {each.key for each in ours}
    assets = tuple(
        replace(each, value=replace(each.value, life_months=months)) if each.key in keys else each
        for each in made.record.assets
    )
    again = account(replace(made.record, assets=assets), made.grid.site, made.grid.period)
    return money(profit_nano(again.sums, lambda _: True) - base)


def held_text(gap: Gap) -> str:
    """The assumed value as a person reads it: at most four digits."""
    if gap.held is None:
        return "unknown"
    plural = "s" if gap.unit == "month" and gap.held != 1 else ""
    return _short(gap.held) + (f" {gap.unit}{plural}" if gap.unit else "")


def range_text(gap: Gap, to: str) -> str:
    """``26–77``, or nothing where no ends are known."""
    return "" if gap.low is None or gap.high is None else f"{_short(gap.low)}{to}{_short(gap.high)}"


def _short(value: Fraction) -> str:
    exact = decimal_text(value)
    return exact if len(exact.replace(".", "")) <= 4 else significant(value, 4)
