"""From an empty home to what a machine earned with every cost of it, and back down to the facts."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.feeds.vast import one_machine

NOVEMBER = range(20393, 20423)  # 2025-11-01 to 2025-11-30, days since the epoch
SET_UP = (
    "init", "--currency", "USD", "--site", "garage", "--node", "node-3", "--gpus", "2",
    "--model", "RTX 4090", "--price", "3600", "--bought", "2025-10-01", "--life-months", "36",
    "--electricity", "0.16/kWh", "--pue", "1.2", "--rent", "30/month", "--tax", "25%",
    "--channel", "vast", "--fee", "15%",
)  # fmt: skip


@pytest.fixture
def earned(ouvrage: Home, tmp_path: Path) -> Home:
    """A machine that was set up, and a month of what Vast.ai says that it earned."""
    done = ouvrage.inside(*SET_UP)
    assert done.code == 0, done.err
    days = dict.fromkeys(NOVEMBER, (14.4, 0.1, 0.0, 0.05))
    (tmp_path / "november.json").write_text(one_machine(days))
    done = ouvrage.inside("import", "vast-earnings", "november.json", "--machine", "35798=node-3")
    assert done.code == 0, done.out + done.err
    return ouvrage


def test_from_an_earnings_file_a_tariff_and_a_price_to_the_statement(earned: Home):
    done = earned.inside("books", "pnl", "--by", "node", "--month", "2025-11")
    assert done.code == 0, done.err
    assert re.fullmatch(
        r"node-3 (earned|lost) \d+\.\d\d USD \? in November 2025, \d\.\d+ per hour owned; "
        r"it was sold .*|node-3 earned .*; how much of it was sold is not known\.",
        done.first,
    ), done.first
    for line in (
        r"hours +1440\.000 owned = 1440\.0 unknown   \(adds up\)",
        r"revenue +436\.50 ◐; storage 3\.00 ◐, download 1\.50 ◐ of it",
        r"power \d+\.\d\d \? · cooling \d+\.\d\d \? · channel's fee 65\.48 ○",
        r"depreciation 100\.00 ○",
        r"rent 30\.00 ○ · tax \d+\.\d\d",
        r"margin +\d+\.\d\d \?   \d+ % of revenue",
        r"the weakest figure is .*: it could move the margin by \S+ … \S+ USD",
    ):
        assert re.search(line, done.out), (line, done.out)
    plain = earned.inside("books", "pnl", "--month", "2025-11", "--plain")
    assert not set(plain.out) & set("●◐○◌█▓▒")
    assert "nothing broken" in earned.inside("verify").first


def test_hours_rate_and_break_even_appear_when_it_is_said_what_the_gpus_did(earned: Home):
    stated = earned.inside(
        "own", "state", "node:node-3", "working", "--count", "1", "--channel", "vast",
        "--from", "2025-11-01", "--to", "2025-12-01",
    )  # fmt: skip
    assert stated.first == "node:node-3 was working from 2025-11-01 to 2025-12-01: recorded."
    earned.inside("own", "state", "node:node-3", "free", "--from", "2025-11-01", "--to", "2025-12-01", "--cause", "no demand")  # fmt: skip
    done = earned.inside("books", "pnl", "--month", "2025-11")
    assert re.search(r"it breaks even at \d+ % and was sold 50 %\.$", done.first), done.first
    assert "1440.000 owned = 720.0 working + 720.0 free   (adds up)" in done.out
    assert "720.0 h sold at 0.60" in done.out
    by_gpu = earned.inside("books", "pnl", "--month", "2025-11", "--by", "gpu", "--json").json
    rows = {row["name"]: row["figures"] for row in by_gpu["rows"]}
    assert rows["node-3-gpu0"]["hours.working"]["value"] == "720"
    assert rows["node-3-gpu1"]["revenue.total"]["value"] == "0"
    seen = earned.inside("books", "calendar", "--month", "2025-11")
    assert "720.0 h working, 720.0 h free" in seen.first
    assert "free: no demand" in seen.out


def test_every_figure_leads_back_to_its_facts(earned: Home):
    done = earned.inside("books", "pnl", "--month", "2025-11")
    why = re.search(r"ouvrage explain (\S+)", done.out)
    assert why and why[1] == "node-3/2025-11:margin.net"
    told = earned.inside("explain", why[1])
    for part in ("from revenue.gpu", "fact #", "channel.earning", "owner.term", "owner.asset"):
        assert part in told.out, part
    name = told.first
    assert re.fullmatch(r"node-3/2025-11:margin\.net@\S+Z", name)
    again = earned.inside("explain", name)
    assert again.out == told.out
    named = earned.inside("explain", "node-3/2025-11", "--json").json["figures"]
    assert len(named) > 40
    for each in named[::12]:
        assert earned.inside("explain", each["name"]).code == 0, each["name"]
    unknown = earned.inside("explain", "node-9/2025-11:margin.net")
    assert unknown.code == 2
    assert "node-9/2025-11" in unknown.err


def test_gaps_say_what_to_fill_in_first_and_filling_one_closes_it(earned: Home):
    before = earned.inside("books", "gaps", "--month", "2025-11", "--json").json["gaps"]
    moves = [max(abs(float(m)) for m in gap["moves"]) for gap in before]
    assert moves == sorted(moves, reverse=True)
    load = next(gap for gap in before if gap["what"] == "load_power_w")
    assert float(load["low"]) < float(load["assumed"]) < float(load["high"])
    assert load["about"] == ["node:node-3"]
    told = earned.inside("books", "gaps", "--month", "2025-11")
    assert told.first.startswith("Fill in ")
    assert told.out.splitlines()[-1].startswith("Fill it in: ouvrage own ")
    assert earned.inside("own", "term", "node:node-3", "load_power_w", "480").code == 0
    after = earned.inside("books", "gaps", "--month", "2025-11", "--json").json["gaps"]
    assert not [gap for gap in after if gap["what"] == "load_power_w"]


def test_the_same_again_changes_nothing_and_another_word_corrects(earned: Home):
    facts = earned.facts()
    first = earned.inside("books", "pnl", "--month", "2025-11", "--json").out
    assert "nothing was changed" in earned.inside(*SET_UP).first
    earned.inside("import", "vast-earnings", "november.json", "--machine", "35798=node-3")
    assert earned.facts() == facts
    assert earned.inside("books", "pnl", "--month", "2025-11", "--json").out == first
    for value, result in (("1.3", "corrected"), ("1.2", "corrected"), ("1.2", "said before")):
        assert earned.inside("own", "term", "site:garage", "pue", value).first.endswith(
            f"{result}."
        )
    assert (
        json.loads(first)["total"]["figures"]
        == (earned.inside("books", "pnl", "--month", "2025-11", "--json").json["total"]["figures"])
    )


def test_parts_loans_leases_and_states_are_stated_shown_and_taken_back(ouvrage: Home):
    ouvrage.inside(*SET_UP)
    said = [
        ("own", "node", "node-4", "--since", "2025-10-15"),
        ("own", "gpu", "GPU-1", "--node", "node-4", "--model", "H100", "--slot", "0", "--since", "2025-10-15"),
        ("own", "asset", "card", "--of", "device:GPU-1", "--price", "24000", "--bought", "2025-11-01", "--life-months", "48"),
        ("own", "loan", "bank", "--of", "node:node-4", "--amount", "12000", "--rate", "6 %", "--months", "24", "--from", "2025-11-01"),
        ("own", "lease", "long", "--of", "device:GPU-1", "--tenant", "ann", "--price", "2/h", "--from", "2025-11-01", "--to", "2025-12-01"),
    ]  # fmt: skip
    for words in said:
        done = ouvrage.inside(*words)
        assert done.first.endswith(": recorded."), done.out + done.err
        assert ouvrage.inside(*words).first.endswith(": said before.")
    refused = ouvrage.inside("own", "lease", "other", "--of", "node:node-4", "--tenant", "ben", "--price", "1", "--from", "2025-11-30", "--to", "2025-12-02")  # fmt: skip
    assert refused.code == 2
    assert "error[lease/overlap]" in refused.err
    assert "long: 1 of device:GPU-1 for ann from 2025-11-01" in refused.err
    sheet = ouvrage.inside("explain", "node-4/2025-11", "--json").json
    values = {
        each["name"].partition(":")[2].partition("@")[0]: each["value"] for each in sheet["figures"]
    }
    assert values["revenue.gpu"] == "1440"
    assert values["cost.depreciation"] == "500"
    assert float(values["cost.interest"]) == pytest.approx(12000 * 0.06 / 12, rel=0.06)
    shown = ouvrage.inside("own", "show")
    assert re.search(
        r"lease/long +1 of device:GPU-1 to ann at 2 USD/h until 2025-12-01 ○", shown.out
    )
    assert ouvrage.inside("own", "withdraw", "lease/long", "--why", "never signed").code == 0
    assert "lease/long" not in ouvrage.inside("own", "show").out
    assert ouvrage.inside(*said[-1]).first.endswith(": recorded.")
    gone = ouvrage.inside(
        "own", "retire", "card", "--on", "2025-11-16", "--proceeds", "20000", "--why", "sold"
    )
    assert gone.first == "card left use on 2025-11-16, sold: recorded."
    assert "nothing broken" in ouvrage.inside("verify").first


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("init", "--electricity", "0.28/h"), "own/amount"),
        (("init", "--zone", "Mars/Olympus"), "site/zone"),
        (("init", "--currency", "euro"), "site/currency"),
        (("init", "--fee", "15"), "own/amount"),
        (("init", "--gpus", "none"), "init/number"),
        (("init", "--bought", "yesterday"), "own/day"),
        (("init", "--loan", "100"), "init/loan"),
        (("books", "pnl"), "books/none"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_written(
    ouvrage: Home, words: tuple[str, ...], code: str
):
    done = ouvrage.inside(*words)
    assert done.code == 2
    assert f"error[{code}]" in done.err, done.err
    assert "hint:" in done.err
    assert ouvrage.facts() == []


def test_a_file_sets_up_several_machines_and_refuses_a_word_it_does_not_know(
    ouvrage: Home, tmp_path: Path
):
    (tmp_path / "site.toml").write_text(FILE)
    done = ouvrage.inside("init", "--file", "site.toml")
    assert done.first.startswith(
        "barn is set up: node-1, node-2, books in EUR by the clock of Europe/Paris"
    )
    again = ouvrage.inside("init", "--file", "site.toml")
    assert "nothing was changed" in again.first
    shown = ouvrage.inside("own", "show")
    assert "1500 EUR for device:node-2-gpu1, 36 months" in shown.out
    (tmp_path / "site.toml").write_text(FILE.replace("rent =", "rnet ="))
    refused = ouvrage.inside("init", "--file", "site.toml")
    assert "error[init/unknown]: 'rnet'" in refused.err
    other = ouvrage.inside("init", "--site", "attic", "--node", "node-9", "--currency", "USD")
    assert other.first.startswith("attic is set up: node-9, books in USD")
    which = ouvrage.inside("books", "pnl")
    assert "error[books/which-site]" in which.err
    assert ouvrage.inside("init", "--currency", "USD", "--site", "barn").code == 2


def test_on_a_terminal_it_asks_and_an_empty_answer_is_assumed(ouvrage: Home):
    ours, theirs = pty.openpty()
    started = ouvrage.start("init", stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(theirs)
    os.write(ours, b"USD\n\n0.15\n2\nRTX 3090\n2400\n2026-01-05\nvast\n\n")
    out, err = started.communicate(timeout=50)
    os.close(ours)
    assert started.returncode == 0, err
    assert "Electricity, per kWh" in err
    assert out.splitlines()[0].startswith(
        "home is set up: node-1, books in USD by the clock of UTC"
    )
    assert re.search(r"the channel.s fee of vast +0\.24 \?", out)
    assert "2400 USD for node:node-1, 60 months" in ouvrage.inside("own", "show").out


FILE = """
[site]
name = "barn"
currency = "EUR"
zone = "Europe/Paris"
electricity = "0.2516 EUR/kWh"
rent = 40

[[node]]
name = "node-1"
gpus = 4
model = "RTX 3090"
bought = 2026-01-10
price = 4200
life_months = 48

[[node]]
name = "node-2"
gpus = 2
model = "RTX 4090"
since = 2026-02-01
loan = 3000
loan_rate = "5.5 %"
loan_months = 24

  [[node.part]]
  name = "chassis"
  price = 1100
  bought = 2026-02-01
  life_months = 60

  [[node.part]]
  name = "second-card"
  gpu = "node-2-gpu1"
  price = 1500
  bought = 2026-02-01
  life_months = 36
  warranty_until = 2029-02-01

[channel.vast]
fee = 0.15
"""
