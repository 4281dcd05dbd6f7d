"""Fixtures: a fresh store on each database, by one parameter. Import them into a ``conftest.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ouvrage.store.store import Store, open_store
from tests.support import postgres

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def cluster() -> Iterator[postgres.Cluster]:
    if not postgres.available():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with postgres.cluster() as running:
        yield running


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


Addresses = Callable[[], str]


@pytest.fixture
def addresses(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Addresses]:
    """A function that gives the address of another fresh store of this test's database."""
    yield from _addresses(database, request, tmp_path)


def _addresses(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Addresses]:
    if database == "sqlite":
        numbers = iter(range(1_000_000))
        yield lambda: str(tmp_path / f"store-{next(numbers)}.db")
        return
    cluster: postgres.Cluster = request.getfixturevalue("cluster")
    template: str = request.getfixturevalue("migrated")
    made: list[str] = []

    def fresh() -> str:
        made.append(cluster.like(template))
        return made[-1]

    yield fresh
    for address in made:
        cluster.drop(address)


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
    made = _addresses(other, request, tmp_path / "other")
    (tmp_path / "other").mkdir()
    fresh = next(made)
    with open_store(fresh()) as opened:
        yield opened
    next(made, None)
