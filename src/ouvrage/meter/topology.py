"""Asks ``nvidia-smi topo -m`` once, beside the running command, and puts its table on record.

Decides how long an answer is waited for, and that nothing waits for it: the tool is a process apart
whose pipe is looked at with every sample. A tool that hangs is asked to end (SIGTERM), once; one that
is not there, refuses or says something else leaves a note at most.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from typing import TYPE_CHECKING, Any

from ouvrage.base.errors import OuvrageError

if TYPE_CHECKING:
    from ouvrage.adapters.process_tree import ProcessTree
    from ouvrage.meter.record import Record

TOOL = "nvidia-smi"
"""``model.around.DRIVERS``, which is not imported beside a command that has no GPU."""
WORDS = ("topo", "-m")
PATIENCE_US = 15_000_000
"""Without a persistence daemon the driver starts every card first."""
LAST_WAIT_MS = 200
_LONGEST = 65_536


class TopologyAsk:
    """One question; ``begin``, ``read`` and ``finish`` are those of a feed."""

    def __init__(self, record: Record, tree: ProcessTree, origin: int) -> None:
        self._record = record
        self._tree = tree
        self._origin = origin
        self._answer = b""
        self._pipe = -1
        self._pid = 0
        self._until = 0

    def begin(self, now: int) -> None:
        """Ask, where there is somebody to ask."""
        path = _found()
        if path is None:
            return
        self._pipe, theirs = os.pipe()
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, theirs, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        choices: dict[str, Any] = {"file_actions": actions, "setsid": True, "setsigmask": ()}
        words = [path, *WORDS]
        try:
            self._pid = self._tree.apart(lambda: os.posix_spawn(path, words, os.environ, **choices))
        except OSError as error:
            self._note(now, f"{TOOL} cannot be asked: {error.strerror}")
            self._close()
        finally:
            os.close(theirs)
        if self._pid:
            os.set_blocking(self._pipe, False)
            self._until = now + PATIENCE_US

    def read(self, now: int, *, everything: bool = True) -> None:
        """Take what has come of the answer, if ``everything`` or not."""
        del everything
        if self._pipe < 0:
            return
        try:
            while data := os.read(self._pipe, 16_384):
                self._answer += data
                if len(self._answer) > _LONGEST:
                    self._give_up(now, f"{TOOL} answers without end")
                    return
        except BlockingIOError:
            if now >= self._until:
                self._give_up(now, f"{TOOL} did not answer in {PATIENCE_US // 1_000_000} seconds")
            return
        self._close()
        self._tell(now)

    def finish(self, now: int) -> None:
        """The command has ended: a last moment for an answer that is on its way."""
        if self._pipe >= 0:
            poller = select.poll()
            poller.register(self._pipe, select.POLLIN)
            poller.poll(LAST_WAIT_MS)
            self.read(now)
        if self._pipe >= 0:
            self._give_up(now, f"{TOOL} had not answered when the command ended")

    def _tell(self, now: int) -> None:
        text = self._answer.decode("utf-8", "replace")
        if not text.strip():
            return
        from ouvrage.metering.topology import topology_in

        try:
            found = topology_in(text, run="", source=TOOL)
        except OuvrageError:
            self._note(now, f"{TOOL} told no table of what joins the GPUs: {text.strip()[:80]!r}")
            return
        self._record.around(max(0, now - self._origin), found)

    def _give_up(self, now: int, text: str) -> None:
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGTERM)
        self._note(now, text)
        self._close()

    def _close(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def _note(self, now: int, text: str) -> None:
        self._record.note(max(0, now - self._origin), "topology/not-told", text)


def _found() -> str | None:
    """The tool on the path; None where there is none."""
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = (os.path.join(place, TOOL) for place in places if place)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)
