"""GPUs and energy in the words of a run's summary.

Decides what a person reads of up to sixteen cards and three meters in a few lines: each card while
they are few, else their mean and range; energy with how it is known and how much of the run that
covers; its cost beside it, never inside the cost of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from ouvrage.base.text import safe
from ouvrage.evidence.figures import Sheet
from ouvrage.metering.gpu_use import DeviceUse, device_uses
from ouvrage.metering.reckoning import Reckoning
from ouvrage.metering.run_view import RunView
from ouvrage.pricing.words import mark, percent, rounded

MOST_NAMED = 4
_GIB = 1 << 30
_FULL = Fraction(99, 100)


def energy_rows(
    view: RunView, sheet: Sheet, reckoning: Reckoning, plain: bool
) -> Iterator[tuple[str, str]]:
    """Pairs of what a line is about and what it says."""
    uses = device_uses(view, 0, view.wall_us)
    if len(uses) > MOST_NAMED:
        yield f"{len(uses)} GPUs", _together(view, uses, sheet, plain)
    else:
        for use in uses:
            name = "GPU" if len(uses) == 1 else f"GPU {use.device.gpu}"
            yield name, _alone(use, sheet, plain)
    yield from _energy(view, sheet, reckoning, plain)
    yield from _paid(view, sheet, reckoning, plain)


def _alone(use: DeviceUse, sheet: Sheet, plain: bool) -> str:
    root, words = f"devices.{use.device.gpu}", [safe(use.device.name or "unnamed")]
    busy = sheet.number(f"{root}.busy")
    if busy is not None:
        words.append(f"busy {percent(busy)}{mark(sheet[f'{root}.busy'].grade, plain)}")
    elif use.device.mig:
        words.append("divided (MIG): its load is not told")
    if use.memory_max_bytes is not None:
        total = use.device.memory_bytes
        of = f" of {rounded(Fraction(total, _GIB))}" if total else ""
        words.append(f"{rounded(Fraction(use.memory_max_bytes, _GIB))}{of} GiB used at most")
    if use.power_w is not None:
        words.append(f"{rounded(use.power_w)} W{mark(sheet[f'{root}.power_w'].grade, plain)}")
    return ", ".join([*words, *_held(use)])


def _held(use: DeviceUse) -> Iterator[str]:
    """What held its clocks for more than one part in a hundred of the time."""
    for name, share in use.reasons:
        if name != "idle" and share >= Fraction(1, 100):
            yield f"{name.replace('_', ' ')} {percent(share)} of the time"


def _together(view: RunView, uses: Sequence[DeviceUse], sheet: Sheet, plain: bool) -> str:
    names = sorted({safe(use.device.name or "unnamed") for use in uses})
    words = [" and ".join(names)]
    busy = [use.busy for use in uses if use.busy is not None]
    if busy:
        mean = sum(busy, Fraction(0)) / len(busy)
        to = " to " if plain else "–"
        span = f"{percent(min(busy)).removesuffix(' %')}{to}{percent(max(busy))}"
        words.append(f"busy {percent(mean)}{mark(view.grade, plain)} on average ({span})")
    watts = [use.power_w for use in uses if use.power_w is not None]
    if watts:
        total = rounded(sum(watts, Fraction(0)))
        words.append(f"{total} W together{mark(view.grade, plain)}")
    bad = [str(use.device.gpu) for use in uses if (use.throttled or 0) >= Fraction(1, 100)]
    if bad:
        words.append(f"clocks of {', '.join(bad)} held down by a fault")
    return ", ".join(words)


def _energy(
    view: RunView, sheet: Sheet, reckoning: Reckoning, plain: bool
) -> Iterator[tuple[str, str]]:
    total = sheet.number("energy_j")
    if total is not None:
        words = f"{_joules(total)}{mark(sheet['energy_j'].grade, plain)}"
        words += _coverage(sheet.number("energy.coverage"))
        each = sheet.number("energy_per_unit.marginal_j")
        if each is not None and not reckoning.units.is_command:
            grade = mark(sheet["energy_per_unit.marginal_j"].grade, plain)
            words += f", {_joules(each)}{grade} per {safe(reckoning.units.name)}"
        yield "energy of the GPUs", words
    for name, what in (("host", "energy of the CPUs"), ("wall", "energy at the wall")):
        value = sheet.number(f"energy.{name}_j")
        if value is not None:
            covered = _coverage(sheet.number(f"energy.{name}_coverage"))
            grade = mark(sheet[f"energy.{name}_j"].grade, plain)
            yield what, f"{_joules(value)}{grade}{covered}"


def _joules(value: Fraction) -> str:
    for size, unit in ((3_600_000, "kWh"), (1000, "kJ")):
        if value >= size:
            return f"{rounded(value / size)} {unit}"
    return f"{rounded(value)} J"


def _coverage(share: Fraction | None) -> str:
    return f" in {percent(share)} of the run" if share is not None and share < _FULL else ""


def _paid(
    view: RunView, sheet: Sheet, reckoning: Reckoning, plain: bool
) -> Iterator[tuple[str, str]]:
    price, paid = view.electricity, sheet.number("cost_of_energy.total")
    if price is None:
        return
    if paid is None:
        yield "cost of energy", f"not known: {sheet['cost_of_energy.total'].why}"
        return
    figure = sheet["cost_of_energy.total"]
    words = f"{rounded(paid)} {figure.unit}{mark(figure.grade, plain)}"
    each = sheet.number("cost_of_energy.per_unit")
    if each is not None and not reckoning.units.is_command:
        grade = mark(sheet["cost_of_energy.per_unit"].grade, plain)
        words += f", {rounded(each)} {figure.unit}{grade} per {safe(reckoning.units.name)}"
    yield "cost of energy", f"{words} at {price.amount} {price.currency}/kWh, not in the cost above"
