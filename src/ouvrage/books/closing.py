"""Closing a month: what must be settled or accepted first, and whether a month is closed.

Decides the checklist: hours of which nothing is known, days without an earning, what is assumed and how
far it could move the margin, bills that are missing, documents and bank lines that match nothing, rates
of exchange that lack. Each is in order, open, or accepted by somebody with a reason. What was accepted
counts only while the same is found: an open item that grew is open again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import fixed
from ouvrage.base.time import DAY, HOUR
from ouvrage.books.account import Account, account
from ouvrage.books.differences import Difference, settled
from ouvrage.books.gaps import gaps, held_text, range_text
from ouvrage.books.gaps_text import name_of, signed, worth_filling
from ouvrage.books.period import Period, day_of, day_start, period_before
from ouvrage.books.pnl_text import period_words
from ouvrage.books.reconcile import Reconciled, reconciled
from ouvrage.books.record import OwnerRecord
from ouvrage.books.spans import Span, merged, within
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.model.closings import BooksClosed, BooksReopened, ItemAccepted

OK, OPEN, ACCEPTED = "ok", "open", "accepted"
NEVER = ("time", "fx", "statement")
"""Sorts of items that nobody can accept: without them there is nothing to seal."""
_MOST_DAYS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of a checklist: ``item`` names it, ``found`` says what is so.

    ``state`` is ``ok``, ``open`` or ``accepted``; ``moves`` how far it could move the margin (None:
    nobody can say); ``do`` what settles it; ``why`` the reason for which it was accepted.
    """

    item: str
    found: str
    state: str
    moves: Fraction | None = None
    do: str = ""
    why: str = ""

    @property
    def sort(self) -> str:
        """The first part of its name: ``hours`` of ``hours/node-1``."""
        return self.item.partition("/")[0]


def checklist(
    record: OwnerRecord, site: str, period: Period, accepted: Mapping[str, ItemAccepted]
) -> tuple[Check, ...]:
    """Everything to settle before a month is closed, in the order in which it is worth doing."""
    if record.as_of < period.to_us:
        found = f"{period_words(period)} has not ended, as far as is known here"
        return (
            Check(item=f"time/{period.name}", found=found, state=OPEN, do="close it when it has"),
        )
    try:
        made = account(record, site, period)
        agreed = reconciled(record, site, period)
    except OuvrageError as error:
        return (
            Check(item=f"fx/{error.code}", found=error.message, state=OPEN, do=error.hint or ""),
        )
    every = [
        *_hours(made),
        *_days(made),
        *_assumed(record, site, period),
        *_bills(record, site, period, agreed),
        *_differing(agreed),
        *_unmatched(agreed),
        *_old_rates(made),
    ]
    return tuple(_with(check, accepted.get(check.item)) for check in every)


def _with(check: Check, accepted: ItemAccepted | None) -> Check:
    if check.state != OPEN or accepted is None or accepted.found != check.found:
        return check
    return Check(
        item=check.item, found=check.found, state=ACCEPTED, moves=check.moves, why=accepted.why
    )


def _hours(made: Account) -> Iterator[Check]:
    """Hours of which no fact says the state, node by node."""
    for node, devices in made.grid.stretches.items():
        stretches = [s for each in devices.values() for s in each]
        blank = sum(s.us for s in stretches if s.state == "unknown")
        owned = sum(s.us for s in stretches)
        if not owned:
            continue
        told = f"{fixed(Fraction(blank, HOUR), 1)} of {fixed(Fraction(owned, HOUR), 1)} hours are unknown"
        yield Check(
            item=f"hours/{node}", found=told if blank else "what each GPU did is known for every hour",
            state=OPEN if blank else OK,
            do=f"ouvrage own state node:{node} STATE --from TIME --to TIME" if blank else "",
        )  # fmt: skip


