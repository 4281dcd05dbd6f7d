"""Books as an unlucky owner has them: wrong mappings, machines that come back, slips of dates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.feeds.vast import one_machine

OCTOBER = range(20727, 20758)  # 2026-10-01 to 2026-10-31


@pytest.fixture
def owner(ouvrage: Home, tmp_path: Path) -> Home:
    """Two machines in Paris, books in USD, and a month of what one of them earned."""
    done = ouvrage.inside(
        "init", "--site", "shed", "--currency", "USD", "--zone", "Europe/Paris", "--node", "n1",
        "--gpus", "2", "--model", "RTX 4090", "--price", "3600", "--bought", "2026-01-01",
        "--electricity", "0.2", "--channel", "vast", "--fee", "15%",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert ouvrage.inside("own", "node", "n2", "--since", "2026-01-01").code == 0
    (tmp_path / "october.json").write_text(
        one_machine(dict.fromkeys(OCTOBER, (14.4, 0.1, 0.0, 0.05)))
    )
    return ouvrage


def test_a_machine_mapped_to_the_wrong_node_is_mapped_anew_and_back_and_the_books_hold(owner: Home):
    for node, words in (("n2", "124 new"), ("n1", "124 corrected"), ("n2", "124 corrected"), ("n1", "124 corrected")):  # fmt: skip
        done = owner.inside("import", "vast-earnings", "october.json", "--machine", f"35798={node}")
        assert words in done.out, (node, done.out)
    again = owner.inside("import", "vast-earnings", "october.json")
    assert "124 there already" in again.out
    rows = owner.inside("books", "pnl", "--month", "2026-10", "--json").json["rows"]
    earned = {row["name"]: row["figures"]["revenue.recorded"]["value"] for row in rows}
    assert list(earned) == ["n1"]
    assert owner.inside("own", "asset", "box", "--of", "node:n1", "--price", "9", "--bought", "2026-01-01").code == 0  # fmt: skip
    moved = owner.inside("own", "asset", "box", "--of", "node:n2", "--price", "9", "--bought", "2026-01-01")  # fmt: skip
    assert "corrected" in moved.first
    checked = owner.inside("verify")
    assert (checked.code, "nothing broken" in checked.first) == (0, True), checked.out


def test_a_node_that_is_not_there_is_refused_and_another_machine_is_told(owner: Home):
    done = owner.inside("import", "vast-earnings", "october.json", "--machine", "35798=nodeX")
    assert (done.code, "there is no node nodeX" in done.err) == (2, True), done.err
    assert (
        owner.inside("import", "vast-earnings", "october.json", "--machine", "35798=n1").code == 0
    )
    told = owner.inside("import", "vast-earnings", "october.json", "--machine", "1=n1")
    assert "machine 1 of --machine is not in this; it names 35798" in told.out


def test_what_came_back_does_not_rewrite_where_it_was(owner: Home):
    owner.inside("own", "node", "n2", "--since", "2026-01-01", "--until", "2026-03-01")
    assert "recorded" in owner.inside("own", "node", "n2", "--since", "2026-05-01").first
    for node, since in (("n2", "2026-06-01"), ("n1", "2026-08-01")):
        said = owner.inside("own", "gpu", "n1-gpu0", "--node", node, "--since", since)
        assert "; it leaves" in said.first, said.out
        assert "recorded" in said.first
    displaced = owner.inside("own", "gpu", "new", "--node", "n1", "--slot", "1", "--since", "2026-09-01")  # fmt: skip
    assert "; n1-gpu1 leaves slot 1: recorded." in displaced.first
    stated = {
        row["what"]: row["says"] for row in owner.inside("own", "show", "--json").json["stated"]
    }
    assert stated["node/n2"] == "in service until 2026-03-01"
    assert stated["node/n2/2026-05-01"] == "in service"
    assert stated["device/n1-gpu0/n1/2026-08-01"] == "RTX 4090 in n1"
    assert owner.inside("own", "withdraw", "node/n2/2026-05-01", "--why", "slip").code == 0
    was = owner.inside("books", "pnl", "--month", "2026-02", "--by", "gpu", "--json").json
    assert was["total"]["figures"]["hours.owned"]["value"] == str(2 * 672)


def test_days_that_no_books_have_and_periods_to_come_are_refused_and_nothing_is_written(
    owner: Home,
):
    facts = owner.facts()
    for words in (
        ("own", "node", "n9", "--since", "0001-01-01"),
        ("own", "term", "site:shed", "rent", "3", "--from", "20260101"),
        ("own", "term", "site:shed", "rent", "3", "--from", "9999-12-31T00:00:00Z"),
        ("own", "asset", "q", "--of", "node:n1", "--price", "3", "--bought", "2026-01-01", "--life-months", "99999"),
        ("own", "lease", "z", "--of", "device:n1-gpu0", "--tenant", "b", "--price", "1/h", "--from", "2026-11-07", "--to", "2026-11-07"),
        ("own", "lease", "z", "--of", "device:n1-gpu0", "--tenant", "b", "--price", "1/h", "--from", "2025-11-07", "--to", "2025-11-08"),
        ("books", "pnl", "--month", "0001-01"),
        ("books", "gaps", "--year", "0001"),
        ("books", "pnl", "--month", "2199-05"),
        ("books", "calendar", "--month", "2199-05"),
    ):  # fmt: skip
        done = owner.inside(*words)
        assert (done.code, done.err.startswith("error[")) == (2, True), (words, done.out, done.err)
    assert owner.facts() == facts
    before = owner.inside("books", "pnl", "--month", "2020-01")
    assert before.first.endswith(
        "no GPU stood there in January 2020, and nothing was earned or spent."
    )


def test_days_of_bills_are_of_the_site_and_an_answer_cut_off_is_named_so(
    owner: Home, tmp_path: Path
):
    (tmp_path / "bills.csv").write_text(
        "number,sort,about,what,amount,tax,currency,from,to,kwh,due\n"
        "B1,insurance,node:n1,policy,365,,USD,2026-01-01,2026-12-31,,\n"
        "B2,rent,site:shed,never,20,,USD,2026-01-01,9999-12-31,,\n"
        "B3,rent,site:shed,back,20,,USD,2026-10-31,2026-10-01,,\n"
    )
    came = owner.inside("import", "bills", "bills.csv")
    assert (came.code, came.err) == (1, "")
    assert "1 bill of 365.00 USD ◐, 2026-01-01 to 2026-12-31" in came.first
    assert "bills.csv:3   to: found '9999-12-31', expected a day such as" in came.out
    assert "bills.csv:4   to: found '2026-10-01', expected a day after 2026-10-31" in came.out
    (tmp_path / "cut.json").write_text((tmp_path / "october.json").read_text()[:900])
    cut = owner.inside("import", "vast-earnings", "cut.json")
    assert cut.code == 2
    assert "offers" not in cut.err


def test_nothing_that_was_not_said_is_hidden(ouvrage: Home):
    told = ouvrage.inside("init", "--node", "n1").out
    for words in ("currency of home", "zone of home", "power while idle of n1, each GPU"):
        assert words in told, told
    assert "ouvrage import vast-earnings FILE" in told
