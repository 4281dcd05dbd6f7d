"""The lines of one run's summary on a terminal.

Decides which words answer the question for each way a run can end: with a price or without, units
timed or only counted, completed, failed, interrupted or lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.evidence.figures import Sheet
from ouvrage.metering.cause import NAMES, Cause
from ouvrage.metering.reckoning import Reckoning, neighbours_cpu
from ouvrage.metering.run_view import RunView
from ouvrage.metering.timeuse import KEYS, TimeUse
from ouvrage.pricing.accepted import SORTS
from ouvrage.pricing.around_text import around_rows
from ouvrage.pricing.energy_text import energy_rows
from ouvrage.pricing.inference_text import inference_answer, inference_rows, replays
from ouvrage.pricing.words import (
    bar,
    counted,
    duration,
    mark,
    percent,
    ranged,
    rounded,
    shortened,
)

COLUMN = 22
CROWDED = Fraction(1, 10)
_DRAWN = {"computing": ("█", "#"), "unknown": ("░", "?")}
_DRAWN_WAIT = ("▒", "-")
_LEAST_SHOWN = Fraction(1, 200)


def summary_lines(
    view: RunView,
    sheet: Sheet,
    reckoning: Reckoning,
    cause: Cause,
    hints: Sequence[str],
    plain: bool,
) -> list[str]:
    """All lines: the answer, the figures, the reason, hints, and the way to more."""
    lines = [_answer(view, sheet, reckoning, cause, plain), ""]
    lines += _identity(view, plain)
    lines += [row(name, text) for name, text in inference_rows(sheet, plain)]
    lines += _figures(view, sheet, reckoning, plain)
    if not replays(sheet):  # where a client's own time went says nothing of the server's
        lines += _time(reckoning, cause, sheet, plain)
    lines += [row(name, text) for name, text in energy_rows(view, sheet, reckoning, plain)]
    lines += [row(name, text) for name, text in around_rows(view, plain)]
    notes = view.ended.notes if view.ended else ()
    lines += [f"  note: {safe(note)}" for note in notes]
    lines += [f"  hint: {safe(hint)}" for hint in hints]
    code = view.code
    more = f"More: ouvrage report {code} --html report.html"
    return [*lines, "", f"{more}      Why: ouvrage explain {code}:{_explained(sheet)}"]


def _explained(sheet: Sheet) -> str:
    if replays(sheet) and sheet["inference.cost_per_million_tokens.out"].value is not None:
        return "inference.cost_per_million_tokens.out"
    paths = ("cost_per_unit.marginal", "cost_per_unit.all_in", "seconds_per_unit.median")
    return next((path for path in paths if sheet[path].value is not None), "wall_s")


def _answer(view: RunView, sheet: Sheet, reckoning: Reckoning, cause: Cause, plain: bool) -> str:
    if replays(sheet):
        return f"{_ended(view, plain)}{inference_answer(sheet, plain)}."
    said = _ended(view, plain) + _unit_answer(view, sheet, reckoning, plain)
    return f"{said}; {waited(reckoning, sheet, cause, plain)}."


def _ended(view: RunView, plain: bool) -> str:
    wall = duration(view.wall_us)
    if view.outcome == "lost":
        return f"Lost: the meter was killed; this is all up to its last flush, at {wall}. "
    if view.outcome == "interrupted":
        return f"Interrupted after {wall}. "
    if view.outcome == "failed":
        ended = view.ended
        how = f"signal {ended.signal}" if ended and ended.signal else ""
        how = how or f"exit code {ended.exit_code if ended else '?'}"
        return f"Failed after {wall} with {how}. "
    return ""


def _unit_answer(view: RunView, sheet: Sheet, reckoning: Reckoning, plain: bool) -> str:
    units = reckoning.units
    name = safe(units.name)
    if not units.finished:
        paid = money(sheet, "cost.total", plain)
        return f"No {name} finished" + (f", {paid} paid" if paid else "")
    each = with_range(sheet, "seconds_per_unit.median", plain, " s")
    cost = with_range(sheet, "cost_per_unit.marginal", plain, f" {sheet['cost.total'].unit}")
    many = "" if units.is_command else f", {counted(units.finished, units.name)}"
    per = "for the command" if units.is_command else f"per {name}"
    if cost and each:
        short = seconds(sheet, plain)
        return f"{cost[0]} {per}{cost[1]}: {short}{'' if units.is_command else ' each'}{many}"
    if each:
        return f"{each[0]} {per}{each[1]}{many}"
    paid = money(sheet, "cost_per_unit.all_in", plain)
    all_in = f", {paid} each all-in" if paid else ""
    return f"{counted(units.finished, units.name)}{all_in}; none could be timed"


def waited(reckoning: Reckoning, sheet: Sheet, cause: Cause, plain: bool) -> str:
    """``the model waited 38 % of the time for data``."""
    use = reckoning.steady
    if not use.total_us:
        return "it took no time"
    grade = mark(cause.grade, plain)
    if cause.key is None:
        share = Fraction(use.us["computing"], use.total_us)
        if 2 * use.us["unknown"] > use.total_us:
            return "where its time went is mostly not known"
        how = sheet["steady.computing"].grade
        return f"it computed {percent(share)} of the time{mark(how, plain)}"
    if cause.key == "throttled" and cause.by_gpu:
        return f"clocks of its GPU held down cost {percent(cause.share)} of the time{grade}"
    if cause.key == "throttled":
        return f"the CPU limit stopped it {percent(cause.share)} of the time{grade}"
    what = NAMES[cause.key].removeprefix("waiting ")
    return f"it waited {percent(cause.share)} of the time {what}{grade}"


def with_range(sheet: Sheet, path: str, plain: bool, unit: str) -> tuple[str, str] | None:
    """A figure with its unit and mark, and its range in brackets; None when it is not known."""
    root = path.rsplit(".", 1)[0]
    value = sheet.number(path)
    if value is None:
        return None
    shown, span = ranged(value, sheet.number(f"{root}.low"), sheet.number(f"{root}.high"), plain)
    return f"{shown}{unit}{mark(sheet[path].grade, plain)}", f" ({span})" if span else ""


def crowd_words(view: RunView) -> str | None:
    """That others kept the machine busy meanwhile; None where they took too little to matter."""
    share = neighbours_cpu(view)
    if share is None or share < CROWDED:
        return None
    return f"other programs used {percent(share)} of this machine's CPU meanwhile"


def seconds(sheet: Sheet, plain: bool) -> str:
    """The time per unit without its range."""
    held = with_range(sheet, "seconds_per_unit.median", plain, " s")
    return held[0] if held else ""


def money(sheet: Sheet, path: str, plain: bool) -> str:
    """An amount with three digits, its currency and mark; empty when it is not known."""
    value = sheet.number(path)
    if value is None:
        return ""
    figure = sheet[path]
    return f"{rounded(value)} {figure.unit}{mark(figure.grade, plain)}"


def row(name: str, text: str) -> str:
    """One line of a summary: what it is, then what it says."""
    return f"  {name:<{COLUMN}}{text}".rstrip()


def _identity(view: RunView, plain: bool) -> list[str]:
    label = f"  {shortened(view.started.label, 40)}" if view.started.label else ""
    command = shortened(" ".join(view.started.command), 80)
    began = utc_text(view.started.started_us)[:19] + "Z"
    outcome = f"{view.outcome}, {duration(view.wall_us)} from {began}"
    return [row("run", f"{view.code}{label}"), row("command", command), row("outcome", outcome)]


def _figures(view: RunView, sheet: Sheet, reckoning: Reckoning, plain: bool) -> list[str]:
    units = reckoning.units
    name = safe(units.name)
    lines: list[str] = []
    if view.started.price:
        lines.append(
            row("price", view.started.price.text() + mark(sheet["price.amount"].grade, plain))
        )
    each = with_range(sheet, "seconds_per_unit.median", plain, "")
    if each and not units.is_command:
        lines.append(row(f"seconds per {name}", f"{each[0]}{each[1]}{_standing(reckoning, sheet)}"))
    currency = f" {sheet['cost.total'].unit}"
    cost = with_range(sheet, "cost_per_unit.marginal", plain, currency)
    if cost:
        lines.append(row(f"cost per {name}", "".join(cost)))
    total = money(sheet, "cost.total", plain)
    if total and units.finished and not units.is_command:
        share = money(sheet, "cost_per_unit.all_in", plain)
        what = f"{total}, {share} each: start-up, warm-up and everything after included"
        lines.append(row(f"all-in, {counted(units.finished, units.name)}", what))
    elif total and not units.finished:
        lines.append(row("all-in", f"{total}, and no {name} finished to share it"))
    return lines + _accepted(view, sheet, plain)


def _accepted(view: RunView, sheet: Sheet, plain: bool) -> list[str]:
    """What somebody said of the work, what an accepted unit cost, and what the others did."""
    said, accepted = view.acceptance, sheet.number("units_accepted")
    if said is None or accepted is None:
        return []
    many = sheet.number("units_rejected") or 0
    each = money(sheet, "cost_per_accepted_unit", plain)
    words = f"{accepted} of {counted(accepted + many, said.unit)}{mark(said.grade, plain)}"
    words += f", {each} each" if each else ""
    lines = [row("accepted", f"{words}: {shortened(said.why, 60)}")]
    lost = [
        f"{money(sheet, f'cost.{sort}', plain)} {sort}"
        for sort in SORTS[1:]
        if sheet.number(f"cost.{sort}")
    ]
    if lost:
        lines.append(row("not accepted", ", ".join(lost)))
    return lines


def _standing(reckoning: Reckoning, sheet: Sheet) -> str:
    """On how many units the median stands, and how sure its range is."""
    steady, skipped = len(reckoning.phases.steady), reckoning.phases.warmup_laps
    confidence = sheet.number("seconds_per_unit.confidence")
    words = [f"{steady} timed"]
    if skipped:
        words.append(f"{skipped} warm-up left out")
    if confidence is not None:
        words.append(f"range holds the median with {percent(confidence)}")
    return "   " + ", ".join(words)


def _time(reckoning: Reckoning, cause: Cause, sheet: Sheet, plain: bool) -> list[str]:
    use = reckoning.steady
    if not use.total_us:
        return []
    period = " (steady phase)" if use.total_us != reckoning.whole.total_us else ""
    lines = [
        row(
            "where the time went",
            f"{time_bar(use, plain)}  {shares_words(use, sheet, plain)}{period}",
        )
    ]
    lines.append(row("why", f"{safe(cause.evidence)}{mark(cause.grade, plain)}"))
    saved = sheet.number("worth.seconds_per_unit")
    if cause.key is not None and saved is not None:
        paid = money(sheet, "worth.cost_per_unit", plain)
        unit = "" if reckoning.units.is_command else f" per {safe(reckoning.units.name)}"
        amount = f"{rounded(saved)} s{mark(sheet['worth.seconds_per_unit'].grade, plain)}"
        also = f" and {paid}" if paid else ""
        lines.append(
            row("still on the table", f"{amount}{also}{unit}, if it were never {NAMES[cause.key]}")
        )
    coverage = sheet.number("coverage")
    if coverage is not None and coverage < Fraction(99, 100):
        lines.append(row("coverage", f"{percent(coverage)} of the time was sampled"))
    return lines


def time_bar(use: TimeUse, plain: bool, width: int = 10) -> str:
    """The eight keys as one bar: computing, then waits, then unknown."""
    drawn = 1 if plain else 0
    parts = [
        (_DRAWN.get(key, _DRAWN_WAIT)[drawn], Fraction(use.us[key], use.total_us)) for key in KEYS
    ]
    return bar(parts, width)


def shares_words(use: TimeUse, sheet: Sheet, plain: bool) -> str:
    """``61 % computing ●, 38 % waiting for data ●``, largest first, little ones left out."""
    held = [(Fraction(use.us[key], use.total_us), key) for key in KEYS if use.us[key]]
    held.sort(key=lambda pair: -pair[0])
    words: list[str] = []
    for share, key in held:
        figure = sheet[f"steady.{key}"]
        if share >= _LEAST_SHOWN:
            shown = "" if key == "unknown" else mark(figure.grade, plain)
            partly = Fraction(use.measured[key], use.us[key])
            if 0 < partly < 1:
                shown += f" ({percent(partly)} of it{mark(min(figure.shares), plain)})"
            words.append(f"{percent(share)} {NAMES[key]}{shown}")
    return ", ".join(words)
