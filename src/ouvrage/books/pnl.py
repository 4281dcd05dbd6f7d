"""The statement of a period: what each device, node, channel or tenant earned, and every cost of it.

Decides which figures a statement has and how each is made; where an amount belongs was decided when
it was posted. What nobody stated is unknown, and so is what is made from it, with the reason: a margin
without the price of the machine is not a margin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade, Shares, weakest, weighted_shares
from ouvrage.base.time import HOUR
from ouvrage.books.account import Account, account, money
from ouvrage.books.calendar import SOLD
from ouvrage.books.cells import UNNAMED, Cell, Sum
from ouvrage.books.costs import FIXED, VARIABLE
from ouvrage.books.electricity import CARBON, ENERGY, IDLE_ENERGY, LOAD_ENERGY
from ouvrage.books.known import MOST_DEVICES
from ouvrage.books.period import Period, months_in
from ouvrage.books.record import OwnerRecord
from ouvrage.books.revenue import ASKED, ASKED_HOURS, LINES, SOLD_HOURS
from ouvrage.evidence.fact_keys import FactKeys
from ouvrage.evidence.figures import Figure, Sheet, known, unknown
from ouvrage.model.occupancy import STATES
from ouvrage.pricing.market.gpus import model_of

BY = ("gpu", "node", "site", "channel", "tenant", "class")
UNSOLD = "unsold"
COSTS = (*VARIABLE, *FIXED, "tax")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sheet for each object of one sort, one for all of them together, and what to say beside."""

    site: str
    currency: str
    period: Period
    by: str
    rows: tuple[Sheet, ...]
    total: Sheet
    notes: tuple[str, ...]


def pnl(
    record: OwnerRecord, site: str, period: Period, by: str, *, payback: bool | None = None
) -> Statement:
    """The statement of a site over a period, an object of ``BY`` a row.

    ``payback`` adds what came back since the purchase, which goes over the whole record; None: for
    at most ``MOST_DEVICES``. Raises ``OuvrageError`` ``books/...``: no such site, a currency without
    a rate.
    """
    return statement_of(account(record, site, period), by, payback=payback)


def statement_of(made: Account, by: str, *, payback: bool | None = None) -> Statement:
    """The statement that an account gives, as ``pnl`` describes it."""
    grid, period = made.grid, made.grid.period
    wanted = len(grid.models) <= MOST_DEVICES if payback is None else payback
    so_far = _since_the_start(made.record, grid.site, period) if wanted else None
    key = key_of(made, by)
    groups: dict[str, list[Cell]] = {}
    for cell in made.cells:
        groups.setdefault(key(cell), []).append(cell)
    back = so_far if by in ("gpu", "node", "site") else None
    rows = [
        sheet_of(made, cells, f"{name}/{period.name}", back)
        for name, cells in sorted(groups.items(), key=lambda item: (item[0] == UNSOLD, item[0]))
    ]
    return Statement(
        site=grid.site,
        currency=grid.currency,
        period=period,
        by=by,
        rows=tuple(rows),
        total=sheet_of(made, made.cells, f"{grid.site}/{period.name}", so_far),
        notes=(*made.notes, *(_hours_nowhere(made, by))),
    )


def _hours_nowhere(made: Account, by: str) -> Iterable[str]:
    """Say that a channel or tenant earned in hours that nobody can give to it, with what they cost."""
    blank = sum(states.get("unknown", 0) for states in made.hours.values())
    earned = {c for line, c in made.sums if line.startswith("revenue.") and c.channel is not None}
    if by in ("channel", "tenant") and blank and earned - made.hours.keys():
        yield (
            f"of {blank // HOUR} h no fact says who had them: what they cost stands under {UNSOLD}, also "
            "where somebody had them, so the margin of what earned in them is too high"
        )


def sheet_named(made: Account, name: str) -> Sheet | None:
    """The sheet of one object: a node, GPU, site, channel, tenant or class, looked for in this order.

    With what came back since the purchase where a statement would have it. None for no such object.
    """
    for by in ("node", "gpu", "site", "channel", "tenant", "class"):
        key = key_of(made, by)
        cells = [cell for cell in made.cells if key(cell) == name]
        if cells:
            few = len(made.grid.models) <= MOST_DEVICES and by in ("gpu", "node", "site")
            period = made.grid.period
            so_far = _since_the_start(made.record, made.grid.site, period) if few else None
            return sheet_of(made, cells, f"{name}/{period.name}", so_far)
    return None


