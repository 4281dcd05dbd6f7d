"""What the single file ``ouvrage.pyz`` can do beside ``run``: hand a run on, and say what is missing.

A rented machine is deleted after the run, and nothing may be installed on it: ``run export`` reads
the spool itself. Everything else needs the store, which needs packages.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ouvrage.adapters.home import home, spool_dir
from ouvrage.base.errors import OuvrageError
from ouvrage.base.ids import code_of, normal_code

_HELP = """\
usage: ouvrage run [OPTIONS] -- COMMAND [ARGUMENT ...]
       ouvrage run export RUN [FILE]
       ouvrage --version

This is the meter alone. It runs commands, prints their summaries and hands runs on; reports,
comparisons and the ledger come with the whole program: pip install ouvrage
"""


def main(arguments: Sequence[str]) -> int:
    """Do what the meter can do alone. Raises ``OuvrageError`` for everything else."""
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        sys.stdout.write(_HELP)
        return 0
    if list(arguments[:2]) == ["run", "export"]:
        return _export(list(arguments[2:]))
    verb = " ".join(arguments[:2] if arguments[0] == "run" else arguments[:1])
    raise OuvrageError(
        "command/not-here",
        f"this is the meter alone; it does not know {verb!r}",
        hint="pip install ouvrage on the machine where you keep the books, and take the run there:"
        " ouvrage run export RUN FILE, then ouvrage run import FILE",
    )


def _export(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        raise OuvrageError("run/usage", "a run is needed", hint="ouvrage run export RUN [FILE]")
    from ouvrage.metering.whole_spool import exported, read_lines

    path = _spool_of(arguments[0])
    target = arguments[1] if arguments[1:] else f"{code_of(path.stem)}.ouvrage"
    data = _read_ended(path)
    spool = read_lines(data)
    _write(Path(target), exported(spool, data))
    sys.stdout.write(f"{target}: run {code_of(spool.run)}, {spool.outcome}\n")
    return 0


def _spool_of(name: str) -> Path:
    spools = sorted(spool_dir(home()).glob("*.ndjson"))
    if name == "last" and spools:
        return spools[-1]
    found = [
        path
        for path in spools
        if path.stem == name
        or (len(name) >= 4 and code_of(path.stem, 12).startswith(normal_code(name)))
    ]
    if len(found) == 1:
        return found[0]
    known = tuple(f"{code_of(path.stem)}  {path.stem}" for path in spools[-5:])
    raise OuvrageError(
        "run/ambiguous" if found else "run/unknown",
        f"{name!r} names {len(found)} runs" if found else f"no run {name!r} in {spool_dir(home())}",
        where=known,
        hint="name a run by its code, its whole id, or 'last'",
    )


def _read_ended(path: Path) -> bytes:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OuvrageError(
                "run/running", f"run {code_of(path.stem)} has not ended", hint="wait for its end"
            ) from error
        return file.read()


def _write(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise OuvrageError("export/not-written", f"{path}: {error.strerror}") from error
