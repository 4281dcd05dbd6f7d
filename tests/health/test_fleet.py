"""A fleet: at most so many fences an hour, a stop and a page, and a thousand node-days of usual noise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.health.driver_lines import driver_lines, merged
from ouvrage.health.fleet import Fenced, allowed, cap, stop
from ouvrage.health.gpus import check_gpu, check_gpus
from ouvrage.health.kernel_log import kernel_lines
from ouvrage.health.watching import Look, Watch, looked
from ouvrage.health.xid import log_findings
from ouvrage.model.health import CheckResult, Seen
from tests.health.rules import BOUNDS, RULES, xid

S = 1_000_000
HOUR = 3600 * S


@pytest.mark.parametrize(
    ("nodes", "an_hour", "stops"), [(1, 1, 2), (5, 1, 2), (10, 1, 2), (30, 3, 6), (288, 28, 58)]
)
def test_a_tenth_an_hour_and_a_stop_at_a_fifth(nodes: int, an_hour: int, stops: int) -> None:
    assert (cap(nodes, BOUNDS), stop(nodes, BOUNDS)) == (an_hour, stops)


def test_a_single_sick_machine_is_fenced_even_alone() -> None:
    assert allowed({"n1": "xid-79"}, [], 1, HOUR, BOUNDS).now == ("n1",)


def test_214_of_288_at_once_are_not_fenced_and_a_person_is_paged() -> None:
    wanting = {f"n{n}": "nvlink-down" for n in range(214)}
    found = allowed(wanting, [], 288, HOUR, BOUNDS)
    assert found.now == ()
    assert len(found.waiting) == 214
    assert "214 of 288 machines would be out, 214 of them by nvlink-down" in (found.page or "")


def test_214_of_288_one_after_another_fence_at_most_the_cap_and_page() -> None:
    fenced: list[Fenced] = []
    wanting: dict[str, str] = {}
    pages: list[str] = []
    for n in range(214):
        wanting[f"n{n}"] = "nvlink-down"
        found = allowed(wanting, fenced, 288, HOUR + n * S, BOUNDS)
        fenced += [Fenced(node=node, at_us=HOUR + n * S) for node in found.now]
        pages += [found.page] if found.page else []
    assert len(fenced) == 28
    assert "automation fences nothing more" in pages[-1]


def test_fences_that_were_let_go_count_for_the_hour_they_were_set_in() -> None:
    gone = [Fenced(node=f"n{n}", at_us=HOUR, held=False) for n in range(3)]
    wanting = {"n9": "xid-79"}
    assert allowed(wanting, gone, 30, HOUR + S, BOUNDS).now == ()
    assert allowed(wanting, gone, 30, 2 * HOUR, BOUNDS).now == ("n9",)


@given(
    st.integers(1, 300),
    st.lists(st.tuples(st.integers(0, 299), st.integers(0, 7200)), max_size=120),
)
def test_whatever_is_wanted_when_it_is_never_more_than_the_cap_in_any_hour(
    nodes: int, wants: list[tuple[int, int]]
) -> None:
    fenced: list[Fenced] = []
    for number, at_s in sorted(wants, key=lambda want: want[1]):
        found = allowed({f"n{number % nodes}": "x"}, fenced, nodes, at_s * S, BOUNDS)
        fenced += [Fenced(node=node, at_us=at_s * S) for node in found.now]
    for each in fenced:
        hour = [f for f in fenced if 0 <= f.at_us - each.at_us < HOUR]
        assert len({f.node for f in hour}) <= cap(nodes, BOUNDS)
    assert len({f.node for f in fenced}) < max(2, stop(nodes, BOUNDS))


# A thousand node-days. Rates are made up, a few times what the field notes tell of; what is real is
# the form of the noise, and that it goes through the parser, the table, the debounce and the fences.

GPUS = [f"PCI:0000:{bus:02x}:00" for bus in (0x1B, 0x3D, 0x4C, 0x5F, 0x9B, 0xBA, 0xCB, 0xDC)]
DAY_S = 86_400


@dataclass
class Day:
    """One node's day: lines of its kernel, and what its GPUs and links show at which moment."""

    lines: list[tuple[float, str]] = field(default_factory=list)
    looks: list[tuple[float, CheckResult]] = field(default_factory=list)


def noisy_day(chance: random.Random) -> Day:
    day = Day(lines=[(1.0, "[    1.000000] Linux version 6.8")])
    for _ in range(chance.choices((0, 1, 2, 3), (55, 30, 10, 5))[0]):
        day.lines += a_bad_program(chance)
    if chance.random() < 0.05:
        start, gpu = chance.uniform(700, DAY_S), chance.choice(GPUS)
        day.lines += [(start + n / 50, xid(45, "pid=9, name=python, Ch 8", gpu, start + n / 50))
                      for n in range(chance.randrange(50, 1500))]  # fmt: skip
    if chance.random() < 0.02:
        at = chance.uniform(700, DAY_S)
        day.lines.append(
            (at, xid(63, "pid='<unknown>', Row Remapper: New row marked", chance.choice(GPUS), at))
        )
    if chance.random() < 0.1:
        day.looks += boot_storm(chance)
    if chance.random() < 0.1:
        at = chance.uniform(700, DAY_S)
        day.looks += [(at, flap(1)), (at + 10, CheckResult(check="link", verdict="OK"))]
    day.looks += gpu_polls(chance)
    return day


