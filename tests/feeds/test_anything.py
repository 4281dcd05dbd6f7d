"""Whatever stands in a file: a statement that any ledger takes, or a fault with its place."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ouvrage.adapters.feeds.bank import read_bank, statements
from ouvrage.adapters.feeds.bills_csv import Defaults, read_bills
from ouvrage.adapters.feeds.mapped_earnings import machines_in, read_earnings
from ouvrage.adapters.feeds.mapped_earnings import statements as earned_statements
from ouvrage.adapters.feeds.mapping import load_mapping
from ouvrage.adapters.feeds.told import Told, key_part, name_part
from ouvrage.adapters.feeds.vast_invoices import read_invoices
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.names import is_campaign
from ouvrage.ledger.admission import admit
from ouvrage.ledger.kinds import fact_of
from ouvrage.ledger.stated import Stated

CELL = st.sampled_from(
    [
        *(
            "",
            "2026-11-07",
            "07.11.2026",
            "13/11/2026",
            "1.5",
            "-2,50",
            "1.234,56",
            "EUR",
            "uakt",
            "AKT",
        ),
        *(
            "lease",
            "gas",
            "rent",
            "site:garage",
            "a/b",
            "a\tb",
            "x\u2028y",
            "9" * 40,
            "Ä",
            "\x00",
            "0",
            "12",
        ),
    ]
)


def admitted(stated: list[Stated]) -> None:
    for each in stated:
        admit(
            fact_of(
                each.value,
                source="s",
                id=each.id,
                subject=each.subject,
                valid_from=each.valid_from,
                valid_to=each.valid_to,
                grade=each.grade,
            )
        )


def table(head: str, rows: list[list[str]]) -> str:
    count = len(head.split(","))
    lines = [",".join(f'"{cell}"' for cell in (row * count)[:count]) for row in rows]
    return "\n".join([head, *lines])


ROWS = st.lists(st.lists(CELL, min_size=1, max_size=9), max_size=5)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(ROWS)
def test_bank_lines_and_bills(rows: list[list[str]]):
    told = Told(form="any", file="a.csv")
    with suppress(OuvrageError):
        text = table("Date,Amount,Currency,Reference,Counterparty,Text", rows)
        lines = read_bank(text, told, load_mapping("bank", "bank"), "K/1", None)
        admitted(statements(lines, "UTC"))
    defaults = Defaults(about="site:s", sort="rent", currency="EUR", zone="Europe/Paris")
    with suppress(OuvrageError):
        text = table("number,amount,from,to,kwh,due,sort", rows)
        read_bills(text, told, load_mapping("bills", "bills"), defaults)
        admitted(told.stated)
    assert all(fault.line for fault in told.faults)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(ROWS, st.sampled_from(["akash", "clore", "ionet", "golem", "runpod"]))
def test_mapped_earnings(rows: list[list[str]], name: str):
    mapping = load_mapping(name, "earnings")
    head = ",".join(names[0] for names in mapping.columns.values())
    told = Told(form="any", file="a.csv")
    earned = read_earnings(table(head, rows), told, mapping, "UTC")
    about = {None: "node:n", **{m: f"node:{name_part(m)}" for m in machines_in(earned)}}
    for part in earned_statements([earned], name, about, Grade.METERED):
        admitted(part)
    assert len(earned) + len(told.faults) + sum(told.notes.values()) >= told.rows


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30))
def test_names_and_keys_from_elsewhere(text: str):
    assert is_campaign(name_part(text))
    assert "/" not in key_part(text)
    told = Told(form="any", file="a.json")
    item = {"type": "payout", "amount": 25, "when": 1_762_473_600, "id": text}
    read_invoices(json.dumps([item]), told, "vast")
    admitted(told.stated)
