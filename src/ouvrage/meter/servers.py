"""What model servers say about themselves while a command runs, on record: metrics and log lines.

Decides the number that a server has in a run: another one where its engine or its buckets change,
since readings of different shape cannot be compared. What the columns mean is ``metering.serving``'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ouvrage.meter.feed import Feed, Reads, command

if TYPE_CHECKING:
    from ouvrage.adapters.process_tree import ProcessTree
    from ouvrage.meter.record import Record
    from ouvrage.metering.recognisers.serving_log import ServingLog

_BOUNDS = ("first", "gap", "took")


class MetricsFeed(Feed):
    """A feed of a metrics page; at the end it says so where the page never answered."""

    def __init__(
        self, url: str, record: Record, tree: ProcessTree, origin: int, period_us: int
    ) -> None:
        words = command("ouvrage.meter.metrics_probe", url)
        reads = Reads(code="metrics", what="the metrics of the server", words=words)
        self._server = _Server(url, record, origin)
        super().__init__(reads, self._server.hear, record, tree, origin, period_us)

    def finish(self, now: int) -> None:
        """The last reading, and a word where there was never a first."""
        super().finish(now)
        if self._server.number is None:
            why = self._server.waiting or "its process said nothing"
            self._note(now, "never", f"{self._server.url} told nothing to the end: {why}")


class _Server:
    def __init__(self, url: str, record: Record, origin: int) -> None:
        self.url = url
        self.number: int | None = None
        self.waiting = ""
        self._record = record
        self._origin = origin

    def hear(self, said: dict[str, Any], now: int) -> None:
        """One object that the child said."""
        if said["k"] == "waiting":
            self.waiting = str(said["text"])
            return
        t = min(int(said["t"]), now) - self._origin
        columns = {str(name): int(value) for name, value in said["c"].items()}
        if t < 0 or any(value < 0 for value in columns.values()):
            return
        if "about" in said:
            bounds = said["about"]["bounds"]
            about = {
                f"{name}_bounds_us": [int(bound) for bound in bounds.get(name, ())]
                for name in _BOUNDS
            }
            engine = str(said["about"]["engine"])
            told = {"engine": engine, "via": "metrics", "where": self.url, **about}
            self.number = self._record.server(told, t)
        if self.number is not None:
            self._record.server_sample(self.number, t, columns)


def columns_of(requests: list[dict[str, Any]]) -> dict[str, Any]:
    """Requests as the columns of ``RunRequests``; what is not told is None."""
    # Imported when the first request is told: a command that serves nothing does not wait for it.
    from ouvrage.model.serving import REQUEST_COLUMNS

    return {name: [request.get(name) for request in requests] for name in REQUEST_COLUMNS}


class LogServer:
    """What a server's log told, brought on record: requests one by one, rates as readings."""

    def __init__(self, log: ServingLog, record: Record) -> None:
        self._log = log
        self._record = record
        self._number: int | None = None

    def keep(self) -> None:
        """Take what was told since the last time."""
        requests, readings = self._log.requests(), self._log.readings()
        if requests:
            self._record.requests({"via": "log", "c": columns_of(requests)})
        if readings and self._number is None:
            bounds: dict[str, Any] = {f"{name}_bounds_us": [] for name in _BOUNDS}
            about = {"engine": "vLLM", "via": "log", "where": "its output", **bounds}
            self._number = self._record.server(about, readings[0][0])
        for t, columns in readings:
            if self._number is not None:
                self._record.server_sample(self._number, t, columns)
