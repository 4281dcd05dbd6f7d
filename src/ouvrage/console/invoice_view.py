"""An invoice as it is shown: the same words and figures on a terminal, on a page and on paper.

Decides what stands on an invoice and in which order: the answer, who and when, what the money bought, every charge with its
rule, what was not charged, and the sum. How a sheet is laid out is decided by what draws it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.base.numbers import NANO
from ouvrage.base.text import safe
from ouvrage.base.time import HOUR
from ouvrage.books.dues.invoice import Invoice, InvoiceLine, WorkLine, cents
from ouvrage.console.invoice_words import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A heading, the names of columns, and rows of as many texts; ``right`` holds ``<`` or ``>`` a column.

    ``wide`` is the column that may take more than one line.
    """

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: str
    wide: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """One line of the sum; ``strong`` where it is what a reader looks for."""

    label: str
    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An invoice in one language, as texts alone. ``draft`` is written across what is not issued."""

    language: str
    title: str
    headline: str
    draft: str
    issuer: tuple[str, ...]
    recipient: tuple[str, ...]
    about: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    sums: tuple[Sum, ...]
    notes: tuple[str, ...]
    as_of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Letterhead:
    """The lines that stand under the names of both sides: addresses, registrations, bank accounts."""

    issuer: tuple[str, ...] = ()
    recipient: tuple[str, ...] = ()


def shown(
    found: Invoice, say: Language, corrects: str | None = None, head: Letterhead | None = None
) -> Shown:
    """An invoice in a language; ``corrects`` is the number of the invoice that a credit note is about."""
    head = head or Letterhead()
    kind = "credit_note" if found.corrects else "invoice" if found.number else "draft"
    amount = _answer(found, say)
    period = say.month(found.period.name)
    words = "headline" if found.number else "headline_draft"
    return Shown(
        language=say.code,
        title=f"{say.say(kind)} {found.number or ''}".strip(),
        headline=say.say(words, what=say.say(kind), number=found.number or "", amount=amount, period=period),
        draft="" if found.number else say.say("draft"),
        issuer=(safe(found.issuer), *map(safe, head.issuer)),
        recipient=(safe(found.name), *map(safe, head.recipient)),
        about=tuple(_about(found, say, corrects)),
        tables=tuple(_tables(found, say)),
        sums=tuple(_sums(found, say)),
        notes=tuple(_notes(found, say)),
        as_of=found.as_of,
    )  # fmt: skip


def _answer(found: Invoice, say: Language) -> str:
    if found.too_small and not found.number:
        least = say.paid(NANO // 10 ** cents(found.currency), found.currency)
        return say.say(
            "below", amount=f"{say.exact(found.charged)}\u00a0{found.currency}", least=least
        )
    if found.total is None:
        return say.say("untaxed", amount=say.paid(found.net, found.currency))
    return say.paid(found.total, found.currency)


def _about(found: Invoice, say: Language, corrects: str | None) -> Iterator[tuple[str, str]]:
    yield say.say("number"), found.number or say.say("not_issued")
    if found.issued_us is not None:
        yield say.say("issued"), say.day(found.issued_us)
    if corrects:
        yield say.say("corrects"), corrects
    last = max(found.period.from_us, found.period.to_us - 1)
    yield say.say("period"), f"{say.day(found.period.from_us)} – {say.day(last)}"


def _tables(found: Invoice, say: Language) -> Iterator[Table]:
    if found.work:
        yield _work(found, say)
    if found.lines:
        yield Table(
            heading=say.say("lines"),
            columns=_named(say, "job", "when", "rule", "quantity", "price", "amount"),
            rows=tuple(_line(line, say) for line in found.lines), right="<<<>>>", wide=2,
        )  # fmt: skip
    if len(found.projects) > 1:
        rows = tuple((safe(name), say.exact(nano)) for name, nano in found.projects)
        yield Table(heading=say.say("projects"), columns=_named(say, "project", "amount"), rows=rows,
                    right="<>", wide=0)  # fmt: skip
    if found.unbilled:
        rows = tuple(
            (safe(u.project), safe(u.job_name or code_of_any(u.lease)), _hours(u.us, say), say.cause(u.why))
            for u in found.unbilled
        )  # fmt: skip
        yield Table(heading=say.say("unbilled"), columns=_named(say, "project", "job", "held", "why"),
                    rows=rows, right="<<><", wide=3)  # fmt: skip


def _named(say: Language, *keys: str) -> tuple[str, ...]:
    return tuple(say.say(key) for key in keys)


def _work(found: Invoice, say: Language) -> Table:
    rows: list[tuple[str, ...]] = []
    for each in found.work:
        name = each.name if each.job else say.say("term_lease", offer=each.name)
        finished, per_unit = _finished(each, found.currency, say)
        cells = (each.project, name, _hours(each.us, say), say.exact(each.nano), finished, per_unit)
        rows.append(tuple(map(safe_kept, cells)))
    columns = _named(say, "project", "job", "time", "amount", "finished", "per_unit")
    return Table(heading=say.say("work"), columns=columns, rows=tuple(rows), right="<<>>>>", wide=1)


def _finished(each: WorkLine, currency: str, say: Language) -> tuple[str, str]:
    if each.finished is None or each.per_unit is None:
        return say.say("not_counted"), "–"
    unit = f"{say.number(Fraction(each.finished), 0)} × {each.unit}"
    return unit, f"{say.exact(each.per_unit)} {currency}/{each.unit}"


def _line(line: InvoiceLine, say: Language) -> tuple[str, ...]:
    name = line.job_name or say.say("term_lease", offer=line.offer)
    when = f"{say.moment(line.from_us)} – {say.moment(line.to_us)}"
    rule = say.say("credit") if line.credits else line.rule
    quantity = f"{say.number(line.quantity, 6)} {line.unit}".strip() if line.quantity else ""
    words = line.words.replace(f", at {line.price}", "")  # the price has a column of its own
    cells = (f"{name} {code_of_any(line.lease)}", when, f"{rule}: {say.reason(words)}", quantity,
             say.price(line.price or ""), say.exact(line.nano))  # fmt: skip
    return tuple(map(safe_kept, cells))


def code_of_any(name: str) -> str:
    """The short code of an id; a name that is none as it is."""
    try:
        return code_of(name)
    except ValueError:
        return name


def safe_kept(text: str) -> str:
    """Safe text in which the hard spaces of numbers stay what they are."""
    return "\u00a0".join(safe(part) for part in text.split("\u00a0"))


def _hours(us: int, say: Language) -> str:
    return f"{say.number(Fraction(us, HOUR), 4)} h"


def _sums(found: Invoice, say: Language) -> Iterator[Sum]:
    currency = found.currency
    yield Sum(label=say.say("charges"), text=f"{say.exact(found.charged)} {currency}")
    if found.rounding:
        step = say.number(Fraction(1, 10 ** cents(currency)), cents(currency))
        label = say.say("rounding", step=step, currency=currency)
        yield Sum(label=label, text=f"{say.exact(found.rounding)} {currency}")
    yield Sum(label=say.say("net"), text=say.paid(found.net, currency), strong=found.total is None)
    if found.tax is None or found.tax_rate is None or found.total is None:
        yield Sum(label=say.say("tax_unknown"), text=say.say("not_stated"))
        return
    rate = say.number(found.tax_rate * 100, 4)
    yield Sum(label=say.say("tax", rate=rate), text=say.paid(found.tax, currency))
    yield Sum(label=say.say("total"), text=say.paid(found.total, currency), strong=True)
    if found.corrects:
        return
    if found.prepaid > 0:
        yield Sum(
            label=say.say("prepaid"), text=say.paid(-min(found.prepaid, found.total), currency)
        )
    elif found.prepaid < 0:
        yield Sum(label=say.say("owed_before"), text=say.paid(-found.prepaid, currency))
    yield Sum(label=say.say("due"), text=say.paid(found.due or 0, currency), strong=True)


def _notes(found: Invoice, say: Language) -> Iterator[str]:
    if not found.number:
        yield say.say("note_draft")
        if found.too_small:
            yield say.say("note_below")
    if found.running > 0:
        amount = f"{say.exact(found.running)} {found.currency}"
        yield say.say("note_running", amount=amount)
    if found.grade is Grade.SIMULATED:
        yield say.say("note_simulated")
    yield say.say("note_grade")
