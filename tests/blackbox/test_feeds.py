"""From an empty home to an owner's facts out of files, read twice, in any order, with bad rows among them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.feeds.test_bank import PAYOUT, POWER, camt
from tests.feeds.vast import DAY, answer, one_machine

START = DAY * 86_400


@pytest.fixture
def files(ouvrage: Home) -> Path:
    place = ouvrage.path.parent
    (place / "earnings.json").write_text(one_machine({DAY: (2.15, 0.09), DAY + 2: (3.0, 0.1)}))
    lists = [
        {
            "at": START + 600 * i,
            "machines": [{"machine_id": 35798, "num_gpus": 2, "gpu_occupancy": o}],
        }
        for i, o in enumerate(["D_x", "D_x", "D_D", "x_x"])
    ]
    (place / "machines.ndjson").write_text("\n".join(map(json.dumps, lists)))
    payout = {"id": 77, "type": "payout", "amount": -61.5, "when": START, "status": "Paid"}
    (place / "invoices.json").write_text(
        json.dumps({"results": [payout, {"type": "credit", "amount": 5}]})
    )
    (place / "plug.csv").write_text(
        "time,kwh\n2025-11-07T00:00:00Z,10.5\n2025-11-07T12:00:00Z,16.5\n"
        "2025-11-07T18:00:00Z,2.0\n2025-11-08T00:00:00Z,5.0\n"
    )
    (place / "bank.xml").write_bytes(camt(PAYOUT, POWER))
    (place / "bills.csv").write_text(
        "number,sort,amount,currency,from,to,kwh\nR1,electricity,215.50,EUR,2025-11-01,2025-11-30,812.4\n"
        "R2,ransom,1.00,EUR,2025-11-01,2025-11-30,\n"
    )
    (place / "clore.csv").write_text("date,server_id,amount,currency\n2025-11-07,s1,24.5,CLORE\n")
    return place


CALLS = (
    ("import", "vast-earnings", "earnings.json", "--machine", "35798=n1"),
    ("import", "vast-machines", "machines.ndjson"),
    ("import", "vast-invoices", "invoices.json"),
    ("import", "plug", "plug.csv", "--meter", "wall", "--about", "node:n1"),
    ("import", "bank", "bank.xml"),
    ("import", "bills", "bills.csv", "--about", "site:garage"),
    ("import", "earnings", "clore.csv", "--mapping", "clore", "--machine", "s1=n1"),
)


@pytest.mark.usefixtures("files")
def test_an_owner_s_files_are_facts_once(ouvrage: Home):
    first = [ouvrage.inside(*call) for call in CALLS]
    assert [said.code for said in first] == [0, 0, 0, 1, 0, 1, 0], first
    assert [said.first for said in first] == [
        "Vast.ai: 5.34 USD ◐ earned by 1 machine, 2025-11-07 to 2025-11-09",
        "Vast.ai: 1 machine seen 4 times, 2025-11-07; 0.7 GPU-hours rented ◐",
        "Vast.ai: 1 payout of 61.5 USD ◐, 2025-11-07",
        "wall: 9.000 kWh ● before node:n1, 2025-11-07; 6.0 h are gaps",
        "2 lines: 61.50 EUR ◐ came, -15.00 EUR left, 2026-11-13",
        "1 bill of 215.50 EUR ◐, 2025-11-01 to 2025-11-30",
        "24.50 CLORE ◐ earned, 2025-11-07",
    ]
    assert "  days missing: node:n1: 1 (2025-11-08)" in first[0].out
    assert (
        "    plug.csv:4   counter: found '2.00000 kWh after 16.50000 kWh', expected a counter that rises "
        "as a plug's can: it fell; this step counts as a gap" in first[3].out
    )
    assert "    bills.csv:3   sort: found 'ransom', expected one of electricity" in first[5].out
    facts = len(ouvrage.facts())
    again = [ouvrage.inside(*call, "--json") for call in reversed(CALLS)]
    assert [(said.json["new"], said.json["corrected"]) for said in again] == [(0, 0)] * 7
    assert len(ouvrage.facts()) == facts
    assert ouvrage.inside("verify").code == 0


@pytest.mark.usefixtures("files")
def test_the_order_of_the_calls_does_not_matter(homes, ouvrage: Home):
    other = homes("other")
    for call in CALLS:
        ouvrage.inside(*call)
    for call in (CALLS[0], *reversed(CALLS[1:])):
        other.inside(*call)

    def said(home: Home) -> set[tuple[object, ...]]:
        return {tuple(f[2:]) for f in map(_without_home, home.facts())}

    assert said(ouvrage) == said(other)


def _without_home(fact: tuple[object, ...]) -> tuple[object, ...]:
    """A fact without its place, source and moment of recording."""
    return tuple(
        "" if isinstance(part, int) and part > 1_790_000_000_000_000 else part for part in fact
    )


def test_a_machine_is_named_once_and_never_guessed(ouvrage: Home, files: Path):
    two = answer(DAY, DAY, {1: (1.0,), 2: (2.0,)}, {DAY: (3.0,)})
    (files / "two.json").write_text(two)
    said = ouvrage.inside("import", "vast-earnings", "two.json")
    assert "  note: machine 1 is recorded as node vast-1; --machine names yours" in said.out
    said = ouvrage.inside("import", "vast-earnings", "two.json", "--machine", "1=n1", "--json").json
    assert said["corrected"] == 4 and said["same"] == 4
    said = ouvrage.inside("import", "vast-earnings", "two.json", "--json").json
    assert said["same"] == 8
    assert said["summary"] == "Vast.ai: 3.00 USD (metered) earned by 2 machines, 2025-11-07"
    (files / "two.json").write_text(two.replace("2.0", "1.5"))
    said = ouvrage.inside("import", "vast-earnings", "two.json", "--plain")
    assert said.first == "Vast.ai: 2.50 USD (metered) earned by 2 machines, 2025-11-07"
    assert (
        "  note: 1 statement now less than before, the first of 2025-11-07: right if it was corrected, "
        "wrong if the export was cut" in said.out
    )
    said = ouvrage.inside("import", "vast-earnings", "two.json", "--machine", "1 = n 1")
    assert said.code == 2 and "error[import/machine]" in said.err


def test_a_day_that_was_not_over_is_completed_and_never_undone(homes, ouvrage: Home, files: Path):
    (files / "noon.json").write_text(one_machine({DAY: (1.0,)}))
    (files / "night.json").write_text(one_machine({DAY: (2.5,)}))
    noon = (
        "import",
        "vast-earnings",
        "noon.json",
        "--machine",
        "35798=n1",
        "--saved",
        "2025-11-07T12:00:00Z",
    )
    night = ("import", "vast-earnings", "night.json", "--machine", "35798=n1")
    said = [ouvrage.inside(*call).out.partition("statements: ")[2] for call in (noon, night, noon)]
    assert [words.splitlines()[0] for words in said] == ["4 new", "4 corrected", "4 there already"]
    other = homes("other")
    assert other.inside(*night).code == 0
    assert "4 say less than is known already and changed nothing" in other.inside(*noon).out
    assert len(other.facts()) == 5


def test_files_that_cannot_be_read_leave_nothing(ouvrage: Home, files: Path):
    for call, code in (
        (("import", "vast-earnings", "nowhere.json"), "import/file"),
        (("import", "vast-earnings", "bank.xml"), "import/json"),
        (("import", "vast-machines", "bank.xml"), "import/json"),
        (("import", "bank", "bills.csv"), "mapping/columns"),
        (("import", "earnings", "clore.csv", "--mapping", "nothing"), "mapping/file"),
        (("import", "plug", "bills.csv", "--meter", "m", "--about", "node:n"), "plug/form"),
        (("import", "vast-earnings"), "import/no-file"),
    ):
        said = ouvrage.inside(*call)
        assert said.code == 2, said
        assert f"error[{code}]" in said.err
    assert not ouvrage.path.exists() or ouvrage.facts() == []


def test_support_is_logged_in_a_line(ouvrage: Home):
    said = ouvrage.inside(
        "log", "support", "20m", "--node", "n1", "--tenant", "acme", "--what", "disk"
    )
    assert said.first.startswith("20 min of support ? for node:n1 and tenant acme, ")
    ouvrage.inside("log", "support", "1h30m", "--node", "n1", "--at", "2025-11-07T10:00:00Z")
    ouvrage.inside("log", "support", "1h30m", "--node", "n1", "--at", "2025-11-07T10:00:00Z")
    assert len(ouvrage.facts()) == 3
    plain = ouvrage.inside("log", "support", "2h", "--node", "n1", "--plain").first
    assert plain.startswith("2 h 00 min of support (assumed) for node:n1, ")
    for words in ("soon", "0m", "30h"):
        assert ouvrage.inside("log", "support", words, "--node", "n1").code == 2


def test_the_ready_mappings_are_shown(ouvrage: Home):
    said = ouvrage.inside("import", "mapping")
    assert "runpod  earnings  nothing" in said.out
    assert 'channel = "akash"' in ouvrage.inside("import", "mapping", "akash").out
    assert ouvrage.inside("import", "mapping", "moon").code == 2


@pytest.mark.usefixtures("files")
def test_an_amount_in_another_currency_is_told_with_the_rate_that_is_missing(ouvrage: Home):
    ouvrage.inside("init", "--site", "garage", "--currency", "EUR", "--node", "n1", "--json")
    said = ouvrage.inside("import", "vast-earnings", "earnings.json")
    assert "  note: machine 35798 is taken for the only node, n1" in said.out
    assert (
        "  note: 2 days with USD without a rate to EUR: ouvrage fx set USD/EUR RATE --day 2025-11-07 "
        "--by WHO (one holds until the next; after 7 days the books say how old it is)" in said.out
    )
    assert (
        ouvrage.inside("fx", "set", "USD/EUR", "0.92", "--day", "2025-11-05", "--by", "bank").code
        == 0
    )
    assert "without a rate" not in ouvrage.inside("import", "vast-earnings", "earnings.json").out
    assert (
        ouvrage.inside("fx", "set", "CLORE/EUR", "0.02", "--day", "2025-11-07", "--by", "me").code
        == 0
    )


@pytest.mark.usefixtures("files")
def test_two_files_with_one_reading_each_are_one_series(ouvrage: Home, files: Path):
    for hour, total in (("1000", 10.0), ("1100", 11.5), ("1030", 10.5)):
        (files / f"plug-20251107T{hour}.json").write_text(
            json.dumps({"apower": 1, "aenergy": {"total": total}})
        )
    words = ("import", "plug", "--meter", "m", "--about", "node:n1")
    one = ouvrage.inside(*words, "plug-20251107T1000.json")
    assert (one.code, one.first) == (0, "m: 0.000 kWh ● before node:n1, no period")
    ouvrage.inside(*words, "plug-20251107T1100.json")
    last = ouvrage.inside(*words, "plug-20251107T1030.json", "--json").json
    assert (last["new"], last["corrected"]) == (2, 1)
    reads = [f for f in ouvrage.facts() if "meter.energy" in f]
    assert len(reads) == 3
