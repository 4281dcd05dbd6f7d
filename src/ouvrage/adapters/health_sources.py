"""What this machine says of its own health, for a check that runs once: kernel's log, disks.

Decides where each is read and what it means that it cannot be: ``NotTold``, which a check turns into UNKNOWN. Roots are
arguments, so that a tree of files stands in for a machine. Nothing here speaks to a GPU's driver.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

from ouvrage.adapters.procfs import whole_disks
from ouvrage.health.kernel_log import lines_in

SECONDS = 30
_RECORD = 1 << 16


class NotTold(Exception):
    """It could not be read, and why."""


def kernel_log(path: str) -> list[str]:
    """Every record that the kernel still holds, or the lines of a file. Raises ``NotTold``."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise NotTold(f"{path}: {error.strerror}; the kernel's log is root's to read") from error
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            with os.fdopen(
                os.dup(descriptor), encoding="utf-8", errors="replace", newline=""
            ) as file:
                return lines_in(file.read())
        return [line for record in _records(descriptor) for line in lines_in(record)]
    except OSError as error:
        raise NotTold(f"{path}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _records(descriptor: int) -> Iterator[str]:
    """One record a read, until there is none; those overwritten meanwhile are gone."""
    while True:
        try:
            data = os.read(descriptor, _RECORD)
        except BlockingIOError:
            return
        except BrokenPipeError:
            continue
        if not data:
            return
        yield data.decode("utf-8", "replace")


Run = Callable[[list[str]], tuple[int, str]]


def within_deadline(command: list[str], seconds: float = SECONDS) -> tuple[int, str]:
    """A command's exit code and output, waiting no longer than this even where it cannot be killed.

    Raises ``NotTold``. One that sits in the kernel and ignores SIGKILL is left behind: that is the finding.
    """
    import subprocess  # it weighs, and most children that look start nothing

    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, errors="replace",
        )  # fmt: skip
    except FileNotFoundError as error:
        raise NotTold(f"{command[0]} is not installed") from error
    except OSError as error:
        raise NotTold(f"{command[0]} could not be started: {error.strerror}") from error
    try:
        told, _ = child.communicate(timeout=seconds)
        return child.returncode, told
    except subprocess.TimeoutExpired:
        child.kill()
        with suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=1)
            raise NotTold(f"{command[0]} did not end within {seconds:.0f} s") from None
        raise NotTold(f"{command[0]} hangs in the kernel and cannot be ended") from None


def disk_reports(sys: str, run: Run = within_deadline) -> Iterator[tuple[str, object]]:
    """Each whole disk's name with smartctl's JSON, or with ``NotTold`` in its place."""
    for name in whole_disks(sys):
        try:
            yield name, _report(f"/dev/{name}", run)
        except NotTold as error:
            yield name, error


def _report(device: str, run: Run) -> object:
    _, told = run(["smartctl", "--json", "-x", device])
    with suppress(ValueError, RecursionError):
        return json.loads(told)
    raise NotTold(f"smartctl's answer for {device} is no JSON: {told.strip()[:80]!r}")
