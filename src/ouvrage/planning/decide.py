"""Grow, reprice, hold, repurpose or retire: what the record of a machine supports, and how surely.

Decides by money: each course is worth what it would add a day to holding on, with an interval from the
machine's own days, and is taken only where even the low end is worth the change and the owner's limits
hold. Where too few days are covered, or a cost is not known, the answer is *not yet*. What would change an
answer is found by asking the same question of days with other prices and hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from ouvrage.base.grades import Grade
from ouvrage.books.cells import UNNAMED
from ouvrage.books.days import Day
from ouvrage.books.period import day_of
from ouvrage.planning import average_day as a
from ouvrage.planning.average_day import Average
from ouvrage.planning.chance import Chance
from ouvrage.planning.intervals import BLOCK_DAYS, Draws, Range, Row, draw
from ouvrage.planning.rules import Numbers

GROW, REPRICE, HOLD, REPURPOSE, RETIRE = "grow", "reprice", "hold", "repurpose", "retire"
ACTIONS = (GROW, REPRICE, HOLD, REPURPOSE, RETIRE)
MONTH_DAYS = 365 / 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is decided about: a machine's days, and what is agreed about it.

    Money in ``currency``. ``tax`` is a share of profits, ``opportunity`` what money earns elsewhere a
    year, ``price`` what the parts that stand there cost (None: not known), ``own_price`` an hour of own
    use (None: not stated), ``support_h`` support a month. ``grade`` is the weakest of the window's margin;
    ``seed`` the words from which the bootstrap draws.
    """

    name: str
    currency: str
    zone: str
    days: tuple[Day, ...]
    tax: float
    opportunity: float
    price: float | None
    own_price: float | None
    support_h: float
    grade: Grade | None
    seed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A figure held against a limit: ``relation`` is ``above`` or ``below``, ``holds`` whether it is so.

    ``name`` is a figure's name, ``unit`` ``1``, ``h`` or the currency.
    """

    name: str
    value: Range
    relation: str
    limit: float
    holds: bool
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One thing to do instead of holding: what it would add a day, what it needs, whether it may be taken.

    ``step`` is the change of price of a repricing, as a share.
    """

    action: str
    gain: Range
    reasons: tuple[Reason, ...]
    step: float | None = None

    @property
    def taken(self) -> bool:
        """Whether every reason holds."""
        return all(reason.holds for reason in self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``what`` (``price`` or ``sold``) at ``value``, below it or above, would make it another action."""

    what: str
    below: bool
    value: float
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer: ``action``, or what it points to so far where ``settled`` is not (None: nothing yet).

    ``why_not`` says what is lacking, ``ask_again`` is the day on which to ask anew. ``figures`` are per
    day or shares, each with its 90 % interval. ``courses`` are all that were weighed.
    """

    action: str | None
    settled: bool
    why_not: str | None
    counted: int
    ask_again: date
    figures: Mapping[str, Range]
    courses: tuple[Course, ...]
    changes: tuple[Change, ...]
    top_tenant: tuple[str, float] | None
    grade: Grade | None
    rules: Numbers = field(repr=False)

    @property
    def course(self) -> Course | None:
        """The course taken; None for holding on."""
        return next((course for course in self.courses if course.action == self.action), None)


def decide(case: Case, rules: Numbers, *, changes: bool = True) -> Decision:
    """The answer to a case. ``changes`` False leaves out what would change it, the slowest part."""
    counted = [day for day in case.days if _covered(day) >= rules["least_covered"] and day.owned]
    needed = round(rules["least_days"])
    last = day_of(case.days[-1].to_us - 1, case.zone) if case.days else date.min
    lacking = _lacking(case, counted, needed)
    ask = last + timedelta(days=max(1, needed - len(counted)) if lacking else round(MONTH_DAYS))
    blind = any(day.unknown for day in counted) or len(counted) < 2 * BLOCK_DAYS
    if blind:
        return Decision(
            action=None, settled=False, why_not=lacking, counted=len(counted), ask_again=ask, figures={},
            courses=(), changes=(), top_tenant=_top(counted), grade=case.grade, rules=rules,
        )  # fmt: skip
    draws = draw([a.average(day) for day in counted], Chance.of(case.seed))
    weighed = Weighed(case=case, rules=rules, top=_top(counted))
    courses = tuple(weighed.courses(draws))
    action = best(courses)
    found = tuple(_changes(weighed, draws, action)) if changes else ()
    return Decision(
        action=action, settled=lacking is None, why_not=lacking, counted=len(counted), ask_again=ask,
        figures=weighed.figures(draws), courses=courses, changes=found, top_tenant=weighed.top,
        grade=case.grade, rules=rules,
    )  # fmt: skip


def _covered(day: Day) -> float:
    return day.told / day.owned if day.owned else 0.0


def _lacking(case: Case, counted: Sequence[Day], needed: int) -> str | None:
    """Why there is no decision yet, or None."""
    unknown = next((item for day in counted for item in sorted(day.unknown.items())), None)
    if unknown is not None:
        return f"{unknown[0]} is not known: {unknown[1]}"
    if len(counted) < needed:
        sparse = len(case.days) - len(counted)
        beside = f" ({sparse} more are not covered well enough)" if sparse else ""
        return f"{len(counted)} days of record{beside}, {needed} needed"
    return None


def _top(days: Sequence[Day]) -> tuple[str, float] | None:
    """The named tenant with the most hours, and its share of all hours sold."""
    hours: dict[str, int] = {}
    for day in days:
        for (_, tenant), us in day.tenants.items():
            hours[tenant] = hours.get(tenant, 0) + us
    total = sum(hours.values())
    named = {tenant: us for tenant, us in hours.items() if tenant != UNNAMED}
    if not named or not total:
        return None
    most = max(sorted(named), key=lambda tenant: named[tenant])
    return most, named[most] / total


def best(courses: Sequence[Course]) -> str:
    """The course that adds the most among those that may be taken; else to hold on."""
    taken = [course for course in courses if course.taken]
    return max(taken, key=lambda course: course.gain.value).action if taken else HOLD


Figure = Callable[[Row], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A case with its rules, to be weighed on any draws of days."""

    case: Case
    rules: Numbers
    top: tuple[str, float] | None

    def figures(self, draws: Draws) -> dict[str, Range]:
        """The figures that a person is shown."""
        tax = self.case.tax
        return {
            "margin_per_day": draws.range(lambda row: a.margin(row, tax)),
            "margin_per_owned_hour": draws.range(lambda row: a.margin(row, tax) / (row[0] or 1)),
            "utilisation": draws.range(a.utilisation),
            "break_even": draws.range(a.even),
            "rate": draws.range(a.rate),
            "downtime": draws.range(a.downtime),
            "keep_per_day": draws.range(lambda row: a.keep(row, self.rules)),
            "revenue_per_day": draws.range(lambda row: Average(*row).revenue),
        }

    def courses(self, draws: Draws) -> Iterator[Course]:
        """Every course there is, weighed."""
        if self.case.price is not None:
            yield self._grow(draws, self.case.price)
        yield self._reprice(draws)
        if self.case.own_price:
            yield self._repurpose(draws, self.case.own_price)
        yield self._retire(draws)

    def _worth(self, draws: Draws, gain: Range) -> Reason:
        """Whether a gain is worth a change, even at its low end."""
        least = self.rules["least_gain"] * Average(*draws.mean).revenue
        return self._reason("gain_per_day", gain, "above", least, self.case.currency)

    def _reason(self, name: str, value: Range, relation: str, limit: float, unit: str) -> Reason:
        holds = value.low > limit if relation == "above" else value.high < limit
        return Reason(
            name=name, value=value, relation=relation, limit=limit, holds=holds, unit=unit
        )

    def _grow(self, draws: Draws, price: float) -> Course:
        case, rules = self.case, self.rules
        gain = draws.range(lambda row: a.grown(row, rules, price, case.opportunity))
        use = draws.range(a.utilisation)
        above = a.even(draws.mean) + rules["grow_above_even"]
        months = draws.range(lambda row: _payback(row, rules, price, case))
        share = self.top[1] if self.top else 0.0
        reasons = (
            self._worth(draws, gain),
            self._reason("utilisation", use, "above", min(above, 9.99), "1"),
            self._reason("downtime", _point(a.downtime(draws.mean)), "below", rules["grow_downtime"], "1"),
            self._reason("top_tenant", _point(share), "below", rules["grow_top_tenant"], "1"),
            self._reason("support", _point(case.support_h), "below", rules["grow_support_hours"], "h"),
            self._reason("payback_months", months, "below", rules["grow_payback_months"], "months"),
        )  # fmt: skip
        return Course(action=GROW, gain=gain, reasons=reasons)

    def _reprice(self, draws: Draws) -> Course:
        """The best of some prices, which must not lose whatever demand is like within reason."""
        rules, one = self.rules, self.rules["price_step"]
        steps = (-2 * one, -one, one, 2 * one)

        def gain(step: float, elasticity: str) -> Figure:
            return lambda row: a.repriced(row, step, rules[elasticity])

        best = max(steps, key=lambda step: gain(step, "elasticity")(draws.mean))
        likely = draws.range(gain(best, "elasticity"))
        ends = [
            gain(best, end)(draws.mean)
            for end in ("elasticity", "elasticity_low", "elasticity_high")
        ]
        reasons = (
            self._worth(draws, likely),
            self._reason("gain_if_demand_differs", _point(min(ends)), "above", 0.0, self.case.currency),
        )  # fmt: skip
        return Course(action=REPRICE, gain=likely, reasons=reasons, step=best)

    def _repurpose(self, draws: Draws, own: float) -> Course:
        gain = draws.range(lambda row: a.repurposed(row, self.rules, own))
        return Course(action=REPURPOSE, gain=gain, reasons=(self._worth(draws, gain),))

    def _retire(self, draws: Draws) -> Course:
        gain = draws.range(lambda row: -a.keep(row, self.rules))
        return Course(action=RETIRE, gain=gain, reasons=(self._worth(draws, gain),))


def _point(value: float) -> Range:
    return Range(value=value, low=value, high=value)


def _payback(row: Row, rules: Numbers, price: float, case: Case) -> float:
    """Months until another machine has paid its price, tax and interest counted; 999 at most."""
    gain = a.grown(row, rules, price, case.opportunity)
    cash = gain - case.tax * max(0.0, gain) + Average(*row).depreciation
    return min(999.0, price / cash / MONTH_DAYS) if cash > 0 else 999.0


def _changes(weighed: Weighed, draws: Draws, action: str) -> Iterator[Change]:
    """The nearest price and share sold, below and above, at which the answer is another one."""
    for what, change, figure in (("price", a.dearer, a.rate), ("sold", a.fuller, a.utilisation)):
        for below in (True, False):
            found = _turning(weighed, draws, action, change, below)
            if found is not None:
                factor, other = found
                value = figure(change(draws.mean, factor))
                yield Change(what=what, below=below, value=value, action=other)


def _turning(
    weighed: Weighed,
    draws: Draws,
    action: str,
    change: Callable[[Row, float], Average],
    below: bool,
) -> tuple[float, str] | None:
    """The factor nearest to 1 at which another answer comes, within a third of it and three times it."""

    def answer(factor: float) -> str:
        return best(tuple(weighed.courses(draws.changed(lambda row: change(row, factor)))))

    near, far, other = 1.0, 1.0, action
    for step in (0.9, 0.75, 0.5, 0.33) if below else (1.1, 1.25, 1.5, 2.0, 3.0):
        near, far, other = far, step, answer(step)
        if other != action:
            break
    if other == action:
        return None
    for _ in range(6):
        middle = (near + far) / 2
        found = answer(middle)
        if found == action:
            near = middle
        else:
            far, other = middle, found
    return far, other
