"""Batches of telemetry kept once each: appended to a file, then counted in a short transaction.

Decides the order that makes this exact: first the bytes are on the disk, then the tables say that they count, and how far the file
is good; only then is a batch acknowledged. Killed in between, the bytes behind the last word of the tables count for nothing and the
batch is sent again. Several servers may share the tables: the number of a source only moves from the one that its batch follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from ouvrage.store.engine import reading, told, writing
from ouvrage.store.platform.ingest_tables import sample_logs, sample_sources
from ouvrage.store.sample_frames import SUFFIX, Frame, FrameFile
from ouvrage.store.store import Store

DIRECTORY = "telemetry"
SOURCES_OF_A_NODE = 16
"""A node that begins anew has another source; only its latest ones are remembered."""
_MOST_KNOWN = 100_000
_KEY = tuple_(sample_sources.c.node, sample_sources.c.source)
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A batch as it was sent: number ``sequence`` of a ``source`` of the frame's node; its first and last moment."""

    source: str
    sequence: int
    frame: Frame
    from_us: int
    to_us: int

    @property
    def key(self) -> Key:
        """The node and its source."""
        return (self.frame.node, self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of a batch: ``accepted``, ``exists``, or ``gap`` where others must come before; and the last that is kept."""

    result: str
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """A file of batches, good up to ``bytes``."""

    log: str
    source: str
    bytes: int
    batches: int
    from_us: int
    to_us: int
    begun_us: int


class SampleLog:
    """Where one server keeps batches. One thread appends."""

    def __init__(
        self,
        store: Store,
        home: Path,
        source: str,
        ids: Callable[[], str],
        *,
        most_bytes: int,
        most_us: int,
    ) -> None:
        self._engine = store.engine
        self._home = home
        self._source = source
        self._ids = ids
        self._most_bytes = most_bytes
        self._most_us = most_us
        self._last: dict[Key, int] = {}
        self._file: tuple[str, FrameFile] | None = None
        self._open: str | None = None
        self._span = (0, 0)
        self._begun_us = 0

    def append(self, group: Sequence[Offered], now_us: int) -> list[Kept]:
        """Keep those that follow what is kept already, all of them durably or none; one outcome each.

        Raises ``OuvrageError`` ``store/…`` or ``OSError`` with nothing kept; then all may be sent again.
        """
        with told(self._engine):
            try:
                return self._append(group, now_us)
            except IntegrityError:  # another server took one of them at the same time
                self._leave()
                return self._append(group, now_us)
            except BaseException:
                self._leave()
                raise

    def _append(self, group: Sequence[Offered], now_us: int) -> list[Kept]:
        self._look_up({each.key for each in group})
        last = {each.key: self._last[each.key] for each in group}
        before = dict(last)
        outcomes = [_judge(each, last) for each in group]
        new = [
            each for each, kept in zip(group, outcomes, strict=True) if kept.result == "accepted"
        ]
        if new:
            self._keep(new, before, last, now_us)
        return outcomes

    def _look_up(self, keys: set[Key]) -> None:
        if len(self._last) > _MOST_KNOWN:
            self._last.clear()
        unknown = sorted(keys - self._last.keys())
        if not unknown:
            return
        query = select(sample_sources.c.node, sample_sources.c.source, sample_sources.c.sequence)
        with reading(self._engine) as connection:
            for begin in range(0, len(unknown), 200):
                rows = connection.execute(query.where(_KEY.in_(unknown[begin : begin + 200])))
                self._last |= {(node, source): sequence for node, source, sequence in rows}
        for key in unknown:
            self._last.setdefault(key, 0)

    def _keep(
        self, new: Sequence[Offered], before: dict[Key, int], last: dict[Key, int], now_us: int
    ) -> None:
        if self._file and now_us >= self._begun_us + self._most_us:
            self.close()
        log, file = self._file or self._begin(now_us)
        file.append([each.frame for each in new])
        begins = min(each.from_us for each in new)
        ends = max(each.to_us for each in new)
        moved = {key: (before[key], last[key]) for key in {each.key for each in new}}
        with writing(self._engine) as connection:
            _move(connection, moved, now_us)
            self._count(connection, log, file.bytes, len(new), begins, ends)
        self._last |= {key: to for key, (_, to) in moved.items()}
        if file.bytes >= self._most_bytes:
            self.close()

    def _begin(self, now_us: int) -> tuple[str, FrameFile]:
        log = self._ids()
        self._open = log  # before the tables name it, so that it is never taken for a finished one
        with writing(self._engine) as connection:
            row = {
                "log": log, "source": self._source, "bytes": 0, "batches": 0, "from_us": 0,
                "to_us": 0, "begun_us": now_us,
            }  # fmt: skip
            connection.execute(insert(sample_logs).values(**row))
        self._span, self._begun_us = (0, 0), now_us
        self._file = (log, FrameFile(path_of(self._home, log)))
        return self._file

    def _count(
        self, connection: Connection, log: str, bytes_: int, batches: int, begins: int, ends: int
    ) -> None:
        first, latest = self._span
        self._span = (min(first or begins, begins), max(latest, ends))
        counted = update(sample_logs).where(sample_logs.c.log == log)
        connection.execute(
            counted.values(
                bytes=bytes_,
                batches=sample_logs.c.batches + batches,
                from_us=self._span[0],
                to_us=self._span[1],
            )
        )

    def close(self) -> None:
        """Be done with the file; the next batch begins another."""
        if self._file is not None:
            self._file[1].close()
            self._file = None
        self._open = None

    def _leave(self) -> None:
        """Forget what may not be so any more: the numbers, and the file with bytes that count for nothing."""
        self._last.clear()
        self.close()

    @property
    def open_log(self) -> str | None:
        """The file that is being written to."""
        return self._open


def _judge(each: Offered, last: dict[Key, int]) -> Kept:
    at = last[each.key]
    if each.sequence <= at:
        return Kept(result="exists", sequence=at)
    if each.sequence > at + 1:
        return Kept(result="gap", sequence=at)
    last[each.key] = each.sequence
    return Kept(result="accepted", sequence=each.sequence)


def _move(connection: Connection, moved: dict[Key, tuple[int, int]], now_us: int) -> None:
    """Move each source on from where it stood. ``IntegrityError`` where another server moved one meanwhile."""
    rows = [
        {"n": node, "s": source, "was": was, "to": to, "at": now_us}
        for (node, source), (was, to) in sorted(moved.items())
    ]
    known = [row for row in rows if row["was"]]
    new = [row for row in rows if not row["was"]]
    if known and connection.execute(_MOVE, known).rowcount != len(known):
        raise IntegrityError("a source was moved by another server", None, ValueError())
    for row in new:
        connection.execute(_ADD, row)
        _forget_old(connection, str(row["n"]))


_MOVE = (
    update(sample_sources)
    .where(
        sample_sources.c.node == bindparam("n"),
        sample_sources.c.source == bindparam("s"),
        sample_sources.c.sequence == bindparam("was"),
    )
    .values(sequence=bindparam("to"), heard_us=bindparam("at"))
)
_ADD = insert(sample_sources).values(
    node=bindparam("n"), source=bindparam("s"), sequence=bindparam("to"), heard_us=bindparam("at")
)


def _forget_old(connection: Connection, node: str) -> None:
    of_node = select(sample_sources.c.source).where(sample_sources.c.node == node)
    latest = of_node.order_by(sample_sources.c.heard_us.desc()).limit(SOURCES_OF_A_NODE)
    kept = set(connection.execute(latest).scalars())
    for source in set(connection.execute(of_node).scalars()) - kept:
        where = (sample_sources.c.node == node) & (sample_sources.c.source == source)
        connection.execute(delete(sample_sources).where(where))


def path_of(home: Path, log: str) -> Path:
    """Where a file of batches is."""
    return home / DIRECTORY / f"{log}{SUFFIX}"


def logs_of(store: Store, source: str) -> list[LogRow]:
    """The files of batches of a server's directory that are not sealed yet, oldest first."""
    query = select(sample_logs).where(sample_logs.c.source == source).order_by(sample_logs.c.log)
    with told(store.engine), reading(store.engine) as connection:
        return [_log(row._mapping) for row in connection.execute(query)]


def last_kept(store: Store) -> dict[Key, int]:
    """By node and source, the last batch that is kept."""
    query = select(sample_sources.c.node, sample_sources.c.source, sample_sources.c.sequence)
    with told(store.engine), reading(store.engine) as connection:
        return {(node, source): sequence for node, source, sequence in connection.execute(query)}


def forget_log(connection: Connection, log: str) -> None:
    """The file is sealed or dropped: what stands about it is a fact by now."""
    connection.execute(delete(sample_logs).where(sample_logs.c.log == log))


def _log(values: Any) -> LogRow:
    return LogRow(**values)
