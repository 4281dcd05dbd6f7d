"""Where the time goes: spans before samples, unknown rather than wrong, and always the whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.metering.cause import cause_of
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.timeuse import KEYS, TimeUse, key_of_span, time_use
from tests.support.runs import Line, S, busy, end, ends, header, samples, spans, view_of


def used(*lines: Line, seconds: int = 20) -> dict[str, float]:
    """Seconds by key, without the keys that took none."""
    use = time_use(view_of(header(), *lines, end(seconds)), 0, seconds * S)
    assert sum(use.us.values()) == seconds * S
    return {key: us / S for key, us in use.us.items() if us}


class TestSamples:
    @pytest.mark.parametrize(
        ("rates", "expected"),
        [
            ({}, {"computing": 8, "unknown": 12}),
            ({"run_delay_us": 0.2 * S}, {"computing": 8, "waiting_cpu": 4, "unknown": 8}),
            # more delay than there is time: several threads waited at once, each most of the time
            ({"run_delay_us": 3.6 * S}, {"computing": 2, "waiting_cpu": 18}),
            ({"throttled_us": 0.1 * S}, {"computing": 8, "throttled": 2, "unknown": 10}),
            # what the quota stopped is not counted as waiting for a core once more
            (
                {"throttled_us": 0.1 * S, "run_delay_us": 0.3 * S},
                {"computing": 8, "throttled": 2, "waiting_cpu": 4, "unknown": 6},
            ),
            # storage needs bytes as well as a wait
            ({"blkio_delay_us": 0.5 * S}, {"computing": 8, "unknown": 12}),
            (
                {"blkio_delay_us": 0.5 * S, "read_bytes": 10},
                {"computing": 8, "waiting_storage": 10, "unknown": 2},
            ),
            # memory needs faults as well as pressure, and enough of them to wait so long
            ({"psi_memory_us": 0.5 * S}, {"computing": 8, "unknown": 12}),
            (
                {"psi_memory_us": 0.5 * S, "major_faults": 100},
                {"computing": 8, "waiting_memory": 10, "unknown": 2},
            ),
            (
                {"psi_memory_us": 0.5 * S, "major_faults": 5},
                {"computing": 8, "waiting_memory": 2, "unknown": 10},
            ),
            # what was thrown out and is read back is no slow disk's fault
            (
                {"blkio_delay_us": 0.5 * S, "read_bytes": 100, "refaulted_bytes": 80},
                {"computing": 8, "waiting_memory": 8, "waiting_storage": 2, "unknown": 2},
            ),
            # bytes on the wire are no proof of a wait, nor is a connection over which none come
            ({"net_rx_bytes": 10**8}, {"computing": 8, "unknown": 12}),
            ({"at_network": lambda _: 1, "net_rx_bytes": 10**3}, {"computing": 8, "unknown": 12}),
            (
                {"at_network": lambda _: 1, "net_rx_bytes": 10**6},
                {"computing": 8, "waiting_network": 12},
            ),
        ],
    )
    def test_rules(self, rates: dict[str, float], expected: dict[str, float]) -> None:
        assert used(*busy(20, 0.4, **rates)) == expected

    @pytest.mark.parametrize(
        ("share", "rates", "expected"),
        [
            # two processes on one core: each has it half of the time
            (1.0, {"run_delay_us": 1.0 * S}, {"computing": 10, "waiting_cpu": 10}),
            # of ten short-lived ones two were read: their delay speaks for all
            (
                1.0,
                {"run_delay_us": 0.2 * S, "delay_cpu_us": 0.2 * S},
                {"computing": 10, "waiting_cpu": 10},
            ),
            # too few were read to speak for the rest
            (
                1.0,
                {"run_delay_us": 0.004 * S, "delay_cpu_us": 0.004 * S},
                {"computing": 19.920318, "waiting_cpu": 0.079682},
            ),
            # the kernel works for want of memory: that is no computing
            (
                0.0,
                {
                    "cpu_user_us": 0.5 * S, "cpu_system_us": 0.5 * S,
                    "psi_memory_us": 0.4 * S, "major_faults": 10**4,
                },
                {"computing": 12, "waiting_memory": 8},
            ),
        ],
    )  # fmt: skip
    def test_a_busy_core_may_hide_a_wait(
        self, share: float, rates: dict[str, float], expected: dict[str, float]
    ) -> None:
        rates = {"cpu_user_us": share * S, "cpu_system_us": 0} | rates
        assert used(*samples(20, **rates)) == expected

    @pytest.mark.parametrize(
        ("cpu", "delay", "stopped", "expected"),
        [
            # one thread under half a core: the counter missed most of the stop
            (0.5, 0.5, 10, {"computing": 10, "throttled": 10}),
            # two threads on two cores under half a core
            (0.5, 1.5, 10, {"computing": 5, "throttled": 15}),
            # eight threads on two cores under half a core: most would wait for a core anyway
            (0.5, 7.5, 10, {"computing": 1.25, "throttled": 15, "waiting_cpu": 3.75}),
            # stopped in half of the periods only: the rest is the neighbours'
            (0.5, 0.5, 5, {"computing": 10, "throttled": 5, "waiting_cpu": 5}),
            (0.5, 0.5, 0, {"computing": 10, "waiting_cpu": 10}),
        ],
    )
    def test_a_quota_stops_every_thread(
        self, cpu: float, delay: float, stopped: int, expected: dict[str, float]
    ) -> None:
        host = {"cpus_allowed": 2, "cpu_quota_ppm": 500_000}
        rates = {"quota_periods": 10, "quota_stopped": stopped, "run_delay_us": delay * S}
        lines = samples(20, cpu_user_us=cpu * S, cpu_system_us=0, **rates)
        use = time_use(view_of(header(host=host), *lines, end(20)), 0, 20 * S)
        assert {key: us / S for key, us in use.us.items() if us} == expected

    def test_without_cpu_counters_nothing_is_known(self) -> None:
        assert used(*samples(20, read_bytes=1)) == {"unknown": 20}

    def test_a_gap_is_unknown(self) -> None:
        assert used(*busy(10, 1.0), seconds=20) == {"computing": 10, "unknown": 10}

    def test_nothing_of_it_is_measured(self) -> None:
        view = view_of(header(), *busy(20), end(20))
        assert not any(time_use(view, 0, 20 * S).measured.values())


class TestSpans:
    def test_waits_and_bodies_of_a_watched_loop(self) -> None:
        # reports of waits alone, a second apart: what lies between is the body
        loop = [spans(t, t + 0.5, data=0.4) for t in range(4, 14)]
        assert used(*busy(20, 1.0), *loop) == {"computing": 16, "waiting_data": 4}
        use = time_use(view_of(header(), *busy(20), *loop, end(20)), 4 * S, 13 * S)
        assert use.measured["computing"] + use.measured["waiting_data"] == 9 * S

    def test_bodies_less_the_delay_of_that_thread(self) -> None:
        # 10 s of loop, 4 waiting; of the 6 others 4 on a core, 1 without one
        loop = [spans(0, 10, cpu=4, data=4)]
        found = used(*busy(10, 1.0, emitter_run_delay_us=0.1 * S), *loop, seconds=10)
        assert found == {"computing": 5, "waiting_data": 4, "waiting_cpu": 1}

    def test_never_more_delay_than_the_bodies_exceed_their_cpu_time(self) -> None:
        loop = [spans(0, 10, cpu=5.5, data=4)]
        found = used(*busy(10, 1.0, emitter_run_delay_us=0.9 * S), *loop, seconds=10)
        assert found == {"computing": 5.5, "waiting_data": 4, "waiting_cpu": 0.5}

    def test_throttling_comes_before_run_delay(self) -> None:
        loop = [spans(0, 10, cpu=2, data=4)]
        rates = {"emitter_run_delay_us": 0.3 * S, "throttled_us": 0.2 * S}
        assert used(*busy(10, 1.0, **rates), *loop, seconds=10) == {
            "computing": 3, "waiting_data": 4, "throttled": 2, "waiting_cpu": 1,
        }  # fmt: skip

    def test_spans_that_name_their_wait(self) -> None:
        told = spans(0, 10, cpu=3, compute=3, checkpoint=2, comm=1, load=1)
        assert used(*busy(10, 0), told, seconds=10) == {
            "computing": 6, "waiting_storage": 2, "waiting_network": 1, "waiting_data": 1,
        }  # fmt: skip

    def test_outside_a_loop_samples_are_asked(self) -> None:
        told = spans(0, 10, cpu=0, checkpoint=2)
        assert used(*busy(10, 0.5), told, seconds=10) == {
            "computing": 4, "waiting_storage": 2, "unknown": 4,
        }  # fmt: skip

    def test_loops_far_apart_are_not_one(self) -> None:
        far = [spans(0, 1, data=1), spans(18, 19, data=1)]
        assert used(*busy(20, 0), *far) == {"waiting_data": 2, "unknown": 18}

    def test_the_thread_that_says_most_speaks(self) -> None:
        main = spans(0, 10, cpu=5, data=5)
        other = spans(0, 6, cpu=0, data=6) | {"tid": 8}
        found = used(*busy(10, 1.0), other, main, seconds=10)
        assert found == {"computing": 5, "waiting_data": 5}

    def test_more_spans_than_time_still_add_up(self) -> None:
        told = [spans(0, 10, data=10), spans(0, 10, data=9, compute=9)]
        assert sum(used(*busy(10), *told, seconds=10).values()) == 10

    def test_a_period_counts_its_part(self) -> None:
        view = view_of(header(), *busy(20, 0.5), spans(0, 10, cpu=6, data=4), end(20))
        assert time_use(view, 5 * S, 10 * S).us["waiting_data"] == 2 * S
        assert time_use(view, 10 * S, 15 * S).us["computing"] == 2_500_000

    @pytest.mark.parametrize(
        ("name", "key"),
        [
            ("data", "waiting_data"),
            ("Dataloader", "waiting_data"),
            ("load", "waiting_data"),
            ("compute", "computing"),
            ("forward", "computing"),
            ("checkpoint", "waiting_storage"),
            ("io", "waiting_storage"),
            ("comm.allreduce", "waiting_network"),
            ("network", "waiting_network"),
            ("validate", None),
            ("", None),
        ],
    )
    def test_names(self, name: str, key: str | None) -> None:
        assert key_of_span(name) == key


class TestCause:
    def test_the_largest_wait_with_its_evidence(self) -> None:
        loop = [spans(t, t + 1, cpu=0.5, data=0.4) for t in range(20)]
        view = view_of(header(), *busy(20), *loop, ends(5, 10, 15, 20), end(20))
        cause = cause_of(view, reckon(view))
        assert cause.key == "waiting_data"
        assert float(cause.share) == pytest.approx(0.4)
        assert cause.grade is not None
        assert cause.grade.word == "measured"
        assert cause.evidence == (
            "each of 15 waits for a batch took 400 ms: 6 of 15 s; 2 processes share one core"
        )

    def test_little_waiting_is_not_named(self) -> None:
        loop = [spans(t, t + 1, cpu=0.99, data=0.01) for t in range(20)]
        view = view_of(header(), *busy(20), *loop, end(20))
        cause = cause_of(view, reckon(view))
        assert (cause.key, cause.evidence) == (None, "no wait takes 5 % of the time")

    def test_a_wait_smaller_than_what_is_unexplained_is_not_named(self) -> None:
        view = view_of(header(), *busy(20, 0.1, run_delay_us=0.2 * S), end(20))
        cause = cause_of(view, reckon(view))
        assert (cause.key, cause.verdict) == (None, "unknown")
        assert cause.evidence == "more of its time is unexplained than was spent waiting for a core"

    @pytest.mark.parametrize(
        ("rates", "evidence"),
        [
            (
                {"at_network": lambda _: 1, "net_rx_bytes": 10**6},
                "threads slept at connections to other machines while 20 MB flowed",
            ),
            (
                {"blkio_delay_us": 0.8 * S, "read_bytes": 10**6},
                "its tasks were blocked while 20 MB were read or written",
            ),
            (
                {"blkio_delay_us": 0.8 * S, "read_bytes": 10**6, "refaulted_bytes": 9 * 10**5},
                "memory was short: pages were faulted in and 18 MB that had been thrown out "
                "were read back",
            ),
            (
                {"throttled_us": 0.8 * S, "quota_periods": 10, "quota_stopped": 9},
                "the cgroup's CPU quota ran out in 90 % of its periods",
            ),
        ],
    )
    def test_the_evidence_says_how_much(self, rates: dict[str, Any], evidence: str) -> None:
        view = view_of(header(host={"cpus_allowed": 2}), *busy(20, 0.1, **rates), end(20))
        cause = cause_of(view, reckon(view))
        assert cause.verdict == cause.key
        assert cause.evidence.startswith(evidence)

    def test_what_samples_cannot_tell_comes_with_the_way_to_know(self) -> None:
        view = view_of(header(), *busy(20, 0.1), end(20))
        assert "ouvrage.watch" in cause_of(view, reckon(view)).evidence


def counters(draw: Any) -> dict[str, float]:
    names = ("run_delay_us", "emitter_run_delay_us", "throttled_us", "blkio_delay_us", "read_bytes")
    return {name: draw(st.integers(0, 3 * S)) for name in names if draw(st.booleans())}


@st.composite
def runs(draw: Any) -> list[Line]:
    wall = draw(st.integers(1, 40))
    share = draw(st.sampled_from([0, 0.3, 1.0, 2.0]))
    lines = busy(draw(st.integers(0, wall)), share, **counters(draw))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, wall))
        finish = draw(st.integers(start, wall))
        name = draw(st.sampled_from(["data", "compute", "io", "other"]))
        report = spans(start, finish, draw(st.none() | st.integers(0, 9)))
        total = draw(st.integers(0, 30 * S))
        report["spans"] = [{"name": name, "count": 1, "total_us": total}]
        lines.append(report | {"tid": draw(st.integers(1, 2))})
    return [*lines, end(wall)]


@given(runs(), st.integers(0, 40 * S), st.integers(0, 40 * S))
def test_the_keys_add_up_to_any_period(lines: list[Line], one: int, other: int) -> None:
    view = view_of(header(), *lines)
    start, finish = sorted((min(one, view.wall_us), min(other, view.wall_us)))
    for use in (time_use(view, start, finish), time_use(view, 0, view.wall_us)):
        check(use)


def check(use: TimeUse) -> None:
    assert sum(use.us.values()) == use.total_us
    assert all(0 <= use.measured[key] <= use.us[key] for key in KEYS)
    assert 0 <= use.gap_us <= use.total_us
