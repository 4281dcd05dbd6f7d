"""The last hour of every node's telemetry, in memory, for whoever looks at a page.

Decides how much is held: so many minutes of a node, and so many bytes in all. Batches are held as they came and read when somebody
looks, since most are never looked at. After a restart the files fill it again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from ouvrage.base.time import MINUTE
from ouvrage.store.sample_frames import Frame
from ouvrage.wire.samples import GPU, NODE, Batch, Column, decode

KEPT_US = 60 * MINUTE
MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a node said lately: moments, and by column as many values, None where nothing was read.

    ``gpus`` holds the columns of each GPU, by its id.
    """

    times: list[int]
    node: dict[str, list[int | None]]
    gpus: dict[str, dict[str, list[int | None]]]


class Recent:
    """Safe in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, deque[Frame]] = {}
        self._order: deque[str] = deque()
        self._bytes = 0

    def add(self, frame: Frame) -> None:
        """Hold a batch that was kept; what is older than the limits goes."""
        with self._lock:
            self._held.setdefault(frame.node, deque()).append(frame)
            self._order.append(frame.node)
            self._bytes += len(frame.content)
            while self._order and self._too_much(frame.at_us):
                self._drop_first()

    def _too_much(self, now_us: int) -> bool:
        first = self._held[self._order[0]][0]
        return self._bytes > MOST_BYTES or first.at_us < now_us - KEPT_US

    def _drop_first(self) -> None:
        held = self._held[self._order.popleft()]
        self._bytes -= len(held.popleft().content)
        if not held:
            self._held = {node: each for node, each in self._held.items() if each}

    def of(self, node: str, since_us: int) -> Seen:
        """What a node said of the moments after ``since_us``, as far as it is held."""
        with self._lock:
            frames = list(self._held.get(node, ()))
        return merged([decode(frame.content) for frame in frames], since_us)


def merged(batches: list[Batch], since_us: int) -> Seen:
    """Batches of one node as one, in order of their moments."""
    batches = sorted(
        (each for each in batches if each.times[-1] > since_us), key=lambda each: each.times[0]
    )
    devices = list(dict.fromkeys(chain.from_iterable(each.devices for each in batches)))
    node = {name: list(_joined(batches, name, since_us)) for name in NODE}
    gpus = {
        device: {name: list(_joined(batches, name, since_us, device)) for name in GPU}
        for device in devices
    }
    times = [t for each in batches for t in each.times if t > since_us]
    return Seen(times=times, node=node, gpus=gpus)


def _joined(
    batches: list[Batch], name: str, since_us: int, device: str | None = None
) -> chain[int | None]:
    return chain.from_iterable(
        [
            value
            for t, value in zip(each.times, _part(each, name, device), strict=True)
            if t > since_us
        ]
        for each in batches
    )


def _part(batch: Batch, name: str, device: str | None) -> Column:
    """A column's values of the node or of one GPU; None where the batch says nothing of it."""
    many = len(batch.times)
    columns: Mapping[str, Column] = batch.node if device is None else batch.gpu
    if name not in columns or (device is not None and device not in batch.devices):
        return [None] * many
    begin = 0 if device is None else batch.devices.index(device) * many
    return columns[name][begin : begin + many]
