"""What smart plugs and meters answer and export: Shelly, Tasmota, and tables of readings.

Decides which field is the counter and in which unit it counts, since the same word differs: a Shelly of
the first generation counts watt-minutes (its energy meters watt-hours), of the second watt-hours, a
Tasmota kilowatt-hours. Which moment an answer is of must stand in it, beside it or in the file's name;
a plug's own clock without a zone is read in the zone that the caller names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ouvrage.adapters.catalogues.rows import Row
from ouvrage.adapters.feeds.counters import Reading
from ouvrage.adapters.feeds.intervals import Piece, Power
from ouvrage.adapters.feeds.moments import moment_of, wall_moment
from ouvrage.adapters.feeds.table import amount_text, column, decimal_sign, rows_of
from ouvrage.adapters.feeds.told import Told, amount_in, documents, key_part
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import MINUTE

UNITS = {"kWh": 3_600_000, "Wh": 3_600, "Wmin": 60, "J": 1}
_TIMES = ("at", "time", "timestamp", "ts", "when")
_INNER = ("status", "payload", "answer", "data", "result", "params")
_TIME_COLUMNS = (
    "time",
    "timestamp",
    "datetime",
    "date_time",
    "date",
    "ts",
    "zeit",
    "datum",
    "unixtime",
)
_COUNTERS = {
    "kWh": (
        "kwh",
        "total_kwh",
        "energy_kwh",
        "counter_kwh",
        "energy.total",
        "energy-total",
        "zählerstand",
        "reading",
        "total",
    ),
    "Wh": ("wh", "total_wh", "energy_wh", "aenergy.total"),
}
_POWERS = ("power", "watts", "w", "apower", "power_w", "energy.power", "energy-power")
_PHASES = ("a_total_act_energy", "b_total_act_energy", "c_total_act_energy", "total_act_energy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a caller says of an export: its zone, which outlet, and columns by name."""

    zone: str = "UTC"
    outlet: int = 0
    saved_us: int | None = None
    time_column: str | None = None
    counter_column: str | None = None
    unit: str | None = None


@dataclass(slots=True)
class Series:
    """What a file held: readings of a counter, or energy by interval, or power."""

    readings: list[Reading] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    power: list[Power] = field(default_factory=list)


def read_plug(text: str, told: Told, asked: Asked) -> Series:
    """The series in a file. Raises ``OuvrageError`` ``plug/form`` where no form fits."""
    if text.lstrip()[:1] in ("{", "["):
        return _from_json(text, told, asked)
    return _from_table(rows_of(told, text, None), told, asked)


def _from_json(text: str, told: Told, asked: Asked) -> Series:
    series = Series()
    before: int | None = None
    for place, value in documents(told, text):
        told.rows += 1
        where = place or "1"
        inner, at_us = _unwrapped(value, asked)
        found = _counter(inner, asked) if isinstance(inner, dict) else None
        if found is None:
            told.fault(
                where, "answer", inner, "an answer of a Shelly or Tasmota plug with a counter"
            )
            continue
        joules, since, own = found
        if at_us is None:
            at_us = (
                wall_moment(own, "", asked.zone, before) if isinstance(own, str) else moment_of(own)
            )
        at_us = asked.saved_us if at_us is None else at_us
        if at_us is None:
            told.fault(where, "time", own, 'a moment in it, or beside it: {"at": …, "status": {…}}')
            continue
        before = at_us
        series.readings.append(
            Reading(at_us=at_us, counter_j=joules, since=since, place=where, told=told)
        )
    return series


def _unwrapped(value: Any, asked: Asked) -> tuple[Any, int | None]:
    """The plug's own answer, and the moment that a logger wrote beside it."""
    if not isinstance(value, dict):
        return value, None
    inner = next((value[name] for name in _INNER if isinstance(value.get(name), dict)), None)
    said = next((value[name] for name in _TIMES if name in value), None)
    if inner is not None:
        return inner, moment_of(said)
    return value, moment_of(value["at"]) if "at" in value else None


Counted = tuple[int, str | None, Any]
"""Joules, since when it counts, and the plug's own clock."""


def _counter(value: Mapping[str, Any], asked: Asked) -> Counted | None:
    for form in (_tasmota, _second, _first):
        found = form(value, asked)
        if found is not None:
            return found
    return None


def _tasmota(value: Mapping[str, Any], asked: Asked) -> Counted | None:
    sensors = value.get("StatusSNS", value)
    energy = sensors.get("ENERGY") if isinstance(sensors, dict) else None
    if not isinstance(energy, dict):
        return None
    joules = _joules(energy.get("Total"), "kWh")
    since = energy.get("TotalStartTime")
    return (
        None
        if joules is None
        else (joules, None if since is None else key_part(str(since)), sensors.get("Time"))
    )


