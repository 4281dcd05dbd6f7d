"""The file that batches of telemetry are appended to: frames, each a batch as it was received and whose it is.

Decides how one batch is told from the next and damage from content. A batch stays as it was sent: packed it takes a quarter of the
room that its rows would, and what is kept is what was said. How far a file is good is not decided here; the tables say it.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouvrage.base.errors import OuvrageError
from ouvrage.store.samples import sync_directory

SUFFIX = ".batches"
_HEAD = struct.Struct(">4s16sqII")
_MARK = b"OuvB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A batch as it was sent by ``node``, received at ``at_us``."""

    node: str
    at_us: int
    content: bytes


def frame_bytes(frame: Frame) -> bytes:
    """A frame as it stands in the file."""
    check = zlib.crc32(frame.content, zlib.crc32(frame.node.encode("ascii")))
    node = bytes.fromhex(frame.node)
    return _HEAD.pack(_MARK, node, frame.at_us, len(frame.content), check) + frame.content


def frames_in(path: Path, limit: int) -> Iterator[Frame]:
    """The frames up to byte ``limit``. Raises ``OuvrageError`` ``telemetry/damaged`` where they are not whole."""
    with path.open("rb") as file:
        place = 0
        while place < limit:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                raise _damaged(path, place)
            mark, node, at_us, size, check = _HEAD.unpack(head)
            place += _HEAD.size + size
            if mark != _MARK or place > limit:
                raise _damaged(path, place)
            content = file.read(size)
            if zlib.crc32(content, zlib.crc32(node.hex().encode("ascii"))) != check:
                raise _damaged(path, place)
            yield Frame(node=node.hex(), at_us=at_us, content=content)


def _damaged(path: Path, place: int) -> OuvrageError:
    return OuvrageError(
        "telemetry/damaged",
        f"{path} is not what was written, before byte {place}",
        hint="its disk may be failing; restore the file from a backup",
        exit_code=1,
    )


class FrameFile:
    """A new file that frames are appended to. Once anything fails it is left, and never written to again."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self.bytes = 0
        sync_directory(path.parent)

    def append(self, frames: Sequence[Frame]) -> None:
        """Append frames and wait for the disk. ``OSError`` where it does not take them."""
        data = memoryview(b"".join(map(frame_bytes, frames)))
        while data:
            written = os.write(self._fd, data)
            self.bytes += written
            data = data[written:]
        os.fdatasync(self._fd)

    def close(self) -> None:
        """Give it up."""
        os.close(self._fd)
