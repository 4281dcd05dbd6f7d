"""What must be gone from a machine before somebody else's work may start on it.

Decides what counts as clean: no process holds a device that was lent, and a card's memory is back at
what it was before. Looking into the driver may hang, so it is done by a child with a deadline; no
answer is not clean.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ouvrage.adapters import nvml_place

DEADLINE_S = 30.0
TOLERANCE_BYTES = 16 << 20
"""The driver itself keeps a little more or less from one moment to the next."""

_CODE = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from ouvrage.adapters.nvml import cards_now
print(json.dumps(cards_now()))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A GPU as its driver describes it."""

    uuid: str
    name: str
    memory_bytes: int
    used_bytes: int


def cards() -> list[Card] | None:
    """Every GPU of this machine; None where the driver does not tell, none where there is no driver."""
    if not nvml_place.is_here(os.environ):
        return []
    words = [sys.executable, "-I", "-S", "-c", _CODE, json.dumps([p for p in sys.path if p])]
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            timeout=DEADLINE_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        return [
            Card(uuid=str(uuid), name=str(name), memory_bytes=int(memory), used_bytes=int(used))
            for uuid, name, memory, used in json.loads(done.stdout)
        ]
    except (subprocess.SubprocessError, OSError, ValueError, TypeError):
        return None


def memory_in_use() -> dict[str, int] | None:
    """Bytes in use of each card by its UUID; None where the driver does not tell."""
    found = cards()
    return None if found is None else {card.uuid: card.used_bytes for card in found}


def above(before: Mapping[str, int] | None, wanted: Sequence[str]) -> list[str]:
    """What is wrong with these cards now, against what they used before; nothing where all is well."""
    if not wanted:
        return []
    now = memory_in_use()
    if now is None or before is None:
        return ["the driver does not say what the GPU's memory holds"]
    faults: list[str] = []
    for card in wanted:
        if card not in now or card not in before:
            faults.append(f"{card} does not answer")
        elif now[card] > before[card] + TOLERANCE_BYTES:
            more = (now[card] - before[card]) >> 20
            faults.append(f"{card} still holds {more} MiB more than before")
    return faults


def holders(nodes: Iterable[str]) -> list[int]:
    """The processes of this machine that have one of these device nodes open."""
    wanted: set[int] = set()
    for node in nodes:
        try:
            wanted.add(os.stat(node).st_rdev)
        except OSError:
            continue
    return [pid for pid in _processes() if _has_open(pid, wanted)] if wanted else []


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _has_open(pid: int, wanted: set[int]) -> bool:
    directory = f"/proc/{pid}/fd"
    try:
        names = os.listdir(directory)
    except OSError:
        return False
    for name in names:
        try:
            if os.stat(f"{directory}/{name}").st_rdev in wanted:
                return True
        except OSError:
            continue
    return False
