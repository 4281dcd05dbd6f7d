"""What launchers of several ranks printed, captured from them: four epochs, however many ranks say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ouvrage.metering.recognise import Recogniser
from ouvrage.metering.units import units_of
from tests.metering.test_tool_logs import as_lines
from tests.support.runs import S, busy, end, header, view_of

LOGS = Path(__file__).parents[1] / "fixtures" / "launchers"
NAMES = sorted(path.stem for path in LOGS.glob("*.txt"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 13, 4096], ids=["bytes", "pieces", "whole"])
def test_ranks_that_print_the_same_epochs_finish_four(name: str, size: int):
    about = json.loads((LOGS / f"{name}.json").read_text("utf-8"))
    assert about["seen_running"]
    assert about["version"]
    data = (LOGS / f"{name}.txt").read_bytes()
    recogniser, marks = Recogniser(None, None), []
    for number, at in enumerate(range(0, len(data), size), 1):
        marks += recogniser.feed("stdout", data[at : at + size], number * S)
    marks += recogniser.flush((len(data) // size + 2) * S)
    seconds = len(data) // size + 3
    run = view_of(
        header(command=about["command"].split()), *busy(seconds), *as_lines(marks), end(seconds)
    )
    units = units_of(run)
    assert (units.name, units.finished) == ("epoch", 4)


def test_every_capture_is_here():
    assert len(NAMES) == 7
