"""The Xid table: every code, and the 26 on which public tables disagree, each with its choice."""

from __future__ import annotations

import pytest

from ouvrage.adapters.health_tables import thresholds_in, xid_table, xid_table_in
from ouvrage.base.errors import OuvrageError
from ouvrage.health.findings import Belief
from ouvrage.metering.xid import EITHER, HARMLESS, MACHINE, PROGRAM, RESET, XIDS
from tests.health.rules import RULES, judged, one, xid

# code: verdict, fence, action, at_drain. One row for each code of health notes 2.3 (15 rows of codes, 26 codes).
DISPUTED = {
    13: ("OK", "none", "restart_job", "none"),
    31: ("OK", "none", "restart_job", "none"),
    32: ("OK", "none", "restart_job", "none"),
    38: ("OK", "none", "none", "none"),
    44: ("OK", "none", "none", "none"),
    60: ("OK", "none", "restart_job", "none"),
    68: ("OK", "none", "restart_job", "none"),
    69: ("OK", "none", "restart_job", "none"),
    45: ("OK", "none", "none", "none"),
    63: ("WARN", "none", "none", "gpu_reset"),
    64: ("CRITICAL", "now", "gpu_reset", "none"),
    65: ("CRITICAL", "drain", "diagnostic", "none"),
    81: ("CRITICAL", "drain", "diagnostic", "none"),
    57: ("CRITICAL", "drain", "diagnostic", "none"),
    58: ("CRITICAL", "drain", "diagnostic", "none"),
    61: ("CRITICAL", "drain", "diagnostic", "none"),
    74: ("CRITICAL", "now", "gpu_reset", "none"),
    79: ("CRITICAL", "now", "reboot", "none"),
    92: ("WARN", "none", "look", "none"),
    94: ("WARN", "none", "restart_job", "gpu_reset"),
    109: ("CRITICAL", "now", "gpu_reset", "none"),
    119: ("CRITICAL", "now", "gpu_reset", "none"),
    120: ("CRITICAL", "now", "gpu_reset", "none"),
    121: ("WARN", "none", "look", "none"),
    143: ("CRITICAL", "now", "gpu_reset", "none"),
    160: ("OK", "none", "none", "none"),
}


@pytest.mark.parametrize("code", DISPUTED)
def test_a_disputed_code_asks_for_what_was_chosen_and_says_why(code: int) -> None:
    verdict, fence, action, at_drain = DISPUTED[code]
    result = one(xid(code))
    assert (result.verdict, result.action, result.at_drain) == (verdict, action, at_drain)
    assert xid_table().action_of(code).fence == fence
    assert xid_table().codes[code].dispute
    assert f"Xid {code}" in result.reasons[0]


def test_the_disputes_are_these_fifteen_rows_and_no_others() -> None:
    disputed = {code: row.dispute for code, row in xid_table().codes.items() if row.dispute}
    assert disputed.keys() == DISPUTED.keys()
    assert len(set(disputed.values())) == 15


def test_every_code_of_the_table_has_a_meaning_and_an_action() -> None:
    table = xid_table()
    assert len(table.codes) == 117
    for code, row in table.codes.items():
        assert row.meaning, code
        assert row.action == "decode" or row.action in table.actions, code
        assert row.scope in ("job", "gpu", "nvlink_domain", "node", "vm"), code
        assert set(row.elsewhere) <= {source.name for source in table.sources}, code


def test_no_fault_of_a_job_fences_anything() -> None:
    table = xid_table()
    for code, row in table.codes.items():
        if row.scope == "job":
            assert table.action_of(code).fence == "none", code


@pytest.mark.parametrize("code", [1, 17, 162_000, 999_999])
def test_a_code_that_is_not_listed_warns_and_keeps_new_work_away_without_killing(code: int) -> None:
    result = one(xid(code))
    assert result.verdict == "WARN"
    assert xid_table().action_of(code).fence == "drain"
    assert "not in the table" in result.reasons[0]


def test_a_storm_of_45_is_no_fault() -> None:
    storm = [xid(45, "pid=7, name=python, Ch 00000008", at=100 + at / 100) for at in range(11_760)]
    result = one(*storm)
    assert result.verdict == "OK"
    assert "(11760 lines)" in result.reasons[0]


def test_109_of_one_program_on_two_gpus_at_once_is_the_programs_fault() -> None:
    lines = [xid(109, pci=f"PCI:0000:{bus}:00") for bus in ("1b", "9b")]
    assert [result.verdict for result in judged(*lines)] == ["OK", "OK"]
    later = [lines[0], xid(109, pci="PCI:0000:9b:00", at=900.0)]
    assert {result.verdict for result in judged(*later)} == {"CRITICAL"}


def test_143_is_reset_once_and_then_inspected() -> None:
    twice = one(xid(143, at=100.0), xid(143, at=4000.0))
    assert "came 2 times" in " ".join(twice.reasons)
    assert twice.verdict == "CRITICAL"


def test_94_five_times_in_a_day_is_inspected() -> None:
    four = [xid(94, at=1000.0 * n) for n in range(1, 5)]
    assert one(*four).verdict == "WARN"
    five = one(*four, xid(94, at=5000.0))
    assert (five.verdict, five.action) == ("CRITICAL", "diagnostic")


