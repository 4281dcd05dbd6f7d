"""The report of one run, as JSON and as text.

Decides the shape that other programs rely on and the words a person reads. All numbers come from
the sheet, so that each printed figure can be given to ``ouvrage explain``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.time import utc_text
from ouvrage.evidence.figures import Figure, Sheet
from ouvrage.metering.cause import NAMES, Cause, cause_of
from ouvrage.metering.phases import WARMUP_RULE
from ouvrage.metering.reckoning import Reckoning, reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.timeuse import KEYS, SPAN_RULE
from ouvrage.pricing.accepted import SORTS
from ouvrage.pricing.around_text import around_json
from ouvrage.pricing.energy import devices_json
from ouvrage.pricing.inference import inference_json
from ouvrage.pricing.summary import crowd_words, summary_lines
from ouvrage.pricing.unit_cost import NO_PRICE, STEADY

HEADLINE = ("cost_per_unit.marginal", "seconds_per_unit.median")


def report_json(view: RunView, sheet: Sheet) -> dict[str, Any]:
    """The report as ``--report`` and ``report --json`` write it; money is decimal text."""
    reckoning = reckon(view)
    headline = headline_of(sheet)
    return {
        "run": view.run,
        "code": view.code,
        **_about(view, sheet),
        "unit": reckoning.units.name,
        "units": reckoning.units.finished,
        "units_accepted": _count(sheet, "units_accepted"),
        "units_rejected": _count(sheet, "units_rejected"),
        "acceptance": _acceptance(view),
        "units_timed": sum(lap.count for lap in reckoning.units.laps),
        "seconds_per_unit": _group(
            sheet, "seconds_per_unit", "median", "low", "high", "confidence"
        ),
        "price": _price(view, sheet),
        "cost_per_unit": _group(sheet, "cost_per_unit", "marginal", "all_in", "low", "high"),
        "cost": _group(sheet, "cost", "total", *SORTS),
        "cost_per_accepted_unit": plain_value(sheet["cost_per_accepted_unit"]),
        "campaigns": list(view.campaigns),
        "time": _group(sheet, "time", *KEYS),
        "time_grades": {key: _word(sheet[f"time.{key}"].grade) for key in KEYS},
        "steady": _group(sheet, STEADY, *KEYS),
        "phases": _group(sheet, "phases", "startup_s", "warmup_s", "steady_s", "rest_s"),
        "worth": _group(sheet, "worth", "seconds_per_unit", "cost_per_unit"),
        "energy_j": plain_value(sheet["energy_j"]),
        "energy": _energy(view, sheet),
        "inference": inference_json(sheet),
        "coverage": plain_value(sheet["coverage"]),
        "neighbours_cpu": plain_value(sheet["neighbours_cpu"]),
        "grade": _word(headline.grade),
        "grade_shares": shares_json(headline),
        "devices": devices_json(view, sheet),
        **around_json(view, sheet),
        "host": _host(view),
        "why": _why(cause_of(view, reckoning)),
        "unknown": {
            path: figure.why
            for path, figure in sorted(sheet.figures.items())
            if figure.value is None
        },
        "rules": {
            "units": reckoning.units.how,
            "warmup": WARMUP_RULE,
            "spans": SPAN_RULE,
            "samples": reckoning.whole.sample_rule,
        },
        "hints": hints_of(view, reckoning),
        "notes": list(view.ended.notes) if view.ended else [],
        "as_of": utc_text(sheet.as_of),
    }


def headline_of(sheet: Sheet) -> Figure:
    """The figure whose grade stands for the report: the cost of a unit, else its time."""
    for path in HEADLINE:
        if sheet[path].value is not None:
            return sheet[path]
    return sheet["wall_s"]


def plain_value(figure: Figure) -> float | int | str | None:
    """A figure's value in JSON: money as exact decimal text, other numbers to six places."""
    value = figure.value
    if not isinstance(value, Fraction):
        return value
    if figure.path.startswith("cost") or figure.path.endswith("cost_per_unit"):
        return decimal_text(value)
    return float(fixed(value, 6))


