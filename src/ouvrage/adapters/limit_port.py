"""What a library for GPUs must offer whoever sets power limits.

The port that ``nvml_limits`` fills. It stands apart from ``gpu_port`` because the process that reads
cards beside every run sets no limit, and must not wait for what only this needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Refused(Exception):
    """A limit was not set or told: ``permission``, ``unsupported``, ``lost``, ``silent``, ``driver``."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLimits:
    """A card's power limit in milliwatts, what it may be, and what speaks against changing it.

    None is what the card did not tell. ``processes`` are the ids of those that compute on it,
    ``persistence`` is 0 where the driver forgets the limit with its last user.
    """

    index: int
    uuid: str
    name: str
    limit_mw: int | None
    least_mw: int | None
    most_mw: int | None
    default_mw: int | None
    persistence: int | None
    mig: bool
    processes: list[int] | None


class LimitLibrary(Protocol):
    """A way to the power limits of this machine's GPUs."""

    def open(self) -> None:
        """Begin. Raises ``Unavailable``."""
        ...

    def look(self) -> list[CardLimits]:
        """Every card that answers. Raises ``Refused``."""
        ...

    def set(self, uuid: str, milliwatts: int) -> int:
        """Set a card's limit; what it reads afterwards. Raises ``Refused``."""
        ...
