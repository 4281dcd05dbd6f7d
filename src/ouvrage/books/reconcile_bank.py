"""Invoices and bills against the lines of a bank: what paid what, what is open, what nobody can place.

Decides which line is taken for the payment of which document, with the reason and how certain it is:
*by hand* where somebody said so, *certain* where the line names the document's number and the amount is
the same, *likely* where one of the two and the payer's name agree. These are sure: the books post them. A
match is *possible* where the amount alone agrees; it is told, and both sides stay open until somebody
says that it is so. The surest are taken first, then the nearest in time; one line may pay several
documents and several lines one. What is left is listed on both sides, so that both add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from ouvrage.base.numbers import number
from ouvrage.base.time import DAY
from ouvrage.books.bank_items import Item, claims, lines, names_number, names_payer
from ouvrage.books.by_hand import FX_NEAR, Astray, Pairs, by_hand
from ouvrage.books.money import factor_of, rate_at
from ouvrage.books.paying import (
    CERTAIN,
    CERTAINTY,
    LIKELY,
    POSSIBLE,
    Match,
    in_full,
    in_turn,
    left_of,
    rest_of,
)
from ouvrage.books.period import Period
from ouvrage.books.reconcile_tenants import paid_items
from ouvrage.books.record import OwnerRecord

EARLY, LATE = 5, 60
"""Days before and after a document's day in which its payment is looked for."""
_MOST, _TOGETHER = 8, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A document of which ``amount`` is still owed, or a line of which that much nothing explains.

    ``why`` is a guess, ``do`` what would settle it.
    """

    item: Item
    amount: Fraction
    why: str
    do: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Banked:
    """Everything owed and everything that moved: in ``matches``, or ``open`` and ``unmatched``.

    What is in a ``possible`` match is open and unmatched as well. ``astray`` are statements by hand that
    do not fit what is known now.
    """

    matches: tuple[Match, ...] = ()
    possible: tuple[Match, ...] = ()
    open: tuple[Open, ...] = ()
    unmatched: tuple[Open, ...] = ()
    astray: tuple[Astray, ...] = ()


@dataclass(frozen=True, slots=True)
class _Search:
    """What the steps look at: the record, and the pairs that somebody said do not belong together."""

    record: OwnerRecord
    apart: Pairs

    def near(self, claim: Item, line: Item) -> bool:
        """Whether a line may be about a document: by its day, and by what was said by hand."""
        after = (claim.due_us or claim.day_us) + LATE * DAY
        before = min(claim.day_us, claim.due_us or claim.day_us) - EARLY * DAY
        return before <= line.day_us <= after and (line.lasting, claim.lasting) not in self.apart


def owed(record: OwnerRecord) -> tuple[Item, ...]:
    """Everything that is to be seen in the bank: documents, and what tenants paid as the platform says."""
    return (*claims(record), *paid_items(record))


def banked(record: OwnerRecord) -> Banked:
    """The documents of an owner against the lines of the bank, over everything known."""
    left, loose = list(owed(record)), list(lines(record))
    said = by_hand(record, left, loose)
    search = _Search(record, said.apart)
    matches = list(said.matches)
    left, loose = _without(left, loose, matches)
    for step in (_sure_pairs, _several_claims, _several_lines, _parts, _exchanged):
        found = step(search, left, loose)
        matches += found
        left, loose = _without(left, loose, found)
    possible = tuple(_pairs(search, left, loose, CERTAINTY))
    known = [line for match in matches for line in match.lines]
    more = [Open(item=line, amount=rest, why="more than its documents ask for")
            for match in matches for line, rest in rest_of(match)]  # fmt: skip
    return Banked(
        matches=tuple(sorted(matches, key=lambda m: (m.lines[0].day_us, m.lines[0].name))),
        possible=possible,
        open=tuple(_told([*_part_paid(matches), *(_open(item, left) for item in left)], possible)),
        unmatched=tuple(_told(
            [*more, *(Open(item=i, amount=i.amount, why=_why(record, i, loose, known)) for i in loose)],
            possible,
        )),
        astray=said.astray,
    )  # fmt: skip


def _without(
    left: Sequence[Item], loose: Sequence[Item], found: Iterable[Match]
) -> tuple[list[Item], list[Item]]:
    taken = {item.key for match in found for item in (*match.claims, *match.lines)}
    return [i for i in left if i.key not in taken], [i for i in loose if i.key not in taken]


def confirming(match: Match) -> str:
    """What says that a possible match is so."""
    return f"ouvrage books match {match.lines[0].name} {match.claims[0].name}"


def _told(items: Iterable[Open], possible: Sequence[Match]) -> Iterator[Open]:
    """Open items; those of a possible match say so and what confirms it."""
    mates = {
        mine.key: (other, match)
        for match in possible
        for mine, other in ((match.claims[0], match.lines[0]), (match.lines[0], match.claims[0]))
    }
    for each in items:
        if each.item.key in mates:
            other, match = mates[each.item.key]
            way = "pays" if other.sort != "line" else "is paid by"
            yield replace(each, why=f"perhaps it {way} {other.name}", do=confirming(match))
        else:
            yield each


def _part_paid(matches: Iterable[Match]) -> Iterator[Open]:
    for match in matches:
        for claim, left in left_of(match):
            yield Open(item=claim, amount=left, why="paid in part")


def _open(item: Item, left: Sequence[Item]) -> Open:
    twins = [
        other for other in left
        if other.key != item.key and other.sort == item.sort and other.who == item.who
        and (other.amount, other.currency, other.day_us) == (item.amount, item.currency, item.day_us)
    ]  # fmt: skip
    why = f"may be the same as {twins[0].name}" if twins else "no line of the bank pays it"
    return Open(item=item, amount=item.amount, why=why)


def _sure_pairs(search: _Search, left: Sequence[Item], loose: Sequence[Item]) -> list[Match]:
    return _pairs(search, left, loose, (CERTAIN, LIKELY))


def _pairs(
    search: _Search, left: Sequence[Item], loose: Sequence[Item], wanted: Sequence[str]
) -> list[Match]:
    """Pairs of the same amount, the surest first and then the nearest; each item once."""
    found: list[tuple[int, int, int, str, str, Match]] = []
    by_amount: dict[tuple[str, Fraction], list[Item]] = {}
    for line in loose:
        by_amount.setdefault((line.currency, line.amount), []).append(line)
    for claim in left:
        for amount in {claim.amount, claim.amount - claim.less}:
            for line in by_amount.get((claim.currency, amount), ()):
                match = _pair(claim, line)
                if search.near(claim, line) and match.certainty in wanted:
                    rank = CERTAINTY.index(match.certainty)
                    lost = int(bool(match.difference))
                    found.append((rank, lost, _apart(claim, line), claim.key, line.key, match))
    return list(_each_once(match for *_, match in sorted(found, key=lambda case: case[:5])))


def _apart(claim: Item, line: Item) -> int:
    """How far a line is from a document's day; one before it counts ten times."""
    late = line.day_us - claim.day_us
    return late if late >= 0 else -10 * late


