"""Bringing finished runs from the spool into the store.

Decides when a run is finished (nobody holds its spool's lock), and in which order things happen,
so that a crash at any point leaves something to do again and nothing twice: seal the samples,
record the facts, remove the spool. A spool that cannot be read is set aside and reported; it never
stops the others, and nothing is ever deleted that is not in the store.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ouvrage.base.errors import OuvrageError
from ouvrage.metering.spool import Spool, facts_of
from ouvrage.metering.whole_spool import read_lines, sealed_fact
from ouvrage.store.samples import seal, sync_directory
from ouvrage.store.store import Store

_SPOOLS = "[0-9a-f]" * 32 + ".ndjson"
_SET_ASIDE = ("spool/", "fact/", "samples/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A run whose meter is alive. ``spool`` is what it has written so far, None if unreadable."""

    run: str
    path: Path
    spool: Spool | None

    @property
    def label(self) -> str | None:
        """The label it was given, as far as can be read."""
        return self.spool.started.label if self.spool else None

    @property
    def started_us(self) -> int:
        """When it started; its id tells that too, to the millisecond."""
        return self.spool.started.started_us if self.spool else int(self.run[:12], 16) * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A spool that was set aside: where it is now, and why."""

    path: Path
    error: OuvrageError

    def __str__(self) -> str:
        return f"{self.error.message}; set aside as {self.path}"


@dataclass(slots=True, kw_only=True)
class IntakeReport:
    """What was found: runs brought in (finished or lost), runs still going, spools set aside."""

    brought: list[str] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)


def bring_in(home: Path, store: Store, now_us: int) -> IntakeReport:
    """Record every finished run whose spool is in ``home``. Doing it again does no harm."""
    report = IntakeReport()
    directory = home / "spool"
    if not directory.is_dir():
        return report
    with _alone(directory):
        for path in sorted(directory.glob(_SPOOLS)):
            _take(path, home, store, now_us, report)
    return report


@contextmanager
def _alone(directory: Path) -> Generator[None]:
    """Wait until no other process brings in: a spool it holds would pass for a running one."""
    descriptor = os.open(directory / ".intake", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _take(path: Path, home: Path, store: Store, now_us: int, report: IntakeReport) -> None:
    with path.open("rb") as file:
        if not _lock(file.fileno()):
            report.running.append(_running(path, file.read()))
            return
        try:
            report.brought.append(record_spool(file.read(), home, store, now_us))
        except OuvrageError as error:
            if not error.code.startswith(_SET_ASIDE):
                raise
            report.broken.append(Broken(path=_set_aside(path), error=error))
            return
        path.unlink()
    sync_directory(path.parent)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _running(path: Path, data: bytes) -> Running:
    try:
        spool = read_lines(data)
    except OuvrageError:
        # Whether it is broken is judged when its meter has gone; until then it is only running.
        spool = None
    return Running(run=path.stem, path=path, spool=spool)


def record_spool(data: bytes, home: Path, store: Store, now_us: int) -> str:
    """Record the run that a whole spool holds, sealing its samples first; its id. Doing it again does no harm."""
    spool = read_lines(data)
    facts = facts_of(spool, sealed=sealed_fact(spool, data))
    seal(home, spool.run, data)
    outcomes = store.append(facts, now_us=now_us, own_source=spool.source)
    refused = [outcome for outcome in outcomes if outcome.result == "conflict"]
    if refused:
        raise OuvrageError(
            "spool/conflict",
            f"the store holds another account of run {spool.run}: {refused[0].field} differs",
            where=tuple(f"{outcome.key}   {outcome.field}" for outcome in refused[:3]),
            hint="the store was not changed; each difference is recorded as a conflict",
        )
    return spool.run


def _set_aside(path: Path) -> Path:
    directory = path.parent / "broken"
    directory.mkdir(mode=0o700, exist_ok=True)
    target, number = directory / path.name, 1
    while target.exists():
        target, number = directory / f"{path.name}.{number}", number + 1
    path.rename(target)
    sync_directory(directory)
    sync_directory(path.parent)
    return target
