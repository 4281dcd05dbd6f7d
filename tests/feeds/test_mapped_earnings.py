"""Earnings by a mapping: blocks, denominations, days, fees, and rows that do not fit."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ouvrage.adapters.feeds.mapped_earnings import Earned, read_earnings, statements
from ouvrage.adapters.feeds.mapping import load_mapping, mapping_in, shipped
from ouvrage.adapters.feeds.table import amount_text, decimal_sign, decoded
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.time import HOUR, utc_text

AKASH = """date,lease,denom,price_per_block,from_block,to_block,amount,type
2026-11-07,dseq-1,uact,4513.513,1000,15130,,lease
2026-11-07,dseq-2,uakt,100,1000,1500,,lease
2026-11-07,,uakt,,,,2500,gas
2026-11-07,,uakt,,,,9,deposit
2026-11-07,dseq-3,uatom,1,1,2,,lease
2026-11-07,dseq-4,uakt,1,9,2,,lease
2026-11-07,dseq-5,uakt,1,1,2,,airdrop
"""


def read(text: str, mapping: str, zone: str = "UTC") -> tuple[list[Earned], Told]:
    told = Told(form="earnings", file="e.csv")
    found = (
        load_mapping(mapping, "earnings") if mapping in shipped() else mapping_in("m.toml", mapping)
    )
    return read_earnings(text, told, found, zone), told


def test_every_shipped_mapping_reads_and_says_what_it_was_held_against():
    for name in shipped():
        sort = name if name in ("bank", "bills") else "earnings"
        mapping = load_mapping(name, sort)
        assert (
            mapping.name == name
            and mapping.source
            and mapping.seen in ("never", "documentation", "export")
        )


def test_akash_counts_blocks_in_a_chain_s_smallest_units():
    earned, told = read(AKASH, "akash")
    assert [(e.document, e.what, e.currency, e.amount) for e in earned] == [
        ("dseq-1", "earning", "USD", Fraction("4513.513") * 14130 / 10**6),
        ("dseq-2", "earning", "AKT", Fraction(100 * 500, 10**6)),
        (None, "gas", "AKT", Fraction(2500, 10**6)),
    ]
    assert [f.line for f in told.faults] == [
        "e.csv:6   denom: found 'uatom', expected a currency such as uakt, uact, uusdc",
        "e.csv:7   to_block: found '2', expected a block not before 9",
        "e.csv:8   type: found 'airdrop', expected one of lease, earning, gas, withdraw, close, bid, fee, "
        "take-rate, deposit, transfer",
    ]
    assert told.rows == 7 and told.notes == {"of sort deposit: left out, as the mapping says": 1}
    (stated,) = statements([earned], "akash", {None: "node:n1"}, Grade.METERED)
    assert [type(s.value).__name__ for s in stated] == ["Earning", "Earning", "CostBill"]
    assert stated[2].value.sort == "gas" and stated[2].value.amount == "0.0025"


def test_a_month_of_blocks_is_what_the_price_script_says():
    """8 threads, 32 GiB, 100 GiB and a GPU at 1900: 1940.4 USD a month at 4513.513 uact a block."""
    row = "2026-11-01,d,uact,4513.513,0,429909,,lease"
    earned, _ = read(AKASH.splitlines()[0] + "\n" + row + "\n", "akash")
    assert round(earned[0].amount, 2) == Fraction("1940.40")


def test_prices_by_the_day_for_a_period_and_a_fee_in_percent():
    text = "start;end;server_id;price_per_day;currency;fee_percent\n2026-11-07;2026-11-09;17;24,00;CLORE;5\n"
    earned, told = read(text, "clore")
    assert not told.faults
    assert (earned[0].amount, earned[0].fee, earned[0].machine) == (48, Fraction("2.4"), "17")
    assert utc_text(earned[0].to_us)[:10] == "2026-11-09"


def test_rewards_by_the_hour_stay_tokens():
    text = "block_time,device_id,reward\n2026-11-07T10:00:00Z,a,1.25\n2026-11-07T11:00:00Z,a,0.75\n"
    earned, _ = read(text, "ionet")
    assert [(e.to_us - e.from_us, e.currency, e.component) for e in earned] == [
        (HOUR, "IO", "idle-job")
    ] * 2
    golem, told = read("date,node,amount\n2026-11-07,n,1.5\n", "golem")
    assert not told.faults and golem[0].currency == "GLM"
    runpod, _ = read("date,machine_id,amount,fee,gpu_hours\n2026-11-07,m,10,0.24,7.5\n", "runpod")
    assert (runpod[0].fee, runpod[0].sold_us) == (Fraction("2.4"), 7.5 * HOUR)


OWN = """
name = "own"
sort = "earnings"
seen = "export"
source = "ours"
[file]
days = ["%d.%m.%Y"]
decimal = ","
[columns]
day = "Tag"
amount = "Betrag"
[values]
currency = "EUR"
fee = "0.2"
fee_form = "fraction"
net_of_fee = true
"""


def test_a_share_kept_from_what_is_paid_out_is_grossed_up_in_the_right_direction():
    earned, told = read("Tag;Betrag\n07.11.2026;1.234,56\n07.11.2026;5,44\n", OWN)
    assert not told.faults
    (stated,) = statements([earned], "own", {None: "site:s"}, Grade.METERED)
    assert [(s.value.amount, s.value.fee) for s in stated] == [("1550", "310")]


def test_a_day_without_a_clear_form_is_refused_by_line():
    _, told = read("Tag;Betrag\n11/07/2026;1,0\n07.11.2026;1.0\n", OWN)
    assert [(f.place, f.field) for f in told.faults] == [("2", "Tag"), ("3", "Betrag")]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ('sort = "earnings"|sort = "wages"', "sort"),
        ('seen = "export"|', "seen"),
        ("[columns]|[columns]\nprize = 'x'", "columns.prize"),
        ("[values]|[values]\nper = 'moon'", "values.per"),
        ("[values]|[values]\ncomponent = 'luck'", "values.component"),
        ("[file]|[file]\nskip = -1", "file.skip"),
        ("[file]|[file]\nseparator = ';;'", "file.separator"),
        ("[values]|[rows]\nprize = ['x']\n[values]", "rows.prize"),
        ("[values]|[denominations.u]\ncurrency = 'A'\n[values]", "denominations.u"),
    ],
)
def test_a_mapping_that_means_nothing_is_refused_with_its_key(change: str, key: str):
    before, after = change.split("|", 1)
    with pytest.raises(OuvrageError) as refused:
        mapping_in("m.toml", OWN.replace(before, after, 1))
    assert f"{key} is" in refused.value.message


def test_a_column_that_is_missing_is_named():
    with pytest.raises(OuvrageError) as refused:
        read("Tag;Wert\n07.11.2026;1,0\n", OWN)
    assert refused.value.code == "mapping/columns"
    assert refused.value.where == ("e.csv:1   Tag, Wert",)


@pytest.mark.parametrize(
    ("text", "sign", "amount"),
    [
        ("1.234,56", ",", "1234.56"),
        ("1'234.56", ".", "1234.56"),
        ("1\u202f234,56", ",", "1234.56"),
        ("-12,5", ",", "-12.5"),
        ("12,50-", ",", "-12.50"),
        ("(12.50)", ".", "-12.50"),
        ("\u221212.50 EUR", ".", "-12.50"),
        ("EUR 7", ".", "7"),
        ("1,23,456", ".", None),
        ("12.34.56", ",", None),
        ("1.5", ",", None),
        ("twelve", ".", None),
        ("", ".", None),
        ("1e400", ".", None),
    ],
)
def test_amounts_as_people_write_them(text: str, sign: str, amount: str | None):
    found = amount_text(text, sign)
    assert (None if found is None else str(found)) == amount


def test_the_decimal_sign_is_told_or_unclear():
    assert decimal_sign(["1.234", "5,6"]) == ","
    assert decimal_sign(["1.234,5"]) == ","
    assert decimal_sign(["12.50", "1,234.5"]) == "."
    assert decimal_sign(["1.5", "1,5"]) is None
    assert decimal_sign(["12", "7"]) == "."
    assert decoded("Währung".encode("cp1252"), None, "f") == "Währung"
    assert decoded("é".encode("utf-16"), None, "f") == "é"
    with pytest.raises(OuvrageError):
        decoded(b"\xff", "ascii", "f")


def test_a_row_twice_is_refused_where_it_names_itself_and_told_where_it_does_not():
    text = "block_time,device_id,reward\n2026-11-07T10:00:00Z,a,1.25\n2026-11-07T10:00:00Z,a,1.25\n"
    earned, told = read(text, "ionet")
    assert len(earned) == 1
    assert [f.line for f in told.faults] == [
        "e.csv:3   row: found 'line 2 again', expected each row once"
    ]
    earned, told = read("date,amount\n2026-11-07,1.25\n2026-11-07,1.25\n", "golem")
    assert len(earned) == 2
    assert "line 3 equals line 2; both count, as two equal sales of a day" in told.notes


def test_of_two_files_the_fuller_counts():
    whole, _ = read("date,node,amount\n2026-11-07,n,1\n2026-11-07,n,2\n2026-11-08,n,5\n", "golem")
    cut, _ = read("date,node,amount\n2026-11-06,n,7\n2026-11-07,n,1\n", "golem")
    for files in ([whole, cut], [cut, whole]):
        said = statements(files, "golem", {"n": "node:n"}, Grade.METERED)
        assert sorted(s.value.amount for part in said for s in part) == ["3", "5", "7"]
