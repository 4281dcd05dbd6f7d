"""What is owed and what moved in the bank, as items that can be matched with one another.

Decides the names by which a person calls them, their signs (what comes in is positive) and the words by
which a line of a bank can be told to be about one: the number of a document, the name of who pays. An
instalment of a loan, for which nobody writes a document, is one while the bank's lines are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.canonical import sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO, number
from ouvrage.base.time import DAY, utc_text, utc_us
from ouvrage.books.loans import loan_schedule
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.terms import line_of, stated
from ouvrage.model.cash import BankLine, CostBill
from ouvrage.model.earnings import ChannelInvoice

_SHORT = 6
_ABOUT = 5 * DAY
"""How far beyond the first and the last line of the bank an instalment is asked after."""
_WORD = re.compile(r"[^\W_]+", re.UNICODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A document that is owed, or a line of the bank. ``amount`` is positive for what comes in.

    ``day_us`` is its day, ``due_us`` when it is to be paid where that is stated. ``less`` is what is
    known to be taken on the way (a charge for the payout). ``numbers`` and ``names`` are the lower-case
    words by which it is known; of a line they are all of its words. ``key`` is its own, ``fact`` the key
    of the fact that states it, and ``lasting`` what stays of its key when that is corrected.
    """

    name: str
    sort: str
    who: str
    words: str
    amount: Fraction
    less: Fraction
    currency: str
    day_us: int
    due_us: int | None
    numbers: frozenset[str]
    names: frozenset[str]
    text: str
    key: str
    fact: str
    lasting: str
    grade: Grade


def claims(record: OwnerRecord) -> tuple[Item, ...]:
    """Every invoice, bill and instalment, in order of its day."""
    found = [
        *(_invoice(record, each) for each in record.invoices),
        *(_bill(each) for each in record.bills),
        *_instalments(record),
    ]
    return tuple(sorted(found, key=_place))


def lines(record: OwnerRecord) -> tuple[Item, ...]:
    """Every line of a bank, in order of its day."""
    return tuple(sorted((_line(each) for each in record.payments), key=_place))


def _place(item: Item) -> tuple[int, str, str]:
    return (item.day_us, item.name, item.key)


def _invoice(record: OwnerRecord, each: Known[ChannelInvoice]) -> Item:
    invoice = each.value
    charge = stated(record, f"channel:{invoice.channel}", "payout_fee", invoice.issued_us)
    return Item(
        name=f"invoice/{invoice.channel}/{invoice.number}",
        sort="invoice",
        who=invoice.channel,
        words=f"payout {invoice.number} of {invoice.channel}",
        amount=number(invoice.net),
        less=charge.value if charge else Fraction(0),
        currency=invoice.currency,
        day_us=invoice.issued_us,
        due_us=None,
        numbers=words_of_number(invoice.number),
        names=frozenset(_words([invoice.channel])),
        text="",
        key=each.key,
        fact=each.key,
        lasting=lasting(each.key),
        grade=each.grade,
    )


def _bill(each: Known[CostBill]) -> Item:
    bill = each.value
    ends = max(each.valid_from, each.end - 1) if each.valid_to is not None else each.valid_from
    return Item(
        name=f"bill/{bill.sort}/{bill.number}",
        sort="bill",
        who=bill.what or bill.sort,
        words=f"bill {bill.number} for {bill.sort}",
        amount=-(number(bill.amount) + number(bill.tax or "0")),
        less=Fraction(0),
        currency=bill.currency,
        day_us=ends,
        due_us=_due(bill.due),
        numbers=words_of_number(bill.number),
        names=frozenset(word for word in _words([bill.what]) if len(word) >= 4),
        text="",
        key=each.key,
        fact=each.key,
        lasting=lasting(each.key),
        grade=each.grade,
    )


def _instalments(record: OwnerRecord) -> Iterator[Item]:
    """What fell due of loans about the time of which the bank's lines are known."""
    times = [each.valid_from for each in record.payments]
    if not times:
        return
    for each in record.loans:
        loan, zone = each.value, _zone(record, each.value.about, each.valid_from)
        for number_, due in enumerate(loan_schedule(each, zone), 1):
            if not min(times) - _ABOUT <= due.at_us <= max(times) + _ABOUT:
                continue
            yield Item(
                name=f"loan/{loan.loan}/{number_}",
                sort="loan",
                who=loan.loan,
                words=f"instalment {number_} of loan {loan.loan}",
                amount=Fraction(-due.principal - due.interest, NANO),
                less=Fraction(0),
                currency=loan.currency,
                day_us=due.at_us,
                due_us=None,
                numbers=frozenset(),
                names=frozenset(word for word in _words([loan.loan]) if len(word) >= 4),
                text="",
                key=instalment_key(each.key, number_),
                fact=each.key,
                lasting=instalment_key(lasting(each.key), number_),
                grade=each.grade,
            )


def _zone(record: OwnerRecord, about: str, at_us: int) -> str:
    """The zone of the days of what a loan is for."""
    places = [place[5:] for place in line_of(record, about, at_us) if place.startswith("site:")]
    site = record.site(places[0]) if places else None
    return site.value.zone if site else "UTC"


def instalment_key(loan: str, number_: int) -> str:
    """How an instalment is called apart from the others of its loan."""
    return f"{loan}#{number_}"


def lasting(key: str) -> str:
    """What stays of a fact's key when it is corrected: all but the hash of what it states."""
    stem, _, _ = key.rpartition("/")
    return stem if "/" in stem else key


def _due(day: str | None) -> int | None:
    try:
        return None if day is None else utc_us(f"{day[:10]}T00:00:00Z")
    except ValueError:
        return None


def _line(each: Known[BankLine]) -> Item:
    line = each.value
    said = [line.counterparty, line.text, line.reference]
    return Item(
        name=f"line/{utc_text(each.valid_from)[:10]}/{sha256_hex(lasting(each.key))[:_SHORT]}",
        sort="line",
        who=line.counterparty or line.text or line.account,
        words=line.text,
        amount=number(line.amount),
        less=Fraction(0),
        currency=line.currency,
        day_us=each.valid_from,
        due_us=None,
        numbers=frozenset(_words(said)),
        names=frozenset(_words([line.counterparty, line.text])),
        text=_joined(said),
        key=each.key,
        fact=each.key,
        lasting=lasting(each.key),
        grade=each.grade,
    )


def words_of_number(number_: str) -> frozenset[str]:
    """The number of a document as one word, in a set; too short a number names nothing."""
    word = _joined([number_])
    return frozenset([word]) if len(word) >= 4 else frozenset()


def _joined(texts: Iterable[str]) -> str:
    return " ".join("".join(_WORD.findall(part.lower())) for text in texts for part in text.split())


def _words(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from _WORD.findall(text.lower())


def names_number(line: Item, claim: Item) -> bool:
    """Whether a line says the number of a document, however it is spaced or joined."""
    tight = line.text.replace(" ", "")
    return any(word in line.numbers or word in line.text.split() or (len(word) >= 6 and word in tight)
               for word in claim.numbers)  # fmt: skip


def names_payer(line: Item, claim: Item) -> bool:
    """Whether a line says the name of who pays or is paid."""
    return any(any(own in word for word in line.names) for own in claim.names)
