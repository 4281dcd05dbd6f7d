"""Energy at the wall by the hour: from a counter or from power, covered where it is known and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ouvrage.agent.probing.settings import Settings
from ouvrage.agent.probing.wall import Hour, answer_of, hour_after, hour_stated
from ouvrage.model.meters import EnergyRead
from tests.support.stopped_machine import AT_US, S, StoppedMachine, stopped

HOUR = 3600 * S
KWH_UJ = 3_600_000 * S
BEGIN = AT_US - AT_US % HOUR


def told(*answers: tuple[int, int | None, int | None], jump: int = 0) -> list[Hour]:
    """The hours that answers (seconds, milliwatts, microjoules) make whole."""
    hour: Hour | None = None
    over: list[Hour] = []
    for second, power, counter in answers:
        at = BEGIN + second * S
        hour, more = hour_after(hour, answer_of(power, counter, at + jump, second * S))
        over += more
    return over


def test_an_hour_of_a_counter_is_its_difference() -> None:
    (hour,) = told(*((60 * n, None, n * 60_000_000) for n in range(62)))
    assert (hour.begins_us, hour.energy_uj, hour.covered_us) == (BEGIN, 3_600_000_000, HOUR)
    value = hour_stated(hour, "n1").value
    assert value == EnergyRead(
        meter="agent-wall", about="node:n1", scope="wall", energy_j=3600, method="counter", covered_us=HOUR
    )  # fmt: skip


def test_a_counter_bridges_hours_in_which_nobody_asked_and_loses_nothing() -> None:
    hours = told((1800, None, 0), (1800 + 3 * 3600, None, 3 * KWH_UJ), (5 * 3600, None, 5 * KWH_UJ))
    assert [h.covered_us for h in hours] == [HOUR // 2, HOUR, HOUR, HOUR, HOUR]
    assert sum(h.energy_uj for h in hours) == 5 * KWH_UJ


def test_a_counter_that_went_back_leaves_the_hour_less_covered() -> None:
    (hour,) = told((0, None, 900), (1200, None, 1000), (2400, None, 5), (3600, None, 405))
    assert (hour.energy_uj, hour.covered_us) == (100 + 400, 2400 * S)


def test_power_alone_is_integrated_where_readings_are_close() -> None:
    (hour,) = told(*((60 * n, 500_000, None) for n in range(31)), (3600, 500_000, None))
    assert (hour.method, hour.covered_us) == ("integral", 1800 * S)
    assert hour.energy_uj == 500 * 1800 * S


@pytest.mark.parametrize("by_s", [3600, -3600])
def test_a_clock_that_jumps_makes_no_energy(by_s: int) -> None:
    hour, _ = hour_after(None, answer_of(500_000, None, BEGIN, 0))
    after, over = hour_after(hour, answer_of(500_000, None, BEGIN + 60 * S + by_s * S, 60 * S))
    assert over == []
    assert after.energy_uj == 0


def test_the_watch_states_each_hour_once_through_restarts(tmp_path: Path) -> None:
    with stopped(tmp_path / "root", settings=Settings(wall="http://127.0.0.1:9/")) as machine:
        machine.instead["wall"] = lambda _: {
            "values": {"power_mw": 1_000_000, "energy_uj": machine.now * 1000}
        }
        for _ in range(8):
            machine.go(1200)
            machine.restart()
        stated = _energy(machine)
        assert [each.covered_us // S for each in stated] == [800, 3600, 3600]
        assert [each.energy_j for each in stated] == [800_000, 3_600_000, 3_600_000]


def test_what_goes_to_a_server_is_health_alone(tmp_path: Path) -> None:
    settings = Settings(wall="http://127.0.0.1:9/", keeps_books=False)
    with stopped(tmp_path / "root", settings=settings) as machine:
        machine.instead["wall"] = lambda _: {"values": {"power_mw": 1, "energy_uj": machine.now}}
        machine.go(8000)
        assert _energy(machine) == []
        assert machine.counted("wall") == "OK"


def _energy(machine: StoppedMachine) -> list[EnergyRead]:
    return [said.value for _, said in machine.facts if isinstance(said.value, EnergyRead)]
