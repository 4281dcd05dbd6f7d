"""What one finished unit cost: every figure of one run, each with the way back to its facts.

Decides what marginal and all-in mean and which grade a cost carries. Marginal is the median time of
a unit after warm-up at the stated price; all-in is everything paid from the first to the last
second, shared among the finished units. Nothing is rounded here: values are exact fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest, weighted_shares, whole
from ouvrage.evidence.figures import Figure, Sheet, known, unknown
from ouvrage.metering.phases import WARMUP_RULE
from ouvrage.metering.reckoning import Reckoning, covered_us, neighbours_cpu, reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.statistics import median, median_interval
from ouvrage.metering.timeuse import KEYS, SPAN_RULE, TimeUse
from ouvrage.metering.units import facts_of_units
from ouvrage.pricing.accepted import accepted_figures
from ouvrage.pricing.communication import communication_figures
from ouvrage.pricing.energy import energy_figures
from ouvrage.pricing.inference import inference_figures

US = 1_000_000
NO_PRICE = "no price was given; add --price, for example --price 0.30/h"
STEADY = "steady"


def sheet_of(view: RunView, as_of: int) -> Sheet:
    """Every figure about a run, as known at ``as_of``."""
    reckoning = reckon(view)
    seconds = list(_seconds(view, reckoning))
    figures = [
        *_basics(view, reckoning),
        *seconds,
        *_phase_figures(view, reckoning),
        *_time_figures(view, "time", reckoning.whole),
        *_time_figures(view, STEADY, reckoning.steady),
        _price(view),
        *_costs(view, reckoning, seconds),
        *_worth(view, reckoning),
        *accepted_figures(view, reckoning),
        *energy_figures(view, reckoning),
        *communication_figures(view),
        *inference_figures(view, reckoning),
    ]
    return Sheet(object=view.code, as_of=as_of, figures={f.path: f for f in figures})


def _s(us: int | Fraction) -> Fraction:
    return Fraction(us) / US


def _assumed(view: RunView) -> Grade:
    """The grade of what rests on an assumption as well as on the run's facts."""
    return weakest((Grade.ASSUMED, view.grade))


def _basics(view: RunView, reckoning: Reckoning) -> Iterable[Figure]:
    units = reckoning.units
    end = view.facts("run.ended")
    lost = view.outcome == "lost"
    yield known(
        "wall_s",
        _s(view.wall_us),
        "s",
        view.grade,
        "from the start to the last moment in the spool" if lost else "from the start to the end",
        facts=view.facts("run.started") + (end or view.facts("run.window")),
    )
    yield known(
        "units",
        units.finished,
        units.name,
        view.grade,
        f"finished units, counted from {units.how}",
        facts=facts_of_units(view, units),
    )
    if view.wall_us > 0:
        yield known(
            "coverage",
            Fraction(min(covered_us(view), view.wall_us), view.wall_us),
            "1",
            view.grade,
            "share of the wall time in which samples came when they were due",
            inputs=("wall_s",),
            facts=view.facts("run.window"),
        )
    else:
        yield unknown("coverage", "1", "share of the wall time sampled", "the run took no time")
    yield _neighbours(view)


def _neighbours(view: RunView) -> Figure:
    share = neighbours_cpu(view)
    method = "CPU time of the machine less the run's own, as a share of all its CPU time meanwhile"
    if share is None:
        return unknown("neighbours_cpu", "1", method, "the machine did not tell its CPU time")
    facts = view.facts("run.window")
    return known("neighbours_cpu", share, "1", view.grade, method, facts=facts)


def _seconds(view: RunView, reckoning: Reckoning) -> Iterable[Figure]:
    units, values = reckoning.units, reckoning.per_unit_us
    facts = facts_of_units(view, units)
    if not values:
        why = "no unit finished" if not units.finished else "no unit could be timed"
        for name in ("median", "low", "high", "confidence"):
            yield unknown(f"seconds_per_unit.{name}", "s", "time per unit after warm-up", why)
        return
    method = f"median of {len(values)} timed units; {WARMUP_RULE}"
    yield known("seconds_per_unit.median", _s(median(values)), "s", view.grade, method, facts=facts)
    interval = median_interval(values)
    if interval is None:
        why = "one timed unit has no interval"
        for name in ("low", "high", "confidence"):
            yield unknown(f"seconds_per_unit.{name}", "s", "interval of the median", why)
        return
    for name, value in (("low", interval.low), ("high", interval.high)):
        path = f"seconds_per_unit.{name}"
        yield known(path, _s(value), "s", view.grade, interval.method, facts=facts)
    yield known(
        "seconds_per_unit.confidence",
        interval.confidence,
        "1",
        view.grade,
        f"probability that the interval holds the median: {interval.method}",
        facts=facts,
    )


def _phase_figures(view: RunView, reckoning: Reckoning) -> Iterable[Figure]:
    facts = facts_of_units(view, reckoning.units)
    methods = {
        "startup": "from the start to where the first unit is known to begin",
        "warmup": f"to the first unit that counts as steady; {WARMUP_RULE}",
        "steady": "to the last timed end of a unit",
        "rest": "to the end",
    }
    for name, length in reckoning.phases.lengths().items():
        path = f"phases.{name}_s"
        if length is None:
            yield unknown(path, "s", methods[name], "no unit could be timed")
        else:
            yield known(path, _s(length), "s", view.grade, methods[name], facts=facts)


