"""What must hold on a machine with a real GPU and its driver; skipped, with the reason, elsewhere.

    OUVRAGE_REAL_GPU=1 python -m pytest tests/gpu/test_real_driver.py

Nothing here is evidence until it has run somewhere: the other tests run on the stand-in library.
"""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from ouvrage.adapters import nvml_place
from tests.gpu.test_meter import Running, notes, readings
from tests.support.meter import Meter, until

WHY = "no real driver: /dev/nvidiactl is not here, or the library of this environment is a stand-in"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (
            os.environ.get("OUVRAGE_REAL_GPU")
            or (Path("/dev/nvidiactl").exists() and nvml_place.is_here({}))
        ),
        reason=WHY,
    ),
]


@pytest.fixture
def real(tmp_path: Path) -> Meter:
    return Meter(tmp_path / "home")


def test_every_gpu_is_read_and_its_figures_can_be(real: Meter, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    running = Running(real, "--report", str(target))
    running.until_read(5)
    running.end()
    report = json.loads(target.read_text())
    assert report["devices"], notes(real)
    for device in report["devices"]:
        assert device["uuid"]
        assert device["name"]
        assert device["memory_bytes"] > 1 << 30
        if not device["mig"]:
            assert 0 <= device["busy"] <= 1
        if device["energy_j"] is not None:
            assert 1 < device["power_w"] < 2000
            assert device["coverage"] > 0.5
    assert not [code for code in notes(real) if code.startswith("gpu/")]


def test_the_counter_and_the_power_readings_agree(real: Meter) -> None:
    running = Running(real)
    running.until_read(20)
    running.end()
    rows = readings(real)
    told = {name for row in rows for name, value in row.items() if value is not None}
    power = next((n for n in ("power_average_mw", "power_usage_mw") if n in told), None)
    if "energy_mj" not in told or power is None:
        pytest.skip("this card tells energy by one road only")
    first, last = rows[1], rows[-1]
    counted = last["energy_mj"] - first["energy_mj"]
    drawn = sum((a[power] + b[power]) / 2 * (b["t"] - a["t"]) / 1e6 for a, b in pairwise(rows[1:]))
    assert counted == pytest.approx(drawn, rel=0.25)


def test_the_reader_costs_little(real: Meter) -> None:
    running = Running(real)
    probe = running.probe()
    running.until_read(5)
    begun = spent(probe)
    running.until_read(25)
    used = (spent(probe) - begun) / 20
    running.end()
    until(lambda: not os.path.exists(f"/proc/{probe}"), "the end of the reading process")
    assert used < 0.02, "of a core, the driver's own time included"


def spent(pid: int) -> float:
    """Processor seconds of a process."""
    words = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(words[0]) / 1e9
