"""Programs that work by themselves: on the processor, on files, in memory, in many processes.

None knows which cause is injected around it. All work in the current directory, on the files that
``made.prepare`` put there.
"""

from __future__ import annotations

import bz2
import contextlib
import hashlib
import heapq
import io
import json
import lzma
import mmap
import multiprocessing
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from bench.verdicts.made import BLOB, MB, TABLE
from bench.verdicts.working import Words, dice, program, several, text, until


@program
def compress(words: Words) -> None:
    """Compress blocks of text with zlib, bz2 or lzma."""
    several(words, _compress)


def _compress(words: Words, number: int) -> None:
    pack = {"zlib": zlib.compress, "bz2": bz2.compress, "lzma": lzma.compress}[words["codec"]]
    block = text(random.Random(number), MB // 4)
    for _ in until(words):
        pack(block)


@program
def perceptron(words: Words) -> None:
    """Train a two-layer network by gradient descent in numpy, an epoch a line."""
    import numpy as np

    some = np.random.default_rng(int(words.get("seed", "1")))
    x, y = some.normal(size=(512, 128)), some.integers(0, 2, 512)
    first, second = some.normal(size=(128, 256)) * 0.1, some.normal(size=256) * 0.1
    for epoch in until(words):
        error = y
        for _ in range(int(words.get("steps", "40"))):
            hidden = np.tanh(x @ first)
            error = 1 / (1 + np.exp(-hidden @ second)) - y
            second -= 0.001 * hidden.T @ error
            first -= 0.001 * x.T @ (np.outer(error, second) * (1 - hidden**2))
        print(f"Epoch {epoch}/1000 loss={np.abs(error).mean():.4f}", flush=True)


@program
def classify(words: Words) -> None:
    """Fit a linear classifier on real digits with scikit-learn, an epoch a line."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import SGDClassifier

    x, y = load_digits(return_X_y=True)
    model = SGDClassifier(random_state=int(words.get("seed", "1")))
    for epoch in until(words):
        for _ in range(10):
            model.partial_fit(x, y, classes=range(10))
        print(f"Epoch {epoch}/1000 score={model.score(x, y):.3f}", flush=True)


@program
def database(words: Words) -> None:
    """Build a SQLite database: rows, an index, a commit to the disk after each batch."""
    some = dice(words)
    with tempfile.TemporaryDirectory(dir=".") as directory:
        held = sqlite3.connect(f"{directory}/built.db")
        held.execute(f"pragma synchronous={words.get('synchronous', 'full')}")
        held.execute("create table rows (name text, size integer, body blob)")
        held.execute("create index by_name on rows (name)")
        for _ in until(words):
            rows = (
                (some.randbytes(8).hex(), some.randrange(9999), some.randbytes(200))
                for _ in range(int(words.get("batch", "500")))
            )
            held.executemany("insert into rows values (?, ?, ?)", rows)
            held.commit()
        held.close()


@program
def sort(words: Words) -> None:
    """Sort numbers bigger than what is held at once: sorted runs on disk, then a merge."""
    some = dice(words)
    for _ in until(words):
        with tempfile.TemporaryDirectory(dir=".") as directory:
            runs = [_sorted_run(directory, number, some) for number in range(4)]
            merged = heapq.merge(*(_lines(path) for path in runs))
            with Path(directory, "sorted").open("wb") as out:
                out.writelines(merged)
                _to_disk(out)


def _sorted_run(directory: str, number: int, some: random.Random) -> Path:
    path = Path(directory, f"run{number}")
    lines = sorted(some.randbytes(40).hex().encode() + b"\n" for _ in range(12_000))
    with path.open("wb") as out:
        out.writelines(lines)
        _to_disk(out)
    return path


def _to_disk(out: io.BufferedWriter) -> None:
    """Write through and drop the cached pages, so that a reader meets the disk."""
    out.flush()
    os.fsync(out.fileno())
    os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


@program
def scan(words: Words) -> None:
    """Read a file from end to end and hash it; ``cold`` meets the disk each time."""
    several(words, _scan)


def _scan(words: Words, number: int) -> None:
    with Path(BLOB).open("rb", buffering=0) as file:
        for _ in until(words):
            if words.get("cold") == "1":
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            for _ in until(words):
                block = file.read(MB // 2)
                if not block:
                    break
                for _ in range(int(words.get("rounds", "1"))):
                    hashlib.sha256(block).digest()
            else:
                return


@program
def lookups(words: Words) -> None:
    """Read records at random places of a file, as an index or a shuffled data set does."""
    some = dice(words)
    size = os.path.getsize(BLOB)
    with Path(BLOB).open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        if words.get("cold") == "1":
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        for _ in until(words):
            block = os.pread(file.fileno(), 65_536, some.randrange(size - 65_536))
            zlib.crc32(zlib.compress(block[: int(words.get("packed", "4096"))]))


@program
def checkpoints(words: Words) -> None:
    """Train a little, then write the weights to the disk, again and again."""
    import numpy as np

    some = np.random.default_rng(int(words.get("seed", "1")))
    weights = some.normal(size=(int(words.get("rows", "512")), 1024))
    for epoch in until(words):
        for _ in range(int(words.get("steps", "4"))):
            weights += 0.001 * np.tanh(weights)
        with Path(f"weights{epoch % 2}").open("wb") as out:
            out.write(weights.tobytes())
            _to_disk(out)
        print(f"Epoch {epoch}/1000", flush=True)


@program
def embeddings(words: Words) -> None:
    """Gather rows of a table that is mapped from a file and sum them up."""
    import numpy as np

    some = np.random.default_rng(int(words.get("seed", "1")))
    with Path(TABLE).open("rb") as file:
        held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        table = np.frombuffer(held, dtype=np.float32).reshape(-1, 256)
        for _ in until(words):
            rows = some.integers(0, len(table), 256)
            np.tanh(table[rows]).sum()


@program
def groups(words: Words) -> None:
    """Sum up a table held in memory, part after part, as a join does."""
    some = dice(words)
    held = bytearray(int(words.get("mb", "60")) * MB)
    for start in range(0, len(held), 4096):
        held[start : start + 2048] = some.randbytes(2048)
    for part in until(words):
        start = part * MB % len(held)
        for place in range(start, start + MB, 4096):
            held[place] = (held[place] + zlib.crc32(held[place : place + 4096])) & 255


@program
def build(words: Words) -> None:
    """Many small processes, ``jobs`` at a time, as a build has."""
    step = "import hashlib\nfor n in range(60000): hashlib.sha256(b'%d' % n)"
    running: list[subprocess.Popen[bytes]] = []
    for _ in until(words):
        while len(running) >= int(words["jobs"]):
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            running = [process for process in running if process.poll() is None]
        running.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", step]))
    for process in running:
        process.wait()


@program
def parse(words: Words) -> None:
    """Read and write JSON, and count words with a regular expression."""
    several(words, _parse)


def _parse(words: Words, number: int) -> None:
    some = random.Random(number)
    rows = [{"name": some.randbytes(6).hex(), "size": some.random()} for _ in range(5000)]
    for _ in until(words):
        held = json.dumps(rows)
        rows = json.loads(held)
        len(re.findall(r"[a-f]+[0-9]+", held))


@program
def solve(words: Words) -> None:
    """Solve systems of linear equations, an iteration a line."""
    import numpy as np

    some = np.random.default_rng(int(words.get("seed", "1")))
    for number in until(words):
        matrix = some.normal(size=(400, 400))
        np.linalg.solve(matrix, matrix[0])
        if number % 10 == 0:
            print(f"Epoch {number // 10}/1000", flush=True)


@program
def archive(words: Words) -> None:
    """Pack the files into a compressed archive on the disk, reading them from there."""
    for _ in until(words):
        for name in (BLOB, TABLE):
            with Path(name).open("rb", buffering=0) as file, Path("packed").open("wb") as out:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                for _ in until(words):
                    block = file.read(MB // 4)
                    if not block:
                        break
                    out.write(zlib.compress(block, 1))
                    _to_disk(out)


@program
def sheets(words: Words) -> None:
    """Walk a large mapped array column by column, as a careless program does."""
    import numpy as np

    table = np.memmap(TABLE, dtype=np.float32, mode="r").reshape(-1, 1024)
    for column in until(words):
        table[:, column * 16 % 1024].sum()


@program
def locked(words: Words) -> None:
    """Threads that hash under one lock: never more than one of them works."""
    lock, block = threading.Lock(), dice(words).randbytes(MB)

    def work() -> None:
        for _ in until(words):
            with lock:
                hashlib.sha256(block).digest()

    pool = [threading.Thread(target=work) for _ in range(int(words.get("threads", "4")))]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()


@program
def waiter(words: Words) -> None:
    """Wait for a file that does not come, looking now and then."""
    for _ in until(words):
        with contextlib.suppress(FileNotFoundError):
            Path("never").stat()
        time.sleep(float(words.get("every", "0.1")))


@program
def frames(words: Words) -> None:
    """A pipeline over pipes: one process unpacks frames, this one filters and packs them again."""
    import numpy as np

    width, height = 320, 240
    reading, writing = multiprocessing.Pipe(duplex=False)
    source = multiprocessing.Process(target=_unpack, args=(words, writing, width * height))
    source.start()
    writing.close()
    number = 0
    with contextlib.suppress(EOFError):
        while True:
            frame = np.frombuffer(reading.recv_bytes(), np.uint8).reshape(height, width)
            smooth = frame[1:-1, 1:-1] // 2 + frame[:-2, 1:-1] // 4 + frame[2:, 1:-1] // 4
            zlib.compress(smooth.tobytes(), int(words.get("level", "6")))
            number += 1
            if number % 30 == 0:
                print(f"frame={number:5d} fps=30", file=sys.stderr, flush=True)
    source.join()


def _unpack(words: Words, writing: Connection, size: int) -> None:
    packed = zlib.compress(text(dice(words), size * 2)[:size])
    for _ in until(words):
        writing.send_bytes(zlib.decompress(packed))
        time.sleep(float(words.get("pause", "0")))


@program
def images(words: Words) -> None:
    """Make thumbnails: decode, resize and encode JPEG pictures."""
    several(words, _images)


def _images(words: Words, number: int) -> None:
    from PIL import Image

    some = random.Random(number)
    kept = io.BytesIO()
    Image.frombytes("RGB", (640, 480), some.randbytes(640 * 480 * 3)).save(kept, "JPEG")
    for _ in until(words):
        picture = Image.open(io.BytesIO(kept.getvalue())).convert("RGB")
        picture.resize((224, 224)).save(io.BytesIO(), "JPEG")
