"""Runs sent to a platform: taken once, from those who may, whose they are from then on, and nothing else by that way."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of
from ouvrage.metering.exchange import export_run, read_export
from ouvrage.model.accepted import RunAccepted
from ouvrage.model.tenancy import AuditEntry
from ouvrage.store.audit import audit
from ouvrage.store.platform.received import rebuild_odd_received
from tests.blackbox.spools import price, run_id, spool
from tests.platform.working import Working
from tests.support.exported import exported_run
from tests.support.server import Client, Running


def a_run(number: int = 1, units: int = 4) -> bytes:
    text = spool(run_id(number), [1.0] * units, label="work", rate=price("0.30"))
    return exported_run(text)


def send(who: Client, content: bytes, project: str | None = "main") -> Any:
    params = {} if project is None else {"project": project}
    return who("POST", "/v1/facts", content=content, params=params)


def holds(server: Running) -> bool:
    return audit(server.platform.store, server.platform.state_dir).first is None


def test_a_run_comes_once_and_is_its_projects(platform_server: Running) -> None:
    ann, bob = platform_server.tenant("acme"), platform_server.tenant("rival")
    first = send(ann, a_run()).json()
    assert (first["new"], first["conflict"], first["samples"]) == (True, 0, True)
    assert set(first["results"]) == {"accepted"}
    head = platform_server.platform.store.head()
    again = send(ann, a_run(), None).json()
    assert (again["new"], set(again["results"])) == (False, {"exists"})
    assert platform_server.platform.store.head() == head

    run = run_id(1)
    shown = ann.get(f"/v1/runs/{first['code']}")
    assert shown["report"]["cost_per_unit"]["marginal"] is not None
    assert (shown["run"]["label"], shown["run"]["org_name"]) == ("work", "acme")
    assert [each["run"] for each in ann.get("/v1/runs")["items"]] == [run]
    assert bob.get("/v1/runs")["items"] == []
    assert bob("GET", f"/v1/runs/{run}").status_code == 404
    assert [each["run"] for each in platform_server.owner.get("/v1/runs")["items"]] == [run]
    assert holds(platform_server)


def test_another_tenant_cannot_add_to_a_run(platform_server: Running) -> None:
    ann, bob = platform_server.tenant("acme"), platform_server.tenant("rival")
    send(ann, a_run())
    head = platform_server.platform.store.head()
    for project in (None, "main"):
        assert send(bob, a_run(), project).status_code == 404
    assert platform_server.platform.store.head() == head


def test_a_run_keeps_its_project(platform_server: Running) -> None:
    ann = platform_server.tenant("acme")
    ann.post("/v1/projects", {"name": "other"})
    send(ann, a_run())
    refused = send(ann, a_run(), "other")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "run/other-project")


def test_other_content_under_an_identity_is_a_conflict_and_is_told(platform_server: Running):
    ann = platform_server.tenant("acme")
    send(ann, a_run(units=4))
    other = read_export(a_run(units=5))
    answer = send(ann, export_run(other.run, other.facts, None)).json()
    assert answer["conflict"] and {each["field"] for each in answer["conflicts"]}
    assert [r for r in answer["results"] if r == "conflict"] == ["conflict"] * answer["conflict"]
    assert holds(platform_server)


def strange(change: Callable[[Fact, Running], Fact]) -> Callable[[Running], bytes]:
    def content(server: Running) -> bytes:
        run = read_export(a_run())
        facts = [*run.facts[:-1], change(run.facts[-1], server)]
        return export_run(run.run, facts, None)

    return content


def _audit_line(fact: Fact, server: Running) -> Fact:
    entry = AuditEntry(
        actor="me", login="me", action="invoice.create", target=None, org=None, outcome="done",
        detail="", address=None,
    )  # fmt: skip
    return fact_of(
        entry, source=fact.source, id=f"{fact.subject}/audit", subject=fact.subject,
        valid_from=1, valid_to=1, grade=Grade.METERED,
    )  # fmt: skip


def _some_fact(server: Running) -> str:
    """The key of the first fact of the platform."""
    return server.platform.store.records()[0].fact.key


@pytest.fixture(scope="module")
def ann(shared_server: Running) -> Client:
    return shared_server.tenant("shared")


STRANGE: dict[str, Callable[[Running], bytes]] = {
    "about something else": strange(lambda fact, _: replace(fact, subject="lease:1")),
    "a kind that is no run's": strange(_audit_line),
    "a kind of tomorrow": strange(lambda fact, _: replace(fact, kind="charge.later")),
    "the platform's source": strange(lambda f, server: replace(f, source=server.platform.source)),
    "an id of somebody else's": strange(lambda fact, _: replace(fact, id="lease/1/ended")),
    "a run that is another's": strange(
        lambda f, _: replace(f, payload=f.payload.replace(f.subject, run_id(9)))
    ),
    "a correction of what is not its own": strange(
        lambda fact, server: replace(fact, corrects=_some_fact(server))
    ),
    "a correction of what may come": strange(lambda fact, _: replace(fact, corrects="later/1")),
    "no start": lambda _: export_run(run_id(1), read_export(a_run()).facts[1:], None),
    "no fact": lambda _: export_run(run_id(1), (), None),
    "no run": lambda _: export_run("../../etc", (), None),
    "other samples": lambda _: export_run(run_id(1), read_export(a_run()).facts, b"{}\n"),
    "no gzip": lambda _: b"facts",
    "nothing": lambda _: b"",
    "half": lambda _: a_run()[:-20],
}


@pytest.mark.parametrize("what", STRANGE)
def test_what_is_no_run_is_refused_and_leaves_nothing(
    shared_server: Running, ann: Client, what: str
) -> None:
    platform_server = shared_server
    head = platform_server.platform.store.head()
    refused = send(ann, STRANGE[what](platform_server))
    assert refused.status_code == 422, refused.text
    assert refused.json()["error"]["code"] in (
        "run/not-taken", "exchange/damaged", "fact/malformed"
    )  # fmt: skip
    assert platform_server.platform.store.head() == head
    assert not list(platform_server.platform.state_dir.glob("samples/*"))


def test_a_bomb_is_not_unpacked(ann: Client) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(300)) + packer.flush()
    refused = send(ann, bomb)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "exchange/too-large")


def test_acceptance_said_at_home_comes_along(platform_server: Running) -> None:
    ann = platform_server.tenant("acme")
    run = read_export(a_run())
    said = fact_of(
        RunAccepted(run=run.run, units=2, unit="epoch", why="checked"), source="me",
        id=f"accepted/{run_id(5)}", subject=run.run, valid_from=1, valid_to=None,
        grade=Grade.REPORTED,
    )  # fmt: skip
    assert send(ann, export_run(run.run, [*run.facts, said], run.samples)).status_code == 200
    assert ann.get(f"/v1/runs/{run.run}")["report"]["units_accepted"] == 2


def test_a_project_has_its_room(platform_servers: Callable[..., Running]) -> None:
    from ouvrage.server.work_limits import WorkLimits

    server = platform_servers("small", limits=WorkLimits(tick_us=0, sent_bytes=20_000))
    ann = server.tenant("acme")
    codes = [send(ann, a_run(number)).status_code for number in range(1, 6)]
    assert codes[0] == 200 and codes[-1] == 409
    assert send(ann, a_run(1)).status_code in (200, 409)


def test_a_node_sends_the_runs_of_its_own_attempts_alone(working: Working) -> None:
    twin, other = working.node("node-1"), working.node("node-2", cpus=1)
    working.offer("standard", cpus=2)
    ann, bob = working.tenant("acme"), working.tenant("rival")
    job = working.submit(ann)
    working.engine.observe()
    twin.ask()
    (start,) = twin.starts
    twin.report([twin.began(start.attempt)])
    working.clock.move(5_000_000)
    run = exported_run(spool(start.attempt, [1.0] * 4, label=start.label))
    assert twin.send("POST", "/v1/facts", a_run()).status_code == 404
    assert other.send("POST", "/v1/facts", run).status_code == 404
    assert send(bob, run).status_code == 404
    assert send(ann, run).json()["error"]["code"] == "run/made-here"
    taken = twin.send("POST", "/v1/facts", run).json()
    assert (taken["new"], taken["project_name"]) == (True, "main")
    assert set(twin.send("POST", "/v1/facts", run).json()["results"]) == {"exists"}
    twin.report([twin.ended(start.attempt)])

    shown = ann.get(f"/v1/runs/{start.attempt}")
    assert shown["run"]["attempt"] and shown["report"]["units"] == 4
    assert bob("GET", f"/v1/runs/{start.attempt}").status_code == 404
    assert ann.get(f"/v1/jobs/{job['job']}")["last"]["attempt"] == start.attempt
    assert holds(working.server)


def test_report_on_a_platforms_store_knows_an_attempt(
    platform_server: Running, homes: Callable[[str], Any]
) -> None:
    ann = platform_server.tenant("acme")
    send(ann, a_run())
    home = homes("owner")
    home.environment["OUVRAGE_HOME"] = str(platform_server.platform.state_dir)
    said = home.inside("report", run_id(1), "--json")
    assert json.loads(said.out)["run"] == run_id(1)
    assert home.inside("verify").code == 0


def test_pushed_from_a_home_it_reads_the_same_there(
    platform_server: Running, homes: Callable[[str], Any], tmp_path: Path
) -> None:
    ann = platform_server.tenant("acme")
    (tmp_path / "token").write_text(ann.token or "")
    home = homes("here")
    home.holds(spool(run_id(2), [1.0, 1.5, 1.0], label="mine", rate=price("0.36")), run_id(2))
    home.environment["OUVRAGE_TOKEN_FILE"] = str(tmp_path / "token")
    pushed = home("run", "push", "mine", "--to", platform_server.url, "--json")
    assert (pushed.code, pushed.json["conflict"], pushed.json["samples"]) == (0, 0, True), pushed
    there = ann.get(f"/v1/runs/{run_id(2)}")["report"]
    here = home("report", "mine", "--json").json
    for one in (here, there):
        one.pop("as_of")
    assert here == there
    home.environment["OUVRAGE_URL"] = platform_server.url
    again = home("run", "push", "mine")
    assert (again.code, "already; nothing was changed" in again.out) == (0, True)


def test_parts_of_a_long_run_add_up(platform_server: Running, monkeypatch: Any) -> None:
    from ouvrage.cli import pushing

    ann = platform_server.tenant("acme")
    run = read_export(a_run(units=40))
    monkeypatch.setattr(pushing, "PART", 7)
    parts = list(pushing.parts_of(run.run, run.facts, run.samples))
    assert len(parts) > 5
    for part in [*parts[:3], *parts]:  # broken off after the third, and begun again
        assert send(ann, part).status_code == 200
    stored = platform_server.platform.store.records(subject=run.run)
    assert {entry.fact.key for entry in stored} == {fact.key for fact in run.facts}
    assert holds(platform_server)


def test_whose_a_run_is_can_be_made_anew_from_the_facts(platform_server: Running) -> None:
    ann = platform_server.tenant("acme")
    send(ann, a_run())
    before = ann.get("/v1/runs")
    with platform_server.platform.writing() as tx:
        tx.connection.exec_driver_sql("DELETE FROM received_runs")
    assert ann.get("/v1/runs")["items"] == [] and not holds(platform_server)
    assert rebuild_odd_received(platform_server.platform.store)
    assert ann.get("/v1/runs") == before and holds(platform_server)
    assert not rebuild_odd_received(platform_server.platform.store)
