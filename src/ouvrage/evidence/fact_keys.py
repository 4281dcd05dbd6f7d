"""Which facts a figure stands on, put together without copying and told apart only when somebody asks.

Decides nothing. A statement of a month adds up hundreds of thousands of readings into a few figures that
are then added up again, and most of these are printed without their facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload


class FactKeys(Sequence[str]):
    """Keys of facts, each once, in the order in which they were first added."""

    __slots__ = ("_flat", "_groups")

    def __init__(self, *groups: Iterable[str]) -> None:
        self._groups: list[Iterable[str]] = list(groups)
        self._flat: tuple[str, ...] | None = None

    def add(self, keys: Iterable[str]) -> None:
        """Add keys; a collection is kept as it is, and must not change afterwards."""
        self._groups.append(keys)
        self._flat = None

    def _told(self) -> tuple[str, ...]:
        if self._flat is None:
            self._flat = tuple(dict.fromkeys(key for group in self._groups for key in group))
            self._groups = [self._flat]
        return self._flat

    def __iter__(self) -> Iterator[str]:
        return iter(self._told())

    def __len__(self) -> int:
        return len(self._told())

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self._told()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, FactKeys)) and self._told() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._told())

    def __repr__(self) -> str:
        return repr(self._told())
