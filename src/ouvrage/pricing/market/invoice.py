"""Was a quote kept? The host delivered, the time and cost of a unit, and the bill line by line.

Decides what each line of a bill should have been for the run that was really made, and names the
difference where it can: hours after the work's end, another increment, another rate, a disk that goes
on costing, a line that the quote does not hold. What cannot be compared is unknown and never kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import SECOND, utc_text
from ouvrage.model.hosts import BROKEN, HELD, UNKNOWN, HostLine, HostPromise, HostReading
from ouvrage.pricing.market.billing import Billing
from ouvrage.pricing.market.host_checks import NOT_READ, held_to
from ouvrage.pricing.market.host_text import NOT_TOLD, delivered, promised_words
from ouvrage.pricing.market.promises import KINDS
from ouvrage.pricing.rates.plan import Steps
from ouvrage.pricing.rates.steps import rounded_us

H = 3600
CENT = Fraction(1, 200)
"""Bills are in whole cents: less than half of one is no difference."""
BILL = "bill"
MACHINE = "bill: the machine's time"
"""Without these a bill was not compared at all."""
_STEPS = ((60, "up"), (60, "down"), (3600, "up"), (1, "up"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledLine:
    """One line of a provider's bill. ``kind`` is the line of a quote that it answers to."""

    place: str
    text: str
    kind: str
    amount: Fraction
    currency: str
    quantity: Fraction | None
    unit: str | None
    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One offer of a kept quote: what was said about it. None: the quote did not say it."""

    offer: str
    provider: str
    hour: Fraction
    currency: str
    plan: str | None
    unit: str
    unit_low: Fraction
    unit_likely: Fraction
    unit_high: Fraction
    cost_low: Fraction
    cost_likely: Fraction
    cost_high: Fraction
    host: tuple[HostPromise, ...]
    lines: Mapping[str, Fraction | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The run that was made: its moments, its units, and the host that it saw.

    ``checked`` are the readings of a check of that host, made at ``checked_us``; None: none is known.
    ``grade`` is that of the run's facts.
    """

    code: str
    unit: str
    units: int
    unit_s: Fraction | None
    wall_us: int
    started_us: int
    host: tuple[HostReading, ...]
    checked: tuple[HostReading, ...] | None = None
    checked_us: int | None = None
    grade: Grade = Grade.MEASURED

    @property
    def ended_us(self) -> int:
        """When the command ended."""
        return self.started_us + self.wall_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing compared. ``kept`` None: it cannot be told. ``check`` is the id of a promise of the host."""

    what: str
    promised: str
    found: str
    kept: bool | None
    why: str
    grade: Grade
    check: str | None = None

    def as_json(self) -> dict[str, Any]:
        """What ``--json`` prints of it."""
        return {
            **({} if self.check is None else {"check": self.check}),
            "what": self.what,
            "promised": self.promised,
            "found": self.found,
            "kept": self.kept,
            "why": self.why,
            "grade": self.grade.word,
        }


def findings(
    promise: Promise, done: Done, billing: Billing, bill: Sequence[BilledLine] | None
) -> list[Finding]:
    """Everything that can be compared, in order."""
    found = [*_host(promise, done), _time(promise, done), _cost(promise, done, billing)]
    return found if bill is None else [*found, *_lines(promise, done, billing, bill)]


def kept(found: Sequence[Finding]) -> bool | None:
    """Whether nothing that could be compared was broken; None where a bill was given and told nothing."""
    if any(each.kept is False for each in found):
        return False
    return (
        None if any(each.kept is None and each.what in (BILL, MACHINE) for each in found) else True
    )


def _host(promise: Promise, done: Done) -> Iterable[Finding]:
    """Each promise of the host: as the run saw it, else as a check of the host did."""
    seen = {line.id: line for line in held_to(promise.host, done.host)}
    checked = {line.id: line for line in held_to(promise.host, done.checked or ())}
    told = {each.id for each in promise.host}
    for id in KINDS:
        if id not in told and id not in _BASIC:
            continue
        line, other = seen.get(id), checked.get(id)
        if other is not None and done.checked_us is not None and _surer(other, line):
            yield _host_finding(other, f"host check of {utc_text(done.checked_us)[:16]}Z: ", done)
        elif line is not None:
            yield _host_finding(line, "", done)


def _surer(checked: HostLine, seen: HostLine | None) -> bool:
    """Whether the check tells something that the run does not."""
    if seen is None or seen.outcome == UNKNOWN:
        told_less = seen is None or delivered(seen, False) == NOT_TOLD
        return checked.outcome != UNKNOWN or told_less
    return False


_BASIC = ("cpu.allowed", "memory.limit")
"""What every run sees, and what is therefore told also where no offer says it."""


def _host_finding(line: HostLine, when: str, done: Done) -> Finding:
    why = f"{when}{line.reason}"
    if line.promised is None:
        why = "the offer states none"
    elif line.reason == NOT_READ:
        why = "the meter does not see it; " + (
            "the host check did not read it"
            if done.checked is not None
            else "ouvrage host check does"
        )
    return Finding(
        what=KINDS[line.id].words,
        promised="not stated" if line.promised is None else promised_words(line),
        found=delivered(line, False),
        kept={HELD: True, BROKEN: False}.get(line.outcome),
        why=why,
        grade=max(Grade.LISTED, done.grade) if line.outcome == UNKNOWN else done.grade,
        check=line.id,
    )


def _told(what: str, promised: str, found: str, ok: bool, why: str, grade: Grade) -> Finding:
    return Finding(what=what, promised=promised, found=found, kept=ok, why=why, grade=grade)


def _unknown(what: str, found: str, why: str, promised: str = "not stated") -> Finding:
    return Finding(
        what=what, promised=promised, found=found, kept=None, why=why, grade=Grade.LISTED
    )


def _time(promise: Promise, done: Done) -> Finding:
    what = f"time per {promise.unit}"
    promised = f"{_range(promise.unit_low, promise.unit_likely, promise.unit_high)} s"
    if done.unit != promise.unit:
        return _unknown(what, f"units are {done.unit}s", "other units were counted", promised)
    if done.unit_s is None:
        return _unknown(what, "not timed", "no unit of the run could be timed", promised)
    ok = done.unit_s <= promise.unit_high
    why = "within the range" if ok else "longer than the range that was quoted"
    if done.unit_s < promise.unit_low:
        why = "faster than was quoted"
    return _told(what, promised, f"{_shown(done.unit_s)} s", ok, why, done.grade)


def _cost(promise: Promise, done: Done, billing: Billing) -> Finding:
    what = f"cost per {promise.unit}"
    span = _range(promise.cost_low, promise.cost_likely, promise.cost_high)
    promised = f"{span} {promise.currency}"
    if done.unit != promise.unit or not done.units:
        return _unknown(what, "no such unit", "nothing of the kind was finished", promised)
    cost = expected_hours(done, billing) * promise.hour / done.units
    ok = cost <= promise.cost_high
    why = "the machine's time alone, under the plan's increments"
    if not ok:
        why += "; more than was quoted"
    return Finding(
        what=what,
        promised=promised,
        found=f"{_shown(cost)} {promise.currency}",
        kept=ok,
        why=why,
        grade=Grade.LISTED,
    )


def expected_hours(done: Done, billing: Billing) -> Fraction:
    """Hours that the rules bill for the run itself, from its start to its end."""
    return billing.billed_s(Fraction(done.wall_us, SECOND)) / H


def _lines(
    promise: Promise, done: Done, billing: Billing, bill: Sequence[BilledLine]
) -> Iterable[Finding]:
    foreign = sorted(
        {line.currency for line in bill if line.currency not in ("", promise.currency)}
    )
    if foreign:
        words = f"the bill is in {', '.join(foreign)}, the quote in {promise.currency}"
        yield _unknown(BILL, "other currency", words)
        return
    unnamed = sum(1 for line in bill if not line.currency)
    if unnamed:
        words = f"{unnamed} of its lines name none; they are taken to be in {promise.currency}"
        yield _unknown("bill: currency", "not stated", words)
    early = [line for line in bill if _early(line, done)]
    if early:
        amount = sum((line.amount for line in early), Fraction(0))
        words = f"{len(early)} lines that ended before the work began; not held against it"
        yield _unknown("bill: before the work", f"{_money(amount)} {promise.currency}", words)
    groups: dict[str, list[BilledLine]] = {}
    for line in bill:
        if not _early(line, done):
            groups.setdefault(line.kind, []).append(line)
    for kind in ("work", *sorted(groups.keys() - {"work"})):
        lines = groups.get(kind, [])
        if kind == "work":
            yield _compute_line(promise, done, billing, lines)
        else:
            yield _other_line(kind, promise, done, lines)


def _early(line: BilledLine, done: Done) -> bool:
    return line.end is not None and line.end <= done.started_us


def _compute_line(
    promise: Promise, done: Done, billing: Billing, lines: Sequence[BilledLine]
) -> Finding:
    hours = expected_hours(done, billing)
    should = hours * promise.hour
    promised = f"{_money(should)} {promise.currency} ({_shown(hours)} h)"
    if not lines:
        return _unknown(MACHINE, "no line", "the bill holds none", promised)
    amount = sum((line.amount for line in lines), Fraction(0))
    difference = amount - should
    ok = abs(difference) < CENT or difference < 0
    why = "as the rules say" if abs(difference) < CENT else "less than the rules say"
    rival = _as_rival(promise, done, billing, amount)
    if rival is not None and abs(difference) >= CENT:
        ok, why = True, f"as another text of the provider says ({rival}): this bill decides for it"
    if not ok:
        why = _compute_why(promise, done, billing, lines, amount)
    return Finding(
        what=MACHINE,
        promised=promised,
        found=f"{_money(amount)} {promise.currency}",
        kept=ok,
        why=why,
        grade=Grade.METERED,
    )


def _as_rival(promise: Promise, done: Done, billing: Billing, amount: Fraction) -> str | None:
    """The plan of a contradicting text that makes this amount, which a quote's range holds too."""
    return next(
        (
            rival.plan
            for rival in billing.rivals
            if abs(expected_hours(done, rival) * promise.hour - amount) < CENT
        ),
        None,
    )


