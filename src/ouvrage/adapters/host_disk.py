"""How fast a directory's disk writes and reads, by a file that has no name and leaves nothing behind.

Decides how much is written (bounded in bytes and time, never into the last of the space), and what the
figures can show: past the page cache where the file system allows it; else what was read may have come
from memory, so that it is an upper bound. A file system in memory is no disk and is not timed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import mmap
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.adapters.clock import monotonic_us, new_id
from ouvrage.adapters.kept_file import KeptFile, Room
from ouvrage.adapters.procfs import IN_MEMORY, REMOTE
from ouvrage.base.errors import OuvrageError
from ouvrage.model.hosts import HostReading, reading

MIB, GB, US = 1 << 20, 10**9, 1_000_000
BLOCK, PAGE = 4 * MIB, 4096
AT_ONCE = 4
HEADROOM = 1 << 30
LEAST = 16 * MIB
OWN_CACHE = ("zfs", "9p", "virtiofs")
_NO_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
_SLOW_US = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that may be written, and the seconds for each of writing, reading and seeking."""

    size: int
    seconds: float
    latency_s: float = 0


@dataclass(frozen=True, slots=True)
class _Place:
    directory: str
    kind: str
    total: int
    free: int

    @property
    def words(self) -> str:
        far = ", over a network" if self.kind in REMOTE or self.kind.startswith("fuse.") else ""
        return f"{self.kind} at {self.directory}{far}"


class _Stopped(Exception):
    """The test cannot be made; the words say why."""


def check_directory(directory: str) -> None:
    """Raise ``OuvrageError`` ``host/directory`` where a directory is none, or may not be looked at."""
    _place(directory)


def disk_readings(directory: str, budget: Budget) -> list[HostReading]:
    """Size, write and read of the disk under a directory. Raises ``OuvrageError`` where it is none."""
    place = _place(directory)
    if place.kind in IN_MEMORY:
        how = f"{directory} is a {place.kind}: memory, not a disk; --dir names another directory"
        return [_none("disk.size", how), *_no_test(how)]
    free, total = Fraction(place.free, GB), Fraction(place.total, GB)
    how = f"{place.words}; what is not free may be yours, or others'"
    found = [reading("disk.size", "GB", how, free, total)]
    try:
        return found + _timed(place, budget)
    except _Stopped as stopped:
        return found + _no_test(str(stopped))
    except OSError as error:
        return found + _no_test(f"{place.words}: {error.strerror}")


def _none(id: str, how: str) -> HostReading:
    units = {"disk.size": "GB", "disk.latency": "us"}
    return reading(id, units.get(id, "MB/s"), how)


def _no_test(how: str) -> list[HostReading]:
    return [_none("disk.write", how), _none("disk.read", how)]


def _place(directory: str) -> _Place:
    try:
        held = os.statvfs(directory)
        real = os.path.realpath(directory, strict=True)
        if not os.path.isdir(real):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise OuvrageError(
            "host/directory",
            f"{directory} cannot be tested: {error.strerror}",
            hint="--dir names a directory on the disk that the work will use",
        ) from error
    return _Place(
        directory=directory,
        kind=_kind(real),
        total=held.f_blocks * held.f_frsize,
        free=held.f_bavail * held.f_frsize,
    )


def _kind(real: str, mounts: bytes | None = None) -> str:
    """The type of the file system that a path lies on: of the last mount over it."""
    if mounts is None:
        mounts = KeptFile("/proc/self/mountinfo", Room(0), 1 << 20).read() or b""
    best, kind = -1, "a file system of unknown type"
    for line in mounts.decode("utf-8", "surrogateescape").splitlines():
        words = line.split(" ")
        if len(words) < 7 or "-" not in words[6:]:
            continue
        point = words[4].replace("\\040", " ").replace("\\134", "\\")
        over = real == point or real.startswith(f"{point.rstrip('/')}/")
        if over and len(point) >= best:
            best, kind = len(point), words[words.index("-", 6) + 1]
    return kind


def room_for(directory: str, most: int) -> int:
    """How much of ``most`` may be written there, in whole blocks: the last gigabyte, or twentieth, is left alone."""
    return _room(_place(directory), most)


