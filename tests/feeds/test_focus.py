"""Bills in FOCUS: exact sums, rows that contradict themselves, and the same charge read again."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.feeds.focus import Charged, read_focus, statements
from ouvrage.adapters.feeds.told import Told
from ouvrage.books.focus import flags_of, totals
from ouvrage.ledger.stated import Stated
from tests.blackbox.home import Home, home_in

USUAL = {
    "BilledCost": "1.5", "EffectiveCost": "1.5", "ListCost": "1.5", "ContractedCost": "1.5",
    "ListUnitPrice": "0.5", "PricingQuantity": "3", "PricingUnit": "Hours",
    "BillingCurrency": "USD", "ChargeCategory": "Usage", "ChargeClass": "NULL",
    "ChargePeriodStart": "2024-09-01T00:00:00Z", "ChargePeriodEnd": "2024-09-01T01:00:00Z",
    "ProviderName": "AWS", "ResourceId": "i-1", "Tags": "NULL",
}  # fmt: skip


def export(*rows: dict[str, str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(USUAL), quoting=csv.QUOTE_MINIMAL)
    writer.writeheader()
    writer.writerows({**USUAL, **row} for row in rows)
    return text.getvalue()


def read(*rows: dict[str, str]) -> tuple[list[Charged], Told]:
    told = Told(form="focus", file="bill.csv")
    return read_focus(export(*rows), told), told


@pytest.fixture
def sample() -> Path:
    found = Path(os.environ.get("OUVRAGE_DATA", "nowhere")) / "focus" / "focus_sample.csv"
    if not found.is_file():
        pytest.skip("OUVRAGE_DATA is not set to a directory with focus/focus_sample.csv in it")
    return found


def test_the_published_sample_adds_up_and_its_odd_rows_are_flagged(sample: Path, tmp_path: Path):
    home: Home = home_in(tmp_path, "home")
    said = home.inside("focus", "import", str(sample), "--json")
    assert said.code == 0
    answer = said.json
    assert answer["rows"] == 1000
    assert answer["sums"] == {
        "BilledCost": "20.52022672899",
        "EffectiveCost": "14.97651418586",
        "ListCost": "20.39090575119",
        "ContractedCost": "14.97626039326",
    }
    flagged = answer["flagged"]
    assert all(set(flag) == {"row", "rule"} for flag in flagged)
    assert Counter(flag["rule"] for flag in flagged) == {
        "price-times-quantity": 31, "negative-usage": 12, "credit": 1,
    }  # fmt: skip
    assert len({flag["row"] for flag in flagged}) == 39
    assert {"row": 457, "rule": "credit"} in flagged
    assert answer["currencies"][0]["null"] == {"ContractedCost": 7}
    assert len(home.facts()) == 1000
    again = home.inside("focus", "import", str(sample)).out.splitlines()
    assert again[0] == "1000 rows: 20.52022672899 USD ◐ billed; 39 rows flagged"
    assert again[1] == "  statements: 1000 there already"
    assert "    each by a factor of 10,000: their PricingQuantity is that much too small" in again
    assert len(home.facts()) == 1000
    by = home.inside("focus", "sums", "--json").json["sums"]
    assert [(each["by"]["provider"], each["rows"]) for each in by] == [
        ("AWS", 942), ("Microsoft", 51), ("Oracle", 7),
    ]  # fmt: skip
    assert home.inside("verify").code == 0


def test_the_sample_shuffled_and_in_parts_is_the_same_charges(sample: Path, tmp_path: Path):
    head, *rows = list(csv.reader(io.StringIO(sample.read_text(encoding="utf-8"), newline="")))
    Random(5).shuffle(rows)
    home = home_in(tmp_path, "home")
    for name, part in (("a", rows[:600]), ("b", rows[400:])):
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *part])
        assert home.inside("focus", "import", name).code == 0
    assert home.inside("focus", "import", str(sample), "--json").json["same"] == 1000
    assert len(home.facts()) == 1000


def test_flags_are_by_row_and_rule_and_cost_no_row():
    charged, told = read(
        {}, {"PricingQuantity": "0.0003"}, {"ListCost": "1.50000000005"}, {"ListCost": "1.50000000006"},
        {"BilledCost": "-1", "ListUnitPrice": "NULL"}, {"BilledCost": "-1", "ChargeClass": "Correction"},
        {"ChargeCategory": "Credit", "BilledCost": "-2", "PricingQuantity": "9"},
    )  # fmt: skip
    assert not told.faults
    flags = [(f.row, f.rule) for f in flags_of((c.row, c.charge) for c in charged)]
    assert flags == [
        (2, "price-times-quantity"), (4, "price-times-quantity"), (5, "negative-usage"),
        (7, "price-times-quantity"), (7, "credit"),
    ]  # fmt: skip


def test_currencies_are_never_added_up(tmp_path: Path):
    charged, _ = read({}, {"BillingCurrency": "EUR", "BilledCost": "NULL"})
    found = totals([each.charge for each in charged])
    assert [(t.currency, t.sums["BilledCost"], t.unknown) for t in found] == [
        ("EUR", None, {"BilledCost": 1}), ("USD", "1.5", {}),
    ]  # fmt: skip
    (tmp_path / "two.csv").write_text(export({}, {"BillingCurrency": "EUR"}))
    answer = home_in(tmp_path, "home").inside("focus", "import", "two.csv", "--json").json
    assert answer["sums"] == dict.fromkeys(answer["sums"], None)
    assert [each["sums"]["BilledCost"] for each in answer["currencies"]] == ["1.5", "1.5"]


def test_bad_rows_are_told_and_the_others_come_in(tmp_path: Path):
    text = export(
        {"BilledCost": "dear"},
        {},
        {"ChargePeriodEnd": "2023-01-01T00:00:00Z"},
        {"BillingCurrency": ""},
    )
    (tmp_path / "bill.csv").write_text(text + "short,row\n")
    said = home_in(tmp_path, "home").inside("focus", "import", "bill.csv", "--json")
    assert said.code == 1
    assert [(f["line"], f["field"]) for f in said.json["faults"]] == [
        ("row 1", "BilledCost"), ("row 3", "ChargePeriodEnd"), ("row 4", "BillingCurrency"), ("row 5", "row"),
    ]  # fmt: skip
    assert (said.json["rows"], said.json["new"]) == (5, 1)


def test_a_file_that_is_no_bill_leaves_nothing(tmp_path: Path):
    home = home_in(tmp_path, "home")
    for name, text in (("empty.csv", ""), ("other.csv", "a,b\n1,2\n")):
        (tmp_path / name).write_text(text)
        said = home.inside("focus", "import", name, "--json")
        assert said.code == 2
        assert said.json["error"]["code"] == "focus/columns"
    assert home.inside("focus", "sums").code == 2


PROJECTS = {
    "genomics-sequencing": {
        "Amazon EC2": ("1062.50", "756.50"),
        "Amazon EBS": ("382.50",),
        "Amazon S3": ("106.25",),
    },
    "protein-folding-ml": {"Amazon EC2": ("2040.00", "2040.00"), "Amazon S3": ("72.25",)},
    "exoplanet-survey": {
        "Amazon EC2": ("578.00", "578.00"),
        "Amazon S3": ("2975.00", "756.50"),
        "Amazon S3 Glacier": ("212.50",),
    },
    "neuroimaging-atlas": {
        "Amazon EC2": ("807.50", "807.50"),
        "Amazon S3": ("1870.00",),
        "Amazon RDS": ("148.75",),
    },
}
"""Amounts billed in OpenChargeback's own sample (sample_data/inputs/aws_2025-01.csv, MIT), by project."""
JOURNAL = {
    ("genomics-sequencing", "Amazon EC2"): "1819", ("genomics-sequencing", "Amazon EBS"): "382.5",
    ("genomics-sequencing", "Amazon S3"): "106.25", ("protein-folding-ml", "Amazon EC2"): "4080",
    ("protein-folding-ml", "Amazon S3"): "72.25", ("exoplanet-survey", "Amazon EC2"): "1156",
    ("exoplanet-survey", "Amazon S3"): "3731.5", ("exoplanet-survey", "Amazon S3 Glacier"): "212.5",
    ("neuroimaging-atlas", "Amazon EC2"): "1615", ("neuroimaging-atlas", "Amazon S3"): "1870",
    ("neuroimaging-atlas", "Amazon RDS"): "148.75",
}  # fmt: skip
"""What it made of them (sample_data/outputs/journals/journal_2025-01_20260130_233508.csv)."""