def _days(made: Account) -> Iterator[Check]:
    """Days of a node in which something was sold by the calendar or nothing is said, and none earned."""
    period = made.grid.period
    for node, devices in made.grid.stretches.items():
        if not devices:
            continue
        abouts = {f"node:{node}", f"site:{made.grid.site}", *(f"device:{name}" for name in devices)}
        record = made.record
        earned = merged(
            (each.valid_from, each.end)
            for each in (*record.earnings, *record.leases)
            if each.value.about in abouts
        )
        stretches = [s for each in devices.values() for s in each]
        idle = merged(
            (s.from_us, s.to_us) for s in stretches if s.state in ("free", "down", "maintenance")
        )
        sold = merged(
            (s.from_us, s.to_us) for s in stretches if s.state in ("working", "held", "reserved")
        )
        stood = merged((s.from_us, s.to_us) for s in stretches)
        blank = [day for day in _days_of(period, stood) if _silent(day, earned, idle, sold)]
        words = _day_words(blank, period)
        yield Check(
            item=f"days/{node}",
            found=f"nothing was recorded as earned on {words}"
            if blank
            else "no day lacks an earning",
            state=OPEN if blank else OK,
            do="import what the channel says of them" if blank else "",
        )


def _days_of(period: Period, stood: Sequence[Span]) -> Iterator[Span]:
    """The days of a period in which a machine stood there."""
    day = day_of(period.from_us, period.zone)
    while (begins := day_start(day, period.zone)) < period.to_us:
        day += timedelta(days=1)
        whole = (begins, day_start(day, period.zone))
        if within(stood, [whole]):
            yield whole


def _silent(day: Span, earned: Sequence[Span], idle: Sequence[Span], sold: Sequence[Span]) -> bool:
    """Whether a day has no earning although something was sold, or nobody says that nothing was."""
    if within(earned, [day]):
        return False
    return bool(within(sold, [day])) or not within(idle, [day])


def _day_words(days: Sequence[Span], period: Period) -> str:
    named = [f"{day_of(begins, period.zone)}" for begins, _ in days]
    more = len(named) - _MOST_DAYS
    return ", ".join(named[:_MOST_DAYS]) + (f" and {more} more days" if more > 0 else "")


def _assumed(record: OwnerRecord, site: str, period: Period) -> Iterator[Check]:
    """What is assumed, with how far it could move the margin; what nobody can put bounds to first."""
    found = worth_filling(gaps(record, site, period))
    for gap in found:
        about = (gap.abouts or (site,))[0].partition(":")[2]
        name = (
            f"{'unknown' if gap.moves is None else 'assumed'}/{gap.what.replace(' ', '-')}/{about}"
        )
        held = f"{name_of(gap)}: {held_text(gap)} assumed, plausibly {range_text(gap, ' to ')}"
        told = held if gap.moves else f"{name_of(gap)}: {gap.source}"
        yield Check(
            item=name, found=told, state=OPEN, moves=gap.most if gap.moves else None, do=gap.fill
        )
    if not found:
        yield Check(item="assumed", found="nothing assumed could move the margin", state=OK)


def _bills(record: OwnerRecord, site: str, period: Period, agreed: Reconciled) -> Iterator[Check]:
    """Sorts of bills that the month before had and this one has not; days without electricity's."""
    before = period_before(period)
    now = {
        (b.value.sort, b.value.about) for b in record.bills if b.meets(period.from_us, period.to_us)
    }
    usual = {
        (each.value.sort, each.value.about)
        for each in record.bills
        if each.meets(before.from_us, before.to_us) and each.valid_from < each.end
    }
    if agreed.unbilled:
        blank = sum(ends - begins for begins, ends in agreed.unbilled)
        days = f"{-(-blank // DAY)} days" if blank < period.us else "the month"
        yield Check(
            item="missing/electricity", found=f"no bill of electricity covers {days}", state=OPEN,
            do="ouvrage import bills FILE",
        )  # fmt: skip
    else:
        yield Check(
            item="missing/electricity", found="electricity is billed for every day", state=OK
        )
    for sort, about in sorted(usual - now):
        if sort != "electricity":
            yield Check(
                item=f"missing/{sort}/{about.partition(':')[2]}", state=OPEN, do="ouvrage import bills FILE",
                found=f"no bill of {sort} for {about}, as there was in {period_words(before)}",
            )  # fmt: skip


