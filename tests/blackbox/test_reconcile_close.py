"""From an empty home to a reconciled month, closed with reasons, and what a late bill does to it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.blackbox.home import Home, home_in
from tests.feeds.vast import one_machine

OCTOBER = range(20362, 20393)  # 2025-10-01 to 2025-10-31, days since the epoch
SET_UP = (
    "init", "--currency", "USD", "--site", "garage", "--node", "node-3", "--gpus", "2",
    "--model", "RTX 4090", "--price", "3600", "--bought", "2025-10-01", "--life-months", "36",
    "--electricity", "0.16/kWh", "--tax", "25%", "--channel", "vast", "--fee", "15%",
)  # fmt: skip
BILLS = """number,sort,about,amount,tax,currency,from,to,kwh,due
E-2025-10,electricity,site:garage,113.60,,USD,2025-10-01,2025-10-31,710,2025-11-20
"""
RENT = """number,sort,about,amount,tax,currency,from,to,kwh,due
R-2025-10,rent,site:garage,45,,USD,2025-10-01,2025-10-31,,2025-11-20
"""
PAYOUTS = {
    "results": [
        {"id": "77001", "type": "payout", "amount": 89.99, "when": 1760054400, "currency": "USD"},  # 10 October
        {"id": "77002", "type": "payout", "amount": 70.00, "when": 1760659200, "currency": "USD"},  # 17 October
    ]
}  # fmt: skip
BANK = """Date,Amount,Currency,Counterparty,Description,Reference
2025-10-14,89.99,USD,Vast.ai Inc,payout 77001,r1
2025-10-21,70.00,USD,Vast.ai Inc,weekly payout,r2
2025-10-25,-13.00,USD,Hardware shop,fans,r3
"""


@pytest.fixture
def october(ouvrage: Home, tmp_path: Path) -> Home:
    """A machine with a month of earnings, payouts, a bill of electricity and an account in a bank."""
    files = {
        "bills.csv": BILLS, "rent.csv": RENT, "payouts.json": json.dumps(PAYOUTS), "bank.csv": BANK,
        "october.json": one_machine(dict.fromkeys(OCTOBER, (11.7, 0.1, 0.0, 0.0))),
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for words in (
        SET_UP,
        ("import", "vast-earnings", "october.json", "--machine", "35798=node-3"),
        ("import", "bills", "bills.csv"),
        ("import", "vast-invoices", "payouts.json"),
        ("import", "bank", "bank.csv", "--account", "main"),
        ("own", "state", "node:node-3", "working", "--channel", "vast", "--from", "2025-10-01", "--to", "2025-11-01"),
    ):  # fmt: skip
        done = ouvrage.inside(*words)
        assert done.code == 0, done.out + done.err
    return ouvrage


def test_bill_payouts_and_bank_are_held_against_the_record(october: Home):
    done = october.inside("books", "reconcile", "--month", "2025-10")
    assert done.code == 0, done.err
    assert (
        done.first
        == "October 2025: 2 of 4 comparisons agree; nothing invoiced is owed to you; 1 bank line matches nothing."
    )
    for line in (
        r"energy, 2025-10-01 to 2025-10-31, kWh: bill E-2025-10 710\.0 ◐, the books 1224\.5 \?: difference -514\.5",
        r"likely  1224\.5 kWh of the books are estimated from watts and states where no meter reads",
        r"vast, 2025-10-10 to 2025-10-17, USD: payout 77002 70\.00 ◐, earned 82\.60 [○◐]: difference -12\.60",
        r"likely  -12\.39  the channel's fee",
        r"vast owes 150\.45 USD . since 2025-10-17 \(177\.00 earned less 26\.55 of fees\): on no invoice yet",
        r"came into the bank \+159\.99 USD = matched \+159\.99, not matched 0   \(adds up\)",
        r"invoice/vast/77001 = line/2025-10-14/\w{6}  \+89\.99 USD  certain: the amount, the number and the name agree",
        r"invoice/vast/77002 = line/2025-10-21/\w{6}  \+70\.00 USD  likely: the amount and the name agree",
        r"open: bill/electricity/E-2025-10 of 2025-10-31 electricity  -113\.60 USD  no line of the bank pays it",
        r"unmatched: line/2025-10-25/\w{6} of 2025-10-25 Hardware shop  -13\.00 USD  no bill is recorded for it",
    ):  # fmt: skip
        assert re.search(line, done.out), line + "\n" + done.out
    found = october.inside("books", "reconcile", "--month", "2025-10", "--json").json
    for total in (*found["documents"], *found["bank_lines"]):
        assert float(total["all"]) == pytest.approx(float(total["matched"]) + float(total["open"]))
    plain = october.inside("books", "reconcile", "--month", "2025-10", "--plain")
    assert not set(plain.out) & set("●◐○◌")


def test_a_month_is_closed_when_every_open_item_has_a_reason(october: Home):
    facts = october.facts()
    first = october.inside("books", "close", "2025-10")
    assert first.code == 1
    assert re.fullmatch(
        r"October 2025 of garage is not closed: \d+ of \d+ items are open\.", first.first
    )
    assert "ouvrage books close 2025-10 --accept" in first.out.splitlines()[-1]
    assert october.facts() == facts
    assert (
        "error[close/why]" in october.inside("books", "close", "2025-10", "--accept", "assumed").err
    )
    assert (
        "error[close/item]"
        in october.inside("books", "close", "2025-10", "--accept", "x", "--why", "y").err
    )
    some = october.inside(
        "books", "close", "2025-10", "--accept", "assumed", "--why", "my best guess"
    )
    assert some.code == 1
    assert "accepted: my best guess" in some.out
    pytest.importorskip("pyarrow")
    waiting = october.inside("books", "close", "2025-10", "--json").json["checks"]
    names = sorted({c["item"] for c in waiting if c["state"] == "open"})
    done = october.inside(
        "books", "close", "2025-10", *(w for n in names for w in ("--accept", n)), "--why", "small"
    )
    assert done.code == 0, done.out + done.err
    assert re.fullmatch(
        r"October 2025 of garage is closed: \d+ rows are sealed in closed/garage-2025-10-1\.parquet\.", done.first
    )  # fmt: skip
    file = october.path / "closed" / "garage-2025-10-1.parquet"
    assert hashlib.sha256(file.read_bytes()).hexdigest() in done.out
    assert "error[close/closed]" in october.inside("books", "close", "2025-10").err
    seen = october.inside("books", "pnl", "--month", "2025-10")
    assert re.search(
        r"closed: seal 1 as known at \S+, sha256 \w{16}; nothing has moved since", seen.out
    )

    late = october.inside("import", "bills", "rent.csv")
    assert late.code == 0
    moved = october.inside("books", "pnl", "--month", "2025-10")
    assert re.search(
        r"since then margin\.net -\d+\.\d\d \(-?\d+\.\d\d sealed\), .*cost\.rent \+45\.00",
        moved.out,
    )
    then = october.inside("books", "pnl", "--month", "2025-10", "--json").json["closed"]["as_of"]
    as_sealed = october.inside("books", "pnl", "--month", "2025-10", "--as-of", then, "--json").json
    assert as_sealed["total"]["figures"]["cost.rent"]["value"] == "0"
    assert "nothing broken" in october.inside("verify").first

    again = october.inside("books", "reopen", "2025-10", "--why", "the rent came late")
    assert (
        again.first
        == "October 2025 of garage is open again; seal 1 stays in closed/garage-2025-10-1.parquet."
    )
    assert "error[close/open]" in october.inside("books", "reopen", "2025-10", "--why", "x").err
    assert (
        october.inside("books", "close", "2025-10").code == 1
    )  # the bill of rent is paid by nothing
    done = october.inside("books", "close", "2025-10", "--accept", "bill", "--why", "paid in cash")
    assert "garage-2025-10-2.parquet" in done.first, done.out
    assert "nothing broken" in october.inside("verify").first
    file.write_bytes(b"else")
    assert "garage-2025-10-1.parquet is not what was sealed" in october.inside("verify").out


def test_a_sealed_file_is_asked_with_any_reader_of_parquet(october: Home):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    october.inside("books", "close", "2025-10", "--accept", "assumed", "--why", "guess")
    items = october.inside("books", "close", "2025-10", "--json").json["checks"]
    names = [word for c in items if c["state"] == "open" for word in ("--accept", c["item"])]
    assert october.inside("books", "close", "2025-10", *names, "--why", "x").code == 0
    rows = parquet.read_table(october.path / "closed" / "garage-2025-10-1.parquet").to_pylist()
    margin = [r for r in rows if (r["view"], r["path"]) == ("node", "margin.net")]
    figures = october.inside("books", "pnl", "--month", "2025-10", "--json").json["total"][
        "figures"
    ]
    assert [r["value"] for r in margin] == [figures["margin.net"]["value"]]
    times = [r for r in rows if r["sort"] == "time"]
    assert {(r["state"], r["begins"].isoformat()) for r in times} == {
        ("working", "2025-10-01T00:00:00+00:00")
    }
    assert {r["why"] for r in rows if r["sort"] == "accepted"} == {"guess", "x"}


def test_a_backup_takes_the_sealed_months_with_it(october: Home, tmp_path: Path):
    pytest.importorskip("pyarrow")
    october.inside("books", "close", "2025-10", "--accept", "assumed", "--why", "guess")
    items = october.inside("books", "close", "2025-10", "--json").json["checks"]
    names = [word for c in items if c["state"] == "open" for word in ("--accept", c["item"])]
    assert october.inside("books", "close", "2025-10", *names, "--why", "x").code == 0
    assert october.inside("backup", "all.tar.gz").code == 0
    other = home_in(tmp_path, "other")
    assert other.inside("restore", "all.tar.gz").code == 0
    name = "closed/garage-2025-10-1.parquet"
    assert (other.path / name).read_bytes() == (october.path / name).read_bytes()
    assert "nothing broken" in other.inside("verify").first


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("close", "2025"), "close/month"),
        (("close", "October"), "close/month"),
        (("reopen", "2025-10", "--why", " "), "close/why"),
        (("reopen", "2025-10", "--why", "x"), "close/open"),
    ],
)
def test_what_cannot_be_closed_is_refused(october: Home, words: tuple[str, ...], code: str):
    facts = october.facts()
    done = october.inside("books", *words)
    assert done.code == 2
    assert f"error[{code}]" in done.err
    assert october.facts() == facts


POSSIBLE = """Date,Amount,Currency,Counterparty,Description,Reference
2025-11-12,-113.60,USD,Stadtwerke,direct debit,r4
2025-11-14,-13.20,USD,Hardware shop,fans and rent,r5
"""


def test_a_match_that_only_seems_so_waits_for_a_word_and_is_entered_by_it(
    october: Home, tmp_path: Path
):
    (tmp_path / "november.csv").write_text(POSSIBLE)
    assert october.inside("import", "bank", "november.csv", "--account", "main").code == 0
    assert october.inside("import", "bills", "rent.csv").code == 0
    asked = ("--from", "2025-10-01", "--to", "2025-12-01")

    waiting = october.inside("books", "reconcile", *asked)
    assert "1 match waits for your word" in waiting.first
    confirm = re.search(r"possible: .*; if so: ouvrage (books match (\S+) (\S+))", waiting.out)
    assert confirm, waiting.out
    books, match, line, bill = confirm[1].split()
    assert bill == "bill/electricity/E-2025-10"
    assert (
        f"open: {bill} of 2025-10-31 electricity  -113.60 USD  perhaps it is paid by {line}"
        in waiting.out
    )
    journal = october.inside("books", "journal", *asked)
    assert f"not entered, for the amount alone agrees: {line} may pay {bill}" in journal.out
    before = october.inside("books", "journal", *asked, "--json").json["balances"]
    assert before["Liabilities:Payable:Electricity"] == "-113.60"

    said = october.inside(books, match, line, bill, "--why", "their customer number")
    assert said.first == f"{line} pays -113.60 USD of {bill}; recorded."
    facts = october.facts()
    assert (
        "said before"
        in october.inside(books, match, line, bill, "--why", "their customer number").first
    )
    assert october.facts() == facts
    after = october.inside("books", "journal", *asked, "--json").json
    assert after["balances"]["Liabilities:Payable:Electricity"] == "0.00"
    paid = [
        each for each in after["entries"] if each["text"] == "bill E-2025-10 of electricity paid"
    ]
    assert len(paid[0]["facts"]) == 3  # the line, the bill, and the word
    found = october.inside("books", "reconcile", *asked, "--json").json
    assert [m["certainty"] for m in found["matches"] if m["documents"][0]["item"] == bill] == [
        "by hand"
    ]
    assert [each["item"] for each in found["owed"]] == ["bill/rent/R-2025-10"]

    rent = next(
        each["item"]
        for each in found["unmatched"]
        if each["who"] == "Hardware shop" and "11-14" in each["item"]
    )
    refused = october.inside("books", "match", rent, "R-2025-10")
    assert refused.code == 2
    assert "error[match/amount]" in refused.err
    assert (
        "hint: if the one is a part of the other, add --part: the rest of the document stays open"
        in refused.err
    )
    part = october.inside("books", "match", rent, "R-2025-10", "--part")
    assert (
        part.first
        == f"{rent} pays -13.20 USD of bill/rent/R-2025-10: -31.80 USD of it stays open; recorded."
    )
    assert "error[match/why]" in october.inside("books", "match", rent, "R-2025-10", "--undo").err
    undone = october.inside("books", "match", rent, "R-2025-10", "--undo", "--why", "it was fans")
    assert undone.first.endswith("will not be taken for it: corrected."), undone.out
    owed = october.inside("books", "reconcile", *asked, "--json").json["owed"]
    assert [each["amount"] for each in owed] == ["-45"]
    assert "error[match/unknown]" in october.inside("books", "match", "x", "R-2025-10").err
    assert "nothing broken" in october.inside("verify").first
