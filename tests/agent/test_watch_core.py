"""What outlasts a restart and a boot, what a latch needs to open, and what a clock that jumps does not change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.agent.probing.settings import Settings, settings_in, settings_of
from ouvrage.base.errors import OuvrageError
from ouvrage.model.health import CRITICAL, OK, WARN
from tests.support.stopped_machine import AT_US, S, StoppedMachine, stopped

BUS = "0000:41:00"
LOST = f"NVRM: Xid (PCI:{BUS}): 79, pid=1, name=a, GPU has fallen off the bus."


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[StoppedMachine]:
    with stopped(tmp_path / "root") as made:
        made.instead["time"] = lambda _: {"values": {"kept": True, "max_error_us": 900}}
        made.go(130)
        yield made


def test_a_restart_changes_no_verdict_and_states_nothing_again(machine: StoppedMachine) -> None:
    machine.tree.log(LOST, machine.now)
    machine.go(10)
    assert machine.counted("xid", BUS) == CRITICAL
    stated = len(machine.verdicts("xid"))
    for _ in range(3):
        machine.restart()
        machine.go(60)
    assert machine.counted("xid", BUS) == CRITICAL
    assert len(machine.verdicts("xid")) == stated
    machine.go(300)
    assert [e.code for e in machine.events()] == ["79"]


def test_a_repair_that_was_told_of_is_not_forgotten_by_a_restart(machine: StoppedMachine) -> None:
    machine.tree.log(LOST, machine.now)
    machine.go(10)
    machine.core.verify(BUS, machine.now)
    assert machine.core.news, "it is to be written down"
    machine.restart()
    machine.go(20)
    assert machine.counted("xid", BUS) == OK
    assert not machine.core.memory.to_verify


def test_a_storm_is_one_fault_with_its_count(machine: StoppedMachine) -> None:
    for _ in range(20):
        machine.tree.log(LOST, machine.now)
        machine.go(11)
        if machine.now % 3 == 0:
            machine.restart()
    machine.go(300)
    assert [(e.code, e.count) for e in machine.events()] == [("79", 20)]
    assert [v.verdict for v in machine.verdicts("xid") if v.device == BUS] == [CRITICAL]


def test_critical_outlasts_a_boot_and_is_stated_anew_in_it(machine: StoppedMachine) -> None:
    machine.tree.log(LOST, machine.now)
    machine.go(10)
    machine.now = 700 * S
    machine.tree.put("dev/kmsg", "6,1,1000,-;Linux version 6.1.0")
    machine.restart(boot="another")
    machine.go(60)
    assert machine.counted("xid", BUS) == CRITICAL
    last = machine.verdicts("xid")[-1]
    assert (last.boot, last.device, last.verdict, last.since_us) == ("another", BUS, CRITICAL, 0)


def test_only_a_look_that_finds_it_well_opens_a_latch(machine: StoppedMachine) -> None:
    machine.tree.put("sys/devices/system/edac/mc/mc0/ue_count", "1")
    machine.go(61)
    assert machine.counted("edac") == CRITICAL
    machine.core.verify(None, machine.now)
    machine.go(61)
    assert machine.counted("edac") == CRITICAL, "the word alone opens nothing"
    machine.tree.put("sys/devices/system/edac/mc/mc0/ue_count", "0")
    machine.go(61)
    assert machine.counted("edac") == CRITICAL, "that its sign went is not enough"
    machine.core.verify(None, machine.now)
    machine.go(1)
    assert machine.counted("edac") == OK
    assert [v.verdict for v in machine.verdicts("edac")] == [OK, CRITICAL, OK]


def test_after_a_repair_older_lines_of_the_log_count_no_more(machine: StoppedMachine) -> None:
    machine.tree.log(LOST, machine.now)
    machine.go(10)
    machine.core.verify(BUS, machine.now)
    machine.go(10)
    assert machine.counted("xid", BUS) == OK
    machine.restart()
    machine.go(60)
    assert machine.counted("xid", BUS) == OK
    machine.tree.log(LOST, machine.now)
    machine.go(10)
    assert machine.counted("xid", BUS) == CRITICAL


def test_a_part_that_was_taken_out_is_watched_no_longer(machine: StoppedMachine) -> None:
    machine.tree.put("sys/class/net/eth1/device/vendor", "x")
    machine.tree.put("sys/class/net/eth1/carrier", "1")
    machine.go(10)
    (machine.tree.root / "sys/class/net/eth1/device/vendor").unlink()
    (machine.tree.root / "sys/class/net/eth1/device").rmdir()
    assert machine.go(30, lambda: machine.counted("link", "eth1") == "UNKNOWN"), (
        "silence is not well"
    )
    machine.core.verify("eth1", machine.now, gone=True)
    machine.go(30)
    assert ("link", "eth1") not in machine.core.memory.watches


@pytest.mark.parametrize("by_s", [3600, -3600])
def test_durations_are_right_though_the_clock_jumps_an_hour(
    machine: StoppedMachine, by_s: int
) -> None:
    machine.tree.put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN")
    fault = machine.now
    machine.go(30, lambda: machine.counted("link", "mlx5_0/1") == CRITICAL)
    found = machine.verdicts("link")[-1]
    machine.ahead_us = by_s * S
    assert machine.go(15, lambda: machine.counted("time") == WARN) is not None
    (step,) = [v for v in machine.verdicts("time") if v.verdict == WARN]
    assert {n.name: n.value for n in step.evidence}["by_us"] == str(by_s * S)
    machine.core.verify("mlx5_0/1", machine.now)
    machine.tree.put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE")
    repaired = machine.now
    machine.go(1)
    well = machine.verdicts("link")[-1]
    assert (well.verdict, well.boot) == (OK, found.boot)
    lasted_us = well.since_us - found.since_us
    assert abs(lasted_us - (repaired - fault)) <= 10 * S, "by the clock that does not jump"
    assert machine.go(700, lambda: machine.counted("time") == OK), "a step is over after a while"
    view = machine.core.view(AT_US + machine.now + machine.ahead_us, machine.now)
    assert all(0 <= view.at_us - each.since_us <= machine.now for each in view.checks)


@pytest.mark.parametrize("by_s", [4, -4])
def test_a_correction_of_some_seconds_is_no_step(machine: StoppedMachine, by_s: int) -> None:
    machine.ahead_us = by_s * S
    machine.go(120)
    assert machine.counted("time") == OK


def test_a_link_that_flaps_once_is_none_and_one_that_goes_on_is(machine: StoppedMachine) -> None:
    machine.tree.put("sys/class/net/eth0/carrier_changes", "4")
    machine.go(60)
    assert {v.verdict for v in machine.verdicts("link")} == {OK}
    for number in range(6, 16, 2):
        machine.tree.put("sys/class/net/eth0/carrier_changes", str(number))
        machine.go(20)
    assert machine.counted("link", "eth0") == WARN
    assert machine.verdicts("link")[-1].code == "link-flap"


def test_a_port_that_never_was_up_is_no_fault(tmp_path: Path) -> None:
    with stopped(tmp_path / "root") as machine:
        machine.tree.put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN")
        machine.go(60)
        assert machine.counted("link", "mlx5_0/1") == OK


def test_counters_of_a_port_are_on_trial_and_stated_as_such(machine: StoppedMachine) -> None:
    for number in range(1, 8):
        machine.tree.put("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", str(number))
        machine.go(5)
    trial = [v for v in machine.verdicts("link-errors") if v.shadow]
    assert trial
    assert trial[0].verdict == CRITICAL
    assert machine.counted("link-errors", "mlx5_0/1") == OK, "it fences nothing"


def test_on_a_machine_that_others_run_everything_is_asked_of_a_person(tmp_path: Path) -> None:
    with stopped(tmp_path / "root", settings=Settings(observer=True)) as machine:
        machine.tree.log(LOST, machine.now)
        machine.go(10)
        assert machine.verdicts("xid")[-1].action == "person"
        assert machine.core.view(0, machine.now).observer


def test_a_marketplace_s_program_makes_us_an_observer(tmp_path: Path) -> None:
    assert not settings_in(tmp_path, str(tmp_path)).observer
    (tmp_path / "var/lib/vastai_kaalia").mkdir(parents=True)
    assert settings_in(tmp_path, str(tmp_path)).observer
    (tmp_path / "agent.toml").write_text("[watch]\nobserver = false\npeers = ['10.0.0.2']\n")
    assert settings_in(tmp_path, str(tmp_path)) == Settings(peers=("10.0.0.2",))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"peer": ["a"]}, "watch.peer = "),
        ({"peers": "a"}, "watch.peers = 'a'"),
        ({"expect_gpus": 0}, "watch.expect_gpus = 0"),
        ({"expect_gpus": True}, "watch.expect_gpus = True"),
        ({"observer": "yes"}, "watch.observer = 'yes'"),
        ({"wall": "ftp://h"}, "watch.wall = 'ftp://h'"),
        ([], "watch = "),
    ],
)
def test_a_setting_that_is_not_understood_is_refused_by_its_name(told: object, words: str) -> None:
    with pytest.raises(OuvrageError) as refused:
        settings_of(told, "agent.toml")
    assert words in refused.value.message
    assert refused.value.hint


def test_what_was_never_seen_well_does_not_begin_as_well(tmp_path: Path) -> None:
    with stopped(tmp_path / "root") as machine:
        machine.instead["memory"] = lambda _: {"fault": "no"}
        machine.instead["time"] = lambda _: {"values": {"kept": False, "max_error_us": 1}}
        machine.go(1)
        assert machine.counted("memory") == "UNKNOWN"
        assert machine.counted("time") == "UNKNOWN", "one look that is not well is no verdict yet"
        machine.go(120)
        assert machine.counted("time") == WARN
        assert OK not in {v.verdict for v in machine.verdicts("time") + machine.verdicts("memory")}


def test_nonsense_in_the_place_of_values_is_told_as_such(machine: StoppedMachine) -> None:
    for probe, values in (
        ("edac", {"controllers": [{"x": 1}]}),
        ("links", {"links": 3}),
        ("gpu", {}),
    ):
        machine.instead[probe] = lambda _, v=values: {"values": v}
    machine.go(61)
    assert machine.counted("edac") == machine.counted("link", "eth0") == "UNKNOWN"
    assert machine.counted("gpu") == "UNKNOWN"