def _room(place: _Place, most: int) -> int:
    size = min(most, place.free - max(HEADROOM, place.total // 20))
    return max(0, size - size % BLOCK)


def _timed(place: _Place, budget: Budget) -> list[HostReading]:
    size = _room(place, budget.size)
    if size < LEAST:
        raise _Stopped(
            f"only {max(0, place.free) // MIB} MiB are free in {place.directory}; "
            "the last gigabyte, or the last twentieth, is left alone"
        )
    descriptor, direct = nameless(place.directory)
    try:
        test = _Test(descriptor, direct and place.kind not in OWN_CACHE, size, budget, place)
        return [test.write(), test.read(), *([test.latency()] if budget.latency_s else [])]
    finally:
        os.close(descriptor)


def nameless(directory: str) -> tuple[int, bool]:
    """A file without a name, and whether it goes past the page cache. It is gone when it is closed."""
    flags = os.O_RDWR | os.O_CLOEXEC
    for direct in (getattr(os, "O_DIRECT", 0), 0):
        try:
            return _opened(directory, flags | direct), bool(direct)
        except OSError as error:
            if error.errno != errno.EINVAL or not direct:
                raise
    raise _Stopped("no file can be made")


def _opened(directory: str, flags: int) -> int:
    try:
        return os.open(directory, flags | os.O_TMPFILE, 0o600)
    except OSError as error:
        if error.errno not in _NO_NAMELESS:
            raise
    name = os.path.join(directory, f".ouvrage-host-check-{new_id()}")
    descriptor = -1
    try:
        descriptor = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600)
    finally:
        # Some file systems make the file before they refuse O_DIRECT on it.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    return descriptor


class _Test:
    """One file: written, read back, sought in."""

    def __init__(
        self, descriptor: int, direct: bool, size: int, budget: Budget, place: _Place
    ) -> None:
        self._file = descriptor
        self._direct = direct
        self._size = size
        self._seconds = budget.seconds
        self._latency_s = budget.latency_s
        self._place = place
        self._written = 0
        self._block = BLOCK

    def write(self) -> HostReading:
        """Sequential, flushed at the end; with the cache in between flushed after every block."""
        content = hashlib.shake_128(b"ouvrage host check").digest(BLOCK)
        self._pilot(aligned(content))
        local = threading.local()
        began = monotonic_us()
        done = self._all(self._size, lambda at: self._write(local, content, at))
        os.fdatasync(self._file)
        self._written = done
        speed = Fraction(done, max(1, monotonic_us() - began))
        if self._direct:
            return reading(
                "disk.write", "MB/s", self._how(done, "written and flushed"), speed, speed
            )
        how = self._how(done, "written, each block flushed: no way past the page cache here")
        return reading("disk.write", "MB/s", how, speed, None)

    def _pilot(self, buffer: mmap.mmap) -> None:
        """A first mebibyte, which also shows whether direct writing works, and whether it is slow."""
        began = monotonic_us()
        view = memoryview(buffer)[:MIB]
        try:
            try:
                os.pwrite(self._file, view, 0)
            except OSError as error:
                if error.errno != errno.EINVAL or not self._direct:
                    raise
                self._direct = False
                held = fcntl.fcntl(self._file, fcntl.F_GETFL)
                fcntl.fcntl(self._file, fcntl.F_SETFL, held & ~os.O_DIRECT)
                os.pwrite(self._file, view, 0)
            os.fdatasync(self._file)
        finally:
            view.release()
        if monotonic_us() - began > _SLOW_US:
            self._block = MIB // 4

    def _write(self, local: threading.local, content: bytes, at: int) -> int:
        """A block that no disk can make smaller, and that differs from every other in each page."""
        if not hasattr(local, "buffer"):
            local.buffer = aligned(content)
        for place, byte in enumerate((at // self._block).to_bytes(4, "little")):
            local.buffer[place::PAGE] = bytes([byte]) * (BLOCK // PAGE)
        with memoryview(local.buffer) as view, view[: self._block] as part:
            done = os.pwrite(self._file, part, at)
        if not self._direct:
            os.fdatasync(self._file)
        return done

    def read(self) -> HostReading:
        """Sequential, from the begin, as much as was written, again and again while there is time."""
        if self._written < BLOCK:
            return _none("disk.read", f"only {self._written // 1024} KiB were written in time")
        if not self._direct:
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)
        local = threading.local()
        began = monotonic_us()
        done = self._all(self._written, lambda at: self._read(local, at))
        speed = Fraction(done, max(1, monotonic_us() - began))
        if self._direct:
            how = self._how(done, "read back at once: a cache below this machine may have helped")
            return reading("disk.read", "MB/s", how, speed, speed)
        how = self._how(done, "read: the page cache may have helped")
        return reading("disk.read", "MB/s", how, None, speed)

    def _read(self, local: threading.local, at: int) -> int:
        if not hasattr(local, "buffer"):
            local.buffer = mmap.mmap(-1, BLOCK)
        with memoryview(local.buffer) as view, view[: self._block] as part:
            return os.preadv(self._file, [part], at)

    def latency(self) -> HostReading:
        """The median of reads of 4 KiB, one at a time, at places all over what was written."""
        if self._written < BLOCK or not self._direct:
            return _none("disk.latency", "reads cannot be timed past the page cache here")
        times: list[int] = []
        pages, place = self._written // PAGE, 1
        until = monotonic_us() + round(self._latency_s * US)
        with mmap.mmap(-1, PAGE) as buffer:
            while (began := monotonic_us()) < until:
                place = (place * 6364136223846793005 + 1442695040888963407) % (1 << 64)
                os.preadv(self._file, [buffer], (place >> 16) % pages * PAGE)
                times.append(monotonic_us() - began)
        median = sorted(times)[len(times) // 2]
        how = f"median of {len(times)} reads of 4 KiB, one at a time, {self._place.words}"
        return reading("disk.latency", "us", how, median, median)

    def _all(self, size: int, step: Callable[[int], int]) -> int:
        """Blocks from the begin until the size or the time is used up, several at once; the bytes."""
        until = monotonic_us() + round(self._seconds * US)
        offsets = iter(range(0, size - self._block + 1, self._block))
        workers = AT_ONCE if self._direct and self._block == BLOCK else 1
        moved, faults = [0] * workers, list[OSError]()

        def work(number: int) -> None:
            try:
                for at in itertools.takewhile(lambda _: monotonic_us() < until, offsets):
                    moved[number] += step(at)
            except OSError as error:
                faults.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if faults:
            raise faults[0]
        return sum(moved)

    def _how(self, done: int, what: str) -> str:
        several = (
            f"{AT_ONCE} blocks at once" if self._direct and self._block == BLOCK else "in turn"
        )
        return f"{done // MIB} MiB {what}; {several}, {self._place.words}"


def aligned(content: bytes) -> mmap.mmap:
    """The bytes at the begin of a page, as direct writing needs them."""
    buffer = mmap.mmap(-1, len(content))
    buffer.write(content)
    return buffer
