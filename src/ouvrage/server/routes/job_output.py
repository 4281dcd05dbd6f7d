"""``/v1/jobs/{job}/log`` and ``/files``: what a job says and what it takes and leaves.

A log is bytes, and a place in it a number of them. A reader who was cut off comes back with the number of bytes had, and misses or
repeats nothing. Sending a file again under its name is the same request, so that it needs no key.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response, StreamingResponse

from ouvrage.base.time import SECOND
from ouvrage.server.access import PlatformDep, UserDep, acts
from ouvrage.server.context import Platform
from ouvrage.server.errors import unreadable
from ouvrage.server.services import files, logs
from ouvrage.server.services.watching import Watched, is_over, may_watch, watched
from ouvrage.server.sockets import AGAIN_S, Allowed
from ouvrage.wire.work import FileTold

router = APIRouter(tags=["jobs"])

PIECE = 1 << 18
FileName = Annotated[str, Path(max_length=200)]


@router.get("/v1/jobs/{job}/log", response_class=Response, **acts("job.read"))
async def log(
    request: Request,
    platform: PlatformDep,
    actor: UserDep,
    job: str,
    attempt: Annotated[
        int | None, Query(ge=1, description="Which of its attempts; the last.")
    ] = None,
    offset: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    follow: bool = False,
) -> Response:
    """The log of an attempt from a byte on; with ``follow`` as it grows, until the attempt has ended.

    ``Ouvrage-Attempt`` (its number and id), ``Ouvrage-Log-Bytes`` and ``Ouvrage-Log-State`` (``open``, ``ended``, ``cut``) tell where it stands.
    """
    found = await run_in_threadpool(watched, platform, actor, job, attempt)
    if offset > found.bytes:
        raise unreadable(
            "log/offset",
            f"the log has {found.bytes} bytes, and none at {offset}",
            hint="begin at the number of bytes that you have",
            field="offset",
        )
    headers = {
        "Ouvrage-Attempt": f"{found.number} {found.attempt}",
        "Ouvrage-Log-Bytes": str(found.bytes),
        "Ouvrage-Log-State": found.state,
    }
    stream = _growing(request, platform, found, offset) if follow else _now(platform, found, offset)
    # As text of no known encoding: whatever a job wrote is shown by a terminal or a page, never run by one.
    return StreamingResponse(stream, media_type="application/octet-stream", headers=headers)


async def _now(platform: Platform, found: Watched, offset: int) -> AsyncIterator[bytes]:
    """What is there, and no more than was announced."""
    while offset < found.bytes:
        most = min(PIECE, found.bytes - offset)
        data = await run_in_threadpool(logs.piece, platform.files_dir, found.attempt, offset, most)
        if not data:
            return
        offset += len(data)
        yield data


async def _growing(
    request: Request, platform: Platform, found: Watched, offset: int
) -> AsyncIterator[bytes]:
    """What is there and what comes, until the attempt or the right to it has ended, the reader has gone or the server ends."""
    allowed = Allowed(request, AGAIN_S, lambda actor: may_watch(platform, actor, found.job))
    wait_s = SECOND / 1e6 if platform.limits.several else AGAIN_S
    with platform.wakes.listening_async(f"log:{found.attempt}") as ear:
        over = False
        while await allowed.still():
            data = await run_in_threadpool(
                logs.piece, platform.files_dir, found.attempt, offset, PIECE
            )
            if data:
                offset += len(data)
                yield data
                continue
            if over or platform.wakes.closed or await request.is_disconnected():
                return
            # What was written before the end was written before we learnt of it: look once more.
            over = await run_in_threadpool(is_over, platform, found.attempt)
            if not over:
                await ear.wait(wait_s)


@router.get("/v1/jobs/{job}/files", **acts("job.read"))
def listed(platform: PlatformDep, actor: UserDep, job: str) -> list[FileTold]:
    """The files of a job, those it was given and those it left."""
    return [_told(row) for row in files.listed(platform, actor, job)]


def _told(row: files.FileRow) -> FileTold:
    return FileTold(
        direction=row.direction, name=row.name, bytes=row.bytes, sha256=row.sha256, at_us=row.at_us
    )


@router.put("/v1/jobs/{job}/files/{name}", **acts("job.change"))
async def send(
    request: Request, platform: PlatformDep, actor: UserDep, job: str, name: FileName
) -> FileTold:
    """Send an input that the job names, as raw bytes; the job starts once all are here."""
    row = await run_in_threadpool(files.check_input, platform, actor, job, name)
    taken = await files.take(platform, row.job, "in", name, request.stream())
    kept = await run_in_threadpool(files.keep_input, platform, actor, row, name, taken)
    return _told(kept)


@router.get("/v1/jobs/{job}/files/{name}", response_class=FileResponse, **acts("job.read"))
def fetch(
    platform: PlatformDep,
    actor: UserDep,
    job: str,
    name: FileName,
    direction: Annotated[str, Query(pattern="^(in|out)$")] = "out",
) -> FileResponse:
    """A file that the job left, or (``direction=in``) was given."""
    path = files.download(platform, actor, job, name, direction)
    return FileResponse(
        path, media_type="application/octet-stream", headers={"Content-Disposition": "attachment"}
    )
