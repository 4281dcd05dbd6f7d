"""One look at a Slurm: the queue, the nodes, the jobs that have a place, and accounting about those that the controller has no word for.

Decides what is asked for which row, so that a look costs one list of the queue and little more, and what an answer that does not come means:
nothing. It changes nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import structlog

from ouvrage.adapters.slurm_commands import Accounted, CommandFailed, Commands, Queued, SlurmNode
from ouvrage.adapters.slurm_rest import Denied, Given, Rest, Unanswered
from ouvrage.base.time import SECOND
from ouvrage.placement.slurm_words import DONE, HAS_PLACE
from ouvrage.server.slurm.credential import Credential
from ouvrage.server.slurm.settling import Seen, mine
from ouvrage.store.platform.slurm_jobs import SlurmJobRow
from ouvrage.wire.places import attempt_named, name_of

_LAYOUT_US = 10 * SECOND

_log = structlog.get_logger("ouvrage.server")


class Looking:
    """What one process sees of one cluster. Raises ``CommandFailed`` where its controller does not answer."""

    def __init__(
        self, commands: Commands, rest: Rest, credential: Credential, monotonic: Callable[[], int]
    ) -> None:
        self._commands, self._rest, self._credential = commands, rest, credential
        self._monotonic = monotonic
        self._layout: Mapping[str, SlurmNode] = {}
        self._layout_until_us = 0
        self._kill_wait_us: int | None = None

    def nodes(self) -> Mapping[str, SlurmNode]:
        """The nodes by name, no older than ten seconds."""
        now = self._monotonic()
        if now >= self._layout_until_us:
            self._layout = {node.name: node for node in self._commands.nodes()}
            self._layout_until_us = now + _LAYOUT_US
        return self._layout

    def forget_nodes(self) -> None:
        """They were changed: look anew."""
        self._layout_until_us = 0

    def look(self, rows: Sequence[SlurmJobRow]) -> Seen:
        """What the controller and accounting say of these rows."""
        queue: dict[str, list[Queued]] = {}
        for each in self._commands.queue():
            attempt = attempt_named(each.name)
            if attempt is not None:
                queue.setdefault(attempt, []).append(each)
        given: dict[str, Given] = {}
        accounted: dict[str, Sequence[Accounted]] = {}
        for row in rows:
            found = mine(queue.get(row.attempt, ()), row.number)
            if _is_news(row, found):
                given |= self._told(row.attempt, found)
            if _has_no_word(row, found):
                accounted |= self._accounted(row.attempt)
        live = {name for name, found in queue.items() if any(e.state not in DONE for e in found)}
        return Seen(
            queue=queue, given=given, accounted=accounted, layout=self.nodes() if given else {},
            looked={row.attempt: row for row in rows},
            strange=live - {row.attempt for row in rows}, kill_wait_us=self._kill_wait(),
        )  # fmt: skip

    def _kill_wait(self) -> int:
        if self._kill_wait_us is None:
            self._kill_wait_us = self._commands.kill_wait_us()
        return self._kill_wait_us

    def _told(self, attempt: str, job: Queued | None) -> dict[str, Given]:
        """The job of an attempt in full, where slurmrestd tells it. A number may have been given to another job meanwhile."""
        if job is None:
            return {}
        try:
            found = self._rest.job(job.number)
        except (Denied, Unanswered) as trouble:
            self._credential.doubt()
            _log.warning("slurm.not_told", job=job.number, why=str(trouble))
            return {}
        return {attempt: found} if found is not None and found.name == name_of(attempt) else {}

    def _accounted(self, attempt: str) -> dict[str, Sequence[Accounted]]:
        """What accounting has of an attempt. Where it does not answer nothing is known, and the row stays as it is."""
        try:
            return {attempt: self._commands.accounted(name_of(attempt))}
        except CommandFailed as trouble:
            _log.warning("slurm.accounting_away", why=str(trouble))
            return {}


def _is_news(row: SlurmJobRow, job: Queued | None) -> bool:
    """Whether a job has a node of which nothing follows yet."""
    placed = job is not None and job.node is not None and job.state in (*HAS_PLACE, *DONE)
    return placed and row.state in ("asked", "queued") and row.withdrawn is None


def _has_no_word(row: SlurmJobRow, job: Queued | None) -> bool:
    """Whether the controller does not say how it stands, or how it ended."""
    return row.state != "wanted" if job is None else job.state == "COMPLETING"