def _second(value: Mapping[str, Any], asked: Asked) -> Counted | None:
    """A Shelly of the second generation or later: a switch, or its whole status."""
    system = value.get("sys")
    clock = system.get("unixtime") if isinstance(system, dict) else None
    for name, total in (
        ("switch", "aenergy"),
        ("pm1", "aenergy"),
        ("em1data", "total_act_energy"),
        ("emdata", "total_act"),
    ):
        part = value.get(f"{name}:{asked.outlet}")
        if isinstance(part, dict):
            value = part
            if total in part:
                break
    counter = value.get("aenergy")
    if isinstance(counter, dict):
        joules = _joules(counter.get("total"), "Wh")
        return None if joules is None else (joules, None, clock or counter.get("minute_ts"))
    joules = _joules(value.get("total_act_energy", value.get("total_act")), "Wh")
    return None if joules is None else (joules, None, clock)


def _first(value: Mapping[str, Any], asked: Asked) -> Counted | None:
    """A Shelly of the first generation. Its meters' ``timestamp`` is of a local clock: not used."""
    for name, unit in (("emeters", "Wh"), ("meters", "Wmin")):
        listed = value.get(name)
        if isinstance(listed, list) and asked.outlet < len(listed):
            part = listed[asked.outlet]
            joules = _joules(part.get("total"), unit) if isinstance(part, dict) else None
            return None if joules is None else (joules, None, value.get("unixtime"))
    if "power" in value and "total" in value:
        joules = _joules(value.get("total"), "Wmin")
        return None if joules is None else (joules, None, None)
    return None


def _joules(value: object, unit: str) -> int | None:
    found = amount_in(value)
    return None if found is None or found < 0 else round(Fraction(found) * UNITS[unit])


def _from_table(rows: Sequence[Row], told: Told, asked: Asked) -> Series:
    when = asked.time_column or column(rows, _TIME_COLUMNS)
    if not rows:
        return Series()
    phases = [name for name in (column(rows, (each,)) for each in _PHASES) if name]
    if when and phases and asked.counter_column is None:
        return _intervals(rows, when, phases, told, asked)
    counter, unit = _counter_column(rows, asked)
    power = column(rows, _POWERS)
    if when is None or (counter is None and power is None):
        raise OuvrageError(
            "plug/form",
            f"{told.file} is in no form of a meter's export that is known here",
            where=(f"{told.file}:1   {', '.join(map(str, rows[0].cells))}"[:200],),
            hint="columns time and kwh, or name them: --time-column T --counter-column C --unit Wh",
        )
    sign = decimal_sign(str(row.cells.get(counter or power or "", "")) for row in rows)
    series = Series()
    before: int | None = None
    for row in rows:
        at_us = _moment(row, when, asked, before)
        amount = amount_text(row.cells.get(counter or power or ""), sign or ".")
        if at_us is None:
            row.fault(when, row.cells.get(when), "a moment")
        elif amount is None or amount < 0 or sign is None:
            row.fault(counter or power or "", row.cells.get(counter or power or ""), "a number")
        elif counter:
            joules = round(Fraction(amount) * UNITS[unit])
            series.readings.append(
                Reading(at_us=at_us, counter_j=joules, since=None, place=row.place, told=told)
            )
        else:
            series.power.append(Power(at_us=at_us, watts=Fraction(amount), place=row.place))
        told.faults += row.faults
        before = at_us or before
    return series


def _counter_column(rows: Sequence[Row], asked: Asked) -> tuple[str | None, str]:
    if asked.counter_column is not None:
        return asked.counter_column, asked.unit or "kWh"
    for unit, names in _COUNTERS.items():
        found = column(rows, names)
        if found:
            return found, asked.unit or unit
    return None, "kWh"


def _moment(row: Row, name: str, asked: Asked, before: int | None) -> int | None:
    said = row.cells.get(name)
    found = moment_of(said)
    if found is not None or not isinstance(said, str):
        return found
    for form in ("", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M"):
        found = wall_moment(said, form, asked.zone, before)
        if found is not None:
            return found
    return None


def _intervals(
    rows: Sequence[Row], when: str, phases: Sequence[str], told: Told, asked: Asked
) -> Series:
    """Shelly's table of an energy meter: watt-hours of each minute that begins at its timestamp."""
    series = Series()
    seen: set[int] = set()
    for row in rows:
        at_us = _moment(row, when, asked, None)
        amounts = [amount_text(row.cells.get(name), ".") for name in phases]
        good = [amount for amount in amounts if amount is not None and amount >= 0]
        if at_us is None or len(good) != len(amounts):
            name = when if at_us is None else phases[0]
            row.fault(name, row.cells.get(name), "a moment" if at_us is None else "watt-hours")
            told.faults += row.faults
        elif at_us not in seen:
            seen.add(at_us)
            joules = Fraction(sum(good, Decimal(0))) * UNITS["Wh"]
            series.pieces.append(Piece(from_us=at_us, to_us=at_us + MINUTE, joules=joules))
    return series
