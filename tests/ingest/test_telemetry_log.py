"""Batches repeated, reordered, delayed and lost: each that was taken is in the files once, in the order of its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.base.ids import uuid7
from ouvrage.store.sample_frames import Frame, FrameFile, frames_in
from ouvrage.store.store import Store, open_store
from ouvrage.store.telemetry import Kept, Offered, SampleLog, last_kept, logs_of, path_of

NODES = ("a" * 32, "b" * 32)
SOURCES = ("1" * 32, "2" * 32)


def offered(node: int, source: int, sequence: int) -> Offered:
    content = f"{node}/{source}/{sequence}".encode()
    frame = Frame(node=NODES[node], at_us=sequence, content=content)
    return Offered(
        source=SOURCES[source], sequence=sequence, frame=frame, from_us=sequence, to_us=sequence
    )


class World:
    """A store, its files, and several servers' logs over both."""

    def __init__(self, store: Store, home: Path, most_bytes: int = 400) -> None:
        self.store, self.home = store, home
        numbers = count(1)
        self._ids = lambda: uuid7(1_790_000_000_000_000 + next(numbers) * 1000, 0)
        self._most = most_bytes

    def log(self, server: int = 0) -> SampleLog:
        return SampleLog(
            self.store,
            self.home,
            f"server-{server}",
            self._ids,
            most_bytes=self._most,
            most_us=1 << 60,
        )

    def kept(self) -> dict[tuple[str, str], list[int]]:
        """By node and source, the numbers in the files, in the order in which they stand there."""
        found: dict[tuple[str, str], list[int]] = {}
        for server in (0, 1):
            for row in logs_of(self.store, f"server-{server}"):
                frames = (
                    list(frames_in(path_of(self.home, row.log), row.bytes)) if row.bytes else []
                )
                assert len(frames) == row.batches
                for frame in frames:
                    _, source, sequence = frame.content.decode().split("/")
                    found.setdefault((frame.node, SOURCES[int(source)]), []).append(int(sequence))
        return found

    def holds(self) -> None:
        kept, last = self.kept(), last_kept(self.store)
        assert {key: sorted(numbers) for key, numbers in kept.items()} == {
            key: list(range(1, to + 1)) for key, to in last.items()
        }


@contextmanager
def world(**more: Any) -> Iterator[World]:
    with TemporaryDirectory() as home, open_store(Path(home) / "ouvrage.db") as store:
        yield World(store, Path(home), **more)


STEP = st.tuples(
    st.integers(0, 1),  # which server
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(1, 6)), min_size=1, max_size=8
    ),
    st.sampled_from(["go on", "go on", "killed", "torn"]),
)


@pytest.mark.property
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(STEP, max_size=10))
def test_however_batches_come_each_is_kept_once(steps: list[Any]) -> None:
    with world() as w:
        logs = [w.log(0), w.log(1)]
        taken: set[tuple[int, int, int]] = set()
        for server, batches, then in steps:
            kept = logs[server].append([offered(*each) for each in batches], 1)
            for each, outcome in zip(batches, kept, strict=True):
                if outcome.result == "accepted":
                    assert each not in taken
                    taken.add(each)
                elif outcome.result == "exists":
                    assert each in taken
                else:
                    assert outcome.sequence + 1 < each[2]
            if then != "go on":
                if then == "torn" and logs[server].open_log:  # written, and never acknowledged
                    path = path_of(w.home, logs[server].open_log or "")
                    path.write_bytes(path.read_bytes() + b"OuvB torn")
                logs[server] = w.log(server)
        w.holds()
        assert sum(map(len, w.kept().values())) == len(taken)


def test_two_servers_that_take_the_same_batch_keep_it_once() -> None:
    with world() as w:
        first, second = w.log(0), w.log(1)
        assert first.append([offered(0, 0, 1)], 1)[0].result == "accepted"
        assert second.append([offered(0, 0, 1)], 1)[0].result == "exists"
        assert second.append([offered(0, 0, 2)], 1)[0].result == "accepted"
        # The first still believes that the source stands at 1.
        assert first.append([offered(0, 0, 2), offered(1, 0, 1)], 1) == [
            Kept(result="exists", sequence=2), Kept(result="accepted", sequence=1),
        ]  # fmt: skip
        w.holds()


def test_a_disk_that_takes_nothing_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with world(most_bytes=10_000) as w:
        log = w.log()
        log.append([offered(0, 0, 1)], 1)

        def full(self: FrameFile, frames: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(FrameFile, "append", full)
            with pytest.raises(OSError, match="No space"):
                log.append([offered(0, 0, 2)], 1)
        assert log.append([offered(0, 0, 2)], 1)[0].result == "accepted"
        assert len(logs_of(w.store, "server-0")) == 2
        w.holds()


def test_a_node_keeps_only_its_latest_sources() -> None:
    with world(most_bytes=1 << 20) as w:
        log = w.log()
        for number in range(40):
            frame = Frame(node=NODES[0], at_us=1, content=b"x")
            one = Offered(source=f"{number:032x}", sequence=1, frame=frame, from_us=1, to_us=1)
            log.append([one], number)
        assert len(last_kept(w.store)) == 16


@pytest.mark.parametrize("place", [0, 5, 30, -1])
def test_a_changed_byte_is_found(tmp_path: Path, place: int) -> None:
    path = tmp_path / "one.batches"
    file = FrameFile(path)
    file.append([offered(0, 0, 1).frame, offered(0, 0, 2).frame])
    file.close()
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(OuvrageError) as found:
        list(frames_in(path, len(data)))
    assert found.value.code == "telemetry/damaged"


def test_on_both_databases(addresses: Callable[[], str], tmp_path: Path) -> None:
    with open_store(addresses()) as store:
        w = World(store, tmp_path)
        one, two = w.log(0), w.log(1)
        for sequence in range(1, 30):
            batch = [offered(0, 0, sequence), offered(1, 1, sequence)]
            assert {k.result for k in (one, two)[sequence % 2].append(batch, 1)} == {"accepted"}
            assert {k.result for k in (two, one)[sequence % 2].append(batch, 1)} == {"exists"}
        w.holds()
