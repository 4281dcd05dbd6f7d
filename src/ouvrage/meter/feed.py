"""A child of the meter's that reads something which may hang, and a pipe that is never waited for.

Decides when such a child is started, believed, asked to end and replaced. One that says nothing for
three periods is asked to end (SIGTERM), once, and never killed: SIGKILL in the middle of a driver
call has been seen to freeze a card. While it lives on, stuck, no other is started. One that died is
replaced after 1, 2, 4 … 60 seconds. The lines of a child that is heard wait in the pipe until its
silence would have to be noticed, until it ended or until all is wanted for the disk. Whatever goes wrong, the readings have a gap and nothing else.
What the lines mean is not decided here.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ouvrage.adapters.process_tree import ProcessTree
    from ouvrage.meter.record import Record

SILENT_PERIODS = 3
BEGINNING_US = 30_000_000
"""The first line may take so long: without a persistence daemon the driver starts every card."""
_BACK_OFF_US = (1_000_000, 60_000_000)
_LAST_WORD_MS = 100
_LONGEST_LINE = 262_144
_MOST_READ = 1_048_576
_BLOCK = 65_536
_CODE = """
import sys
count = int(sys.argv[1])
sys.path += sys.argv[2 : 2 + count]
from %s import main
sys.exit(main(sys.argv[2 + count :]))
"""


def command(module: str, *arguments: str) -> list[str]:
    """What starts a child: this Python, isolated from the user's settings and directory."""
    places = [os.path.abspath(place) for place in sys.path if place]
    words = [sys.executable, "-I", "-S", "-c", _CODE % module]
    return [*words, str(len(places)), *places, *arguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What a child reads: a ``code`` for notes, the words for people, and how it is started."""

    code: str
    what: str
    words: list[str]


class Feed:
    """At most one child at a time; ``read`` takes what it has said and looks after it.

    ``hear`` gets each object that it said and the moment, and raises what any reader of strange
    JSON raises where it is none of a child's. Moments are on the monotonic clock; ``origin`` is the
    run's start on it.
    """

    def __init__(
        self,
        reads: Reads,
        hear: Callable[[dict[str, Any], int], None],
        record: Record,
        tree: ProcessTree,
        origin: int,
        period_us: int,
    ) -> None:
        self._reads = reads
        self._hear_line = hear
        self._record = record
        self._tree = tree
        self._origin = origin
        self._silence_us = SILENT_PERIODS * period_us
        self._pid = 0
        self._lines = self._requests = -1
        self._rest = b""
        self._heard = self._asked_to_end = self._nothing_here = self._ever = self._timed = False
        self._quiet_until = self._latest = self._taken = 0
        self._start_at: int | None = None
        self._wait_us = _BACK_OFF_US[0]

    @property
    def pid(self) -> int:
        """The child's process, 0 where there is none."""
        return self._pid

    def begin(self, now: int) -> None:
        """Start reading."""
        if sys.executable:
            self._start_at = now
            self._look(now)

    def read(self, now: int, *, everything: bool = False) -> None:
        """Take what came, where that is due or ``everything`` is wanted, and look after the child."""
        if self._start_at is not None or self._pid:
            if everything or self._due(now):
                self._take(now)
            self._look(now)

    def _due(self, now: int) -> bool:
        """Whether its lines tell more now than they will later."""
        return not self._timed or now >= self._quiet_until or not self._tree.is_apart(self._pid)

    def finish(self, now: int) -> None:
        """Ask for a last reading, wait a moment for it, and let the child go."""
        self._take(now)
        if self._pid and self._heard and not self._asked_to_end:
            with contextlib.suppress(OSError):
                os.write(self._requests, b"!")
            poller = select.poll()
            poller.register(self._lines, select.POLLIN)
            for _ in range(2):
                if self._pid and self._latest < now and poller.poll(_LAST_WORD_MS):
                    self._take(now)
        self._start_at = None
        if self._pid:
            self._signal()
            self._forget()

    def _look(self, now: int) -> None:
        """Start the child when it is time, ask it to end when it is silent."""
        if not self._pid:
            if self._start_at is not None and now >= self._start_at:
                self._start(now)
        elif now >= self._quiet_until and not self._asked_to_end:
            self._asked_to_end = True
            self._note(now, "silent", f"{self._reads.what} did not answer for three seconds")
            self._signal()

    def _start(self, now: int) -> None:
        theirs_in, self._requests = os.pipe()
        self._lines, theirs_out = os.pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs_in, 0),
            (os.POSIX_SPAWN_DUP2, theirs_out, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        words = self._reads.words
        choices: dict[str, Any] = {"file_actions": actions, "setsid": True, "setsigmask": ()}
        self._start_at = None
        try:
            self._pid = self._tree.apart(
                lambda: os.posix_spawn(words[0], words, os.environ, **choices)
            )
        except OSError as error:
            self._note(now, "not-read", f"{self._reads.what} cannot be read: {error.strerror}")
            self._forget()
            return
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._lines, False)
        os.set_blocking(self._requests, False)
        self._rest, self._asked_to_end = b"", False
        self._quiet_until = now + BEGINNING_US

    def _take(self, now: int) -> None:
        """Every whole line that is there; the child's end."""
        got = 0
        before, self._taken = self._taken, now
        while self._pid and got < _MOST_READ:
            try:
                data = os.read(self._lines, _BLOCK)
            except BlockingIOError:
                return
            if not data:
                self._ended(now)
                return
            got += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            if len(self._rest) > _LONGEST_LINE:
                self._rest = b""
            for line in lines:
                self._hear(line, now, before)
            if len(data) < _BLOCK:
                return

    def _hear(self, line: bytes, now: int, before: int) -> None:
        """One line. What is no line of a child's is no sign of life either.

        One that says when it was made was made then, yet not before the pipe was last empty.
        """
        try:
            said = json.loads(line)
            kind = said["k"]
            if kind == "nothing":
                self._nothing_here = not self._ever
            elif kind == "fault":
                self._note(now, str(said["code"]), str(said["text"]))
            else:
                self._hear_line(said, now)
                self._ever = True
            self._timed = kind == "read"
            if self._timed:
                self._latest = int(said["t"])
                self._wait_us = _BACK_OFF_US[0]
                now = max(before, min(self._latest, now))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            return
        self._heard = True
        self._quiet_until = now + self._silence_us

    def _ended(self, now: int) -> None:
        """The child is gone: later another one, unless there was nothing for it to read."""
        if not self._nothing_here:
            if self._ever:
                self._note(now, "gap", f"the process that reads {self._reads.what} was replaced")
            self._start_at = now + self._wait_us
            self._wait_us = min(2 * self._wait_us, _BACK_OFF_US[1])
        self._forget()

    def _forget(self) -> None:
        os.close(self._lines)
        os.close(self._requests)
        self._lines = self._requests = -1
        self._pid = 0
        self._heard = self._timed = False

    def _signal(self) -> None:
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGTERM)

    def _note(self, now: int, code: str, text: str) -> None:
        self._record.note(max(0, now - self._origin), f"{self._reads.code}/{code}", text)
