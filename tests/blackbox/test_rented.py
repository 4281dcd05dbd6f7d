"""A rented machine, from an empty directory to how much of what it costs stood idle."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.blackbox.platform_home import platform_of
from tests.support.meter import until


@pytest.fixture
def buyer(ouvrage: Home, tmp_path: Path) -> Iterator[Home]:
    state = tmp_path / "state"
    with platform_of(ouvrage, state, "--rented", "--rate", "3600/h") as made:
        yield made


def test_what_is_paid_for_and_stands_idle(buyer: Home) -> None:
    until(lambda: "1 of them now" in buyer.inside("lease", "list").first, "the machine's lease")
    (lease,) = buyer.inside("lease", "list", "--json").json
    assert (lease["offer_name"], lease["kind"], lease["state"]) == ("machine", "term", "open")
    assert lease["cpus"] == len(os.sched_getaffinity(0))

    small = ("--cpus", "1", "--memory", "64MiB", "--disk", "16MiB")
    done = buyer.inside("job", "submit", "--name", "one", *small, "--follow", "--", "sleep", "1")
    assert done.code == 0, done.out + done.err
    said = buyer.inside("usage", "--plain").out
    line = next(each for each in said.splitlines() if "stood idle" in each)
    found = re.search(
        r"of ([\d.]+) EUR \(assumed price\) for the machine, ([\d.]+) EUR stood idle", line
    )
    assert found, line
    paid, idle = float(found[1]), float(found[2])
    told = buyer.inside("usage", "--json").json["rented"]
    working, held = int(told["working_s"]), int(told["held_s"])
    assert working >= 1
    assert paid > 0 < idle < paid
    # at 1 EUR a second the figures are the seconds, but for their fractions
    assert abs(float(told["paid"]) - (working + held)) <= 3
    assert abs(float(told["idle"]) - held) <= 3
    shown = buyer.inside("lease", "show", lease["code"]).out
    assert re.search(r"hours    █*▒*  \d+ % working: ", shown), shown

    refused = buyer.inside(
        "offer", "create", "sold", "--price", "1/h", "--cpus", "1", "--memory", "64MiB"
    )
    assert refused.err.startswith("error[platform/rented]"), refused.err

    again = buyer.inside("lease", "release", lease["code"])
    assert again.code == 0, again.err
    assert buyer.inside("usage", "--json").json["rented"] is None


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--rented"], "rented/rate"),
        (["--rate", "1/h"], "rented/rate"),
        (["--rented", "--rate", "no-such-plan"], "rate-plan/unknown"),
        (["--rented", "--rate", "-1/h"], "price/negative"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(
    ouvrage: Home, tmp_path: Path, words: list[str], code: str
) -> None:
    said = ouvrage.inside("up", "--state", str(tmp_path / "state"), *words)
    assert said.code == 2
    assert said.err.startswith(f"error[{code}]"), said.err
    assert not (tmp_path / "state").exists()
