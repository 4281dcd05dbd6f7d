"""Verdicts reach the platform from its nodes, and what follows: fences, repairs, people, and whose fault a job's end was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.health.fleet import cap
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of, read
from ouvrage.metering.exchange import Exported, export_run
from ouvrage.model.health import Remedy, StateMove, Verdict
from ouvrage.model.machines import NodeEnrolled
from ouvrage.server.context import Actor
from ouvrage.server.health import HealthLoop
from ouvrage.server.recording import stated
from ouvrage.server.services import node_facts
from ouvrage.store.platform.machines import NodeRow, put_node
from tests.health.rules import BOUNDS
from tests.platform.working import MIDMONTH_US, Working, working_on
from tests.support.runner_twin import Twin

S = 1_000_000
MINUTE, HOUR = 60 * S, 3600 * S
GPU = "GPU-node-1-0"


class Watch:
    """What a node's watch says, as its agent would send it."""

    def __init__(self, working: Working, twin: Twin, name: str = "node-1") -> None:
        self.working, self.twin, self.name = working, twin, name
        self.source, self.number, self.epoch = "c" * 32, 0, 0

    def fact(self, value: Any, at_us: int | None = None) -> Fact:
        self.number += 1
        at = self.working.clock() if at_us is None else at_us
        return fact_of(
            value, source=self.source, id=f"{value.KIND}/{self.number}", subject=f"node:{self.name}",
            valid_from=at, valid_to=None, grade=Grade.MEASURED,
        )  # fmt: skip

    def verdict(
        self, verdict: str = "CRITICAL", action: str = "gpu_reset", *, device: str | None = GPU,
        check: str = "xid", code: str = "xid-95", boot: str = "boot-1", node: str | None = None,
    ) -> Fact:  # fmt: skip
        return self.fact(
            Verdict(
                node=node or self.name, device=device, check=check, verdict=verdict, code=code,
                evidence=(), action="none" if verdict == "OK" else action,
                since_us=self.working.clock() - 1_794_000_000 * S, boot=boot, epoch=self.epoch,
                shadow=False,
            )
        )  # fmt: skip

    def send(self, *facts: Fact) -> dict[str, Any]:
        content = export_run(f"node:{self.name}", facts, None)
        answer = self.twin.http.post(
            "/v1/facts", content=content, headers={"Authorization": f"Bearer {self.twin.key}"}
        )
        if answer.status_code == 200:
            self.epoch = answer.json()["epoch"]
        return answer.json()

    def duties(self) -> dict[str, Any]:
        found = self.twin.http.get(
            "/v1/runner/health", headers={"Authorization": f"Bearer {self.twin.key}"}
        ).json()
        self.epoch = found["epoch"]
        return found


@pytest.fixture
def working(tmp_path: Path) -> Iterator[Working]:
    with working_on(tmp_path / "state") as made:
        yield made


def looker(working: Working, cycle: Any = None) -> HealthLoop:
    return HealthLoop(working.server.platform, "test", cycle, monotonic=working.clock)


def turn_on(working: Working, *rungs: str) -> None:
    names = ", ".join(f'"{rung}"' for rung in rungs)
    (working.server.platform.state_dir / "health.toml").write_text(f"turned_on = [{names}]\n")


def why(working: Working, job: str) -> str:
    return working.owner.get(f"/v1/jobs/{job}/explain")["code"]


def refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def every(working: Working, path: str) -> Iterator[dict[str, Any]]:
    cursor = None
    while True:
        part = working.owner.get(
            path, params={"limit": 200, **({"cursor": cursor} if cursor else {})}
        )
        yield from part["items"]
        cursor = part["next"]
        if cursor is None:
            return


def node(working: Working, name: str = "node-1") -> dict[str, Any]:
    return working.owner.get(f"/v1/nodes/{name}")


