"""What stands on the node's disk about attempts, and in which order it gets there.

Decides the one thing that keeps an attempt from being executed twice: its order is whole on the disk
before anybody acts on it, ``started`` is there before anything is started, and whoever acts holds the
lock. From these files alone a runner that was killed, or a machine that lost power, learns how far
each attempt is. Nothing here knows what an order means.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import Any

from ouvrage.agent import bell
from ouvrage.store.samples import sync_directory, write_whole

ORDER, SECRETS, STARTED, BEGAN = "order.json", "secrets.json", "started", "began.json"
STOP, RESULT, LOG, WAKE, LOCK, STATE = "stop.json", "result.json", "log", "wake", "lock", "state"
OUTPUTS, INPUTS, NETWORK, CONTAINER = "outputs", "inputs", "network.json", "container"


class AttemptFiles:
    """The directory of one attempt."""

    def __init__(self, root: Path, attempt: str) -> None:
        self.attempt = attempt
        self.at = root / attempt

    def __truediv__(self, name: str) -> Path:
        return self.at / name

    def keep(self, order: dict[str, Any], secrets: list[dict[str, str]]) -> None:
        """Put an order on the disk, whole or not at all; one that is there stays as it is."""
        if self.at.is_dir():
            return
        draft = self.at.with_name(f".{self.attempt}.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700, parents=True)
        os.mkfifo(draft / WAKE, 0o600)
        write_whole(draft / SECRETS, _text(secrets))
        write_whole(draft / ORDER, _text(order))
        draft.rename(self.at)
        sync_directory(self.at.parent)

    def read(self, name: str) -> Any:
        """A kept JSON value, None where it is not there."""
        try:
            return json.loads((self.at / name).read_bytes())
        except FileNotFoundError:
            return None

    def write(self, name: str, value: Any) -> None:
        """Keep a JSON value so that it outlasts a power cut."""
        write_whole(self.at / name, _text(value))

    def state(self) -> str:
        """How far it is: ``ended``, else what its supervisor wrote last, else ``starting``."""
        if (self.at / RESULT).exists():
            return "ended"
        with contextlib.suppress(OSError):
            return (self.at / STATE).read_text("ascii") or "starting"
        return "starting"

    def tell_state(self, state: str) -> None:
        """Say how far it is; of no weight after a restart, so it need not outlast one."""
        draft = self.at / f".{STATE}"
        draft.write_text(state, "ascii")
        draft.rename(self.at / STATE)

    def take_secrets(self) -> list[dict[str, str]]:
        """The values, which are on the disk no longer afterwards."""
        values = self.read(SECRETS)
        (self.at / SECRETS).unlink(missing_ok=True)
        return values or []

    def mark_started(self) -> bool:
        """Claim the one start of this attempt; False where it was claimed before."""
        try:
            fd = os.open(self.at / STARTED, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return False
        os.close(fd)
        sync_directory(self.at)
        return True

    def lock(self) -> int | None:
        """The attempt's lock, held until the descriptor is closed; None while somebody holds it."""
        fd = os.open(self.at / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd

    def ask_to_stop(self, stop: dict[str, Any]) -> None:
        """Keep a request to end, and wake the supervisor. The first one stays."""
        if not (self.at / STOP).exists():
            self.write(STOP, stop)
        self.wake()

    def wake(self) -> None:
        """Let the supervisor look at the requests; nobody may be there."""
        bell.wake(self.at / WAKE)

    def forget(self) -> None:
        """Remove everything: first it is no attempt any more, then it goes."""
        gone = self.at.with_name(f".{self.attempt}.gone")
        with contextlib.suppress(FileNotFoundError):
            self.at.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def attempts_in(root: Path) -> list[AttemptFiles]:
    """Every attempt that stands below this directory, oldest first; leftovers of others are removed."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    found: list[AttemptFiles] = []
    for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.is_dir(follow_symlinks=False):
            found.append(AttemptFiles(root, entry.name))
    return found


def _text(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
