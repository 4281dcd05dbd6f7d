"""Bank statements in camt.053 (ISO 20022), any version, read without trusting the file.

Decides which entries count: those that are booked; pending ones are told and left out, since they come
again. The sign is that of ``CdtDbtInd``, also for a reversal. An opening balance and the entries must add
up to the closing one, or it is told. A document type, and with it every entity, is refused before
anything is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from xml.parsers import expat  # nosec - see `_parse`: no document type, so no entities

from ouvrage.adapters.feeds.bank import Line
from ouvrage.adapters.feeds.moments import day_of_text
from ouvrage.adapters.feeds.told import Told, amount_in
from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text

_DEEPEST = 60
_MOST_BYTES = 64 << 20


@dataclass(slots=True)
class Part:
    """An element: its name without a namespace, its attributes, its text and its line in the file."""

    name: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    parts: list[Part] = field(default_factory=list)

    def each(self, name: str) -> Iterator[Part]:
        """The direct parts of a name."""
        return (part for part in self.parts if part.name == name)

    def at(self, path: str) -> Part | None:
        """The first part along a path such as ``Acct/Id/IBAN``."""
        found: Part | None = self
        for name in path.split("/"):
            found = None if found is None else next(found.each(name), None)
        return found

    def said(self, *paths: str) -> str:
        """The text at the first of some paths that has one."""
        for path in paths:
            found = self.at(path)
            if found is not None and found.text.strip():
                return found.text.strip()
        return ""


def _parse(data: bytes, file: str) -> Part:
    """The root of a document. Raises ``OuvrageError`` ``camt/xml``."""
    root = Part(name="", attributes={}, line=0)
    open_parts = [root]
    parser = expat.ParserCreate(namespace_separator=" ")

    def begins(name: str, attributes: dict[str, str]) -> None:
        if len(open_parts) > _DEEPEST:
            raise _refused(file, parser.CurrentLineNumber, "it is nested too deeply")
        part = Part(
            name=name.rpartition(" ")[2], attributes=attributes, line=parser.CurrentLineNumber
        )
        open_parts[-1].parts.append(part)
        open_parts.append(part)

    def ends(_name: str) -> None:
        open_parts.pop()

    def words(text: str) -> None:
        open_parts[-1].text += text

    def typed(*_: object) -> None:
        raise _refused(
            file, parser.CurrentLineNumber, "it names a document type, which is never read"
        )

    parser.StartElementHandler = begins
    parser.EndElementHandler = ends
    parser.CharacterDataHandler = words
    parser.StartDoctypeDeclHandler = typed
    parser.EntityDeclHandler = typed
    if len(data) > _MOST_BYTES:
        raise _refused(file, 1, f"it is longer than {_MOST_BYTES} bytes")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _refused(file, error.lineno, str(error)) from error
    return root


def _refused(file: str, line: int, why: str) -> OuvrageError:
    return OuvrageError(
        "camt/xml",
        f"{file} is no statement that can be read: {why}",
        where=(f"{file}:{line}",),
        hint="ask the bank for the statement as camt.053",
    )


def read_camt(data: bytes, told: Told) -> list[Line]:
    """The booked lines of the statements in a file. Raises ``OuvrageError`` ``camt/…``."""
    root = _parse(data, told.file)
    message = root.at("Document/BkToCstmrStmt")
    if message is None:
        raise OuvrageError(
            "camt/form",
            f"{told.file} is XML, but no statement of a bank's (BkToCstmrStmt)",
            where=(f"{told.file}:{root.parts[0].line if root.parts else 1}",),
            hint="camt.052 is of a day not over, camt.054 of single lines: take camt.053",
        )
    return [line for statement in message.each("Stmt") for line in _statement(statement, told)]


def _statement(statement: Part, told: Told) -> list[Line]:
    account = statement.said("Acct/Id/IBAN", "Acct/Id/Othr/Id").replace(" ", "")
    if not account:
        told.fault(str(statement.line), "Acct/Id", None, "the account of the statement")
        return []
    found: list[Line] = []
    whole = True
    for entry in statement.each("Ntry"):
        told.rows += 1
        if entry.said("Sts/Cd", "Sts") != "BOOK":
            told.note("an entry that is not booked was left out: it comes again when it is")
            continue
        line = _entry(entry, account, told)
        whole = whole and line is not None
        found += [] if line is None else [line]
    if whole:
        _balanced(statement, found, account, told)
    return found


def _entry(entry: Part, account: str, told: Told) -> Line | None:
    place = str(entry.line)
    amount = _signed(entry, told)
    day = day_of_text(entry.said("BookgDt/Dt", "BookgDt/DtTm"), "")
    if day is None:
        told.fault(place, "BookgDt", entry.said("BookgDt/Dt"), "the day of booking")
    money = entry.at("Amt")
    if amount is None or day is None or money is None:
        return None
    other = "Cdtr" if amount < 0 else "Dbtr"
    details = [part for each in entry.each("NtryDtls") for part in each.each("TxDtls")]
    if len(details) > 1:
        told.note("an entry of several payments at once is kept as the one line that moved")
    names = [d.said(f"RltdPties/{other}/Nm", f"RltdPties/{other}/Pty/Nm") for d in details]
    texts = [u.text.strip() for d in details for r in d.each("RmtInf") for u in r.each("Ustrd")]
    return Line(
        place=place,
        account=account,
        day=day,
        amount=amount,
        currency=money.attributes.get("Ccy", ""),
        reference=entry.said("AcctSvcrRef", "NtryRef"),
        counterparty=", ".join(dict.fromkeys(n for n in names if n))[:200],
        text=" ".join(texts) or entry.said("AddtlNtryInf"),
    )


def _signed(part: Part, told: Told) -> Decimal | None:
    amount = amount_in(part.said("Amt"))
    way = part.said("CdtDbtInd")
    if amount is None or amount < 0:
        told.fault(str(part.line), "Amt", part.said("Amt"), "an amount without a sign")
    elif way not in ("CRDT", "DBIT"):
        told.fault(str(part.line), "CdtDbtInd", way, "CRDT or DBIT")
    else:
        return amount if way == "CRDT" else -amount
    return None


def _balanced(statement: Part, lines: list[Line], account: str, told: Told) -> None:
    """Tell a statement whose balances and entries do not add up: a page may be missing."""
    balances: dict[str, Decimal] = {}
    for balance in statement.each("Bal"):
        amount = _signed(balance, told)
        if amount is not None:
            balances.setdefault(balance.said("Tp/CdOrPrtry/Cd"), amount)
    opening = balances.get("OPBD", balances.get("PRCD"))
    closing = balances.get("CLBD")
    if opening is None or closing is None:
        return
    moved = sum((line.amount for line in lines), Decimal(0))
    words = f"{account}: {decimal_text(opening)} and its lines make {decimal_text(opening + moved)}"
    if opening + moved == closing:
        told.note(f"{words}, as the closing balance says")
    else:
        told.fault(
            str(statement.line), "Bal", decimal_text(closing), f"{words}; a line or page is missing"
        )
