"""A disk is judged by its values, not by its own summary of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.health.disks import check_disk
from tests.health.rules import BOUNDS


def nvme(exit_status: int = 0, passed: bool = True, **log: Any) -> dict[str, Any]:
    """What smartctl prints for a drive that is well, with changes."""
    well = {
        "critical_warning": 0, "temperature": 40, "available_spare": 100,
        "available_spare_threshold": 10, "percentage_used": 3, "data_units_read": 7,
        "data_units_written": 9, "host_reads": 8, "host_writes": 8, "power_cycles": 12,
        "power_on_hours": 4000, "media_errors": 0,
    }  # fmt: skip
    return {
        "smartctl": {"exit_status": exit_status},
        "device": {"name": "/dev/nvme0"},
        "model_name": "made for this test",
        "smart_status": {"passed": passed},
        "nvme_smart_health_information_log": {**well, **log},
    }


@pytest.mark.parametrize(
    ("given", "verdict", "rule"),
    [
        (nvme(), "OK", ""),
        # As facebookresearch/gcm's learn_bad_nvme9: every summary says healthy.
        (nvme(available_spare=0, available_spare_threshold=11), "CRITICAL", "disk-spare"),
        (nvme(available_spare=10), "OK", ""),
        (nvme(available_spare=9), "CRITICAL", "disk-spare"),
        (nvme(critical_warning=1), "CRITICAL", "nvme-warning-bit-0"),
        (nvme(critical_warning=2), "WARN", "nvme-warning-bit-1"),
        (nvme(critical_warning=4), "CRITICAL", "nvme-warning-bit-2"),
        (nvme(critical_warning=8), "CRITICAL", "nvme-warning-bit-3"),
        (nvme(critical_warning=16), "CRITICAL", "nvme-warning-bit-4"),
        (nvme(percentage_used=80), "OK", ""),
        (nvme(percentage_used=81), "WARN", "disk-used"),
        (nvme(percentage_used=101), "CRITICAL", "disk-used"),
        # As AnalogJ/scrutiny's smart-nvme-failed: seven media errors, and "passed".
        (nvme(media_errors=7), "WARN", "disk-media"),
        (nvme(temperature=71), "WARN", "disk-hot"),
        (nvme(passed=False), "CRITICAL", "disk-failed"),
        (nvme(exit_status=4), "OK", ""),
        (nvme(exit_status=64), "OK", ""),
        (nvme(exit_status=8), "CRITICAL", "smartctl-exit-bit-3"),
        (nvme(exit_status=16), "CRITICAL", "smartctl-exit-bit-4"),
        (nvme(exit_status=32), "WARN", "smartctl-exit-bit-5"),
        (nvme(exit_status=128), "WARN", "smartctl-exit-bit-7"),
        (nvme(exit_status=2), "UNKNOWN", "smartctl-exit-bit-1"),
        (nvme(exit_status=1), "UNKNOWN", "smartctl-exit-bit-0"),
        # As facebookresearch/gcm's cache_slot2_bad_smartdata: hours, and nothing else.
        (
            nvme(available_spare=0, available_spare_threshold=0, percentage_used=0, data_units_read=0,
                 data_units_written=0, host_reads=0, host_writes=0, power_cycles=0, power_on_hours=6331),
            "UNKNOWN",
            "disk-implausible",
        ),
        (nvme(available_spare=250), "UNKNOWN", "disk-implausible"),
        (nvme(available_spare="what"), "UNKNOWN", "disk-not-told"),
    ],
)  # fmt: skip
def test_an_nvme_drive(given: dict[str, Any], verdict: str, rule: str) -> None:
    result = check_disk(given, BOUNDS)
    assert (result.verdict, result.rule) == (verdict, rule), result
    assert result.device == "/dev/nvme0"
    assert result.reasons


def test_media_errors_that_grow_are_critical() -> None:
    result = check_disk(nvme(media_errors=8), BOUNDS, before=nvme(media_errors=7))
    assert (result.verdict, result.rule) == ("CRITICAL", "disk-media-grew")
    assert check_disk(nvme(media_errors=7), BOUNDS, before=nvme(media_errors=7)).verdict == "WARN"


@pytest.mark.parametrize("warning", [0, {"value": 0, "available_spare": 0}])
def test_nvme_clis_log_old_and_new(warning: object) -> None:
    log = {
        "critical_warning": warning, "temperature": 313, "avail_spare": 100, "spare_thresh": 10,
        "percent_used": 2, "data_units_read": "1,234,567", "data_units_written": "7", "power_cycles": 3,
        "power_on_hours": 900, "media_errors": 0,
    }  # fmt: skip
    good = check_disk(log, BOUNDS, name="nvme0")
    assert good.verdict == "OK"
    assert ("temperature", "40") in {(item.name, item.value) for item in good.evidence}
    assert check_disk({**log, "avail_spare": 3}, BOUNDS).verdict == "CRITICAL"


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({}, "UNKNOWN"),
        ([], "UNKNOWN"),
        ("text", "UNKNOWN"),
        ({"smartctl": {"exit_status": 4}, "device": {"name": "/dev/nvme7"}}, "UNKNOWN"),
        ({"smartctl": {"exit_status": 8}}, "CRITICAL"),
        ({"smart_status": {"passed": False}}, "CRITICAL"),
    ],
)
def test_a_drive_that_tells_nothing_is_never_well(given: object, verdict: str) -> None:
    assert check_disk(given, BOUNDS).verdict == verdict


def ata(
    id: int, value: int = 100, thresh: int = 0, raw: int = 0, prefail: bool = True, failed: str = ""
) -> dict[str, Any]:
    row = {
        "id": id, "name": f"attribute {id}", "value": value, "thresh": thresh, "when_failed": failed,
        "flags": {"prefailure": prefail}, "raw": {"value": raw},
    }  # fmt: skip
    return {
        "smartctl": {"exit_status": 4},
        "smart_status": {"passed": True},
        "ata_smart_attributes": {"table": [row]},
    }


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (ata(9), "OK"),
        (ata(5, value=10, thresh=10), "CRITICAL"),
        (ata(231, value=10, thresh=10, prefail=False), "WARN"),
        (ata(5, failed="past"), "WARN"),
        (ata(197, raw=3), "WARN"),
        (ata(198, raw=1), "WARN"),
        (ata(5, raw=3), "OK"),
    ],
)
def test_a_sata_drive(given: dict[str, Any], verdict: str) -> None:
    assert check_disk(given, BOUNDS).verdict == verdict


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["smartctl", "device", "smart_status", "ata_smart_attributes",
                         "nvme_smart_health_information_log", "available_spare", "avail_spare"]),
        JSON | st.fixed_dictionaries({"table": st.lists(JSON, max_size=2), "available_spare": JSON}),
    )
)  # fmt: skip
def test_whatever_json_it_is_given_it_is_judged_and_never_well(given: dict[str, Any]) -> None:
    assert check_disk(given, BOUNDS).verdict in ("UNKNOWN", "CRITICAL", "WARN")


DATA = Path(os.environ.get("OUVRAGE_DATA", ""), "smartctl")


@pytest.mark.skipif(not os.environ.get("OUVRAGE_DATA"), reason="OUVRAGE_DATA is not set")
def test_real_drives() -> None:
    found = {
        path.name: check_disk(json.loads(path.read_text()), BOUNDS).verdict
        for path in sorted(DATA.glob("*.json"))
    }
    assert len(found) == 10
    assert {name for name, verdict in found.items() if verdict != "OK"} == {
        "gcm_learn_bad_nvme9_nvme9.json"
    }
    assert found["gcm_learn_bad_nvme9_nvme9.json"] == "CRITICAL"
