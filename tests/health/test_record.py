"""What a machine's record says: chances, lemons, blame, availability, credits, spares, rules on trial."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.health.availability import (
    Stay,
    Tier,
    availability,
    credit,
    runpod_reliability,
)
from ouvrage.health.blame import Ended, Fault, blamed
from ouvrage.health.chance import poisson_at_most, poisson_quantile, rate_bounds
from ouvrage.health.driver_lines import driver_lines, merged
from ouvrage.health.kernel_log import kernel_lines
from ouvrage.health.lemons import DAY_US, Mark, Score, Service, scores
from ouvrage.health.spares import spares
from ouvrage.health.trial import trials
from ouvrage.health.xid import log_findings
from ouvrage.model.health import STATES, Verdict
from tests.health.rules import BOUNDS, RULES, xid

S = 1_000_000
MINUTE = 60 * S


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # Exact intervals of a Poisson count at 95 %, as in Garwood's table (Biometrika 28, 1936).
    [(0, 0.0, 3.688879), (1, 0.025318, 5.571643), (3, 0.618672, 8.767273), (10, 4.795389, 18.390356), (50, 37.11, 65.92)],
)  # fmt: skip
def test_intervals_of_a_count(count: int, low: float, high: float) -> None:
    found = rate_bounds(count, 1.0, 0.95)
    assert found == pytest.approx((low, high), rel=1e-3, abs=1e-6)


def test_a_poisson_chance_is_the_sum_of_its_terms() -> None:
    # e^-2 (1 + 2 + 2) and, for nothing expected, nothing.
    assert poisson_at_most(2, 2.0) == pytest.approx(0.6766764162)
    assert poisson_at_most(0, 0.0) == 1.0
    assert poisson_quantile(0.99, 0.0) == 0


@pytest.mark.parametrize(
    ("nodes", "rate", "share", "days", "count"),
    # The table of health notes 6.3.
    [
        (25, 6.5, 0.2, 3, 1), (25, 6.5, 0.4, 10, 3), (25, 21, 0.2, 3, 2), (25, 21, 0.4, 10, 6),
        (100, 6.5, 0.2, 3, 2), (100, 6.5, 0.4, 10, 7), (100, 21, 0.2, 3, 4), (100, 21, 0.4, 10, 16),
        (500, 6.5, 0.2, 3, 6), (500, 6.5, 0.4, 10, 22), (500, 21, 0.2, 3, 13), (500, 21, 0.4, 10, 58),
    ],
)  # fmt: skip
def test_spares_by_the_owners_own_rate(
    nodes: int, rate: float, share: float, days: float, count: int
) -> None:
    found = spares(nodes, rate, share, days, BOUNDS)
    assert (found.count, found.assumed) == (count, False)
    assert (found.enough or 0) >= 0.99


@pytest.mark.parametrize(("parts", "count"), [(1, 1), (8, 1), (100, 5), (101, 6)])
def test_spares_without_a_record_are_a_share_and_said_to_be_assumed(parts: int, count: int) -> None:
    found = spares(parts, None, 0.4, 10, BOUNDS)
    assert (found.count, found.enough, found.assumed) == (count, None, True)


NOW = 400 * DAY_US


def served(serial: str, days: int) -> Service:
    return Service(serial=serial, from_us=NOW - days * DAY_US, to_us=NOW)


def marks(serial: str, count: int, sort: str = "fence", ago_days: int = 5) -> list[Mark]:
    return [Mark(serial=serial, at_us=NOW - ago_days * DAY_US, sort=sort) for _ in range(count)]


def lemons(*given_marks: Mark, nodes: int = 40) -> list[str]:
    service = [served(f"n{n}", 60) for n in range(nodes)]
    return [score.serial for score in scores(given_marks, service, NOW, BOUNDS) if score.lemon]


def test_one_that_fails_far_more_often_than_its_fleet_is_a_lemon() -> None:
    usual = [mark for n in range(40) for mark in marks(f"n{n}", n % 2)]
    assert lemons(*usual) == []
    assert lemons(*usual, *marks("n7", 9)) == ["n7"]


def test_one_fault_more_is_no_lemon_and_old_ones_fade() -> None:
    assert lemons(*marks("n7", 1)) == []
    usual = [mark for n in range(40) for mark in marks(f"n{n}", 1)]
    assert lemons(*usual, *marks("n7", 12, ago_days=399)) == []


def test_a_busy_one_is_not_punished() -> None:
    service = [served(f"n{n}", 10) for n in range(30)] + [served("busy", 60)]
    given_marks = [mark for n in range(30) for mark in marks(f"n{n}", 1)] + marks("busy", 3)
    by_name = {score.serial: score for score in scores(given_marks, service, NOW, BOUNDS)}
    assert not by_name["busy"].lemon
    assert by_name["busy"].rate < by_name["n1"].rate


def test_a_rates_interval_holds_the_rate_and_a_part_without_service_is_not_judged() -> None:
    found = scores(marks("n1", 3, "xid"), [served("n1", 60), served("n2", 60)], NOW, BOUNDS)
    for score in found:
        assert score.low <= score.rate <= score.high
    assert scores(marks("gone", 3), [served("n1", 60)], NOW, BOUNDS)[0].marks == 0


def test_a_fleet_of_equals_has_few_lemons() -> None:
    chance = random.Random(5)
    found: list[Score] = []
    for _ in range(20):
        given_marks = [
            m
            for n in range(50)
            for m in marks(f"n{n}", sum(chance.random() < 0.02 for _ in range(60)))
        ]
        service = [served(f"n{n}", 60) for n in range(50)]
        found += [score for score in scores(given_marks, service, NOW, BOUNDS) if score.lemon]
    assert len(found) <= 10, "of 1000"


END = 10_000 * S


def ended(
    job: str = "j1",
    tenant: str = "t1",
    nodes: tuple[str, ...] = ("n1",),
    devices: tuple[str, ...] = (),
) -> Ended:
    return Ended(job=job, tenant=tenant, at_us=END, nodes=nodes, devices=devices)


def fault(
    sort: str,
    after_s: int = -60,
    node: str = "n1",
    device: str | None = None,
    certain: bool = False,
) -> Fault:
    return Fault(
        id="f1",
        node=node,
        device=device,
        at_us=END + after_s * S,
        code="48",
        sort=sort,
        certain=certain,
    )


@pytest.mark.parametrize(
    ("given_fault", "cause"),
    [
        (fault("hw_memory"), "hardware"),
        (fault("hw_bus", certain=True), "hardware"),
        (fault("app"), "program"),
        (fault("app_or_hw"), "program"),
        (fault("noise"), "unknown"),
        (fault("hw_memory", after_s=-600), "hardware"),
        (fault("hw_memory", after_s=-601), "unknown"),
        (fault("hw_memory", after_s=300), "hardware"),
        (fault("hw_memory", after_s=301), "unknown"),
        (fault("hw_memory", node="n2"), "unknown"),
    ],
)
def test_whose_fault_a_jobs_end_was(given_fault: Fault, cause: str) -> None:
    found = blamed(ended(), [given_fault], [], BOUNDS)
    assert found.cause == cause
    assert (found.confidence > 0) == (cause != "unknown")
    assert found.why


def test_a_fault_on_another_gpu_is_not_the_jobs() -> None:
    job = ended(devices=("GPU-1",))
    assert blamed(job, [fault("hw_memory", device="GPU-2")], [], BOUNDS).cause == "unknown"
    assert blamed(job, [fault("hw_memory", device="GPU-1")], [], BOUNDS).cause == "hardware"


def test_one_owner_failing_everywhere_is_held_against_no_node() -> None:
    others = [ended(f"j{n}", nodes=(f"n{n}",)) for n in range(2, 9)]
    found = blamed(ended(), [fault("app_or_hw")], others, BOUNDS)
    assert (found.cause, found.confidence) == ("program", Fraction(9, 10))
    assert "7 other nodes" in found.why


def test_several_owners_failing_on_one_part_are_the_parts_fault() -> None:
    others = [ended("j2", tenant="t2"), ended("j3", tenant="t3")]
    assert blamed(ended(), [fault("app_or_hw")], others, BOUNDS).cause == "hardware"


def stay(state: str, from_min: int, to_min: int, device: str | None = None) -> Stay:
    return Stay(
        device=device,
        state=state,
        from_us=from_min * MINUTE,
        to_us=to_min * MINUTE,
        id=f"m{from_min}",
    )


def test_a_sick_gpu_is_down_though_its_node_is_well() -> None:
    stays = [
        stay("healthy", 0, 100),
        stay("fenced", 20, 30, "GPU-1"),
        stay("repairing", 30, 40, "GPU-1"),
    ]
    sick = availability("GPU-1", stays, 0, 100 * MINUTE)
    assert (sick.down_us, sick.faults, sick.evidence) == (20 * MINUTE, 1, ("m20", "m30"))
    assert (sick.least, sick.most) == (Fraction(4, 5), Fraction(4, 5))
    assert (sick.between_faults_us, sick.to_repair_us) == (80 * MINUTE, 20 * MINUTE)
    well = availability("GPU-2", stays, 0, 100 * MINUTE)
    assert (well.down_us, well.between_faults_us, well.to_repair_us) == (0, None, None)


def test_silence_is_neither_up_nor_down_and_maintenance_is_apart() -> None:
    stays = [stay("healthy", 0, 50), stay("unknown", 50, 60), stay("maintenance", 60, 80)]
    found = availability("GPU-1", stays, 0, 100 * MINUTE)
    assert (found.up_us, found.unknown_us, found.maintenance_us) == (
        50 * MINUTE,
        30 * MINUTE,
        20 * MINUTE,
    )
    assert (found.least, found.most) == (Fraction(5, 8), Fraction(1))


STAYS = st.lists(
    st.builds(
        lambda state, start, length, device: stay(state, start, start + length, device),
        st.sampled_from(STATES), st.integers(-20, 120), st.integers(1, 60), st.sampled_from([None, "GPU-1", "GPU-2"]),
    ),
    max_size=12,
)  # fmt: skip


@given(STAYS)
def test_the_four_kinds_of_time_add_up_to_the_period(stays: list[Stay]) -> None:
    found = availability("GPU-1", stays, 0, 100 * MINUTE)
    assert found.up_us + found.down_us + found.maintenance_us + found.unknown_us == 100 * MINUTE
    if found.least is not None and found.most is not None:
        assert 0 <= found.least <= found.most <= 1
    assert (
        availability("GPU-1", [*reversed(stays), *stays], 0, 100 * MINUTE).down_us == found.down_us
    )


def test_runpods_published_example() -> None:
    assert float(runpod_reliability(43_200 * MINUTE, 30 * MINUTE)) == pytest.approx(
        0.999537, abs=1e-6
    )
    assert runpod_reliability(43_200 * MINUTE, 0) == 1


def test_the_credit_that_a_promise_implies() -> None:
    tiers = (
        Tier(below=Fraction(99, 100), percent=Fraction(10)),
        Tier(below=Fraction(95, 100), percent=Fraction(20)),
    )
    stays = [stay("healthy", 0, 900), stay("fenced", 900, 930), stay("unknown", 930, 1000)]
    found = credit(availability("GPU-1", stays, 0, 1000 * MINUTE), tiers)
    assert (found.percent, found.at_most, found.evidence) == (10, 20, ("m900",))
    good = credit(availability("GPU-1", [stay("healthy", 0, 1000)], 0, 1000 * MINUTE), tiers)
    assert (good.percent, good.at_most) == (0, 0)


def verdict(
    node: str, shadow: bool, code: str = "xid-31-same-gpu", words: str = "CRITICAL"
) -> Verdict:
    return Verdict(
        node=node, device="GPU-1", check="xid", verdict=words, code=code, evidence=(), action="diagnostic",
        since_us=7, boot="b", epoch=0, shadow=shadow,
    )  # fmt: skip


def test_a_trial_says_what_would_have_been_done_and_who_agreed() -> None:
    found = trials(
        [(day * DAY_US, verdict(node, shadow, *more)) for node, shadow, day, *more in (
            ("n1", True, 0), ("n1", True, 3), ("n2", True, 3), ("n2", False, 4, "xid-48"),
            ("n3", False, 4, "xid-48"), ("n1", False, 3, "x", "WARN"),
        )],
        8 * DAY_US,
        BOUNDS,
    )  # fmt: skip
    (trial,) = found
    assert (trial.rule, trial.would_have, trial.nodes, trial.agreed) == ("xid-31-same-gpu", 3, 2, 1)
    assert (trial.days, trial.over) == (8, True)


def test_repeats_that_are_on_trial_need_several_owners_and_fence_nothing() -> None:
    lines = [xid(31, f"pid={n}, name=job{n}, Ch", at=1000.0 * n) for n in (1, 2)]
    faults = merged(driver_lines(kernel_lines(lines)), BOUNDS.us("event.merge"))
    assert not [f for f in log_findings(faults, RULES) if f.shadow]
    for n, each in enumerate(faults):
        each.tenants.add(f"t{n}")
        each.jobs.add(f"j{n}")
    (trial,) = [f for f in log_findings(faults, RULES) if f.shadow]
    assert (trial.rule, trial.verdict, trial.device) == (
        "xid-31-same-gpu",
        "CRITICAL",
        "0000:9b:00",
    )
    faults[1].tenants = {"t0"}
    assert not [f for f in log_findings(faults, RULES) if f.shadow]


def test_13_at_one_place_of_a_gpu_is_on_trial_and_at_different_places_is_software() -> None:
    def told(*places: int) -> list[str]:
        lines = [
            xid(
                13,
                f"pid={n}, name=job{n}, Exception on (GPC {place}, TPC 1, SM 0)",
                at=1000.0 * (n + 1),
            )
            for n, place in enumerate(places)
        ]
        faults = merged(driver_lines(kernel_lines(lines)), BOUNDS.us("event.merge"))
        for n, each in enumerate(faults):
            each.tenants.add(f"t{n}")
        return [f.rule for f in log_findings(faults, RULES) if f.shadow]

    assert told(3, 3) == ["xid-13-same-place"]
    assert told(3, 4) == []
