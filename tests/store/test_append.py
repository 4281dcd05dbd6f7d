"""Facts go in once, in order, and never change; the same on both databases."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import Unread, read
from ouvrage.ledger.law_book import LAWS
from ouvrage.model.records import Conflict
from ouvrage.store.store import Head, Outcome, Store, open_store
from tests.support.facts import OTHER, SOURCE, fact

A, B, C = fact("a", body={"n": 1}), fact("b"), fact("c")
NOT_A = fact("a", body={"n": 2})


def put(store: Store, *facts: Fact, at: int = 100) -> list[Outcome]:
    return store.append(facts, now_us=at, own_source=OTHER)


def kept(store: Store) -> list[tuple[int, int, str]]:
    return [(entry.seq, entry.recorded_at, entry.fact.id) for entry in store.records()]


def lawful(store: Store) -> None:
    records = store.records()
    assert [breach for law in LAWS for breach in law.breaches(records)] == []
    assert store.head().seq == len(records)


def test_an_empty_store(store: Store) -> None:
    assert store.head() == Head(seq=0, recorded_at=0)
    assert store.records() == []
    assert put(store) == []


def test_facts_come_back_as_they_went_in(store: Store) -> None:
    odd = fact(
        "é/😀 ' \" % :x",
        body={"text": "\x00\n\u2028é", "big": 10**30},
        valid_from=-(2**63) + 1,
        valid_to=2**63 - 1,
        grade=Grade.SIMULATED,
        corrects=f"{OTHER}/x",
        version=2**31 - 1,
        subject="übrig",
    )
    assert put(store, odd) == [Outcome(key=odd.key, result="accepted", seq=1)]
    (entry,) = store.records()
    assert entry.fact == odd
    assert entry.stored_sha256 == odd.sha256
    assert isinstance(read(entry.fact), Unread)


def test_batches_are_numbered_and_dated(store: Store) -> None:
    put(store, A, B, at=100)
    put(store, C, at=100)
    put(store, fact("d"), at=50)
    put(store, fact("e"), at=500)
    assert kept(store) == [
        (1, 100, "a"),
        (2, 100, "b"),
        (3, 101, "c"),
        (4, 102, "d"),
        (5, 500, "e"),
    ]
    lawful(store)


def test_again_exists(store: Store) -> None:
    put(store, A, B)
    before = store.head()
    assert put(store, B, A, at=900) == [
        Outcome(key=B.key, result="exists", seq=2),
        Outcome(key=A.key, result="exists", seq=1),
    ]
    assert store.head() == before


def test_some_new_some_known(store: Store) -> None:
    put(store, B)
    results = [outcome.result for outcome in put(store, A, B, C, A)]
    assert results == ["accepted", "exists", "accepted", "exists"]
    assert [id for _, _, id in kept(store)] == ["b", "a", "c"]
    lawful(store)


def test_other_content_is_refused_and_recorded(store: Store) -> None:
    put(store, A)
    outcomes = put(store, B, NOT_A, C)
    assert outcomes[1] == Outcome(key=A.key, result="conflict", seq=1, field="payload.n")
    assert [outcome.result for outcome in outcomes] == ["accepted", "conflict", "accepted"]
    entries = store.records()
    assert entries[0].fact == A
    assert [entry.fact.id for entry in entries[1:3]] == ["b", "c"]
    noted = entries[3].fact
    assert (noted.source, noted.subject) == (OTHER, A.subject)
    assert read(noted) == Conflict(
        key=A.key,
        field="payload.n",
        stored="1",
        offered="2",
        stored_sha256=A.sha256,
        offered_sha256=NOT_A.sha256,
    )
    lawful(store)


def test_the_same_conflict_again_is_recorded_once(store: Store) -> None:
    put(store, A)
    for _ in range(3):
        put(store, NOT_A, NOT_A)
    assert store.head().seq == 2
    put(store, fact("a", body={"n": 3}))
    assert store.head().seq == 3
    lawful(store)


def test_a_conflict_within_one_batch(store: Store) -> None:
    assert [o.result for o in put(store, A, NOT_A)] == ["accepted", "conflict"]
    assert [entry.fact.kind for entry in store.records()] == ["test.thing", "ledger.conflict"]
    lawful(store)


def test_a_conflict_that_travels_is_the_same_fact(stores: Callable[[], Store]) -> None:
    here, there = stores(), stores()
    put(here, A)
    put(here, NOT_A)
    carried = [entry.fact for entry in here.records()]
    assert [o.result for o in put(there, *carried)] == ["accepted", "accepted"]
    assert put(there, NOT_A)[0].result == "conflict"
    assert there.head().seq == 2
    assert [o.result for o in put(there, NOT_A, *carried)] == ["conflict", "exists", "exists"]
    lawful(there)


def test_a_malformed_fact_stops_its_batch(store: Store) -> None:
    with pytest.raises(OuvrageError, match="period ends"):
        put(store, A, fact("z", valid_from=2, valid_to=1))
    assert store.head() == Head(seq=0, recorded_at=0)


def test_more_than_a_chunk_of_known_facts(store: Store) -> None:
    many = [fact(str(n)) for n in range(1201)]
    put(store, *many)
    assert {o.result for o in put(store, *many)} == {"exists"}
    outcomes = put(store, *many, fact("new"))
    assert outcomes[-1] == Outcome(key=fact("new").key, result="accepted", seq=1202)


def test_what_is_asked_for(store: Store) -> None:
    put(store, A, at=100)
    put(store, fact("b", subject="other"), fact("c", kind="k"), at=200)

    def ids(**asked: Any) -> list[str]:
        return [entry.fact.id for entry in store.records(**asked)]

    assert ids() == ["a", "b", "c"]
    assert ids(as_of=199) == ["a"]
    assert ids(as_of=200) == ["a", "b", "c"]
    assert ids(as_of=99) == []
    assert ids(subject="thing") == ["a", "c"]
    assert ids(subject="thing", kind="k") == ["c"]
    assert ids(kind="k", as_of=199) == []
    assert ids(after=1) == ["b", "c"]


CHANGES = (
    "UPDATE facts SET kind = 'x'",
    "UPDATE facts SET payload = '{}' WHERE seq = 1",
    "DELETE FROM facts",
    "DELETE FROM facts WHERE seq = 1",
    "DELETE FROM head",
    "UPDATE head SET seq = seq - 1",
    "UPDATE head SET recorded_at = recorded_at - 1",
)
ONLY = {
    "sqlite": (
        "REPLACE INTO facts SELECT * FROM facts",
        "REPLACE INTO facts SELECT seq + 9, source, id, kind, version, subject, valid_from, "
        "valid_to, recorded_at, grade, 'x', sha256, corrects FROM facts",
        "INSERT OR IGNORE INTO facts SELECT 1, 'new', id, kind, version, subject, valid_from, "
        "valid_to, recorded_at, grade, payload, sha256, corrects FROM facts",
    ),
    "postgresql": (
        "TRUNCATE facts",
        "TRUNCATE head",
        "TRUNCATE facts, head CASCADE",
        "SET session_replication_role = replica; DELETE FROM facts",
        "INSERT INTO facts SELECT * FROM facts ON CONFLICT (seq) DO UPDATE SET kind = 'x'",
    ),
}


def test_the_database_itself_refuses_change(store: Store, database: str) -> None:
    put(store, A)
    before = store.records()
    for change in (*CHANGES, *ONLY[database]):
        with pytest.raises(IntegrityError, match="only"), store.engine.begin() as connection:
            connection.execute(text(change))
        assert store.records() == before, change


def test_durability_is_asked_for_on_every_connection(store: Store, database: str) -> None:
    asked = {
        "sqlite": {"PRAGMA journal_mode": "wal", "PRAGMA synchronous": 2},
        "postgresql": {"SHOW synchronous_commit": "on", "SHOW timezone": "UTC"},
    }
    for question, answer in asked[database].items():
        with store.engine.connect() as one, store.engine.connect() as two:
            assert [c.execute(text(question)).scalar() for c in (one, two)] == [answer] * 2


def test_a_moment_once_named_is_closed(store: Store) -> None:
    assert store.moment(None, now_us=500) == 0
    put(store, A, at=100)
    assert store.moment(None, now_us=500) == 100
    assert store.moment(100, now_us=500) == 100
    assert store.moment(90, now_us=500) == 90
    assert store.moment(400, now_us=500) == 400
    put(store, B, at=150)  # a batch under way: its clock was read before the moment was named
    assert [entry.fact.id for entry in store.records(as_of=400)] == ["a"]
    assert store.records()[-1].recorded_at == 401
    lawful(store)


def test_the_future_is_not_known(store: Store) -> None:
    with pytest.raises(OuvrageError) as refused:
        store.moment(501, now_us=500)
    assert refused.value.code == "as-of/future"
    put(store, A, at=1)
    assert store.records()[0].recorded_at == 1


def test_threads_append_at_once(store: Store) -> None:
    """Eight threads, each the same facts: every fact once, every number once."""
    gate = threading.Barrier(8)
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            gate.wait(30)
            for batch in range(5):
                own = [fact(f"{worker}/{batch}/{n}") for n in range(3)]
                put(store, *own, fact(f"shared/{batch}"))
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert store.head().seq == 8 * 5 * 3 + 5
    lawful(store)


def _appender(address: str, worker: int) -> None:
    with open_store(address) as store:
        for batch in range(5):
            own = [fact(f"{worker}/{batch}/{n}") for n in range(3)]
            store.append([*own, fact(f"shared/{batch}")], now_us=batch, own_source=SOURCE)


def test_processes_open_a_new_store_and_append_at_once(
    database: str, addresses: Callable[[], str], request: pytest.FixtureRequest
) -> None:
    """Nobody has made the tables yet, so the processes also race to make them."""
    unmade = addresses if database == "sqlite" else request.getfixturevalue("cluster").database
    address = unmade()
    spawn = multiprocessing.get_context("forkserver")
    spawn.set_forkserver_preload(["ouvrage.store.store"])
    workers = [spawn.Process(target=_appender, args=(address, n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * 4
    with open_store(address) as store:
        assert store.head().seq == 4 * 5 * 3 + 5
        lawful(store)


@pytest.mark.parametrize("database", ["postgresql"])
def test_connections_that_the_server_closed_are_replaced(
    store: Store, request: pytest.FixtureRequest
) -> None:
    put(store, A)
    name = store.engine.url.database
    request.getfixturevalue("cluster").close_connections(name)
    assert put(store, A, B)[1].result == "accepted"


@pytest.mark.parametrize("database", ["sqlite"])  # the other has no such limit to play it with
def test_a_full_disk_is_told_and_harms_nothing(store: Store) -> None:
    put(store, A)
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")
    many = [fact(str(n), body={"n": "x" * 1000}) for n in range(100)]
    with pytest.raises(OuvrageError) as refused:
        put(store, *many)
    assert refused.value.code == "store/disk-full"
    assert store.head().seq == 1
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 100000")
    assert {o.result for o in put(store, *many)} == {"accepted"}
    lawful(store)
