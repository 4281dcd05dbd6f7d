"""``ouvrage books match``: say by hand that a payment pays a document, or that it does not.

Decides which line and which document are meant by a name, and records what was said; what may be said is
decided by the books. The same word again changes nothing, another one corrects it, and both stay in the
ledger. Reconciling, the journal and what is owed go by it from then on.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from ouvrage.base.canonical import sha256_hex
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.books.bank_items import Item, claims, lines
from ouvrage.books.by_hand import by_hand, paying
from ouvrage.books.gaps_text import signed
from ouvrage.books.paying import Match
from ouvrage.books.reconcile_bank import banked
from ouvrage.books.reconcile_text import match_json
from ouvrage.books.record import OwnerRecord
from ouvrage.cli.book_ledger import books_of
from ouvrage.cli.booking import Booked, Stated, book
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.model.cash import PaymentMatched

_LONGEST, _SHOWN = 500, 8


@click.command("match")
@click.argument("payment", metavar="PAYMENT")
@click.argument("document", metavar="DOCUMENT")
@click.option("--part", is_flag=True, help="One is a part of the other; the rest stays open.")
@click.option("--undo", is_flag=True, help="It does not pay it, whatever seemed so.")
@click.option("--why", metavar="TEXT", default="", help="What this rests on; --undo needs it.")
@json_option
def match(payment: str, document: str, part: bool, undo: bool, why: str, as_json: bool) -> None:
    """Say that PAYMENT, a line of the bank, pays DOCUMENT, an invoice, a bill or an instalment.

    \b
    ouvrage books match line/2026-02-11/3f9771 invoice/vast/77002
    ouvrage books match 3f9771 77002 --undo --why "it paid another account's machine"

    Both are named as `ouvrage books reconcile` names them, or by the end of that name.
    """  # fmt: skip
    _check_why(why, undo)
    with opened() as ledger:
        record = books_of(ledger, None).record
        line = _named(payment, lines(record), "line of the bank")
        claim = _named(document, claims(record), "document")
        value = _denied(record, line, claim, why) if undo else _said(record, line, claim, part, why)
        booked = book(ledger, [_stated(value, line)], typed=True)
        found = banked(books_of(ledger, None).record)
    matches = [m for m in found.matches if line.key in {item.key for item in m.lines}]
    if as_json:
        say_json({
            "payment": line.name, "document": claim.name, "pays": not undo, "amount": value.amount,
            "result": _result(booked), "matches": [match_json(each) for each in matches],
        })  # fmt: skip
        return
    say_text(_undone(line, claim, booked) if undo else _paid(line, claim, matches, booked))


def _check_why(why: str, undo: bool) -> None:
    if (undo and not why.strip()) or len(why) > _LONGEST or (why and not why.isprintable()):
        raise OuvrageError(
            "match/why",
            f"a reason is printable text of 1 to {_LONGEST} characters",
            hint='--why "it paid another account\'s machine"',
        )


def _named(text: str, items: Sequence[Item], what: str) -> Item:
    """The item that a name means: its whole name, or the end of one from a slash on."""
    found = [i for i in items if i.name == text] or [
        i for i in items if i.name.endswith(f"/{text}")
    ]
    if len(found) == 1:
        return found[0]
    near = found or items
    names = tuple(_line(item) for item in near[-_SHOWN:])
    if found:
        raise OuvrageError(
            "match/ambiguous", f"{len(found)} {what}s are called {text!r}", where=names,
            hint="name it whole",
        )  # fmt: skip
    raise OuvrageError(
        "match/unknown", f"no {what} is called {text!r}", where=names,
        hint="ouvrage books reconcile names them" if items else f"no {what} is recorded yet",
    )  # fmt: skip


def _line(item: Item) -> str:
    return f"{item.name}  {signed(item.amount)} {item.currency}  {item.who}"


def _said(record: OwnerRecord, line: Item, claim: Item, part: bool, why: str) -> PaymentMatched:
    said = by_hand(record, claims(record), lines(record))
    shares = [share for each in said.matches for share in each.shares]
    return paying(record, line, claim, shares, part=part, why=why)


def _denied(record: OwnerRecord, line: Item, claim: Item, why: str) -> PaymentMatched:
    found = banked(record)
    seems = any(
        (share.line.key, share.claim.key) == (line.key, claim.key)
        for each in (*found.matches, *found.possible)
        for share in each.shares
    )
    no = PaymentMatched(
        payment=line.lasting, document=claim.lasting, amount=None, took=None, why=why
    )
    if not seems and not any(each.value == no for each in record.by_hand):
        raise OuvrageError(
            "match/none", f"nothing says that {line.name} pays {claim.name}",
            hint="ouvrage books reconcile lists what pays what",
        )  # fmt: skip
    return no


def _stated(value: PaymentMatched, line: Item) -> Stated:
    pair = sha256_hex(f"{value.payment}\n{value.document}")[:16]
    return Stated(
        natural=f"match/{pair}", value=value, subject=f"match:{pair}", valid_from=line.day_us,
        valid_to=None, grade=Grade.REPORTED,
    )  # fmt: skip


def _result(booked: Booked) -> str:
    return "corrected" if booked.corrected else "recorded" if booked.new else "said before"


def _paid(line: Item, claim: Item, matches: Sequence[Match], booked: Booked) -> str:
    (share,) = (share for each in matches for share in each.shares if share.claim.key == claim.key)
    words = f"{line.name} pays {signed(share.amount)} {claim.currency} of {claim.name}"
    beside: list[str] = []
    for each in matches:
        beside += [f"{signed(each.left)} {claim.currency} of it stays open"] if each.left else []
        beside += (
            [f"{signed(each.rest)} {line.currency} of the line stays unmatched"]
            if each.rest
            else []
        )
        beside += [f"{signed(each.difference)} on the way"] if each.difference else []
    told = f"{safe(words)}{': ' if beside else ''}{', '.join(beside)}; {_result(booked)}."
    return f"{told}\nNot so: ouvrage books match {line.name} {claim.name} --undo --why TEXT"


def _undone(line: Item, claim: Item, booked: Booked) -> str:
    told = f"{safe(line.name)} does not pay {safe(claim.name)}, and will not be taken for it: {_result(booked)}."
    return f"{told}\nIf it does: ouvrage books match {line.name} {claim.name}"
