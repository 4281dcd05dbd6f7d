"""What is not a store of ours is refused in words, and left as it was."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from ouvrage.base.errors import OuvrageError
from ouvrage.store import engine
from ouvrage.store.schema import REVISION, VERSION_TABLE, metadata
from ouvrage.store.store import Store, open_store
from tests.support.facts import OTHER, fact


def refusal(where: str | Path, **options: bool) -> OuvrageError:
    with pytest.raises(OuvrageError) as refused:
        open_store(where, **options)
    return refused.value


def test_the_migrations_end_where_the_tables_stand(store: Store) -> None:
    config = Config()
    config.set_main_option("script_location", "ouvrage.store:migrations")
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_current_head() == REVISION
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []


def test_a_store_opens_again(address: str) -> None:
    with open_store(address) as store:
        store.append([fact()], now_us=1, own_source=OTHER)
    with open_store(address) as store:
        assert store.head().seq == 1


def test_a_newer_store_is_refused(address: str) -> None:
    with open_store(address) as store, store.engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    assert refusal(address).code == "store/newer"


def test_another_programs_database_is_refused(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if database == "sqlite":
        where = str(tmp_path / "theirs.db")
        with sqlite3.connect(where) as theirs:
            theirs.execute("CREATE TABLE albums (id)")
        theirs.close()
    else:
        where = request.getfixturevalue("cluster").database()
        with psycopg.connect(where) as connection:
            connection.execute("CREATE TABLE albums (id int)")
    error = refusal(where)
    assert error.code == "store/not-ours"
    assert "albums" in error.message


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with open_store(tmp_path / "new" / "home" / "ouvrage.db") as store:
            store.append([fact()], now_us=1, own_source=OTHER)
            files = list((tmp_path / "new" / "home").iterdir())
            modes = {stat.S_IMODE(path.stat().st_mode) for path in files}
    finally:
        os.umask(old)
    assert {path.name for path in files} >= {"ouvrage.db", "ouvrage.db-wal"}
    assert modes == {0o600}


def test_no_file_without_create(tmp_path: Path) -> None:
    assert refusal(tmp_path / "x.db", create=False).code == "store/absent"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"these are not the bytes you are looking for" * 100)
    error = refusal(path)
    assert (error.code, error.exit_code) == ("store/damaged", 1)
    assert path.read_bytes().startswith(b"these are not")


def test_a_place_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refusal(tmp_path / "file" / "ouvrage.db").code == "store/unreachable"


def test_an_address_of_another_kind() -> None:
    assert refusal("mysql://x/y").code == "store/address"
    assert refusal("postgresql://host:port/books").code == "store/address"


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    error = refusal(f"postgresql://someone:secret@/books?host={tmp_path}")
    assert error.code == "store/unreachable"
    assert "secret" not in "\n".join(error.lines())


def test_damaged_pages_are_told_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with open_store(path) as store:
        for batch in range(20):
            facts = [fact(f"{batch}/{n}", body={"n": "x" * 200}) for n in range(100)]
            store.append(facts, now_us=1, own_source=OTHER)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * 20_000)
    with open_store(path) as store:
        assert store.damage() != []
        with pytest.raises(OuvrageError) as refused:
            store.records()
        assert refused.value.code == "store/damaged"


def test_a_grade_from_a_newer_version_is_told(store: Store) -> None:
    store.append([fact()], now_us=1, own_source=OTHER)
    with store.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO facts SELECT 2, 'n', id, kind, version, subject, valid_from, "
                "valid_to, recorded_at, 'witnessed', payload, sha256, corrects FROM facts"
            )
        )
        connection.execute(text("UPDATE head SET seq = 2"))
    with pytest.raises(OuvrageError, match="witnessed"):
        store.records()


def test_a_writer_that_must_wait_too_long_is_told(tmp_path: Path) -> None:
    where = tmp_path / "x.db"
    open_store(where).close()
    blocker = sqlite3.connect(where, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    patch = pytest.MonkeyPatch()
    patch.setattr(engine, "BUSY_SECONDS", 0.05)
    try:
        with open_store(where) as store, pytest.raises(OuvrageError) as refused:
            store.append([fact()], now_us=1, own_source=OTHER)
        assert refused.value.code == "store/busy"
    finally:
        patch.undo()
        blocker.close()


def test_many_stores_are_apart(stores: Callable[[], Store]) -> None:
    one, two = stores(), stores()
    one.append([fact()], now_us=1, own_source=OTHER)
    assert two.head().seq == 0
