"""From an empty home to a machine that is off, on, cycled and judged, through sushy's BMC over TLS and OpenIPMI's BMC."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.remote import outside
from tests.support.nvml import Cards, build, compiler

WORDS = outside.PASSWORD


@pytest.fixture(scope="module")
def bmc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """An emulated BMC behind a certificate that nobody signed, and that certificate's SHA-256."""
    if not outside.HAS_EMULATOR:
        pytest.skip("sushy-emulator is not installed")
    where = tmp_path_factory.mktemp("bmc")
    certificate, key, sha256 = outside.certificate(where)
    with outside.emulator(where, ["gpu1"], (certificate, key), 0) as address:
        yield address, sha256


@pytest.fixture(scope="module")
def sim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not outside.HAS_SIM:
        pytest.skip("ipmi_sim or ipmitool is not installed")
    with outside.ipmi_sim(tmp_path_factory.mktemp("sim")) as address:
        yield address


def write(home: Home, text: str) -> None:
    home.path.mkdir(mode=0o700, exist_ok=True)
    secret = home.path / "secret"
    secret.write_text(WORDS + "\n")
    secret.chmod(0o600)
    (home.path / "remote.toml").write_text(text.replace("SECRET", f"file:{secret}"))


def test_a_machine_behind_redfish(ouvrage: Home, bmc: tuple[str, str]) -> None:
    address, sha256 = bmc
    said = ouvrage("node", "power", "gpu1", "show")
    assert (said.code, '\n    kind = "redfish"' in said.err) == (2, True), said.err
    table = f'[node.gpu1]\nkind = "redfish"\naddress = "{address}"\nuser = "{outside.USER}"\npassword = "SECRET"\n'
    write(ouvrage, table)
    said = ouvrage.inside("node", "power", "gpu1", "show")
    assert said.code == 1
    assert "error[power/untrusted]" in said.err
    assert f"sha256:{sha256}" in said.err

    write(ouvrage, f'{table}pin = "sha256:{sha256}"\noff_s = 0\nlook_s = 1\n')
    said = ouvrage("node", "power", "gpu1", "show")
    assert said.first == "gpu1 is on (redfish)", said.err
    said = ouvrage.inside("node", "power", "gpu1", "off", "--hard", "--dry-run")
    assert (said.code, said.first) == (
        0,
        "gpu1 is on. Would cut its power. Nothing was done or recorded.",
    )
    said = ouvrage.inside("node", "power", "gpu1", "off", "--hard", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "power/not-confirmed")
    assert not (ouvrage.path / "ouvrage.db").exists()

    said = ouvrage.inside("node", "power", "gpu1", "cycle", "--hard", "--yes", "--json")
    assert (said.json["outcome"], said.json["seen"]) == ("done", ["on", "off", "on"]), said.out
    said = ouvrage.inside(
        "node", "power", "gpu1", "off", "--hard", "--yes", "--why", "a smoke test"
    )
    assert (said.code, said.first.startswith("gpu1 is off: seen on, then off within ")) == (
        0,
        True,
    ), said.err
    said = ouvrage.inside("node", "power", "gpu1", "off", "--yes", "--json")
    assert (said.code, said.json["outcome"]) == (0, "nothing to do")
    orders = [json.loads(payload) for payload in _payloads(ouvrage, "node.power")]
    ended = [(each["order"], each["outcome"]) for each in orders if each["outcome"] != "ordered"]
    assert ended == [("cycle", "done"), ("off", "done"), ("off", "nothing to do")]
    assert sum(1 for each in orders if each["outcome"] == "ordered") == 3
    (remedy,) = [json.loads(payload) for payload in _payloads(ouvrage, "health.remedy")]
    assert (remedy["rung"], remedy["outcome"], remedy["by"]) == ("power_cycle", "done", "operator")
    assert ouvrage.inside("verify").code == 0
    _password_nowhere(ouvrage)


def _payloads(home: Home, kind: str) -> list[str]:
    return [
        str(cell)
        for row in home.facts()
        if kind in row
        for cell in row
        if str(cell).startswith("{")
    ]


