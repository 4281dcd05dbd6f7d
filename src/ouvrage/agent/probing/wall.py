"""Energy at the wall as facts: what the named meter counted in each hour, by which method, and how much of it is covered.

Decides what is known between two answers of the meter: the difference of its counter, however long apart they are; without a
counter, the mean of two readings of power, where they are close. A counter that went back counted anew, and what lies between
two powers that are far apart is not known: both leave the hour less covered and nothing is filled in. An hour is stated when
it is over. GPU sensors are never added to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.time import HOUR, MINUTE
from ouvrage.ledger.stated import Stated
from ouvrage.model.meters import EnergyRead

CLOSE_US = 3 * MINUTE
"""Two readings of power this far apart say what was drawn between them: three intervals of the probe."""
METER = "agent-wall"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """What is known of the hour that began at ``begins_us`` UTC, and the last answer.

    ``energy_uj`` was drawn in ``covered_us`` of it; the last answer's moments are UTC and since boot.
    """

    begins_us: int
    at_us: int
    monotonic_us: int
    power_mw: int | None
    counter_uj: int | None
    energy_uj: int = 0
    covered_us: int = 0
    method: str = "counter"


def hour_after(hour: Hour | None, now: Hour) -> tuple[Hour, list[Hour]]:
    """The hour after one more answer, and those that are over with it. ``now`` holds the answer alone."""
    if hour is None or now.at_us < hour.at_us:
        return now, []  # the clock was set back: what is known of an hour begins anew
    if now.at_us == hour.at_us:
        return hour, []
    used, method = _between(hour, now)
    lasted = now.at_us - hour.at_us
    over: list[Hour] = []
    held, place = hour, hour.at_us
    while True:
        end = min(held.begins_us + HOUR, now.at_us)
        if used is not None:
            share = used * (end - hour.at_us) // lasted - used * (place - hour.at_us) // lasted
            held = replace(
                held, energy_uj=held.energy_uj + share, covered_us=held.covered_us + end - place,
                method=method,
            )  # fmt: skip
        if now.at_us < held.begins_us + HOUR:
            break
        over.append(held)
        held, place = replace(held, begins_us=end, energy_uj=0, covered_us=0), end
    last = replace(
        held, at_us=now.at_us, monotonic_us=now.monotonic_us, power_mw=now.power_mw,
        counter_uj=now.counter_uj,
    )  # fmt: skip
    return last, [each for each in over if each.covered_us]


def answer_of(power_mw: int | None, counter_uj: int | None, at_us: int, monotonic_us: int) -> Hour:
    """One answer of the meter, in its hour."""
    return Hour(
        begins_us=at_us - at_us % HOUR, at_us=at_us, monotonic_us=monotonic_us, power_mw=power_mw,
        counter_uj=counter_uj,
    )  # fmt: skip


def _between(before: Hour, now: Hour) -> tuple[int | None, str]:
    """Microjoules drawn between two answers, None where that is not known, and by which method."""
    if before.counter_uj is not None and now.counter_uj is not None:
        return (
            now.counter_uj - before.counter_uj if now.counter_uj >= before.counter_uj else None
        ), "counter"
    apart = now.monotonic_us - before.monotonic_us
    stepped = abs(now.at_us - before.at_us - apart) > MINUTE
    if before.power_mw is None or now.power_mw is None or not 0 < apart <= CLOSE_US or stepped:
        return None, before.method
    return (before.power_mw + now.power_mw) * apart // 2000, "integral"


def hour_stated(hour: Hour, node: str) -> Stated:
    """The fact of an hour that is over."""
    value = EnergyRead(
        meter=METER, about=f"node:{node}", scope="wall", energy_j=hour.energy_uj // 1_000_000,
        method=hour.method, covered_us=hour.covered_us,
    )  # fmt: skip
    return Stated(
        natural=f"meter/{METER}/from/{hour.begins_us}", value=value, subject=f"node:{node}",
        valid_from=hour.begins_us, valid_to=hour.begins_us + HOUR, grade=Grade.MEASURED,
    )  # fmt: skip


def hour_from(told: dict[str, Any] | None) -> Hour | None:
    """What stands in the memory."""
    return None if told is None else Hour(**told)
