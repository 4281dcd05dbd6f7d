"""From an empty home to what an accepted result cost, a rented machine's idle hours included."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.blackbox.home import Home

TRAIN = """
import sys, time
for epoch in range(1, 5):
    time.sleep(0.05)
    print(f"Epoch {epoch}/4 loss=0.1", flush=True)
sys.exit(int(sys.argv[1]))
"""


def test_from_a_rented_machine_to_the_page_of_a_campaign(ouvrage: Home, tmp_path: Path):
    (tmp_path / "train.py").write_text(TRAIN)
    train = [sys.executable, "-u", "train.py"]
    rented = ouvrage("rental", "start", "--price", "36/h", "--label", "gpu", "--campaign", "spring")
    assert re.match(r"gpu is paid for since \S+Z at 36 EUR/h\.", rented.out)
    for label, code in (("first", "1"), ("second", "0")):
        ran = ouvrage(
            "run", "--quiet", "--campaign", "spring", "--label", label, "--", *train, code
        )
        assert ran.code == int(code)
    told = ouvrage("rental", "watch", "--once", "--idle", "0s", "--on-alarm-command", "cat")
    assert told.code == 0
    assert "the work ended at" in told.out
    assert ouvrage("rental", "watch", "--once", "--idle", "0s").first == "gpu: nothing new to tell."
    stopped = ouvrage("rental", "stop", "gpu")
    assert re.match(
        r"gpu cost \S+ EUR \?; \S+ EUR \? of it, \d+ %, while nothing ran\.", stopped.out
    )
    ouvrage("accept", "first", "--units", "0", "--why", "it crashed")
    accepted = ouvrage("accept", "second", "--units", "4", "--why", "loss below 0.2")
    assert re.match(r"Accepted 4 of 4 epochs of \w{4}\.\n", accepted.out)
    report = ouvrage("report", "--campaign", "spring")
    assert re.match(
        r"spring: \S+ EUR \? per accepted epoch, \S+ EUR \? in all for 4 accepted epochs\.",
        report.out,
    )
    for line in (
        r"attempts +2: 1 completed, 1 failed; 2 judged",
        r"accepted +\S+ EUR \? +\d+ %   accepted work",
        r"rejected +\S+ EUR \? +\d+ %   finished units that were not accepted",
        r"held +\S+ EUR \? +\d+ %   rented, and nothing ran",
        r"second +completed +\S+ s +4 of 4 epochs +\S+ EUR \?",
    ):
        assert re.search(line, report.out), line
    plain = ouvrage("report", "--campaign", "spring", "--plain")
    assert not set(plain.out) & set("●◐○█▓▒░")
    why = re.search(r"ouvrage explain (\S+)", report.out)
    assert why
    assert "rental.started" in ouvrage("explain", why[1]).out
    assert "nothing broken" in ouvrage("verify").first


def test_a_watch_ends_when_the_machine_is_given_back(ouvrage: Home):
    ouvrage("rental", "start", "--price", "1/h", "--label", "gpu")
    watch = ouvrage.start("rental", "watch", "--every", "0.05s", stdout=subprocess.PIPE)
    assert watch.stdout
    assert watch.stdout.readline() == "gpu: nothing new to tell.\n"
    assert ouvrage("rental", "stop").code == 0
    assert watch.wait(30) == 0
    watch.stdout.close()
