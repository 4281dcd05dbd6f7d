"""A tuning as JSON and as a person reads it: the answer, the limits side by side, what it rests on.

Decides words and layout alone; what is cheapest, and what cannot be told apart, is ``tuning``'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.text import safe
from ouvrage.pricing.tuning import TOO_FEW, Cheapest, Setting, Spread, Tuning
from ouvrage.pricing.words import mark, percent, ranged

NOT_IN_IT = "memory, fans, disks, losses and cooling are not in it"
NO_ENERGY = "no energy could be read over enough of any block of units"


def tuning_json(tuning: Tuning) -> dict[str, Any]:
    """Everything, unrounded: ``Fraction`` values are for ``exact_json_text``."""
    terms = tuning.terms
    return {
        "unit": tuning.unit,
        "currency": terms.currency,
        "electricity_per_kwh": terms.electricity and terms.electricity.per_kwh,
        "rate": terms.rate and {"amount": terms.rate.amount, "per": terms.rate.per},
        "price": terms.price and {"amount": terms.price.amount, "per": terms.price.per},
        "limits": [_setting_json(setting, tuning) for setting in tuning.settings],
        "cheapest": {
            "owner": _cheapest_json(tuning.owner()),
            "renter": _cheapest_json(tuning.renter()),
        },
        "left_out": [{"run": left.run.run, "why": left.why} for left in tuning.left_out],
    }


def tuning_lines(tuning: Tuning, *, plain: bool) -> list[str]:
    """The lines that a person reads."""
    owner, renter = tuning.owner(), tuning.renter()
    lines = [_answer(tuning, owner, renter), "", *_rows(tuning, owner, renter, plain), ""]
    for name, found, base in (
        ("owner", owner, tuning.terms.electricity),
        ("renter", renter, tuning.terms.price),
    ):
        if found is not None:
            lines.append(f"  {name:<7} {_worth(found, 'costs' if base else 'takes', tuning.unit)}")
    lines.append(f"  energy  {_energy(tuning)}")
    lines += [
        f"  left out: {left.run.code}, {safe(left.run.started.label or '')}: {left.why}"
        for left in tuning.left_out
    ]
    return lines


def _setting_json(setting: Setting, tuning: Tuning) -> dict[str, Any]:
    return {
        "power_limit_w": setting.limit_w,
        "runs": [view.run for view in setting.runs],
        "units": sum(block.units for block in setting.blocks),
        "blocks": len(setting.blocks),
        "seconds_per_unit": _spread_json(setting.seconds()),
        "joules_per_unit": _spread_json(setting.joules()),
        "energy_method": setting.method,
        "energy_coverage": setting.covered(),
        "owner_cost_per_unit": _spread_json(setting.owner(tuning.terms))
        if tuning.terms.electricity
        else None,
        "renter_cost_per_unit": _spread_json(setting.renter(tuning.terms))
        if tuning.terms.price
        else None,
    }


def _spread_json(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    interval = spread.interval
    return {
        "median": spread.median,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "confidence": interval and interval.confidence,
        "grade": spread.grade.word,
    }


def _cheapest_json(found: Cheapest | None) -> dict[str, Any] | None:
    if found is None:
        return None
    saving, against = found.saving, found.against
    return {
        "power_limit_w": found.setting.limit_w,
        "not_distinguishable_from": list(found.alike),
        "why_not": found.why_alike,
        "against_w": against and against.limit_w,
        "ratio_low": saving and saving.low,
        "ratio_high": saving and saving.high,
    }


def _answer(tuning: Tuning, owner: Cheapest | None, renter: Cheapest | None) -> str:
    unit = safe(tuning.unit)
    if owner is None or renter is None:
        fastest = f"; one {unit} is cheapest for the renter {_at(renter)}" if renter else ""
        return f"What the owner should set is not known: {NO_ENERGY}{fastest}."
    if owner.setting is renter.setting and owner.alike == renter.alike:
        return f"A finished {unit} is cheapest {_at(owner)}, for the owner and for the renter."
    return (
        f"A finished {unit} is cheapest {_at(owner)} for the owner, {_at(renter)} for the renter."
    )


def _at(found: Cheapest | None) -> str:
    if found is None:
        return ""
    words = f"at {watts(found.setting.limit_w)}"
    if found.alike:
        others = ", ".join(watts(limit) for limit in found.alike)
        words += f" (not distinguishable from {others})"
    return words


def watts(limit: Fraction) -> str:
    """``250 W``."""
    return f"{decimal_text(limit)} W"


def _rows(
    tuning: Tuning, owner: Cheapest | None, renter: Cheapest | None, plain: bool
) -> list[str]:
    terms, unit = tuning.terms, safe(tuning.unit)
    money = terms.currency
    heads = ["limit", f"s / {unit}", f"J / {unit}"]
    heads += [f"owner, {money} / {unit}"] if terms.electricity else []
    heads += [f"renter, {money} / {unit}"] if terms.price else []
    rows = [heads]
    for setting in tuning.settings:
        best = owner is not None and owner.setting is setting
        first = renter is not None and renter.setting is setting
        seconds = _cell(setting.seconds(), plain, first and not terms.price)
        joules = _cell(setting.joules(), plain, best and not terms.electricity)
        row = [watts(setting.limit_w), seconds, joules]
        row += [_cell(setting.owner(terms), plain, best)] if terms.electricity else []
        row += [_cell(setting.renter(terms), plain, first)] if terms.price else []
        rows.append(row)
    return _laid_out(rows)


def _cell(spread: Spread | None, plain: bool, best: bool) -> str:
    if spread is None:
        return "not known"
    interval = spread.interval
    low, high = (interval.low, interval.high) if interval else (None, None)
    value, reach = ranged(spread.median, low, high, plain)
    words = f"{value}{mark(spread.grade, plain)}" + (f" ({reach})" if reach else "")
    return f"{words} < least" if best else words


def _laid_out(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "   ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _worth(found: Cheapest, verb: str, unit: str) -> str:
    """What it is worth to set this limit and not the highest other."""
    here, against = watts(found.setting.limit_w), found.against
    if against is None:
        return f"only {here} was tried"
    other = watts(against.limit_w)
    saving = found.saving
    if saving is None:
        return f"{here} against {other}: {found.why_alike or TOO_FEW}"
    if saving.low <= 1 <= saving.high:
        return f"{here} against {other}: the 95 % interval of the ratio includes 1"
    high, low = 1 - saving.low, 1 - saving.high
    return (
        f"one {safe(unit)} {verb} {percent(low)} to {percent(high)} less at {here} than at {other}"
    )


def _energy(tuning: Tuning) -> str:
    methods = sorted({setting.method for setting in tuning.settings if setting.method})
    if not methods:
        return NO_ENERGY
    covered = min(c for s in tuning.settings if (c := s.covered()) is not None)
    words = f"{'; '.join(methods)}, read in {percent(covered)} of the time or more; {NOT_IN_IT}"
    if any((j := s.joules()) is not None and j.grade >= Grade.ASSUMED for s in tuning.settings):
        words += "; what was not read is taken to be like the rest"
    return words
