"""Reports: the shape that programs rely on, and the texts that people read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ouvrage.evidence.figures import Sheet
from ouvrage.metering.run_view import RunView
from ouvrage.pricing.report import report_json, report_text
from ouvrage.pricing.unit_cost import sheet_of
from tests.pricing.cases import reports, standard
from tests.support.runs import AS_OF, RUN, busy, end, ends, header, view_of

GOLDEN = Path(__file__).with_name("golden")
KEYS = {
    "run", "label", "command", "exit_code", "outcome", "started", "ended", "wall_s", "unit",
    "units", "units_accepted", "seconds_per_unit", "price", "cost_per_unit", "time", "phases",
    "energy_j", "coverage", "grade", "grade_shares", "devices",
}  # fmt: skip
TIME = [
    "computing", "waiting_data", "waiting_cpu", "waiting_storage", "waiting_network",
    "waiting_memory", "throttled", "unknown",
]  # fmt: skip


def sheet(view: RunView) -> Sheet:
    return sheet_of(view, AS_OF)


@pytest.mark.parametrize("name", reports())
@pytest.mark.parametrize("plain", [False, True])
def test_texts(name: str, plain: bool) -> None:
    view = reports()[name]
    found = report_text(view, sheet(view), plain=plain)
    assert found == (GOLDEN / f"{name}{'-plain' if plain else ''}.txt").read_text()


@pytest.mark.parametrize("name", reports())
def test_plain_texts_need_no_glyphs_and_send_no_controls(name: str) -> None:
    view = reports()[name]
    text = report_text(view, sheet(view), plain=True)
    assert text.isascii()
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize("name", reports())
def test_json_has_the_agreed_shape(name: str) -> None:
    view = reports()[name]
    document = report_json(view, sheet(view))
    assert document.keys() >= KEYS
    assert list(document["time"]) == TIME
    assert sum(document["time"].values()) == pytest.approx(document["wall_s"], abs=1e-9)
    assert document["units_accepted"] is None
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    for cost in document["cost_per_unit"].values():
        assert cost is None or isinstance(cost, str)


def test_the_values() -> None:
    document = report_json(standard(), sheet(standard()))
    assert document["run"] == RUN
    assert document["code"] == "X7X0"
    assert document["command"] == ["python", "train.py"]
    assert document["started"] == "2025-11-30T14:05:09.000001Z"
    assert document["ended"] == "2025-11-30T14:05:45.000001Z"
    assert document["price"] == {
        "amount": "0.30",
        "currency": "EUR",
        "per": "h",
        "grade": "assumed",
    }
    assert document["seconds_per_unit"] == {
        "median": 4.41, "low": 4.37, "high": 4.44, "confidence": 0.9375,
    }  # fmt: skip
    assert document["cost_per_unit"]["marginal"] == "0.0003675"  # 0.30 x 4.41 / 3600
    assert document["cost_per_unit"]["all_in"] == "0.0005"
    assert document["grade"] == "assumed"
    assert document["grade_shares"] == {"assumed": 1.0}
    assert document["time_grades"]["waiting_data"] == "measured"
    assert document["why"]["bottleneck"] == "waiting_data"
    assert sum(document["phases"].values()) == pytest.approx(36)


def test_without_a_price_the_grade_is_that_of_the_time() -> None:
    view = view_of(header(), *busy(36), ends(5, 10), end(36))
    document = report_json(view, sheet(view))
    assert document["price"] is None
    assert document["cost_per_unit"] == dict.fromkeys(("marginal", "all_in", "low", "high"))
    assert document["grade"] == "measured"
    assert document["unknown"]["cost.total"].startswith("no price")


def test_every_number_can_be_explained_by_its_path() -> None:
    found = sheet(standard())
    document = report_json(standard(), found)
    for root in ("seconds_per_unit", "cost_per_unit", "cost", "time", "steady", "phases", "worth"):
        for name in document[root]:
            assert f"{root}.{name}" in found.figures
    for path in ("wall_s", "units", "coverage", "energy_j"):
        assert path in found.figures
