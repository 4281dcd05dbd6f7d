"""Programs with a consumer that is fed: loops over a loader, and training on the stand-in GPU.

The loops are changed by one line, ``ouvrage.watch``, as the guide says. Training on the stand-in
does real work on the processor and real reads; only the card's own figures are set by hand, since
there is no card.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import ouvrage
from bench.verdicts.made import BLOB
from bench.verdicts.working import Words, dice, program, text, until


def _busy(seconds: float, block: bytes) -> None:
    """Work on the processor for so long of its own time: waiting for a core does not shorten it."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        hashlib.sha256(block).digest()


def _batches(words: Words, number: int) -> Iterator[bytes]:
    """Batches that cost what the words say: work, reads from the disk, or a pause at a source."""
    some = random.Random(number)
    packed = zlib.compress(text(some, 65_536))
    size = os.path.getsize(BLOB)
    with Path(BLOB).open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        if float(words.get("read_kb", "0")):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while True:
            read = int(float(words.get("read_kb", "0")) * 1024)
            if read:
                os.pread(file.fileno(), read, some.randrange(size - read))
            batch = zlib.decompress(packed)
            _busy(float(words.get("load_ms", "1")) / 1000, batch)
            time.sleep(float(words.get("pause_ms", "0")) / 1000)
            yield batch


def _load(words: Words, number: int, queue: multiprocessing.Queue[bytes]) -> None:
    for batch in _batches(words, number):
        queue.put(batch)


def _loader(words: Words) -> Iterator[bytes]:
    """Batches made here, or by ``workers`` processes over a queue."""
    many = int(words.get("workers", "1"))
    if not many:
        yield from _batches(words, 0)
        return
    queue: multiprocessing.Queue[bytes] = multiprocessing.Queue(4)
    for number in range(many):
        multiprocessing.Process(target=_load, args=(words, number, queue), daemon=True).start()
    while True:
        yield queue.get()


@program
def loop(words: Words) -> None:
    """A training loop over a loader, watched; a step works ``step_ms`` on each batch."""
    end = time.monotonic() + float(words.get("seconds", "4.5"))
    epoch = 0
    batches = _loader(words)
    while time.monotonic() < end:
        epoch += 1
        for number, batch in enumerate(ouvrage.watch(batches)):
            _busy(float(words.get("step_ms", "10")) / 1000, batch)
            if number == 24 or time.monotonic() >= end:
                break
        print(f"Epoch {epoch}/1000", flush=True)


@program
def card(words: Words) -> None:
    """Train on the stand-in GPU: work and reads here, then a wait for the card, step by step.

    ``load`` is the card's own load in percent, ``work`` the share of a step that the processor
    works, ``clock`` and ``reasons`` what the driver says of its clocks.
    """
    some, block = dice(words), dice(words).randbytes(65_536)
    share = float(words.get("work", "0.2"))
    batches = _batches(words | {"load_ms": "0"}, 1)
    for step in until(words):
        _show(words, some)
        if float(words.get("read_kb", "0")):
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                next(batches)
        _busy(0.1 * share, block)
        time.sleep(0.1 * (1 - share))
        if step % 3 == 0:
            print(f"Epoch {step // 3}/1000", flush=True)
    _show({"load": "0"}, some)


def _show(words: Words, some: random.Random) -> None:
    """Put the card's figures in place, whole, as the driver would have them now."""
    state = Path(os.environ["OUVRAGE_NVML_STATE"])
    load = min(100, max(0, int(words.get("load", "95")) + some.randint(-3, 3)))
    draft = state.with_name(".draft")
    draft.write_text(
        f"count=1\ngpu0.util_gpu={load if words.get('load') != '0' else 0}\n"
        f"gpu0.clock_sm_mhz={words.get('clock', '1980')}\n"
        f"gpu0.clock_reasons={int(words.get('reasons', '0'), 0)}\n"
        f"gpu0.power_mw={words.get('power_mw', '400000')}\n"
    )
    draft.replace(state)
