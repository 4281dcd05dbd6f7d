"""Bank lines: camt.053 and CSV, references, equal lines, and files that are no statement."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.feeds.bank import Line, read_bank, statements
from ouvrage.adapters.feeds.camt import read_camt
from ouvrage.adapters.feeds.mapping import load_mapping
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import HOUR, utc_text

ENTRY = """<Ntry><NtryRef>{ref}</NtryRef><Amt Ccy="EUR">{amount}</Amt><CdtDbtInd>{way}</CdtDbtInd>
<Sts>{status}</Sts><BookgDt><Dt>{day}</Dt></BookgDt>{inner}</Ntry>"""
DETAILS = """<NtryDtls><TxDtls><RltdPties><{who}><Nm>{name}</Nm></{who}></RltdPties>
<RmtInf><Ustrd>{text}</Ustrd></RmtInf></TxDtls></NtryDtls>"""
CAMT = """<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.{version}"><BkToCstmrStmt><Stmt>
<Acct><Id><IBAN>DE02 1203 0000 0000 2020 51</IBAN></Id></Acct>
<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">100.00</Amt><CdtDbtInd>CRDT</CdtDbtInd></Bal>
<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">{closing}</Amt><CdtDbtInd>CRDT</CdtDbtInd></Bal>
{entries}</Stmt></BkToCstmrStmt></Document>"""


def entry(
    ref: str, amount: str, way: str, status: str = "BOOK", inner: str = "", day: str = "2026-11-13"
) -> str:
    return ENTRY.format(ref=ref, amount=amount, way=way, status=status, inner=inner, day=day)


def camt(*entries: str, closing: str = "146.50", version: str = "02") -> bytes:
    return CAMT.format(entries="".join(entries), closing=closing, version=version).encode()


PAYOUT = entry(
    "A1", "61.50", "CRDT", inner=DETAILS.format(who="Dbtr", name="Vast.ai Inc", text="payout 7")
)
POWER = entry(
    "A2",
    "15.00",
    "DBIT",
    "<Cd>BOOK</Cd>",
    DETAILS.format(who="Cdtr", name="Stadtwerke", text="Strom"),
)


def read(data: bytes) -> tuple[list[Line], Told]:
    told = Told(form="camt", file="s.xml")
    return read_camt(data, told), told


@pytest.mark.parametrize("version", ["02", "08", "13"])
def test_booked_entries_with_their_signs(version: str):
    pending = entry("A3", "9.00", "CRDT", "PDNG")
    lines, told = read(camt(PAYOUT, POWER, pending, version=version))
    assert [(str(x.amount), x.currency, x.reference, x.counterparty, x.text) for x in lines] == [
        ("61.50", "EUR", "A1", "Vast.ai Inc", "payout 7"),
        ("-15.00", "EUR", "A2", "Stadtwerke", "Strom"),
    ]
    assert not told.faults and told.rows == 3
    assert (
        "DE02120300000000202051: 100 and its lines make 146.5, as the closing balance says"
        in told.notes
    )


def test_a_reversal_keeps_the_sign_of_its_own_entry():
    reversal = entry("A4", "5.00", "CRDT").replace("<Sts>", "<RvslInd>true</RvslInd><Sts>")
    lines, _ = read(camt(reversal, closing="105"))
    assert str(lines[0].amount) == "5.00"


def test_a_missing_page_and_a_broken_entry_are_told_by_line():
    _, told = read(camt(PAYOUT))
    assert [f.found for f in told.faults] == ["'146.5'"]
    lines, told = read(
        camt(
            PAYOUT,
            entry("B", "-1", "CRDT"),
            entry("C", "1", "UP"),
            entry("D", "1", "CRDT", day="x"),
        )
    )
    assert len(lines) == 1
    assert [f.field for f in told.faults] == ["Amt", "CdtDbtInd", "BookgDt"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "camt/xml"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "camt/xml"),
        (b"<a><b></a>", "camt/xml"),
        (b"<a>" * 500, "camt/xml"),
        (b"<Document><BkToCstmrAcctRpt/></Document>", "camt/form"),
        (b"", "camt/xml"),
    ],
)
def test_what_is_no_statement_is_refused_whole(data: bytes, code: str):
    with pytest.raises(OuvrageError) as refused:
        read(data)
    assert refused.value.code == code


def from_csv(
    text: str, account: str | None = "K1", currency: str | None = None
) -> tuple[list[Line], Told]:
    told = Told(form="bank", file="b.csv")
    return read_bank(text, told, load_mapping("bank", "bank"), account, currency), told


def test_a_german_export_with_a_preamble_and_commas():
    text = (
        "Umsatzanzeige;Datei erstellt am: 13.11.2026\n\nKonto;Girokonto\n\n"
        "Buchungstag;Name Zahlungsbeteiligter;Verwendungszweck;Betrag;Währung\n"
        '13.11.2026;Vast.ai;"Auszahlung; Woche 46";1.061,50;EUR\n'
        "12.11.2026;Stadtwerke;Strom;-215,00;EUR\n"
    )
    lines, told = from_csv(text)
    assert not told.faults
    assert [(str(x.amount), x.day.isoformat(), x.text) for x in lines] == [
        ("1061.50", "2026-11-13", "Auszahlung; Woche 46"),
        ("-215.00", "2026-11-12", "Strom"),
    ]


def test_french_debits_and_credits_in_columns_of_their_own():
    text = "Date;Libellé;Débit;Crédit\n13/11/2026;EDF;215,10;\n14/11/2026;Vast;;61,50\n15/11/2026;?;1,00;1,00\n"
    lines, told = from_csv(text, currency="EUR")
    assert [str(x.amount) for x in lines] == ["-215.10", "61.50"]
    assert [f.place for f in told.faults] == ["4"]


def test_an_amount_that_could_be_two_and_lines_without_account_or_currency():
    _, told = from_csv('Date,Amount,Currency\n2026-11-13,"1,5",EUR\n2026-11-13,1.5,EUR\n')
    assert len(told.faults) == 2 and "the decimal sign is unclear" in told.faults[0].expected
    _, told = from_csv("Date,Amount\n2026-11-13,1.50\n", account=None)
    assert [f.field for f in told.faults] == ["account", "currency"]


def line(ref: str = "", amount: str = "1.00", text: str = "x") -> Line:
    from datetime import date
    from decimal import Decimal

    return Line(
        place="1",
        account="K1",
        day=date(2026, 11, 13),
        amount=Decimal(amount),
        currency="EUR",
        reference=ref,
        counterparty="",
        text=text,
    )


def test_two_equal_lines_are_two_and_a_reference_is_one():
    found = statements([line(), line(), line("R1"), line("R2")], "Europe/Berlin")
    assert len({s.natural for s in found}) == 4
    assert {s.natural for s in statements([line(), line("R2")], "Europe/Berlin")} < {
        s.natural for s in found
    }
    assert utc_text(found[0].valid_from)[:16] == "2026-11-12T23:00"
    assert (found[0].valid_to or 0) - found[0].valid_from == 24 * HOUR


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["", "R1", "R2"]), st.sampled_from(["1.00", "2.00"])), max_size=8
    ),
    st.integers(0, 99),
)
def test_lines_without_references_are_the_same_in_any_order(rows: list[tuple[str, str]], seed: int):
    lines = [line(ref, amount) for ref, amount in rows if not ref]
    shuffled = list(lines)
    random.Random(seed).shuffle(shuffled)
    assert {s.id for s in statements(lines, "UTC")} == {s.id for s in statements(shuffled, "UTC")}


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(data: bytes):
    try:
        read(b"<Document><BkToCstmrStmt>" + data)
    except OuvrageError as error:
        code = error.code
        assert code.startswith("camt/")