def _compute_why(
    promise: Promise, done: Done, billing: Billing, lines: Sequence[BilledLine], amount: Fraction
) -> str:
    """What explains that more was billed, the surest first."""
    hours = _hours(lines)
    said: list[str] = []
    rate = amount / hours if hours else None
    if rate is not None and abs(rate - promise.hour) * (hours or 0) >= CENT:
        said.append(f"another rate: {_shown(rate)} an hour, {_shown(promise.hour)} was quoted")
    billed = hours if hours is not None else amount / promise.hour if promise.hour else None
    step = None if billed is None else _other_step(billed, promise.hour, done, billing)
    last = max((line.end for line in lines if line.end is not None), default=None)
    idle = None if last is None else Fraction(last - done.ended_us, SECOND)
    increment = Fraction(billing.steps.increment_us, SECOND)
    if step is not None:
        said.append(f"another increment: {step}, the plan says {billing.words}")
    elif idle is not None and idle > max(increment, Fraction(60)):
        said.append(f"{_shown(idle / H)} h after the work ended at {utc_text(done.ended_us)[:19]}Z")
    elif billed is not None and billed > expected_hours(done, billing) and not said:
        more = billed - expected_hours(done, billing)
        said.append(f"{_shown(more)} h more than the run took: before it or after it")
    return "; ".join(said) or "more than the rules say, and nothing explains it"


