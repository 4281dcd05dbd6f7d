"""Following a job's log: bytes as they come, from one attempt to the next, through restarts of the server.

Decides that the place in a log is the number of bytes shown so far. A connection that breaks is made again from there, so that no
line is lost or doubled; what a terminal could take for a command is shown and not obeyed.
"""

from __future__ import annotations

import codecs
import sys
import threading
from typing import Any

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.server_client import UNREACHABLE, Talk
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.cli.output import say_bytes

_AGAIN_S = 0.5
_PATIENCE_US = 120_000_000
"""How long a server may be away before following is given up."""


class Shown:
    """Where shown bytes go: a pipe gets them as they are, a terminal what is safe to print."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._letters = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes) -> None:
        """Show some bytes."""
        if not self._terminal:
            say_bytes(data)
            return
        text = self._letters.decode(data)
        lines = text.split("\n")
        say_bytes("\n".join(_printable(line) for line in lines).encode("utf-8"))


def _printable(line: str) -> str:
    """A line without what moves the cursor or changes the terminal; tabs and a progress bar's return stay."""
    parts = line.split("\r")
    return "\r".join("\t".join(safe(piece) for piece in part.split("\t")) for part in parts)


def show_log(server: Talk, job: str, attempt: int | None) -> int:
    """Show what there is of a log; how many bytes."""
    shown, count = Shown(), 0
    with server.stream(f"/v1/jobs/{job}/log", attempt=attempt) as stream:
        for piece in stream.pieces:
            shown.write(piece)
            count += len(piece)
    return count


def follow(server: Talk, job: str, *, attempt: int | None = None) -> Any:
    """Show a job's log until the job (or the one ``attempt``) has ended; the job as it is then."""
    following, patience = _Following(server, job, attempt), _Patience()
    while True:
        try:
            ended = following.step()
            patience.renew()
        except OuvrageError as error:
            patience.spend(error)
            continue
        if ended is not None:
            return ended


class _Following:
    """How far a job's log was shown: which attempt, and how many bytes of it."""

    def __init__(self, server: Talk, job: str, attempt: int | None) -> None:
        self._server = server
        self._job = job
        self._only = attempt
        self._number = attempt or 1
        self._offset = 0
        self._shown = Shown()

    def step(self) -> Any:
        """Show what there is and what comes; the job where that was all, else None."""
        found = self._server.get(f"/v1/jobs/{self._job}")
        current = self._current(found)
        if current is None:
            return found if found["ended_us"] else _pause()
        self._offset = _as_it_grows(
            self._server, self._job, self._number, self._offset, self._shown
        )
        found = self._server.get(f"/v1/jobs/{self._job}")
        current = self._current(found)
        if current is None or current["ended_us"] is None or self._offset < current["log_bytes"]:
            return None
        if self._only is None and found["attempts"] > self._number:
            self._number, self._offset = self._number + 1, 0
            return None
        return found if self._only is not None or found["ended_us"] else _pause()

    def _current(self, found: Any) -> Any:
        return next((a for a in found["all_attempts"] if a["number"] == self._number), None)


def _as_it_grows(server: Talk, job: str, number: int, offset: int, shown: Shown) -> int:
    """Show a log from a byte on until the answer ends; how far it was shown, also where it broke off."""
    path = f"/v1/jobs/{job}/log"
    try:
        with server.stream(path, attempt=number, offset=offset, follow=True) as stream:
            for piece in stream.pieces:
                shown.write(piece)
                offset += len(piece)
    except OuvrageError as error:
        if error.code != UNREACHABLE:
            raise
    return offset


class _Patience:
    """How long a server that does not answer is waited for."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """It answered."""
        self._until = monotonic_us() + _PATIENCE_US

    def spend(self, error: OuvrageError) -> None:
        """It did not; raise what it was where that has lasted too long, or is no absence."""
        if error.code != UNREACHABLE or monotonic_us() > self._until:
            raise error
        _pause()


def _pause() -> None:
    threading.Event().wait(_AGAIN_S)
