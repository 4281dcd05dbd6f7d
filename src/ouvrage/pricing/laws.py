"""The laws of pricing, over every run and every bill in a ledger.

They compute costs a second time, by another road than the sheet takes, and walk every figure's way
back. They do not say whether a price is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from ouvrage.base.price import PER_US
from ouvrage.evidence.figures import Sheet
from ouvrage.evidence.laws import sheet_breaches
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.laws import Law
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.pricing.accepted import SORTS, acceptance_fault
from ouvrage.pricing.job_laws import JOBS_ADD_UP
from ouvrage.pricing.market.laws import HOST_CHECKS_STAND, READINGS_STAND
from ouvrage.pricing.rates.record import BILLS_ADD_UP
from ouvrage.pricing.spending_laws import SPENDING_LAWS
from ouvrage.pricing.unit_cost import sheet_of

US = 1_000_000


def _sheets(records: Sequence[Recorded]) -> Iterable[tuple[RunView, Sheet]]:
    as_of = max((entry.recorded_at for entry in records), default=0)
    for view in run_views(records).values():
        yield view, sheet_of(view, as_of)


def _figures_stand(records: Sequence[Recorded]) -> Iterable[tuple[str, str]]:
    keys = {entry.fact.key for entry in records}
    for view, sheet in _sheets(records):
        for where, found in sheet_breaches(sheet, keys):
            yield f"{view.run} {where}", found


def _costs_recompute(records: Sequence[Recorded]) -> Iterable[tuple[str, str]]:
    for view, sheet in _sheets(records):
        for path, found in cost_breaches(view, sheet):
            yield f"{view.run} {path}", found


def cost_breaches(view: RunView, sheet: Sheet) -> Iterable[tuple[str, str]]:
    """Costs in a sheet that are not price x time, or a missing price that has become a cost."""
    price = view.started.price
    total, all_in = sheet.number("cost.total"), sheet.number("cost_per_unit.all_in")
    if price is None:
        for path in ("cost.total", "cost_per_unit.marginal", "cost_per_unit.all_in"):
            if sheet.number(path) is not None:
                yield path, "a cost without a price"
        return
    per_us = Fraction(Decimal(price.amount)) / PER_US[price.per]
    if total is None or total != per_us * view.wall_us:
        yield "cost.total", f"{total} is not price x wall time, {per_us * view.wall_us}"
    units = sheet.number("units") or Fraction(0)
    if all_in is None and units:
        yield "cost_per_unit.all_in", "unknown though units finished"
    if all_in is not None and all_in * units != total:
        yield "cost_per_unit.all_in", f"{all_in} x {units} units is not the cost of the run"
    for cost, seconds in (("marginal", "median"), ("low", "low"), ("high", "high")):
        paid, spent = (
            sheet.number(f"cost_per_unit.{cost}"),
            sheet.number(f"seconds_per_unit.{seconds}"),
        )
        expected = None if spent is None else spent * US * per_us
        if paid != expected:
            yield f"cost_per_unit.{cost}", f"{paid} is not price x time, {expected}"
    yield from _token_breaches(sheet)


def _token_breaches(sheet: Sheet) -> Iterable[tuple[str, str]]:
    """Costs of a million tokens that, times the tokens, are not the cost they were made from."""
    for path, figure in sheet.figures.items():
        if "cost_per_million_tokens" not in path or not isinstance(figure.value, Fraction):
            continue
        cost, *tokens = (sheet.number(name) for name in figure.inputs)
        many = sum((number or 0 for number in tokens), Fraction(0))
        if figure.value * many / 1_000_000 != cost:
            yield path, f"{figure.value} for each million of {many} tokens is not {cost}"


def _accepted_fits(records: Sequence[Recorded]) -> Iterable[tuple[str, str]]:
    for view in run_views(records).values():
        said = view.acceptance
        fault = acceptance_fault(said, reckon(view).units) if said else None
        if fault:
            yield view.run, fault


def _cost_split(records: Sequence[Recorded]) -> Iterable[tuple[str, str]]:
    for view in run_views(records).values():
        if view.acceptance is None:
            continue
        sheet = sheet_of(view, 0)
        parts = [sheet.number(f"cost.{sort}") for sort in SORTS]
        held = [part for part in parts if part is not None]
        total = sheet.number("cost.total")
        if held and (len(held) < len(parts) or min(held) < 0 or sum(held) != total):
            yield f"{view.run} cost", f"{parts} are not the parts of {total}"


LAWS: tuple[Law, ...] = (
    Law(
        name="pricing/figures-stand",
        statement="every figure stands on figures and facts that exist; its shares add up to 1",
        check=_figures_stand,
    ),
    Law(
        name="pricing/costs-recompute",
        statement="every cost is its price times its time; without a price there is none",
        check=_costs_recompute,
    ),
    BILLS_ADD_UP,
    READINGS_STAND,
    HOST_CHECKS_STAND,
    Law(
        name="pricing/accepted-fits",
        statement="no run has more accepted units than its meter counted, nor units of another name",
        check=_accepted_fits,
    ),
    Law(
        name="pricing/cost-split",
        statement="what a judged run cost is accepted, rejected, failed or cancelled, exactly",
        check=_cost_split,
    ),
    *SPENDING_LAWS,
    JOBS_ADD_UP,
)
