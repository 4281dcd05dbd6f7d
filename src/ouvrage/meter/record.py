"""What the meter has seen and not yet written: samples, marks, spans, notes.

Gathers into few long lines, since a line for each sample would triple the bytes. Several threads
add; one flushes. Bounded: units that come faster than ``MOST_MARKS`` between two flushes are
counted together and not timed.
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

from ouvrage.adapters.gpu_port import NAMES, Reading
from ouvrage.meter.spool_file import SpoolFile

COUNTERS = (
    "cpu_user_us cpu_system_us run_delay_us emitter_cpu_us emitter_run_delay_us blkio_delay_us"
    " throttled_us read_bytes write_bytes ctx_voluntary ctx_involuntary major_faults host_busy_us"
    " host_idle_us host_iowait_us host_steal_us psi_cpu_us psi_io_us psi_memory_us disk_read_bytes"
    " disk_write_bytes net_rx_bytes net_tx_bytes delay_cpu_us quota_periods quota_stopped"
    " refaulted_bytes"
)
GAUGES = "rss_bytes processes threads blocked running at_network memory_available_bytes cgroup_memory_bytes"
COLUMNS = tuple(f"{COUNTERS} {GAUGES}".split())
MOST_MARKS = 20_000
MOST_XIDS = 256

Values = dict[str, "int | None"]


class Record:
    """Gathers for one spool."""

    def __init__(self, spool: SpoolFile) -> None:
        self._spool = spool
        self._lock = threading.Lock()
        self._latest = -1
        self._times: list[int] = []
        self._samples: list[Values] = []
        self._marks: dict[tuple[str, str, int | None], list[tuple[str, int, int | None]]] = {}
        self._overflow: dict[tuple[str, str, int | None], int] = {}
        self._many = 0
        self._lines: list[dict[str, Any]] = []
        self._noted: set[str] = set()
        self._gpus: dict[int, list[tuple[int, Reading]]] = {}
        self._xids = 0
        self._meters: list[list[tuple[int, int | None, int | None]]] = []
        self._servers: list[list[tuple[int, dict[str, int]]]] = []

    def sample(self, t: int, values: Values) -> None:
        """The counters and gauges at ``t``; times only rise, and at one moment the later holds."""
        with self._lock:
            if t > self._latest:
                self._latest = t
                self._times.append(t)
                self._samples.append(values)
            elif t == self._latest and self._samples:
                self._samples[-1] = values

    def mark(self, name: str, via: str, pid: int | None, mark: str, n: int, t: int | None) -> None:
        """One boundary of a unit."""
        key = (name, via, pid)
        with self._lock:
            if self._many < MOST_MARKS:
                self._many += 1
                self._marks.setdefault(key, []).append((mark, n, t))
            elif mark != "head":
                self._overflow[key] = self._overflow.get(key, 0) + (n if mark == "count" else 1)

    def spans(self, line: dict[str, Any]) -> None:
        """What a thread of the command said about its time."""
        with self._lock:
            self._lines.append({"k": "spans", **line})

    def gpu(self, number: int, t: int, about: dict[str, Any]) -> None:
        """A GPU that was found, and its number in this run."""
        with self._lock:
            self._lines.append({"k": "gpu", "gpu": number, "t": t, "about": about})

    def gpu_sample(self, number: int, t: int, values: Reading) -> None:
        """One reading of a GPU."""
        with self._lock:
            self._gpus.setdefault(number, []).append((t, values))

    def around(self, t: int, value: Any) -> None:
        """A statement about what surrounds the command: an instance of one of ``model.around``."""
        told = {name: item for name, item in asdict(value).items() if name != "run"}
        with self._lock:
            self._lines.append({"k": "around", "kind": value.KIND, "t": t, "value": told})

    def xid(self, gpu: int | None, t: int, xid: int) -> None:
        """The driver reported an error of a GPU; only so many of one run are kept apart."""
        from ouvrage.model.around import RunXid

        with self._lock:
            self._xids += 1
            many = self._xids
        if many <= MOST_XIDS:
            self.around(t, RunXid(run="", gpu=gpu, at_us=t, xid=xid))
        else:
            self.note(t, "gpu/xids", f"more than {MOST_XIDS} Xid errors: the others are not kept")

    def electricity(self, amount: str, currency: str) -> None:
        """What the user says a kilowatt-hour costs."""
        with self._lock:
            self._lines.append({"k": "electricity", "amount": amount, "currency": currency})

    def meter(self, kind: str, name: str, covers: str, t: int) -> int:
        """A meter of energy that was found; its number in this run."""
        with self._lock:
            number = len(self._meters)
            self._meters.append([])
            about = {"kind": kind, "name": name, "covers": covers}
            self._lines.append({"k": "meter", "meter": number, "t": t, **about})
            return number

    def meter_sample(
        self, number: int, t: int, power_mw: int | None, energy_uj: int | None
    ) -> None:
        """One reading of a meter of energy."""
        with self._lock:
            self._meters[number].append((t, power_mw, energy_uj))

    def server(self, about: dict[str, Any], t: int) -> int:
        """A model server that told about itself; its number in this run."""
        with self._lock:
            number = len(self._servers)
            self._servers.append([])
            self._lines.append({"k": "server", "server": number, "t": t, "about": about})
            return number

    def server_sample(self, number: int, t: int, columns: dict[str, int]) -> None:
        """One reading of a model server; times only rise."""
        with self._lock:
            held = self._servers[number]
            if not held or t > held[-1][0]:
                held.append((t, columns))

    def requests(self, line: dict[str, Any]) -> None:
        """Requests that a server printed, as a line of the spool."""
        with self._lock:
            self._lines.append({"k": "requests", **line})

    def note(self, t: int, code: str, text: str) -> None:
        """Something the meter met; each code once a run."""
        with self._lock:
            if code not in self._noted:
                self._noted.add(code)
                self._lines.append({"k": "note", "t": t, "code": code, "text": text})

    def flush(self, *, sync: bool = False) -> None:
        """Hand everything gathered to the spool and the spool to the disk."""
        with self._lock:
            for line in self._gathered():
                self._spool.write(line)
        self._spool.flush(sync=sync)

    def end(self, line: dict[str, Any]) -> None:
        """The last line of the run."""
        self.flush()
        self._spool.write({"k": "end", **line})
        self._spool.flush(sync=True)

    def _gathered(self) -> list[dict[str, Any]]:
        lines = [*self._sample_line(), *self._mark_lines(), *self._lines]
        self._lines = []
        return [*lines, *self._gpu_lines(), *self._meter_lines(), *self._server_lines()]

    def _server_lines(self) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        for number, readings in enumerate(self._servers):
            if readings:
                names = dict.fromkeys(name for _, columns in readings for name in columns)
                told = {name: [columns.get(name) for _, columns in readings] for name in names}
                times = [t for t, _ in readings]
                lines.append({"k": "servers", "server": number, "t": times, "c": told})
                self._servers[number] = []
        return lines

    def _gpu_lines(self) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        for number, readings in self._gpus.items():
            columns = zip(NAMES, zip(*(values for _, values in readings), strict=True), strict=True)
            told = {name: column for name, column in columns if column.count(None) < len(column)}
            times = [t for t, _ in readings]
            lines.append({"k": "gpus", "gpu": number, "t": times, "c": told})
        self._gpus = {}
        return lines

    def _meter_lines(self) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        for number, readings in enumerate(self._meters):
            if readings:
                times, power, energy = (list(column) for column in zip(*readings, strict=True))
                columns = {"power_mw": power, "energy_uj": energy}
                told = {
                    name: held for name, held in columns.items() if any(v is not None for v in held)
                }
                lines.append({"k": "meters", "meter": number, "t": times, "c": told})
                readings.clear()
        return lines

    def _sample_line(self) -> list[dict[str, Any]]:
        times, samples = self._times, self._samples
        if not times:
            return []
        columns = {name: [values.get(name) for values in samples] for name in COLUMNS}
        told = {
            name: column for name, column in columns.items() if column.count(None) < len(column)
        }
        self._times, self._samples = [], []
        return [{"k": "samples", "t": times, "c": told}]

    def _mark_lines(self) -> list[dict[str, Any]]:
        for key, count in self._overflow.items():
            self._marks.setdefault(key, []).append(("count", count, None))
        lines = [
            {
                "k": "marks",
                "name": name,
                "via": via,
                "pid": pid,
                "mark": [mark for mark, _, _ in marks],
                "n": [n for _, n, _ in marks],
                "t": [t for _, _, t in marks],
            }
            for (name, via, pid), marks in self._marks.items()
        ]
        self._marks, self._overflow, self._many = {}, {}, 0
        return lines