def _differing(agreed: Reconciled) -> Iterator[Check]:
    for each in (*agreed.energy, *agreed.payouts):
        digits = 1 if each.unit == "kWh" else 2
        sides = f"{each.theirs.words} {fixed(each.theirs.amount, digits)}, {each.ours.words} {fixed(each.ours.amount, digits)} {each.unit}"
        if settled(each):
            yield Check(item=f"differs/{each.name}", found=f"{sides}: they agree", state=OK)
        else:
            yield Check(
                item=f"differs/{each.name}", found=f"{sides}: {signed(each.amount)} apart", state=OPEN,
                moves=_in_margin(each), do=f"likely {each.causes[0].words}" if each.causes else "",
            )  # fmt: skip


def _in_margin(each: Difference) -> Fraction | None:
    return None if each.unit == "kWh" else abs(each.amount)


def _unmatched(agreed: Reconciled) -> Iterator[Check]:
    items = (*agreed.bank.open, *agreed.bank.unmatched)
    for each in items:
        item = each.item
        found = f"{signed(each.amount)} {item.currency} of {item.who or item.name}: {each.why}"
        yield Check(item=item.name, found=found, state=OPEN, do=each.do)
    if not items:
        found = "every document is paid and every bank line has its document"
        yield Check(item="bank", found=found, state=OK)


def _old_rates(made: Account) -> Iterator[Check]:
    for note in made.notes:
        if note.startswith("the rate "):
            pair = note.split()[2].replace("/", "-")
            yield Check(item=f"rate/{pair}", found=note, state=OPEN, do="ouvrage fx set")


def chosen(checks: Iterable[Check], patterns: Sequence[str]) -> list[Check]:
    """The open items that names mean: a whole name, or the beginning of one up to a slash.

    Raises ``OuvrageError`` ``close/item`` for a name that means none, ``close/never`` for what cannot
    be accepted.
    """
    found: list[Check] = []
    every = [check for check in checks if check.state != OK]
    for pattern in patterns:
        ours = [
            c for c in every if c.item == pattern or c.item.startswith(pattern.rstrip("/") + "/")
        ]
        if not ours:
            names = ", ".join(sorted({c.item for c in every if c.state == OPEN})[:8])
            raise OuvrageError(
                "close/item",
                f"no open item is called {pattern!r}",
                hint=f"there is {names or 'none'}",
            )
        for check in ours:
            if check.sort in NEVER:
                raise OuvrageError(
                    "close/never", f"{check.item} cannot be accepted: {check.found}", hint=check.do
                )
        found += [check for check in ours if check not in found]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Closings:
    """What was said about closing the months of a site: the last seal of each, and what was accepted."""

    sealed: Mapping[str, BooksClosed]
    last: Mapping[str, int]
    accepted: Mapping[tuple[str, str], ItemAccepted]

    def of(self, period: str) -> Mapping[str, ItemAccepted]:
        """What was accepted for a month, by item."""
        return {item: each for (name, item), each in self.accepted.items() if name == period}


CLOSING_KINDS = (ItemAccepted.KIND, BooksClosed.KIND, BooksReopened.KIND)


def closings(records: Iterable[Recorded], site: str) -> Closings:
    """What facts in force say about the closed months of a site. Their order does not matter."""
    values = [read(entry.fact) for entry in in_force(records) if entry.fact.kind in CLOSING_KINDS]
    ours = [value for value in values if getattr(value, "site", None) == site]
    opened = {(v.period, v.number) for v in ours if isinstance(v, BooksReopened)}
    closed = sorted(
        (v for v in ours if isinstance(v, BooksClosed)), key=lambda v: (v.period, v.number)
    )
    last = {value.period: value for value in closed}
    return Closings(
        sealed={p: v for p, v in last.items() if (p, v.number) not in opened},
        last={period: value.number for period, value in last.items()},
        accepted={(v.period, v.item): v for v in ours if isinstance(v, ItemAccepted)},
    )