def _hours(lines: Sequence[BilledLine]) -> Fraction | None:
    """Billed hours, where every line says them."""
    total = Fraction(0)
    for line in lines:
        scale = {"h": 1, "hour": 1, "hours": 1, "hrs": 1, "s": H, "seconds": H, "min": 60}
        per = scale.get((line.unit or "").lower())
        if line.quantity is None or per is None:
            return None
        total += line.quantity / per
    return total


def _other_step(billed: Fraction, hour: Fraction, done: Done, billing: Billing) -> str | None:
    """The increment that would make the billed hours of this run, where it is not the plan's.

    To half a cent, since bills round: their hours, and the amounts from which hours are made here.
    """
    most = max(Fraction(1, 10**6), CENT / hour if hour else Fraction(0))
    for seconds, rounding in _STEPS:
        steps = Steps(increment_us=seconds * SECOND, rounding=rounding)
        if steps.increment_us == billing.steps.increment_us and rounding == billing.steps.rounding:
            continue
        if abs(Fraction(rounded_us(done.wall_us, steps), SECOND) / H - billed) < most:
            return f"per {seconds} s, rounded {rounding}"
    return None


def _other_line(kind: str, promise: Promise, done: Done, lines: Sequence[BilledLine]) -> Finding:
    amount = sum((line.amount for line in lines), Fraction(0))
    quoted = promise.lines.get(kind)
    found = f"{_money(amount)} {promise.currency}"
    last = max((line.end for line in lines if line.end is not None), default=None)
    late = last is not None and last > done.ended_us + H * SECOND
    what = f"bill: {kind}"
    if kind not in promise.lines and amount > 0:
        why = "the quote holds no such line"
        if kind == "storage" and late:
            why = "a disk that is still billed after the work ended; the quote holds no storage"
        return Finding(
            what=what, promised="nothing", found=found, kept=False, why=why, grade=Grade.METERED
        )
    if quoted is None:
        return _unknown(what, found, "the quote did not know its price")
    ok = amount < quoted + CENT
    why = "no more than was quoted" if ok else "more than was quoted"
    if not ok and late and last is not None:
        why = f"still billed {_shown(Fraction(last - done.ended_us, SECOND * H))} h after the work ended"
    promised = f"{_money(quoted)} {promise.currency}"
    return Finding(what=what, promised=promised, found=found, kept=ok, why=why, grade=Grade.METERED)


def _shown(value: Fraction) -> str:
    text = decimal_text(value)
    whole, point, decimals = text.partition(".")
    return text if len(decimals) <= 6 else f"{whole}{point}{decimals[:6]}".rstrip("0").rstrip(".")


def _money(value: Fraction) -> str:
    return _shown(value)


def _range(low: Fraction, likely: Fraction, high: Fraction) -> str:
    middle = _shown(likely)
    return middle if low == high else f"{middle} ({_shown(low)}–{_shown(high)})"
