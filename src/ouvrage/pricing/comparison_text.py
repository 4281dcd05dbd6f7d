"""A comparison as a person reads it: the verdict, then both runs side by side.

Decides the words of the verdict. Columns are padded by what a terminal shows, and whatever is drawn
is also said in numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.evidence.claims import interest_words
from ouvrage.metering.cause import NAMES
from ouvrage.metering.timeuse import WAITS
from ouvrage.pricing.inference_text import pace_of
from ouvrage.pricing.pairs import Compared, Pair, SideBySide
from ouvrage.pricing.summary import crowd_words, money, time_bar
from ouvrage.pricing.words import counted, give_or_take, mark, percent, rounded

_NAME = 22
_LEAST = 16


def comparison_lines(comparison: SideBySide, plain: bool) -> list[str]:
    """All lines: the verdict, the runs, what others published, and the way to more."""
    if len(comparison.pairs) == 1:
        lines = [verdict(comparison.pairs[0], plain), "", *_side_by_side(comparison, plain)]
    else:
        lines = [_best_of(comparison), "", *_table(comparison, plain)]
    lines += _claim(comparison, plain)
    name = f"{comparison.sheet.object}:speed_up"
    if len(comparison.pairs) > 1:
        name = f"{comparison.sheet.object}:{comparison.runs[1].code}.against_first.speed_up"
    return [*lines, "", f"The figures and where they come from: ouvrage explain {name}"]


def verdict(pair: Pair, plain: bool) -> str:
    """One sentence: which is the better buy and by how much, or why that cannot be told."""
    first, second = pair.first, pair.second
    unit = unit_of((first, second))
    if pair.cheaper is None:
        return _no_verdict(pair, plain)
    ratio = Fraction(1) if pair.cost_ratio is None else pair.cost_ratio
    saved = 1 - ratio if pair.cheaper is second else 1 - 1 / ratio
    less = f"{_share(saved)} less per {unit}"
    if pair.price_ratio == 1:
        return f"{pair.cheaper.name} is the better buy at the same price: {less}."
    dearer = second if pair.price_ratio and pair.price_ratio > 1 else first
    if pair.cheaper is dearer:
        return f"The dearer host is the better buy: {less}."
    return f"The dearer host loses: {pair.cheaper.name} costs {less}."


def unit_of(runs: Sequence[Compared]) -> str:
    """What is compared: the unit that any of them finished, since one without any has no say."""
    finished = [run for run in runs if run.reckoning.units.finished]
    return safe((finished or runs)[0].reckoning.units.name)


def _no_verdict(pair: Pair, plain: bool) -> str:
    edges = pair.cost_edges()
    if pair.price_ratio is None and pair.time_ratio is not None:
        speed_up = 1 / pair.time_ratio
        faster = pair.second if speed_up > 1 else pair.first
        by = max(speed_up, pair.time_ratio)
        words = f"{faster.name} is {_times(by, plain)} as fast"
        return f"No verdict on money, since {pair.why}; {words}."
    if edges is None or not edges[0] <= 1 <= edges[1]:
        return f"Not distinguishable: {pair.why}."
    low, high = (_signed(edge - 1, plain) for edge in edges)
    to = "to" if plain else "…"
    return (
        f"Not distinguishable: with 95 % a unit costs {low} {to} {high}, which includes no change."
    )


def _best_of(comparison: SideBySide) -> str:
    best = comparison.cheaper
    if best is None:
        return "Not distinguishable: no run is cheaper per unit than every other with 95 %."
    unit = safe(best.reckoning.units.name)
    return f"{best.name} is the best buy: less per {unit} than each of the others."


def _side_by_side(comparison: SideBySide, plain: bool) -> list[str]:
    pair = comparison.pairs[0]
    runs = (pair.first, pair.second)
    unit = unit_of(runs)
    times, over = ("x", "/") if plain else ("×", "÷")
    rows: list[tuple[str, list[str], str]] = [("", [run.name for run in runs], "")]
    prices = [_price(run, plain) for run in runs]
    if any(prices):
        rows.append(("price", prices, _ratio(pair.price_ratio, times)))
    seconds = [_cell(run, "seconds_per_unit.median", "", plain) for run in runs]
    speed_up = 1 / pair.time_ratio if pair.time_ratio else None
    needs = pair.price_ratio
    note = f"   (needs more than {fixed(needs, 2)} to win)" if needs and needs > 1 else ""
    rows.append((f"seconds per {unit}", seconds, _ratio(speed_up, over) + note))
    if any(prices):
        cells = [_cell(run, "cost_per_unit.marginal", _currency(run), plain) for run in runs]
        rows.append((f"cost per {unit}", cells, _cost_note(pair, plain)))
        rows.append(("all-in", [_all_in(run, plain) for run in runs],
                     f"per {unit}, start-up, warm-up and the rest included"))  # fmt: skip
        rows.append(("paid", [_paid(run, plain) for run in runs], ""))
    ended = [run.view.outcome for run in runs]
    if ended != ["completed", "completed"]:
        rows.append(("outcome", ended, ""))
    lines = [*_laid_out(rows), ""]
    lines += _laid_out(_time_rows(runs, plain), least=_widest(rows))
    return [*lines, *_why_lines(runs, plain), *crowd_lines(runs), *load_lines(runs)]


def _widest(rows: Sequence[tuple[str, list[str], str]]) -> int:
    return max(_LEAST, *(len(cell) + 2 for _, cells, _ in rows for cell in cells))


def _laid_out(rows: Sequence[tuple[str, list[str], str]], least: int = 0) -> list[str]:
    width = max(least, _widest(rows))
    return [
        f"  {name:<{_NAME}}{''.join(f'{cell:<{width}}' for cell in cells)}{note}".rstrip()
        for name, cells, note in rows
    ]


def _time_rows(runs: Sequence[Compared], plain: bool) -> list[tuple[str, list[str], str]]:
    bars = [time_bar(run.reckoning.steady, plain) if _timed(run) else "" for run in runs]
    legend = "# computing  - waiting  ? unknown" if plain else "█ computing  ▒ waiting  ░ unknown"
    rows = [("where the time went", bars, legend)]
    for key in ("computing", *WAITS, "unknown"):
        shares = [_key_share(run, key) for run in runs]
        if any(share >= Fraction(1, 100) for share in shares):
            cells = [
                f"{percent(share)}{_key_mark(run, key, plain)}"
                for run, share in zip(runs, shares, strict=True)
            ]
            rows.append((f"  {NAMES[key]}", cells, ""))
    return rows


def _timed(run: Compared) -> bool:
    return run.reckoning.steady.total_us > 0


def _key_share(run: Compared, key: str) -> Fraction:
    use = run.reckoning.steady
    return Fraction(use.us[key], use.total_us) if use.total_us else Fraction(0)


def _key_mark(run: Compared, key: str, plain: bool) -> str:
    if key == "unknown" or not _timed(run):
        return ""
    return mark(run.sheet[f"steady.{key}"].grade, plain)


def _why_lines(runs: Sequence[Compared], plain: bool) -> list[str]:
    lines: list[str] = []
    for run in runs:
        cause = run.cause
        said = f"{run.name}: {safe(cause.evidence)}{mark(cause.grade, plain)}"
        lines.append(f"  {'why' if not lines else '':<{_NAME}}{said}")
    rest: list[str] = []
    for run in runs:
        saved = run.sheet.number("worth.seconds_per_unit")
        if run.cause.key is None or saved is None:
            continue
        unit = safe(run.reckoning.units.name)
        grade = mark(run.sheet["worth.seconds_per_unit"].grade, plain)
        said = f"{run.name}: {rounded(saved)} s{grade} per {unit}, if never {NAMES[run.cause.key]}"
        rest.append(f"  {'still on the table' if not rest else '':<{_NAME}}{said}")
    return lines + rest


def _currency(run: Compared) -> str:
    return f" {run.sheet['cost.total'].unit}"


def _price(run: Compared, plain: bool) -> str:
    price = run.view.started.price
    return price.text() + mark(run.sheet["price.amount"].grade, plain) if price else ""


def _cell(run: Compared, path: str, unit: str, plain: bool) -> str:
    sheet, root = run.sheet, path.rsplit(".", 1)[0]
    value = sheet.number(path)
    if value is None:
        return "unknown"
    edges = sheet.number(f"{root}.low"), sheet.number(f"{root}.high")
    shown, reach = give_or_take(value, *edges, plain)
    return f"{shown}{unit}{mark(sheet[path].grade, plain)}{'' if unit else reach}"


def _all_in(run: Compared, plain: bool) -> str:
    return money(run.sheet, "cost_per_unit.all_in", plain) or "unknown"


def _paid(run: Compared, plain: bool) -> str:
    units = run.reckoning.units
    paid = money(run.sheet, "cost.total", plain) or "unknown"
    return paid if units.is_command else f"{paid} for {counted(units.finished, units.name)}"


def _ratio(value: Fraction | None, sign: str) -> str:
    return "" if value is None else f"{sign} {fixed(value, 2)}"


def _times(value: Fraction, plain: bool) -> str:
    return f"{fixed(value, 2)} {'times' if plain else '×'}"


def _share(saved: Fraction) -> str:
    """A saving in per cent, to the place that the table below shows."""
    return f"{fixed(saved * 100, 1)} %"


def _signed(change: Fraction, plain: bool) -> str:
    sign = "+" if change >= 0 else ("-" if plain else "−")
    return f"{sign} {fixed(abs(change) * 100, 1)} %"


def _cost_note(pair: Pair, plain: bool) -> str:
    ratio, edges = pair.cost_ratio, pair.cost_edges()
    if ratio is None:
        return ""
    said = _signed(ratio - 1, plain)
    if edges is None:
        return f"{said}  (no 95 % interval: too few timed units)"
    near, far = edges if edges[0] <= 1 <= edges[1] else sorted(edges, key=lambda e: abs(e - 1))
    to = "to" if plain else "…"
    return f"{said}  (95 %: {_signed(near - 1, plain)} {to} {_signed(far - 1, plain)})"


def _table(comparison: SideBySide, plain: bool) -> list[str]:
    unit = unit_of(comparison.runs)
    head = ["run", "price", f"seconds per {unit}", f"cost per {unit}", "against the first"]
    body: list[list[str]] = []
    for index, run in enumerate(comparison.runs):
        pair = comparison.pairs[index - 1] if index else None
        body.append(
            [
                run.name,
                _price(run, plain) or "no price",
                _cell(run, "seconds_per_unit.median", "", plain),
                _cell(run, "cost_per_unit.marginal", _currency(run), plain),
                _against(pair, plain) if pair else "",
            ]
        )
    widths = [max(len(row[i]) for row in [head, *body]) + 2 for i in range(len(head))]
    rows = [head, *body]
    return [
        "  " + "".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _against(pair: Pair, plain: bool) -> str:
    if pair.cheaper is None:
        return f"not distinguishable: {pair.why}"
    return _cost_note(pair, plain)


def crowd_lines(runs: Sequence[Compared]) -> list[str]:
    """Which runs had to share their machine, since that changes what a comparison is worth."""
    lines: list[str] = []
    for run in runs:
        words = crowd_words(run.view)
        if words:
            lines.append(f"  {'but' if not lines else '':<{_NAME}}{run.name}: {words}")
    return lines


def load_lines(runs: Sequence[Compared]) -> list[str]:
    """That the runs were put under different loads, since a request costs less under a greater one."""
    paces = {run.name: pace_of(run.sheet) for run in runs}
    if len(set(paces.values())) < 2:
        return []
    told = "; ".join(f"{name}: {pace or 'not told'}" for name, pace in paces.items())
    return [f"  {'but':<{_NAME}}the loads differ, and with them the cost of a request: {told}"]


def _claim(comparison: SideBySide, plain: bool) -> list[str]:
    claim, sheet = comparison.claim, comparison.claim_sheet
    if claim is None or claim.comparison is None or sheet is None:
        return []
    about = claim.comparison
    to = "to" if plain else "→"
    costs = f" {to} ".join(offer.cost_per_unit for offer in about.offers)
    prices = f" {to} ".join(offer.price_per_hour for offer in about.offers)
    seconds = [sheet.number(f"offers.{i}.seconds_per_unit") for i in range(len(about.offers))]
    implied = f" {to} ".join(fixed(value, 1) for value in seconds if value is not None)
    speed_up = sheet.number("speed_up") if "speed_up" in sheet.figures else None
    needed = sheet.number("break_even_speed_up") if speed_up is not None else None
    gain = ""
    if speed_up is not None and needed is not None:
        gain = f": {fixed(speed_up, 3)} times as fast, where {fixed(needed, 2)} breaks even"
    grade = mark(Grade.REPORTED, plain)
    interest = interest_words(claim.interest)
    said = f"{safe(claim.said_by)} {_day(claim.stated_on)}{grade} ({interest})"
    return [
        "",
        f"  For comparison, as published by {said}:",
        f"  {safe(about.work)}: {costs} {about.currency} per {safe(about.unit)} "
        f"at {prices} {about.currency}/h.",
        f"  That implies {implied} s per {safe(about.unit)}{gain}.",
    ]


def _day(text: str | None) -> str:
    if text is None:
        return "on a day not stated"
    day = date.fromisoformat(text)
    return f"on {day.day} {day.strftime('%B %Y')}"
