"""Facts on their way into a store: on this disk first, each once, until the store has them.

Decides how a fact comes to count exactly once however the agent ends. What was found and what the agent must remember to
go on from there are one line in one file: it is on the disk whole or not at all, so that a fact is never stated
without the memory of having stated it. A store takes a fact it has as *exists*, so that sending again does no harm; up to
where it has them stands in a file of its own. A reserve is kept for a full disk: facts take it last. What was had, and
memories that a later one replaced, are left out when the file has doubled; a line that the disk spoilt is put aside.

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
from ouvrage.store.samples import sync_directory, write_whole

FILE, HAD, LOCK, RESERVE, SPOILT = (
    "spool.ndjson", "spool.had", "spool.lock", "spool.reserve", "spool.spoilt",
)  # fmt: skip
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
        with self._alone():
            self._begins()

    def add(self, said: Sequence[Stated | Fact], memory: Mapping[str, Any] | None = None) -> None:
        """Bring facts, and what is to be remembered with them, to the disk, all or nothing. Raises ``OSError``."""
        facts = [self._fact(each) for each in said]
        line: dict[str, Any] = {"facts": [fact_line(fact) for fact in facts]}
        if memory is not None:
            line["memory"] = memory
        with self._alone():
            nothing_waits = not facts and self.empty
            end = self._append(_text(line))
            if nothing_waits:
                self._note(self._begins()[0], end)
            self._compact_when_due(end)

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
            return self._last_memory()

    def _last_memory(self) -> dict[str, Any] | None:
        found = None
        for _, _, line in self._lines(0):
            found = (line or {}).get("memory", found)
        return found

    def waiting(self, most: int = MOST) -> Waiting | None:
        """The next facts to send, oldest first; None where the store has them all."""
        with self._alone():
            name = self._begins()[0]
            facts: list[Fact] = []
            end = start = self._had(name)
            for after, text, line in self._lines(start):
                found = self._facts_on(text, line)
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
            return self._had(self._begins()[0]) >= self._path.stat().st_size
        except OSError:
            return True

    def had(self, place: tuple[str, int]) -> None:
        """The store has everything up to a place."""
        with self._alone():
            if self._begins()[0] != place[0]:
                return
            self._note(*place)
            if self._path.stat().st_size == place[1] > _COMPACT_BYTES:
                self._compact()

    def _facts_on(self, text: bytes, line: Mapping[str, Any] | None) -> list[Fact]:
        """The facts on a line as they were added; what the disk spoilt is put aside."""
        if line is None:
            self._put_aside(text)
            return []
        found: list[Fact] = []
        for each in line.get("facts", ()):
            try:
                fact, sha256 = read_fact_line(each)
                if fact.sha256 != sha256:
                    raise ValueError("it is not what was added")
                found.append(fact)
            except ValueError:
                self._put_aside(_text({"facts": [each]}))
        return found

    def _put_aside(self, text: bytes) -> None:
        with (self._at / SPOILT).open("ab", buffering=0) as file:
            file.write(text)

    def _note(self, name: str, end: int) -> None:
        write_whole(self._at / HAD, _text({"spool": name, "bytes": end}))

    def _compact_when_due(self, end: int) -> None:
        """Begin a new file when this one has doubled; where the disk has no room for that, it grows on."""
        if end > _COMPACT_BYTES + 2 * self._begins()[1]:
            with contextlib.suppress(OSError):
                self._compact()

    def _compact(self, had: int | None = None) -> None:
        """Begin a new file with what still waits and the last memory. Its other name makes the old place void."""
        had = self._had(self._begins()[0]) if had is None else had
        for left in self._at.glob(f".{FILE}.*.new"):
            left.unlink()  # of one that was killed here
        name, draft = new_id(), self._at / f".{FILE}.{os.getpid()}.new"
        try:
            end, waits = self._written_to(draft, name, had)
            draft.replace(self._path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        sync_directory(self._at)
        if not waits:
            self._note(name, end)

    def _written_to(self, draft: Path, name: str, had: int) -> tuple[int, bool]:
        """Write what still waits and the last memory; where that ends, and whether anything waits."""
        waits = False
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb"
        ) as file:
            file.write(_first_line(name, 0))
            for after, text, line in self._lines(0):
                if after > had and (line is None or line.get("facts")):
                    waits = True
                    file.write(text if line is None else _text({"facts": line["facts"]}))
            file.write(_text({"memory": self._last_memory()}))
            end = file.tell()
            file.seek(0)
            file.write(_first_line(name, end))
            file.flush()
            os.fsync(file.fileno())
        return end, waits

    def _begins(self) -> tuple[str, int]:
        """The file's own name and the bytes that it began with, in its first line; made anew where the disk spoilt it."""
        if not self._path.exists():
            write_whole(self._path, _text({"spool": new_id()}))
        with self._path.open("rb") as file:
            told = _object(file.readline()) or {}
        name, kept = told.get("spool"), told.get("kept", 0)
        if isinstance(name, str) and isinstance(kept, int):
            return name, kept
        self._compact(0)
        return self._begins()

    def _had(self, name: str) -> int:
        try:
            told = _object((self._at / HAD).read_bytes()) or {}
        except OSError:
            return 0
        end = told.get("bytes")
        return end if told.get("spool") == name and isinstance(end, int) else 0

    def _lines(self, start: int) -> Generator[tuple[int, bytes, dict[str, Any] | None]]:
        """Each whole line from a place on: the place after it, its bytes, and what it holds, None where it was spoilt.

        What follows the last one was torn.
        """
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(start)
            while (text := file.readline()).endswith(b"\n"):
                yield file.tell(), text, _object(text)

    def _append(self, text: bytes) -> int:
        """Add a line; where the file ends then."""
        self._begins()
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            end = _whole_end(descriptor)
            while True:
                try:
                    _write_at(descriptor, end, text)
                    return end + len(text)
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


def _first_line(name: str, kept: int) -> bytes:
    """The line that a file begins with, of one length whatever it says."""
    return _text({"spool": name, "kept": kept})[:-1].ljust(99) + b"\n"


def _text(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _object(text: bytes) -> dict[str, Any] | None:
    """The object on a line, None where it is none."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


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
