"""Whose log somebody watches, and how it stands.

Decides that the last attempt is meant where none is named, and when a log has ended: with its attempt, or where it was cut.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import unknown
from ouvrage.server.services.jobs import readable
from ouvrage.server.services.logs import place
from ouvrage.store.platform.work import attempt_of, attempts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An attempt's log: ``bytes`` so far; ``state`` is ``open``, ``ended`` or ``cut``."""

    job: str
    attempt: str
    number: int
    bytes: int
    state: str


def watched(platform: Platform, actor: Actor, job: str, number: int | None) -> Watched:
    """The log of a job's attempt. ``Refused`` 404 where there is none yet."""
    with platform.reading() as connection:
        row = readable(connection, actor, job)
        rows = attempts_of(connection, row.job)
    chosen = [each for each in rows if number in (None, each.number)]
    if not chosen:
        raise unknown("attempt", str(number or "of a job that has not started"), field="attempt")
    attempt = chosen[-1]
    stands = place(platform.files_dir, attempt.attempt, limit=platform.limits.log_bytes)
    state = "cut" if stands.full else "ended" if attempt.over else "open"
    return Watched(
        job=row.job, attempt=attempt.attempt, number=attempt.number, bytes=stands.bytes, state=state
    )


def may_watch(platform: Platform, actor: Actor, job: str) -> bool:
    """Whether somebody may still read a job's log. ``Refused`` where not."""
    with platform.reading() as connection:
        readable(connection, actor, job)
    return True


def is_over(platform: Platform, attempt: str) -> bool:
    """Whether nothing more comes to a log."""
    if place(platform.files_dir, attempt, limit=platform.limits.log_bytes).full:
        return True
    with platform.reading() as connection:
        row = attempt_of(connection, attempt)
    return row is None or row.over