def test_a_sick_gpu_is_fenced_at_once_work_goes_on_and_new_work_goes_elsewhere(
    working: Working,
) -> None:
    twin = working.node(gpus=1)
    watch, loop = Watch(working, twin), looker(working)
    working.offer("one", gpu="RTX 4090", gpus=1)
    runs = working.submit(working.owner, "one")["job"]
    working.engine.observe()
    twin.ask()
    attempt = twin.starts[-1].attempt
    twin.report([twin.began(attempt)])
    watch.send(watch.verdict())
    working.clock.move(5 * S)
    loop.look()
    told = node(working)
    assert [(f["device"], f["holder"]) for f in told["fences"]] == [(GPU, "automation")]
    assert told["devices"][0]["health"] == "draining"
    waits = working.submit(working.owner, "one")["job"]
    working.engine.observe()
    assert working.owner.get(f"/v1/jobs/{waits}")["state"] == "waiting"
    assert why(working, waits) == "placement/fenced"
    assert working.owner.get(f"/v1/jobs/{runs}")["state"] == "running"
    second = working.node("node-2", gpus=1)
    working.engine.observe()
    second.ask()
    assert working.owner.get(f"/v1/jobs/{waits}")["last"]["node"] == second.node


def test_a_rung_that_is_turned_on_is_ordered_climbed_verified_and_frees(working: Working) -> None:
    turn_on(working, "gpu_reset")
    watch, loop = Watch(working, working.node(gpus=2)), looker(working)
    watch.send(watch.verdict())
    loop.look()
    duties = watch.duties()
    assert [(d["device"], d["rung"], d["code"]) for d in duties["ordered"]] == [
        (GPU, "gpu_reset", "xid-95")
    ]
    loop.look()
    assert watch.duties() == duties
    done = Remedy(
        node="node-1", device=GPU, rung="gpu_reset", outcome="done", verified=None, dry_run=False,
        by="automation", why="", epoch=duties["ordered"][0]["epoch"],
    )  # fmt: skip
    watch.send(watch.fact(done))
    loop.look()
    assert watch.duties()["verify"] == [GPU]
    working.clock.move(MINUTE)
    watch.send(watch.verdict("OK", code=""))
    loop.look()
    assert node(working)["fences"] == []
    told = working.owner.get("/v1/nodes/node-1/health")["told"]
    assert [m["to"] for m in told["moves"] if m["device"] == GPU] == [
        "fenced", "draining", "repairing", "verifying", "healthy"
    ]  # fmt: skip
    assert told["remedies"][0]["verified"] is True
    assert told["parts"][0]["down_us"] == MINUTE
    assert not working.server.platform.store.damage()


def test_a_person_walks_it_where_nothing_is_turned_on(working: Working) -> None:
    watch, loop = Watch(working, working.node(gpus=1)), looker(working)
    watch.send(watch.verdict())
    loop.look()
    told = working.owner.get("/v1/nodes/node-1/health")["told"]
    assert [s["state"] for s in told["states"] if s["device"] == GPU] == ["awaiting_hands"]
    assert "next is gpu_reset: gpu_reset is not turned on" in told["pages"][0]["words"]
    assert told["pages"][0]["runbook"] == "gpu-reset"
    assert [(r["rung"], r["dry_run"]) for r in told["remedies"]] == [("gpu_reset", True)]
    path = "/v1/nodes/node-1/repair"
    step = {"device": GPU, "rung": "gpu_reset", "number": 1, "step": "fence it", "stepped": "done"}
    working.owner.post(path, step)
    told = working.owner.post(path, {"device": GPU, "rung": "gpu_reset", "outcome": "done"})["told"]
    loop.look()
    working.clock.move(S)
    watch.duties()
    watch.send(watch.verdict("OK", code=""))
    loop.look()
    assert node(working)["fences"] == []
    told = working.owner.get("/v1/nodes/node-1/health")["told"]
    assert [(s["step"], s["outcome"]) for s in told["steps"]] == [("fence it", "done")]


def test_a_person_decides_with_a_reason_and_only_on_what_there_is(working: Working) -> None:
    working.node(gpus=1)
    path = "/v1/nodes/node-1/repair"
    assert refused(working.owner("POST", path, {"state": "rma"})) == (422, "node/move")
    working.owner.post(path, {"state": "maintenance", "note": "new fans"})
    assert node(working)["health"] == "maintenance"
    assert refused(working.owner("POST", path, {"device": "GPU-9"})) == (422, "node/device")


def test_a_node_speaks_of_itself_alone_and_in_a_nodes_kinds(working: Working) -> None:
    watch = Watch(working, working.node(gpus=1))
    working.node("node-2")
    told = watch.send(watch.verdict(node="node-2"))
    assert told["error"]["code"] == "node/facts"
    move = StateMove(
        node="node-1", device=None, from_state="unknown", to_state="fenced", actor="automation",
        reason="x", evidence=("x",), epoch=1,
    )  # fmt: skip
    assert watch.send(watch.fact(move))["error"]["code"] == "node/facts"
    fact = watch.verdict()
    assert watch.send(fact)["results"] == ["accepted"]
    assert watch.send(fact)["results"] == ["exists"]


