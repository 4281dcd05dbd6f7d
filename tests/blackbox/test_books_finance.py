"""From an empty home to what power cost by the hour, and to books that a bookkeeper's program accepts."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from decimal import Decimal
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.books.test_tariffs import SMALL, VIRGINIA, entsoe_like

KILOWATT = (
    "init", "--currency", "USD", "--site", "garage", "--zone", "America/New_York", "--node", "node-1",
    "--gpus", "1", "--model", "RTX 4090", "--price", "1200", "--bought", "2014-02-01",
)  # fmt: skip


@pytest.fixture
def kilowatt(ouvrage: Home, tmp_path: Path) -> Home:
    """A machine that draws one kilowatt whatever it does."""
    assert ouvrage.inside(*KILOWATT).code == 0
    for name in ("idle_power_w", "load_power_w"):
        assert ouvrage.inside("own", "term", "node:node-1", name, "1000").code == 0
    (tmp_path / "small.json").write_text(json.dumps(SMALL))
    return ouvrage


def between(home: Home, verb: str, begins: str, ends: str, *more: str):
    done = home.inside("books", verb, "--from", begins, "--to", ends, *more)
    assert done.code == 0, done.err
    return done


@pytest.mark.parametrize("real", [False, pytest.param(True, marks=pytest.mark.skipif(not VIRGINIA.exists(), reason="OUVRAGE_DATA is not set"))])  # fmt: skip
def test_a_kilowatt_costs_what_the_tariff_of_virginia_says_on_days_of_24_23_and_25_hours(
    kilowatt: Home, real: bool
):
    stated = kilowatt.inside("own", "tariff", str(VIRGINIA) if real else "small.json")
    assert stated.code == 0, stated.err
    assert "from 2014-01-25 until 2016-01-01: recorded." in stated.first
    assert "3.33156 on a Wednesday, 3.33156 on a Saturday" in stated.out
    assert "2.9 USD a month" in stated.out
    for begins, ends, cost, hours in (
        ("2015-03-07", "2015-03-08", "3.33156", 24),
        ("2015-03-08", "2015-03-09", "3.28222", 23),
        ("2015-11-01", "2015-11-02", "3.3809", 25),
    ):
        found = between(kilowatt, "energy", begins, ends, "--json").json
        assert found["cost"]["electricity"] == cost
        assert Decimal(found["energy_kwh"]) == hours
        assert sum(Decimal(band["kwh"]) for band in found["bands"]) == hours
        sheet = between(kilowatt, "pnl", begins, ends, "--json").json["rows"][0]["figures"]
        assert sheet["cost.electricity"]["value"] == cost
    told = between(kilowatt, "energy", "2015-03-08", "2015-03-09").out
    assert "period-2" in told and "0.17539" in told
    again = kilowatt.inside("own", "tariff", str(VIRGINIA) if real else "small.json")
    assert "said before" in again.first
    assert "tariff/garage/" in kilowatt.inside("own", "show").out


def test_a_tariff_with_a_hole_is_refused_with_its_hours_and_nothing_is_recorded(
    kilowatt: Home, tmp_path: Path
):
    (tmp_path / "holed.toml").write_text(
        'name = "holed"\nfrom = 2015-01-01\n[[band]]\nhours = "6-22"\nper_kwh = "0.3"\n'
        '[[band]]\nhours = "22-6"\nweekdays = "mon-fri"\nper_kwh = "0.2"\n'
    )
    facts = kilowatt.facts()
    refused = kilowatt.inside("own", "tariff", "holed.toml")
    assert refused.code == 2
    assert "no price: Saturday, Sunday 0-6, 22-24 h" in refused.err
    assert kilowatt.facts() == facts


def test_market_prices_count_before_the_tariff_with_what_the_supplier_adds(
    kilowatt: Home, tmp_path: Path
):
    kilowatt.inside("own", "tariff", "small.json")
    (tmp_path / "spot.csv").write_text(entsoe_like("2015-06-10"))
    read = kilowatt.inside("import", "spot", "spot.csv")
    assert read.code == 0, read.err
    assert "24 prices of 1 days in USD" in read.first
    kilowatt.inside("own", "term", "site:garage", "spot_addition", "0.1")
    found = between(kilowatt, "energy", "2015-06-10", "2015-06-12", "--json").json
    dear = 24 * Decimal("0.1451") + Decimal("3.33156")
    assert Decimal(found["cost"]["electricity"]) == dear
    assert "1 there already" in kilowatt.inside("import", "spot", "spot.csv").out


@pytest.fixture
def traded(ouvrage: Home, tmp_path: Path) -> Home:
    """Two months of a machine: a tariff, a lease, a loan and a bill."""
    (tmp_path / "night.toml").write_text(
        'name = "night"\nstanding_per_month = "12"\n[[band]]\nhours = "22-6"\nper_kwh = "0.16"\n'
        '[[band]]\nhours = "6-22"\nper_kwh = "0.31"\n'
    )
    (tmp_path / "bills.csv").write_text(
        "number,about,sort,amount,currency,from,to\n1,site:home,rent,40,EUR,2026-01-01,2026-02-01\n"
    )
    steps = (
        ("init", "--currency", "EUR", "--site", "home", "--node", "n1", "--gpus", "2", "--model", "RTX 4090",
         "--price", "3600", "--bought", "2026-01-01", "--life-months", "36", "--tax", "25%",
         "--channel", "own", "--pue", "1.1"),
        ("own", "tariff", "night.toml"),
        ("own", "lease", "spring", "--of", "node:n1", "--count", "2", "--tenant", "ann", "--price", "0.45/h",
         "--from", "2026-01-03", "--to", "2026-02-20"),
        ("own", "loan", "bank", "--of", "node:n1", "--amount", "2400", "--rate", "6%", "--months", "24",
         "--from", "2026-01-01"),
        ("own", "term", "site:home", "rent", "40"),
        ("own", "term", "site:home", "carbon", "56"),
        ("import", "bills", "bills.csv"),
    )  # fmt: skip
    for step in steps:
        done = ouvrage.inside(*step)
        assert done.code == 0, done.err
    return ouvrage


def test_the_journal_is_the_statement_and_other_programs_read_it(traded: Home, tmp_path: Path):
    (tmp_path / "chart.toml").write_text(
        '[accounts]\n"Expenses:Electricity" = "6325 Power"\n"Expenses" = "=6000"\n"Income" = "4000 Sales"\n'
    )
    told = traded.inside("books", "journal", "--month", "2026-02", "--chart", "chart.toml",
                         "--csv", "j.csv", "--xlsx", "j.xlsx")  # fmt: skip
    assert told.code == 0, told.err
    assert told.first.startswith("home in February 2026: ")
    assert "the chart does not name Assets:Accrued:Own" in told.out
    found = traded.inside("books", "journal", "--month", "2026-02", "--json").json
    sheet = traded.inside("books", "pnl", "--month", "2026-02", "--json").json["rows"][0]["figures"]
    for line, amount in found["statement"].items():
        assert Decimal(amount) == Decimal(sheet[line]["value"]), line
    assert Decimal(sheet["carbon"]["value"]) > 0

    rows = list(csv.DictReader(io.StringIO((tmp_path / "j.csv").read_bytes().decode())))
    by_entry: dict[str, Decimal] = {}
    for row in rows:
        amount = Decimal(row["debit"] or 0) - Decimal(row["credit"] or 0)
        by_entry[row["entry"]] = by_entry.get(row["entry"], Decimal(0)) + amount
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values())
    assert set(by_entry.values()) == {Decimal(0)}
    theirs = {row["account"]: row["theirs"] for row in rows}
    assert theirs["Expenses:Electricity"] == "6325 Power"
    assert theirs["Expenses:Rent"] == "'=6000"
    assert theirs["Income:Own:Gpu"] == "4000 Sales"


def test_a_workbook_has_numbers_and_texts_and_no_formula(traded: Home, tmp_path: Path):
    (tmp_path / "chart.toml").write_text('[accounts]\n"Expenses" = "=cmd()"\n')
    done = traded.inside("books", "journal", "--month", "2026-02", "--xlsx", "j.xlsx",
                         "--chart", "chart.toml")  # fmt: skip
    assert done.code == 0, done.err
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(tmp_path / "j.xlsx") as book:
        sheets = [n for n in book.namelist() if n.startswith("xl/worksheets/sheet")]
        assert len(sheets) == 3
        texts = [
            "".join(each.itertext()) for each in ET.fromstring(book.read("xl/sharedStrings.xml"))
        ]
        assert not [text for text in texts if text.startswith(("=", "+", "-", "@"))]
        assert "'=cmd()" in texts
        for name in sheets:
            root = ET.fromstring(book.read(name))
            assert not list(root.iter(f"{space}f"))
            assert any(cell.get("t") is None for cell in root.iter(f"{space}c"))
    first = (tmp_path / "j.xlsx").read_bytes()
    traded.inside(
        "books", "journal", "--month", "2026-02", "--xlsx", "j.xlsx", "--chart", "chart.toml"
    )
    assert (tmp_path / "j.xlsx").read_bytes() == first


def bean_check() -> str:
    """The checker of beancount, which requirements/dev.txt installs beside Python."""
    beside = Path(sys.executable).with_name("bean-check")
    found = os.environ.get("BEAN_CHECK") or (str(beside) if beside.exists() else None)
    assert found or shutil.which("bean-check"), "install requirements/dev.txt: beancount is missing"
    return found or "bean-check"


def test_beancount_accepts_the_journal_with_equal_balances_and_not_one_that_is_changed(
    traded: Home, tmp_path: Path
):
    for period in (("--month", "2026-02"), ("--from", "2026-01-01", "--to", "2026-03-01")):
        done = traded.inside("books", "journal", *period, "--beancount", "books.beancount")
        assert done.code == 0, done.err
        checked = subprocess.run([bean_check(), "books.beancount"], cwd=tmp_path,
                                 capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
        found = traded.inside("books", "journal", *period, "--json").json["balances"]
        text = (tmp_path / "books.beancount").read_text()
        stated = {
            line.split()[2]: Decimal(line.split()[3])
            for line in text.splitlines()
            if " balance " in line
        }
        assert stated == {name: Decimal(amount) for name, amount in found.items()}
    amount = next(line for line in text.splitlines() if line.startswith("  Expenses:Rent"))
    changed = text.replace(amount, amount.replace(".", "1.", 1), 1)
    (tmp_path / "changed.beancount").write_text(changed)
    checked = subprocess.run([bean_check(), "changed.beancount"], cwd=tmp_path,
                             capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    assert checked.returncode == 1
    assert "does not balance" in checked.stdout + checked.stderr


def test_a_chart_that_beancount_cannot_take_is_refused_and_no_file_is_written(
    traded: Home, tmp_path: Path
):
    (tmp_path / "chart.toml").write_text('[accounts]\n"Expenses" = "6000 Costs"\n')
    done = traded.inside("books", "journal", "--month", "2026-02", "--chart", "chart.toml",
                         "--csv", "j.csv", "--beancount", "b.beancount")  # fmt: skip
    assert done.code == 2
    assert "'6000 Costs'" in done.err
    assert not (tmp_path / "j.csv").exists()
    (tmp_path / "chart.toml").write_text('[accounts]\n"Costs" = "6000"\n')
    done = traded.inside("books", "journal", "--month", "2026-02", "--chart", "chart.toml")
    assert (done.code, "'Costs'" in done.err) == (2, True)


def test_every_law_holds_over_it(traded: Home):
    done = traded.inside("verify")
    assert done.code == 0, done.out
