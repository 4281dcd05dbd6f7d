"""Two configurations of the same work, or more: which finishes a unit for less money.

Decides which runs may be compared at all (one unit, one currency), and gives each ratio its name,
its grade and its way back. The first run is what the others are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import weakest
from ouvrage.base.ids import code_of
from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.evidence.figures import Figure, Sheet, known, unknown
from ouvrage.evidence.published import claim_json, claim_sheet
from ouvrage.metering.cause import cause_of
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView
from ouvrage.model.claims import Claim
from ouvrage.pricing.comparison_text import comparison_lines
from ouvrage.pricing.pairs import Compared, Pair, SideBySide, pair_of
from ouvrage.pricing.report import report_json

RATIOS = (
    "price_ratio",
    "speed_up",
    "break_even_speed_up",
    "cost_ratio",
    "cost_ratio_low",
    "cost_ratio_high",
)


class Comparison(SideBySide):
    """Runs side by side, as JSON and as text."""

    __slots__ = ()

    def json(self) -> dict[str, Any]:
        """``{"runs": [...], "comparison": {...}}``; ratios are numbers rounded to six places."""
        only = self.pairs[0] if len(self.pairs) == 1 else None
        cheaper = self.cheaper
        comparison: dict[str, Any] = {
            name: _ratio_json(self.sheet, only.second.code, name) if only else None
            for name in RATIOS
        }
        comparison["cheaper"] = cheaper.view.run if cheaper else None
        comparison["distinguishable"] = cheaper is not None
        comparison["why_not"] = only.why if only else None
        comparison["figure"] = self.sheet.object
        comparison["as_of"] = utc_text(self.sheet.as_of)
        comparison["pairs"] = [self._pair_json(pair) for pair in self.pairs]
        if self.claim is not None and self.claim_sheet is not None:
            comparison["published"] = claim_json(self.claim, self.claim_sheet)
        return {
            "runs": [report_json(run.view, run.sheet) for run in self.runs],
            "comparison": comparison,
        }

    def lines(self, *, plain: bool = False) -> list[str]:
        """The lines of ``text``."""
        return comparison_lines(self, plain)

    def text(self, *, plain: bool = False) -> str:
        """Side by side for two runs, a table for more; the first line is the verdict."""
        return "\n".join(self.lines(plain=plain)) + "\n"

    def _pair_json(self, pair: Pair) -> dict[str, Any]:
        ratios = {name: _ratio_json(self.sheet, pair.second.code, name) for name in RATIOS}
        return {
            "first": pair.first.view.run,
            "second": pair.second.view.run,
            **ratios,
            "cheaper": pair.cheaper.view.run if pair.cheaper else None,
            "why_not": pair.why,
        }


def compare(
    views_and_sheets: Sequence[tuple[RunView, Sheet]], claim: Claim | None = None
) -> Comparison:
    """Compare runs with the first. Raises ``OuvrageError`` ``compare/...``: no common ground."""
    runs = _compared(views_and_sheets)
    _check(runs)
    pairs = tuple(pair_of(runs[0], other) for other in runs[1:])
    as_of = max(run.sheet.as_of for run in runs)
    figures = [figure for run in runs for figure in _copied(run)]
    figures += [figure for pair in pairs for figure in _pair_figures(pair)]
    if len(pairs) == 1:
        figures += [_short(figure) for figure in _pair_figures(pairs[0])]
    sheet = Sheet(
        object="+".join(run.code for run in runs),
        as_of=as_of,
        figures={figure.path: figure for figure in figures},
    )
    return Comparison(
        runs=runs,
        pairs=pairs,
        sheet=sheet,
        claim=claim,
        claim_sheet=claim_sheet(claim, as_of) if claim else None,
    )


def _compared(views_and_sheets: Sequence[tuple[RunView, Sheet]]) -> tuple[Compared, ...]:
    codes = [view.code for view, _ in views_and_sheets]
    length = 4
    while len(set(codes)) < len({view.run for view, _ in views_and_sheets}) and length < 12:
        length += 2
        codes = [code_of(view.run, length) for view, _ in views_and_sheets]
    labels = [view.started.label for view, _ in views_and_sheets]
    return tuple(
        Compared(
            name=safe(label) if label and labels.count(label) == 1 else code,
            code=code,
            view=view,
            sheet=sheet,
            reckoning=reckon(view),
            cause=cause_of(view, reckon(view)),
        )
        for (view, sheet), code, label in zip(views_and_sheets, codes, labels, strict=True)
    )


def _check(runs: Sequence[Compared]) -> None:
    if len({run.view.run for run in runs}) < 2 or len({run.code for run in runs}) < len(runs):
        raise OuvrageError(
            "compare/one-run", "a comparison needs two different runs, each named once",
            hint="ouvrage runs lists them",
        )  # fmt: skip
    names = sorted({run.reckoning.units.name for run in runs if run.reckoning.units.finished})
    if len(names) > 1:
        raise OuvrageError(
            "compare/unit",
            f"the runs finished different units: {', '.join(safe(name) for name in names)}",
            hint="meter both with the same --unit",
        )
    currencies = sorted({run.view.started.price.currency for run in runs if run.view.started.price})
    if len(currencies) > 1:
        raise OuvrageError(
            "compare/currency",
            f"the runs are priced in different currencies: {', '.join(currencies)}",
            hint="no exchange rate is assumed; meter both with prices in one currency",
        )


def _copied(run: Compared) -> Iterable[Figure]:
    """A run's figures under its code, so that each ratio's inputs stand in the same sheet."""
    for figure in run.sheet.figures.values():
        inputs = tuple(f"{run.code}.{name}" for name in figure.inputs)
        yield replace(figure, path=f"{run.code}.{figure.path}", inputs=inputs)


def _pair_figures(pair: Pair) -> Iterable[Figure]:
    codes = (pair.first.code, pair.second.code)
    prices = tuple(f"{code}.price.amount" for code in codes)
    times = tuple(f"{code}.seconds_per_unit.median" for code in codes)
    grades = {
        f"{run.code}.{path}": grade
        for run in (pair.first, pair.second)
        for path, figure in run.sheet.figures.items()
        if (grade := figure.grade) is not None
    }
    no_price = None if pair.price_ratio is not None else "a price is missing or nothing"
    no_time = None if pair.time_ratio is not None else pair.why
    speed_up = 1 / pair.time_ratio if pair.time_ratio else None
    low, high = pair.cost_edges() or (None, None)
    no_edges = no_price or no_time or pair.why
    method = pair.interval.method if pair.interval else "pairwise ratios"
    second_by_first = "price of the second by the price of the first"
    rows = (
        ("price_ratio", pair.price_ratio, second_by_first, prices, no_price),
        ("break_even_speed_up", pair.price_ratio, f"{second_by_first}: faster than this wins",
         prices, no_price),
        ("speed_up", speed_up, "median time per unit of the first by the second's", times, no_time),
        ("cost_ratio", pair.cost_ratio, "price ratio / speed-up", (*prices, *times),
         no_price or no_time),
        ("cost_ratio_low", low, f"price ratio x {method}", (*prices, *times), no_edges),
        ("cost_ratio_high", high, f"price ratio x {method}", (*prices, *times), no_edges),
    )  # fmt: skip
    for name, value, how, inputs, why in rows:
        path = f"{pair.second.code}.against_first.{name}"
        if value is None:
            yield unknown(path, "1", how, why or "not known", inputs=inputs)
        else:
            grade = weakest(grades[name] for name in inputs if name in grades)
            yield known(path, value, "1", grade, how, inputs=inputs)


def _short(figure: Figure) -> Figure:
    """A ratio of the only pair, under its short name."""
    return replace(figure, path=figure.path.rsplit(".", 1)[1])


def _ratio_json(sheet: Sheet, code: str, name: str) -> float | None:
    value = sheet.number(f"{code}.against_first.{name}")
    return None if value is None else float(fixed(value, 6))