def test_214_of_288_at_boot_fence_at_most_the_cap_and_page(working: Working) -> None:
    platform = working.server.platform
    rows: list[NodeEnrolled] = [
        NodeEnrolled(
            node=f"{n:032x}", name=f"n{n}", cpus=(0,), memory_mib=1, disk_mib=1, devices=(),
            isolations=(), cgroup="v1", boot="boot-1", version="0",
        )
        for n in range(288)
    ]  # fmt: skip
    with platform.writing() as tx:
        for seen in rows:
            put_node(tx.connection, NodeRow(seen=seen, listed=True, enrolled_us=tx.now_us))
        tx.note([stated(platform, s, subject=f"node:{s.name}", at_us=tx.now_us) for s in rows])
    loop = looker(working)
    for at in range(0, 214, 20):
        for n in range(at, min(at + 20, 214)):
            watch = Watch(working, None, f"n{n}")  # type: ignore[arg-type]  # these nodes have no runner, and none is asked
            watch.source = f"{n:032x}"
            fact = watch.verdict(device=None, code="nvlink-down", check="link", action="reboot")
            actor = Actor(kind="node", id=f"{n:032x}", login=f"node:n{n}")
            node_facts.receive(
                platform, actor, Exported(run=f"node:n{n}", facts=(fact,), samples=None)
            )
        working.clock.move(5 * S)
        loop.look()
    fenced = {n["name"] for n in every(working, "/v1/nodes") if n["fences"]}
    assert 0 < len(fenced) <= cap(288, BOUNDS)
    trail = [e for e in every(working, "/v1/audit") if e["action"] == "health.page"]
    assert any("automation fences nothing more" in e["detail"] for e in trail)


def test_work_on_a_broken_gpu_is_ended_unbilled_where_that_is_turned_on(working: Working) -> None:
    turn_on(working, "restart_job")
    twin = working.node(gpus=1)
    watch, loop = Watch(working, twin), looker(working)
    working.offer("one", gpu="RTX 4090", gpus=1)
    job = working.submit(working.owner, "one")["job"]
    working.engine.observe()
    twin.ask()
    attempt = twin.starts[-1].attempt
    twin.report([twin.began(attempt)])
    watch.send(watch.verdict())
    loop.look()
    twin.ask()
    assert [(s.attempt, s.why) for s in twin.stops] == [(attempt, "hardware")]
    twin.report([twin.ended(attempt, "hardware", cause="hardware")])
    assert why(working, job) == "placement/failed-everywhere"
    told = working.owner.get("/v1/nodes/node-1/health")["told"]
    assert told["blames"] == [], "its fence says it already"


def test_what_its_own_node_lays_to_the_machine_is_held_against_it(working: Working) -> None:
    twin, _, job, attempt = failing(working)
    twin.report([twin.ended(attempt, "hardware", cause="hardware")])
    told = working.owner.get("/v1/nodes/node-1/health")["told"]
    assert [(b["job"], b["cause"], b["percent"], b["billed"]) for b in told["blames"]] == [
        (job, "hardware", 100, False)
    ]
    assert told["blames"][0]["evidence"] == [f"attempt/{attempt}/ended"]


def failing(working: Working) -> tuple[Twin, Watch, str, str]:
    twin = working.node(gpus=1)
    watch = Watch(working, twin)
    working.offer("one", gpu="RTX 4090", gpus=1)
    job = working.submit(working.owner, "one")["job"]
    working.engine.observe()
    twin.ask()
    attempt = twin.starts[-1].attempt
    twin.report([twin.began(attempt)])
    return twin, watch, job, attempt


def test_a_failure_beside_a_fault_of_the_machine_is_the_machines(working: Working) -> None:
    twin, watch, job, attempt = failing(working)
    watch.send(watch.verdict())
    working.clock.move(9 * MINUTE)
    twin.report([twin.ended(attempt, "failed", cause="program")])
    shown = working.owner.get(f"/v1/jobs/{job}")
    assert (shown["state"], shown["last"]["cause"]) == ("waiting", "hardware")
    told = working.owner.get("/v1/nodes/node-1/health")["told"]
    assert [(b["cause"], b["percent"], b["billed"]) for b in told["blames"]] == [
        ("hardware", 90, False)
    ]


