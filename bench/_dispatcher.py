"""One decision of AccaSim's dispatcher over a queue read as JSON from standard input; run with its own Python.

Decides nothing of ours: it puts the same nodes and jobs into that library's classes, times its EASY backfilling with
best-fit placement in processor time, and prints the best of three and how many jobs it would start.
"""

from __future__ import annotations

import collections
import collections.abc
import copy
import json
import logging
import sys
import time
from typing import Any


def main() -> None:
    """Read ``{"nodes": n, "node": {...}, "jobs": [[{...}, seconds], ...]}``, print ``{"s": …, "starts": …}``."""
    collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined] where Python before 3.10 had it
    from accasim.base.allocator_class import (  # pyright: ignore[reportMissingImports] lives in the peer's own venv
        BestFit,
    )
    from accasim.base.event_class import (  # pyright: ignore[reportMissingImports] as above
        Event,
    )
    from accasim.base.resource_manager_class import (  # pyright: ignore[reportMissingImports] as above
        ResourceManager,
        Resources,
    )
    from accasim.base.scheduler_class import (  # pyright: ignore[reportMissingImports] as above
        EASYBackfilling,
    )

    logging.Logger.trace = logging.Logger.debug  # type: ignore[attr-defined] its simulator adds this level
    given: dict[str, Any] = json.load(sys.stdin)
    best, starts = 1e9, 0
    for _ in range(3):
        manager = ResourceManager(Resources({"node": given["node"]}, {"node": given["nodes"]}))
        scheduler = EASYBackfilling(BestFit())
        scheduler.set_resource_manager(manager)
        jobs = []
        for number, (needs, seconds) in enumerate(given["jobs"]):
            job = Event(f"{number:05}", 0, seconds, 1, copy.copy(needs))
            job.expected_duration = seconds
            jobs.append(job)
        known = {job.id: job for job in jobs}
        began = time.process_time()
        decided, _ = scheduler.schedule(1, known, list(known))
        best = min(best, time.process_time() - began)
        starts = sum(1 for _, _, where in decided if where)
    print(json.dumps({"s": best, "starts": starts}))


if __name__ == "__main__":
    main()