def test_five_faults_in_a_day_that_need_a_reset_call_a_person() -> None:
    lines = [xid(code, at=1000.0 * n) for n, code in enumerate((48, 62, 95, 110, 140), 1)]
    assert one(*lines).action == "person"
    assert one(*lines[:4]).action == "gpu_reset"


@pytest.mark.parametrize(
    ("rest", "verdict", "action"),
    [
        ("NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x0 0x0 0x0 0x0 0x0)", "CRITICAL", "gpu_reset"),
        ("NETIR_LINK_EVT  Nonfatal   XC0 i0 Link -1 (0x021425c6 0x0)", "OK", "none"),
        ("NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 [0x0000000a]", "CRITICAL", "gpu_reset"),
        ("NETIR_LINK_EVT  Nonfatal XC0 i0 Link 05 (0x004505c6 0x0 0x0 0x0 0x0 0x0)", "CRITICAL", "diagnostic"),
        ("NETIR_LINK_EVT  Nonfatal XC0 i0 Link 05 (0x00a505c6 0x0 0x0 0x0 0x0 0x0)", "CRITICAL", "diagnostic"),
        ("something without a word of its own", "CRITICAL", "gpu_reset"),
    ],
)  # fmt: skip
def test_nvlink_5_is_judged_by_the_lines_own_word(rest: str, verdict: str, action: str) -> None:
    result = one(xid(149, rest))
    assert (result.verdict, result.action) == (verdict, action)


def test_a_nonfatal_word_of_the_receiving_pipe_is_watched() -> None:
    assert one(xid(145, "RLW_RXPIPE Nonfatal XC1 i0 Link 03 (0x00000001 0x0)")).verdict == "WARN"
    assert one(xid(145, "RLW_CTRL Nonfatal XC1 i0 Link 03 (0x00000001 0x0)")).verdict == "OK"


def recovery(to: int, at: float = 100.0) -> str:
    return xid(154, f"GPU recovery action changed from 0x0 (None) to 0x{to:x} (Told)", at=at)


@pytest.mark.parametrize(
    ("value", "verdict", "action"),
    [
        (0, "OK", "none"),
        (1, "CRITICAL", "gpu_reset"),
        (2, "CRITICAL", "reboot"),
        (3, "CRITICAL", "diagnostic"),
        (4, "CRITICAL", "gpu_reset"),
        (5, "CRITICAL", "person"),
        (6, "CRITICAL", "reboot"),
        (7, "CRITICAL", "power_cycle"),
        (8, "UNKNOWN", "person"),
    ],
)
def test_the_drivers_recovery_action_is_followed(value: int, verdict: str, action: str) -> None:
    result = one(recovery(value))
    assert (result.verdict, result.action) == (verdict, action)


def test_a_recovery_action_that_steps_down_leaves_the_heaviest_standing() -> None:
    result = one(recovery(4), recovery(1, at=101.0), recovery(0, at=102.0))
    assert "4, drain_and_reset" in result.reasons[0]
    assert result.verdict == "CRITICAL"


def test_the_recovery_action_is_believed_before_the_code() -> None:
    result = one(xid(79), recovery(1, at=101.0))
    assert (result.rule, result.action) == ("xid-154", "gpu_reset")
    assert list(Belief) == sorted(Belief)


def test_a_program_that_fails_on_two_gpus_is_told_as_the_programs_fault() -> None:
    lines = [xid(31, pci=f"PCI:0000:{bus}:00") for bus in ("1b", "9b")]
    for result in judged(*lines):
        assert result.verdict == "OK"
        assert "one program met it on 2 GPUs" in result.reasons[0]


def test_the_words_for_a_runs_report_agree_with_the_table() -> None:
    sorts = {
        PROGRAM: {"app"},
        EITHER: {"app_watch"},
        HARMLESS: {"record", "watch", "reset_later"},
        RESET: {"reset", "inspect", "decode"},
        MACHINE: {"power", "reboot", "inspect"},
    }
    for code, (_, attitude) in XIDS.items():
        assert code in xid_table().codes
        if attitude in sorts:
            action = xid_table().codes[code].action
            assert action in sorts[attitude] or (code, action) == (43, "record"), (code, action)


def test_a_table_that_is_none_is_refused_with_its_name() -> None:
    for text in ("version = 1", "[[action]]\nname = 3", 'version = 1\nas_of = ""\nxid = 3'):
        with pytest.raises(OuvrageError) as refused:
            xid_table_in("mine.toml", text)
        assert refused.value.code == "health/table"
        assert "mine.toml" in refused.value.message
    with pytest.raises(OuvrageError):
        thresholds_in("mine.toml", 'version = 1\nas_of = "x"\nthreshold = []\nrule = []')


def test_repeat_rules_that_can_hit_a_users_program_are_on_trial() -> None:
    for rule in RULES.xids.repeats:
        programs = {RULES.xids.codes[code].scope for code in rule.codes} == {"job"}
        assert rule.mode == ("shadow" if programs else "live"), rule.name