def _time_figures(view: RunView, root: str, use: TimeUse) -> Iterable[Figure]:
    """The eight keys. The spans' part of each is measured, the rest assumed by the stated rule."""
    facts = view.facts("run.window", "run.spans")
    period = "the run" if root == "time" else "the steady phase"
    for key in KEYS:
        parts = [(view.grade, use.measured[key])]
        if key == "unknown":
            gap = min(use.gap_us, use.us[key])
            parts = [(view.grade, gap), (_assumed(view), use.us[key] - gap)]
        else:
            parts.append((_assumed(view), use.us[key] - use.measured[key]))
        held = [(grade, amount) for grade, amount in parts if amount]
        shares = weighted_shares([(Fraction(amount), whole(grade)) for grade, amount in held])
        grade = weakest(grade for grade, _ in held) if held else _empty_grade(view, use)
        rule = SPAN_RULE if use.measured[key] * 2 > use.us[key] else use.sample_rule
        yield known(
            f"{root}.{key}",
            _s(use.us[key]),
            "s",
            grade,
            f"part of {period}; {rule}",
            inputs=("wall_s",) if root == "time" else ("phases.steady_s",),
            facts=facts,
            shares=shares or whole(grade),
        )


def _empty_grade(view: RunView, use: TimeUse) -> Grade:
    """A key without any time is as good as the way it was looked for."""
    told_all = use.emitter and not any(_inferred_part(use))
    return view.grade if told_all else _assumed(view)


def _inferred_part(use: TimeUse) -> list[int]:
    return [use.us[key] - use.measured[key] for key in KEYS]


def _price(view: RunView) -> Figure:
    price = view.started.price
    if price is None:
        return unknown("price.amount", "1", "what the host costs", NO_PRICE)
    return known(
        "price.amount",
        Fraction(Decimal(price.amount)),
        f"{price.currency}/{price.per}",
        _assumed(view),
        "as typed on the command line",
        facts=view.facts("run.started"),
    )


def _costs(view: RunView, reckoning: Reckoning, seconds: Sequence[Figure]) -> Iterable[Figure]:
    price, finished = view.started.price, reckoning.units.finished
    currency = price.currency if price else "1"
    total_method, all_in_method = "price x wall time", "cost of the whole run / finished units"
    paths = {"marginal": "median", "low": "low", "high": "high"}
    if price is None:
        yield unknown("cost.total", currency, total_method, NO_PRICE)
        for path in (*paths, "all_in"):
            yield unknown(f"cost_per_unit.{path}", currency, "price x time", NO_PRICE)
        return
    total = price.cost_of(view.wall_us)
    inputs = ("price.amount", "wall_s")
    yield known("cost.total", total, currency, _assumed(view), total_method, inputs=inputs)
    if finished:
        yield known(
            "cost_per_unit.all_in",
            total / finished,
            currency,
            _assumed(view),
            all_in_method,
            inputs=("cost.total", "units"),
        )
    else:
        yield unknown("cost_per_unit.all_in", currency, all_in_method, "no unit finished")
    yield from _marginal(view, seconds, paths)


def _marginal(view: RunView, seconds: Sequence[Figure], paths: dict[str, str]) -> Iterable[Figure]:
    price = view.started.price
    assert price is not None
    by_path = {figure.path: figure for figure in seconds}
    for name, of in paths.items():
        held = by_path[f"seconds_per_unit.{of}"]
        path, method = f"cost_per_unit.{name}", f"price x {of} of the time per unit"
        if isinstance(held.value, Fraction):
            yield known(
                path,
                price.cost_of(held.value * US),
                price.currency,
                _assumed(view),
                method,
                inputs=("price.amount", held.path),
            )
        else:
            yield unknown(path, price.currency, method, held.why or "", inputs=(held.path,))


def _worth(view: RunView, reckoning: Reckoning) -> Iterable[Figure]:
    """What a unit would save if its largest wait were gone."""
    use, values, price = reckoning.steady, reckoning.per_unit_us, view.started.price
    key = use.largest_wait()
    method = "share of the steady phase spent in its largest wait x median time per unit"
    currency = price.currency if price else "1"
    if key is None or not values or not use.total_us:
        why = "no unit could be timed" if not values else "no wait was found"
        yield unknown("worth.seconds_per_unit", "s", method, why)
        yield unknown("worth.cost_per_unit", currency, f"price x ({method})", why)
        return
    saved = median(values) * Fraction(use.us[key], use.total_us)
    measured = use.measured[key] == use.us[key]
    grade = view.grade if measured else _assumed(view)
    inputs = (f"{STEADY}.{key}", "phases.steady_s", "seconds_per_unit.median")
    yield known("worth.seconds_per_unit", _s(saved), "s", grade, method, inputs=inputs)
    if price is None:
        yield unknown("worth.cost_per_unit", currency, f"price x ({method})", NO_PRICE)
        return
    yield known(
        "worth.cost_per_unit",
        price.cost_of(saved),
        currency,
        _assumed(view),
        "price x worth.seconds_per_unit",
        inputs=("price.amount", "worth.seconds_per_unit"),
    )
