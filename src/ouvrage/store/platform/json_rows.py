"""Rows as values: a kind's instance kept as text in a column, a row put in or changed in place, a page of a list.

Decides the three things that every table here does alike, so that they are the same on both databases. Which rows there are
is decided by the modules beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, insert, update

from ouvrage.base.canonical import canonical
from ouvrage.base.ids import CODE_LENGTH, code_of, id_digits, normal_code
from ouvrage.ledger.kinds import from_plain, payload_of

T = TypeVar("T")


def text_of(value: Any) -> str:
    """Canonical JSON of a kind's instance, or of a tuple of texts, numbers or instances."""
    if isinstance(value, tuple):
        return f"[{','.join(_item(each) for each in value)}]"
    return payload_of(value)


def _item(value: Any) -> str:
    return canonical(value) if isinstance(value, (str, int)) else payload_of(value)


def value_of(kind: type[T], text: str) -> T:
    """The instance that ``text_of`` wrote. Specifications and places never change: each is read once."""
    return _read(kind, text)


@lru_cache(maxsize=50_000)
def _read(kind: type[Any], text: str) -> Any:
    return from_plain(kind, json.loads(text))


def values_of(kind: type[T], text: str) -> tuple[T, ...]:
    """The tuple that ``text_of`` wrote. What a machine is changes rarely and is asked all the time: each is read once."""
    return _read_all(kind, text)


@lru_cache(maxsize=20_000)
def _read_all(kind: type[Any], text: str) -> Any:
    return tuple(from_plain(kind, each) for each in json.loads(text))


def put(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Insert a row, or change the one of the same key. Needs the writers' queue: see ``store.transaction``."""
    keys = list(table.primary_key.columns)
    others = {name: value for name, value in row.items() if name not in table.primary_key.columns}
    if others and _changed(connection, table, keys, row, others):
        return
    connection.execute(insert(table).values(**row))


def _changed(
    connection: Connection,
    table: Table,
    keys: list[Any],
    row: Mapping[str, Any],
    others: Mapping[str, Any],
) -> bool:
    same = and_(*(column == row[column.name] for column in keys))
    return connection.execute(update(table).where(same).values(**others)).rowcount > 0


def page(
    query: Select[Any], key: ColumnElement[str], *, limit: int, cursor: str | None
) -> Select[Any]:
    """One page of a list, newest first: ids rise with time. One row more than asked tells whether more follow."""
    if cursor is not None:
        query = query.where(key < cursor)
    return query.order_by(key.desc()).limit(limit + 1)


def coded(key: ColumnElement[str], code: str) -> ColumnElement[bool] | None:
    """The condition that an id has a short code; None for a text that is none. A few others may meet it too."""
    digits = id_digits(code) if len(code.strip()) >= CODE_LENGTH else None
    return None if digits is None else key.like("_" * 17 + digits + "%")


def has_code(id_: str, code: str) -> bool:
    """Whether an id has a short code."""
    wanted = normal_code(code)
    return code_of(id_, len(wanted)) == wanted
