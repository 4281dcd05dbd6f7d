"""What a runner does about the places that Slurm gives: it tells of them, ends what lost its place, lets go of what is done.

Decides how long the server's own word is waited for once Slurm has told a place to end: the server knows why, the node does not. Without a word by
then, and at once where the place is gone, an attempt is ended as one that made room.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.agent.files import RESULT, STARTED, STOP, AttemptFiles
from ouvrage.agent.places import Places
from ouvrage.agent.watched import Watched
from ouvrage.base.time import SECOND

PATIENCE_US = 5 * SECOND
_TERMINATED = 128 + 15


class Placed:
    """The places of one node, beside the runner's attempts. Used by its main thread alone."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._told_us: dict[str, int] = {}

    def look(self, held: Mapping[str, Watched]) -> list[dict[str, Any]]:
        """Everything that is due; what is to be told to the server."""
        now, events = monotonic_us(), list[dict[str, Any]]()
        for attempt, word in self.places.news():
            events.append({"event": "held", "attempt": attempt, "at": now_us(), "word": word})
            if word == "TERM":
                self._told_us.setdefault(attempt, now)
        for attempt in [name for name in self._told_us if name not in held]:
            self.places.release(attempt, _TERMINATED)  # nothing was ordered, so that nothing ends
            if now > self._told_us[attempt] + PATIENCE_US:
                self._told_us.pop(attempt)
        for each in held.values():
            self._one(each, now)
        return events

    def _one(self, each: Watched, now: int) -> None:
        attempt = each.files.attempt
        if each.ended:
            self.places.release(attempt, _code(each.files))
            return
        told = self._told_us.get(attempt)
        if (each.files / STARTED).exists() and not self.places.is_held(attempt):
            self._end(each.files, "its place was taken back")
        elif told is not None and now > told + PATIENCE_US:
            self._end(each.files, "Slurm ended its place, and the server was not heard")

    def _end(self, files: AttemptFiles, reason: str) -> None:
        if files.read(STOP) is None:
            files.ask_to_stop({"why": "preempted", "reason": reason, "grace_us": 0})

    def may_start(self, each: Watched) -> bool:
        """Whether an attempt may be started, or closed because it was asked to end."""
        return self.places.is_held(each.files.attempt) or each.files.read(STOP) is not None

    def forget(self, attempt: str) -> None:
        """The server has all of it."""
        self.places.forget(attempt)
        self._told_us.pop(attempt, None)


def _code(files: AttemptFiles) -> int:
    """With what the batch job ends: as the command did, so that Slurm's accounting says it too."""
    result = files.read(RESULT) or {}
    if result.get("signal"):
        return 128 + int(result["signal"])
    return (
        int(result.get("exit_code") or 0)
        if result.get("outcome") == "done"
        else int(result.get("exit_code") or 1)
    )
