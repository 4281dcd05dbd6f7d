"""Events on their way to the server: on the disk first, numbered once, kept until they are had.

Decides how an event comes to count exactly once: it gets its number when it is written here, in one
file that only grows, and the server takes each number once. What was told of an attempt is kept in
the same file, so a runner that is killed between two lines neither repeats an event under another
number nor forgets one. Not whether the server is there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ouvrage.store.samples import write_whole

_COMPACT_BYTES = 1 << 20
MOST = 500


class Outbox:
    """The file of one node. One process holds it at a time; the runner's own lock sees to that."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: list[dict[str, Any]] = []
        self._told: dict[str, list[str]] = {}
        self._last = 0
        self._read()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _read(self) -> None:
        if not self._path.exists():
            return
        data = self._path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):  # torn when the machine stopped: nobody was told of it
            with open(self._path, "r+b") as file:
                file.truncate(whole)
        for line in data[:whole].splitlines():
            self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        if "told" in line:
            self._last = max(self._last, line["last"])
            self._told = line["told"]
            return
        self._last = line["sequence"]
        self._waiting.append(line)
        told = self._told.setdefault(line["attempt"], [])
        if line["event"] not in told:
            told.append(line["event"])

    def told(self, attempt: str, event: str) -> bool:
        """Whether this was already put down to be sent."""
        return event in self._told.get(attempt, ())

    def add(self, events: list[dict[str, Any]]) -> None:
        """Number events and bring them to the disk, all at once."""
        if not events:
            return
        numbered = [
            {**event, "sequence": number} for number, event in enumerate(events, self._last + 1)
        ]
        _write_all(self._fd, b"".join(map(_line, numbered)))
        for line in numbered:  # not before it is on the disk: a number is never given twice
            self._take(line)

    def waiting(self) -> list[dict[str, Any]]:
        """The next events to send, oldest first."""
        return self._waiting[:MOST]

    def had(self, sequence: int) -> None:
        """The server has everything up to here."""
        self._waiting = [event for event in self._waiting if event["sequence"] > sequence]
        if os.fstat(self._fd).st_size > _COMPACT_BYTES:
            self._compact()

    def forget(self, attempt: str) -> None:
        """Nothing more will be told of this attempt."""
        self._told.pop(attempt, None)

    def _compact(self) -> None:
        """Write what still matters into a new file."""
        waiting = {(event["attempt"], event["event"]) for event in self._waiting}
        told = {
            attempt: [name for name in names if (attempt, name) not in waiting]
            for attempt, names in self._told.items()
        }
        first = self._waiting[0]["sequence"] - 1 if self._waiting else self._last
        lines = [_line({"told": told, "last": first}), *map(_line, self._waiting)]
        write_whole(self._path, b"".join(lines))
        os.close(self._fd)
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def close(self) -> None:
        """Release the file."""
        os.close(self._fd)


def _line(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _write_all(fd: int, data: bytes) -> None:
    size = os.fstat(fd).st_size
    written = 0
    try:
        while written < len(data):
            written += os.write(fd, data[written:])
        os.fdatasync(fd)
    except OSError:
        os.ftruncate(fd, size)
        raise
