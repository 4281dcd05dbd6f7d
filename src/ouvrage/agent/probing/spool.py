"""Facts on their way into a store: on this disk first, each once, until the store has them.

Decides how a fact comes to count exactly once however the agent ends. What was found and what the agent must remember to
go on from there are one line in one file: it is on the disk whole or not at all, so that a fact is never stated
without the memory of having stated it. A store takes a fact it has as *exists*, so that sending again does no harm; up to
where it has them stands in a file of its own. A reserve is kept for a full disk: facts take it last.

Several processes may add; a lock keeps their lines apart.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ouvrage.adapters.clock import new_id
from ouvrage.adapters.home import make_private, source_id
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of
from ouvrage.ledger.lines import fact_line, read_fact_line
from ouvrage.ledger.stated import Stated
from ouvrage.store.samples import write_whole

FILE, HAD, LOCK, RESERVE = "spool.ndjson", "spool.had", "spool.lock", "spool.reserve"
_RESERVE_BYTES = 1 << 20
_COMPACT_BYTES = 1 << 20
MOST = 200
"""Facts that one sending takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The next facts that a store has not had, and the place up to which it has them once it took these."""

    facts: tuple[Fact, ...]
    place: tuple[str, int]


class Spool:
    """The facts of one agent's directory. ``give_room`` frees space when the disk is full, and says whether it did."""

    def __init__(self, directory: Path, give_room: Callable[[], bool] | None = None) -> None:
        self._at = make_private(directory)
        self._path = directory / FILE
        self._give_room = give_room or (lambda: False)
        self.source = source_id(directory)
        self._keep_reserve()

    def add(self, said: Sequence[Stated | Fact], memory: Mapping[str, Any] | None = None) -> None:
        """Bring facts, and what is to be remembered with them, to the disk, all or nothing. Raises ``OSError``."""
        facts = [self._fact(each) for each in said]
        line: dict[str, Any] = {"facts": [fact_line(fact) for fact in facts]}
        if memory is not None:
            line["memory"] = memory
        with self._alone():
            name = self._name()
            nothing_waits = self._had(name) >= self._path.stat().st_size
            self._append(_text(line))
            if nothing_waits and not facts:  # nobody is started to take memory away
                with contextlib.suppress(OSError):
                    self._note(name, self._path.stat().st_size)

    def _fact(self, said: Stated | Fact) -> Fact:
        if isinstance(said, Fact):
            return said
        return fact_of(
            said.value, source=self.source, id=said.id, subject=said.subject,
            valid_from=said.valid_from, valid_to=said.valid_to, grade=said.grade,
        )  # fmt: skip

    def memory(self) -> dict[str, Any] | None:
        """What was remembered last, None before the first time."""
        with self._alone():
            found = None
            for line in self._lines(0):
                found = line[1].get("memory", found)
        return found

    def waiting(self, most: int = MOST) -> Waiting | None:
        """The next facts to send, oldest first; None where the store has them all."""
        with self._alone():
            name = self._name()
            facts: list[Fact] = []
            end = start = self._had(name)
            for after, line in self._lines(start):
                found = [read_fact_line(text)[0] for text in line.get("facts", ())]
                if facts and len(facts) + len(found) > most:
                    break
                facts += found
                end = after
            if not facts and end > start:
                self._note(name, end)
        return Waiting(facts=tuple(facts), place=(name, end)) if facts else None

    @property
    def empty(self) -> bool:
        """Whether nothing was added since all was had, told from sizes alone."""
        try:
            return self._had(self._name()) >= self._path.stat().st_size
        except OSError:
            return True

    def had(self, place: tuple[str, int]) -> None:
        """The store has everything up to a place."""
        with self._alone():
            if self._name() != place[0]:
                return
            self._note(*place)

    def _note(self, name: str, end: int) -> None:
        """Write down that the store has everything up to a place, and begin anew where that is all of a long file."""
        write_whole(self._at / HAD, _text({"spool": name, "bytes": end}))
        if self._path.stat().st_size == end > _COMPACT_BYTES:
            self._compact()

    def _compact(self) -> None:
        """Begin a new file with the memory alone. Its other name makes the old place void."""
        memory = None
        for _, line in self._lines(0):
            memory = line.get("memory", memory)
        write_whole(self._path, _text({"spool": new_id(), "memory": memory}))

    def _name(self) -> str:
        """The file's own name, in its first line; made with the file."""
        if not self._path.exists():
            write_whole(self._path, _text({"spool": new_id()}))
        with self._path.open("rb") as file:
            return json.loads(file.readline())["spool"]

    def _had(self, name: str) -> int:
        try:
            told = json.loads((self._at / HAD).read_bytes())
        except (OSError, ValueError):
            return 0
        return told["bytes"] if told["spool"] == name else 0

    def _lines(self, start: int) -> Generator[tuple[int, dict[str, Any]]]:
        """Each whole line from a place on, with the place after it; what follows the last one was torn."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(start)
            while (text := file.readline()).endswith(b"\n"):
                yield file.tell(), json.loads(text)

    def _append(self, text: bytes) -> None:
        self._name()
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            end = _whole_end(descriptor)
            while True:
                try:
                    _write_at(descriptor, end, text)
                    return
                except OSError:
                    os.ftruncate(descriptor, end)
                    if not self._more_room():
                        raise
        finally:
            os.close(descriptor)

    def _more_room(self) -> bool:
        """Free space for facts: what others can give first, then the reserve."""
        if self._give_room():
            return True
        try:
            (self._at / RESERVE).unlink()
        except OSError:
            return False
        return True

    def _keep_reserve(self) -> None:
        """Lay a reserve aside where there is room for it; without one the agent works all the same."""
        path = self._at / RESERVE
        if not path.exists():
            with contextlib.suppress(OSError):
                write_whole(path, bytes(_RESERVE_BYTES))

    @contextmanager
    def _alone(self) -> Generator[None]:
        descriptor = os.open(self._at / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _text(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _whole_end(descriptor: int) -> int:
    """Where the last whole line ends; what a process that was killed left half is cut off."""
    size = os.fstat(descriptor).st_size
    if os.pread(descriptor, 1, max(0, size - 1)) == b"\n":
        return size
    data = os.pread(descriptor, size, 0)
    end = data.rfind(b"\n") + 1
    os.ftruncate(descriptor, end)
    return end


def _write_at(descriptor: int, place: int, data: bytes) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(descriptor, data[done:], place + done)
    os.fdatasync(descriptor)
