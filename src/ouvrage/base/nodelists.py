"""Lists of hosts as cluster managers write them: ``node[001-004,007],gpu1``.

Decides how brackets unfold and keep their leading zeros, and that a list is refused which would unfold to
more hosts than any cluster has: it came from a damaged file. The form is documented in
https://slurm.schedmd.com/scontrol.html (show hostnames).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

MOST = 100_000
_PART = re.compile(r"(?:[^\[\],\s]|\[[0-9,-]+\])+")
_PIECE = re.compile(r"\[([0-9,-]+)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NOTHING = ("", "None assigned", "(null)", "None", "Unknown")


@lru_cache(maxsize=4096)
def unfolded(text: str) -> tuple[str, ...]:
    """The hosts of a list, in its order; ``ValueError`` where it is none. No hosts: an empty tuple."""
    if text.strip() in _NOTHING:
        return ()
    found: list[str] = []
    at = 0
    while True:
        part = _PART.match(text, at)
        if part is None:
            raise ValueError(f"{text[at : at + 40]!r} is no list of hosts")
        found += _hosts(part[0], MOST - len(found))
        at = part.end()
        if at == len(text):
            return tuple(found)
        if text[at] != ",":
            raise ValueError(f"{text[at : at + 40]!r} is no list of hosts")
        at += 1


def _hosts(part: str, most: int) -> Iterator[str]:
    pieces = [_numbers(m[1], most) if m[1] else [m[2]] for m in _PIECE.finditer(part)]
    count = 1
    for piece in pieces:
        count *= len(piece)
    if count > most:
        raise ValueError(f"{part[:40]!r} unfolds to more than {MOST} hosts")
    return map("".join, product(*pieces))


def _numbers(text: str, most: int) -> list[str]:
    found: list[str] = []
    for piece in text.split(","):
        match = _RANGE.fullmatch(piece)
        if match is None:
            raise ValueError(f"[{text[:40]}] is no range of hosts")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= most - len(found):
            raise ValueError(f"[{text[:40]}] is no range of hosts")
        found += [str(number).rjust(len(match[1]), "0") for number in range(first, last + 1)]
    return found
