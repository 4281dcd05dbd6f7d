"""From an empty home to what a unit cost and what the GPUs drew, on the stand-in library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.home import Home
from tests.support.nvml import Cards, build, compiler

pytestmark = pytest.mark.slow
TRAIN = """
import time
for epoch in range(1, 7):
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        pass
    print(f"Epoch {epoch}/6 loss 0.1", flush=True)
"""


@pytest.fixture
def machine(ouvrage: Home, tmp_path: Path) -> Home:
    """A home on a machine with two GPUs, one of them too hot."""
    if compiler() is None:
        pytest.skip("no C compiler here to build the stand-in for libnvidia-ml.so.1")
    cards = Cards(build(tmp_path), tmp_path / "state")
    cards.set(
        count=2, gpu0__name="NVIDIA H100 80GB HBM3", gpu0__util_gpu=40, gpu0__power_mw=388_000,
        gpu0__memory_used=41 << 30, gpu1__util_gpu=30, gpu1__clock_sm_mhz=990,
        gpu1__clock_reasons=0x40,
    )  # fmt: skip
    return Home(ouvrage.path, {**ouvrage.environment, **cards.environment})


def test_from_an_empty_home_to_cost_and_energy_of_an_epoch(machine: Home, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    words = ("--price", "2.00/h", "--electricity", "0.25/kWh", "--label", "gpu")
    said = machine("run", *words, "--", sys.executable, "-u", str(tmp_path / "train.py"))
    assert said.code == 0
    assert "NVIDIA H100 80GB HBM3, busy 40 %" in said.err
    assert "hardware thermal" in said.err
    assert "EUR/kWh" in said.err

    report: dict[str, Any] = machine("report", "gpu", "--json").json
    assert report["units"] == 6
    first, second = report["devices"]
    assert (first["busy"], second["throttled"]) == (0.4, 1)
    assert first["energy_j"] == pytest.approx(388 * first["coverage"] * report["wall_s"], rel=1e-3)
    assert report["energy_j"] == pytest.approx(first["energy_j"] + second["energy_j"])
    energy = report["energy"]
    assert energy["per_unit"]["marginal_j"] > 0
    assert float(energy["cost"]["total"]) == pytest.approx(report["energy_j"] / 3.6e6 * 0.25)
    wall = report["wall_s"]
    assert float(report["cost"]["total"]) == pytest.approx(2 * wall / 3600, rel=1e-4)
    # on a machine that others keep busy it waited for a core even more than its GPU for it
    assert report["why"]["bottleneck"] in ("waiting_data", "waiting_cpu")
    assert report["why"]["grade"] == "assumed"
    assert report["time"]["waiting_data"] > 0

    page = tmp_path / "report.html"
    assert machine("report", "gpu", "--html", str(page)).code == 0
    assert "Load of the 2 GPUs in percent" in page.read_text()
    assert "Power of the 2 GPUs in watts" in page.read_text()
    explained = machine("explain", "gpu:energy_j")
    assert "integrated from its average-power readings" in explained.out
    assert "run.gpu_window" in explained.out
    assert machine("verify").code == 0

    carried = tmp_path / "run.ouvrage"
    assert machine("run", "export", "gpu", str(carried)).code == 0
    elsewhere = Home(
        tmp_path / "elsewhere", {**machine.environment, "OUVRAGE_HOME": str(tmp_path / "elsewhere")}
    )
    assert elsewhere("run", "import", str(carried)).code == 0
    assert elsewhere("report", "gpu", "--json").json["devices"] == report["devices"]


def test_what_is_no_price_of_energy_or_no_plug_is_refused(ouvrage: Home) -> None:
    for words, code in (
        (("--electricity", "0.25"), "electricity/unreadable"),
        (("--electricity", "0.25/h"), "electricity/unit"),
        (("--electricity", "-1/kWh"), "electricity/negative"),
        (("--electricity", "0.25 USD/kWh", "--currency", "EUR"), "price/two-currencies"),
        (("--wall-meter", "plug"), "run/wall-meter"),
    ):
        said = ouvrage("run", *words, "--", "true")
        assert (said.code, f"error[{code}]" in said.err) == (2, True), said
        assert not ouvrage.path.exists()
