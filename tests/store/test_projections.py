"""Derived tables follow from the facts to the same bytes, however and whenever they are made."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import text

from ouvrage.ledger.facts import Fact
from ouvrage.metering.spool import facts_of
from ouvrage.metering.whole_spool import read_lines, sealed_fact
from ouvrage.store.projections import current_runs, rebuild, rows_of
from ouvrage.store.store import Store
from tests.support.facts import OTHER, withdrawal
from tests.support.spools import STARTED, run_id, spool


def facts_about(number: int, **header: object) -> list[Fact]:
    data = spool(run_id(number), started_us=STARTED + number, **header)
    read = read_lines(data)
    return facts_of(read, sealed=sealed_fact(read, data))


def put(store: Store, *facts: Fact, at: int = 1) -> None:
    store.append(facts, now_us=at, own_source=OTHER)


def test_none(store: Store) -> None:
    assert current_runs(store).rows == ()
    assert current_runs(store).seq == 0


def test_rows_say_what_the_run_is(store: Store) -> None:
    put(store, *facts_about(2), at=50)
    put(store, *facts_about(1), at=60)
    first, second = current_runs(store).rows
    assert (first.run, second.run) == (run_id(1), run_id(2))
    assert (first.label, first.outcome) == ("small", "completed")
    assert json.loads(first.command) == ["python", "träin.py"]
    report = json.loads(first.report_json)
    assert (report["run"], report["units"], report["exit_code"]) == (run_id(1), 3, 0)


def test_brought_up_to_date_as_made_anew(store: Store) -> None:
    seen = []
    for number in range(1, 6):
        put(store, *facts_about(number), at=number * 100)
        if number % 2:
            seen.append(len(current_runs(store).rows))
    kept = current_runs(store)
    assert seen == [1, 3, 5]
    assert (kept.seq, list(kept.rows)) == (store.head().seq, rows_of(store.records()))
    assert rebuild(store) == kept
    assert rebuild(store).sha256 == kept.sha256


def test_corrections_and_withdrawals_change_the_row(store: Store) -> None:
    facts = facts_about(1)
    put(store, *facts, *facts_about(2))
    before = current_runs(store)
    start = facts[0]
    better = replace(
        start, id="z", payload=start.payload.replace("small", "large"), corrects=start.key
    )
    put(store, better)
    changed = current_runs(store).rows
    assert [row.label for row in changed] == ["large", "small"]
    assert changed[1] == before.rows[1]
    put(store, withdrawal("w", better.key, subject=start.subject))
    assert [row.label for row in current_runs(store).rows] == ["small", "small"]
    put(store, withdrawal("z2", start.key, subject=start.subject))
    assert [row.run for row in current_runs(store).rows] == [run_id(2)]
    assert rebuild(store) == current_runs(store)


def test_another_maker_means_anew(store: Store) -> None:
    put(store, *facts_about(1))
    kept = current_runs(store)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE projection_state SET maker = 'older'"))
        connection.execute(text("UPDATE projection_runs SET outcome = 'x'"))
    assert current_runs(store) == kept


def test_both_databases_make_the_same_rows(store: Store, other_store: Store) -> None:
    for each in (store, other_store):
        for number in (3, 1, 2):
            put(each, *facts_about(number, label=f"é{number}"), at=number)
    assert current_runs(store).sha256 == current_runs(other_store).sha256


def test_readers_and_writers_at_once(store: Store) -> None:
    failures: list[BaseException] = []
    gate = threading.Barrier(4)

    def work(does: Callable[[int], object]) -> None:
        try:
            gate.wait(30)
            for number in range(1, 6):
                does(number)
        except BaseException as error:
            failures.append(error)
            raise

    jobs: list[Callable[[int], object]] = [
        lambda n: put(store, *facts_about(n)),
        lambda n: put(store, *facts_about(100 + n)),
        lambda _: current_runs(store),
        lambda _: current_runs(store),
    ]
    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert list(current_runs(store).rows) == rows_of(store.records())
