"""Power traces to the cheapest setting: the published vectors, and a small table worked by hand."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.inside import Inside

POWER = """\
dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power
flowers,small,8,sgd,100,360,100
flowers,small,8,sgd,200,180,250
flowers,small,16,sgd,100,300,110
"""
TRAIN = """\
dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch
flowers,small,8,sgd,0.1,1,0.5,2
flowers,small,8,sgd,0.1,1,0.9,4
flowers,small,8,sgd,0.1,2,0.5,3
flowers,small,8,sgd,0.1,2,0.9,nan
flowers,small,16,sgd,0.1,1,0.5,4
flowers,small,16,sgd,0.1,1,0.9,nan
other,small,8,sgd,0.1,1,0.5,nan
"""


@pytest.fixture
def traces(tmp_path: Path) -> list[str]:
    (tmp_path / "power.csv").write_text(POWER)
    (tmp_path / "train.csv").write_text(TRAIN)
    return ["--power-trace", "power.csv", "--train-trace", "train.csv"]


def _exact(ouvrage: Inside, *arguments: str) -> Any:
    said = ouvrage("unit-cost", *arguments, "--json")
    assert said.code == 0, said.err
    return json.loads(said.out, parse_float=Decimal)


def test_cost_of_an_epoch_and_of_a_target_with_its_failures(ouvrage: Inside, traces: list[str]):
    found = _exact(ouvrage, *traces, "--electricity", "0.36/kWh", "--rate", "0/h")
    assert found["configurations"][0] == {
        "dataset": "flowers",
        "network": "small",
        "batch_size": 8,
        "optimizer": "sgd",
        "power_limit_w": 100,
        "seconds_per_epoch": 360,
        "kwh_per_epoch": Decimal("0.01"),
        "cost_per_epoch": Decimal("0.0036"),
    }
    assert [(c["target"], c["batch_size"], c["power_limit_w"], c["cost"]) for c in found["cheapest"]] == [
        (None, 16, 100, Decimal("0.0033")),
        # Batch 8: two runs, 2 + 3 epochs, both reached it. Batch 16: 4 epochs.
        (Decimal("0.5"), 8, 100, Decimal("0.0036") * 5 / 2),
        # One run reached 0.9 in 4 epochs; the other missed it and cost at least its 3 epochs to 0.5.
        (Decimal("0.9"), 8, 100, Decimal("0.0036") * (4 + 3)),
    ]  # fmt: skip
    assert found["train_rows"] == {
        "total": 7,
        "never_reached": 3,
        "joined": 6,
        "joined_never_reached": 2,
    }


def test_owner_and_renter_stand_side_by_side(ouvrage: Inside, traces: list[str]):
    said = ouvrage("unit-cost", *traces, "--electricity", "0.36/kWh", "--rate", "2/h", "--plain")
    assert said.code == 0
    assert said.first == (
        "An epoch of flowers/small is cheapest at batch 16, 100 W for the owner (energy), "
        "at batch 8, 200 W for the renter (time)."
    )
    hardest = next(line for line in said.out.splitlines() if "flowers/small 0.9" in line)
    assert "batch 8, 100 W: 0.0252 EUR (assumed), failures 0.0108 of it (1 of 2 runs)" in hardest
    assert "assumption (assumed): a run that misses a target" in said.out
    assert "1 easier targets: --all" in said.out


def test_without_a_train_trace_there_are_no_targets(ouvrage: Inside, traces: list[str]):
    found = _exact(ouvrage, *traces[:2], "--electricity", "0/kWh", "--rate", "1/h")
    assert [c["target"] for c in found["cheapest"]] == [None]
    assert found["train_rows"] is None


@pytest.mark.parametrize(
    ("file", "line", "text"),
    [
        ("power.csv", 3, "flowers,small,8,sgd,200,soon,250"),
        ("power.csv", 3, "flowers,small,8,sgd,200,180"),
        ("power.csv", 4, "flowers,small,8,sgd,100,300,110"),
        ("power.csv", 2, "flowers,small,8,sgd,100,-1,100"),
        ("train.csv", 5, "flowers,small,8,sgd,0.1,2,0.9,never"),
        ("train.csv", 6, "flowers,sm\udcffall,8,sgd,0.1,2,0.9,1"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(
    ouvrage: Inside, traces: list[str], tmp_path: Path, file: str, line: int, text: str
):
    lines = (tmp_path / file).read_text().splitlines()
    lines[line - 1] = text
    (tmp_path / file).write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    said = ouvrage("unit-cost", *traces, "--electricity", "0.25/kWh", "--rate", "0/h")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error[trace/row]")
    assert f"{file}:{line}" in said.err


@pytest.mark.parametrize(
    ("prices", "code"),
    [
        (["--electricity", "0.25/h", "--rate", "0/h"], "electricity/unit"),
        (["--electricity", "0.25", "--rate", "0/h"], "electricity/unreadable"),
        (["--electricity", "-1/kWh", "--rate", "0/h"], "electricity/negative"),
        (["--electricity", "0.25 EUR/kWh", "--rate", "2 USD/h"], "price/two-currencies"),
        (["--electricity", "0.25/kWh", "--rate", "2/kWh"], "price/unknown-unit"),
        (["--electricity", "0.25/kWh"], "command/usage"),
    ],
)
def test_prices_that_cannot_be_used_are_refused(
    ouvrage: Inside, traces: list[str], prices: list[str], code: str
):
    said = ouvrage("unit-cost", *traces, *prices)
    assert said.code == 2
    assert said.err.startswith(f"error[{code}]")
    assert "hint:" in said.err


# Published vectors, made from the traces of Zeus (NSDI 2023, Apache-2.0).


@pytest.fixture(scope="module")
def zeus() -> list[str]:
    place = Path(os.environ.get("OUVRAGE_DATA", "")) / "zeus"
    if not os.environ.get("OUVRAGE_DATA") or not place.is_dir():
        pytest.skip("OUVRAGE_DATA is not set to a directory with zeus/ in it")
    return [
        *("--power-trace", str(place / "summary_power_v100.csv")),
        *("--train-trace", str(place / "summary_train.csv")),
    ]


def _cheapest(found: Any, dataset: str, target: Decimal | None) -> tuple[int, int, Decimal]:
    (one,) = (c for c in found["cheapest"] if (c["dataset"], c["target"]) == (dataset, target))
    return one["batch_size"], one["power_limit_w"], round(one["cost"], 6)


def test_the_zeus_vectors_for_an_owner(ouvrage: Inside, zeus: list[str]):
    found = _exact(ouvrage, *zeus, "--electricity", "0.25/kWh", "--rate", "0/h")
    kwh = {
        (c["batch_size"], c["power_limit_w"]): round(c["kwh_per_epoch"], 4)
        for c in found["configurations"]
        if (c["dataset"], c["network"]) == ("imagenet", "resnet50")
    }
    assert kwh[256, 150] == Decimal("0.1666")
    assert kwh[8, 250] == Decimal("0.3612")
    assert found["train_rows"] == {
        "total": 3759,
        "never_reached": 849,
        "joined": 3366,
        "joined_never_reached": 799,
    }
    assert _cheapest(found, "imagenet", None) == (256, 150, Decimal("0.041658"))
    assert _cheapest(found, "squad", Decimal("84.5")) == (8, 125, Decimal("0.104370"))


def test_the_zeus_vector_for_a_renter(ouvrage: Inside, zeus: list[str]):
    found = _exact(ouvrage, *zeus, "--electricity", "0.25/kWh", "--rate", "2/h")
    assert _cheapest(found, "imagenet", None) == (256, 250, Decimal("2.006533"))


@pytest.mark.parametrize("number", ["1e999999999", "1e-999999999", "9" * 5000, "\u0661", "1/2"])
def test_a_number_that_cannot_be_is_named_by_its_line_and_fills_no_memory(
    ouvrage: Inside, traces: list[str], tmp_path: Path, number: str
):
    (tmp_path / "power.csv").write_text(POWER + f"flowers,small,32,sgd,100,300,{number}\n")
    said = ouvrage("unit-cost", *traces, "--electricity", "1/kWh", "--rate", "0/h")
    assert (said.code, "power.csv:5" in said.err) == (2, True)


def test_a_quote_that_is_not_closed_is_named_by_its_own_line(
    ouvrage: Inside, traces: list[str], tmp_path: Path
):
    (tmp_path / "power.csv").write_text(POWER + 'flowers,small,32,sgd,100,300,"1\n')
    said = ouvrage("unit-cost", *traces, "--electricity", "1/kWh", "--rate", "0/h")
    assert (said.code, "power.csv:5" in said.err) == (2, True)
