"""What is fenced beside what is repaired, what waits for idleness, and facts that come late, twice, in odd order or in heaps."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from ouvrage.base.grades import Grade
from ouvrage.health.ladder import AUTOMATIC
from ouvrage.health.watching import Look, Watch, looked, stated
from ouvrage.ledger.kinds import fact_of, payload_of, read
from ouvrage.model.health import CheckResult, HealthEvent, Verdict
from ouvrage.model.work import Named
from tests.health.fleets import HOUR, MINUTE, Fleet, S
from tests.health.rules import RULES

ON = frozenset(AUTOMATIC)
PEER = "n1-g1"


@pytest.fixture
def fleet() -> Fleet:
    made = Fleet(turned_on=ON)
    made.node()
    for device in (None, "n1-g0", PEER):
        made.ok(device=device)
    made.look()
    return made


def say(fleet: Fleet, word: str, action: str = "none", *, at_drain: str = "none", fence: str = "none", **more: Any) -> None:  # fmt: skip
    fleet.verdict(word, action, at_drain=at_drain, fence=fence, **more)


def linked(fleet: Fleet, *devices: str) -> None:
    for device in devices:
        evidence = (Named(name="nvlinks_most", value="18"),)
        fleet.ok(device=device, check="gpu", evidence=evidence)


# What a rung takes along


def test_the_machine_stays_held_back_while_it_reboots(fleet: Fleet) -> None:
    fleet.verdict(action="gpu_reset")
    fleet.look()
    fleet.climb("refused")
    fleet.look(S)
    (order,) = fleet.ordered
    assert order.rung == "reboot"
    fleet.remedy("reboot", "waiting", "automation", order.place, order.epoch)
    fleet.look(S)
    assert fleet.held(device=PEER) == {"automation"}


def test_gpus_joined_by_nvlink_are_held_back_before_one_is_reset(fleet: Fleet) -> None:
    linked(fleet, "n1-g0", PEER)
    fleet.busy.add(("n1", PEER))
    fleet.verdict()
    fleet.look(S)
    assert fleet.ordered == ()
    assert fleet.held(device=PEER) == {"automation"}
    fleet.busy.clear()
    fleet.look(S)
    assert [(o.rung, o.beside) for o in fleet.ordered] == [("gpu_reset", (PEER,))]
    (order,) = fleet.ordered
    fleet.remedy("gpu_reset", "waiting", "automation", order.place, order.epoch)
    fleet.look(S)
    assert fleet.held(device=PEER) == {"automation"}
    fleet.remedy("gpu_reset", "done", "automation", order.place, order.epoch)
    fleet.look(S)
    assert (fleet.state(), fleet.held(device=PEER)) == ("verifying", frozenset())
    fleet.lawful()


def test_nothing_is_ordered_before_the_fence_beside_it_stands(fleet: Fleet) -> None:
    linked(fleet, "n1-g0", PEER)
    fleet.verdict()
    first = fleet.look(S)
    assert first.ordered == ()
    assert fleet.ordered != ()


def test_a_gpu_without_nvlinks_is_reset_alone(fleet: Fleet) -> None:
    linked(fleet, PEER)
    fleet.verdict()
    fleet.look(S)
    assert [o.beside for o in fleet.ordered] == [()]


# What is due when idle, and codes that nobody knows


def test_an_unknown_code_keeps_new_work_away_and_calls_a_person(fleet: Fleet) -> None:
    fleet.busy.add(("n1", "n1-g0"))
    say(fleet, "WARN", "look", fence="drain", code="xid-999")
    fleet.look(S)
    assert (fleet.state(), fleet.held(), fleet.pages) == ("draining", {"automation"}, [])
    fleet.busy.clear()
    fleet.look(S)
    assert fleet.state() == "awaiting_hands"
    assert "xid asks for look" in fleet.pages[0]
    fleet.ok()
    fleet.look(S)
    assert (fleet.state(), fleet.held()) == ("healthy", frozenset())
    fleet.lawful()


def test_what_is_due_when_idle_waits_for_the_end_of_work_then_is_done(fleet: Fleet) -> None:
    fleet.busy.add(("n1", "n1-g0"))
    say(fleet, "WARN", at_drain="gpu_reset", code="xid-63")
    fleet.look(S)
    assert (fleet.state(), fleet.held()) == ("suspect", frozenset())
    fleet.busy.clear()
    fleet.look(S)
    assert (fleet.state(), [o.rung for o in fleet.ordered]) == ("repairing", ["gpu_reset"])
    assert fleet.held() == {"automation"}
    fleet.climb()
    fleet.look(S)
    assert fleet.state() == "verifying"
    fleet.ok()
    fleet.look(S)
    assert (fleet.state(), fleet.held()) == ("healthy", frozenset())
    fleet.lawful()


def test_what_is_due_when_idle_and_stays_is_a_persons_not_a_reboot(fleet: Fleet) -> None:
    say(fleet, "WARN", at_drain="gpu_reset", code="xid-63")
    fleet.look(S)
    fleet.climb()
    fleet.look(S)
    fleet.look(HOUR)
    assert (fleet.state(), fleet.ordered) == ("awaiting_hands", ())


@pytest.mark.parametrize("hidden", ["not turned on", "observed"])
def test_what_is_due_when_idle_withholds_nothing_where_nobody_would_do_it(hidden: str) -> None:
    fleet = Fleet(turned_on=frozenset() if hidden == "not turned on" else ON)
    fleet.observed = frozenset({"n1"} if hidden == "observed" else ())
    fleet.node()
    fleet.ok(device=None)
    fleet.look()
    say(fleet, "WARN", at_drain="gpu_reset", code="xid-63")
    found = fleet.look(S)
    assert (fleet.state(), fleet.held()) == ("suspect", frozenset())
    assert found.reasons["n1", "n1-g0"].endswith(
        "gpu_reset once it is idle, which is not turned on"
    )


def test_what_waits_for_idleness_never_takes_the_room_of_what_is_broken() -> None:
    fleet = Fleet(turned_on=ON)
    for n in range(10):
        fleet.node(f"n{n}")
        fleet.ok(device=None, node=f"n{n}")
        fleet.ok(device=f"n{n}-g0", node=f"n{n}")
    fleet.look()
    for n in range(9):
        say(fleet, "WARN", at_drain="gpu_reset", code="xid-63", node=f"n{n}", device=f"n{n}-g0")
    fleet.verdict(node="n9", device="n9-g0")
    fleet.look(S)
    assert fleet.state("n9-g0", "n9") == "repairing"
    assert [n for n in range(9) if fleet.state(f"n{n}-g0", f"n{n}") != "suspect"] == []
    assert fleet.pages == []
    fleet.lawful()


def test_the_watch_states_what_is_due_and_what_fences() -> None:
    result = CheckResult(
        check="xid", verdict="WARN", device="GPU-1", rule="xid-999", action="look", fence="drain",
        at_drain="diagnostic",
    )  # fmt: skip
    watch = Watch()
    for n in range(5):
        at_us = (n + 20) * MINUTE
        watch = looked(watch, Look(at_us=at_us, boot="b", result=result), RULES.bounds)
    said = stated(watch, "n1", 0)
    assert (said.verdict, said.fence, said.at_drain) == ("WARN", "drain", "diagnostic")


def test_a_verdict_from_before_these_fields_is_read_as_it_was_meant() -> None:
    plain = Verdict(
        node="n1", device=None, check="xid", verdict="WARN", code="", evidence=(), action="none",
        since_us=1, boot="b", epoch=0, shadow=False,
    )  # fmt: skip
    earlier = payload_of(plain).replace('"at_drain":"none",', "").replace('"fence":"none",', "")
    assert "fence" not in earlier
    fact = fact_of(plain, source="a" * 32, id="x", subject="node:n1", valid_from=1, valid_to=None, grade=Grade.MEASURED)  # fmt: skip
    assert read(replace(fact, payload=earlier)) == plain


# Boots, order, heaps


def test_a_boot_that_was_only_heard_of_late_does_not_take_the_place_of_the_one_that_runs(
    fleet: Fleet,
) -> None:
    fleet.now += HOUR
    fleet.node(boot="boot-3")
    later, fleet.now = fleet.now, fleet.now - 30 * MINUTE
    fleet.verdict(boot="boot-2")  # it waited in a spool while the server was away
    fleet.put(
        HealthEvent(
            node="n1", device=None, code="79", count=1, boot="boot-2", first_monotonic_us=1,
            last_monotonic_us=1, line="",
        )
    )  # fmt: skip
    fleet.now = later + S
    fleet.look()
    assert fleet.held() == frozenset()
    fleet.verdict(boot="boot-3")
    fleet.look(S)
    assert fleet.state() == "repairing"


def test_after_a_clock_that_went_back_the_runner_says_which_boot_runs(fleet: Fleet) -> None:
    fleet.now -= HOUR
    fleet.verdict(boot="boot-2")  # its clock is an hour late, and the runner has not told yet
    fleet.look()
    assert fleet.held() == frozenset()
    fleet.now += HOUR + MINUTE
    fleet.node(boot="boot-2")
    fleet.look()
    assert fleet.state() == "repairing"


def test_a_person_who_tries_the_same_rung_again_is_believed() -> None:
    fleet = Fleet()
    fleet.node()
    fleet.verdict()
    fleet.look()
    epoch = fleet.record.standing(("n1", "n1-g0")).epoch
    fleet.remedy("gpu_reset", "failed", "ann", epoch=epoch)
    fleet.look(S)
    assert fleet.record.standing(("n1", "n1-g0")).epoch == epoch
    fleet.remedy("gpu_reset", "done", "bob", epoch=epoch)
    fleet.look(S)
    assert fleet.state() == "verifying"


def test_many_verdicts_at_once_are_answered_in_a_time_that_grows_as_they_do(fleet: Fleet) -> None:
    made = read(fleet.verdict().fact)

    def took(many: int) -> float:
        began = time.process_time()
        for n in range(many):
            word = ("CRITICAL", "OK")[n % 2]
            since = made.since_us + n
            fleet.put(replace(made, check=f"check-{n % 5000}", since_us=since, verdict=word))
        fleet.look(S)
        return time.process_time() - began

    took(10_000)  # by then there are as many checks as there will be
    few, many = took(2_000), took(20_000)
    assert many < 40 * few, "it grows with the square"
    kept = sum(len(each) for each in fleet.record.faults.values())
    assert kept <= 20_000
