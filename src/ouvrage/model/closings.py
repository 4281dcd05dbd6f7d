"""A month of the books that was closed, what was accepted to close it, and that it was opened again.

Only that it was done, by which moment, and the hashes of what was sealed. Whether a month is closed now
follows from the numbers: the last closing counts unless it was opened again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An open ``item`` of a month's checklist that was let stand as ``found``, and why."""

    item: str
    found: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAccepted:
    """Of the books of ``site`` for ``period``, the open ``item`` may stand as ``found``, and ``why``.

    It counts only while the checklist finds the same words.
    """

    KIND: ClassVar[str] = "books.accepted"
    VERSION: ClassVar[int] = 1

    site: str
    period: str
    item: str
    found: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BooksClosed:
    """The books of ``site`` for the month ``period`` were sealed as known at ``as_of_us``.

    ``number`` counts the closings of the month from 1. ``file`` lies in ``closed`` of the home;
    ``file_sha256`` is the hash of its bytes, ``sums_sha256`` of the sums of money and time and the
    calendar among its ``rows``, as canonical JSON, one a line, sorted. ``accepted`` are the open items
    with which it was closed.
    """

    KIND: ClassVar[str] = "books.closed"
    VERSION: ClassVar[int] = 1

    site: str
    period: str
    number: int
    as_of_us: int
    file: str
    file_sha256: str
    rows: int
    sums_sha256: str
    accepted: tuple[Accepted, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BooksReopened:
    """Closing ``number`` of ``site``'s month ``period`` does not hold any more, and ``why``."""

    KIND: ClassVar[str] = "books.reopened"
    VERSION: ClassVar[int] = 1

    site: str
    period: str
    number: int
    why: str
