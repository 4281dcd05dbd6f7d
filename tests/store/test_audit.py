"""``verify`` walks every law, says what it kept unread, and finds what somebody changed by hand."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from ouvrage.store.audit import Audit, audit, layer_laws
from ouvrage.store.intake import bring_in
from ouvrage.store.projections import current_runs
from ouvrage.store.store import Store
from tests.support.facts import OTHER, fact
from tests.support.spools import STARTED, run_id, spool

RUN = run_id(1)


@pytest.fixture
def home(tmp_path: Path, store: Store) -> Path:
    (tmp_path / "home" / "spool").mkdir(parents=True)
    (tmp_path / "home" / "spool" / f"{RUN}.ndjson").write_bytes(spool(RUN))
    bring_in(tmp_path / "home", store, STARTED)
    newer = [fact(str(n), kind="gpu.window", version=2 + n % 2) for n in range(3)]
    store.append(newer, now_us=STARTED, own_source=OTHER)
    return tmp_path / "home"


def first_broken(found: Audit) -> str | None:
    return None if found.first is None else found.first.law


def test_whole_books(store: Store, home: Path) -> None:
    found = audit(store, home)
    assert found.first is None
    assert found.facts == store.head().seq
    assert {each.records for each in found.checked} == {found.facts}
    names = [each.law.name for each in found.checked]
    assert len(set(names)) == len(names)
    layers = {name.partition("/")[0] for name in names}
    assert layers >= {"ledger", "metering", "pricing", "evidence", "store"}
    assert all(each.law.statement for each in found.checked)
    assert found.unread == {("gpu.window", 2): 2, ("gpu.window", 3): 1}


def test_empty_books(store: Store, tmp_path: Path) -> None:
    found = audit(store, tmp_path)
    assert (found.first, found.facts) == (None, 0)


def test_every_layer_has_laws() -> None:
    assert {law.name.partition("/")[0] for law in layer_laws()} >= {
        "ledger", "metering", "pricing", "evidence",
    }  # fmt: skip


def forced(store: Store, database: str, statement: str) -> None:
    """Change a record as somebody could who owns the database: triggers off, then on again."""
    off = {
        "sqlite": ["DROP TRIGGER facts_no_update", "DROP TRIGGER facts_no_delete"],
        "postgresql": ["ALTER TABLE facts DISABLE TRIGGER ALL"],
    }
    with store.engine.begin() as connection:
        for line in (*off[database], statement):
            connection.execute(text(line))


@pytest.mark.parametrize(
    ("statement", "law"),
    [
        (
            "UPDATE facts SET payload = REPLACE(payload, '0.30', '0.03') WHERE seq = 1",
            "ledger/hash",
        ),
        ("UPDATE facts SET grade = 'metered' WHERE seq = 2", "ledger/hash"),
        ("DELETE FROM facts WHERE seq = 2", "ledger/gapless"),
        ("UPDATE facts SET recorded_at = 1 WHERE seq = 3", "ledger/recorded-in-order"),
        ("DELETE FROM facts WHERE seq = (SELECT max(seq) FROM facts)", "store/head"),
    ],
)
def test_what_was_changed_by_hand_is_found(
    store: Store, database: str, home: Path, statement: str, law: str
) -> None:
    current_runs(store)
    forced(store, database, statement)
    assert first_broken(audit(store, home)) == law


def test_a_changed_row_of_a_derived_table_is_found(store: Store, home: Path) -> None:
    current_runs(store)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE projection_runs SET label = 'mine'"))
    found = audit(store, home)
    assert first_broken(found) == "store/projection"
    assert found.first is not None
    assert RUN in found.first.where


@pytest.mark.parametrize(
    "change",
    [lambda data: data[:-5], lambda data: gzip.compress(b"other"), lambda data: b"?"],
    ids=["cut", "other", "scribble"],
)
def test_changed_samples_are_found(
    store: Store, home: Path, change: Callable[[bytes], bytes]
) -> None:
    path = home / "samples" / f"{RUN}.ndjson.gz"
    path.write_bytes(change(path.read_bytes()))
    found = audit(store, home)
    assert first_broken(found) == "store/samples"
    assert found.missing == ()


def test_absent_samples_are_said_and_no_breach(store: Store, home: Path) -> None:
    (home / "samples" / f"{RUN}.ndjson.gz").unlink()
    found = audit(store, home)
    assert (found.first, found.missing) == (None, (RUN,))
