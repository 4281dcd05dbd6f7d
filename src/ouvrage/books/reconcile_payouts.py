"""What a channel invoices or pays out against what it said was earned.

Decides which days a payout is about: those it states, else the days since the payout before it. Between
what was earned and what was paid out stand the channel's fee, the days by which its count lags behind
the date of the payout, and a fee that is not the one in the books; what is left after them stays.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import fixed, number
from ouvrage.base.time import DAY, utc_text
from ouvrage.books.differences import NEAR, SAME, Cause, Difference, Side
from ouvrage.books.money import converted
from ouvrage.books.period import Period
from ouvrage.books.record import FOR_EVER, Known, OwnerRecord
from ouvrage.books.spans import Span, merged
from ouvrage.books.terms import term
from ouvrage.model.earnings import ChannelInvoice, Earning

THRESHOLDS = {"vast": (Fraction(20), "Vast.ai pays weekly and from 20 USD on")}
"""What a channel carries over to the next payout, and who says so."""
MOST_LAG = 15
_SPREAD = Fraction(1, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Earned:
    """What was earned in some days before and after the channel's fee, in one currency."""

    gross: Fraction
    fee: Fraction
    grade: Grade
    keys: tuple[str, ...]

    @property
    def net(self) -> Fraction:
        """What the channel owes for it."""
        return self.gross - self.fee


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """An invoice with the days it is about; ``stated``: by itself, else since the one before."""

    invoice: Known[ChannelInvoice]
    from_us: int
    to_us: int
    stated: bool
    first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Owing:
    """What a channel earned that stands on no invoice, by the end of a period, and why that may be."""

    channel: str
    currency: str
    since_us: int
    earned: Earned
    why: str


def windows(record: OwnerRecord, channel: str) -> list[Window]:
    """The invoices of a channel in order, with the days that each is about."""
    ours = sorted(
        (each for each in record.invoices if each.value.channel == channel),
        key=lambda each: (each.value.issued_us, each.key),
    )
    found: list[Window] = []
    at = -FOR_EVER
    for each in ours:
        stated = each.valid_from < each.end < FOR_EVER
        ends = each.end if stated else each.value.issued_us
        begins = each.valid_from if stated else at
        found.append(
            Window(invoice=each, from_us=begins, to_us=ends, stated=stated, first=at == -FOR_EVER)
        )
        at = max(at, ends)
    return found


@dataclass(frozen=True, slots=True)
class _Part:
    """An earning in the currency of its channel's payouts, with what the channel keeps of it."""

    from_us: int
    to_us: int
    gross: Fraction
    fee: Fraction
    grade: Grade
    keys: tuple[str, ...]


class Feed:
    """Everything a channel says was earned, in one currency, found by its days."""

    def __init__(self, record: OwnerRecord, channel: str, currency: str) -> None:
        ours = (e for e in _told(record) if e.value.channel == channel)
        self.currency = currency
        self._parts = [_part(record, e, currency) for e in ours if e.value.component != "own-use"]
        self._begins = [part.from_us for part in self._parts]
        self._longest = max((part.to_us - part.from_us for part in self._parts), default=0)

    @property
    def begins(self) -> int | None:
        """When the first of it was earned."""
        return self._begins[0] if self._begins else None

    def earned(self, from_us: int, to_us: int) -> Earned:
        """What was earned in some days; what reaches beyond them counts by time."""
        gross = fee = Fraction(0)
        grades: set[Grade] = {Grade.MEASURED}
        keys: dict[str, None] = {}
        first = bisect_left(self._begins, from_us - self._longest)
        for part in self._parts[first : bisect_left(self._begins, to_us)]:
            within = min(part.to_us, to_us) - max(part.from_us, from_us)
            if within <= 0:
                continue
            share = Fraction(within, part.to_us - part.from_us)
            gross += part.gross * share
            fee += part.fee * share
            grades.add(part.grade)
            keys.update(dict.fromkeys(part.keys))
        return Earned(gross=gross, fee=fee, grade=weakest(grades), keys=tuple(keys))


