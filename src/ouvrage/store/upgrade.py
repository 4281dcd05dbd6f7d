"""Bringing a database to the present tables before anything else is done with it.

Alembic is imported only where a step is missing, because it takes longer to load than most
commands take to run. Two processes may open a new database at once: one of them makes the tables,
the other finds them there.
"""

from __future__ import annotations

from sqlalchemy import Column, Connection, Engine, MetaData, Table, Text, inspect, select
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from ouvrage.base.errors import OuvrageError
from ouvrage.store.engine import name_of, writing
from ouvrage.store.schema import REVISION, VERSION_TABLE

_TRIES = 5
_version = Table(VERSION_TABLE, MetaData(), Column("version_num", Text))  # Alembic makes it


def bring_up_to_date(engine: Engine) -> None:
    """Run the missing migrations; refuse a database that is not ours or is newer than us."""
    for attempt in range(_TRIES):
        if _stands_at(engine) == REVISION:
            return
        try:
            with writing(engine) as connection:
                _migrate(connection)
        except (IntegrityError, OperationalError, ProgrammingError):
            # Lost the race against another process, or failed: the next look tells which.
            if attempt == _TRIES - 1:
                raise


def _stands_at(engine: Engine) -> str | None:
    with engine.connect() as connection:
        tables = inspect(connection).get_table_names()
        if VERSION_TABLE in tables:
            at = connection.execute(select(_version.c.version_num)).scalar()
        elif tables:
            raise _not_ours(engine, tables)
        else:
            return None
    if at is not None and at > REVISION:
        raise OuvrageError(
            "store/newer",
            f"{name_of(engine)} was made by a newer version of Ouvrage (tables {at})",
            hint=f"this one knows tables up to {REVISION}; install the newer version",
        )
    return at


def _not_ours(engine: Engine, tables: list[str]) -> OuvrageError:
    return OuvrageError(
        "store/not-ours",
        f"{name_of(engine)} holds another program's tables: {', '.join(sorted(tables)[:3])}",
        hint="give Ouvrage a database of its own",
    )


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "ouvrage.store:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