def test_a_fault_eleven_minutes_before_is_not_its_cause(working: Working) -> None:
    twin, watch, job, attempt = failing(working)
    watch.send(watch.verdict())
    working.clock.move(11 * MINUTE)
    twin.report([twin.ended(attempt, "failed", cause="program")])
    assert working.owner.get(f"/v1/jobs/{job}")["state"] == "failed"


def test_a_fault_that_comes_to_light_after_the_bill_is_told_to_a_person(working: Working) -> None:
    twin, watch, job, attempt = failing(working)
    loop = looker(working)
    twin.report([twin.ended(attempt, "failed", cause="program")])
    loop.look()
    working.clock.move(4 * MINUTE)
    watch.send(watch.verdict())
    for _ in range(2):
        loop.look()
    told = working.owner.get("/v1/nodes/node-1/health")["told"]
    assert [(b["job"], b["cause"], b["billed"]) for b in told["blames"]] == [
        (job, "hardware", True)
    ]
    (words,) = [page["words"] for page in told["pages"] if "ended attempt" in page["words"]]
    assert words.endswith("for which nothing was charged")


def test_what_would_run_into_a_window_waits_until_it_is_over_or_called_off(
    working: Working,
) -> None:
    working.node(gpus=1)
    working.offer("one", gpu="RTX 4090", gpus=1)
    now = working.clock()
    made = working.owner.post(
        "/v1/nodes/node-1/maintenance",
        {"from_us": now + HOUR, "to_us": now + 2 * HOUR, "why": "new fans"},
    )
    waits = working.submit(working.owner, "one")["job"]
    working.engine.observe()
    assert why(working, waits) == "placement/maintenance"
    told = working.owner.get(f"/v1/jobs/{waits}/explain")
    assert "would run into maintenance: it has no time limit" in str(told)
    short = working.submit(working.owner, "one", time_limit="10m")["job"]
    working.engine.observe()
    assert working.owner.get(f"/v1/jobs/{short}")["state"] == "starting"
    working.owner.post(f"/v1/jobs/{short}/cancel", {})
    working.owner.post("/v1/nodes/node-1/maintenance", {"cancel": made["told"]["window"]})
    assert why(working, waits) != "placement/maintenance"


def test_a_window_of_maintenance_and_its_end(working: Working) -> None:
    twin = working.node(gpus=1)
    watch, loop = Watch(working, twin), looker(working)
    watch.send(watch.verdict("OK", device=None))
    loop.look()
    now = working.clock()
    made = working.owner.post(
        "/v1/nodes/node-1/maintenance", {"from_us": now, "to_us": now + HOUR, "why": "new fans"}
    )
    loop.look()
    told = node(working)
    assert (told["health"], [f["holder"] for f in told["fences"]]) == ("maintenance", ["operator"])
    working.clock.move(30 * MINUTE)
    twin.ask()
    working.owner.post("/v1/nodes/node-1/maintenance", {"cancel": made["told"]["window"]})
    loop.look()
    told = node(working)
    assert (told["health"], told["fences"]) == ("healthy", [])


def test_the_server_takes_power_away_and_gives_it_back(working: Working) -> None:
    turn_on(working, "power_cycle")
    cycled: list[str] = []
    watch = Watch(working, working.node(gpus=1))
    loop = looker(working, cycled.append)
    watch.send(watch.verdict(action="power_cycle", code="recovery-action"))
    loop.look()
    loop.look()
    for thread in threading.enumerate():
        if thread.name == "ouvrage-power":
            thread.join(10)
    assert cycled == ["node-1"]
    loop.look()
    assert node(working)["health"] == "verifying"
    working.clock.move(S)
    watch.send(watch.verdict("OK", code="", boot="boot-2"))
    loop.look()
    assert node(working)["health"] == "healthy"
    assert code_of(node(working)["node"])


