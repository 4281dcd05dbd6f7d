"""The places that Slurm gives on this node, as the runner sees them: who holds one, what it was told, when it may go.

Decides that an attempt is executed only while its place is held, and that one whose place was taken back is ended at once: Slurm may have given its
GPU away already. The batch jobs that hold places run as another user, who owns the directory; nothing in it is trusted further than that, and
no link in it is followed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Generator
from pathlib import Path

from ouvrage.base.errors import OuvrageError
from ouvrage.wire.places import BELL, END, HELD, TOLD

_MOST_BYTES = 4096
_WORDS = ("HERE", "TERM", "USR1")


class Places:
    """The directory of one node below ``root``; it belongs to whom ``root`` belongs to, and is held open."""

    def __init__(self, root: Path, node: str) -> None:
        try:
            owner = os.stat(root, follow_symlinks=False)
            if not stat.S_ISDIR(owner.st_mode) or owner.st_mode & 0o022:
                raise OuvrageError(
                    "agent/places", f"{root} may be written to by others than its owner", hint=f"chmod go-w {root}"
                )  # fmt: skip
            (root / node).mkdir(mode=0o750, exist_ok=True)
            self._at = os.open(root / node, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            os.fchown(self._at, owner.st_uid, owner.st_gid)
            with contextlib.suppress(FileExistsError):
                os.mkfifo(BELL, 0o600, dir_fd=self._at)
            self.bell = self._open(BELL, os.O_RDWR)
            os.fchown(self.bell, owner.st_uid, owner.st_gid)
        except OSError as error:
            raise OuvrageError(
                "agent/places", f"{root} cannot be used: {error.strerror}",
                hint="make it on every node, owned by the user as whom places are asked for",
            ) from error  # fmt: skip
        self._heard: dict[str, int] = {}

    def close(self) -> None:
        """Let go of the directory; the bell is closed by whoever hears it."""
        os.close(self._at)

    def news(self) -> list[tuple[str, str]]:
        """What was told since the last time, by attempt: ``HERE``, or the name of a signal."""
        found: list[tuple[str, str]] = []
        names = [name.removesuffix(TOLD) for name in os.listdir(self._at) if name.endswith(TOLD)]
        for attempt in sorted(names):
            words = self._words(attempt)
            found += [(attempt, word) for word in words[self._heard.get(attempt, 0) :]]
            self._heard[attempt] = len(words)
        self._heard = {attempt: self._heard[attempt] for attempt in names}
        return found

    def _words(self, attempt: str) -> list[str]:
        with contextlib.suppress(OSError), self._opened(attempt + TOLD, os.O_RDONLY) as fd:
            text = os.read(fd, _MOST_BYTES).decode("ascii", "replace")
            return [word for word in text.split("\n")[:-1] if word in _WORDS]
        return []

    def is_held(self, attempt: str) -> bool:
        """Whether a batch job holds the place of an attempt now."""
        try:
            with self._opened(attempt + HELD, os.O_RDONLY) as fd:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def release(self, attempt: str, code: int) -> None:
        """Let the batch job of an attempt end with this code; it may not be listening yet, or gone."""
        with contextlib.suppress(OSError), self._opened(attempt + END, os.O_WRONLY) as fd:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, f"{code}\n".encode())

    def forget(self, attempt: str) -> None:
        """Remove what a killed batch job has left."""
        for name in (HELD, TOLD, END):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(attempt + name, dir_fd=self._at)

    def _open(self, name: str, how: int) -> int:
        return os.open(name, how | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._at)

    @contextlib.contextmanager
    def _opened(self, name: str, how: int) -> Generator[int]:
        fd = self._open(name, how)
        try:
            yield fd
        finally:
            os.close(fd)
