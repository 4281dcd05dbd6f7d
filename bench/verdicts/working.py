"""What the programs share: their register, their clock, their dice.

A program is a function of its words. It ends when its seconds are over, whatever held it up.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable, Iterator

Words = dict[str, str]
Program = Callable[[Words], None]
PROGRAMS: dict[str, Program] = {}


def program(work: Program) -> Program:
    """Register a kind of work under its name."""
    PROGRAMS[work.__name__] = work
    return work


_ends: list[float] = []


def until(words: Words) -> Iterator[int]:
    """Count rounds until the program's seconds are over, the same moment for all who ask."""
    if not _ends:
        _ends.append(time.monotonic() + float(words.get("seconds", "4.5")))
    number = 0
    while time.monotonic() < _ends[0]:
        number += 1
        yield number


def dice(words: Words) -> random.Random:
    """A generator that draws the same each time, by the seed."""
    return random.Random(int(words.get("seed", "1")))


def text(some: random.Random, size: int) -> bytes:
    """Bytes that compress like a log."""
    names = [some.randbytes(4).hex() for _ in range(200)]
    return " ".join(some.choices(names, k=size // 9)).encode()


def several(words: Words, work: Callable[[Words, int], None]) -> None:
    """The work in ``processes`` processes at once."""
    many = int(words.get("processes", "1"))
    if many == 1:
        return work(words, 0)
    started = [multiprocessing.Process(target=work, args=(words, n)) for n in range(many)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    return None