def key_of(made: Account, by: str) -> Callable[[Cell], str]:
    """Under which object of ``by`` a cell stands."""
    site, models = made.grid.site, made.grid.models
    keys: dict[str, Callable[[Cell], str]] = {
        "gpu": lambda cell: cell.device or cell.node or site,
        "node": lambda cell: cell.node or cell.device or site,
        "site": lambda _: site,
        "channel": lambda cell: cell.channel or UNSOLD,
        "tenant": lambda cell: cell.tenant or (UNNAMED if cell.channel else UNSOLD),
        "class": lambda cell: class_name(models.get(cell.device)),
    }
    if by not in keys:
        raise OuvrageError("books/by", f"{by!r} is no sort of object", hint=", ".join(BY))
    return keys[by]


def class_name(model: str | None) -> str:
    """A model as a name: ``RTX4090``; ``unnamed`` where nobody said which."""
    return model_of(model).replace(" ", "-") if model else UNNAMED


def _since_the_start(record: OwnerRecord, site: str, period: Period) -> Account | None:
    """The account from the first purchase to the end of the period, for what was paid back."""
    bought = [each.valid_from for each in record.assets]
    if not bought or min(bought) >= period.to_us:
        return None
    whole = Period(from_us=min(bought), to_us=period.to_us, name="so far", zone=period.zone)
    return account(record, site, whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The part of an account that one sheet is about."""

    made: Account
    cells: tuple[Cell, ...]
    lines: Mapping[str, Sum]
    currency: str

    def why(self, line: str) -> str | None:
        """Why a cost is not known here, or None."""
        devices = self.made.unknown.get(line, {})
        return next(
            (devices[c.device] for c in sorted(self.cells, key=str) if c.device in devices), None
        )

    def nano(self, line: str) -> int:
        """What stands under a line, 0 where nothing does."""
        return self.lines[line].nano if line in self.lines else 0


def sheet_of(made: Account, cells: Sequence[Cell], name: str, so_far: Account | None) -> Sheet:
    """Every figure about some cells of an account."""
    chosen = _chosen(made, tuple(cells))
    figures: dict[str, Figure] = {}
    steps: tuple[Callable[[_Chosen, Mapping[str, Figure]], Iterable[Figure]], ...] = (
        _hours, _revenue, _costs, _results, _rates, _limits,
    )  # fmt: skip
    for step in steps:
        for figure in step(chosen, figures):
            figures[figure.path] = figure
    if so_far is not None:
        for figure in _payback(_chosen(so_far, _same_objects(so_far, chosen)), chosen):
            figures[figure.path] = figure
    return Sheet(object=name, as_of=made.record.as_of, figures=figures)


def _chosen(made: Account, cells: tuple[Cell, ...]) -> _Chosen:
    lines: dict[str, Sum] = {}
    for cell in cells:
        for line, held in made.lines.get(cell, ()):
            into = lines.setdefault(line, Sum())
            into.nano += held.nano
            for grade, nano in held.by_grade.items():
                into.by_grade[grade] = into.by_grade.get(grade, 0) + nano
            into.methods.update(held.methods)
            into.keys.add(held.keys)
    return _Chosen(made=made, cells=cells, lines=lines, currency=made.grid.currency)


def _same_objects(so_far: Account, chosen: _Chosen) -> tuple[Cell, ...]:
    """The cells of the same devices and nodes in an account of another period."""
    devices = {(cell.node, cell.device) for cell in chosen.cells}
    return tuple(cell for cell in so_far.cells if (cell.node, cell.device) in devices)


def _hours(chosen: _Chosen, _: Mapping[str, Figure]) -> Iterable[Figure]:
    made = chosen.made
    states: dict[str, int] = dict.fromkeys(STATES, 0)
    grades: dict[Grade | None, int] = {}
    facts = FactKeys()
    for cell in chosen.cells:
        for state, us in made.hours.get(cell, {}).items():
            states[state] += us
        for grade, us in made.graded.get(cell, {}).items():
            grades[grade] = grades.get(grade, 0) + us
        facts.add(made.facts.get(cell, ()))
    placed, place_keys = _placed(chosen)
    owned = sum(states.values())
    how = "device time from its placing in a node to its removal, within the period"
    yield known("hours.owned", Fraction(owned, HOUR), "h", placed, how, facts=place_keys)
    certain = {grade: us for grade, us in grades.items() if grade is not None and us}
    shares = weighted_shares((Fraction(us), {grade: Fraction(1)}) for grade, us in certain.items())
    for state, us in states.items():
        told = state != "unknown" and certain
        yield known(
            f"hours.{state}", Fraction(us, HOUR), "h",
            weakest(certain) if told else placed,
            "time in this state by the calendar" if state != "unknown" else "time of which no fact says anything",
            facts=facts if us and told else (),
            shares=shares if us and told else None,
        )  # fmt: skip
    covered = Fraction(owned - states["unknown"], owned) if owned else Fraction(0)
    yield known(
        "coverage.hours", covered, "1", placed, "share of owned time of which a fact says the state"
    )


def _placed(chosen: _Chosen) -> tuple[Grade, tuple[str, ...]]:
    """The grade and the facts of where the devices stood."""
    placed = [
        each
        for device in {cell.device for cell in chosen.cells}
        for each in chosen.made.placed.get(device, ())
    ]
    grades = [each.grade for each in placed]
    keys = tuple(sorted(each.key for each in placed))
    return (weakest(grades) if grades else Grade.ASSUMED), keys


def _line(chosen: _Chosen, path: str, nothing: str) -> Figure:
    """What stands under a line: the amount, or 0 because nothing of the sort is recorded."""
    held = chosen.lines.get(path)
    if held is None:
        return known(path, 0, chosen.currency, Grade.ASSUMED, nothing)
    return known(
        path, money(held.nano), chosen.currency, weakest(held.by_grade),
        "; ".join(held.methods), facts=held.keys, shares=_shares(held),
    )  # fmt: skip


def _shares(held: Sum) -> Shares:
    parts = [(Fraction(abs(n)), {grade: Fraction(1)}) for grade, n in held.by_grade.items()]
    return weighted_shares(parts)


def _total(path: str, unit: str, parts: Sequence[tuple[int, Figure]], how: str) -> Figure:
    """A sum of figures with signs: unknown where one is, of the weakest grade among those not zero."""
    inputs = tuple(figure.path for _, figure in parts)
    missing = next((figure for _, figure in parts if figure.value is None), None)
    if missing is not None:
        return unknown(
            path, unit, how, f"{missing.path} is not known: {missing.why}", inputs=inputs
        )
    counted = [(sign, figure) for sign, figure in parts if figure.value]
    value = sum((sign * Fraction(figure.value or 0) for sign, figure in counted), Fraction(0))
    grades = [figure.grade for _, figure in counted if figure.grade is not None]
    shares = weighted_shares((abs(Fraction(f.value or 0)), f.shares) for _, f in counted)
    grade = weakest(grades) if grades else Grade.ASSUMED
    return known(path, value, unit, grade, how, inputs=inputs, shares=shares or None)


LEAST_COVERED = Fraction(9, 10)
"""The share of owned time of which something must be known before a sum of it is called revenue."""


def _revenue(chosen: _Chosen, made: Mapping[str, Figure]) -> Iterable[Figure]:
    figures = [
        _line(chosen, f"revenue.{name}", "nothing of the sort is recorded") for name in LINES
    ]
    yield from figures
    parts = [(1, figure) for figure in figures]
    yield _total("revenue.recorded", chosen.currency, parts, "all revenue that is recorded")
    told, owned = _coverage(chosen)
    covered = Fraction(told, owned) if owned else Fraction(1)
    how = "share of owned time of which a fact says what was done or earned"
    yield known("coverage.revenue", covered, "1", made["hours.owned"].grade or Grade.ASSUMED, how)
    if covered >= LEAST_COVERED:
        yield _total("revenue.total", chosen.currency, parts, "all revenue")
    else:
        blank = f"{min(99, round(100 * (1 - covered)))} % of the" if covered else "all the"
        why = f"of {blank} time no fact says what was done or earned"
        inputs = [figure.path for figure in figures]
        yield unknown("revenue.total", chosen.currency, "all revenue", why, inputs=inputs)


def _coverage(chosen: _Chosen) -> tuple[int, int]:
    """The time of these devices of which something is known, and the time owned."""
    covered = chosen.made.covered
    both = [covered[d] for d in {cell.device for cell in chosen.cells} if d in covered]
    return sum(told for told, _ in both), sum(owned for _, owned in both)


def _sold_us(chosen: _Chosen) -> int:
    hours = chosen.made.hours
    return sum(us for c in chosen.cells for state, us in hours.get(c, {}).items() if state in SOLD)


def _unknown_us(chosen: _Chosen) -> int:
    return sum(chosen.made.hours.get(cell, {}).get("unknown", 0) for cell in chosen.cells)


_NOTHING = {
    "failed": "no credit given for failed work is recorded",
    "interest": "no loan is recorded",
    "tax": "no profit, or no tax stated",
    "fee": "nothing was earned that a channel takes a share of",
}


def _costs(chosen: _Chosen, _: Mapping[str, Figure]) -> Iterable[Figure]:
    figures: list[Figure] = []
    for name in COSTS:
        why = chosen.why(name)
        nothing = _NOTHING.get(name, "none is recorded or stated")
        if why is not None:
            figures.append(
                unknown(f"cost.{name}", chosen.currency, "a cost that nobody stated", why)
            )
        else:
            figures.append(_line(chosen, f"cost.{name}", nothing))
    yield from figures
    yield _total("cost.total", chosen.currency, [(1, figure) for figure in figures], "all costs")


def _results(chosen: _Chosen, made: Mapping[str, Figure]) -> Iterable[Figure]:
    revenue = made["revenue.total"]
    variable = [(-1, made[f"cost.{name}"]) for name in VARIABLE]
    rest = [(-1, made[f"cost.{name}"]) for name in (*FIXED, "tax")]
    how = "revenue less power, cooling, fees, bandwidth and failed work credited"
    yield _total("contribution", chosen.currency, [(1, revenue), *variable], how)
    margin = _total(
        "margin.net", chosen.currency, [(1, revenue), *variable, *rest], "revenue less every cost"
    )
    yield margin
    owned = made["hours.owned"]
    yield _ratio("margin.share", margin, revenue, "1", "margin / revenue")
    yield _ratio(
        "margin.per_owned_hour", margin, owned, f"{chosen.currency}/h", "margin / hours owned"
    )
    yield _ratio(
        "revenue.per_owned_hour", revenue, owned, f"{chosen.currency}/h", "revenue / hours owned"
    )


def _ratio(path: str, above: Figure, below: Figure, unit: str, how: str) -> Figure:
    inputs = (above.path, below.path)
    for each in (above, below):
        if each.value is None:
            return unknown(path, unit, how, f"{each.path} is not known: {each.why}", inputs=inputs)
    divisor = Fraction(below.value or 0)
    if not divisor:
        return unknown(path, unit, how, f"{below.path} is nothing", inputs=inputs)
    grades = [each.grade for each in (above, below) if each.grade is not None]
    value = Fraction(above.value or 0) / divisor
    return known(
        path, value, unit, weakest(grades), how, inputs=inputs, shares=above.shares or None
    )


def _rates(chosen: _Chosen, made: Mapping[str, Figure]) -> Iterable[Figure]:
    sold = _sold(chosen, made)
    yield sold
    hours = _total(
        "hours.known", "h", [(1, made["hours.owned"]), (-1, made["hours.unknown"])],
        "owned time of which a fact says the state",
    )  # fmt: skip
    yield hours
    by_calendar = sold.method == BY_CALENDAR
    base = hours if by_calendar else made["hours.owned"]
    words = "of the hours whose state is known" if by_calendar else "of the hours owned"
    seen = made["coverage.hours"].value
    if by_calendar and seen is not None and Fraction(seen) < LEAST_SEEN:
        why = "of more than half of the hours no fact says the state"
        yield unknown("utilisation", "1", words, why, inputs=(sold.path, base.path))
    else:
        yield _ratio("utilisation", sold, base, "1", f"hours sold, {words}")
    per_hour = f"{chosen.currency}/h"
    asked = _memo(chosen, ASKED, "asked.money", chosen.currency, "price asked x hours")
    asked_hours = _memo(chosen, ASKED_HOURS, "asked.hours", "h", "hours at a price asked")
    yield asked
    yield asked_hours
    yield _ratio(
        "rate.list", asked, asked_hours, per_hour, "price asked, averaged over the hours sold"
    )
    if made["revenue.total"].value is None:
        why, inputs = made["revenue.total"].why or "", ("revenue.gpu", sold.path)
        yield unknown("rate.effective", per_hour, "GPU revenue / hours sold", why, inputs=inputs)
    else:
        yield _ratio(
            "rate.effective", made["revenue.gpu"], sold, per_hour, "GPU revenue / hours sold"
        )
    yield _ratio("margin.per_sold_hour", made["margin.net"], sold, per_hour, "margin / hours sold")


LEAST_SEEN = Fraction(1, 2)
"""The share of owned hours whose state must be known before a share sold is told from them."""

BY_CALENDAR = "working + held + reserved by the calendar"


def _sold(chosen: _Chosen, made: Mapping[str, Figure]) -> Figure:
    """Hours sold: by the calendar; else as channels state; else as follows from the price asked."""
    us, blank = _sold_us(chosen), _unknown_us(chosen)
    stated, implied = chosen.lines.get(SOLD_HOURS), chosen.lines.get(ASKED_HOURS)
    if us or not blank:
        inputs = tuple(f"hours.{state}" for state in SOLD)
        grade = weakest(g for f in inputs if (g := made[f].grade) is not None)
        return known("hours.sold", Fraction(us, HOUR), "h", grade, BY_CALENDAR, inputs=inputs)
    for held, how in (
        (stated, "as the channels state them"),
        (implied, "earned / the price asked, since nothing says what the devices did"),
    ):
        if held is not None:
            grade = weakest((*held.by_grade, *([Grade.ASSUMED] if held is implied else [])))
            return known("hours.sold", money(held.nano), "h", grade, how, facts=held.keys)
    why = "no fact says what the devices did, and no price asked is recorded"
    return unknown("hours.sold", "h", BY_CALENDAR, why)


def _memo(chosen: _Chosen, line: str, path: str, unit: str, how: str) -> Figure:
    held = chosen.lines.get(line)
    if held is None:
        return unknown(path, unit, how, "no price asked is recorded")
    return known(path, money(held.nano), unit, weakest(held.by_grade), how, facts=held.keys)


def _limits(chosen: _Chosen, made: Mapping[str, Figure]) -> Iterable[Figure]:
    """Energy, the utilisation at which nothing is lost, and the price that pays an hour's own cost."""
    kwh = chosen.lines.get(ENERGY)
    if kwh is not None and chosen.why("electricity") is None:
        yield known(
            "energy", money(kwh.nano), "kWh", weakest(kwh.by_grade), "; ".join(kwh.methods),
            facts=kwh.keys, shares=_shares(kwh),
        )  # fmt: skip
    else:
        why = chosen.why("electricity") or "no device stood there"
        yield unknown("energy", "kWh", "energy of the machines", why)
    yield _carbon(chosen)
    yield _break_even(chosen, made)
    yield _floor(chosen, made)


def _carbon(chosen: _Chosen) -> Figure:
    held, how = chosen.lines.get(CARBON), "energy with its cooling x the carbon of a kilowatt-hour"
    if held is None:
        return unknown("carbon", "kg", how, "no term says how much carbon a kilowatt-hour takes")
    return known("carbon", money(held.nano), "kg", weakest(held.by_grade), how, facts=held.keys)


def _power_per_kwh(chosen: _Chosen) -> Fraction:
    """What a kilowatt-hour cost on average, cooling included; 0 where none was used."""
    kwh = chosen.nano(ENERGY)
    return (
        Fraction(chosen.nano("cost.electricity") + chosen.nano("cost.cooling"), kwh)
        if kwh
        else Fraction(0)
    )


def _break_even(chosen: _Chosen, made: Mapping[str, Figure]) -> Figure:
    path = "break_even_utilisation"
    how = (
        "costs that do not depend on what is sold / (what an hour sold leaves after fees, credits "
        "and the power beyond idling x the hours of the calendar)"
    )
    needed = [made[p] for p in ("revenue.total", "cost.total", "hours.sold", "hours.owned")]
    inputs = [figure.path for figure in needed]
    for figure in needed:
        if not figure.value:
            why = (
                f"{figure.path} is not known: {figure.why}"
                if figure.value is None
                else f"{figure.path} is nothing"
            )
            return unknown(path, "1", how, why, inputs=inputs)
    revenue, costs, sold, owned = (Fraction(figure.value or 0) for figure in needed)
    idle = money(chosen.nano(IDLE_ENERGY)) * _power_per_kwh(chosen)
    power = money(chosen.nano("cost.electricity") + chosen.nano("cost.cooling"))
    moving = money(chosen.nano("cost.fee") + chosen.nano("cost.failed")) + max(
        power - idle, Fraction(0)
    )
    left = (revenue - moving) / sold
    if left <= 0:
        return unknown(path, "1", how, "an hour sold costs more than it earns", inputs=inputs)
    fixed = costs - moving - money(chosen.nano("cost.tax"))
    grades = [figure.grade for figure in needed if figure.grade is not None]
    return known(path, fixed / left / owned, "1", weakest(grades), how, inputs=inputs)


def _floor(chosen: _Chosen, made: Mapping[str, Figure]) -> Figure:
    path, unit = "price_floor", f"{chosen.currency}/h"
    how = "power at the wall under load with cooling, x its price / (1 - the channels' share)"
    inputs = ("energy", "cost.electricity", "cost.cooling", "cost.fee", "revenue.total")
    load, owned = chosen.lines.get(LOAD_ENERGY), made["hours.owned"].value
    if load is None or not owned or not chosen.nano(ENERGY):
        why = chosen.why("electricity") or "the power under load is not known"
        return unknown(path, unit, how, why, inputs=inputs)
    per_hour = money(load.nano) / Fraction(owned) * _power_per_kwh(chosen)
    earned = Fraction(made["revenue.total"].value or 0)
    share = money(chosen.nano("cost.fee")) / earned if earned else Fraction(0)
    if share >= 1:
        return unknown(path, unit, how, "the channels keep everything", inputs=inputs)
    grades = [*load.by_grade, *(g for p in inputs[1:3] if (g := made[p].grade) is not None)]
    return known(
        path, per_hour / (1 - share), unit, weakest(grades), how, inputs=inputs, facts=load.keys
    )


def _payback(so_far: _Chosen, chosen: _Chosen) -> Iterable[Figure]:
    """What came back since the purchase, of what was paid."""
    currency = chosen.currency
    about = {f"device:{cell.device}" for cell in so_far.cells} | {
        f"node:{cell.node}" for cell in so_far.cells
    }
    if len({cell.node for cell in so_far.made.cells} - {cell.node for cell in so_far.cells}) == 0:
        about.add(f"site:{so_far.made.grid.site}")
    bought = [each for each in so_far.made.record.assets if each.value.about in about]
    how = "prices of the parts bought so far"
    if not bought or any(each.value.currency != currency for each in bought):
        why = "no price of purchase is recorded in the books' currency"
        price = unknown("payback.price", currency, how, why)
    else:
        whole = sum((Fraction(each.value.price) for each in bought), Fraction(0))
        grade, keys = weakest(each.grade for each in bought), [each.key for each in bought]
        price = known("payback.price", whole, currency, grade, how, facts=keys)
    yield price
    made: dict[str, Figure] = {}
    for step in (_hours, _revenue, _costs):
        made.update({figure.path: figure for figure in step(so_far, made)})
    paid = [(-1, made[f"cost.{name}"]) for name in COSTS if name != "depreciation"]
    words = "revenue less every cost but depreciation, since the first purchase"
    blank = _blank_month(so_far)
    if blank is not None:
        why = f"nothing is recorded of {blank}, so nobody knows what came back then"
        back = unknown("payback.so_far", currency, words, why)
    else:
        sums = _total("payback.so_far", currency, [(1, made["revenue.total"]), *paid], words)
        back = replace(sums, inputs=())  # its parts are of another period than this sheet's
    yield back
    yield _ratio("payback.share", back, price, "1", "what came back / what was paid")


def _blank_month(so_far: _Chosen) -> str | None:
    """The first month since the purchase of which no fact says what was earned or done."""
    grid, record = so_far.made.grid, so_far.made.record
    nodes = {cell.node for cell in so_far.cells}
    spans = [
        (each.valid_from, each.end)
        for each in (*record.earnings, *record.leases)
        if each.value.about.partition(":")[2] in nodes | grid.models.keys()
        or each.value.about == f"site:{grid.site}"
    ]
    spans += [
        (stretch.from_us, stretch.to_us)
        for node in nodes
        for stretches in grid.stretches.get(node, {}).values()
        for stretch in stretches
        if stretch.grade is not None
    ]
    begun = min((s.from_us for s in grid.all() if s.node in nodes), default=grid.period.to_us)
    for month in months_in(begun, grid.period.to_us, grid.period.zone):
        if not any(begins < month.to_us and month.from_us < ends for begins, ends in spans):
            return month.name
    return None
