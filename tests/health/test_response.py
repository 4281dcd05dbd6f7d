"""From verdicts to fences, rungs and people: the way there and back, and what moves nothing."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ouvrage.health.fleet import cap, stop
from ouvrage.health.ladder import AUTOMATIC
from ouvrage.health.response import FENCED
from tests.health.fleets import HOUR, MINUTE, NOON, Fleet, S
from tests.health.rules import BOUNDS

ON = frozenset(AUTOMATIC)


@pytest.fixture
def fleet() -> Fleet:
    made = Fleet(turned_on=ON)
    made.node()
    return made


def test_what_every_check_finds_well_becomes_healthy_and_stays(fleet: Fleet) -> None:
    assert fleet.state(None) == "unknown"
    fleet.ok(device=None)
    assert [m.to_state for m in fleet.look().moves] == ["verifying", "healthy"]
    fleet.ok(device=None)
    assert fleet.look(MINUTE).moves == ()
    fleet.lawful()


def test_one_gpu_is_fenced_reset_verified_and_freed(fleet: Fleet) -> None:
    fleet.verdict()
    found = fleet.look(S)
    assert fleet.path() == ["fenced", "draining", "repairing"]
    assert found.moves[-1].evidence
    assert fleet.held() == {"automation"}
    assert fleet.held(device="n1-g1") == frozenset()
    assert [(o.rung, o.code) for o in fleet.ordered] == [("gpu_reset", "xid-95")]
    fleet.climb()
    assert [m.to_state for m in fleet.look(MINUTE).moves] == ["verifying"]
    assert fleet.held() == {"automation"}
    fleet.ok()
    found = fleet.look(MINUTE)
    assert [m.to_state for m in found.moves] == ["healthy"]
    assert [r.verified for r in found.remedies] == [True]
    assert fleet.held() == frozenset()
    fleet.lawful()


def test_work_that_runs_goes_on_and_the_rung_waits_for_its_end(fleet: Fleet) -> None:
    fleet.busy.add(("n1", "n1-g0"))
    fleet.verdict()
    fleet.look()
    assert (fleet.state(), fleet.ordered) == ("draining", ())
    fleet.look(25 * HOUR)
    assert "work has gone on for 25 h" in fleet.pages[-1]
    fleet.busy.clear()
    fleet.look(S)
    assert fleet.state() == "repairing"


def test_a_reboot_waits_for_the_whole_machine_and_fences_it(fleet: Fleet) -> None:
    fleet.busy.add(("n1", "n1-g1"))
    fleet.verdict()
    fleet.look()
    fleet.climb("refused")
    fleet.look(S)
    assert fleet.ordered == ()
    assert fleet.held(device="n1-g1") == {"automation"}
    fleet.busy.clear()
    fleet.look(S)
    assert [o.rung for o in fleet.ordered] == ["reboot"]
    fleet.climb()
    fleet.look(MINUTE)
    fleet.ok(boot="boot-2")
    fleet.look(S)
    assert fleet.state() == "healthy"
    assert fleet.held(device="n1-g1") == frozenset()
    fleet.lawful()


def test_what_asks_for_a_reboot_is_of_the_machine(fleet: Fleet) -> None:
    fleet.verdict(action="reboot", code="xid-79")
    fleet.look()
    assert (fleet.state(None), fleet.held(device="n1-g1")) == ("repairing", {"automation"})


def test_a_disk_is_of_the_machine(fleet: Fleet) -> None:
    fleet.verdict(action="replace", device="/dev/nvme0", check="smart", code="disk-spare")
    fleet.look()
    assert fleet.state(None) == "awaiting_hands"
    assert "next is replace" in fleet.pages[0]


def test_until_its_owner_turns_a_rung_on_it_is_said_once_and_a_person_called() -> None:
    fleet = Fleet()
    fleet.node()
    fleet.verdict()
    found = fleet.look()
    assert (fleet.state(), fleet.ordered) == ("awaiting_hands", ())
    assert [(r.rung, r.outcome, r.dry_run) for r in found.remedies] == [
        ("gpu_reset", "dry_run", True)
    ]
    assert len(fleet.pages) == 1
    for _ in range(3):
        assert fleet.look(2 * HOUR).remedies == ()
    assert len(fleet.pages) == 1
    fleet.turned_on = ON
    fleet.look(S)
    assert (fleet.state(), fleet.ordered[0].rung) == ("repairing", "gpu_reset")
    fleet.lawful()


def test_what_a_person_did_is_verified_and_frees() -> None:
    fleet = Fleet()
    fleet.node()
    fleet.verdict()
    fleet.look()
    fleet.remedy("gpu_reset", epoch=fleet.record.standing(("n1", "n1-g0")).epoch)
    fleet.look(S)
    assert fleet.state() == "verifying"
    fleet.ok()
    fleet.look(S)
    assert (fleet.state(), fleet.held()) == ("healthy", frozenset())


def test_the_ladder_is_climbed_rung_by_rung_to_a_person(fleet: Fleet) -> None:
    fleet.verdict()
    climbed: list[str] = []
    boot = 1
    for _ in range(40):
        fleet.look(MINUTE)
        if not fleet.ordered:
            if fleet.state() == "awaiting_hands":
                break
            fleet.verdict(boot=f"boot-{boot}")  # it is back
            continue
        climbed.append(fleet.climb().rung)
        boot += climbed[-1] in ("reboot", "power_cycle")
    assert climbed == [rung for rung in AUTOMATIC for _ in range(2)]
    assert "next is replace" in fleet.pages[-1]
    assert [t.remedy.verified for t in fleet.record.tries["n1", "n1-g0"]] == [False] * 8
    fleet.lawful()


def test_a_repair_that_no_check_speaks_for_is_a_persons(fleet: Fleet) -> None:
    fleet.verdict()
    fleet.look()
    fleet.climb()
    fleet.look(S)
    fleet.look(14 * MINUTE)
    assert fleet.state() == "verifying"
    fleet.look(2 * MINUTE)
    assert (fleet.state(), fleet.held()) == ("awaiting_hands", {"automation"})


def test_a_rung_that_never_ends_has_failed(fleet: Fleet) -> None:
    fleet.verdict()
    fleet.look()
    fleet.climb("waiting")
    assert fleet.look(MINUTE).ordered == ()
    found = fleet.look(HOUR)
    assert [(r.rung, r.outcome) for r in found.remedies] == [("gpu_reset", "failed")]
    assert fleet.ordered[0].rung == "reboot"


def test_an_older_boot_moves_nothing(fleet: Fleet) -> None:
    fleet.ok(device=None)
    fleet.ok(device=None, boot="boot-2")
    fleet.look()
    fleet.verdict(boot="boot-1")
    fleet.verdict(boot="boot-1", device=None, action="reboot")
    assert fleet.look(S).moves == ()


def test_an_older_epoch_moves_nothing_and_news_under_one_does(fleet: Fleet) -> None:
    late = fleet.verdict()
    fleet.look(S)
    fleet.climb()
    fleet.look(MINUTE)
    fleet.ok()
    fleet.look(S)
    assert fleet.state() == "healthy"
    at = fleet.now
    fleet.now = NOON  # sent again, or held up on its way: made before the repair, whatever it says of itself
    fleet.verdict(epoch=0, since=9 * HOUR)
    fleet.record.take(late)
    fleet.now = at
    assert fleet.look(S).moves == ()
    fleet.now += MINUTE
    fleet.verdict(epoch=0)  # made after it, by an agent that has not heard of it
    assert fleet.look(S).moves[0].to_state == "fenced"


def test_what_is_on_trial_fences_nothing(fleet: Fleet) -> None:
    fleet.verdict(shadow=True)
    assert fleet.look().moves == ()


def test_a_warning_is_suspect_takes_work_and_passes(fleet: Fleet) -> None:
    fleet.ok(device=None)
    fleet.look()
    fleet.verdict("WARN", "look", device=None)
    fleet.look(S)
    assert (fleet.state(None), fleet.held(device=None)) == ("suspect", frozenset())
    fleet.ok(device=None)
    fleet.look(S)
    assert fleet.state(None) == "healthy"


def test_free_when_the_last_holder_lets_go(fleet: Fleet) -> None:
    from ouvrage.model.machines import FenceSet

    fleet.put(FenceSet(node="n1", device="n1-g0", holder="operator", held=True, why="", by="sam"))
    fleet.verdict()
    fleet.look()
    assert fleet.held() == {"automation", "operator"}
    fleet.climb()
    fleet.look(S)
    fleet.ok()
    fleet.look(S)
    assert (fleet.state(), fleet.held()) == ("healthy", {"operator"})


def test_silence_is_unknown_then_fenced_and_ends_with_being_looked_at(fleet: Fleet) -> None:
    fleet.ok(device=None)
    fleet.look()
    fleet.silent = {"n1": 89 * S}
    assert fleet.look(89 * S).moves == ()
    fleet.silent = {"n1": 91 * S}
    fleet.look(2 * S)
    assert (fleet.state(None), fleet.held()) == ("unknown", frozenset())
    fleet.silent = {"n1": 301 * S}
    fleet.look(210 * S)
    assert (fleet.state(None), fleet.held()) == ("awaiting_hands", {"automation"})
    fleet.silent = {}
    fleet.look(S)
    assert (fleet.state(None), fleet.held()) == ("healthy", frozenset())
    fleet.lawful()


def test_a_window_of_maintenance_holds_in_its_makers_name_and_ends_verified(fleet: Fleet) -> None:
    fleet.ok(device=None)
    fleet.look()
    fleet.window(NOON + HOUR, NOON + 2 * HOUR)
    assert fleet.look(MINUTE).moves == ()
    fleet.look(HOUR)
    assert (fleet.state(None), fleet.held()) == ("maintenance", {"operator"})
    assert fleet.record.moves[-1].move.actor == "sam"
    fleet.verdict(device=None, action="reboot")
    fleet.look(S)
    assert fleet.state(None) == "maintenance"
    fleet.ok(device=None)
    fleet.look(HOUR)
    assert (fleet.state(None), fleet.held()) == ("healthy", frozenset())
    fleet.lawful()


def test_a_window_that_is_called_off_ends(fleet: Fleet) -> None:
    fleet.ok(device=None)
    fleet.window(NOON, NOON + HOUR)
    fleet.look(MINUTE)
    assert fleet.state(None) == "maintenance"
    fleet.window(NOON, NOON + HOUR, cancelled=True)
    fleet.look(S)
    assert (fleet.state(None), fleet.held()) == ("healthy", frozenset())


def test_on_a_machine_that_others_run_a_person_is_told(fleet: Fleet) -> None:
    fleet.observed = frozenset({"n1"})
    fleet.verdict()
    fleet.look()
    assert (fleet.state(), fleet.ordered) == ("awaiting_hands", ())
    assert "run by others" in fleet.pages[0]


def test_214_of_288_at_boot_fence_nothing_and_page() -> None:
    fleet = Fleet(turned_on=ON)
    for n in range(288):
        fleet.node(f"n{n}", gpus=0)
    for n in range(214):
        fleet.verdict(node=f"n{n}", device=None, action="reboot", code="nvlink-down")
    found = fleet.look(S)
    assert found.fences == ()
    assert {m.to_state for m in found.moves} == {"suspect"}
    assert len(fleet.pages) == 1
    assert "214 of 288 machines would be out" in fleet.pages[0]
    fleet.look(59 * MINUTE)
    assert len(fleet.pages) == 1
    fleet.look(2 * MINUTE)
    assert len(fleet.pages) == 2
    fleet.lawful()


def test_214_of_288_one_after_another_fence_at_most_the_cap() -> None:
    fleet = Fleet(turned_on=ON)
    for n in range(288):
        fleet.node(f"n{n}", gpus=0)
    for n in range(0, 214, 8):
        for at in range(n, min(n + 8, 214)):
            fleet.verdict(node=f"n{at}", device=None, action="diagnostic", code="nvlink-down")
        fleet.look(S)
    fenced = {place[0] for place, by in fleet.record.held.items() if "automation" in by}
    assert len(fenced) == cap(288, BOUNDS) == 28
    assert "automation fences nothing more" in fleet.pages[-1]
    fleet.lawful()


class Storm(RuleBasedStateMachine):
    """Verdicts, repeats, late and reordered ones, boots, remedies and people, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet(turned_on=ON)
        self.boot = {f"n{n}": 1 for n in range(10)}
        for node in self.boot:
            self.fleet.node(node, gpus=2)
        self.kept: list[int] = []

    nodes = st.integers(0, 9).map("n{}".format)

    @rule(
        node=nodes,
        gpu=st.sampled_from([None, 0, 1]),
        action=st.sampled_from(["gpu_reset", "reboot", "diagnostic", "replace"]),
        verdict=st.sampled_from(["OK", "OK", "WARN", "CRITICAL"]),
    )
    def verdict(self, node: str, gpu: int | None, action: str, verdict: str) -> None:
        self.fleet.now += S
        self.fleet.verdict(
            verdict, action, node=node, device=None if gpu is None else f"{node}-g{gpu}",
            boot=f"boot-{self.boot[node]}",
        )  # fmt: skip
        self.kept.append(len(self.fleet.facts) - 1)

    @precondition(lambda self: self.kept)
    @rule(at=st.integers(0, 10_000))
    def again(self, at: int) -> None:
        """A fact that is there already is not recorded; a record that takes it twice changes nothing."""
        entry = self.fleet.facts[self.kept[at % len(self.kept)]]
        held, states = dict(self.fleet.record.held), dict(self.fleet.record.standings)
        self.fleet.record.take(entry)
        assert (held, states) == (self.fleet.record.held, self.fleet.record.standings)

    @rule(node=nodes)
    def reboot(self, node: str) -> None:
        self.boot[node] += 1
        self.fleet.ok(node=node, device=None, check="boot", boot=f"boot-{self.boot[node]}")

    @precondition(lambda self: self.fleet.ordered)
    @rule(outcome=st.sampled_from(["done", "failed", "refused", "waiting"]))
    def climb(self, outcome: str) -> None:
        self.fleet.ordered = self.fleet.ordered[:1]
        self.fleet.climb(outcome)

    @rule(after=st.sampled_from([0, S, MINUTE, 20 * MINUTE, 2 * HOUR]))
    def look(self, after: int) -> None:
        before = set(self.fenced())
        wanted = {place for place in self.fleet.record.places() if self.fleet.record.against(place)}
        found = self.fleet.look(after)
        new = set(self.fenced()) - before
        assert {place[0] for place in new} <= {p[0] for p in wanted}
        waiting = {p[0] for p, why in found.reasons.items() if "no fence yet" in why}
        for place in wanted:  # what is not fenced after a look is said to wait, and why
            fenced = self.fleet.held(*place)
            assert fenced or place[0] in waiting

    def fenced(self) -> list[tuple[str, str | None]]:
        return [p for p, by in self.fleet.record.held.items() if "automation" in by]

    @invariant()
    def lawful(self) -> None:
        record = self.fleet.record
        for place in self.fenced():
            whole = [s.state for p, s in record.standings.items() if p[0] == place[0]]
            own = record.standing(place).state
            assert own in FENCED or (place[1] is None and FENCED & set(whole))
        assert len({p[0] for p in self.fenced()}) < stop(10, BOUNDS)

    def teardown(self) -> None:
        self.fleet.lawful()


TestStorm = Storm.TestCase
TestStorm.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


def test_the_laws_name_what_cannot_have_been() -> None:
    from ouvrage.health.laws import LAWS
    from ouvrage.model.health import JobBlamed, MaintenanceWindow, Remedy, RepairStep

    fleet = Fleet()
    fleet.put(
        RepairStep(
            node="n1", device=None, rung="reboot", number=1, step="x", outcome="perhaps", note="",
            by="sam", epoch=0,
        )
    )  # fmt: skip
    fleet.put(
        MaintenanceWindow(
            window="w", node="n1", from_us=5, to_us=5, why="", by="sam", cancelled=False
        )
    )
    fleet.put(
        JobBlamed(
            job="j", attempt="a", node="n1", cause="hardware", percent=101, evidence=(), why="",
            billed=False,
        )
    )  # fmt: skip
    fleet.put(
        Remedy(
            node="n1", device=None, rung="reboot", outcome="failed", verified=True, dry_run=False,
            by="sam", why="", epoch=1,
        )
    )  # fmt: skip
    found = [law.name for law in LAWS for _ in law.check(fleet.facts)]
    assert found == [
        "health/remedies",
        "health/hands",
        "health/hands",
        "health/blame",
        "health/blame",
    ]
