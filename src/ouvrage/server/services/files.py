"""Files that go into a job and come out of it, on the server's disk.

Decides that a file is whole or not there, that its name never becomes a path (names are a tenant's, and are hashed), how large one may be and how
many there are. Whoever may read or change the job may read or send its files.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterable
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.home import make_private
from ouvrage.server.authorise import authorise
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import Refused, conflict, unknown, unreadable
from ouvrage.server.recording import record
from ouvrage.server.services.jobs import readable
from ouvrage.server.services.meant import job_meant
from ouvrage.server.wakes import ENGINE
from ouvrage.store.platform.work import FileRow, JobRow, attempt_of, files_of, job_of, put_file
from ouvrage.store.transaction import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What came: how many bytes, and their SHA-256."""

    bytes: int
    sha256: str


def file_path(state_dir: Path, job: str, direction: str, name: str) -> Path:
    """Where a file of a job lies."""
    hashed = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return state_dir / "files" / job[-2:] / job / f"{direction}-{hashed}"


async def take(
    platform: Platform,
    job: str,
    direction: str,
    name: str,
    chunks: AsyncIterable[bytes],
    sha256: str | None = None,
) -> Taken:
    """Write a file as it comes; it appears under its name once all of it is on the disk, and is what was said."""
    path = file_path(platform.files_dir, job, direction, name)
    await asyncio.to_thread(_directories, platform.files_dir, path.parent)
    draft = path.with_name(f".{path.name}-{platform.ids()}")
    digest, size = hashlib.sha256(), 0
    try:
        with draft.open("xb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > platform.limits.file_bytes:
                    raise _too_large(platform.limits.file_bytes)
                digest.update(chunk)
                await asyncio.to_thread(file.write, chunk)
            await asyncio.to_thread(_synced, file.fileno(), file.flush)
        if sha256 not in (None, digest.hexdigest()):
            raise unreadable(
                "file/damaged",
                "what came is not what was sent",
                hint="send it again",
                field="sha256",
            )
        draft.chmod(0o600)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return Taken(bytes=size, sha256=digest.hexdigest())


def _directories(state_dir: Path, directory: Path) -> None:
    for each in (state_dir / "files", directory.parent, directory):
        make_private(each)


def _synced(descriptor: int, flush: object) -> None:
    if callable(flush):
        flush()
    os.fsync(descriptor)


def _too_large(most: int) -> Refused:
    return Refused(
        "file/too-large",
        f"a file has at most {most} bytes",
        status=413,
        hint="put large data into a volume of the project",
    )


def check_input(platform: Platform, actor: Actor, job: str, name: str) -> JobRow:
    """The job to which somebody may send this input now."""
    with platform.reading() as connection:
        row = job_meant(connection, actor, job)
        authorise(actor, "job.change", org=row.org, project=row.project)
        if name not in {each.name for each in row.spec.inputs}:
            raise unknown("input", name, field="name")
        if row.state != "waiting" or row.attempts:
            raise conflict(
                "job/started",
                f"{row.name} has started: its inputs are as they are",
                hint="submit another job with the new file",
            )
        return row


def keep_input(platform: Platform, actor: Actor, job: JobRow, name: str, taken: Taken) -> FileRow:
    """An input is here."""
    with platform.writing() as tx:
        row = _row(job.job, "in", name, taken, tx.now_us)
        put_file(tx.connection, row)
        detail = f"{name}, {taken.bytes} bytes, sha256 {taken.sha256}"
        record(tx, platform, actor, "job.file", org=job.org, target=job.job, detail=detail)
    platform.wakes.tell(ENGINE)
    return row


def _row(job: str, direction: str, name: str, taken: Taken, at_us: int) -> FileRow:
    return FileRow(
        job=job, direction=direction, name=name, bytes=taken.bytes, sha256=taken.sha256, at_us=at_us
    )


def check_output(platform: Platform, node: str, attempt: str, name: str) -> JobRow:
    """The job whose output a runner may send now."""
    with platform.reading() as connection:
        job = _own_job(connection, node, attempt)
        if name not in {each.name for each in job.spec.outputs}:
            raise unknown("output", name, field="name")
        here = [each for each in files_of(connection, [job.job]) if each.direction == "out"]
        if len(here) >= platform.limits.files_of_a_job and name not in {f.name for f in here}:
            raise conflict("file/too-many", "a job leaves no more files", hint="leave fewer")
        return job


def keep_output(platform: Platform, job: JobRow, name: str, taken: Taken) -> FileRow:
    """An output is here."""
    with platform.writing() as tx:
        row = _row(job.job, "out", name, taken, tx.now_us)
        put_file(tx.connection, row)
    return row


def input_of(platform: Platform, node: str, attempt: str, name: str) -> Path:
    """Where an input lies that a runner asks for."""
    with platform.reading() as connection:
        job = _own_job(connection, node, attempt)
        return _here(platform, connection, job, "in", name)


def _own_job(connection: Connection, node: str, attempt: str) -> JobRow:
    row = attempt_of(connection, attempt)
    job = job_of(connection, row.job) if row is not None and row.node == node else None
    if job is None:
        raise unknown("attempt", attempt)
    return job


def download(platform: Platform, actor: Actor, job: str, name: str, direction: str) -> Path:
    """Where a file lies that somebody may read."""
    with platform.reading() as connection:
        row = readable(connection, actor, job)
        return _here(platform, connection, row, direction, name)


def _here(
    platform: Platform, connection: Connection, job: JobRow, direction: str, name: str
) -> Path:
    known = {(each.direction, each.name) for each in files_of(connection, [job.job])}
    if (direction, name) not in known:
        raise unknown("file", name, field="name")
    return file_path(platform.files_dir, job.job, direction, name)


def listed(platform: Platform, actor: Actor, job: str) -> list[FileRow]:
    """The files of a job."""
    with platform.reading() as connection:
        return files_of(connection, [readable(connection, actor, job).job])
