"""Bad input: each refusal is one error with a hint, exit 2, and nothing is written."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.blackbox.home import COMMAND, Home, home_in
from tests.blackbox.spools import price, run_id, spool


def _words(value: list[str] | str | None) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


RUN = [
    (["run", "--price", "0.30", "--", "true"], "price/no-unit"),
    (["run", "--price", "-1/h", "--", "true"], "price/negative"),
    (["run", "--price", "cheap", "--", "true"], "price/unreadable"),
    (["run", "--price", "1/fortnight", "--", "true"], "price/unknown-unit"),
    (["run", "--price", "1 USD/h", "--currency", "EUR", "--", "true"], "price/two-currencies"),
    (["run", "--price", f"0.{'1' * 50}/h", "--", "true"], "price/too-long"),
    (["run", "--report", "/tmp", "--", "true"], "run/report"),
    (["run", "--label", "last", "--", "true"], "run/label"),
    (["run", "--unit", "step", "--unit-regex", "(", "--", "true"], "unit/regex"),
    (["run", "true"], None),
    (["run", "--"], None),
    (["run"], None),
]

VERBS = [
    (["nonsense"], "command/usage"),
    (["report"], "command/usage"),
    (["report", "last", "--frobnicate"], "command/usage"),
    (["report", "last", "--as-of", "yesterday"], "as-of/unreadable"),
    (["report", "last", "--as-of", "2026-11-30T14:05:09"], "as-of/unreadable"),
    (["compare"], "command/usage"),
    (["explain", ""], "figure/unreadable"),
    (["explain", "+A:units"], "figure/unreadable"),
    (["explain", "R7K2:units@noon"], "as-of/unreadable"),
    (["run", "import", "missing.ouvrage"], "command/usage"),
    (["restore", "missing.backup"], "command/usage"),
]


@pytest.mark.parametrize(("arguments", "code"), RUN, ids=_words)
def test_a_run_that_cannot_start_leaves_nothing(ouvrage: Home, arguments: list[str], code: str):
    said = ouvrage(*arguments)
    assert said.code == 2, said
    assert said.out == ""
    assert said.err.startswith(f"error[{code}]" if code else ("error[", "usage")), said.err
    assert "hint" in said.err
    assert not ouvrage.path.exists()


@pytest.mark.parametrize(("arguments", "code"), VERBS, ids=_words)
def test_a_verb_misused_says_how_to_use_it(ouvrage: Home, arguments: list[str], code: str):
    said = ouvrage.inside(*arguments)
    assert said.code == 2, said
    assert said.out == ""
    first, *_, last, end = said.err.splitlines()
    assert first.startswith(f"error[{code}]: ")
    assert last.startswith("  hint: ")
    assert end == "nothing was written"


WITH_RUNS = [
    (["report", "R7K2"], "run/unknown"),
    (["report", "last", "--as-of", "2001-01-01"], "run/none"),
    (["report", "last", "--as-of", "0001-01-01T00:00:00+23:59"], "run/none"),
    (["report", "last", "--as-of", "9999-12-31T23:59:59-23:59"], "as-of/future"),
    (["report", "last", "--as-of", "2999-01-01"], "as-of/future"),
    (["report", "last", "--html", "/proc/nowhere/x.html"], "file/not-written"),
    (["compare", "a"], "compare/one-run"),
    (["compare", "a", "a"], "compare/one-run"),
    (["compare", "a", "b", "--claim", "x"], "claim/unknown"),
    (["compare", "a", "dollars"], "compare/currency"),
    (["compare", "a", "steps"], "compare/unit"),
    (["explain", "a:cost_per_unit.margina"], "figure/unknown"),
    (["explain", "clearml-2023:speed_up"], "claim/not-recorded"),
    (["run", "export", "nobody"], "run/unknown"),
    (["run", "import", "junk"], "exchange/damaged"),
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with runs that can and cannot be compared."""
    home = home_in(tmp_path_factory.mktemp("filled"), "home")
    made = [("a", "1", "EUR", "epoch"), ("b", "2", "EUR", "epoch")]
    made += [("dollars", "2", "USD", "epoch"), ("steps", "2", "EUR", "step")]
    for number, (label, amount, currency, unit) in enumerate(made, 1):
        run = run_id(number)
        rate = price(amount, currency)
        home.holds(spool(run, [1.0] * 6, label=label, rate=rate, unit=unit), run)
    (home.path.parent / "junk").write_bytes(b"junk")
    assert len(home.inside("runs", "--json").json["runs"]) == 4
    return home


@pytest.mark.parametrize(("arguments", "code"), WITH_RUNS, ids=_words)
def test_a_question_without_answer_is_told_why(filled: Home, arguments: list[str], code: str):
    before = filled.facts()
    said = filled.inside(*arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error[{code}]: "), said.err
    assert "hint: " in said.err
    assert said.err.splitlines()[-1] == "nothing was written"
    assert filled.facts() == before


def test_a_command_that_is_not_there_is_127_with_a_hint(ouvrage: Home):
    said = ouvrage("run", "--", "no-such-command-here")
    assert said.code == 127
    assert "hint" in said.err


def test_hostile_labels_reach_neither_terminal_nor_page(ouvrage: Home, tmp_path: Path):
    label = "\x1b[2J<script>alert(1)</script>\u202e"
    command = ["python", "\x1b]0;owned\x07</title><img src=x>"]
    text = spool(run_id(1), [1.0] * 4, label=label, rate=price("1"), command=command)
    ouvrage.holds(text, run_id(1))
    for verb in (["runs"], ["report", "last"], ["explain", "last"]):
        said = ouvrage.inside(*verb)
        assert said.code == 0
        assert not {"\x1b", "\x07", "\u202e"} & set(said.out)
    assert ouvrage.inside("report", "last", "--json").json["label"] == label
    page = tmp_path / "page.html"
    assert ouvrage.inside("report", "last", "--html", str(page)).code == 0
    html = page.read_text()
    assert not re.search("<script|<img", html)


def test_a_broken_spool_is_set_aside_and_stops_nothing(ouvrage: Home):
    ouvrage.holds(spool(run_id(1), [1.0] * 4, label="good"), run_id(1))
    lines = spool(run_id(2), [1.0] * 4).splitlines()
    ouvrage.holds("\n".join([lines[0], "garbage", *lines[1:], ""]), run_id(2))
    said = ouvrage.inside("runs")
    assert said.code == 0
    assert "good" in said.out
    assert re.search("line 2.*set aside", said.err)
    assert f"spool/broken/{run_id(2)}.ndjson" in ouvrage.files()


def test_json_is_one_value_whatever_happens(ouvrage: Home):
    for arguments in (["runs"], ["verify"], ["report", "x"], ["nonsense"]):
        json.loads(ouvrage.inside(*arguments, "--json").out)


def test_a_reader_that_leaves_early_is_no_error(ouvrage: Home):
    for n in range(30):
        ouvrage.holds(spool(run_id(n), [1.0], label=f"run {n}" * 50), run_id(n))
    first = ouvrage.start("runs", "--all", stdout=-1, stderr=-1)
    assert first.stdout
    assert first.stderr
    first.stdout.close()
    assert first.wait(30) == 0
    assert "Traceback" not in first.stderr.read()
    first.stderr.close()


@pytest.mark.parametrize(
    "words", [["runs"], ["report", "a", "--json"], ["explain", "a"], ["run", "export", "a", "-"]]
)
def test_an_answer_that_finds_no_room_is_an_error(filled: Home, words: list[str]):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *words], env=dict(filled.environment), stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error[output/not-written]"), done.stderr
