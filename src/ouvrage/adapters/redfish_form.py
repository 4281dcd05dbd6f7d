"""Redfish resources as readings, limits and log entries: both the older ``Power`` and ``Thermal`` and single sensors.

Decides what counts as fitted (``State`` absent or disabled is no reading), which of a sensor's own words is its verdict, and
that a value which cannot be is none. Nothing is asked here. Names follow DMTF DSP0268 (Redfish data model).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from ouvrage.base.time import utc_us
from ouvrage.model.power import AS_BEFORE, STAYS_OFF, STAYS_ON, LogEntry, PowerLimit, Reading

Json = Mapping[str, Any]

VERDICTS = {"OK": "OK", "Warning": "WARN", "Critical": "CRITICAL"}
RESTORES = {
    "AlwaysOn": STAYS_ON, "AlwaysOff": STAYS_OFF, "LastState": AS_BEFORE,
    "Restore": AS_BEFORE,  # Lenovo's word, under Oem
}  # fmt: skip
_UNITS = {"Cel": "degC", "RPM": "rpm", "%": "%", "W": "W", "V": "V", "A": "A", "kW.h": "kWh"}
_GONE = ("Absent", "Disabled", "UnavailableOffline", "Deferring")
_MOST = 512
_GREATEST_W = 1_000_000
"""No machine that a BMC watches draws more; a figure above it, or below none, is no measurement."""


def under(value: Any, *path: str) -> Json:
    """The object at a path inside a resource; an empty one where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return cast("Json", value) if isinstance(value, Mapping) else {}


def rows(value: Any, name: str, most: int | None = _MOST) -> list[Json]:
    """The objects of a list inside a resource; the first ``most`` of them (None: all, a log's)."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return (
        [each for each in found[:most] if isinstance(each, Mapping)]
        if isinstance(found, list)
        else []
    )


def address_in(value: Any, *path: str) -> str | None:
    """The address of a resource that another one links to."""
    found = under(value, *path).get("@odata.id")
    return found if isinstance(found, str) and found.startswith("/") else None


def number(value: Any) -> Decimal | None:
    """A number as it was written; None for what is none, or cannot be one of a machine's."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        made = Decimal(str(value))
    except InvalidOperation:
        return None
    return made if made.is_finite() and abs(made) < 10**9 else None


def whole(value: Any) -> int | None:
    """A number as whole watts."""
    made = number(value)
    return None if made is None or made < 0 else int(made.to_integral_value())


def verdict_of(resource: Json) -> str | None:
    """What a resource says of itself; None where it is not fitted."""
    status = under(resource, "Status")
    if status.get("State") in _GONE:
        return None
    return VERDICTS.get(str(status.get("Health")), "UNKNOWN")


def _reading(resource: Json, value: Any, unit: str, name: str = "") -> Iterator[Reading]:
    verdict = verdict_of(resource)
    told = name or resource.get("Name") or resource.get("MemberId") or resource.get("Id")
    if verdict is None or not told:
        return
    read = number(value)
    if verdict == "UNKNOWN" and read is not None:
        verdict = _by_bounds(resource, read)
    yield Reading(name=str(told)[:80], value=read, unit=unit, verdict=verdict)


def _by_bounds(resource: Json, value: Decimal) -> str:
    """A sensor that has a value and says nothing of its health is judged by the bounds it names, if any."""
    for word, verdict in (("Critical", "CRITICAL"), ("NonCritical", "WARN")):
        upper, lower = (
            number(resource.get(f"{side}Threshold{word}")) for side in ("Upper", "Lower")
        )
        if (upper is not None and value >= upper) or (lower is not None and value <= lower):
            return verdict
    return "OK"


def of_thermal(thermal: Any) -> list[Reading]:
    """Temperatures and fans of a ``Thermal`` resource."""
    found: list[Reading] = []
    for each in rows(thermal, "Temperatures"):
        found += _reading(each, each.get("ReadingCelsius"), "degC")
    for each in rows(thermal, "Fans"):
        unit = "%" if each.get("ReadingUnits") == "Percent" else "rpm"
        found += _reading(
            each, each.get("Reading"), unit, str(each.get("Name") or each.get("FanName") or "")
        )
    return found


def of_power(power: Any) -> list[Reading]:
    """Power supplies, voltages and redundancy of a ``Power`` resource."""
    found: list[Reading] = []
    for each in rows(power, "PowerSupplies"):
        found += _reading(each, each.get("LastPowerOutputWatts"), "W")
    for each in rows(power, "Voltages"):
        found += _reading(each, each.get("ReadingVolts"), "V")
    for each in rows(power, "Redundancy"):
        found += _reading(each, None, "")
    return found


def of_sensor(sensor: Any) -> list[Reading]:
    """One ``Sensor`` resource."""
    if not isinstance(sensor, Mapping):
        return []
    unit = str(sensor.get("ReadingUnits") or "")
    return list(_reading(cast("Json", sensor), sensor.get("Reading"), _UNITS.get(unit, unit[:16])))


def draw_of(power: Any) -> Reading | None:
    """What the machine draws, from ``Power`` or ``EnvironmentMetrics``."""
    values = [each.get("PowerConsumedWatts") for each in rows(power, "PowerControl")]
    values.append(under(power, "PowerWatts").get("Reading"))
    read = (number(value) for value in values)
    told = next((each for each in read if each is not None and 0 <= each <= _GREATEST_W), None)
    return None if told is None else Reading(name="power", value=told, unit="W", verdict="OK")


def limit_of(power: Any) -> PowerLimit | None:
    """The limit in ``Power`` (``PowerControl``) or ``EnvironmentMetrics`` (``PowerLimitWatts``); None: it has none."""
    limit = under(power, "PowerLimitWatts")
    if limit:
        told = whole(limit.get("SetPoint"))
        off = limit.get("ControlMode") == "Disabled"
        least, most = whole(limit.get("AllowableMin")), whole(limit.get("AllowableMax"))
        return PowerLimit(watts=None if off or told == 0 else told, least=least, most=most)
    for each in rows(power, "PowerControl"):
        if "PowerLimit" in each:
            told = whole(under(each, "PowerLimit").get("LimitInWatts"))
            return PowerLimit(watts=told or None, most=whole(each.get("PowerCapacityWatts")))
    return None


def entries_of(members: Sequence[Any]) -> list[LogEntry]:
    """Entries of a log, oldest first by their own times, else as they came."""
    found = [
        entry
        for each in members
        if isinstance(each, Mapping)
        for entry in _entry(cast("Json", each))
    ]
    return sorted(found, key=lambda e: (e.at_us is None, e.at_us or 0))


def _entry(each: Json) -> Iterator[LogEntry]:
    if each.get("Id") is None:
        return
    words = each.get("Message") or each.get("MessageId") or each.get("EntryCode") or ""
    yield LogEntry(
        id=str(each["Id"])[:64],
        at_us=_moment(each.get("Created")),
        verdict=VERDICTS.get(str(each.get("Severity")), "WARN"),
        sensor=str(each.get("SensorType") or each.get("EntryType") or "")[:80],
        words=str(words)[:300],
    )


def _moment(text: Any) -> int | None:
    try:
        return utc_us(text) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None