def test_a_charge_back_file_has_the_totals_of_its_own_journal(tmp_path: Path):
    names = "ChargePeriodStart,ChargePeriodEnd,BilledCost,EffectiveCost,ResourceId,ServiceName,Tags"
    lines = [
        f'2025-01-01,2025-01-31,{amount},{amount},{project}-{service}-{i},{service},"{{""project_id"": ""{project}""}}"'
        for project, services in PROJECTS.items()
        for service, amounts in services.items()
        for i, amount in enumerate(amounts)
    ]
    (tmp_path / "aws.csv").write_text("\n".join([names, *lines]))
    home = home_in(tmp_path, "home")
    assert (
        home.inside("focus", "import", "aws.csv", "--json").json["error"]["code"]
        == "focus/currency"
    )
    said = home.inside("focus", "import", "aws.csv", "--currency", "USD")
    assert said.code == 0
    assert (
        "  note: ChargePeriodEnd is a day alone, and is read as its first moment in UTC (16)"
        in said.out
    )
    by = home.inside("focus", "sums", "--by", "tag:project_id", "--by", "service", "--json").json[
        "sums"
    ]
    assert {tuple(each["by"].values()): each["sums"]["BilledCost"] for each in by} == JOURNAL


def _book(known: list[Stated], ids: set[str], offered: list[Stated]) -> list[Stated]:
    """What ``booking.book`` makes of statements, by their names and ids alone."""
    held = {each.natural: each for each in known}
    for each in offered:
        if each.id not in ids:
            ids.add(each.id)
            held[each.natural] = each
    return list(held.values())


