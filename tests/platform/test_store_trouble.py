"""A store that cannot be used: the server says so, tells nobody where it is, and serves again when it is back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import postgres
from tests.support.server import running


def test_a_database_that_drops_its_connections_is_used_again(
    cluster: postgres.Cluster, migrated: str, tmp_path: Path
) -> None:
    store = cluster.like(migrated)
    with running(tmp_path / "state", store=store) as server:
        before = server.owner.get("/v1/me")
        cluster.close_connections(store.removeprefix("postgresql://postgres@/").partition("?")[0])
        assert server.owner.get("/v1/me") == before
        server.owner.post("/v1/projects", {"name": "vision"})


def test_a_database_that_is_gone_is_told_without_its_address(
    cluster: postgres.Cluster, migrated: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = cluster.like(migrated)
    with running(tmp_path / "state", store=store) as server:
        server.owner.get("/v1/me")  # it has started
        cluster.drop(store)
        answer = server.owner("GET", "/v1/me")
        assert answer.status_code in (500, 503)
        assert answer.json()["error"]["code"].startswith("store/")
        assert "postgresql" not in answer.text
        assert str(cluster.directory) not in answer.text
    assert "store.failed" in capfd.readouterr().out
