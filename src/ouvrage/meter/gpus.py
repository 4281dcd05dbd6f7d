"""The meter's side of the GPUs: which of them are the command's, and their readings on record.

Decides the number that a card has in a run, and keeps it whatever happens to the process that reads
it. Starting, silence and death of that process are ``feed``'s.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ouvrage.adapters import nvml_place
from ouvrage.adapters.gpu_port import Rare
from ouvrage.meter.feed import Feed, Reads, command

if TYPE_CHECKING:
    from ouvrage.adapters.process_tree import ProcessTree
    from ouvrage.meter.record import Record

MOST_GPUS = 64


def gpu_feed(record: Record, tree: ProcessTree, origin: int, period_us: int) -> Feed | None:
    """A feed of the GPUs; None where this machine has no library for them."""
    if not nvml_place.is_here(os.environ):
        return None
    reads = Reads(code="gpu", what="the GPUs", words=command("ouvrage.meter.gpu_probe"))
    return Feed(reads, Cards(record, origin).hear, record, tree, origin, period_us)


def chosen(visible: str | None, index: int, uuid: str) -> bool:
    """Whether ``CUDA_VISIBLE_DEVICES`` leaves this GPU to the command, as CUDA reads it.

    A list ends at the first name that is none. Numbers are taken in the driver's order. Which card
    a part of one (``MIG-…``) belongs to cannot be told from its name: none is left out then.
    """
    if visible is None:
        return True
    for name in (word.strip() for word in visible.split(",")):
        if name.startswith("MIG-"):
            return True
        if name.isdecimal():
            if int(name) == index:
                return True
        elif not name.startswith("GPU-"):
            return False
        elif uuid.startswith(name):
            return True
    return False


class Cards:
    """The GPUs seen so far."""

    def __init__(self, record: Record, origin: int) -> None:
        self._record = record
        self._origin = origin
        self._keys: list[str] = []
        self._cards: dict[int, int] = {}
        self._rare = Rare()

    def hear(self, said: dict[str, Any], now: int) -> None:
        """One object that the child said."""
        if said["k"] == "gpu":
            self._card(said["about"], now)
        elif said["k"] == "xid":
            self._error(said, now)
        else:
            self._readings(said, now)

    def _card(self, about: dict[str, Any], now: int) -> None:
        """A GPU and its number in this run: the same card keeps its number."""
        index = int(about["index"])
        key = str(about.get("uuid") or about.get("pci") or index)
        if key not in self._keys:
            if len(self._keys) >= MOST_GPUS:
                raise ValueError("more GPUs than a machine has")
            self._keys.append(key)
            about["chosen"] = chosen(os.environ.get("CUDA_VISIBLE_DEVICES"), index, key)
            self._record.gpu(self._keys.index(key), max(0, now - self._origin), about)
        self._cards[index] = self._keys.index(key)
        self._rare.forget(index)

    def _error(self, said: dict[str, Any], now: int) -> None:
        """The driver reported an error; of a card that is not known, without its number."""
        t, index = max(0, min(int(said["t"]), now) - self._origin), said["gpu"]
        self._record.xid(
            None if index is None else self._cards.get(int(index)), t, int(said["xid"])
        )

    def _readings(self, said: dict[str, Any], now: int) -> None:
        t = min(int(said["t"]), now) - self._origin
        for index, values in enumerate(said["v"]):
            if t < 0 or values is None or index not in self._cards:
                continue
            reading = self._rare.completed(index, values)
            if reading is not None:
                self._record.gpu_sample(self._cards[index], t, reading)
