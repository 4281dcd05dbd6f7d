"""A job that an earlier version of the platform took is read by this one, from facts and from tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import Unread, read
from ouvrage.model.work import JobSubmitted
from ouvrage.store.engine import writing
from ouvrage.store.platform.rebuild_work import rebuild_work, work_law
from ouvrage.store.platform.work_tables import jobs
from tests.platform.working import Working, working_on

LATER = ("health", "restart")


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Working]:
    with working_on(tmp_path / "state") as made:
        made.offer("standard")
        yield made


def earlier(fact: Fact) -> Fact:
    """The fact as it was written before there were services: another job, without the two fields."""
    payload = json.loads(fact.payload)
    for name in LATER:
        del payload["spec"][name]
    payload["job"] = payload["job"][:-4] + "0e0e"
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
    return replace(fact, id=f"{fact.id}-earlier", payload=text)


def test_a_fact_of_the_earlier_form_says_what_it_meant(work: Working) -> None:
    work.submit(work.tenant("acme"))
    (kept,) = [each.fact for each in work.records() if each.fact.kind == JobSubmitted.KIND]
    old = read(earlier(kept))
    assert isinstance(old, JobSubmitted)
    assert (old.spec.health, old.spec.restart) == (None, "never")
    assert replace(old, job="") == replace(read(kept), job="")
    # Only what came later may be missing, and nothing may be there that is not known.
    for name, value in (("retries", None), ("novelty", 1)):
        payload = json.loads(kept.payload)
        payload["spec"].pop(name, None)
        if value:
            payload["spec"][name] = value
        odd = read(replace(kept, payload=json.dumps(payload)))
        assert isinstance(odd, Unread)
        assert name in odd.reason


def test_an_earlier_state_keeps_its_jobs(work: Working) -> None:
    ann = work.tenant("acme")
    new = work.submit(ann, name="later")["job"]
    store = work.server.platform.store
    (kept,) = [each.fact for each in work.records() if each.fact.kind == JobSubmitted.KIND]
    old = earlier(kept)
    store.append([old], now_us=work.clock(), own_source=kept.source)
    rebuild_work(store)
    job = json.loads(old.payload)["job"]
    spec = json.dumps(json.loads(old.payload)["spec"], sort_keys=True, separators=(",", ":"))
    with writing(store.engine) as connection:
        connection.execute(update(jobs).where(jobs.c.job == job).values(spec=spec))

    shown = ann.get(f"/v1/jobs/{job}")
    assert (shown["spec"]["health"], shown["spec"]["restart"]) == (None, "never")
    assert {each["job"] for each in ann.get("/v1/jobs")["items"]} == {new, job}
    assert work_law(store).breaches(store.records()) == []
    spoilt = json.dumps({**json.loads(spec), "retries": 7})
    with writing(store.engine) as connection:
        connection.execute(update(jobs).where(jobs.c.job == job).values(spec=spoilt))
    assert len(work_law(store).breaches(store.records())) == 1
