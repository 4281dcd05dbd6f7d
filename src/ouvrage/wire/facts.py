"""What a server answers whoever sends it a run: what became of each fact, and whose the run is.

The run itself travels as the file that ``ouvrage run export`` writes, or as several of them, each with the run's start and a part of
its facts. An identity of their own makes the facts count once, so that no key against repetition is needed.
"""

from __future__ import annotations

from typing import Any

from ouvrage.wire.api import Answer


class ConflictTold(Answer):
    """A fact that was not taken, since another stands under its key; ``field`` is the first in which they differ."""

    fact: str
    field: str


class FactsTaken(Answer):
    """Answer to ``POST /v1/facts``. ``results`` says ``accepted``, ``exists`` or ``conflict`` of each fact, in the order sent.

    ``new`` says that nothing was known of the run before; ``samples`` that its raw samples came along and are kept.
    """

    run: str
    code: str
    org_name: str
    project: str
    project_name: str
    new: bool
    accepted: int
    exists: int
    conflict: int
    results: list[str]
    conflicts: list[ConflictTold]
    samples: bool


class RunTold(Answer):
    """A run that was received: whose it is, and how it began. ``attempt``: a job's attempt of the same id made it."""

    run: str
    code: str
    org: str
    org_name: str
    project: str
    project_name: str
    attempt: bool
    received_us: int
    label: str | None
    started_us: int | None


class RunShown(Answer):
    """A run and its ``report``, as ``ouvrage report --json`` prints it; null while its start has not come."""

    run: RunTold
    report: dict[str, Any] | None
