"""Limited space on disk: a file system in a sparse file, so that its size is a hard limit.

Decides how a directory of the host comes to hold no more than it was given, on any file system
below and without quotas: the kernel refuses the byte too many (ENOSPC), the host's disk is filled by
what was really written, and erasing it is removing one file. Kept space (checkpoints, volumes) has a
journal and is used by one attempt at a time; scratch space has none and is never mounted twice.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters import own_mounts
from ouvrage.adapters.waiting import until
from ouvrage.base.errors import OuvrageError

_MAKER = "/usr/sbin/mkfs.ext4"
LEAST_MIB = 4
_PATIENCE_US = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A mounted space: its image and where it is seen, by this process and its children."""

    image: Path
    at: str

    def used_bytes(self) -> int:
        """What lies in it now."""
        told = os.statvfs(self.at)
        return (told.f_blocks - told.f_bfree) * told.f_frsize


def fresh(image: Path, at: str, mib: int, models: Path) -> Space:
    """New empty space, mounted. Raises ``OuvrageError`` ``sandbox/no-scratch``.

    An empty file system of each size is kept in ``models``: copying its few blocks takes a tenth of
    the time of making one.
    """
    image.unlink(missing_ok=True)
    model = models / f"{max(mib, LEAST_MIB)}.img"
    if not model.exists():
        models.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = models / f".{os.getpid()}-{model.name}"
        _make(draft, mib, "^has_journal")
        draft.rename(model)
    _copy_sparse(model, image)
    return _mounted(image, at, "noinit_itable,nobarrier")  # nothing of it need outlast a power cut


def _copy_sparse(model: Path, image: Path) -> None:
    with open(model, "rb") as source, open(image, "xb", opener=_private) as target:
        size = os.fstat(source.fileno()).st_size
        os.ftruncate(target.fileno(), size)
        at = 0
        while at < size:
            try:
                at = os.lseek(source.fileno(), at, os.SEEK_DATA)
            except OSError:  # nothing but a hole up to the end
                return
            end = os.lseek(source.fileno(), at, os.SEEK_HOLE)
            while at < end:
                at += os.copy_file_range(source.fileno(), target.fileno(), end - at, at, at)


def kept(image: Path, at: str, mib: int, owner: int) -> tuple[Space, int]:
    """Space that outlives the attempt: made when it is missing, held for us alone.

    Gives the lock's descriptor too. Raises ``OuvrageError`` ``sandbox/space-in-use``.
    """
    image.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(image.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise _in_use(image) from error
    if own_mounts.attached(str(image)):
        os.close(lock)
        raise _in_use(image)
    if not image.exists():
        draft = image.with_suffix(".new")
        draft.unlink(missing_ok=True)
        _make(draft, mib, "has_journal")
        draft.rename(image)
    space = _mounted(image, at, "noinit_itable")
    os.chown(at, owner, owner)
    return space, lock


def _make(image: Path, mib: int, journal: str) -> None:
    with open(image, "xb", opener=_private) as file:
        file.truncate(max(mib, LEAST_MIB) << 20)
    words = [_MAKER, "-q", "-F", "-m", "0", "-O", journal]
    words += ["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", str(image)]
    try:
        done = subprocess.run(words, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise _refused(f"{_MAKER}: {error.strerror}") from error
    if done.returncode:
        raise _refused(done.stderr.decode("utf-8", "replace").strip())


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _mounted(image: Path, at: str, options: str) -> Space:
    os.makedirs(at, exist_ok=True)
    try:
        own_mounts.image(str(image), at, "ext4", options)
    except OSError as error:
        raise _refused(f"{image.name} cannot be mounted: {error.strerror}") from error
    return Space(image=image, at=at)


def let_go(space: Space, lock: int) -> bool:
    """Give up kept space; False where something still uses it, and nobody else may have it yet.

    The kernel takes a namespace's mounts down a moment after its last process has ended.
    """
    own_mounts.unmount(space.at)
    free = until(lambda: not own_mounts.attached(str(space.image)), _PATIENCE_US)
    os.close(lock)
    return free


def erase(space: Space) -> None:
    """Remove its content from the disk.

    The mount is this process's own and goes with it, and with the mount the last way to the content:
    taking down a loop device takes the kernel tens of milliseconds, for which nobody need wait.
    """
    space.image.unlink(missing_ok=True)


def _in_use(image: Path) -> OuvrageError:
    return OuvrageError(
        "sandbox/space-in-use",
        f"{image.stem} is in use by another attempt",
        hint="one attempt at a time works with a volume: let the other end first",
    )


def _refused(why: str) -> OuvrageError:
    return OuvrageError(
        "sandbox/no-scratch",
        f"no limited space on disk: {why}",
        hint="the agent must be root, with loop devices and mkfs.ext4 (apt install e2fsprogs)",
    )
