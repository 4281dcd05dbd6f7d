"""A GPU's counters: what is a fault, what is history, what is nothing at all; and pages that hold them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ouvrage.adapters.gpu_metrics import StalePage, gpus_on_page
from ouvrage.health.gpus import check_gpu, check_gpus
from ouvrage.model.health import CheckResult, Seen
from tests.health.rules import RULES

WELL = {
    "recovery_action": 0,
    "remap_failure": 0,
    "ecc_volatile_uncorrected": 0,
    "temperature_c": 50,
}


def gpu(fault: str | None = None, **values: int | str | None) -> Seen:
    return Seen(
        probe="gpu", device="GPU-1", at_us=0, boot="b", monotonic_us=0,
        values={**WELL, **values} if fault is None else {}, fault=fault,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "verdict", "rule", "action", "at_drain"),
    [
        ({}, "OK", "", "none", "none"),
        ({"slow_sw_power_cap": 1}, "OK", "", "none", "none"),
        ({"ecc_aggregate_uncorrected": 14}, "OK", "", "none", "none"),
        ({"remap_uncorrectable": 3}, "OK", "", "none", "none"),
        ({"recovery_action": 1}, "CRITICAL", "recovery-action", "gpu_reset", "none"),
        ({"recovery_action": 77}, "UNKNOWN", "recovery-action", "person", "none"),
        ({"remap_failure": 1}, "CRITICAL", "remap-failure", "replace", "none"),
        ({"remap_uncorrectable": 512}, "CRITICAL", "remap-used-up", "replace", "none"),
        ({"remap_pending": 1}, "WARN", "remap-pending", "none", "gpu_reset"),
        ({"ecc_volatile_uncorrected": 2}, "WARN", "ecc-volatile", "none", "gpu_reset"),
        ({"ecc_volatile_corrected": 20_000_001}, "WARN", "ecc-corrected", "look", "none"),
        ({"sram_threshold_exceeded": 1}, "CRITICAL", "sram-threshold", "replace", "none"),
        ({"retired_pages": 11}, "WARN", "pages-retired", "look", "none"),
        ({"slow_hw_power_brake": 1, "slow_hw": 1}, "WARN", "slow-hw-power-brake", "look", "none"),
        ({"slow_hw_thermal": 1}, "WARN", "slow-hw-thermal", "look", "none"),
        ({"temperature_c": 85}, "WARN", "gpu-hot", "look", "none"),
        ({"temperature_c": 95}, "CRITICAL", "gpu-hot", "look", "none"),
        ({"temperature_margin_c": 0}, "WARN", "gpu-margin", "look", "none"),
        ({"temperature_margin_c": -4}, "WARN", "gpu-margin", "look", "none"),
        ({"pcie_width": 8, "pcie_width_max": 16}, "WARN", "pcie-narrow", "look", "none"),
        ({"last_xid": 31}, "OK", "", "none", "none"),
        ({"last_xid": 79}, "WARN", "last-xid", "look", "none"),
        ({"lost": 1, "recovery_action": None}, "CRITICAL", "gpu-lost", "reboot", "none"),
        ({"recovery_action": None, "remap_failure": None, "ecc_volatile_uncorrected": None}, "UNKNOWN", "gpu-not-told", "look", "none"),
    ],
)  # fmt: skip
def test_a_gpus_values(
    values: dict[str, int | None], verdict: str, rule: str, action: str, at_drain: str
) -> None:
    result = check_gpu(gpu(**values), RULES)
    assert (result.verdict, result.rule) == (verdict, rule), result
    assert (result.action, result.at_drain) == (action, at_drain)


def test_the_most_believed_of_the_worst_decides() -> None:
    result = check_gpu(gpu(recovery_action=2, remap_failure=1, lost=1, remap_pending=1), RULES)
    assert (result.rule, result.action, result.at_drain) == (
        "recovery-action",
        "reboot",
        "gpu_reset",
    )
    result = check_gpu(gpu(remap_failure=1, lost=1), RULES)
    assert result.rule == "gpu-lost"


def test_an_uncorrected_error_more_than_before_is_critical() -> None:
    result = check_gpu(gpu(ecc_volatile_uncorrected=3), RULES, {"ecc_volatile_uncorrected": 2})
    assert (result.verdict, result.action) == ("CRITICAL", "gpu_reset")
    same = check_gpu(gpu(ecc_volatile_uncorrected=3), RULES, {"ecc_volatile_uncorrected": 3})
    assert same.verdict == "WARN"


def test_a_gpu_that_does_not_answer_is_unknown() -> None:
    assert check_gpu(gpu(fault="the probe hangs"), RULES).verdict == "UNKNOWN"


@pytest.mark.parametrize(
    ("there", "expected", "verdict"),
    [(2, 2, "OK"), (1, 2, "CRITICAL"), (3, 2, "WARN"), (0, 2, "CRITICAL"), (0, None, "UNKNOWN")],
)
def test_as_many_gpus_as_are_expected(there: int, expected: int | None, verdict: str) -> None:
    results = check_gpus([gpu()] * there, RULES, expected)
    assert {r.verdict for r in results} - {"OK"} == {verdict} - {"OK"}


def page(*lines: str) -> list[CheckResult]:
    return check_gpus(gpus_on_page("\n".join(lines), 0, ""), RULES)


def test_a_blank_is_no_value() -> None:
    blanks = [
        f'DCGM_FI_DEV_{name}{{gpu="0",UUID="GPU-1"}} 9223372036854775794'
        for name in ("XID_ERRORS", "ROW_REMAP_FAILURE", "ECC_DBE_VOL_TOTAL", "GPU_TEMP")
    ]
    (result,) = page(*blanks)
    assert result.verdict == "UNKNOWN"
    assert {"not told"} == {item.value for item in result.evidence}
    (other,) = page(*blanks, 'DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-1"} 0')
    assert other.verdict == "OK"
    (told,) = page(*blanks[:3], 'DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="0",UUID="GPU-1"} 1')
    assert told.verdict == "CRITICAL"


def test_dcgms_reasons_are_bits_and_a_power_cap_is_none() -> None:
    well = 'DCGM_FI_DEV_XID_ERRORS{UUID="GPU-1"} 0'
    (cap,) = page(well, 'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{UUID="GPU-1"} 4')
    assert cap.verdict == "OK"
    (brake,) = page(well, 'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{UUID="GPU-1"} 136')
    assert brake.rule == "slow-hw-power-brake"


def test_a_page_whose_exporter_could_not_read_is_stale() -> None:
    with pytest.raises(StalePage):
        gpus_on_page(
            'nvidia_smi_gpu_recovery_action{uuid="1"} 0\nnvidia_smi_last_collect_success 0', 0, ""
        )


def test_a_page_without_a_gpu_is_unknown() -> None:
    assert [result.verdict for result in page("go_threads 7", "")] == ["UNKNOWN"]


def test_instances_of_one_gpu_erase_nothing() -> None:
    (result,) = page(
        'DCGM_FI_DEV_ROW_REMAP_FAILURE{UUID="GPU-1",GPU_I_ID="1"} 1',
        'DCGM_FI_DEV_ROW_REMAP_FAILURE{UUID="GPU-1",GPU_I_ID="2"} 9223372036854775794',
        'DCGM_FI_DEV_ROW_REMAP_FAILURE{UUID="GPU-1",GPU_I_ID="3"} 0',
    )
    assert result.verdict == "CRITICAL"


DATA = Path(os.environ.get("OUVRAGE_DATA", ""), "gpu_metrics")


@pytest.mark.skipif(not os.environ.get("OUVRAGE_DATA"), reason="OUVRAGE_DATA is not set")
def test_real_pages() -> None:
    pages = sorted(DATA.glob("*.metrics"))
    assert len(pages) == 5
    for path in pages:
        (result,) = page(*path.read_text().splitlines())
        assert (result.verdict, result.action) == ("OK", "none"), path.name
        told = {item.name: item.value for item in result.evidence}
        assert told["recovery_action"] == "0"
        assert ("remap_failure" in told) is not any(word in path.name for word in ("mig", "4080"))
