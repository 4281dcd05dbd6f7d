"""How an attempt ended, as it is told by whoever saw it or is left to say it.

Decides nothing; ``attempts`` records it, and ``blaming`` may lay it to its machine first.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.model.work import Peaks

NO_PEAKS = Peaks(
    memory_bytes=None, cpu_us=None, processes=None, disk_bytes=None, sent_bytes=None,
    received_bytes=None, oom_kills=None,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How an attempt ended; ``began_us`` None where its command never did.

    ``given_up``: nobody saw its end, and nobody can say that it has one.
    """

    began_us: int | None
    ended_us: int
    wall_us: int
    outcome: str
    cause: str
    reason: str
    exit_code: int | None = None
    signal: int | None = None
    isolation: str = "none"
    peaks: Peaks = NO_PEAKS
    scrub: str = "none"
    scrub_detail: str = ""
    given_up: bool = False
