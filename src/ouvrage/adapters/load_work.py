"""Work that keeps a core, the memory or a disk busy and notices when it goes wrong.

Decides the work and what counts as wrong: a text that is compressed to something else than the first time, a block of memory or
of a disk that comes back as something else than was written. How much is bounded; how long, whoever calls it decides.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import mmap
import os
import zlib
from collections.abc import Callable

from ouvrage.adapters.cgroup import Cgroup
from ouvrage.adapters.host_disk import BLOCK, aligned, nameless, room_for
from ouvrage.adapters.host_speed import LEVEL, fixed_text
from ouvrage.adapters.kept_file import KeptFile, Room
from ouvrage.adapters.procfs import memory_bytes, memory_field

Step = Callable[[int, int], bool]
"""Told of work done and of errors since the last time; False: enough."""
MEMORY_BLOCK = 4 << 20
MOST_WRITTEN = 64 << 30
"""Bytes that a disk is written at most: more would wear it. From there on it is read alone."""


def keep_core_busy(step: Step) -> None:
    """Compress the same text again and again."""
    text = fixed_text()
    expected = zlib.crc32(zlib.compress(text, LEVEL))
    wrong = 0
    while step(len(text), wrong):
        wrong = int(zlib.crc32(zlib.compress(text, LEVEL)) != expected)


def patterns(size: int = MEMORY_BLOCK) -> list[bytes]:
    """Seven blocks: all bits off, on, in turn, and at random. Seven, so that no power of two brings the same one."""
    plain = [bytes([value]) * size for value in (0x00, 0xFF, 0x55, 0xAA)]
    return [*plain, *(hashlib.shake_128(b"ouvrage %d" % n).digest(size) for n in range(3))]


def keep_memory_busy(size: int, step: Step) -> None:
    """Write so many bytes and read them back, with another pattern in each place each time."""
    made = patterns()
    blocks = [bytearray(MEMORY_BLOCK) for _ in range(max(1, size // MEMORY_BLOCK))]
    passed = 0
    while True:
        for place, block in enumerate(blocks):
            block[:] = made[(place + passed) % len(made)]
            if not step(0, 0):
                return
        for place, block in enumerate(blocks):
            # Both are as long, and this compares them without a copy.
            wrong = int(not block.startswith(made[(place + passed) % len(made)]))
            if not step(MEMORY_BLOCK, wrong):
                return
        passed += 1


def memory_share(percent: int) -> int:
    """So many percent of this machine's memory in bytes, but no more than four fifths of what is left here."""
    meminfo = KeptFile("/proc/meminfo", Room(0)).read()
    left = memory_field(meminfo, b"MemAvailable:")
    limits = [size for size in (left, Cgroup(Room(0)).memory_limit_bytes) if size is not None]
    return min([(memory_bytes() or 0) * percent // 100, *(4 * size // 5 for size in limits)])


def keep_disk_busy(directory: str, size: int, step: Step, most: int = MOST_WRITTEN) -> None:
    """Write a file without a name and read it back, each block another one. ``OSError`` where that can't be."""
    size = room_for(directory, size)
    if not size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), directory)
    descriptor, _ = nameless(directory)
    content = hashlib.shake_128(b"ouvrage qualify").digest(BLOCK)
    blocks, passed, written = size // BLOCK, 0, 0
    try:
        while _one_pass(descriptor, content, blocks, passed, step, write=written < most):
            if written < most:
                written += blocks * BLOCK
                passed += 1
    finally:
        os.close(descriptor)


def _one_pass(
    descriptor: int, content: bytes, blocks: int, passed: int, step: Step, *, write: bool
) -> bool:
    """Write each block (else those of the last pass stand there) and compare each; whether there is time left."""
    stands = passed if write else passed - 1
    for place in range(blocks if write else 0):
        _write(descriptor, _block(content, stands, place), place * BLOCK)
        if not step(0, 0):
            return False
    os.fdatasync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    back = mmap.mmap(-1, BLOCK)
    for place in range(blocks):
        os.preadv(descriptor, [back], place * BLOCK)
        wrong = int(back[:] != _block(content, stands, place)[:])
        if not step(BLOCK, wrong):
            return False
    return True


def _write(descriptor: int, block: mmap.mmap, at: int) -> None:
    """Past the page cache where the file system takes it; some refuse only when it comes to it."""
    try:
        os.pwrite(descriptor, block, at)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        held = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, held & ~os.O_DIRECT)
        os.pwrite(descriptor, block, at)


def _block(content: bytes, passed: int, place: int) -> mmap.mmap:
    block = aligned(content)
    head = b"%d/%d " % (passed, place)
    block[: len(head)] = head
    return block
