"""From an empty home to the figure, as a newcomer types it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ouvrage.cli.main import main
from tests.blackbox.home import Home

TRAIN = """
import time
for epoch in range(1, 6):
    time.sleep(0.06)
    print(f"Epoch {epoch}/5 loss=0.1", flush=True)
"""


@pytest.fixture
def train(tmp_path: Path) -> list[str]:
    (tmp_path / "train.py").write_text(TRAIN)
    return [sys.executable, "train.py"]


def test_an_empty_home_teaches_the_first_step(ouvrage: Home):
    said = ouvrage("runs")
    assert said.code == 0
    assert said.out.splitlines() == [
        "No runs yet.",
        "  meter any command: ouvrage run --price 0.30/h -- python train.py",
        "  then: ouvrage report last",
    ]
    assert ouvrage("runs", "--json").json == {"runs": []}


def test_what_there_is_to_report_is_asked_for(ouvrage: Home):
    said = ouvrage("report", "last")
    assert said.code == 2
    assert said.err.splitlines()[0] == "error[run/none]: there are no runs yet"
    assert "hint: meter any command" in said.err
    assert ouvrage("report", "last", "--json").json["error"]["code"] == "run/none"


def test_from_a_command_to_its_figure(ouvrage: Home, train: list[str]):
    ran = ouvrage("run", "--price", "0.30/h", "--label", "first", "--", *train)
    assert ran.code == 0
    assert ran.out.splitlines() == [f"Epoch {n}/5 loss=0.1" for n in range(1, 6)]
    listed = ouvrage("runs")
    assert re.search(r"first .*completed +5 epochs +0\.0\d+ s ● +0\.0000\d+ EUR \?", listed.out)
    report = ouvrage("report", "first")
    assert re.search(r"EUR \? per epoch", report.first)
    figure = re.search(r"ouvrage explain (\S+)", report.out)
    assert figure
    explained = ouvrage("explain", figure[1])
    assert explained.code == 0
    assert "run.marks" in explained.out
    assert "price x median" in explained.out
    verified = ouvrage("verify")
    assert (verified.code, "nothing broken" in verified.first) == (0, True)


def test_plain_says_grades_in_words(ouvrage: Home, train: list[str]):
    ouvrage("run", "--quiet", "--price", "0.30/h", "--", *train)
    for verb in (["runs"], ["report", "last"], ["explain", "last"]):
        said = ouvrage(*verb, "--plain")
        assert said.code == 0
        assert not set(said.out) & set("●◐○█▒░")
        assert "(assumed)" in said.out
        assert "(measured)" in said.out


def test_one_object_one_name_everywhere(ouvrage: Home, train: list[str]):
    ouvrage("run", "--quiet", "--label", "x y", "--", *train)
    report = ouvrage("report", "last", "--json").json
    for name in (report["run"], report["code"], report["code"].lower(), "x y", "last"):
        assert ouvrage.inside("report", name, "--json").json == report


def test_help_lists_every_verb_and_each_has_help(ouvrage: Home, capsys: pytest.CaptureFixture[str]):
    listed = ouvrage("--help")
    assert listed.code == 0
    verbs = re.findall(r"^  ([a-z]+)  ", listed.out.partition("Commands:")[2], re.M)
    assert {"run", "runs", "report", "compare", "explain", "verify", "backup"} <= set(verbs)
    for verb in verbs:
        assert main([verb, "--help"]) == 0
        assert capsys.readouterr().out.lower().startswith(f"usage: ouvrage {verb}")
    assert not ouvrage.path.exists()


def test_help_is_not_kept_waiting_by_the_store():
    code = (
        "import sys; from ouvrage.cli.main import main; main(['--help']);"
        "assert not {'sqlalchemy', 'jinja2', 'ouvrage.store'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
