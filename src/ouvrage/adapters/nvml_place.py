"""Whether NVIDIA's library is on this machine at all, without loading it.

Decides only that: a machine without GPUs should pay nothing for them, and loading a driver's
library into the meter itself would put the meter at the driver's mercy. It looks where the dynamic
loader looks; a wrong yes costs one short child process, a wrong no costs the GPUs' figures.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

LIBRARY = "libnvidia-ml.so.1"
_CACHE = "/etc/ld.so.cache"
_USUAL = (
    "/lib",
    "/usr/lib",
    "/lib64",
    "/usr/lib64",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
)


def is_here(environment: Mapping[str, str], cache: str = _CACHE) -> bool:
    """Whether the loader would find the library in this environment."""
    named = environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if any(os.path.exists(os.path.join(place, LIBRARY)) for place in named if place):
        return True
    if LIBRARY in environment.get("LD_PRELOAD", ""):
        return True
    try:
        with open(cache, "rb") as file:
            if LIBRARY.encode() in file.read():
                return True
    except OSError:
        pass
    triplet = f"/usr/lib/{os.uname().machine}-linux-gnu"
    return any(os.path.exists(os.path.join(place, LIBRARY)) for place in (*_USUAL, triplet))