def test_a_node_that_is_silent_is_unknown_then_fenced_until_it_is_looked_at(
    working: Working,
) -> None:
    twin = working.node(gpus=1)
    watch, loop = Watch(working, twin), looker(working)
    watch.send(watch.verdict("OK", device=None))
    loop.look()
    assert node(working)["health"] == "healthy"
    working.clock.move(2 * MINUTE)
    loop.look()
    assert (node(working)["health"], node(working)["fences"]) == ("unknown", [])
    working.clock.move(4 * MINUTE)
    loop.look()
    assert node(working)["fences"][0]["holder"] == "automation"
    twin.ask()
    loop.look()
    assert (node(working)["health"], node(working)["fences"]) == ("healthy", [])


def test_of_a_node_that_nothing_looks_at_silence_says_nothing(working: Working) -> None:
    working.node()
    working.clock.move(HOUR)
    assert looker(working).look() is not None
    assert (node(working)["health"], node(working)["fences"]) == ("unknown", [])


def test_a_node_neither_speaks_in_anothers_subject_nor_of_what_others_did(working: Working) -> None:
    watch, other = Watch(working, working.node(gpus=1)), working.node("node-2")
    said = watch.verdict()

    def code(fact: Fact) -> str:
        return watch.send(fact)["error"]["code"]

    for subject in (f"node:{other.node}", "node:node-2", "a" * 32, "fleet"):
        assert code(replace(said, subject=subject)) == "node/facts"
    verdict = read(said)
    for forged in (
        replace(verdict, verdict="BROKEN"), replace(verdict, action="explode"), replace(verdict, fence="always"),
        replace(verdict, at_drain="explode"), replace(verdict, since_us=-1), replace(verdict, since_us=2**60),
        replace(verdict, boot=""), replace(verdict, epoch=-1),
    ):  # fmt: skip
        assert code(watch.fact(forged)) == "node/facts", forged
    remedy = Remedy(
        node="node-1", device=GPU, rung="gpu_reset", outcome="done", verified=None, dry_run=False, by="automation",
        why="", epoch=0,
    )  # fmt: skip
    for forged in (
        replace(remedy, by="sam"), replace(remedy, verified=True), replace(remedy, dry_run=True),
        replace(remedy, rung="replace"), replace(remedy, outcome="waiting for Godot"),
    ):  # fmt: skip
        assert code(watch.fact(forged)) == "node/facts", forged
    assert watch.send(said)["accepted"] == 1


def test_a_watch_that_dies_beside_a_runner_that_lives_is_noticed(working: Working) -> None:
    twin = working.node(gpus=1)
    watch, loop = Watch(working, twin), looker(working)
    watch.send(watch.verdict("OK", device=None))
    watch.duties()
    loop.look()
    for minutes, state, fenced in ((20, "healthy", False), (31, "unknown", False), (61, "draining", True)):  # fmt: skip
        working.clock.move(minutes * MINUTE - (working.clock() - MIDMONTH_US))
        twin.ask()
        loop.look()
        told = node(working)
        assert (told["health"] == state, bool(told["fences"])) == (True, fenced) or told["health"] == "awaiting_hands"  # fmt: skip
    assert "its watch is not heard of" in node(working)["fences"][0]["why"]
    watch.duties()
    loop.look()
    assert (node(working)["health"], node(working)["fences"]) == ("healthy", [])
    working.clock.move(2 * HOUR)
    twin.ask()
    (working.server.platform.state_dir / "health.toml").write_text('unwatched = ["node-1"]\n')
    loop.look()
    assert node(working)["fences"] == []


def test_a_jump_of_the_servers_clock_is_no_silence_of_its_nodes(working: Working) -> None:
    watch = Watch(working, working.node(gpus=1))
    steady = [0]
    loop = HealthLoop(working.server.platform, "test", None, monotonic=lambda: steady[0])
    watch.send(watch.verdict("OK", device=None))
    loop.look()
    for jump in (HOUR, -2 * HOUR, 3 * HOUR):
        working.clock.move(jump)
        steady[0] += 5 * S
        loop.look()
        assert (node(working)["health"], node(working)["fences"]) == ("healthy", [])


def test_an_order_does_not_outlive_its_machine_being_others(working: Working) -> None:
    turn_on(working, "gpu_reset")
    watch, loop = Watch(working, working.node(gpus=1)), looker(working)
    watch.send(watch.verdict())
    loop.look()
    assert [each["rung"] for each in watch.duties()["ordered"]] == ["gpu_reset"]
    file = working.server.platform.state_dir / "health.toml"
    file.write_text('turned_on = ["gpu_reset"]\nobserved = ["node-1"]\n')
    assert watch.duties()["ordered"] == []
