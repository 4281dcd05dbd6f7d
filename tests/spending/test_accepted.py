"""From finished units to accepted ones: what each cost, what the others cost, and corrections."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.spools import price, run_id, spool
from tests.support.inside import Inside

RATE = price("36")  # a cent a second
LOST = ("rejected", "failed", "cancelled")


def _holds(ouvrage: Inside, number: int = 1, **options: Any) -> str:
    """A run of four epochs of 2 s after 1 s, over after 9.25 s."""
    text = spool(run_id(number), [2.0] * 4, label="work", rate=RATE, **options)
    ouvrage.holds(text, run_id(number))
    return run_id(number)


def _parts(report: dict[str, dict[str, str]]) -> dict[str, Fraction]:
    return {sort: Fraction(report["cost"][sort]) for sort in ("accepted", *LOST)}


def test_a_run_is_not_judged_until_somebody_does(ouvrage: Inside):
    _holds(ouvrage)
    report = ouvrage("report", "work", "--json").json
    assert (report["exit_code"], report["units"], report["units_accepted"]) == (0, 4, None)
    assert report["acceptance"] is None
    assert report["cost_per_accepted_unit"] is None
    assert report["cost"]["rejected"] is None
    assert "ouvrage accept" in report["unknown"]["cost.rejected"]


def test_accepted_and_rejected_units_share_the_cost(ouvrage: Inside):
    _holds(ouvrage)
    said = ouvrage("accept", "work", "--units", "3", "--why", "one epoch diverged")
    assert said.code == 0
    assert re.match(
        r"Accepted 3 of 4 epochs of \w{4}: 0\.0308 EUR \? each; 0\.0231 EUR \? rejected\.", said.out
    )
    report = ouvrage("report", "work", "--json").json
    assert (report["units_accepted"], report["units_rejected"]) == (3, 1)
    assert report["acceptance"]["grade"] == "reported"
    assert report["acceptance"]["why"] == "one epoch diverged"
    total = Fraction("0.0925")
    assert Fraction(report["cost"]["total"]) == total
    assert _parts(report) == {
        "accepted": total * 3 / 4,
        "rejected": total / 4,
        "failed": 0,
        "cancelled": 0,
    }
    assert report["cost_per_accepted_unit"].startswith("0.0308333333333333333333333333")
    text = ouvrage("report", "work").out
    assert "accepted              3 of 4 epochs ○, 0.0308 EUR ? each: one epoch diverged" in text
    assert "not accepted          0.0231 EUR ? rejected" in text


def test_a_failed_run_lost_what_came_after_its_last_unit(ouvrage: Inside):
    _holds(ouvrage, exit_code=1)
    assert ouvrage("accept", "work", "--units", "4", "--why", "checkpoints are good").code == 0
    report = ouvrage("report", "work", "--json").json
    assert _parts(report) == {
        "accepted": Fraction("0.09"),
        "rejected": 0,
        "failed": Fraction("0.0025"),
        "cancelled": 0,
    }


def test_the_command_itself_may_be_accepted_however_it_ended(ouvrage: Inside):
    ouvrage.holds(spool(run_id(1), [], rate=RATE, exit_code=3), run_id(1))
    assert ouvrage("report", "last", "--json").json["units"] == 0
    assert ouvrage("accept", "last", "--units", "1", "--why", "the file is whole").code == 0
    report = ouvrage("report", "last", "--json").json
    assert report["cost"]["accepted"] == report["cost"]["total"]
    assert ouvrage("accept", "last", "--units", "0", "--why", "it is not").code == 0
    report = ouvrage("report", "last", "--json").json
    assert report["cost"]["failed"] == report["cost"]["total"]
    assert report["cost_per_accepted_unit"] is None


def test_saying_it_again_corrects_and_the_past_stays(ouvrage: Inside):
    _holds(ouvrage)
    first = ("accept", "work", "--units", "3", "--why", "looks right")
    as_known = ouvrage(*first, "--json").json["as_of"]
    assert ouvrage(*first).first == "This was said before; nothing was changed."
    second = ouvrage("accept", "work", "--units", "1", "--why", "checked", "--json").json
    assert second["units_accepted"] == 1
    before = ouvrage("report", "work", "--json", "--as-of", as_known).json
    assert before["units_accepted"] == 3
    explained = ouvrage("explain", "work:units_accepted")
    assert "run.accepted" in explained.out
    assert "reported" in explained.out
    assert ouvrage("verify").code == 0


def test_a_judgement_travels_with_its_run(ouvrage: Inside, homes: Callable[[str], Inside]):
    run = _holds(ouvrage)
    ouvrage("accept", "work", "--units", "2", "--why", "half of it")
    assert ouvrage("run", "export", run, "run.ouvrage").code == 0
    other = homes("other")
    assert other("run", "import", "run.ouvrage").code == 0
    assert other("report", "work", "--json").json["units_accepted"] == 2
    corrected = other("accept", "work", "--units", "1", "--why", "half of that", "--json").json
    assert corrected["units_accepted"] == 1
    assert other("verify").code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["work", "--units", "5", "--why", "x"], "accept/too-many"),
        (["work", "--units", "-1", "--why", "x"], "command/usage"),
        (["work", "--units", "1", "--why", " "], "accept/why"),
        (["work", "--units", "1", "--why", "\x1b[2J"], "accept/why"),
        (["work", "--units", "1"], "command/usage"),
        (["nothing", "--units", "1", "--why", "x"], "run/unknown"),
    ],
)
def test_what_cannot_be_accepted(ouvrage: Inside, arguments: list[str], code: str):
    _holds(ouvrage)
    said = ouvrage("accept", *arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error[{code}]")
    assert ouvrage("report", "work", "--json").json["acceptance"] is None


def test_the_page_shows_what_an_accepted_unit_cost(ouvrage: Inside, tmp_path: Path):
    _holds(ouvrage)
    ouvrage("accept", "work", "--units", "3", "--why", "fine")
    assert ouvrage("report", "work", "--html", f"{tmp_path}/page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "Cost per accepted epoch" in page
    assert "3 accepted, 1 not; 0.0231 rejected" in page


def test_of_judgements_made_apart_the_latest_counts_everywhere(
    ouvrage: Inside, homes: Callable[[str], Inside]
):
    run, other = _holds(ouvrage), homes("other")
    ouvrage("run", "export", run, "bare.ouvrage")
    assert other("run", "import", "bare.ouvrage").code == 0
    ouvrage("accept", "work", "--units", "3", "--why", "here")
    other("accept", "work", "--units", "1", "--why", "there, later")
    for home, name in ((ouvrage, "ours.ouvrage"), (other, "theirs.ouvrage")):
        assert home("run", "export", run, name).code == 0
    assert ouvrage("run", "import", "theirs.ouvrage").code == 0
    assert other("run", "import", "ours.ouvrage").code == 0
    for home in (ouvrage, other):
        assert home("report", "work", "--json").json["units_accepted"] == 1
        assert home("verify").code == 0
