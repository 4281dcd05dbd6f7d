"""Rates of exchange from files: the central bank's layout, a row a rate, and what is wrong by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blackbox.home import Home

BANK = """Date,USD,JPY,CHF,
2025-11-28,1.1566,180.71,0.9323,
2025-11-27,1.1581,N/A,0.9330,
"""
ROWS = """date,base,quote,rate
2025-11-26,USD,EUR,0.8634
2025-11-27,USD,EUR,0.8635
"""


def put(home: Home, name: str, text: str) -> str:
    (home.path.parent / name).write_text(text)
    return name


def rates(home: Home) -> list[dict[str, str]]:
    found: list[dict[str, str]] = home.inside("fx", "list", "--json").json["rates"]
    return found


def test_the_central_bank_s_file_gives_the_currencies_in_use_or_named(ouvrage: Home):
    name = put(ouvrage, "eurofxref-hist.csv", BANK)
    refused = ouvrage.inside("fx", "import", name)
    assert refused.code == 2
    assert "error[fx/which]" in refused.err
    assert "hint: name those that you want: --currency USD" in refused.err
    assert ouvrage.inside("init", "--currency", "USD", "--site", "garage", "--node", "n1").code == 0
    done = ouvrage.inside("fx", "import", name)
    assert done.code == 0, done.err
    assert done.first == "2 rates ○ of EUR/USD, 2025-11-27 to 2025-11-28"
    assert "2 new" in done.out
    facts = ouvrage.facts()
    assert "2 there already" in ouvrage.inside("fx", "import", name).out
    assert ouvrage.facts() == facts
    assert (
        ouvrage.inside("fx", "import", name, "--currency", "JPY", "--since", "2025-11-28").code == 0
    )
    assert [(each["day"], each["quote"], each["rate"]) for each in rates(ouvrage)] == [
        ("2025-11-28", "JPY", "180.71"), ("2025-11-28", "USD", "1.1566"), ("2025-11-27", "USD", "1.1581"),
    ]  # fmt: skip
    assert {each["said_by"] for each in rates(ouvrage)} == {
        "the European Central Bank's reference rates"
    }
    assert "nothing broken" in ouvrage.inside("verify").first


def test_a_row_a_rate_needs_somebody_who_says_so_and_a_new_file_corrects(ouvrage: Home):
    name = put(ouvrage, "rates.csv", ROWS)
    assert "error[fx/by]" in ouvrage.inside("fx", "import", name).err
    assert ouvrage.inside("fx", "import", name, "--by", "my bank").first.startswith(
        "2 rates ○ of USD/EUR"
    )
    again = put(ouvrage, "again.csv", ROWS.replace("0.8635", "0.8640"))
    assert (
        "1 corrected, 1 there already"
        in ouvrage.inside("fx", "import", again, "--by", "my bank").out
    )
    assert [each["rate"] for each in rates(ouvrage)] == ["0.864", "0.8634"]
    old = ouvrage.inside("fx", "import", name, "--by", "my bank", "--plain")
    assert "2 there already" in old.out
    assert old.first.startswith("2 rates (reported) of USD/EUR")


def test_what_is_wrong_is_told_by_line_and_column_and_the_rest_comes_in(ouvrage: Home):
    name = put(ouvrage, "bad.csv", """date,base,quote,rate
2025-11-26,USD,EUR,0.8634
2025-13-01,USD,EUR,0.8635
2025-11-27,USD,USD,1
2025-11-27,dollar,EUR,0.9
2025-11-28,USD,EUR,-1
2025-11-28,USD,EUR,"0,86"
2999-01-01,USD,EUR,0.9
2025-11-26,USD,EUR,0.8700
2025-11-29,USD,EUR
2025-11-29,USD,EUR,0.88
""")  # fmt: skip
    done = ouvrage.inside("fx", "import", name, "--by", "me", "--json")
    assert done.code == 1
    faults = [(int(f["line"]), f["field"]) for f in done.json["files"][0]["faults"]]
    assert sorted(faults) == [
        (3, "date"), (4, "quote"), (5, "base"), (6, "rate"), (7, "rate"), (8, "date"), (9, "rate"), (10, "row"),
    ]  # fmt: skip
    assert [each["day"] for each in rates(ouvrage)] == ["2025-11-29", "2025-11-26"]
    told = ouvrage.inside("fx", "import", name, "--by", "me").out
    assert (
        "bad.csv:9   rate: found '0.87', expected one rate of a day; it was 0.8634 before" in told
    )
    assert "bad.csv:3   date: found '2025-13-01', expected a day such as 2026-11-30" in told


@pytest.mark.parametrize(
    ("text", "code"), [("day,from,to,value\n2025-11-26,USD,EUR,1\n", "fx/columns"), ("", None)]
)
def test_a_file_that_is_none_is_refused_and_an_empty_one_holds_nothing(
    ouvrage: Home, text: str, code: str | None
):
    done = ouvrage.inside("fx", "import", put(ouvrage, "x.csv", text), "--by", "me")
    if code is None:
        assert done.first == "0 rates ○, no period"
    else:
        assert done.code == 2
        assert f"error[{code}]" in done.err
        assert "x.csv:1   columns: found day,from,to,value" in done.err


def test_a_statement_in_another_currency_goes_by_the_rate_of_the_file(
    ouvrage: Home, tmp_path: Path
):
    for words in (
        ("init", "--currency", "EUR", "--site", "garage", "--node", "n1", "--gpus", "1", "--bought", "2025-11-01",
         "--price", "1"),
        ("fx", "import", put(ouvrage, "eurofxref-hist.csv", BANK), "--currency", "USD"),
        ("import", "bills", put(ouvrage, "b.csv", "number,sort,about,amount,currency,from,to\n"
                                "R1,rent,site:garage,11.581,USD,2025-11-27,2025-11-27\n")),
    ):  # fmt: skip
        done = ouvrage.inside(*words)
        assert done.code == 0, done.out + done.err
    found = ouvrage.inside("books", "pnl", "--month", "2025-11", "--json").json
    assert found["total"]["figures"]["cost.rent"]["value"] == "10"
