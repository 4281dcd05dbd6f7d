"""From an empty home to a dossier: who says what, what was asked, and what none of it shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.support.web import PAGE, Records, Reply, serving

LIMITS = (
    "neither GPUs nor traffic",
    "A peer's name reveals no contract",
    "An administrative label",
    "A country field reveals no seat and no location",
    "the time since April, and a cause",
    "None of this proves an offer or a closure",
)


@pytest.fixture
def records() -> Iterator[Records]:
    with serving() as running:
        running.answers_as_recorded()
        yield running


@pytest.fixture
def online(ouvrage: Home, records: Records, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name, value in records.environment.items():
        monkeypatch.setenv(name, value)
    return replace(ouvrage, environment={**ouvrage.environment, **records.environment})


def words(text: str) -> str:
    return " ".join(text.split())


def test_from_an_empty_home_to_a_dossier(online: Home, tmp_path: Path):
    assert online("evidence", "list").out.splitlines()[0] == "No evidence yet."
    added = online("evidence", "add", "--shipped", "genesis-volta")
    assert (added.code, added.first) == (0, "Recorded 17 statements, 0 known already.")
    again = online.inside("evidence", "add", "--shipped", "genesis-volta")
    assert again.first == "Recorded 0 statements, 17 known already."

    seen = online("evidence", "observe", "asn", "209045")
    assert seen.code == 0
    told = seen.out.splitlines()
    assert told[0].startswith("AS209045: RIPEstat as-overview, HTTP 200  (")
    assert told[1:3] == ["  absent     announced", "  absent     holder"]
    assert "  no answer: HTTP status 404, which says nothing of what was asked" in told
    assert "1 of them got no answer, which proves nothing" in seen.out

    said = online(
        *("evidence", "report", "genesis-cloud", "--stale-after", "90d"),
        *("--markdown", "d.md", "--html", "d.html"),
    )
    assert said.code == 0
    assert said.first.startswith(
        "Genesis Cloud: 17 statements (4 asked by us, with the answer kept)"
    )
    text = words(said.out)
    for limit in LIMITS:
        assert limit in text
    assert "Genesis Cloud Limited: a routing directory's page" in text
    assert "Who takes over obligations from contracts with Genesis Cloud is not known." in text
    assert "clearml-2023: Genesis Cloud, ClearML" in text
    assert "0.30 USD/h, 0.0106 USD per epoch" in text
    page, markdown = (tmp_path / "d.html").read_text(), (tmp_path / "d.md").read_text()
    assert "<script" not in page
    for heading in ("In order of date", "What contradicts what", "What is not known"):
        assert heading in page
        assert f"## {heading}" in markdown
    assert online("verify").code == 0


def test_the_three_outcomes_are_never_mixed(online: Home):
    online.inside("evidence", "add", "--shipped", "genesis-volta")
    done = online.inside("evidence", "observe", "asn", "AS209045", "--json").json
    by_place = {each["place"]: each for each in done["observations"]}
    assert [each["outcome"] for each in done["observations"]] == [*["answered"] * 3, "no answer"]
    silent = by_place["RDAP autnum"]
    assert silent["status"] == 404 and silent["sha256"]
    assert {f["outcome"] for f in silent["findings"]} == {"no answer"}
    found = online.inside("evidence", "report", "Genesis Cloud", "--json").json
    rows = [item for item in found["items"] if item["name"] == silent["name"]]
    assert {row["outcome"] for row in rows} == {"no answer"}
    assert silent["name"] not in found["grades"]["listed"]
    assert silent["name"] in found["grades"]["measured"]  # that we asked, and got no answer
    held = [pair for pair in found["contradictions"] if pair["property"] == "holder"]
    assert {side["outcome"] for pair in held for side in pair["between"]} == {"present", "absent"}


def test_the_raw_answer_is_kept(online: Home, records: Records, tmp_path: Path):
    done = online.inside("evidence", "observe", "ip", "2a09:7000::/31", "--json").json
    network = done["observations"][1]
    assert network["findings"][2]["value"] == "MT"
    assert network["findings"][2]["grade"] == "listed"
    assert online.inside("evidence", "show", network["name"], "--raw", "a.json").code == 0
    assert (tmp_path / "a.json").read_bytes() == records.replies["/rdap/ip/2a09:7000::/31"].body
    shown = online.inside("evidence", "show", network["name"])
    assert f"sha256         {network['sha256']}" in shown.out


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(500, b"x"), "HTTP status 500"),
        (Reply(200, b"{}", cut=9), "cut short: 9 of 11 bytes"),
        (Reply(200, b"<html>"), "not JSON"),
        (
            Reply(302, headers={"Location": "http://example.invalid/"}),
            "another host, example.invalid",
        ),
        (Reply(held=True), "no whole answer within 0.3 s"),
    ],
    ids=["500", "cut", "no JSON", "redirect", "slow"],
)
def test_a_fault_is_recorded_as_no_answer(online: Home, records: Records, reply: Reply, told: str):
    records.replies = {"/rdap/autnum/64496": reply, "/data/as-overview/data.json": reply}
    done = online.inside("evidence", "observe", "asn", "64496", "--timeout", "0.3", "--json")
    assert done.code == 0
    for index in (0, 3):
        found = done.json["observations"][index]
        assert told in found["fault"]
        assert {f["outcome"] for f in found["findings"]} == {"no answer"}
    assert online.inside("verify").code == 0


def test_a_saved_page_is_a_report(online: Home, tmp_path: Path):
    (tmp_path / "he.html").write_text(PAGE)
    done = online.inside(
        *("evidence", "observe", "asn", "209045", "--he-page", "he.html"),
        *("--saved-on", "2026-10-20T10:00:00Z", "--provider", "Genesis Cloud", "--json"),
    )
    page = done.json["observations"][-1]
    assert (page["grade"], page["status"]) == ("reported", None)
    assert {f["property"]: f["value"] for f in page["findings"]}["peers"] == "AS13237, AS16276"
    refused = online.inside(
        *("evidence", "observe", "asn", "64496", "--he-page", "he.html"),
        *("--saved-on", "2026-10-20"),
    )
    assert refused.err.startswith("error[evidence/page]: he.html: not in the form expected")
    assert len(online.facts()) == 5


CLAIM = (
    *(
        "evidence",
        "add",
        "--provider",
        "Volta",
        "--property",
        "price",
        "--statement",
        "H100 at 2.10",
    ),
    *("--value", "2.10", "--unit", "USD/h", "--said-by", "Volta", "--interest", "vendor"),
    *("--stated-on", "2026-11-01", "--grade", "listed", "--not-shown", "billing increments"),
    *("--read-on", "2026-11-29", "--name", "volta-h100"),
)


def test_a_claim_keeps_its_grade_in_every_figure(ouvrage: Home):
    assert ouvrage.inside(*CLAIM).first == "Recorded volta-h100."
    assert ouvrage.inside(*CLAIM).first == "Known already: volta-h100."
    listed = ouvrage.inside("explain", "claim/volta-h100", "--json").json["figures"]
    assert listed[0]["name"].startswith("claim/volta-h100:value@")
    explained = ouvrage.inside("explain", listed[0]["name"], "--json").json
    assert explained["figure"] == listed[0]["name"]
    assert explained["missing"] == []
    assert (explained["value"], explained["unit"], explained["grade"]) == ("2.1", "USD/h", "listed")
    changed = ouvrage.inside(*[word if word != "2.10" else "2.20" for word in CLAIM])
    assert changed.code == 1
    assert changed.first.startswith("Refused, another statement bears this name")
    assert ouvrage.inside("verify").code == 0


def test_a_question_is_open_until_it_is_withdrawn(ouvrage: Home):
    asked = ouvrage.inside(
        "evidence", "add", "--provider", "Volta", "--question", "Which terms hold?", "--json"
    ).json
    name = asked["recorded"][0]["name"]
    ouvrage.inside(
        *("evidence", "add", "--provider", "volta", "--search", "terms", "--place", "its site"),
        *("--read-on", "2026-11-29"),
    )
    before = ouvrage.inside("evidence", "report", "volta", "--json").json
    assert [q["question"] for q in before["open_questions"]] == ["Which terms hold?"]
    assert before["searches"] == [
        {"words": "terms", "place": "its site", "searched_on": "2026-11-29"}
    ]
    assert ouvrage.inside("evidence", "withdraw", name, "--why", "they were published").code == 0
    after = ouvrage.inside("evidence", "report", "volta", "--json").json
    assert after["open_questions"] == []
    then = ouvrage.inside("evidence", "report", "volta", "--json", "--as-of", before["as_of"]).json
    assert then == before


def test_list_and_show(ouvrage: Home):
    ouvrage.inside("evidence", "add", "--shipped", "genesis-volta")
    listed = ouvrage.inside("evidence", "list", "--provider", "volta")
    assert "volta-technology" in listed.out
    assert "genesis-as-peers" not in listed.out
    assert len(ouvrage.inside("evidence", "list", "--json").json["evidence"]) == 17
    shown = ouvrage.inside("evidence", "show", "volta-technology", "--plain").out
    assert shown.splitlines()[0] == "volta-technology (reported)"
    assert "not shown      which companies, GPUs, contracts" in shown
    whole = ouvrage.inside("evidence", "show", "volta-cto", "--json").json
    assert whole["states"]["stated_on"] is None
    plain = ouvrage.inside("evidence", "report", "volta", "--plain")
    assert not set(plain.out) & set("●◐○")
    assert "(reported)" in plain.out


def test_a_file_of_evidence(ouvrage: Home, tmp_path: Path):
    question = {"providers": ["P"], "question": "Is it?", "asked_on": "2026-11-30"}
    (tmp_path / "e.json").write_text(json.dumps({"questions": [question]}))
    assert ouvrage.inside("evidence", "add", "--file", "e.json").code == 0
    (tmp_path / "bad.json").write_text(json.dumps({"questions": [question, {"providers": ["P"]}]}))
    refused = ouvrage.inside("evidence", "add", "--file", "bad.json")
    assert refused.code == 2
    assert refused.err.startswith(
        "error[evidence/file]: bad.json: questions[1].question: found nothing, expected a text"
    )
    (tmp_path / "worse.json").write_text('{"a": 1,\n]')
    assert "worse.json:2: not JSON" in ouvrage.inside("evidence", "add", "--file", "worse.json").err
    assert len(ouvrage.facts()) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([*CLAIM[:2]], "evidence/incomplete"),
        ([*CLAIM, "--interest", "friend"], "evidence/incomplete"),
        ([*CLAIM, "--grade", "measured"], "evidence/grade"),
        ([*CLAIM, "--stated-on", "soon"], "evidence/incomplete"),
        ([*CLAIM, "--value", "cheap"], "evidence/incomplete"),
        ([*CLAIM, "--name", "a+b"], "evidence/incomplete"),
        ([*CLAIM, "--question", "a", "--search", "b"], "command/usage"),
        (["evidence", "add", "--question", "who?"], "evidence/incomplete"),
        (["evidence", "add", "--provider", "p", "--search", "x"], "evidence/incomplete"),
        (["evidence", "add", "--shipped", "nothing"], "evidence/unknown"),
        (["evidence", "add", "--file", "missing.json"], "command/usage"),
        (["evidence", "show", "nothing"], "evidence/unknown"),
        (["evidence", "report", "nobody"], "evidence/provider"),
        (["evidence", "report", "x", "--stale-after", "soon"], "evidence/stale-after"),
        (["evidence", "observe", "asn", "x"], "evidence/asn"),
        (["evidence", "observe", "asn", "0"], "evidence/asn"),
        (["evidence", "observe", "ip", "300.1.1.1"], "evidence/block"),
        (["evidence", "observe", "asn", "1", "--he-page", "/dev/null"], "command/usage"),
        (["evidence", "observe", "asn", "1", "--ripestat", "file:///etc"], "web/address"),
        (["explain", "claim/nothing:value"], "claim/not-recorded"),
        (["evidence", "withdraw", "nothing", "--why", "x"], "evidence/unknown"),
        (["evidence", "withdraw", "nothing", "--why", " "], "command/usage"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else value,
)
def test_bad_input_is_refused_and_nothing_is_written(
    ouvrage: Home, arguments: list[str], code: str
):
    said = ouvrage.inside(*arguments)
    assert said.code == 2, said
    assert said.out == ""
    first, *_, last, end = said.err.splitlines()
    assert first.startswith(f"error[{code}]: ")
    assert last.startswith("  hint: ")
    assert end == "nothing was written"
    assert "ouvrage.db" not in ouvrage.files() or ouvrage.facts() == []