def a_bad_program(chance: random.Random) -> Iterator[tuple[float, str]]:
    """A user's program that fails, is started again, and fails again: on the same GPUs, some of them."""
    code = chance.choices((13, 31, 43), (3, 5, 4))[0]
    gpus = chance.sample(GPUS, chance.choice((1, 1, 2, 8)))
    at, name = (
        chance.uniform(700, DAY_S),
        chance.choice(("python", "ray::WorkerDict", "pt_main_thread")),
    )
    for attempt in range(chance.choice((1, 1, 2, 5, 20))):
        for gpu in gpus:
            for line in range(chance.choice((1, 3, 12))):
                when = at + attempt * 90 + line / 100
                place = f"Graphics SM Warp Exception on (GPC {line % 7}, TPC {chance.randrange(9)}, SM 0)"
                yield when, xid(code, f"pid={4000 + attempt}, name={name}, {place}", gpu, when)
                yield when, xid(45, f"pid={4000 + attempt}, name={name}, Ch 8", gpu, when)


def boot_storm(chance: random.Random) -> Iterator[tuple[float, CheckResult]]:
    """Links and GPUs that are not there yet for some minutes after boot."""
    ready = chance.uniform(30, 560)
    late = check_gpus([], RULES, 8)[0]
    for at in range(10, int(ready), 10):
        yield at, late
    for at in range(int(ready) + 10, int(ready) + 60, 10):
        yield at, CheckResult(check="gpu", verdict="OK")


def flap(events: int) -> CheckResult:
    return CheckResult(
        check="link", verdict="CRITICAL", rule="link-flap", reasons=(f"{events} flaps",)
    )


def gpu_polls(chance: random.Random) -> Iterator[tuple[float, CheckResult]]:
    """Quiet polls, a power cap for hours, a hot moment, an answer that does not come once."""
    busy = chance.random() < 0.7
    hot = chance.uniform(700, DAY_S)
    for at in range(700, DAY_S, 1200):
        values: dict[str, int | str | None] = {
            "recovery_action": 0, "slow_sw_power_cap": int(busy), "temperature_c": 70 + 10 * busy,
            "ecc_aggregate_uncorrected": 3,
        }  # fmt: skip
        yield at, judged(values)
        if chance.random() < 0.02:
            yield at + 10, judged({}, "no answer within 10 s")
            yield at + 20, judged(values)
    if chance.random() < 0.1:
        yield hot, judged({"recovery_action": 0, "temperature_c": 96})
        yield hot + 10, judged({"recovery_action": 0, "slow_hw_thermal": 1, "temperature_c": 86})
        yield hot + 20, judged({"recovery_action": 0, "temperature_c": 80})


def judged(values: dict[str, int | str | None], fault: str | None = None) -> CheckResult:
    seen = Seen(
        probe="gpu", device="GPU-1", at_us=0, boot="b", monotonic_us=0, values=values, fault=fault
    )
    return check_gpu(seen, RULES)


def fences_of_day(day: Day) -> list[str]:
    """Everything of a day that would fence, by the rules as they are shipped."""
    lines = [line for _, line in sorted(day.lines)]
    faults = merged(driver_lines(kernel_lines(lines)), BOUNDS.us("event.merge"))
    found = [f.rule for f in log_findings(faults, RULES) if f.fence != "none" and not f.shadow]
    watches: dict[str, Watch] = {}
    for at, result in sorted(day.looks, key=lambda each: each[0]):
        before = watches.get(result.check, Watch())
        watch = looked(before, Look(at_us=int(at * S), boot="b", result=result), BOUNDS)
        if watch.verdict == "CRITICAL" and before.verdict != "CRITICAL":
            found.append(result.rule)
        watches[result.check] = watch
    return found


def test_a_thousand_node_days_of_usual_noise_fence_at_most_one() -> None:
    chance = random.Random(20261130)
    days = [noisy_day(chance) for _ in range(1000)]
    lines = sum(len(day.lines) for day in days)
    assert lines > 30_000
    assert sum(len(day.looks) for day in days) > 70_000
    false = [rule for day in days for rule in fences_of_day(day)]
    assert len(false) <= 1, false


def test_the_same_days_with_a_fault_in_each_are_all_fenced() -> None:
    chance = random.Random(7)
    faults = {
        48: "DBE",
        62: "halted",
        74: "NVLink",
        79: "fallen off",
        95: "uncontained",
        119: "Timeout",
    }
    for code, words in faults.items():
        for _ in range(5):
            day, at = noisy_day(chance), chance.uniform(2, DAY_S)
            day.lines.append((at, xid(code, f"pid=1, name=x, {words}", chance.choice(GPUS), at)))
            assert f"xid-{code}" in fences_of_day(day)
    brake = noisy_day(chance)
    brake.looks += [
        (DAY_S + 10 * n, judged({"recovery_action": 0, "slow_hw_power_brake": 1}))
        for n in range(70)
    ]
    assert "slow-hw-power-brake" in fences_of_day(brake)
    dead = noisy_day(chance)
    dead.looks += [(DAY_S + 10 * n, judged({}, "hangs")) for n in range(40)]
    assert "gpu-silent" in fences_of_day(dead)
