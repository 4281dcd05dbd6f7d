"""From metered to billed time: increments, minimums, and the side to which they round.

A session is stretched or cut at its end (on the clock, at both ends) to the time that is billed, at
the level and multiplier that held there; so every microsecond of a bill has one, and the words of a
charge can say what was added. Money is not rounded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ouvrage.pricing.rates.clock import ceiling, floor
from ouvrage.pricing.rates.plan import Calendar, Rule, Steps
from ouvrage.pricing.rates.quantity import seconds_text
from ouvrage.pricing.rates.sessions import Session, cut_to


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """A session as it is billed, and in words how it came to that."""

    session: Session
    because: str


def billed(found: Sequence[Session], rule: Rule, before: int | None = None) -> list[Billed]:
    """The billed form of all sessions of one resource, in order of time.

    ``before`` is how far increments of the clock were billed already, under an earlier version.
    """
    if rule.steps.align == "clock":
        return _on_the_clock(found, rule.steps, rule.calendar, before)
    if "resource" in (rule.steps.count_per, rule.steps.minimum_per):
        return _together(found, rule.steps)
    return [_alone(each, rule.steps) for each in found]


def rounded_us(us: int, steps: Steps) -> int:
    """A duration rounded to whole increments."""
    step = steps.increment_us
    if not step:
        return us
    if steps.rounding == "up":
        return -(-us // step) * step
    return us // step * step if steps.rounding == "down" else (2 * us + step) // (2 * step) * step


def seam(rule: Rule, start: int, at: int, begins: bool) -> int:
    """Where a session is cut for a change at a moment, so that no increment is billed twice.

    Whole increments that began before belong to what held then. Where increments or minimums are those
    of all sessions together, and where a reservation may cover them, the cut is the change itself.
    """
    steps = rule.steps
    if rule.kind == "reservation" or rule.covered_by is not None or at <= start:
        return max(at, start)
    minimum = steps.minimum_us if begins else 0
    if steps.align == "clock":
        side = ceiling if steps.rounding == "up" else floor
        least = ceiling(steps, rule.calendar, floor(steps, rule.calendar, start) + minimum)
        return max(side(steps, rule.calendar, at), least if minimum else start)
    if "resource" in (steps.count_per, steps.minimum_per):
        return at
    least = (
        -(-minimum // steps.increment_us) * steps.increment_us if steps.increment_us else minimum
    )
    return start + max(rounded_us(at - start, steps), least)


def _alone(each: Session, steps: Steps) -> Billed:
    minimum = steps.minimum_us if each.begins else 0
    target = max(rounded_us(each.us, steps), minimum)
    why = f"{seconds_text(each.us)} s" + _words(each.us, steps, target, minimum)
    return Billed(session=_ending(each, each.start + target), because=why)


def _ending(each: Session, end: int) -> Session:
    return replace(each, segments=cut_to(each.segments, each.start, end))


def _words(us: int, steps: Steps, target: int, minimum: int) -> str:
    """How a duration became another one, in words; nothing where it did not."""
    if target == us:
        return ""
    if target == minimum and rounded_us(us, steps) < minimum:
        return f", at least {seconds_text(minimum)} s"
    side = {"up": "up", "down": "down", "nearest": "to the nearest"}[steps.rounding]
    return f" rounded {side} by {seconds_text(steps.increment_us)} s: {seconds_text(target)} s"


def _together(found: Sequence[Session], steps: Steps) -> list[Billed]:
    """Sessions whose sum is rounded, or has the minimum. The difference falls on the last ones."""
    one_by_one = replace(
        steps,
        minimum_us=0 if steps.minimum_per == "resource" else steps.minimum_us,
        increment_us=0 if steps.count_per == "resource" else steps.increment_us,
    )
    each = [_alone(session, one_by_one) for session in found]
    total = sum(one.session.us for one in each)
    target = rounded_us(total, steps) if steps.count_per == "resource" else total
    if steps.minimum_per == "resource" and any(one.session.begins for one in each):
        target = max(target, steps.minimum_us)
    why = f"; {seconds_text(total)} s in all, billed {seconds_text(target)} s"
    return _spread(each, target - total, why if target != total else "")


def _spread(each: list[Billed], difference: int, why: str) -> list[Billed]:
    """Lengthen the last session, or shorten from the last one backwards."""
    for index in range(len(each) - 1, -1, -1):
        session = each[index].session
        change = max(difference, -session.us)
        if change:
            ended = _ending(session, session.end + change)
            each[index] = Billed(session=ended, because=each[index].because + why)
            difference -= change
    return each


def _on_the_clock(
    found: Sequence[Session], steps: Steps, calendar: Calendar, billed_to: int | None
) -> list[Billed]:
    """Sessions stretched to the clock's boundaries. Per resource, no increment is billed twice."""
    result: list[Billed] = []
    for each in found:
        low, high = _touched(each, steps, calendar)
        if steps.count_per == "resource" and billed_to is not None:
            low = max(low, billed_to)
        high = max(high, low)
        if each.begins:
            high = max(high, low + steps.minimum_us)
        session = replace(each, segments=cut_to(each.segments, low, high))
        result.append(Billed(session=session, because=_clock_words(each, session, steps, calendar)))
        billed_to = high if billed_to is None else max(high, billed_to)
    return result


def _touched(each: Session, steps: Steps, calendar: Calendar) -> tuple[int, int]:
    if not each.us:  # touches no increment; a minimum begins where the clock's increment does
        start = floor(steps, calendar, each.start)
        return start, start
    if steps.rounding == "up":
        return floor(steps, calendar, each.start), ceiling(steps, calendar, each.end)
    return ceiling(steps, calendar, each.start), floor(steps, calendar, each.end)


def _clock_words(each: Session, session: Session, steps: Steps, calendar: Calendar) -> str:
    unit = steps.calendar or f"{seconds_text(steps.increment_us)} s"
    side = "commenced" if steps.rounding == "up" else "whole"
    zone = calendar.zone
    if each.us and not session.us and steps.rounding == "up":
        return f"{seconds_text(each.us)} s; its {unit} of the clock in {zone} is billed above"
    return f"{seconds_text(each.us)} s; {side} {unit} of the clock in {zone}: {seconds_text(session.us)} s"
