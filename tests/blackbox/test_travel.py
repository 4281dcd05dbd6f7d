"""Runs that travel, runs that are lost, and reports as they were known."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.blackbox.home import Home
from tests.blackbox.spools import price, run_id, spool

UNITS = [1.2, 1.0, 1.0, 1.1, 0.9, 1.0]


def held(ouvrage: Home, number: int, label: str) -> str:
    run = run_id(number)
    ouvrage.holds(spool(run, UNITS, label=label, rate=price("0.30")), run)
    return run


def test_an_exported_run_says_the_same_elsewhere(homes: Callable[[str], Home], tmp_path: Path):
    here, there = homes("here"), homes("there")
    run = held(here, 1, "a")
    assert here.inside("run", "export", "a", "a.ouvrage").code == 0
    done = there.inside("run", "import", "a.ouvrage", "--json").json
    assert (done["run"], done["samples"], done["conflict"]) == (run, True, 0)
    both_known = there.inside("report", run, "--json").json["as_of"]
    reports = [
        home.inside("report", run, *extra, "--as-of", both_known).out
        for home in (here, there)
        for extra in (("--json",), ())
    ]
    assert reports[:2] == reports[2:]
    for home, name in ((here, "here.html"), (there, "there.html")):
        assert home.inside("report", run, "--html", name, "--as-of", both_known).code == 0
    assert (tmp_path / "here.html").read_bytes() == (tmp_path / "there.html").read_bytes()
    assert there.inside("run", "export", run, "b.ouvrage").code == 0
    assert (tmp_path / "a.ouvrage").read_bytes() == (tmp_path / "b.ouvrage").read_bytes()
    assert there.inside("verify").code == 0


def test_importing_again_changes_nothing(homes: Callable[[str], Home]):
    here = homes("here")
    held(here, 1, "a")
    here.inside("run", "export", "last", "a.ouvrage")
    before = here.facts()
    again = here.inside("run", "import", "a.ouvrage")
    assert (again.code, "here already" in again.out) == (0, True)
    assert here.facts() == before


def test_another_account_of_the_same_run_is_refused(homes: Callable[[str], Home]):
    here, there = homes("here"), homes("there")
    held(here, 1, "a")
    there.holds(spool(run_id(1), UNITS, label="changed", rate=price("0.10")), run_id(1))
    there.inside("run", "export", "last", "other.ouvrage")
    report = here.inside("report", "last", "--json").json
    refused = here.inside("run", "import", "other.ouvrage")
    assert refused.code != 0
    assert "hint: " in refused.err
    assert here.inside("report", "a", "--json").json == report


def test_a_report_as_known_then_stays_the_same_bytes(ouvrage: Home):
    held(ouvrage, 1, "a")
    then = ouvrage.inside("report", "a", "--json").json["as_of"]
    before = ouvrage.inside("report", "a", "--as-of", then).out
    figure = f"a:cost_per_unit.marginal@{then}"
    explained = ouvrage.inside("explain", figure).out
    held(ouvrage, 2, "a")
    assert ouvrage.inside("report", "last", "--json").json["as_of"] != then
    assert ouvrage.inside("report", "a", "--as-of", then).out == before
    assert ouvrage.inside("explain", figure).out == explained


COUNTS = """
import time
epoch = 0
while True:
    epoch += 1
    time.sleep(0.05)
    print(f"Epoch {epoch}/9999 loss=0.5", flush=True)
"""


def test_a_run_shows_while_it_goes_and_as_lost_when_its_meter_is_killed(ouvrage: Home):
    script = ouvrage.path.parent / "counts.py"
    script.write_text(COUNTS)
    meter = ouvrage.start(
        "run", "--label", "doomed", "--price", "1/h", "--", sys.executable, str(script),
        stdout=-3, stderr=-3, start_new_session=True,
    )  # fmt: skip
    try:
        running = _until(lambda: _shown(ouvrage, "running"))
        assert running["label"] == "doomed"
        refused = ouvrage("report", "doomed")
        assert (refused.code, "still running" in refused.err) == (2, True)
        _until(lambda: (_shown(ouvrage, "running") or {}).get("units"))
        os.kill(meter.pid, signal.SIGKILL)
        meter.wait(30)
        lost = _until(lambda: _shown(ouvrage, "lost"))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(meter.pid, signal.SIGKILL)
    assert lost["units"] >= 1
    assert ouvrage("report", "doomed").first.startswith("Lost: ")
    assert ouvrage("runs").out.count("lost") == 1
    assert ouvrage("verify").code == 0


def _shown(ouvrage: Home, outcome: str) -> dict | None:
    runs = ouvrage.inside("runs", "--json").json["runs"]
    return next((run for run in runs if run["outcome"] == outcome), None)


def _until(condition: Callable[[], object]):
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
    raise AssertionError("it did not come to pass in 40 s")
