"""The child that asks a model server for its metrics: a reading a second, under a deadline.

A server may take minutes until it answers, so silence before its first answer is no fault: it is
told as waiting. Afterwards what fails is told by its words, and tried again. It ends when its input
is closed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.serving_metrics import MetricsFault, MetricsPage
from ouvrage.meter.wall_probe import serve


class Asker:
    """Asks one page, and remembers whether it ever answered."""

    def __init__(self, page: MetricsPage) -> None:
        self._page = page
        self._known: Any = None

    def ask(self) -> dict[str, Any]:
        """One line: a reading, that it is still waiting, or what failed."""
        try:
            reading = self._page.read()
        except MetricsFault as error:
            if self._known is None:
                return {"k": "waiting", "text": str(error)[:200]}
            text = f"the metrics could not be read for a while: {str(error)[:200]}"
            return {"k": "fault", "code": "no-answer", "text": text}
        line: dict[str, Any] = {"k": "read", "t": monotonic_us(), "c": dict(reading.columns)}
        about = {"engine": reading.engine, "bounds": dict(reading.bounds_us)}
        if about != self._known:
            self._known = line["about"] = about
        return line


def main(arguments: Sequence[str]) -> int:
    """Ask the page behind the one URL given."""
    asker = Asker(MetricsPage(arguments[0]))
    with contextlib.suppress(BrokenPipeError):
        serve(asker.ask, sys.stdin.fileno(), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
