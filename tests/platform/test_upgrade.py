"""A state of an earlier version becomes one of this version by starting on it."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config

from ouvrage.adapters.home import make_private
from ouvrage.store.engine import engine_for, writing
from tests.support.facts import SOURCE
from tests.support.server import running


def _earlier(file: Path) -> None:
    """A store as it was before there were platforms."""
    engine = engine_for(file, create=True)
    with writing(engine) as connection:
        config = Config()
        config.set_main_option("script_location", "ouvrage.store:migrations")
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
    engine.dispose()


def test_a_start_migrates_and_keeps_what_was_there(tmp_path: Path) -> None:
    state = make_private(tmp_path / "state")
    _earlier(state / "ouvrage.db")
    (state / "source").write_text(f"{SOURCE}\n")
    with running(state) as server:
        assert server.password
        assert server.owner.get("/v1/me")["login"] == "admin"
        assert {entry.fact.source for entry in server.platform.store.records()} == {SOURCE}
