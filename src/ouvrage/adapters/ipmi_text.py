"""What ipmitool prints, as states, readings and log entries.

Decides which of its words are which verdict, and that a line in another form is left out rather than guessed at. Times of an
event log have no zone: a BMC keeps its own clock, here taken as UTC. Nothing is run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal, InvalidOperation

from ouvrage.base.time import SECOND
from ouvrage.model.power import (
    AS_BEFORE,
    OFF,
    ON,
    STAYS_OFF,
    STAYS_ON,
    UNKNOWN_STATE,
    LogEntry,
    PowerLimit,
    Reading,
)

RESTORES = {"always-on": STAYS_ON, "always-off": STAYS_OFF, "previous": AS_BEFORE}
_VERDICTS = {"ok": "OK", "nc": "WARN", "cr": "CRITICAL", "nr": "CRITICAL"}
_UNITS = {
    "degrees C": "degC",
    "RPM": "rpm",
    "Watts": "W",
    "Volts": "V",
    "Amps": "A",
    "percent": "%",
}
_VALUE = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) (.+)")
_FAULTS = (
    "Power Overload",
    "Main Power Fault",
    "Power Control Fault",
    "Drive Fault",
    "Cooling/Fan Fault",
)
_NO_READING = ("No Reading", "Disabled", "Not Readable", "")
_CRITICAL = re.compile(
    r"uncorrectable|non-recoverable|critical (?:interrupt|going)|(?:upper|lower) critical|ierr|thermal trip|"
    r"power supply ac lost|failure detected|bus fatal|fatal nmi|fatal error|drive fault|machine check", re.IGNORECASE,
)  # fmt: skip
_WARN = re.compile(
    r"correctable|non-critical|predictive|fault|fail|lost|redundancy|throttl|log area reset|sel almost full|sel full|"
    r"over|error|degraded", re.IGNORECASE,
)  # fmt: skip
_EARLIEST = 946_684_800 * SECOND
_WATTS = re.compile(r"([0-9]+) Watts?")


def fields(text: str) -> dict[str, str]:
    """Lines of ``name : value``."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, sign, value in pairs if sign}


def state_in(status: str) -> str:
    """The state in what ``chassis status`` prints."""
    return {"on": ON, "off": OFF}.get(fields(status).get("System Power", ""), UNKNOWN_STATE)


def chassis_faults(status: str) -> list[Reading]:
    """The chassis' own faults in what ``chassis status`` prints."""
    told = fields(status)
    return [
        Reading(
            name=name, value=None, unit="", verdict="CRITICAL" if told[name] == "true" else "OK"
        )
        for name in _FAULTS
        if told.get(name) in ("true", "false")
    ]


def readings_in(listing: str) -> list[Reading]:
    """Sensors in what ``sdr elist full`` or ``all`` prints: name, number, state, place, value."""
    return [each for line in listing.splitlines() for each in _reading(line)]


def _reading(line: str) -> Iterator[Reading]:
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) != 5 or cells[2] not in _VERDICTS or cells[4] in _NO_READING:
        return
    found = _VALUE.fullmatch(cells[4])
    if (
        found is None
    ):  # a discrete sensor: its words are states such as "Presence detected, Failure detected"
        verdict = "CRITICAL" if _CRITICAL.search(cells[4]) else _VERDICTS[cells[2]]
        yield Reading(name=cells[0], value=None, unit=cells[4][:40], verdict=verdict)
        return
    value, unit = Decimal(found[1]), _UNITS.get(found[2], found[2][:16])
    yield Reading(name=cells[0], value=value, unit=unit, verdict=_VERDICTS[cells[2]])


def entries_in(listing: str) -> list[LogEntry]:
    """Entries in what ``-c sel elist`` prints: id, date, time, sensor, event, direction; oldest first."""
    return [each for line in listing.splitlines() for each in _entry(line)]


def _entry(line: str) -> Iterator[LogEntry]:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) < 5 or not re.fullmatch(r"[0-9a-fA-F]{1,4}", cells[0]):
        return
    words = ", ".join(cell for cell in cells[4:] if cell)
    yield LogEntry(
        id=cells[0].lower(), at_us=_moment(cells[1], cells[2]), verdict=_gravity(words), sensor=cells[3][:80],
        words=words[:300],
    )  # fmt: skip


def _moment(day: str, clock: str) -> int | None:
    """A BMC that has not been told the time counts from its own start: no moment."""
    for form in ("%m/%d/%Y %H:%M:%S", "%m/%d/%y %H:%M:%S", "%Y-%m-%d %H:%M:%S"):
        try:
            read = datetime.strptime(f"{day} {clock.split(' ')[0]}", form).replace(
                tzinfo=timezone.utc
            )
        except ValueError:
            continue
        at_us = int(read.timestamp()) * SECOND
        return at_us if at_us >= _EARLIEST else None
    return None


def _gravity(words: str) -> str:
    """IPMI gives an event no gravity: it is taken from what happened, and an end of something is none."""
    if words.endswith("Deasserted"):
        return "OK"
    if _CRITICAL.search(words) and not re.search(r"non-critical", words, re.IGNORECASE):
        return "CRITICAL"
    return "WARN" if _WARN.search(words) else "OK"


def used_in(info: str) -> int | None:
    """How full the event log is, in what ``sel info`` prints."""
    told = fields(info).get("Percent Used", "").rstrip("%")
    return min(100, int(told)) if told.isdecimal() else None


def draw_in(reading: str) -> Reading | None:
    """Watts in what ``dcmi power reading`` prints; nothing where the measurement is off or is 0."""
    told = fields(reading)
    found = _WATTS.match(told.get("Instantaneous power reading", ""))
    if found is None or told.get("Power reading state is") == "deactivated":
        return None
    try:
        watts = Decimal(found[1])
    except InvalidOperation:
        return None
    return Reading(name="power", value=watts, unit="W", verdict="OK") if watts else None


def limit_in(told: str) -> PowerLimit | None:
    """The limit in what ``dcmi power get_limit`` prints; None where it prints none."""
    found = fields(told)
    watts = _WATTS.match(found.get("Power Limit", ""))
    if watts is None:
        return None
    active = "No Active" not in found.get("Current Limit State", "")
    return PowerLimit(watts=int(watts[1]) if active and int(watts[1]) else None)
