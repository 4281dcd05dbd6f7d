"""From what a meter stood at to what was used between two readings.

Decides which readings are kept (the ends of a file, the first of an hour, both sides of a step that
cannot be use) and that a counter which fell, began anew or rose faster than any plug can carry leaves a
gap with a length and no energy. A counter goes on while nobody looks, so the difference over a long
pause between two readings counts in full. Kept readings are facts, so that files can come in any order
and overlap: what is used is made from all of them each time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ouvrage.adapters.feeds.told import Told
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import fixed
from ouvrage.base.time import HOUR, SECOND, utc_text
from ouvrage.ledger.stated import Stated
from ouvrage.model.meters import EnergyRead, MeterReading

ANEW = "it counts anew"
MOST_W = 100_000
"""No meter before one machine carries more; a faster rise is another meter's, or another unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """Which meter it is, what it hangs before, and where it measures (one of ``METER_SCOPES``)."""

    name: str
    about: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The counter at a moment, in joules, and where that stands in a file (None: it is recorded)."""

    at_us: int
    counter_j: int
    since: str | None
    place: str
    told: Told | None = field(default=None, compare=False, repr=False)

    def fault(self, found: str, expected: str) -> None:
        """Tell what does not fit about it, where it stands in a file."""
        if self.told is not None:
            self.told.fault(self.place, "counter", found, expected)


def fault_between(before: Reading, after: Reading) -> str | None:
    """Why the step between two readings is no use of energy; None where it is."""
    if before.since != after.since and None not in (before.since, after.since):
        return ANEW
    step = after.counter_j - before.counter_j
    if step < 0:
        return "it fell"
    seconds = (after.at_us - before.at_us) / SECOND
    return "it rose faster than any plug carries" if step > MOST_W * max(seconds, 1) else None


def kept(readings: Sequence[Reading]) -> list[Reading]:
    """Of the readings of one import, in any order, those that are recorded; steps that are no use are told."""
    ordered = _once(sorted(readings, key=lambda each: each.at_us))
    wanted = {0, len(ordered) - 1} if ordered else set[int]()
    for index, (before, after) in enumerate(itertools.pairwise(ordered)):
        if before.at_us // HOUR != after.at_us // HOUR:
            wanted.add(index + 1)
        why = fault_between(before, after)
        if why is not None:
            wanted |= {index, index + 1}
            flag(before, after, why)
    return [ordered[index] for index in sorted(wanted)]


def flag(before: Reading, after: Reading, why: str) -> None:
    """Tell a step that is no use of energy; one that the meter itself announces is no fault."""
    if why == ANEW:
        if after.told is not None:
            after.told.note(
                f"the counter was set back at {utc_text(after.at_us)[:16]}Z: a gap before it"
            )
        return
    after.fault(
        f"{_kwh(after)} kWh after {_kwh(before)} kWh",
        f"a counter that rises as a plug's can: {why}; this step counts as a gap",
    )


def agreeing(points: Iterable[Reading], known: Mapping[int, int]) -> list[Reading]:
    """Those that do not contradict what is recorded of their moment."""
    found: list[Reading] = []
    for each in points:
        stands = known.get(each.at_us, each.counter_j)
        if stands == each.counter_j:
            found.append(each)
        else:
            recorded = Reading(at_us=each.at_us, counter_j=stands, since=None, place="")
            each.fault(f"{_kwh(each)} kWh", f"{_kwh(recorded)} kWh, as is recorded of this moment")
    return found


def _kwh(reading: Reading) -> str:
    return fixed(Fraction(reading.counter_j, 3_600_000), 5)


def _once(ordered: Sequence[Reading]) -> list[Reading]:
    found: list[Reading] = []
    for each in ordered:
        if found and found[-1].at_us == each.at_us:
            if found[-1].counter_j != each.counter_j:
                each.fault(f"{_kwh(each)} kWh", f"{_kwh(found[-1])} kWh, as another row says")
            continue
        found.append(each)
    return found


def readings_stated(meter: Meter, readings: Iterable[Reading], grade: Grade) -> list[Stated]:
    """Kept readings as statements about their moments."""
    return [
        Stated(
            natural=f"meter/{meter.name}/at/{each.at_us}",
            value=MeterReading(
                meter=meter.name,
                about=meter.about,
                scope=meter.scope,
                counter_j=each.counter_j,
                since=each.since,
            ),
            subject=meter.about,
            valid_from=each.at_us,
            valid_to=each.at_us,
            grade=grade,
        )
        for each in readings
    ]


def readings_known(meter: Meter, known: Iterable[Stated]) -> list[Reading]:
    """The recorded readings of a meter, in order of time."""
    found = [
        Reading(
            at_us=each.valid_from,
            counter_j=each.value.counter_j,
            since=each.value.since,
            place="recorded",
        )
        for each in known
        if each.natural.startswith(f"meter/{meter.name}/at/")
    ]
    return sorted(found, key=lambda each: each.at_us)


def used_between(meter: Meter, readings: Sequence[Reading], grade: Grade) -> list[Stated]:
    """What was used between each two readings; nothing is covered where the step is no use."""
    found: list[Stated] = []
    for before, after in itertools.pairwise(readings):
        good = fault_between(before, after) is None
        value = EnergyRead(
            meter=meter.name,
            about=meter.about,
            scope=meter.scope,
            energy_j=after.counter_j - before.counter_j if good else 0,
            method="counter",
            covered_us=after.at_us - before.at_us if good else 0,
        )
        found.append(
            energy_stated(meter, f"from/{before.at_us}", value, (before.at_us, after.at_us), grade)
        )
    return found


def energy_stated(
    meter: Meter, key: str, value: EnergyRead, period: tuple[int, int], grade: Grade
) -> Stated:
    """Used energy as a statement about a period."""
    return Stated(
        natural=f"meter/{meter.name}/{key}",
        value=value,
        subject=meter.about,
        valid_from=period[0],
        valid_to=period[1],
        grade=grade,
    )