def shares_json(figure: Figure) -> dict[str, float]:
    """Share of a figure's value at each grade, as numbers."""
    return {grade.word: float(fixed(share, 6)) for grade, share in figure.shares.items()}


def hints_of(view: RunView, reckoning: Reckoning) -> list[str]:
    """What the reader could do to learn more, or should know before believing the figures."""
    hints = list(reckoning.units.hints)
    if view.started.price is None:
        hints.append(NO_PRICE)
    crowded = crowd_words(view)
    if crowded:
        hints.append(f"{crowded}; alone, it might have been faster")
    if view.unread:
        hints.append(f"{len(view.unread)} facts of this run could not be read")
    return hints


def report_text(view: RunView, sheet: Sheet, *, plain: bool) -> str:
    """The summary a person reads after a run; the first line answers, the last leads on."""
    reckoning = reckon(view)
    lines = summary_lines(
        view, sheet, reckoning, cause_of(view, reckoning), hints_of(view, reckoning), plain
    )
    return "\n".join(lines) + "\n"


def _about(view: RunView, sheet: Sheet) -> dict[str, Any]:
    started, ended = view.started, view.ended
    return {
        "label": started.label,
        "command": list(started.command),
        "cwd": started.cwd,
        "exit_code": ended.exit_code if ended else None,
        "signal": ended.signal if ended else None,
        "outcome": view.outcome,
        "started": utc_text(started.started_us),
        "ended": utc_text(started.started_us + view.wall_us),
        "wall_s": plain_value(sheet["wall_s"]),
    }


def _group(sheet: Sheet, root: str, *names: str) -> dict[str, Any]:
    return {name: plain_value(sheet[f"{root}.{name}"]) for name in names}


def _count(sheet: Sheet, path: str) -> int | None:
    value = sheet.number(path)
    return None if value is None else int(value)


def _acceptance(view: RunView) -> dict[str, Any] | None:
    said = view.acceptance
    if said is None:
        return None
    return {
        "units": said.units,
        "unit": said.unit,
        "why": said.why,
        "stated": utc_text(said.stated_us),
        "grade": _word(said.grade),
    }


def _price(view: RunView, sheet: Sheet) -> dict[str, Any] | None:
    price = view.started.price
    if price is None:
        return None
    return {
        "amount": price.amount,
        "currency": price.currency,
        "per": price.per,
        "grade": _word(sheet["price.amount"].grade),
    }


def _energy(view: RunView, sheet: Sheet) -> dict[str, Any]:
    """Energy beyond the GPUs' own sum: how it is known, per unit, other meters, and its cost."""
    price, total = view.electricity, sheet["energy_j"]
    return {
        "method": total.method if total.value is not None else None,
        **_group(sheet, "energy", "coverage", "host_j", "host_coverage"),
        **_group(sheet, "energy", "wall_j", "wall_coverage"),
        "per_unit": _group(sheet, "energy_per_unit", "marginal_j", "all_in_j"),
        "electricity": price
        and {
            "amount": price.amount,
            "currency": price.currency,
            "per": "kWh",
            "grade": _word(sheet["electricity.amount"].grade),
        },
        "cost": _group(sheet, "cost_of_energy", "total", "per_unit"),
    }


def _host(view: RunView) -> dict[str, Any]:
    host = view.started.host
    return {name: getattr(host, name) for name in type(host).__dataclass_fields__}


def _why(cause: Cause) -> dict[str, Any]:
    return {
        "bottleneck": cause.key,
        "verdict": cause.verdict,
        "words": NAMES[cause.key] if cause.key else None,
        "share": float(fixed(cause.share, 6)),
        "grade": _word(cause.grade),
        "evidence": cause.evidence,
        "rule": cause.rule,
    }


def _word(grade: Grade | None) -> str | None:
    return None if grade is None else grade.word
