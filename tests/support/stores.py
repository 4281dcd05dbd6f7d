"""Fixtures: a fresh store on each database, by one parameter. Import them into a ``conftest.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from ouvrage.store.store import Store, open_store
from tests.support import postgres

DATABASES = ("sqlite", "postgresql")
_RUNNING = pytest.StashKey[postgres.Cluster]()


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> postgres.Cluster:
    """One server for the session, also where several ``conftest.py`` import this fixture."""
    if not postgres.available():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    running = request.config.stash.get(_RUNNING, None)
    if running is None:
        stack = ExitStack()
        request.config.add_cleanup(stack.close)
        running = request.config.stash[_RUNNING] = stack.enter_context(postgres.cluster())
    return running


@pytest.fixture(scope="session")
def migrated(cluster: postgres.Cluster) -> str:
    """A database with our tables in it, to make others from: quicker than to migrate each."""
    address = cluster.database()
    open_store(address).close()
    return address


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> str:
    """Which database this test runs on."""
    return request.param


class Addresses:
    """Called, it gives the address of another fresh store; ``drop`` removes one before the end."""

    def __init__(self, make: Callable[[], str], remove: Callable[[str], None]) -> None:
        self._make = make
        self._remove = remove
        self._made: set[str] = set()

    def __call__(self) -> str:
        address = self._make()
        self._made.add(address)
        return address

    def drop(self, address: str) -> None:
        self._made.remove(address)
        self._remove(address)

    def drop_all(self) -> None:
        for address in list(self._made):
            self.drop(address)


@pytest.fixture
def addresses(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Addresses]:
    made = _addresses(database, request, tmp_path)
    yield made
    made.drop_all()


def _addresses(database: str, request: pytest.FixtureRequest, directory: Path) -> Addresses:
    if database == "sqlite":
        numbers = count(1)
        return Addresses(lambda: str(directory / f"store-{next(numbers)}.db"), _remove_file)
    cluster: postgres.Cluster = request.getfixturevalue("cluster")
    template: str = request.getfixturevalue("migrated")
    return Addresses(lambda: cluster.like(template), cluster.drop)


def _remove_file(address: str) -> None:
    for end in ("", "-wal", "-shm"):
        Path(address + end).unlink(missing_ok=True)


@pytest.fixture
def address(addresses: Addresses) -> str:
    return addresses()


@pytest.fixture
def stores(addresses: Addresses) -> Iterator[Callable[[], Store]]:
    """A function that opens another fresh store; all are closed at the end."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(open_store(addresses()))


@pytest.fixture
def store(stores: Callable[[], Store]) -> Store:
    return stores()


@pytest.fixture
def other_store(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A fresh store on the database that ``store`` is *not* on."""
    other = next(name for name in DATABASES if name != database)
    made = _addresses(other, request, tmp_path)
    with open_store(made()) as opened:
        yield opened
    made.drop_all()
