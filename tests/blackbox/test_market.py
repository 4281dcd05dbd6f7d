"""From an empty home to the cheapest way to finish a piece of work, and whether the quote was kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.blackbox import spools
from tests.blackbox.conftest import Home
from tests.market import catalogues as c
from tests.market.test_nccl import OUTPUT

RUN = spools.run_id(1)


@pytest.fixture
def files(ouvrage: Home) -> Path:
    place = ouvrage.path.parent
    (place / "offers.csv").write_text(c.TRIAL)
    (place / "work.toml").write_text(c.TRIAL_PROFILE)
    return place


def test_an_empty_market_says_what_to_do(ouvrage: Home):
    said = ouvrage("market", "list")
    assert said.code == 0
    assert said.first == "There are no offers yet."
    assert "ouvrage market import starter" in said.out


def test_a_catalogue_is_read_twice_and_then_at_another_price(ouvrage: Home, files: Path):
    first = ouvrage("market", "import", "offers.csv", "--read", "2026-11-01")
    assert first.code == 0
    assert first.first == (
        "2 offers from offers.csv as own/offers: 2 new, 0 at another price, 0 known"
    )
    facts = len(ouvrage.facts())
    again = ouvrage("market", "import", "offers.csv", "--read", "2026-11-01", "--json").json
    assert [again["imported"][0][k] for k in ("new", "changed", "exists")] == [0, 0, 2]
    assert len(ouvrage.facts()) == facts
    (files / "offers.csv").write_text(c.TRIAL.replace("0.36", "0.33"))
    later = ouvrage("market", "import", "offers.csv", "--read", "2026-11-08", "--json").json
    assert [later["imported"][0][k] for k in ("new", "changed", "exists")] == [0, 1, 1]
    told = ouvrage("market", "diff")
    assert told.out.splitlines() == [
        "own/offers: 1 change from 2026-11-01 to 2026-11-08",
        "  changed  optimised                                 0.36 → 0.33 USD/h",
    ]
    bands = ouvrage("market", "watch", "--gpu", "rtx 3080", "--json").json["bands"]
    assert [(b["read_on"], b["p10"], b["p90"]) for b in bands] == [
        ("2026-11-01", "0.3", "0.36"),
        ("2026-11-08", "0.3", "0.33"),
    ]
    listed = ouvrage("market", "list", "--gpu", "RTX 3080", "--price", "0.32", "--json").json
    assert [(o["offer"], o["first_read"], o["seen_on"]) for o in listed["offers"]] == [
        ("standard", "2026-11-01", "2026-11-08")
    ]
    shown = ouvrage("market", "show", "optimised", "--json").json
    assert [each["price"] for each in shown["history"]] == ["0.36", "0.33"]
    assert (shown["grade"], shown["raw"]["gpu"]) == ("listed", "RTX 3080")
    assert "nobody is bound by this price" in ouvrage("market", "show", "optimised").out
    assert ouvrage("verify").code == 0


def test_good_rows_come_in_and_bad_ones_are_counted(ouvrage: Home, files: Path):
    (files / "hunt.csv").write_text(c.GPUHUNT)
    said = ouvrage("market", "import", "hunt.csv")
    assert said.code == 1
    assert (
        said.first == "3 offers from hunt.csv as gpuhunt/hunt: 3 new, 0 at another price, 0 known"
    )
    assert "  2 rows could not be read:" in said.out
    assert "    hunt.csv:6   price: found 'cheap', expected a number" in said.out
    faults = ouvrage("market", "import", "hunt.csv", "--json").json["imported"][0]["faults"]
    assert faults[1] == {
        "file": "hunt.csv",
        "line": "6",
        "field": "price",
        "found": "'cheap'",
        "expected": "a number",
    }


def test_the_published_trial_as_a_quote(ouvrage: Home, files: Path):
    words = ["quote", "--profile", "work.toml", "--offers", "offers.csv"]
    said = ouvrage(*words, "--plain", "--csv", "ranked.csv", "--html", "quote.html")
    assert said.code == 0, said
    shown = [" ".join(line.split()) for line in said.out.splitlines()]
    assert shown[:8] == [
        "Cheapest way to finish 300 epochs: Genesis Cloud, optimised, RTX3080, 2.9 USD (assumed)"
        " (1.9 to 4.3), in 8 h 00 min",
        "The cheapest hour (Genesis Cloud, 0.300 USD/h) would cost 3.18 USD: each unit takes 1.32"
        " times as long, since its CPU is the lesser and starves its GPU.",
        "",
        "# offer per hour cost / epoch finished limited by grade # by hour",
        "1 Genesis Cloud optimised 0.360 USD (listed) 0.0096 (0.0065 to 0.0143) 8 h 00 min"
        " GPU (assumed) time (assumed) 2",
        "2 Genesis Cloud standard 0.300 USD (listed) 0.0106 (0.0106 to 0.0106) 10 h 36 min"
        " GPU (assumed) time (assumed) 1",
        "",
        "The second (Genesis Cloud, standard) would win if its hour cost less than 0.272 USD, or"
        " its epoch took less than 115 s, or the first's took more than 106 s.",
    ]
    assert not ouvrage.path.exists()
    value = ouvrage(*words, "--json").json
    told = [(r["offer"], r["cost_per_unit"]["likely"], r["time_s"]) for r in value["ranked"]]
    assert told == [("optimised", "0.0096", 28800), ("standard", "0.0106", 38160)]
    assert value["ranked"][0]["lines"][0]["line"] == "work"
    assert value["excluded"] == []
    assert value["second_wins_if"]["effects"]["price"] == 1.2
    page = (files / "quote.html").read_text()
    assert "<svg" in page
    assert "0.0096" in page
    assert (
        (files / "ranked.csv").read_text().splitlines()[1].startswith("1,optimised,Genesis Cloud")
    )


def test_those_that_are_not_able_are_listed_apart(ouvrage: Home, files: Path):
    words = ["quote", "--profile", "work.toml", "--offers", "offers.csv", "--deadline", "9h"]
    said = ouvrage(*words)
    assert "  not able: 1 offer (deadline 1)      which: --excluded" in said.out
    value = ouvrage(*words, "--json").json
    assert value["excluded"][0]["offer"] == "standard"
    assert value["excluded"][0]["reason"] == "finished after 10.6 h, wanted within 9.0 h"


def test_a_run_of_ones_own_and_two_currencies(ouvrage: Home, files: Path):
    text = spools.spool(RUN, [2.0] * 12, label="mine", waiting=0.5)
    ouvrage.holds(text, RUN)
    (files / "two.csv").write_text(
        "name,gpus,vcpus,memory_gib,price,currency\nhere,0,1,8,0.10,USD\nthere,0,2,8,0.10,EUR\n"
    )
    words = ["quote", "--run", "mine", "--gpu", "none", "--units", "1000", "--offers", "two.csv"]
    value = ouvrage(*words, "--currency", "USD", "--json").json
    (only,) = value["ranked"]
    # the time is measured, and what no plan says of increments is assumed in the price
    assert (only["offer"], only["time_grade"], only["grade"]) == ("here", "measured", "assumed")
    assert only["bills"] == "as metered, since no plan is known"
    assert value["excluded"][0]["why"] == "currency"
    done = ouvrage("fx", "set", "EUR/USD", "1.50", "--day", "2026-11-27", "--by", "a bank")
    assert done.first == "1 EUR = 1.50 USD on 2026-11-27 ○: accepted"
    value = ouvrage(*words, "--currency", "USD", "--json").json
    assert [r["offer"] for r in value["ranked"]] == ["here", "there"]
    assert value["rates"] == ["1 EUR is taken as 1.50 USD, as a bank says of 2026-11-27"]
    assert ouvrage("fx", "list").out.splitlines()[1] == "2026-11-27  EUR/USD  1.50  a bank"
    assert ouvrage("verify").code == 0


def test_was_the_quote_kept(ouvrage: Home, files: Path):
    ouvrage.holds(spools.spool(RUN, [2.0] * 1800, label="mine", waiting=0.5), RUN)
    (files / "one.csv").write_text(
        "name,provider,gpus,vcpus,memory_gib,price,currency\nbox,Genesis Cloud,0,1,8,0.60,USD\n"
    )
    words = ["quote", "--run", "mine", "--gpu", "none", "--offers", "one.csv", "--json"]
    (files / "quote.json").write_text(ouvrage(*words).out)
    kept = ouvrage("quote", "verify", "mine", "--quote", "quote.json")
    assert kept.code == 0, kept
    assert kept.first.startswith("The quote was kept (Genesis Cloud, box)")
    # 3601.25 s: 61 minutes by the plan, two hours by the bill, and a disk that nobody asked for
    (files / "bill.csv").write_text(
        "description,amount,currency,quantity,unit,from,to\n"
        "instance box,1.20,USD,2,h,2025-11-30T10:53:20Z,2025-11-30T12:53:20Z\n"
        "boot volume,0.05,USD,48,GB-h,2025-11-30T10:53:20Z,2025-12-02T10:53:20Z\n"
    )
    broken = ouvrage("quote", "verify", "mine", "--quote", "quote.json", "--invoice", "bill.csv")
    assert broken.code == 1
    assert "bill: the machine's time, bill: storage" in broken.first
    assert (
        "another increment: per 3600 s, rounded up, the plan says per 60 s, rounded up"
        in broken.out
    )
    assert "a disk that is still billed after the work ended" in broken.out
    (files / "bill.json").write_text(
        json.dumps(
            {
                "charges": [
                    {"type": "gpu", "amount": 0.61, "description": "1.016667 hours at $0.6/hour"}
                ]
            }
        )
    )
    vast = ouvrage("quote", "verify", "mine", "--quote", "quote.json", "--invoice", "bill.json")
    assert vast.code == 0, vast
    (files / "focus.csv").write_text(
        "BilledCost,BillingCurrency,ChargeDescription,ChargePeriodStart,ChargePeriodEnd,"
        "ConsumedQuantity,ConsumedUnit,ServiceCategory\n"
        "3.00,USD,box,2025-11-30T10:53:20Z,2025-11-30T15:53:20Z,5,Hours,Compute\n"
    )
    focus = ouvrage(
        "quote", "verify", "mine", "--quote", "quote.json", "--invoice", "focus.csv", "--json"
    )
    assert focus.code == 1
    why = [f["why"] for f in focus.json["findings"] if f["kept"] is False]
    assert len(why) == 1
    assert "after the work ended" in why[0]


REFUSED = [
    (["quote"], "quote/work"),
    (["quote", "--profile", "work.toml", "--run", "last"], "quote/work"),
    (["quote", "--profile", "none.toml"], "profile/file"),
    (["quote", "--profile", "work.toml", "--offers", "none.csv"], "market/file"),
    (["quote", "--profile", "work.toml", "--offers", "colour=red"], "market/filter"),
    (["quote", "--profile", "work.toml", "--units", "0"], "quote/units"),
    (["quote", "--profile", "work.toml", "--deadline", "soon"], "quote/deadline"),
    (["quote", "--run", "last"], "run/none"),
    (["quote", "verify", "last", "--quote", "none.json"], "quote/file"),
    (["quote", "verify", "last", "--quote", "offers.csv"], "quote/json"),
    (["market", "import", "none.csv"], "market/file"),
    (["market", "import", "work.toml"], "market/form"),
    (["market", "import", "offers.csv", "--read", "2999-01-01"], "market/future"),
    (["market", "show", "nothing"], "market/unknown"),
    (["market", "list", "--price", "cheap"], "market/filter"),
    (["market", "diff"], "market/no-catalogue"),
    (["fx", "set", "EUR", "1", "--day", "2026-11-01", "--by", "me"], "fx/unreadable"),
    (["fx", "set", "EUR/USD", "0", "--day", "2026-11-01", "--by", "me"], "fx/unreadable"),
    (["fx", "set", "EUR/USD", "1", "--day", "2999-11-01", "--by", "me"], "fx/future"),
]


@pytest.mark.parametrize(
    ("words", "code"), REFUSED, ids=lambda v: v if isinstance(v, str) else " ".join(v)
)
def test_what_cannot_be_answered_is_refused_with_a_hint(
    ouvrage: Home, files: Path, words: list[str], code: str
):
    said = ouvrage.inside(*words)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error[{code}]: "), said.err
    assert "hint: " in said.err


def test_names_from_a_catalogue_cannot_steer_a_terminal(ouvrage: Home, files: Path):
    (files / "evil.csv").write_text("name,price,currency\n\x1b[2Jbox,0.30,USD\n")
    for words in (
        ["market", "import", "evil.csv"],
        ["market", "list"],
        ["quote", "--profile", "work.toml", "--offers", "evil.csv", "--excluded"],
    ):
        said = ouvrage.inside(*words)
        assert "\x1b" not in said.out + said.err


def test_what_is_not_known_of_a_provider_stands_beside_its_offers(ouvrage: Home, files: Path):
    asked = ["evidence", "add", "--question", "who takes over its contracts?", "--provider"]
    added = ouvrage(*asked, "Genesis Cloud")
    assert added.code == 0, added
    words = ["quote", "--profile", "work.toml", "--offers", "offers.csv"]
    assert "note: not known of Genesis Cloud: who takes over its contracts?" in ouvrage(*words).out
    value = ouvrage(*words, "--json").json
    assert value["ranked"][0]["questions"] == ["who takes over its contracts?"]


def test_several_gpus_gain_by_evidence_of_their_interconnect(ouvrage: Home, files: Path):
    (files / "gpus.csv").write_text("name,gpu,gpus,vcpus,price,currency\npair,H100,2,4,4,USD\n")
    (files / "nccl.txt").write_text(OUTPUT)
    (files / "big.toml").write_text(
        'units = 100\ngpu = "H100"\nvcpus = 4\nexchange_gb = 10\n[time]\ncompute = 40\n'
    )
    words = ["quote", "--profile", "big.toml", "--offers", "gpus.csv", "--json"]
    alone = ouvrage.inside(*words).json["ranked"][0]
    assert alone["unit_s"]["likely"] == 40
    assert "no gain without evidence" in alone["terms"][0]["because"]
    shown = ouvrage.inside(*words, "--nccl", "nccl.txt").json
    told = shown["ranked"][0]
    # half the computing, and 10 GB x 2 x (2 - 1) / 2 around a ring at 430.17 GB/s
    assert told["unit_s"]["likely"] == pytest.approx(20 + 10 / 430.17, abs=1e-6)
    assert any("via P2P/CUMEM, NET/Socket" in note for note in shown["notes"])
