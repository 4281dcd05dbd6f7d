"""How a database is reached, and how its complaints are told.

Decides everything in which SQLite and PostgreSQL differ at the edge: the address, durability on
every connection, how a transaction begins, which of their errors a person can do something about.
All other code in this package is the same for both.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
)

from ouvrage.base.errors import OuvrageError

BUSY_SECONDS = 60
_POSTGRES = ("postgresql://", "postgres://", "postgresql+psycopg://")
# The server's own default may be weaker; an acknowledged fact must outlive a power cut.
_DURABLE = "-c synchronous_commit=on -c timezone=UTC -c lock_timeout=60s"


def engine_for(where: str | Path, *, create: bool) -> Engine:
    """An engine for a SQLite file or a ``postgresql://`` address. Connects to nothing yet."""
    text = str(where)
    if text.startswith(_POSTGRES):
        return _postgres(text)
    if "://" in text:
        raise OuvrageError(
            "store/address",
            f"{text.split('://')[0]}:// is not a kind of store",
            hint="give the path of a file, or postgresql://user@host/database",
        )
    return _sqlite(Path(text), create=create)


def name_of(engine: Engine) -> str:
    """The store as a person knows it, without a password."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    shown = engine.url.set(drivername="postgresql").difference_update_query(["options"])
    return shown.render_as_string(hide_password=True)


@contextmanager
def writing(engine: Engine) -> Generator[Connection]:
    """A transaction that may write; commits at the end, rolls back on any exception."""
    with (
        _turn(engine),
        engine.connect().execution_options(ouvrage_writes=True) as connection,
        connection.begin(),
    ):
        yield connection


_queues: WeakKeyDictionary[Engine, threading.Lock] = WeakKeyDictionary()


def _turn(engine: Engine) -> AbstractContextManager[object]:
    """This process's writers wait for one another here: SQLite itself would have each sleep and try again."""
    if engine.dialect.name != "sqlite":
        return nullcontext()
    return _queues.setdefault(engine, threading.Lock())


_pinned: ContextVar[tuple[Engine, Connection] | None] = ContextVar("_pinned", default=None)


@contextmanager
def pinned(engine: Engine) -> Generator[None]:
    """Whatever this thread reads until the end sees the store as it is now, whoever writes meanwhile."""
    with reading(engine) as connection:
        connection.exec_driver_sql(
            "SELECT seq FROM head"
        ).all()  # the state is chosen by the first look
        before = _pinned.set((engine, connection))
        try:
            yield
        finally:
            _pinned.reset(before)


@contextmanager
def reading(engine: Engine) -> Generator[Connection]:
    """A transaction in which every statement sees the same state of the store."""
    held = _pinned.get()
    if held is not None and held[0] is engine:
        yield held[1]
        return
    connection = engine.connect()
    if engine.dialect.name != "sqlite":  # SQLite's transactions are so without being asked
        connection = connection.execution_options(isolation_level="REPEATABLE READ")
    with connection, connection.begin():
        yield connection


def damage(engine: Engine) -> list[str]:
    """What a database finds wrong with its own file; nothing where it has no way to look."""
    if engine.dialect.name != "sqlite":
        return []
    try:
        with engine.connect() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check(10)").scalars().all()
    except OperationalError:
        raise  # it could not be looked at
    except DatabaseError as error:
        return [str(error.orig)]  # damaged where the check itself needs to read
    return [line for text in found for line in str(text).splitlines() if line != "ok"]


@contextmanager
def told(engine: Engine) -> Generator[None]:
    """Turn a database's errors into refusals. An integrity error is the caller's to judge."""
    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        raise _refusal(engine, error) from error


def _postgres(text: str) -> Engine:
    try:
        url = make_url(text).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError) as error:
        raise OuvrageError(
            "store/address",
            "the address of the store cannot be read",
            hint="write it as postgresql://user@host:5432/database",
        ) from error
    given = url.query.get("options", ())
    options = " ".join([_DURABLE, *([given] if isinstance(given, str) else given)])
    try:
        return create_engine(
            url.update_query_dict({"options": options}),
            connect_args={"connect_timeout": 10},
            # A writer that waited for another must see what that one wrote.
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,  # a connection that the server closed meanwhile is replaced
            paramstyle="format",  # parameters by place, as for SQLite: see ``rows.insert_rows``
        )
    except ModuleNotFoundError as error:
        raise OuvrageError(
            "store/no-driver",
            "PostgreSQL needs psycopg, which is not installed",
            hint="pip install 'ouvrage[postgres]'",
        ) from error


def _sqlite(path: Path, *, create: bool) -> Engine:
    try:
        _prepare(path, create=create)
    except OSError as error:
        raise OuvrageError(
            "store/unreachable",
            f"{path} cannot be opened: {error.strerror}",
            hint="set OUVRAGE_HOME to a directory that you may write to",
        ) from error
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _prepare(path: Path, *, create: bool) -> None:
    """Make the file, for its owner only. SQLite gives its companions the same permissions."""
    if path.exists():
        return
    if not create:
        raise OuvrageError("store/absent", f"there is no store at {path}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _on_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where SQLAlchemy says so: ``_on_begin``
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _on_begin(connection: Connection) -> None:
    # A writer takes the lock at once: one that reads first and writes later can be refused.
    writes = connection.get_execution_options().get("ouvrage_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _refusal(engine: Engine, error: DBAPIError) -> OuvrageError:
    said = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else repr(error.orig)
    code, hint = _judge(said.lower(), error)
    return OuvrageError(code, f"{name_of(engine)}: {said}", hint=hint, exit_code=1)


def _judge(said: str, error: DBAPIError) -> tuple[str, str]:
    """A stable code and what to do, from what the database said."""
    for words, code, hint in _KNOWN:
        if any(word in said for word in words):
            return code, hint
    if isinstance(error, (OperationalError, InterfaceError)):
        return "store/unreachable", "check the address, and that the database is up"
    return "store/database", "ouvrage verify says whether the store is sound"


_KNOWN = (
    (
        ("not a database", "malformed", "file is encrypted", "disk i/o error"),
        "store/damaged",
        "keep the file aside and restore the last backup: ouvrage restore",
    ),
    (
        ("database is locked", "lock timeout", "database is busy"),
        "store/busy",
        "another process holds the store; try again",
    ),
    (
        ("disk is full", "no space left", "could not extend file"),
        "store/disk-full",
        "make room and do it again",
    ),
    (
        ("readonly database", "read-only transaction", "permission denied"),
        "store/read-only",
        "the store may not be written to by this user",
    ),
)