def _each_once(matches: Iterable[Match]) -> Iterator[Match]:
    taken: set[str] = set()
    for match in matches:
        keys = {item.key for item in (*match.claims, *match.lines)}
        if not keys & taken:
            taken |= keys
            yield match


def _pair(claim: Item, line: Item) -> Match:
    numbered, named = names_number(line, claim), names_payer(line, claim)
    on_the_way = line.amount - claim.amount
    words = "the amount" if not on_the_way else "the amount less the charge for a payout"
    said = [w for ok, w in ((numbered, "the number"), (named, "the name")) if ok]
    reason = (
        f"{', '.join([words, *said[:-1]])} and {said[-1]} agree"
        if said
        else f"{words} alone agrees"
    )
    certainty = CERTAIN if numbered else LIKELY if named else POSSIBLE
    return Match(shares=in_full(claim, line), reason=reason, certainty=certainty)


def _several_claims(search: _Search, left: Sequence[Item], loose: Sequence[Item]) -> list[Match]:
    """Lines that pay several documents of one payer at once."""
    found: list[Match] = []
    taken: set[str] = set()
    for line in loose:
        near = [c for c in left if c.key not in taken and _alike(c, line) and search.near(c, line)]
        for who in sorted({claim.who for claim in near}):
            ours = [claim for claim in near if claim.who == who]
            named = [c for c in ours if names_payer(line, c) or names_number(line, c)]
            chosen = _adding_up(named, line.amount) if named else None
            if chosen is not None:
                found.append(
                    _together(chosen, (line,), f"{len(chosen)} documents of {who} add up to it")
                )
                taken |= {claim.key for claim in chosen}
                break
    return found


def _several_lines(search: _Search, left: Sequence[Item], loose: Sequence[Item]) -> list[Match]:
    """Documents that were paid by several lines of one payer."""
    found: list[Match] = []
    taken: set[str] = set()
    for claim in left:
        near = [
            line for line in loose
            if line.key not in taken and _alike(claim, line) and search.near(claim, line)
            and (names_payer(line, claim) or names_number(line, claim))
        ]  # fmt: skip
        chosen = _adding_up(near, claim.amount)
        if chosen is not None:
            found.append(
                _together((claim,), chosen, f"{len(chosen)} lines of {claim.who} add up to it")
            )
            taken |= {line.key for line in chosen}
    return found