def _password_nowhere(home: Home) -> None:
    for name in home.files():
        if name != "secret":
            assert WORDS.encode() not in (home.path / name).read_bytes(), name


def test_what_a_bmc_without_a_limit_or_a_log_says(ouvrage: Home, bmc: tuple[str, str]) -> None:
    address, sha256 = bmc
    write(
        ouvrage,
        f'[node.gpu1]\nkind = "redfish"\naddress = "{address}"\nuser = "{outside.USER}"\npassword = "SECRET"\n'
        f'pin = "sha256:{sha256}"\n',
    )
    said = ouvrage.inside("node", "power", "gpu1", "limit", "800", "--yes")
    assert (said.code, "error[power/unsupported]" in said.err) == (1, True)
    said = ouvrage.inside("node", "power", "gpu1", "events")
    assert (said.code, "keeps no event log" in said.err) == (1, True)
    said = ouvrage.inside("check", "bmc", "--json")
    assert (said.code, said.json["verdict"]) == (0, "OK"), said.out
    wrong = ouvrage.path / "secret"
    wrong.write_text("wrong\n")
    said = ouvrage.inside("node", "power", "gpu1", "show")
    assert "error[power/refused]" in said.err
    said = ouvrage.inside("check", "bmc")
    assert (said.code, said.first.startswith("UNKNOWN")) == (3, True)


def test_a_machine_behind_ipmi(ouvrage: Home, sim: str, tmp_path: Path) -> None:
    names = tmp_path / "bin"
    names.mkdir()
    seen = names / "seen"
    spy = names / "ipmitool"
    spy.write_text(
        f'#!/bin/sh\ntr "\\0" " " < /proc/$$/cmdline >> {seen}; echo >> {seen}\nexec {_real("ipmitool")} "$@"\n'
    )
    spy.chmod(stat.S_IRWXU)
    path = f"{names}{os.pathsep}{os.environ['PATH']}"
    watched = replace(ouvrage, environment={**ouvrage.environment, "PATH": path})
    write(
        ouvrage,
        f'[node.gpu2]\nkind = "ipmi"\naddress = "{sim}"\nuser = "{outside.USER}"\npassword = "SECRET"\ncipher = 3\n'
        "off_s = 0\n",
    )
    said = watched("node", "power", "gpu2", "show")
    assert said.first == "gpu2 is on (ipmi)", said.err
    assert "CPU Temp" in said.out
    assert "42 degC" in said.out
    said = watched("node", "power", "gpu2", "cycle", "--hard", "--yes", "--json")
    assert (said.code, said.json["seen"]) == (0, ["on", "off", "on"]), said.out
    lines = seen.read_text()
    assert "chassis power off" in lines
    assert WORDS not in lines

    page = ouvrage.inside("node", "power", "gpu2", "events", "--json").json
    assert [each["verdict"] for each in page["entries"]] == ["CRITICAL", "CRITICAL"]
    assert page["entries"][0]["at"] is None  # written before its clock was set
    _happens(sim)
    page = ouvrage.inside(
        "node", "power", "gpu2", "events", "--after", page["cursor"], "--json"
    ).json
    (entry,) = page["entries"]
    assert (entry["verdict"], page["gap"]) == ("CRITICAL", False)
    assert entry["at"] is not None
    said = ouvrage.inside("check", "bmc", "--json")
    assert (said.code, said.json["verdict"], said.json["action"]) == (1, "WARN", "look")
    assert {"bmc-restore", "bmc-event"} >= {said.json["rule"]}
    assert any("stays off" in reason for reason in said.json["reasons"])
    assert any("Uncorrectable ECC" in reason for reason in said.json["reasons"])


def _real(name: str) -> str:
    import shutil

    return shutil.which(name) or name


def _happens(sim: str) -> None:
    """Set the BMC's clock to now, as a machine does when it starts, and write an entry."""
    host, _, port = sim.partition(":")
    command = [
        "ipmitool",
        "-I",
        "lanplus",
        "-H",
        host,
        "-p",
        port,
        "-U",
        outside.USER,
        "-E",
        "-C",
        "3",
    ]
    env = {**os.environ, "IPMI_PASSWORD": WORDS, "TZ": "UTC"}
    entry = "0x0a 0x44 0 0 2 0 0 0 0 0x20 0 4 0x0c 2 0x6f 1 0xff 0xff"
    for words in (["sel", "time", "set", "now"], ["raw", *entry.split()]):
        subprocess.run([*command, *words], env=env, check=True, capture_output=True)