def _part(record: OwnerRecord, each: Known[Earning], currency: str) -> _Part:
    earning, at_us = each.value, each.valid_from
    amount = converted(record, earning.amount, earning.currency, currency, at_us, each)
    grade, kept = amount.grade, Fraction(0)
    if earning.fee is not None:
        stated = converted(record, earning.fee, earning.currency, currency, at_us, each)
        kept, grade = stated.amount, max(grade, stated.grade)
    elif earning.component != "credit":
        share = term(record, f"channel:{earning.channel}", "fee", at_us)
        kept = amount.amount * share.value if share else kept
        grade = max(grade, share.grade) if share else grade
    return _Part(each.valid_from, each.end, amount.amount, kept, grade, each.keys)


def channels(record: OwnerRecord) -> list[str]:
    """The channels that earned or invoiced anything."""
    return sorted({each.value.channel for each in (*_told(record), *record.invoices)})


def _told(record: OwnerRecord) -> list[Known[Earning]]:
    """The earnings that a channel told; what the platform itself charged is invoiced to its tenants."""
    ours = {each.key for each in record.tenants.charges}
    return [each for each in record.earnings if each.key not in ours]


def feed_of(record: OwnerRecord, channel: str) -> Feed:
    """What a channel says was earned, in the currency that it pays in."""
    paid = [each.value.currency for each in record.invoices if each.value.channel == channel]
    said = [each.value.currency for each in _told(record) if each.value.channel == channel]
    return Feed(record, channel, (paid or said)[-1])


def payout_differences(record: OwnerRecord, period: Period) -> Iterator[Difference]:
    """Each invoice of a period against what was recorded as earned in its days."""
    for channel in channels(record):
        every, feed = windows(record, channel), feed_of(record, channel)
        every = [each for each in every if each.invoice.value.currency == feed.currency]
        lag = _lag(feed, every)
        other = _other_fee(feed, every, lag)
        for each in every:
            if period.from_us <= each.invoice.value.issued_us < period.to_us:
                yield _difference(feed, each, lag, other)


def _difference(feed: Feed, each: Window, lag: int, other: Fraction | None) -> Difference:
    invoice = each.invoice.value
    ours = feed.earned(each.from_us, each.to_us)
    causes = [Cause(words="the channel's fee", amount=-ours.fee, usual=True)] if ours.fee else []
    late = ours
    if lag and not each.stated:
        late = _lagged(feed, each, lag)
        days = f"{lag} day" if lag == 1 else f"{lag} days"
        words = f"its count ends {days} before its date, as with the others"
        causes.append(Cause(words=words, amount=late.net - ours.net, usual=True))
    paid = number(invoice.net)
    if other is not None and late.gross:
        held = late.fee / late.gross
        words = f"a fee of {_share(other)} by its payouts, where the books take {_share(held)}"
        causes.append(Cause(words=words, amount=late.gross * (held - other)))
    rest = paid - ours.gross - sum((c.amount or Fraction(0) for c in causes), Fraction(0))
    causes += [Cause(words=words) for words in _guesses(each, rest, late)]
    return Difference(
        name=f"payout/{invoice.channel}/{invoice.number}",
        what=f"{invoice.channel}, {_days(each)}",
        unit=invoice.currency,
        theirs=Side(words=f"payout {invoice.number}", amount=paid, grade=each.invoice.grade),
        ours=Side(words="earned", amount=ours.gross, grade=ours.grade),
        causes=tuple(causes),
        facts=(*each.invoice.keys, *ours.keys),
    )


def _share(value: Fraction) -> str:
    return f"{fixed(value * 100, 1)} %"


def _days(each: Window) -> str:
    ends = utc_text(each.to_us)[:10]
    since = utc_text(each.from_us)[:10] if each.stated or not each.first else ""
    return f"{since} to {ends}" if since else f"until {ends}"