def test_an_export_made_again_corrects_and_an_old_one_changes_nothing():
    old, _ = read({}, {"ResourceId": "i-2"})
    new, _ = read({"BilledCost": "1.7"}, {"ResourceId": "i-2"})
    ids: set[str] = set()
    held = _book([], ids, statements([], old))
    held = _book(held, ids, statements(held, new))
    assert sorted(each.value.billed for each in held) == ["1.5", "1.7"]
    held = _book(held, ids, statements(held, old))
    assert sorted(each.value.billed for each in held) == ["1.5", "1.7"]


ROWS = st.lists(
    st.fixed_dictionaries(
        {"BilledCost": st.sampled_from(["1", "2"]), "ResourceId": st.sampled_from(["i-1", "i-2"])}
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, random=st.randoms(use_true_random=False))
def test_any_order_and_any_number_of_readings_are_the_same_charges(
    rows: list[dict[str, str]], random: Random
):
    ids: set[str] = set()
    held = _book([], ids, statements([], read(*rows)[0]))
    for _ in range(2):
        random.shuffle(rows)
        held = _book(held, ids, statements(held, read(*rows)[0]))
    said = Counter((e.value.billed, json.loads(e.value.columns)["ResourceId"]) for e in held)
    assert said == Counter((row["BilledCost"], row["ResourceId"]) for row in rows)


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet=',"\n\r0N1eé\x00\ud800', max_size=60))
def test_anything_is_read_told_or_refused(text: str):
    told = Told(form="focus", file="bill.csv")
    body = export().replace("\r\n", "\n") + text
    charged = read_focus(body, told)
    assert len(charged) <= told.rows
    json.dumps([fault.as_json() for fault in told.faults])
