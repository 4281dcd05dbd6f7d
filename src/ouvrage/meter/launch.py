"""Starts the command as it would have started without us.

Decides which file a command's name means, and which environment, signals and descriptors the
command begins life with. Python changes some of these for itself (it ignores SIGPIPE and SIGXFSZ,
it may set LC_CTYPE), so they are put back to what they were before Python ran.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Sequence
from typing import Any

from ouvrage.base.errors import OuvrageError

NOT_FOUND = 127
NOT_EXECUTABLE = 126
SOCKET_VARIABLE = b"OUVRAGE_SOCKET"
_SHELL = "/bin/sh"
_DEFAULTS = (signal.SIGPIPE, signal.SIGXFSZ)


class Block(dict[bytes, bytes]):
    """An environment block that keeps what a dictionary would lose: a name that comes twice."""

    def __init__(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        super().__init__(entries)
        self._entries = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def keys(self) -> Any:
        """Every name, in order."""
        return [name for name, _ in self._entries]

    def values(self) -> Any:
        """Every value, in order."""
        return [value for _, value in self._entries]


def find_command(name: str) -> str:
    """The file that a command's name means, as a shell finds it.

    Raises ``OuvrageError`` with exit code 127 where there is none, 126 where it cannot be executed.
    """
    if os.sep in name:
        candidates = [name]
    else:
        path = os.environ.get("PATH", os.defpath)
        candidates = [os.path.join(part or ".", name) for part in path.split(os.pathsep)]
    found = None
    for candidate in candidates if name else []:
        if _is_file(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            found = found or candidate
        elif os.path.isdir(candidate) and os.sep in name:
            found = candidate
    if found is not None:
        raise OuvrageError(
            "command/not-executable",
            f"{found} cannot be executed",
            hint=f"make it executable (chmod +x {found}) or name the program that runs it",
            exit_code=NOT_EXECUTABLE,
        )
    raise OuvrageError(
        "command/unknown",
        f"{name!r} is not a command",
        hint="what stands after -- is run as it is: check the spelling and PATH;"
        " shell syntax needs a shell: -- sh -c '...'",
        exit_code=NOT_FOUND,
    )


def _is_file(path: str) -> bool:
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def environment(socket: str | None) -> Block:
    """The environment this process was started with, plus where to report to."""
    entries: list[tuple[bytes, bytes]] = []
    for item in _original_block():
        name, found, value = item.partition(b"=")
        if found and name and name != SOCKET_VARIABLE:
            entries.append((name, value))
    if socket:
        entries.append((SOCKET_VARIABLE, os.fsencode(socket)))
    return Block(entries)


def _original_block() -> list[bytes]:
    try:
        with open("/proc/self/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return [name + b"=" + value for name, value in os.environb.items()]


def spawn(
    path: str,
    command: list[str],
    block: Block,
    actions: Sequence[tuple[Any, ...]],
    mask: set[signal.Signals] | set[int],
    *,
    own_session: bool,
) -> int:
    """Start the command and return its process id. Raises ``OuvrageError`` where that fails."""
    choices: dict[str, Any] = {
        "file_actions": actions,
        "setsigmask": mask,
        "setsigdef": _DEFAULTS,
        "setsid": own_session,
    }
    try:
        try:
            return os.posix_spawn(path, command, block, **choices)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without #!: every shell, and execvp, give it to sh.
            return os.posix_spawn(_SHELL, [_SHELL, path, *command[1:]], block, **choices)
    except OSError as error:
        missing = error.errno == errno.ENOENT
        raise OuvrageError(
            "command/unknown" if missing else "command/not-started",
            f"{path} cannot be started: {error.strerror}",
            hint="if it is a script, the program named in its first line is missing"
            if missing
            else None,
            exit_code=NOT_FOUND if missing else NOT_EXECUTABLE,
        ) from error
