"""What a BMC says, judged: sensors, its log, its restore policy; each rule with what it keeps new work from."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ouvrage.health.bmc import BmcLook, check_bmc
from ouvrage.model.health import CheckResult
from ouvrage.model.power import LogEntry, LogPage, Reading
from tests.health.rules import BOUNDS

NOW = 1_790_000_000_000_000
HOUR = 3_600_000_000


def reading(verdict: str, name: str = "CPU Temp", value: str | None = "48") -> Reading:
    return Reading(
        name=name,
        value=None if value is None else Decimal(value),
        unit="degC" if value else "",
        verdict=verdict,
    )


def entry(verdict: str, hours_ago: int | None) -> LogEntry:
    at_us = None if hours_ago is None else NOW - hours_ago * HOUR
    return LogEntry(id="7", at_us=at_us, verdict=verdict, sensor="Power Supply", words="AC lost")


def judged(
    *, log: tuple[LogEntry, ...] | None = (), used: int | None = 3, **given: Any
) -> CheckResult:
    page = None if log is None else LogPage(entries=log, cursor=None, gap=False, used_percent=used)
    usual: dict[str, Any] = {
        "state": "on",
        "sensors": (reading("OK"),),
        "restore": "last",
        "wanted": None,
        "draws": None,
    }
    return check_bmc(BmcLook(log=page, **{**usual, **given}), NOW, BOUNDS)


def test_well() -> None:
    result = judged()
    assert (result.verdict, result.action) == ("OK", "none")
    assert (
        result.reasons[0]
        == "it is on; 1 sensors, none complains; 0 entries in its log, none grave and new; after a power cut it is as it was before"
    )
    assert {item.name: item.value for item in result.evidence}["restore_policy"] == "last"


def test_a_sensor_is_what_its_bmc_calls_it() -> None:
    result = judged(
        sensors=(
            reading("WARN", "Inlet"),
            reading("CRITICAL", "GPU3 Temp", "97"),
            reading("UNKNOWN", "x"),
        )
    )
    assert (result.verdict, result.rule, result.action) == ("CRITICAL", "bmc-sensor", "look")
    assert result.reasons[0] == "GPU3 Temp: 97 degC, which its BMC calls critical"
    assert len(result.reasons) == 2


def test_the_log_counts_for_a_day() -> None:
    assert judged(log=(entry("CRITICAL", 23),)).rule == "bmc-event"
    for old in (entry("CRITICAL", 25), entry("CRITICAL", None), entry("OK", 1)):
        assert judged(log=(old,)).verdict == "OK"
    assert judged(used=90).rule == "bmc-log-full"
    assert judged(log=None).verdict == "OK"


def test_staying_off_is_a_warning_unless_it_is_wanted() -> None:
    result = judged(restore="off")
    assert (result.verdict, result.rule) == ("WARN", "bmc-restore")
    assert judged(restore="off", wanted="off").verdict == "OK"
    assert (
        judged(restore="last", wanted="on").reasons[0]
        == "after a power cut it is as it was before; its owner wants that it starts"
    )
    assert judged(restore=None, wanted="on").verdict == "OK"  # what is not told is no fault
