"""``ouvrage node power`` on a service of our own: limits, logs, words that are no words, orders that fail or are cut off."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters.power_order import Pace
from ouvrage.base.errors import OuvrageError
from tests.blackbox.home import Home, home_in
from tests.remote import outside
from tests.remote.fake_bmc import CHASSIS, SYSTEM, Bmc
from tests.support.meter import until


@pytest.fixture
def bmc() -> Bmc:
    return Bmc()


@pytest.fixture
def ouvrage(bmc: Bmc, tmp_path: Path) -> Iterator[Home]:
    home = home_in(tmp_path, "home")
    home.path.mkdir()
    with outside.serving(bmc) as address:
        (home.path / "remote.toml").write_text(
            f'[node.gpu1]\nkind = "redfish"\naddress = "{address}"\noff_s = 0\n'
        )
        yield home


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ouvrage.cli.node_power.pace_of",
        lambda _: Pace(change_s=0.1, look_s=0.02, off_s=0, soft_s=0.1),
    )


def orders(home: Home) -> list[dict[str, object]]:
    cells = (str(cell) for row in home.facts() if "node.power" in row for cell in row)
    return [json.loads(cell) for cell in cells if cell.startswith("{")]


def test_show_says_all_of_it(ouvrage: Home, bmc: Bmc) -> None:
    said = ouvrage.inside("node", "power", "gpu1", "show")
    assert said.code == 0, said.err
    assert said.first == "gpu1 is on (redfish), draws 812 W ●"
    assert "after a power cut  it stays off" in said.out
    assert "power limit        none (it may be 1 to 2000 W)" in said.out
    assert "event log          2 entries, 50 % full" in said.out
    assert len(bmc.asked) <= 16  # BMCs bear few questions
    assert not (ouvrage.path / "ouvrage.db").exists()
    assert ouvrage.inside("node", "power", "gpu1", "show", "--plain").first.endswith(
        "812 W (measured)"
    )
    told = ouvrage.inside("node", "power", "gpu1", "show", "--json").json
    assert (told["state"], told["power_w"], told["restore_policy"]) == ("on", "812", "off")
    assert {"name": "PSU 2", "value": "0", "unit": "W", "verdict": "CRITICAL"} in told["sensors"]


def test_a_bmc_s_words_send_nothing_to_the_terminal(ouvrage: Home, bmc: Bmc) -> None:
    bmc.tree[f"{CHASSIS}/Thermal"]["Temperatures"][0]["Name"] = "In\x1b[2Jlet\nOK"
    bmc.tree[f"{SYSTEM}/LogServices/SEL/Entries"]["Members"][0]["Message"] = "\x1b]0;x\x07"
    for words in (
        ("node", "power", "gpu1", "show"),
        ("node", "power", "gpu1", "events"),
        ("check", "bmc"),
    ):
        said = ouvrage.inside(*words)
        assert "\x1b" not in said.out
        assert "\x07" not in said.out
    assert "In\\x1b[2Jlet\\nOK" in ouvrage.inside("node", "power", "gpu1", "show").out


def test_a_limit_is_set_read_back_and_on_record(ouvrage: Home, bmc: Bmc) -> None:
    said = ouvrage.inside("node", "power", "gpu1", "limit", "1500", "--dry-run")
    assert said.first == "Would limit gpu1 to 1500 W (now none). Nothing was done or recorded."
    said = ouvrage.inside("node", "power", "gpu1", "limit", "1500", "--yes")
    assert said.first == "gpu1: power limit 1500 W, read back.", said.err
    assert "not known" in said.out
    assert (
        ouvrage.inside("node", "power", "gpu1", "limit").first
        == "gpu1: power limit 1500 W (it may be 1 to 2000 W)"
    )
    bmc.deaf = True
    said = ouvrage.inside("node", "power", "gpu1", "limit", "none", "--yes", "--json")
    assert (said.code, said.json["outcome"]) == (1, "failed")
    assert said.json["trouble"] == "it reads 1500 W after it was told none"
    ended = [(each["before"], each["after"], each["outcome"]) for each in orders(ouvrage)]
    unread = ("unknown", "unknown", "ordered")
    assert ended == [unread, ("none", "1500 W", "done"), unread, ("1500 W", "unknown", "failed")]
    for wrong in ("0", "-5", "many", "9999999", "١٢"):
        said = ouvrage.inside("node", "power", "gpu1", "limit", "--yes", "--", wrong)
        assert (said.code, "power/limit" in said.err) == (2, True), wrong


@pytest.mark.usefixtures("quick")
def test_an_order_that_does_nothing_fails_and_says_so(ouvrage: Home, bmc: Bmc) -> None:
    bmc.deaf = True
    said = ouvrage.inside("node", "power", "gpu1", "cycle", "--yes", "--why", "it hangs")
    assert said.code == 1
    assert said.first.startswith(
        "gpu1 is on, NOT what was ordered (cycle): it is on 0.1 s after it was told to be off"
    )
    assert "--hard cuts the power" in said.out
    (first, last) = orders(ouvrage)
    assert (first["outcome"], last["outcome"], last["why"]) == ("ordered", "failed", "it hangs")
    (remedy,) = [row for row in ouvrage.facts() if "health.remedy" in row]
    assert '"outcome":"failed"' in str(remedy)
    assert bmc.bodies == [{"ResetType": "GracefulShutdown"}]


def test_a_program_that_is_killed_leaves_behind_that_it_had_ordered(
    ouvrage: Home, bmc: Bmc
) -> None:
    bmc.deaf = True
    process = ouvrage.start("node", "power", "gpu1", "off", "--hard", "--yes")
    until(lambda: bool(bmc.bodies), "the order was given")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    (only,) = orders(ouvrage)
    assert (only["outcome"], only["order"], only["hard"]) == ("ordered", "off", True)
    assert "last order         off at " in ouvrage.inside("node", "power", "gpu1", "show").out
    bmc.deaf = False  # and the next order is not held up by the dead one
    assert ouvrage.inside("node", "power", "gpu1", "off", "--hard", "--yes").code == 0
    assert "last order" not in ouvrage.inside("node", "power", "gpu1", "show").out


def test_one_that_is_broken_off_by_hand_says_so_and_is_on_record(ouvrage: Home, bmc: Bmc) -> None:
    bmc.deaf = True
    process = ouvrage.start("node", "power", "gpu1", "cycle", "--hard", "--yes")
    until(lambda: bool(bmc.bodies), "the order was given")
    os.kill(process.pid, signal.SIGINT)
    process.wait()
    last = orders(ouvrage)[-1]
    told = (last["outcome"], last["before"], last["after"], last["trouble"])
    assert told == ("failed", "on", "unknown", "it was broken off by hand")


def test_what_became_of_a_machine_is_told_though_it_could_not_be_recorded(
    ouvrage: Home, bmc: Bmc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OuvrageError("store/full", "the disk is full")

    monkeypatch.setattr("ouvrage.cli.node_power.Record.ended", full)
    said = ouvrage.inside("node", "power", "gpu1", "off", "--hard", "--yes")
    assert said.code == 1
    assert "gpu1 is off (off: done), but not on record: the disk is full" in said.err
    assert bmc.tree[SYSTEM]["PowerState"] == "Off"


def test_a_machine_on_which_work_runs_is_not_switched_off(ouvrage: Home, bmc: Bmc) -> None:
    runs = {"attempts": 2, "leases": 1}
    asked: list[str] = []

    def platform(_: str, path: str, *__: object) -> tuple[int, dict[str, str], object]:
        asked.append(path)
        return 200, {"Content-Type": "application/json"}, runs

    token = ouvrage.path / "token"
    token.write_text("t0ken\n")
    token.chmod(0o600)
    with outside.serving(platform) as url:
        named = {"OUVRAGE_URL": url, "OUVRAGE_TOKEN_FILE": str(token)}
        home = Home(ouvrage.path, {**ouvrage.environment, **named})
        for order in ("off", "cycle"):
            for more in ((), ("--dry-run",)):
                said = home.inside("node", "power", "gpu1", order, "--hard", "--yes", *more)
                assert (said.code, "error[power/work]: 2 jobs and 1 lease stand" in said.err) == (
                    2,
                    True,
                ), said.err
        assert bmc.bodies == []
        assert not (ouvrage.path / "ouvrage.db").exists()
        assert home.inside("node", "power", "gpu1", "on").code == 0
        assert home.inside("node", "power", "gpu1", "off", "--hard", "--yes", "--anyway").code == 0
        assert home.inside("node", "power", "gpu1", "on").code == 0
        runs |= {"attempts": 0, "leases": 0}
        assert home.inside("node", "power", "gpu1", "off", "--hard", "--yes").code == 0
    assert set(asked) == {"/v1/nodes/gpu1"}
    assert ouvrage.inside("node", "power", "gpu1", "on").code == 0
    said = home.inside(
        "node", "power", "gpu1", "off", "--hard", "--yes"
    )  # the platform is away: it may be what hangs
    assert (said.code, "warning: whether work runs on gpu1 is not known" in said.err) == (0, True)


def test_a_check_is_worst_first_and_one_of_several_nodes_must_be_named(ouvrage: Home) -> None:
    said = ouvrage.inside("check", "bmc", "--json")
    assert (said.code, said.json["verdict"], said.json["rule"]) == (2, "CRITICAL", "bmc-sensor")
    assert said.json["reasons"][0].startswith("PSU 2: 0 W, which its BMC calls critical")
    file = ouvrage.path / "remote.toml"
    file.write_text(file.read_text() + file.read_text().replace("gpu1", "gpu2"))
    said = ouvrage.inside("check", "bmc")
    assert (said.code, "--node says which" in said.out) == (3, True)
    assert ouvrage.inside("check", "bmc", "--node", "gpu2").code == 2
    said = ouvrage.inside("check", "bmc", "--node", "gpu3")
    assert (said.code, "remote/none" in said.err) == (3, True)
    assert "bmc" not in ouvrage.inside("check", "all").out


def test_a_bmc_that_is_away_is_unknown(ouvrage: Home, bmc: Bmc) -> None:
    bmc.broken["GET", "/redfish/v1/"] = [(401, {}, {"error": {"message": "who?"}})]
    said = ouvrage.inside("check", "bmc", "--json")
    assert (said.code, said.json["verdict"], said.json["rule"]) == (3, "UNKNOWN", "bmc-refused")
