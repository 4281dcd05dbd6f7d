"""A PostgreSQL of the tests' own: one cluster for the session, one database for each test.

It listens on a socket in a directory of its own and nowhere else. As root it runs as the user
``postgres``, since PostgreSQL refuses root. It does not wait for the disk: tests kill clients,
never the machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: p.parts[-3])


def available() -> bool:
    """Whether the Debian package is installed."""
    return bool(BINARIES)


class Cluster:
    """A running server. ``database()`` gives the address of a fresh, empty database."""

    def __init__(self, directory: Path, settings: str, control: tuple[object, ...]) -> None:
        self.directory = directory
        self._settings = settings
        self._control = control
        self._numbers = count(1)
        self._templates: dict[str, str] = {}

    def address(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.directory}"

    def database(self, template: str = "template0") -> str:
        name = f"t{next(self._numbers)}"
        self._do(f'CREATE DATABASE "{name}" TEMPLATE "{template}" ENCODING \'UTF8\'')
        return self.address(name)

    def drop(self, address: str) -> None:
        self._do(f'DROP DATABASE "{_name(address)}" WITH (FORCE)')

    def like(self, address: str) -> str:
        """A fresh database with the tables and rows of another, to which nobody is connected."""
        return self.database(template=_name(address))

    def close_connections(self, database: str) -> None:
        """Close them from the server's side, as a restart would."""
        self._do(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{database}' AND pid <> pg_backend_pid()"
        )

    def stop(self) -> None:
        """End it as a power cut would: nobody is told, nothing is finished."""
        _run(*self._control, "-m", "immediate", "stop")

    def start(self) -> None:
        """Start it with what it has, and return once it answers."""
        _run(*self._control, "-l", self.directory / "log", "-o", self._settings, "start")

    def _do(self, statement: str) -> None:
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())


def _name(address: str) -> str:
    return address.removeprefix("postgresql://postgres@/").partition("?")[0]


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Start a server, and stop it and remove all of it at the end."""
    binaries = BINARIES[-1].parent
    directory = Path(tempfile.mkdtemp(prefix="ouvrage-pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(directory, "postgres", "postgres")
        data = directory / "data"
        _run(binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync",
             "-E", "UTF8", "--locale=C.UTF-8")  # fmt: skip
        settings = (
            f"-c listen_addresses='' -c unix_socket_directories={directory} -c fsync=off "
            "-c shared_buffers=32MB -c max_connections=60"
        )
        made = Cluster(directory, settings, (binaries / "pg_ctl", "-D", data, "-w"))
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run(*command: object) -> None:
    words = [str(word) for word in command]
    if os.geteuid() == 0:
        words = ["runuser", "-u", "postgres", "--", *words]
    # The server keeps what it inherits open, so its output must not be a pipe we wait for.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", check=False
        )
        output.seek(0)
        assert done.returncode == 0, f"{words}: {output.read().decode(errors='replace')}"
