"""The page of a comparison: the verdict, both hosts side by side, and where the money went.

Decides the pictures; the verdict, its words and all digits are the command's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from ouvrage.base.numbers import fixed
from ouvrage.base.time import utc_text
from ouvrage.console.page import Drawing, Page, Row, Shown
from ouvrage.console.pictures import Interval, Pier, Strip, bridge, intervals, strips
from ouvrage.console.shown import name_in, shown, shown_to_precision, strip_parts
from ouvrage.metering.cause import NAMES
from ouvrage.pricing.comparison import Compared, Comparison
from ouvrage.pricing.summary import crowd_words
from ouvrage.pricing.words import counted, mark, percent


def comparison_page(comparison: Comparison) -> Page:
    """The page of a comparison."""
    lines = comparison.lines()
    runs = comparison.runs
    return Page(
        title=f"{' and '.join(run.name for run in runs)} · Ouvrage",
        headline=lines[0],
        lead=tuple(_why(run) for run in runs),
        columns=(*(run.name for run in runs), "difference" if len(runs) == 2 else ""),
        rows=tuple(_rows(comparison)),
        drawings=tuple(_drawings(comparison)),
        notes=tuple(f"{run.name}: {words}" for run in runs if (words := crowd_words(run.view))),
        claim=_claim(lines),
        about=tuple(
            (run.name, f"{run.code}: {' '.join(run.view.started.command)}") for run in runs
        ),
        said="\n".join(lines),
        as_of=utc_text(comparison.sheet.as_of),
    )


def _why(run: Compared) -> str:
    return f"{run.name}: {run.cause.evidence}{mark(run.cause.grade, False)}"


def _rows(comparison: Comparison) -> list[Row]:
    runs, unit = comparison.runs, comparison.runs[0].reckoning.units.name
    rows = []
    if any(run.view.started.price for run in runs):
        rows.append(
            Row(
                label="price",
                cells=tuple(_price(run) for run in runs),
                difference=_ratio(comparison, "price_ratio", "×"),
            )
        )
    rows.append(
        Row(
            label=f"seconds per {unit}",
            cells=tuple(_ranged(run, "seconds_per_unit.median", "") for run in runs),
            difference=_ratio(comparison, "speed_up", "÷"),
        )
    )
    if any(run.view.started.price for run in runs):
        rows.append(
            Row(
                label=f"cost per {unit}",
                cells=tuple(_ranged(r, "cost_per_unit.marginal", _currency(r)) for r in runs),
                difference=_cost_change(comparison),
            )
        )
        rows.append(
            Row(
                label=f"all-in per {unit}",
                cells=tuple(shown(r.sheet, "cost_per_unit.all_in", _currency(r)) for r in runs),
            )
        )
        rows.append(
            Row(
                label="paid",
                cells=tuple(shown(r.sheet, "cost.total", _currency(r)) for r in runs),
                difference=Shown(text=f"for {_counts(runs)}"),
            )
        )
    return [*rows, *_time_rows(runs)]


def _time_rows(runs: Sequence[Compared]) -> list[Row]:
    """Shares of the steady phase, for the kinds of time that took one per cent somewhere."""
    rows = []
    for key, words in NAMES.items():
        shares = [_share(run, key) for run in runs]
        if all(share < Fraction(1, 100) for share in shares):
            continue
        cells = tuple(
            Shown(
                text=percent(share),
                grade=run.sheet[f"steady.{key}"].grade,
                name=name_in(run.sheet, f"steady.{key}"),
            )
            for run, share in zip(runs, shares, strict=True)
        )
        rows.append(Row(label=words, cells=cells))
    return rows


def _share(run: Compared, key: str) -> Fraction:
    use = run.reckoning.steady
    return Fraction(use.us[key], use.total_us) if use.total_us else Fraction(0)


def _price(run: Compared) -> Shown:
    price = run.view.started.price
    if price is None:
        return Shown(text="no price")
    name = name_in(run.sheet, "price.amount")
    return Shown(text=price.text(), grade=run.sheet["price.amount"].grade, name=name)


def _currency(run: Compared) -> str:
    return f" {run.sheet['cost.total'].unit}"


def _ranged(run: Compared, path: str, unit: str) -> Shown:
    figure, span = shown_to_precision(run.sheet, path, unit)
    return replace(figure, note=span)


def _ratio(comparison: Comparison, path: str, sign: str) -> Shown | None:
    value = comparison.sheet.number(path) if len(comparison.pairs) == 1 else None
    if value is None:
        return None
    needed = comparison.sheet.number("break_even_speed_up")
    needs = f"{fixed(needed, 2)} breaks even" if path == "speed_up" and needed else ""
    grade, name = comparison.sheet[path].grade, name_in(comparison.sheet, path)
    return Shown(text=f"{sign} {fixed(value, 2)}", grade=grade, name=name, note=needs)


def _cost_change(comparison: Comparison) -> Shown | None:
    ratio = comparison.sheet.number("cost_ratio") if len(comparison.pairs) == 1 else None
    if ratio is None:
        return None
    low = comparison.sheet.number("cost_ratio_low")
    high = comparison.sheet.number("cost_ratio_high")
    span = "" if low is None or high is None else f"95 %: {_signed(low)} … {_signed(high)}"
    return Shown(
        text=_signed(ratio),
        note=span,
        grade=comparison.sheet["cost_ratio"].grade,
        name=name_in(comparison.sheet, "cost_ratio"),
    )


def _signed(ratio: Fraction) -> str:
    change = ratio - 1
    return f"{'+' if change >= 0 else '−'} {fixed(abs(change) * 100, 1)} %"


def _counts(runs: Sequence[Compared]) -> str:
    units = [counted(run.reckoning.units.finished, run.reckoning.units.name) for run in runs]
    return units[0] if len(set(units)) == 1 else " and ".join(units)


def _drawings(comparison: Comparison) -> list[Drawing]:
    runs, unit = comparison.runs, comparison.runs[0].reckoning.units.name
    timed = [run for run in runs if run.sheet.number("seconds_per_unit.median")]
    drawings = []
    if timed:
        heading = f"Where the time of one {unit} went"
        drawings.append(Drawing(heading=heading, svg=strips("time", heading, _strips(timed))))
    priced = [run for run in timed if run.sheet.number("cost_per_unit.marginal") is not None]
    if priced:
        heading = f"Cost per {unit}"
        picture = intervals("cost", heading, [_cost(run) for run in priced])
        caption = "The line behind a dot is the interval of its median."
        drawings.append(Drawing(heading=heading, svg=picture, caption=caption))
    if len(priced) == 2 and len(runs) == 2:
        heading = f"From {priced[0].name} to {priced[1].name}"
        piers = _piers(priced[0], priced[1], unit)
        drawings.append(
            Drawing(
                heading=heading,
                svg=bridge("bridge", heading, piers),
                caption=f"What the other price changes about one {unit}, then what the other time "
                "does; the steps add up exactly.",
            )
        )
    return drawings


def _strips(runs: Sequence[Compared]) -> list[Strip]:
    """Strips as long as a unit took, so that the wait that went is seen to go."""
    lengths = [float(run.sheet.number("seconds_per_unit.median") or 0) for run in runs]
    return [
        Strip(
            name=run.name[:24],
            note=shown_to_precision(run.sheet, "seconds_per_unit.median", " s")[0].text,
            length=length / max(lengths),
            parts=strip_parts(run.reckoning.steady),
        )
        for run, length in zip(runs, lengths, strict=True)
    ]


def _cost(run: Compared) -> Interval:
    value = run.sheet.number("cost_per_unit.marginal") or Fraction(0)
    low, high = run.sheet.number("cost_per_unit.low"), run.sheet.number("cost_per_unit.high")
    return Interval(
        name=run.name[:24],
        value=float(value),
        low=None if low is None else float(low),
        high=None if high is None else float(high),
        label=_cost_label(run),
    )


def _cost_label(run: Compared) -> str:
    figure, span = shown_to_precision(run.sheet, "cost_per_unit.marginal", _currency(run))
    return f"{figure.text}{mark(figure.grade, False)}" + (f" ({span})" if span else "")


def _piers(first: Compared, second: Compared, unit: str) -> list[Pier]:
    """First cost; the other price at the first time; then the other time at the other price."""
    start = first.sheet.number("cost_per_unit.marginal") or Fraction(0)
    end = second.sheet.number("cost_per_unit.marginal") or Fraction(0)
    price = (second.price_per_h or 0) / first.price_per_h if first.price_per_h else Fraction(1)
    between = start * price
    steps = [
        ("dearer hour" if price >= 1 else "cheaper hour", start, between),
        (f"{'faster' if end <= between else 'slower'} {unit}", between, end),
    ]
    places = max(_places(first), _places(second))
    totals = [
        Pier(name=run.name[:24], begin=0.0, end=float(cost), label=_cost_text(run), total=True)
        for run, cost in ((first, start), (second, end))
    ]
    piers = [
        Pier(name=name, begin=float(a), end=float(b), label=_step(b - a, places), total=False)
        for name, a, b in steps
    ]
    return [totals[0], *piers, totals[1]]


def _cost_text(run: Compared) -> str:
    return shown_to_precision(run.sheet, "cost_per_unit.marginal", _currency(run))[0].text


def _step(change: Fraction, places: int) -> str:
    return f"{'+' if change >= 0 else '−'} {fixed(abs(change), places)}"


def _places(run: Compared) -> int:
    """How many decimal places the run's cost is shown with; a bridge's steps get as many."""
    text = shown_to_precision(run.sheet, "cost_per_unit.marginal")[0].text
    return len(text.partition(".")[2])


def _claim(lines: Sequence[str]) -> tuple[str, ...]:
    """The command's own lines about the published comparison."""
    begin = next((i for i, line in enumerate(lines) if line.startswith("  For comparison")), None)
    if begin is None:
        return ()
    end = next((i for i in range(begin, len(lines)) if not lines[i]), len(lines))
    return tuple(line.strip() for line in lines[begin:end])