def _alike(claim: Item, line: Item) -> bool:
    """Same currency, same direction."""
    return claim.currency == line.currency and (claim.amount > 0) == (line.amount > 0)


def _adding_up(items: Sequence[Item], total: Fraction) -> tuple[Item, ...] | None:
    """The fewest of some items that add up to a total, the earliest first; of at most ``_MOST``."""
    for size in range(2, _TOGETHER + 1):
        for chosen in combinations(items[:_MOST], size):
            if sum((item.amount for item in chosen), Fraction(0)) == total:
                return chosen
    return None


def _together(claims_: Sequence[Item], lines_: Sequence[Item], reason: str) -> Match:
    numbered = all(any(names_number(line, claim) for line in lines_) for claim in claims_)
    return Match(
        shares=in_turn(claims_, lines_), certainty=CERTAIN if numbered else LIKELY, reason=reason
    )


def _parts(search: _Search, left: Sequence[Item], loose: Sequence[Item]) -> list[Match]:
    """Lines that name a document and pay less than it; or more, which then stays unmatched."""
    found: list[Match] = []
    taken: set[str] = set()
    for claim in left:
        ours = [
            line for line in loose
            if line.key not in taken and _alike(claim, line) and search.near(claim, line)
            and names_number(line, claim)
        ]  # fmt: skip
        shares = in_turn((claim,), ours)
        if not shares:
            continue
        taken |= {share.line.key for share in shares}
        over = "more than it" if sum(s.amount for s in shares) == claim.amount else "a part of it"
        reason = f"the number agrees; {over} was paid"
        found.append(Match(shares=shares, certainty=LIKELY, reason=reason))
    return found


def _exchanged(search: _Search, left: Sequence[Item], loose: Sequence[Item]) -> list[Match]:
    """Payments that came in another currency, near what the day's rate gives."""
    cases: list[tuple[int, str, str, Match]] = []
    for claim in left:
        for line in loose:
            said = names_payer(line, claim) or names_number(line, claim)
            if line.currency == claim.currency or not said or not search.near(claim, line):
                continue
            rate = rate_at(search.record, claim.currency, line.currency, line.day_us)
            if rate is None or not claim.amount:
                continue
            due = claim.amount * factor_of(rate.value, claim.currency)
            if due * line.amount > 0 and abs(line.amount - due) <= abs(due) * FX_NEAR:
                match = Match(
                    shares=in_full(claim, line), certainty=LIKELY,
                    reason=f"the name agrees, and the amount at the rate of the day within {FX_NEAR * 100} %",
                )  # fmt: skip
                cases.append((abs(line.day_us - claim.day_us), claim.key, line.key, match))
    return list(_each_once(match for *_, match in sorted(cases, key=lambda case: case[:3])))


def _why(record: OwnerRecord, line: Item, loose: Sequence[Item], known: Sequence[Item]) -> str:
    """What a line that nothing explains may be."""
    twin = next((o for o in (*known, *loose) if o.key != line.key and _twin(line, o)), None)
    if twin is not None:
        return f"the same amount and words as {twin.name}: booked or imported twice?"
    if any(o.amount == -line.amount and o.currency == line.currency
           and abs(o.day_us - line.day_us) <= EARLY * DAY for o in loose if o.key != line.key):  # fmt: skip
        return "moved between accounts of one's own?"
    for each in record.assets:
        near = abs(each.valid_from - line.day_us) <= LATE * DAY
        if (
            near
            and each.value.currency == line.currency
            and -line.amount == number(each.value.price)
        ):
            return f"the price of {each.value.asset}?"
    for each in record.loans:
        if each.value.currency == line.currency and line.amount == number(each.value.principal):
            return f"the loan {each.value.loan}, paid out?"
    if line.amount > 0:
        return "no payout or invoice is recorded for it"
    return "no bill is recorded for it"


def _twin(line: Item, other: Item) -> bool:
    same = (line.amount, line.currency, line.who) == (other.amount, other.currency, other.who)
    return same and abs(line.day_us - other.day_us) <= 3 * DAY


def in_period(found: Banked, period: Period) -> Banked:
    """What concerns a period: documents and lines of its days, and what is still owed from before."""

    def touches(item: Item) -> bool:
        return period.from_us <= item.day_us < period.to_us

    return Banked(
        matches=tuple(m for m in found.matches if any(touches(i) for i in (*m.claims, *m.lines))),
        possible=tuple(m for m in found.possible if any(touches(i) for i in (*m.claims, *m.lines))),
        open=tuple(o for o in found.open if o.item.day_us < period.to_us),
        unmatched=tuple(o for o in found.unmatched if touches(o.item)),
        astray=found.astray,
    )
