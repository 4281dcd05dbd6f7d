"""The power limits that must be put back, in a file of the home until they have been.

Written, and on the disk, before the first limit is changed; removed when every card reads its old
limit again. So whatever kills the program, the next one finds what it has to undo. A machine that
was started anew has forgotten the changed limits: the record then says nothing about it any more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from ouvrage.adapters.home import make_private
from ouvrage.base.errors import OuvrageError

NAME = "power-limits.json"
_GREATEST_MW = 100_000_000
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Which start of this machine it is; empty where the kernel does not say."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def read(home: Path) -> dict[str, int] | None:
    """GPU (by UUID) to the milliwatts it must go back to; None where nothing is to be undone.

    Raises ``OuvrageError`` ``tune/record`` for a file that is none of ours.
    """
    file = home / NAME
    try:
        held = json.loads(file.read_bytes())
        limits = {_card(uuid): _milliwatts(limit) for uuid, limit in held["limits"].items()}
        booted = str(held["boot"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise OuvrageError(
            "tune/record", f"{file} cannot be read: {error}",
            hint="it says which power limits to put back; nvidia-smi -q -d POWER shows the cards'. "
            "Delete it when they are right",
        ) from error  # fmt: skip
    return limits if booted == boot_id() else None


def _card(uuid: str) -> str:
    if not (0 < len(uuid) <= 80 and uuid.isascii() and uuid.isprintable()):
        raise ValueError(f"{uuid[:80]!r} names no GPU")
    return uuid


def _milliwatts(limit: object) -> int:
    if type(limit) is not int or not 0 < limit < _GREATEST_MW:
        raise ValueError(f"{str(limit)[:40]!r} is no power limit in milliwatts")
    return limit


def write(home: Path, limits: Mapping[str, int]) -> None:
    """Record what must be put back; on the disk when this returns."""
    make_private(home)
    text = json.dumps({"boot": boot_id(), "limits": dict(limits)}, indent=1)
    draft = home / f".{NAME}.{os.getpid()}"
    with open(draft, "w", encoding="ascii", opener=_private) as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, home / NAME)
    _sync(home)


def remove(home: Path) -> None:
    """Everything is back."""
    (home / NAME).unlink(missing_ok=True)
    _sync(home)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