_LOAD = """
import os, sys, time
from pathlib import Path
held = Path(os.environ["OUVRAGE_NVML_STATE"] + ".limit.0")
watts = int(held.read_text()) / 1000 if held.exists() else 700
for epoch in range(1, 9):
    time.sleep(0.1 * (600 / watts) ** 0.5)
    print(f"Epoch {epoch}/8 loss 0.1", flush=True)
"""


@pytest.fixture
def cards(tmp_path: Path) -> Cards:
    if compiler() is None:
        pytest.skip("no C compiler here to build the stand-in for libnvidia-ml.so.1")
    made = Cards(build(tmp_path), tmp_path / "state")
    for gpu in (0, 1):
        given = {
            "uuid": f"GPU-{uuid.uuid4()}",
            "name": "NVIDIA A40",
            "power_mw": 650_000,
            "power_limit_mw": 650_000,
        }
        made.set(**{f"gpu{gpu}__{name}": value for name, value in given.items()}, count=2)
    return made


@pytest.mark.slow
def test_gpus_are_capped_here_read_back_and_what_it_saves_is_what_a_tuning_measured(
    ouvrage: Home, cards: Cards, tmp_path: Path
) -> None:
    home = Home(ouvrage.path, {**ouvrage.environment, **cards.environment})
    said = home("node", "power", "gpu1", "limit", "--gpus", "300", "--dry-run")
    assert said.first == "Would limit 2 GPUs of gpu1 to 300 W (now 650 W).", said.err
    assert "not known: ouvrage tune tries it out" in said.out
    load = tmp_path / "load.py"
    load.write_text(_LOAD)
    tuned = home(
        "tune", "--limits", "300,600", "--repeat", "1", "--", sys.executable, "-u", str(load)
    )
    assert tuned.code == 0, tuned.err

    said = home("node", "power", "gpu1", "limit", "--gpus", "300", "--yes", "--why", "summer")
    assert (said.code, said.first) == (
        0, "2 GPUs of gpu1 stand at 300 W, read back. A restart of the machine forgets it.",
    ), said.err  # fmt: skip
    assert [cards.limit_w(gpu) for gpu in (0, 1)] == [300, 300]
    (line,) = [line for line in said.out.splitlines() if line.startswith("tune-")]
    assert "more time" in line
    assert "energy" in line  # known only where a block lasts some seconds: see tests/pricing
    assert "under 300 W than under 600 W" in line
    orders = [json.loads(payload) for payload in _payloads(home, "node.power")]
    done = [
        (each["before"], each["after"], each["via"]) for each in orders if each["outcome"] == "done"
    ]
    assert done == [("650 W", "300 W", "nvml")] * 2

    said = home("node", "power", "gpu1", "limit", "--gpus", "9000", "--yes")
    assert (said.code, "error[power/limit]" in said.err) == (2, True)
    cards.set(**{"gpu1.rc.power_limit_set": 4})
    said = home("node", "power", "gpu1", "limit", "--gpus", "400", "--yes", "--json")
    assert (said.code, said.json["outcome"]) == (1, "failed")
    assert cards.limit_w(0) == 300  # all or none
    assert home("verify").code == 0


def test_gpus_that_stand_elsewhere_are_not_capped_here(ouvrage: Home, cards: Cards) -> None:
    home = Home(ouvrage.path, {**ouvrage.environment, **cards.environment})
    gpu = cards.held("gpu0.uuid")
    for words in (
        ["init", "--site", "garage", "--node", "other", "--since", "2026-01-01"],
        ["own", "gpu", str(gpu), "--node", "other", "--since", "2026-01-02"],
    ):
        said = home.inside(*words)
        assert said.code == 0, said.err
    said = home("node", "power", "gpu1", "limit", "--gpus", "300", "--yes")
    assert (said.code, "error[power/elsewhere]" in said.err) == (2, True), said.err
