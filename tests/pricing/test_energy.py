"""Figures of energy: never mixed into the price, never added twice, unknown rather than partial."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ouvrage.evidence.figures import Sheet
from ouvrage.evidence.laws import sheet_breaches
from ouvrage.ledger.facts import Recorded
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.pricing.report import report_json, report_text
from ouvrage.pricing.unit_cost import sheet_of
from tests.support.runs import (
    AS_OF,
    CHEAP,
    Line,
    S,
    busy,
    end,
    ends,
    gpu,
    gpus,
    header,
    recorded,
    written,
)

ELECTRICITY: Line = {"k": "electricity", "amount": "0.25", "currency": "EUR"}


def told(*lines: Line, **changes: Any) -> tuple[RunView, Sheet, list[Recorded]]:
    records = recorded(written(header(price=CHEAP, **changes), *busy(40), *lines, end(40)))
    (view,) = run_views(records).values()
    return view, sheet_of(view, AS_OF), records


def watts(number: int, power: int) -> list[Line]:
    return gpus(40, number, energy_mj=lambda t: power * 1000 * t, busy_percent=50)


def meter(number: int, kind: str, power: int) -> list[Line]:
    times = [t * S for t in range(41)]
    introduced = {"k": "meter", "meter": number, "kind": kind, "name": "m", "covers": "c"}
    counted = [power * t for t in times]
    return [introduced, {"k": "meters", "meter": number, "t": times, "c": {"energy_uj": counted}}]


def test_the_sum_over_gpus_with_method_and_coverage() -> None:
    view, sheet, records = told(
        gpu(0), gpu(1), *watts(0, 300), *watts(1, 100), ends(10, 20, 30, 40)
    )
    assert sheet.number("energy_j") == 400 * 40
    assert sheet.number("energy.coverage") == 1
    assert sheet.number("energy_per_unit.all_in_j") == 400 * 10
    assert sheet.number("energy_per_unit.marginal_j") == 400 * 10
    assert "energy counter" in sheet["devices.0.energy_j"].method
    assert not list(sheet_breaches(sheet, {entry.fact.key for entry in records}))
    report = report_json(view, sheet)
    assert report["energy_j"] == 16000
    assert [device["power_w"] for device in report["devices"]] == [300, 100]
    assert report["devices"][0]["memory_max_bytes"] is None
    text = report_text(view, sheet, plain=True)
    assert "16.0 kJ (measured), 4.00 kJ (measured) per epoch" in text


def test_one_silent_card_of_two_makes_the_sum_unknown() -> None:
    _, sheet, _ = told(gpu(0), gpu(1), *watts(0, 300), *gpus(40, 1, busy_percent=10))
    assert sheet.number("energy_j") is None
    assert sheet["energy_j"].why == "GPU 1 told neither energy nor power"
    assert sheet.number("devices.0.energy_j") == 300 * 40
    assert sheet.number("energy_per_unit.all_in_j") is None


def test_without_gpus_nothing_is_claimed() -> None:
    view, sheet, _ = told(ELECTRICITY)
    report = report_json(view, sheet)
    assert (report["energy_j"], report["devices"]) == (None, [])
    assert report["energy"]["cost"] == {"total": None, "per_unit": None}
    assert "not known" in report_text(view, sheet, plain=True)


def test_the_price_of_energy_stays_out_of_the_cost() -> None:
    _, bare, _ = told(gpu(0), *watts(0, 300), ends(10, 20, 30, 40))
    view, sheet, _ = told(gpu(0), *watts(0, 300), ends(10, 20, 30, 40), ELECTRICITY)
    for path in ("cost.total", "cost_per_unit.marginal", "cost_per_unit.all_in"):
        assert sheet.number(path) == bare.number(path)
    paid = Fraction(300 * 40, 3_600_000) / 4
    assert sheet.number("cost_of_energy.total") == paid
    assert sheet.number("cost_of_energy.per_unit") == paid / 4
    cost = sheet["cost_of_energy.total"]
    assert cost.grade is not None
    assert (cost.grade.word, cost.inputs) == ("assumed", ("electricity.amount", "energy_j"))
    assert view.grade.word == "measured", "an assumed price makes no measurement worse"


@pytest.mark.parametrize(
    ("kinds", "joules", "inputs"),
    [
        (("rapl",), (300 + 50) * 40, ("energy_j", "energy.host_j")),
        (("rapl", "wall"), 900 * 40, ("energy.wall_j",)),
        (("wall",), 900 * 40, ("energy.wall_j",)),
    ],
)
def test_what_contains_another_is_never_added_to_it(
    kinds: tuple[str, ...], joules: int, inputs: tuple[str, ...]
) -> None:
    power = {"rapl": 50, "wall": 900}
    lines = [line for n, kind in enumerate(kinds) for line in meter(n, kind, power[kind])]
    _, sheet, _ = told(gpu(0), *watts(0, 300), *lines, ELECTRICITY)
    assert sheet.number("energy_j") == 300 * 40
    for name, kind in (("host", "rapl"), ("wall", "wall")):
        expected = power[kind] * 40 if kind in kinds else None
        assert sheet.number(f"energy.{name}_j") == expected
    assert sheet.number("cost_of_energy.total") == Fraction(joules, 3_600_000) / 4
    assert sheet["cost_of_energy.total"].inputs == ("electricity.amount", *inputs)


def test_a_divided_card_says_whose_power_it_is() -> None:
    view, sheet, _ = told(gpu(0, mig=1), *gpus(40, power_average_mw=100_000))
    assert "the whole card's" in sheet["devices.0.energy_j"].method
    assert sheet["devices.0.busy"].why == "it cannot be told of a divided card (MIG)"
    assert "divided (MIG): its load is not told" in report_text(view, sheet, plain=True)


def test_little_coverage_is_said_and_the_rest_is_assumed() -> None:
    lines = gpus(10, energy_mj=lambda t: 300_000 * t)
    view, sheet, _ = told(gpu(0), *lines, ends(10, 20, 30, 40))
    assert sheet.number("energy.coverage") == Fraction(1, 4)
    assert "over 25.0 % of the run" in sheet["devices.0.energy_j"].method
    assert "in 25 % of the run" in report_text(view, sheet, plain=True)
    assert sheet.number("energy_per_unit.marginal_j") is None, "none of it in the steady phase"


def test_many_cards_are_told_together() -> None:
    lines = [line for n in range(16) for line in (gpu(n), *watts(n, 100 + n))]
    view, sheet, _ = told(*lines)
    text = report_text(view, sheet, plain=True)
    assert "16 GPUs" in text
    assert "busy 50 % (measured) on average (50 to 50 %)" in text
    assert "GPU 3" not in text
