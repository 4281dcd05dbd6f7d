"""Bad input: each refusal is one error with a hint, exit 2, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Home
from .spools import price, run_id, spool

RUN = [
    (["run", "--price", "0.30", "--", "true"], "price/no-unit"),
    (["run", "--price", "-1/h", "--", "true"], "price/negative"),
    (["run", "--price", "cheap", "--", "true"], "price/unreadable"),
    (["run", "--price", "1/fortnight", "--", "true"], "price/unknown-unit"),
    (["run", "--price", "1 USD/h", "--currency", "EUR", "--", "true"], "price/two-currencies"),
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
    (["restore", "missing.backup"], None),
]


@pytest.mark.parametrize(("arguments", "code"), RUN, ids=lambda v: " ".join(v) if v else None)
def test_a_run_that_cannot_start_leaves_nothing(ouvrage: Home, arguments: list[str], code: str):
    said = ouvrage(*arguments)
    assert said.code == 2, said
    assert said.out == ""
    assert said.err.startswith(f"error[{code}]" if code else ("error[", "usage")), said.err
    assert "hint" in said.err
    assert not ouvrage.path.exists()


@pytest.mark.parametrize(("arguments", "code"), VERBS, ids=lambda v: " ".join(v) if v else None)
def test_a_verb_misused_says_how_to_use_it(ouvrage: Home, arguments: list[str], code: str):
    said = ouvrage(*arguments)
    assert said.code == 2, said
    assert said.out == ""
    first, *_, last = said.err.splitlines()
    assert first.startswith(f"error[{code}]: " if code else "error[")
    assert last.startswith("  hint: ")
    assert "Traceback" not in said.err
    as_json = ouvrage(*arguments, "--json")
    assert as_json.code == 2
    assert as_json.json["error"]["code"] == (code or as_json.json["error"]["code"])


WITH_RUNS = [
    (["report", "R7K2"], "run/unknown"),
    (["report", "last", "--as-of", "2001-01-01"], "run/none"),
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


@pytest.mark.parametrize(("arguments", "code"), WITH_RUNS, ids=lambda v: " ".join(v) if v else None)
def test_a_question_without_answer_is_told_why(ouvrage: Home, arguments: list[str], code: str):
    units = [1.0] * 6
    ouvrage.holds(spool(run_id(1), units, label="a", rate=price("1")), run_id(1))
    ouvrage.holds(spool(run_id(2), units, label="b", rate=price("2")), run_id(2))
    dollars = spool(run_id(3), units, label="dollars", rate=price("2", "USD"))
    ouvrage.holds(dollars, run_id(3))
    steps = spool(run_id(4), units, label="steps", rate=price("2"), unit="step")
    ouvrage.holds(steps, run_id(4))
    (ouvrage.path.parent / "junk").write_bytes(b"junk")
    before = ouvrage("runs", "--json").json
    said = ouvrage(*arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error[{code}]: "), said.err
    assert "hint: " in said.err
    assert ouvrage("runs", "--json").json == before


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
        said = ouvrage(*verb)
        assert said.code == 0
        assert not {"\x1b", "\x07", "\u202e"} & set(said.out)
    assert ouvrage("report", "last", "--json").json["label"] == label
    page = tmp_path / "page.html"
    assert ouvrage("report", "last", "--html", str(page)).code == 0
    html = page.read_text()
    assert "<script" not in html and "<img" not in html


def test_a_broken_spool_is_set_aside_and_stops_nothing(ouvrage: Home):
    ouvrage.holds(spool(run_id(1), [1.0] * 4, label="good"), run_id(1))
    lines = spool(run_id(2), [1.0] * 4).splitlines()
    ouvrage.holds("\n".join([lines[0], "garbage", *lines[1:], ""]), run_id(2))
    said = ouvrage("runs")
    assert said.code == 0
    assert "good" in said.out
    assert "line 2" in said.err and "set aside" in said.err
    assert f"spool/broken/{run_id(2)}.ndjson" in ouvrage.files()


def test_json_is_one_value_whatever_happens(ouvrage: Home):
    for arguments in (["runs"], ["verify"], ["report", "x"], ["nonsense"]):
        json.loads(ouvrage(*arguments, "--json").out)


def test_a_reader_that_leaves_early_is_no_error(ouvrage: Home):
    for n in range(30):
        ouvrage.holds(spool(run_id(n), [1.0], label=f"run {n}" * 50), run_id(n))
    first = ouvrage.start("runs", "--all", stdout=-1, stderr=-1)
    assert first.stdout and first.stderr
    first.stdout.close()
    assert first.wait(30) == 0
    assert "Traceback" not in first.stderr.read()
    first.stderr.close()


