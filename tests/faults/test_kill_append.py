"""Kill a process in the middle of its appends: what it acknowledged is there, nothing is twice.

A child appends batch after batch and says so on a pipe after each. It is killed at a fraction of
the time that a batch takes, another fraction each time, so that the blow falls anywhere: while it
builds, inserts, commits or acknowledges. Then the store must hold every acknowledged batch, at most
one more, each of them whole, and the laws must hold.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest

from ouvrage.ledger.law_book import LAWS
from ouvrage.store.store import open_store
from tests.support.facts import OTHER, fact

pytestmark = pytest.mark.slow

BATCH = 7
KILLS = 20


def append_forever(address: str, first: int, said: Connection) -> None:
    with open_store(address) as store:
        number = first
        while True:
            facts = [fact(f"{number}/{n}", body={"n": "x" * 300}) for n in range(BATCH)]
            outcomes = store.append(facts, now_us=number, own_source=OTHER)
            said.send((number, {outcome.result for outcome in outcomes}))
            number += 1


def kill_one(address: str, first: int, fraction: float) -> int:
    """Let a child append, kill it at a fraction of a batch; the last one it acknowledged."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ouvrage.store.store", "tests.support.facts"])
    hear, say = context.Pipe(duplex=False)
    child = context.Process(target=append_forever, args=(address, first, say))
    child.start()
    say.close()
    last, heard, took = first - 1, time.monotonic(), 0.0
    try:
        for _ in range(3):
            assert hear.poll(60), "the child says nothing"
            last, results = hear.recv()
            assert results <= {"accepted", "exists"}
            heard, took = time.monotonic(), time.monotonic() - heard
        if hear.poll(fraction * took):
            last, _ = hear.recv()
        os.kill(child.pid or 0, signal.SIGKILL)
        while True:  # what it had said before it died counts as acknowledged
            last, _ = hear.recv()
    except EOFError:
        pass
    finally:
        child.kill()
        child.join(60)
        hear.close()
    return last


def check(address: str, acknowledged: int) -> int:
    """Check the store; the number of the batch to go on with, which may have been committed."""
    with open_store(address) as store:
        records = store.records()
        assert store.head().seq == len(records)
        assert [breach for law in LAWS for breach in law.breaches(records)] == []
        assert store.damage() == []
    ids = [entry.fact.id for entry in records]
    assert len(set(ids)) == len(ids)
    whole, rest = divmod(len(ids), BATCH)
    assert rest == 0
    assert acknowledged <= whole <= acknowledged + 1
    assert set(ids) == {f"{b}/{n}" for b in range(1, whole + 1) for n in range(BATCH)}
    return acknowledged + 1


def kill_many(address: str, kills: int) -> None:
    following = 1
    for kill in range(kills):
        # The next child begins with the batch after the last acknowledged one, which the killed one
        # may have committed: sent again, it must exist and not be doubled.
        following = check(address, kill_one(address, following, kill % 20 / 16))
    assert following > kills


@pytest.mark.parametrize(
    "rounds", [pytest.param(1), pytest.param(25, marks=pytest.mark.soak)], ids=["20", "500"]
)
def test_kills(addresses: Callable[[], str], rounds: int) -> None:
    for _ in range(rounds):  # the whole store is read after each kill, so it must not grow for ever
        kill_many(addresses(), KILLS)
