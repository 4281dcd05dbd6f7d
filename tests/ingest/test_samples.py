"""Telemetry over HTTP: each batch once, in order, a node's own; shown while it is new; told to wait when there is too much."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ouvrage.server.errors import Refused
from ouvrage.server.intake import Intake
from ouvrage.server.recent import KEPT_US, Recent
from ouvrage.store.sample_frames import Frame, frames_in
from ouvrage.store.telemetry import Kept, Offered, logs_of, path_of
from ouvrage.wire.samples import decode
from tests.ingest.sending import SOURCE, START, batch, node_key, post
from tests.platform.working import Working
from tests.support.server import Running, running

OTHER = "6" * 32


def numbers(server: Running) -> dict[str, list[int]]:
    """By node, the numbers of the batches in the files, in their order there."""
    platform, found = server.platform, dict[str, list[int]]()
    for row in logs_of(platform.store, platform.source):
        for frame in frames_in(path_of(platform.state_dir, row.log), row.bytes):
            found.setdefault(frame.node, []).append(decode(frame.content).sequence)
    return found


def test_a_batch_counts_once_and_in_its_order(platform_server: Running) -> None:
    http = platform_server.owner.http
    (node, key), (other, other_key) = node_key(platform_server), node_key(platform_server)
    told = [post(http, key, batch(n)) for n in (1, 2, 2, 1, 4, 3, 4)]
    assert [each.status_code for each in told] == [200, 200, 200, 200, 409, 200, 200]
    assert [each.json().get("result") for each in told if each.status_code == 200] == [
        "accepted", "accepted", "exists", "exists", "accepted", "accepted",
    ]  # fmt: skip
    gap = told[4].json()["error"]
    assert (gap["code"], gap["field"]) == ("samples/gap", "2")
    assert post(http, other_key, batch(1)).json() == {"result": "accepted", "sequence": 1}
    assert post(http, key, batch(1, source=OTHER)).json()["result"] == "accepted"
    assert numbers(platform_server) == {node: [1, 2, 3, 4, 1], other: [1]}


def test_the_same_batch_from_many_threads_is_kept_once(platform_server: Running) -> None:
    node, key = node_key(platform_server)
    answers: list[Any] = []
    content = batch(1)
    threads = [
        threading.Thread(
            target=lambda: answers.append(post(platform_server.owner.http, key, content))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    results = [each.json().get("result") for each in answers]
    assert results.count("accepted") == 1
    assert {each.status_code for each in answers} <= {200, 429}
    assert numbers(platform_server) == {node: [1]}


def test_what_was_said_lately_is_shown_after_a_restart_too(tmp_path: Path) -> None:
    clock = lambda: START  # noqa: E731 -- a clock that stands
    with running(tmp_path / "state", clock=clock) as server:
        token = server.owner.post("/v1/nodes/enrolments", {})["secret"]
        from tests.support.runner_twin import Twin, inventory

        twin = Twin.enrolled(server.url, token, clock, inventory("n1"))
        for sequence in (1, 2):
            assert twin.send("POST", "/v1/samples", batch(sequence)).status_code == 200
        shown = server.owner.get("/v1/nodes/n1/samples")
        assert len(shown["times"]) == 10
        assert shown["columns"]["cpu_permille"][:2] == [None, 500]
        assert shown["gpus"]["GPU-1"]["busy_percent"] == [55, 56, 57, 58, 59] * 2
        since = {"since_us": shown["times"][7]}
        assert server.owner.get("/v1/nodes/n1/samples", params=since)["times"] == shown["times"][8:]
        tenant = server.tenant("acme")
        assert tenant("GET", "/v1/nodes/n1/samples").status_code == 403
        twin.close()
    with running(tmp_path / "state", clock=clock) as server:
        assert server.owner.get("/v1/nodes/n1/samples") == shown
        assert post(server.owner.http, twin.key, batch(2)).json()["result"] == "exists"


def test_memory_holds_minutes_and_no_more() -> None:
    held = Recent()
    for sequence in range(1, 400):
        at = START + sequence * 10_000_000
        held.add(Frame(node="a" * 32, at_us=at, content=batch(sequence, moments=1)))
    assert 85 <= len(held.of("a" * 32, 0).times) <= KEPT_US // 10_000_000 + 1
    assert held.of("b" * 32, 0).times == []


class Stuck:
    """A log whose disk does not come back until it is told to."""

    open_log = None

    def __init__(self) -> None:
        self.go = threading.Event()

    def append(self, group: list[Offered], _now: int) -> list[Kept]:
        self.go.wait(30)
        return [Kept(result="accepted", sequence=each.sequence) for each in group]

    def close(self) -> None:
        pass


def offered(node: int, sequence: int) -> Offered:
    frame = Frame(node=f"{node:032x}", at_us=START, content=b"x" * 100)
    return Offered(source=SOURCE, sequence=sequence, frame=frame, from_us=1, to_us=2)


def refusal(intake: Intake, waits: list[Any], node: int) -> Refused | None:
    try:
        waits.append(intake.offer(offered(node, 1)))
    except Refused as refused:
        return refused
    return None


def test_too_much_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from ouvrage.server import intake as module

    monkeypatch.setattr(module, "MOST_WAITING", 10)
    log: Any = Stuck()
    intake = Intake(log, lambda: START, lambda: 1 << 40)
    intake.start()
    waits = [intake.offer(offered(1, n)) for n in range(4)]
    with pytest.raises(Refused) as refused:
        intake.offer(offered(1, 5))
    assert (refused.value.status, refused.value.retry_after) == (429, 1)
    refusals = list(filter(None, (refusal(intake, waits, node) for node in range(2, 40))))
    assert {(each.status, each.code) for each in refusals} == {(503, "samples/busy")}
    assert waits[2].cancel() or waits[2].running()  # whoever left is not waited for
    log.go.set()
    intake.stop()
    assert all(each.cancelled() or each.result(5).result == "accepted" for each in waits)
    assert len(waits) < 20


def test_a_full_disk_is_told_and_nothing_is_kept() -> None:
    log: Any = Stuck()
    intake = Intake(log, lambda: START, lambda: 1000)
    with pytest.raises(Refused) as refused:
        intake.offer(offered(1, 1))
    assert (refused.value.code, refused.value.retry_after) == ("samples/no-room", 60)


def test_on_postgresql(
    addresses: Callable[[], str], platform_servers: Callable[..., Running], database: str
) -> None:
    if database != "postgresql":
        pytest.skip("the others run on SQLite")
    server = platform_servers("pg", store=addresses())
    node, key = node_key(server)
    for sequence in (1, 2, 2, 3):
        assert post(server.owner.http, key, batch(sequence)).status_code == 200
    assert numbers(server) == {node: [1, 2, 3]}
    ann = server.tenant("acme")
    from tests.ingest.test_facts import a_run, holds, send

    assert [send(ann, a_run()).json()["new"] for _ in range(2)] == [True, False]
    assert holds(server)


def test_a_key_that_was_revoked_sends_nothing(working: Working) -> None:
    twin = working.node()
    assert twin.send("POST", "/v1/samples", batch(1)).status_code == 200
    assert replace(working.owner, token="x")("POST", "/v1/samples").status_code == 401
    assert working.owner("POST", "/v1/samples", content=batch(1)).status_code == 403
