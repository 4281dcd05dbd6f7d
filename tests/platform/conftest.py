"""A real server on a free loopback port, with a fresh state, for each test that asks for one.

``platform_server`` is the running server; its ``owner`` is a client with the administrator's token. The socket listens before
the server's thread starts, so that no test waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.platform.working import Working, working_on
from tests.support.server import FRESH_STORES, Running, running
from tests.support.stores import address, addresses, cluster, database, migrated

__all__ = ("address", "addresses", "cluster", "database", "migrated")


@pytest.fixture(scope="session", autouse=True)
def everything_on_postgresql(request: pytest.FixtureRequest) -> Iterator[None]:
    """With ``OUVRAGE_TEST_DATABASE=postgresql`` every server of these tests keeps its tables there."""
    if os.environ.get("OUVRAGE_TEST_DATABASE") != "postgresql":
        yield
        return
    running_cluster = request.getfixturevalue("cluster")
    template = request.getfixturevalue("migrated")
    FRESH_STORES.append(lambda: running_cluster.like(template))
    yield
    FRESH_STORES.pop()


@pytest.fixture
def platform_server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "state") as server:
        yield server


@pytest.fixture
def either_server(database: str, address: str, tmp_path: Path) -> Iterator[Running]:
    """A server on each database in turn."""
    store = address if database == "postgresql" else None
    with running(tmp_path / "state", store=store) as server:
        yield server


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for the tests of a module that leave nothing behind, or only what no other looks at."""
    with running(tmp_path_factory.mktemp("shared") / "state") as server:
        yield server


@pytest.fixture
def platform_servers(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Servers with settings of their own: ``platform_servers("name", settings=…, store=…)``."""
    with ExitStack() as stack:
        yield lambda name, **more: stack.enter_context(running(tmp_path / name, **more))


@pytest.fixture
def working(tmp_path: Path) -> Iterator[Working]:
    """A platform that does nothing unasked, under a clock that stands until it is moved."""
    with working_on(tmp_path / "state") as made:
        yield made
