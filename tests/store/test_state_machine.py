"""However facts come - again, in another order, late, corrected, contested - the same holds.

One store is fed by chance: batches cut anywhere, repeated, reordered, delayed, with other content
offered under known identities in between. A second one gets each fact once, in order. What is in
force in both must be the same, and so must every figure that follows from it; whatever was known at
an earlier moment must read the same, byte for byte, at the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.law_book import LAWS
from ouvrage.ledger.lines import fact_line
from ouvrage.ledger.view import in_force
from ouvrage.store.store import Store, open_store
from tests.support.facts import OTHER, SOURCE, fact, withdrawal
from tests.support.stores import Addresses


def text_of(records: list[Recorded]) -> str:
    """What holds, as bytes: conflicts aside, since only the contested store has any."""
    lines = [fact_line(e.fact) for e in in_force(records) if e.fact.kind != "ledger.conflict"]
    return "\n".join(lines)


def figure_of(records: list[Recorded]) -> tuple[int, Grade | None]:
    """A sum over what holds, and its weakest grade."""
    standing = [e.fact for e in in_force(records) if e.fact.kind == "test.thing"]
    total = sum(json.loads(each.payload)["n"] for each in standing)
    return total, max((each.grade for each in standing), default=None)


class Books(RuleBasedStateMachine):
    """Hypothesis drives it; ``new_store`` is set by the test."""

    new_store: Callable[[], Store]
    drop: Callable[[Store], None]

    @initialize()
    def begin(self) -> None:
        self.store = self.new_store()
        self.clock = 1000
        self.stated: list[Fact] = []
        self.held_back: list[Fact] = []
        self.past: list[tuple[int, str, tuple[int, Grade | None]]] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.finish()
            self.drop(self.store)

    def put(self, facts: list[Fact]) -> list[Any]:
        return self.store.append(facts, now_us=self.clock, own_source=OTHER)

    def state(self, made: Fact, late: bool) -> None:
        self.stated.append(made)
        if late:
            self.held_back.append(made)
        else:
            self.put([made])

    @rule(n=st.integers(-5, 5), source=st.sampled_from([SOURCE, "c" * 32]), late=st.booleans(),
          grade=st.sampled_from(Grade))  # fmt: skip
    def new(self, n: int, source: str, late: bool, grade: Grade) -> None:
        id = f"{len(self.stated):03}"
        self.state(fact(id, source=source, body={"n": n}, grade=grade), late)

    @rule(data=st.data(), late=st.booleans(), n=st.integers(-5, 5))
    def correct(self, data: st.DataObject, late: bool, n: int) -> None:
        target = self.some(data)
        if target is not None and target.kind == "test.thing":
            id = f"{len(self.stated):03}"
            self.state(fact(id, body={"n": n}, corrects=target.key), late)

    @rule(data=st.data(), late=st.booleans())
    def withdraw(self, data: st.DataObject, late: bool) -> None:
        target = self.some(data)
        if target is not None:
            self.state(withdrawal(f"{len(self.stated):03}", target.key), late)

    @rule(data=st.data())
    def repeat_and_reorder(self, data: st.DataObject) -> None:
        here = [each for each in self.stated if each not in self.held_back]
        batch = data.draw(st.permutations(here))[: data.draw(st.integers(0, 8))] if here else []
        before = self.store.head()
        assert all(outcome.result == "exists" for outcome in self.put([*batch, *batch]))
        assert self.store.head() == before

    @rule(data=st.data(), n=st.integers(10, 12))
    def contest(self, data: st.DataObject, n: int) -> None:
        target = self.some(data)
        if target is None or target in self.held_back or target.kind != "test.thing":
            return
        other = fact(target.id, source=target.source, body={"n": n}, corrects=target.corrects)
        (outcome,) = self.put([other])
        assert outcome.result == "conflict"
        assert outcome.field in ("grade", "payload.n")

    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        if self.held_back:
            batch = data.draw(st.permutations(self.held_back))
            batch = batch[: data.draw(st.integers(1, len(batch)))]
            self.put(batch)
            self.held_back = [each for each in self.held_back if each not in batch]

    @rule(by=st.integers(-50, 50))
    def tick(self, by: int) -> None:
        self.clock += by

    @rule()
    def look(self) -> None:
        moment = self.store.moment(None, now_us=self.clock)
        records = self.store.records(as_of=moment)
        self.past.append((moment, text_of(records), figure_of(records)))

    def some(self, data: st.DataObject) -> Fact | None:
        return data.draw(st.sampled_from(self.stated)) if self.stated else None

    @invariant()
    def laws_hold(self) -> None:
        if hasattr(self, "store"):
            records = self.store.records()
            assert [breach for law in LAWS for breach in law.breaches(records)] == []
            assert self.store.head().seq == len(records)

    def finish(self) -> None:
        self.put(self.held_back)
        orderly = self.new_store()
        for each in self.stated:
            orderly.append([each], now_us=1, own_source=OTHER)
        expected, found = orderly.records(), self.store.records()
        self.drop(orderly)
        assert text_of(found) == text_of(expected)
        assert figure_of(found) == figure_of(expected)
        for moment, text, figure in self.past:
            then = self.store.records(as_of=moment)
            assert (text_of(then), figure_of(then)) == (text, figure)


@pytest.mark.slow
@pytest.mark.parametrize(
    "examples", [pytest.param(15), pytest.param(500, marks=pytest.mark.soak)], ids=["short", "long"]
)
def test_facts_in_any_order_give_the_same_books(addresses: Addresses, examples: int) -> None:
    opened: dict[Store, str] = {}

    class Here(Books):
        @staticmethod
        def new_store() -> Store:
            address = addresses()
            store = open_store(address)
            opened[store] = address
            return store

        @staticmethod
        def drop(store: Store) -> None:
            store.close()
            addresses.drop(opened.pop(store))

    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=checks,
        ),
    )
