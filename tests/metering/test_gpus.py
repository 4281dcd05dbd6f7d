"""GPUs: readings to windows, two roads to energy, and where the time went while they worked."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.metering.cause import cause_of
from ouvrage.metering.gpu_use import device_uses, metered_energy
from ouvrage.metering.gpus import gpu_window_fault, reason_names
from ouvrage.metering.laws import LAWS
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.spool import read_spool
from ouvrage.metering.timeuse import KEYS, time_use
from tests.support.runs import (
    Line,
    S,
    busy,
    end,
    gpu,
    gpus,
    header,
    recorded,
    spans,
    view_of,
    written,
)

MJ = 1000


def use_of(*lines: Line, seconds: int = 20) -> Any:
    view = view_of(header(), gpu(), *lines, end(seconds))
    return device_uses(view, 0, view.wall_us)[0]


class TestEnergy:
    def test_by_the_counter_where_there_is_one(self) -> None:
        use = use_of(*gpus(20, energy_mj=lambda t: 10**9 + 300 * MJ * t, power_average_mw=71_000))
        assert (use.energy.uj, use.energy.method) == (300 * 20 * 10**6, "energy counter")
        assert use.energy.covered_us == 20 * S
        assert use.power_w == 300

    def test_by_power_where_there_is_none(self) -> None:
        use = use_of(*gpus(20, power_average_mw=lambda t: 100_000 + 10_000 * t))
        assert use.energy.uj == 200 * 20 * 10**6
        assert use.energy.method == "integrated from its average-power readings"

    @pytest.mark.parametrize("name", ["average", "usage", "instant"])
    def test_which_power_is_said(self, name: str) -> None:
        use = use_of(*gpus(20, **{f"power_{name}_mw": 50_000}))
        assert use.energy.uj == 50 * 20 * 10**6
        assert "readings" in use.energy.method

    def test_a_counter_that_stands_still_is_not_believed(self) -> None:
        use = use_of(*gpus(20, energy_mj=0, power_average_mw=71_000))
        assert use.energy.method.startswith("integrated")

    def test_but_a_card_that_draws_nothing_may_count_nothing(self) -> None:
        assert use_of(*gpus(20, energy_mj=7, power_average_mw=0)).energy.uj == 0

    def test_a_reset_leaves_its_interval_out(self) -> None:
        use = use_of(*gpus(20, energy_mj=lambda t: (10**9 if t < 10 else 0) + 300 * MJ * t))
        assert use.energy.uj == 300 * 19 * 10**6
        assert (use.energy.covered_us, use.energy.resets) == (19 * S, 1)

    def test_a_leap_that_no_card_can_draw_is_a_reset_too(self) -> None:
        use = use_of(*gpus(20, energy_mj=lambda t: 300 * MJ * t + (10**12 if t > 9 else 0)))
        assert (use.energy.uj, use.energy.resets) == (300 * 19 * 10**6, 1)

    def test_where_the_counter_covers_less_power_speaks(self) -> None:
        use = use_of(*gpus(20, energy_mj=lambda t: t if t < 5 else None, power_average_mw=100_000))
        assert use.energy.uj == 100 * 20 * 10**6

    def test_a_gap_is_not_covered_and_not_filled(self) -> None:
        lines = gpus(20, power_average_mw=100_000)
        for name in ("t",):
            lines[0][name] = [t for t in lines[0]["t"] if not 5 * S < t < 15 * S]
        lines[0]["c"]["power_average_mw"] = [100_000] * len(lines[0]["t"])
        use = use_of(*lines)
        assert use.energy.uj == 100 * 10 * 10**6
        assert use.energy.covered_us == 10 * S

    def test_nothing_told_is_unknown(self) -> None:
        use = use_of(*gpus(20, temperature_c=40))
        assert (use.energy, use.busy, use.throttled, use.power_w) == (None, None, None, None)

    def test_never_both_roads_at_once(self) -> None:
        use = use_of(
            *gpus(
                20,
                energy_mj=lambda t: 100 * MJ * t,
                power_average_mw=100_000,
                power_instant_mw=100_000,
                power_usage_mw=100_000,
            )
        )
        assert use.energy.uj == 100 * 20 * 10**6


class TestWindows:
    def test_load_memory_clocks_and_reasons(self) -> None:
        use = use_of(
            *gpus(
                20,
                busy_percent=80,
                memory_used_bytes=lambda t: t << 30,
                clock_sm_mhz=1000,
                clock_reasons=lambda t: 0x44 if t > 10 else 0x4,
            )
        )
        assert use.busy == Fraction(80, 100)
        assert use.memory_max_bytes == 20 << 30
        assert dict(use.reasons) == {"power_cap": 1, "hardware_thermal": Fraction(1, 2)}
        assert use.throttled == Fraction(1, 2), "a power cap is no fault"

    def test_slowed_is_the_busy_time_that_the_clock_lost(self) -> None:
        lines = gpus(20, busy_percent=80, clock_sm_mhz=500, clock_reasons=0x8)
        view = view_of(header(), gpu(), *lines, end(20))
        assert sum(window.slowed_us or 0 for window in view.gpu_windows) == 20 * S * 3 // 5

    def test_bytes_over_the_link_by_counter_or_by_rate(self) -> None:
        counted = use_of(*gpus(20, pcie_tx_bytes=lambda t: t * 10**9, pcie_rx_bytes=5))
        assert (counted.pcie_tx_bytes, counted.pcie_rx_bytes) == (20 * 10**9, 0)
        rated = use_of(*gpus(20, pcie_tx_kb_s=1000, pcie_rx_kb_s=2000))
        assert (rated.pcie_tx_bytes, rated.pcie_rx_bytes) == (20 * 10**6, 40 * 10**6)

    def test_names_of_reasons(self) -> None:
        assert reason_names(0) == []
        assert reason_names(0x8 | 0x80) == ["hardware_slowdown", "power_brake"]
        assert reason_names(0x4000) == ["other"]

    def test_a_gpu_kept_from_the_command_is_not_its_own(self) -> None:
        view = view_of(
            header(), gpu(0, chosen=False), gpu(1), *gpus(9, 0, busy_percent=90),
            *gpus(9, 1, busy_percent=10), end(9),
        )  # fmt: skip
        assert [use.device.gpu for use in device_uses(view, 0, 9 * S)] == [1]

    @pytest.mark.parametrize(
        "line",
        [
            {"k": "gpus", "gpu": 4, "t": [1], "c": {}},
            {"k": "gpu", "gpu": 0, "t": 0, "about": {}},
            {"k": "gpus", "gpu": 0, "t": [2, 1], "c": {}},
            {"k": "meter", "meter": 0, "kind": "guess", "name": "x", "covers": "y"},
            {"k": "electricity", "amount": "free", "currency": "EUR"},
        ],
    )
    def test_lines_that_cannot_be_are_refused_by_number(self, line: Line) -> None:
        with pytest.raises(OuvrageError) as refused:
            read_spool(written(header(), gpu(), line, end(3)))
        assert refused.value.code == "spool/line"
        assert "line 3" in refused.value.message


class TestTime:
    def used(self, *lines: Line, seconds: int = 20) -> dict[str, float]:
        view = view_of(header(), gpu(), *lines, end(seconds))
        use = time_use(view, 0, seconds * S)
        assert sum(use.us.values()) == seconds * S
        return {key: round(us / S, 3) for key, us in use.us.items() if us}

    def test_a_working_gpu_computes(self) -> None:
        found = self.used(*busy(20, 0.2), *gpus(20, busy_percent=100, clock_reasons=0))
        assert found == {"computing": 20}

    def test_idle_while_the_processes_work_is_waiting_for_data(self) -> None:
        found = self.used(*busy(20, 1.0), *gpus(20, busy_percent=40))
        assert found == {"computing": 8, "waiting_data": 12}

    def test_idle_while_nothing_works_is_unknown(self) -> None:
        found = self.used(*busy(20, 0), *gpus(20, busy_percent=40))
        assert found == {"computing": 8, "unknown": 12}

    def test_what_is_not_sure_goes_to_storage_where_it_shows(self) -> None:
        rates = {"blkio_delay_us": 0.6 * S, "read_bytes": 10}
        found = self.used(*busy(20, 0.4, **rates), *gpus(20, busy_percent=40))
        assert found == {"computing": 8, "waiting_storage": 12}

    def test_and_to_data_where_it_does_not(self) -> None:
        found = self.used(*busy(20, 0.4), *gpus(20, busy_percent=40))
        assert found == {"computing": 8, "waiting_data": 8, "unknown": 4}

    def test_the_cgroups_limit_comes_first(self) -> None:
        found = self.used(*busy(20, 0.5, throttled_us=0.5 * S), *gpus(20, busy_percent=20))
        assert found == {"computing": 4, "throttled": 10, "waiting_data": 6}

    def test_clocks_held_by_heat_throttle_and_by_the_cap_do_not(self) -> None:
        hot = gpus(20, busy_percent=100, clock_sm_mhz=1000, clock_reasons=0x40)
        assert self.used(*busy(20, 0), *hot) == {"computing": 10, "throttled": 10}
        capped = gpus(20, busy_percent=100, clock_sm_mhz=1000, clock_reasons=0x4)
        assert self.used(*busy(20, 0), *capped) == {"computing": 20}

    @pytest.mark.parametrize("load", [0, 5, None])
    def test_a_gpu_that_never_worked_has_no_say(self, load: int | None) -> None:
        column = {"busy_percent": (lambda _: load) if load is None else load}
        assert self.used(*busy(20, 0.4), *gpus(20, **column)) == {"computing": 8, "unknown": 12}

    def test_nor_has_one_before_and_after_it_worked(self) -> None:
        found = self.used(
            *busy(20, 1.0), *gpus(20, busy_percent=lambda t: 50 if 5 < t <= 15 else 0)
        )
        assert found == {"computing": 15, "waiting_data": 5}

    def test_of_several_the_busiest_speaks(self) -> None:
        lines = [gpu(1), *gpus(20, 0, busy_percent=90), *gpus(20, 1, busy_percent=20)]
        assert self.used(*busy(20, 1.0), *lines) == {"computing": 18, "waiting_data": 2}

    def test_spans_come_first(self) -> None:
        told = spans(0, 20, cpu=12, data=8, compute=12)
        found = self.used(*busy(20, 1.0), told, *gpus(20, busy_percent=10))
        assert found == {"computing": 12, "waiting_data": 8}

    def test_without_readings_it_is_unknown(self) -> None:
        lines = gpus(20, busy_percent=50)
        lines[0]["t"] = [t if t < 10 * S else t + 5 * S for t in lines[0]["t"]][:16]
        lines[0]["c"]["busy_percent"] = lines[0]["c"]["busy_percent"][:16]
        found = self.used(*busy(20, 1.0), *lines)
        assert found["unknown"] > 5

    def test_the_cause_names_the_gpu(self) -> None:
        view = view_of(header(), gpu(), *busy(20, 1.0), *gpus(20, busy_percent=40), end(20))
        cause = cause_of(view, reckon(view))
        assert (cause.key, cause.by_gpu) == ("waiting_data", True)
        assert cause.grade is not None
        assert cause.grade.word == "assumed"
        assert "the GPU was idle while the processes worked (its load was 40 %)" in cause.evidence
        assert cause.rule.startswith("while the run's GPUs were in use")

    def test_and_the_reason_that_held_its_clocks(self) -> None:
        hot = gpus(20, busy_percent=100, clock_sm_mhz=1000, clock_reasons=0x80)
        view = view_of(header(), gpu(), *busy(20, 0), *hot, end(20))
        cause = cause_of(view, reckon(view))
        assert cause.key == "throttled"
        assert "held down 100 % of the time by power brake" in cause.evidence


def test_meters_of_the_host_add_up_their_own_kind_only() -> None:
    def meter(number: int, kind: str) -> Line:
        return {"k": "meter", "meter": number, "kind": kind, "name": "x", "covers": "y"}

    def read(number: int, **columns: list[int | None]) -> Line:
        return {"k": "meters", "meter": number, "t": [0, S, 2 * S], "c": columns}

    view = view_of(
        header(), meter(0, "rapl"), meter(1, "rapl"), meter(2, "wall"),
        read(0, energy_uj=[0, 10, 20]), read(1, energy_uj=[5, 5, 9]),
        read(2, power_mw=[3000, 3000, 5000]), end(2),
    )  # fmt: skip
    host, wall = (metered_energy(view, kind, 0, 2 * S) for kind in ("rapl", "wall"))
    assert host is not None
    assert wall is not None
    assert (host.uj, host.covered_us, host.method) == (24, 2 * S, "counter")
    assert (wall.uj, wall.method) == (7_000_000, "power")


def numbers() -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(0, 10**9) | st.integers(0, 100)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 30 * S), numbers(), numbers(), numbers()), max_size=40),
    st.integers(1, 30),
)
def test_whatever_cards_say_windows_hold_and_time_adds_up(
    rows: list[tuple[int, int | None, int | None, int | None]], wall: int
) -> None:
    rows.sort(key=lambda row: row[0])
    columns = {
        "busy_percent": [None if r[1] is None else r[1] % 101 for r in rows],
        "energy_mj": [r[2] for r in rows],
        "power_average_mw": [r[3] for r in rows],
        "clock_reasons": [r[2] for r in rows],
        "clock_sm_mhz": [r[3] for r in rows],
    }
    line = {"k": "gpus", "gpu": 0, "t": [row[0] for row in rows], "c": columns}
    lines = [header(), gpu(), *busy(wall, 0.5), line, end(wall)]
    view = view_of(*lines)
    assert not [found for w in view.gpu_windows if (found := gpu_window_fault(w))]
    use = time_use(view, 0, view.wall_us)
    assert sum(use.us.values()) == use.total_us
    assert all(0 <= use.measured[key] <= use.us[key] for key in KEYS)
    text = written(*lines)
    for law in LAWS:
        assert not list(law.breaches(recorded(text)))
