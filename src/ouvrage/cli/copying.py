"""``ouvrage cp``: a file or a directory out of a running job, or into it.

Decides that what comes out of a job is a stranger's: a directory is put down by ``adapters/trees``, where nothing was, and its links stay
behind. A copy appears under its name once all of it is there; what was left out is said.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import click

from ouvrage.adapters.stream_client import Line
from ouvrage.adapters.trees import Found, LeftOut, Planting, entries_below, plant_below
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.entering import entered, frames_of
from ouvrage.cli.output import safe, say_text, wrote
from ouvrage.wire import inside
from ouvrage.wire.inside import Done, Entry, Put, Take, frame

_BLOCK = 1 << 16
_NAMED = 5


@click.command()
@click.option("-r", "--recursive", is_flag=True, help="A directory with everything in it.")
@click.argument("source")
@click.argument("target")
def cp(source: str, target: str, *, recursive: bool) -> None:
    """Copy a file out of a running job's scratch space, or into it.

    \b
    ouvrage cp JOB:out/loss.txt .
    ouvrage cp config.yaml JOB:config.yaml
    ouvrage cp -r JOB:out results
    """
    from_job, to_job = _place(source), _place(target)
    if from_job is not None and to_job is None:
        copied = (_bring_tree if recursive else _bring)(*from_job, Path(target))
    elif to_job is not None and from_job is None:
        copied = (_send_tree if recursive else _send)(Path(source), *to_job)
    else:
        raise OuvrageError(
            "cp/where",
            "exactly one of the two is inside a job",
            hint="ouvrage cp JOB:path ., or ouvrage cp file JOB:path",
        )
    wrote()
    say_text(f"{source} → {target}, {copied}")


def _place(text: str) -> tuple[str, str] | None:
    """The job and the path in it; a path here may hold a colon where a slash comes before it."""
    job, colon, path = text.partition(":")
    return (job, path) if colon and job and path and "/" not in job else None


# A file


def _bring(job: str, path: str, target: Path) -> str:
    if target.is_dir():
        target /= Path(path).name
    draft = target.with_name(f".{target.name}.part")
    line = entered(job, Take(path=path))
    size, done = 0, None
    try:
        with draft.open("wb") as file:
            for sort, body in frames_of(line):
                if sort == inside.DATA:
                    size += file.write(body)
                elif sort == inside.DONE:
                    done = Done.model_validate_json(body)
        done = _must(done, path)
        draft.chmod(0o755 if done.executable else 0o644)
        draft.replace(target)
    finally:
        line.close()
        draft.unlink(missing_ok=True)
    return f"{size} bytes"


def _send(source: Path, job: str, path: str) -> str:
    if not source.is_file():
        what = "a directory" if source.is_dir() else "no file"
        raise OuvrageError("cp/source", f"{source} is {what}", hint="ouvrage cp -r for a directory")
    path = path + source.name if path.endswith("/") else path
    line = entered(job, Put(path=path, executable=os.access(source, os.X_OK)))
    size = 0
    try:
        with contextlib.suppress(ConnectionError), source.open("rb") as file:
            while data := file.read(_BLOCK):
                line.send(frame(inside.DATA, data))
                size += len(data)
            line.send(frame(inside.OVER))
        _must(_last(line), path)
    finally:
        line.close()
    return f"{size} bytes"


def _last(line: Line) -> Done | None:
    dones = (Done.model_validate_json(b) for sort, b in frames_of(line) if sort == inside.DONE)
    return next(dones, None)


def _must(done: Done | None, path: str) -> Done:
    if done is None:
        raise OuvrageError("cp/broke-off", f"{path}: the stream broke off", exit_code=1)
    if done.fault:
        tree = "ouvrage cp -r copies a directory; " if done.fault.startswith("it is a dir") else ""
        raise OuvrageError(
            "cp/refused",
            f"{path}: {done.fault}",
            hint=f"{tree}paths lie below the job's scratch space; links are not followed",
        )
    return done


# A directory


def _bring_tree(job: str, path: str, target: Path) -> str:
    if target.is_dir():
        target /= Path(path).name
    line = entered(job, Take(path=path, tree=True))
    try:
        with _refused(str(target)), plant_below(str(target.parent), target.name) as planting:
            done = _must(_planted(line, planting), path)
    finally:
        line.close()
    return _copied(planting.files, planting.size, done.left, done.left_out)


def _planted(line: Line, planting: Planting) -> Done | None:
    for sort, body in frames_of(line):
        if sort == inside.DATA:
            planting.write(body)
        elif sort == inside.ENTRY:
            told = Entry.model_validate_json(body)
            planting.entry(told.path, directory=told.directory, executable=told.executable)
        elif sort == inside.DONE:
            return Done.model_validate_json(body)
    return None


def _send_tree(source: Path, job: str, path: str) -> str:
    path = path + source.name if path.endswith("/") else path
    left: list[str] = []
    files = size = 0
    with _refused(str(source)):
        entries = entries_below(str(source.parent), source.name)
        line = entered(job, Put(path=path, tree=True))
        try:
            with contextlib.suppress(ConnectionError):
                for each in entries:
                    if isinstance(each, LeftOut):
                        left.append(f"{each.path} ({each.sort})")
                        continue
                    files += each.descriptor is not None
                    size += _sent(line, each)
                line.send(frame(inside.OVER))
            _must(_last(line), path)
        finally:
            line.close()
    return _copied(files, size, left, len(left))


def _sent(line: Line, each: Found) -> int:
    told = Entry(path=each.path, directory=each.descriptor is None, executable=each.executable)
    line.send(frame(inside.ENTRY, told.model_dump_json().encode()))
    size = 0
    if each.descriptor is not None:
        with os.fdopen(each.descriptor, "rb") as file:
            while data := file.read(_BLOCK):
                line.send(frame(inside.DATA, data))
                size += len(data)
    return size


@contextlib.contextmanager
def _refused(where: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise OuvrageError("cp/refused", f"{where} is not there") from error
    except (OSError, ValueError) as error:
        words = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OuvrageError(
            "cp/refused", f"{where}: {words}", hint="nothing was kept of it"
        ) from error


def _copied(files: int, size: int, left: list[str], left_out: int) -> str:
    words = f"{files} file{'' if files == 1 else 's'}, {size} bytes"
    if left_out:
        more = f" and {left_out - _NAMED} more" if left_out > _NAMED else ""
        words += f"; left out: {safe(', '.join(left[:_NAMED]))}{more}"
    return words
