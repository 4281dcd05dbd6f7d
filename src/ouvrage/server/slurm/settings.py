"""What the server must know of the Slurm that gives out its places.

Decides only which words there are; where they stand (``[slurm]`` of ``server.toml``) and how they are checked is ``configuration``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSettings:
    """``rest``: slurmrestd's address; ``user``: as whom places are asked for, a user of every node.

    ``places``: the directory on every node in which batch jobs and runners meet. ``partition`` and ``qos`` None: Slurm's own defaults;
    ``partitions`` by offer. ``interruptible_qos`` is for offers that may be interrupted. ``accounts``: Slurm's account by ``organisation/project``;
    a project that is not named there gets one of its own. ``conf``: slurm.conf, None where it is in its usual place.
    """

    rest: str
    user: str
    places: str
    conf: str | None = None
    partition: str | None = None
    qos: str | None = None
    interruptible_qos: str | None = None
    partitions: Mapping[str, str] = field(default_factory=dict)
    accounts: Mapping[str, str] = field(default_factory=dict)