def _guesses(each: Window, rest: Fraction, ours: Earned) -> Iterator[str]:
    """What may be behind a rest of which nobody can say how much it is."""
    if abs(rest) <= max(SAME, abs(number(each.invoice.value.net)) * NEAR):
        return
    if not ours.keys:
        yield "nothing is recorded as earned in its days: import what the channel says"
    elif rest > 0 and each.first:
        yield "it may hold days from before the record begins"
    elif each.first and not each.stated:
        yield "payouts before it that are not recorded: import them too"
    elif rest > 0:
        yield "what was carried over from a smaller week, or days that no file covers"
    else:
        yield "days that the payout leaves to the next one, credits, or a higher fee"


def _lagged(feed: Feed, each: Window, lag: int) -> Earned:
    begins = each.from_us if each.first else each.from_us - lag * DAY
    return feed.earned(begins, each.to_us - lag * DAY)


def _lag(feed: Feed, every: Sequence[Window]) -> int:
    """By how many days a channel's count ends before its payouts: what makes them fit best.

    0 unless at least three payouts state no days of their own and it halves what they are off.
    """
    undated = [each for each in every if not each.stated and not each.first]
    if len(undated) < 3:
        return 0
    paid = [number(each.invoice.value.net) for each in undated]
    off = [_misfit(paid, [_lagged(feed, each, lag) for each in undated]) for lag in range(MOST_LAG)]
    best = min(range(MOST_LAG), key=lambda lag: (off[lag], lag))
    return best if off[best] * 2 <= off[0] and off[0] > SAME * len(undated) else 0


def _misfit(paid: Sequence[Fraction], earned: Sequence[Earned]) -> Fraction:
    """How badly payouts follow what was earned at one common share, whatever that share is."""
    gross = sum((each.gross for each in earned), Fraction(0))
    kept = sum(paid, Fraction(0)) / gross if gross else Fraction(1)
    off = (abs(each - found.gross * kept) for each, found in zip(paid, earned, strict=True))
    return sum(off, Fraction(0))


def _other_fee(feed: Feed, every: Sequence[Window], lag: int) -> Fraction | None:
    """The share that a channel keeps by its payouts, where they agree and the books take another."""
    shares: list[Fraction] = []
    held: list[Fraction] = []
    for each in every:
        ours = _lagged(feed, each, 0 if each.stated else lag)
        if ours.gross > 0 and (each.stated or not each.first):
            shares.append(1 - number(each.invoice.value.net) / ours.gross)
            held.append(ours.fee / ours.gross)
    if len(shares) < 2 or max(shares) - min(shares) > _SPREAD or min(shares) < 0:
        return None
    middle = sum(shares, Fraction(0)) / len(shares)
    usual = sum(held, Fraction(0)) / len(held)
    return middle if abs(middle - usual) > _SPREAD else None


def owing(record: OwnerRecord, period: Period) -> Iterator[Owing]:
    """What was earned by the end of a period and stands on no invoice, channel by channel."""
    for channel in channels(record):
        every, feed = windows(record, channel), feed_of(record, channel)
        every = [each for each in every if each.from_us < period.to_us]
        lag = _lag(feed, every) * DAY
        spans = merged((w.from_us, w.to_us - (0 if w.stated else lag)) for w in every)
        yield from _left_over(channel, feed, spans, period)


def _left_over(channel: str, feed: Feed, spans: Sequence[Span], period: Period) -> Iterator[Owing]:
    at = feed.begins
    if at is None:
        return
    last = max((ends for _, ends in spans), default=-FOR_EVER)
    for begins, ends in (*spans, (period.to_us, period.to_us)):
        until = min(begins, period.to_us)
        if at < until:
            earned = feed.earned(at, until)
            if earned.gross:
                why = _why_owing(channel, earned, after_last=at >= last)
                yield Owing(
                    channel=channel, currency=feed.currency, since_us=at, earned=earned, why=why
                )
        at = max(at, ends)


def _why_owing(channel: str, earned: Earned, *, after_last: bool) -> str:
    least = THRESHOLDS.get(channel)
    if not after_last:
        return "between the days of two invoices"
    if least is not None and earned.net < least[0]:
        return f"carried over: {least[1]}"
    return "on no invoice yet"
