"""The laws of metering hold for what the meter writes, and each of them can fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ouvrage.ledger.facts import Recorded
from ouvrage.metering import laws
from ouvrage.metering.laws import LAWS, reckoning_breaches
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.timeuse import time_use
from tests.support.runs import (
    CHEAP,
    RUN,
    S,
    busy,
    end,
    ends,
    header,
    recorded,
    spans,
    view_of,
    written,
)  # fmt: skip

LEDGER = recorded(
    written(
        header(price=CHEAP),
        *busy(25, at_network=lambda _: 0),
        ends(5, 10, 15, 20),
        spans(0, 20, 9, data=5),
        end(25),
    )
)


def broken(records: list[Recorded]) -> set[str]:
    return {breach.law for law in LAWS for breach in law.breaches(records)}


def changed(name: str, change: Callable[[dict[str, Any]], Any]) -> list[Recorded]:
    """The ledger with one fact's payload changed."""
    found: list[Recorded] = []
    for entry in LEDGER:
        if entry.fact.id == f"{RUN}/{name}":
            payload = json.loads(entry.fact.payload)
            change(payload)
            fact = replace(entry.fact, payload=json.dumps(payload))
            found.append(replace(entry, fact=fact))
        else:
            found.append(entry)
    return found


def put(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda payload: payload.update(values)


def without(name: str) -> list[Recorded]:
    return [entry for entry in LEDGER if entry.fact.id != f"{RUN}/{name}"]


def test_they_hold() -> None:
    assert broken(LEDGER) == set()
    assert broken([]) == set()


@pytest.mark.parametrize(
    ("records", "law"),
    [
        (without("start"), "metering/one-start"),
        ([*LEDGER, replace(LEDGER[0], fact=replace(LEDGER[0].fact, id="x"))], "metering/one-start"),
        ([*LEDGER, replace(LEDGER[-1], fact=replace(LEDGER[-1].fact, id="x"))], "metering/one-start"),
        (changed("start", put(price={"amount": "x", "currency": "EUR", "per": "h"})),
         "metering/payloads-agree"),
        (changed("window/0", put(run="another")), "metering/payloads-agree"),
        (changed("window/0", put(extra=1)), "metering/payloads-agree"),
        (changed("end", put(outcome="fine")), "metering/payloads-agree"),
        (without("window/1"), "metering/windows-tile"),
        (without("window/2"), "metering/windows-tile"),
        (changed("window/1", put(from_us=9 * S)), "metering/windows-tile"),
        (changed("end", put(wall_us=30 * S)), "metering/windows-tile"),
        (changed("window/0", put(covered_us=11 * S)), "metering/windows-hold"),
        (changed("window/0", put(active_us=11 * S)), "metering/windows-hold"),
        (changed("window/0", put(read_bytes=-1)), "metering/windows-hold"),
        (changed("waits/0", put(network_us=11 * S)), "metering/waits-hold"),
        (changed("waits/0", put(refaulted_bytes=-1)), "metering/waits-hold"),
        (changed("spans/0", put(to_us=-1)), "metering/spans-hold"),
        (changed("spans/0", put(spans=[{"name": "data", "count": 1, "total_us": -1}])),
         "metering/spans-hold"),
        (changed("marks/0", put(n=[1])), "metering/payloads-agree"),
        (changed("marks/0", put(via="magic")), "metering/payloads-agree"),
    ],
)  # fmt: skip
def test_each_can_fail(records: list[Recorded], law: str) -> None:
    assert law in broken(records)


def test_time_that_does_not_add_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(header(), *busy(25), ends(5, 10, 15, 20), end(25))
    good = reckon(view)
    assert not list(reckoning_breaches(view, good))
    use = time_use(view, 0, 25 * S)
    for bad in (
        replace(good, whole=replace(use, us=use.us | {"computing": 1})),
        replace(good, steady=replace(use, measured=use.measured | {"waiting_data": 1})),
        replace(good, phases=replace(good.phases, steady_end=40 * S)),
        replace(good, units=replace(good.units, untimed=5)),
    ):
        assert list(reckoning_breaches(view, bad))
    monkeypatch.setattr(
        laws, "reckon", lambda _: replace(good, units=replace(good.units, untimed=5))
    )
    assert "metering/time-adds-up" in broken(LEDGER)
