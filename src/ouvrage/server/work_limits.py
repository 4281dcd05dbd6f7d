"""How long the server waits before it judges, and how much it takes: of logs, of files, of one attempt's processes.

Decides the defaults and nothing else. They are generous where a wrong judgement would cost somebody their work: a runner that is away
is only away, until so much time has passed that nobody can be expected to wait longer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ouvrage.base.time import DAY, HOUR, MINUTE, SECOND
from ouvrage.placement.idle import IdlePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLimits:
    """Times in microseconds, sizes in bytes.

    A runner not heard for ``away_us`` gets no new work; after ``lost_us``, of which a server
    has listened for ``listened_us`` itself, its attempts are given up. One that does not know an attempt
    which it knew, for ``missing_us``, has lost it. ``tick_us`` is how often reconcilers look by themselves (0: never), ``claim_us`` how long
    one server process may hold a task; ``several`` says that there is more than one. ``free_us`` is how much presence one fact states.
    ``sent_bytes`` is how much a project may hold of runs that its members sent. A file of telemetry is sealed once it has
    ``telemetry_file_bytes`` or is ``telemetry_file_us`` old; beyond ``telemetry_bytes`` in all the oldest go. A service
    whose health check fails for ``unhealthy_us`` is ended; ``idle`` says when GPUs that stand idle are warned of.
    """

    away_us: int = 90 * SECOND
    lost_us: int = 2 * HOUR
    listened_us: int = 5 * MINUTE
    missing_us: int = 30 * SECOND
    tick_us: int = 5 * SECOND
    claim_us: int = 15 * SECOND
    several: bool = False
    free_us: int = HOUR
    unhealthy_us: int = MINUTE
    idle: IdlePolicy = field(default_factory=IdlePolicy)
    repeat_us: int = 2 * SECOND
    notice_us: int = MINUTE
    log_bytes: int = 64 << 20
    log_piece_bytes: int = 1 << 20
    file_bytes: int = 8 << 30
    files_of_a_job: int = 200
    processes: int = 4096
    waiting: int = 20_000
    sent_bytes: int = 4 << 30
    telemetry_file_bytes: int = 16 << 20
    telemetry_file_us: int = DAY
    telemetry_bytes: int = 10 << 30
