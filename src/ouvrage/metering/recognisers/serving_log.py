"""What a model server's log tells beyond finished units: tokens in, times, requests in flight.

Decides how llama.cpp's three lines of one request become one row, and how vLLM's mean rates become
counters that can be read like those of a metrics page: each line speaks of the seconds before it, so
a pause between lines is no gap and no work. It keeps what was told until somebody takes it.
"""

from __future__ import annotations

from typing import Any

from ouvrage.metering.recognisers.rule import RATE, Reading
from ouvrage.metering.recognisers.tally import RATE_EVERY_S, Rate

PROMPT, EVAL, DONE, RATES = "prompt", "eval", "done", "rates"
MOST_KEPT = 2000
_MOST_ENGINES = 64
_SECOND = 1_000_000


class _Engine:
    """One engine behind a vLLM server: what it has counted so far, and how many it works on."""

    def __init__(self) -> None:
        self.into, self.out = Rate(), Rate()
        self.tokens_in = self.tokens_out = self.running = self.waiting = 0


class ServingLog:
    """Gathers requests and readings; ``dropped`` counts requests that nobody took in time."""

    def __init__(self) -> None:
        self.dropped = 0
        self._rows: list[dict[str, Any]] = []
        self._readings: list[tuple[int, dict[str, int]]] = []
        self._engines: dict[bytes, _Engine] = {}
        self._prompt: tuple[int | None, int | None] = (None, None)
        self._eval: tuple[int | None, int | None] = (None, None)
        self._latest = -1

    def take(self, line: Reading, t: int | None) -> None:
        """What one line told; ``t`` is its moment where that is known."""
        kind, *numbers = line.told or ("",)
        if kind == PROMPT:
            self._prompt, self._eval = (numbers[0], numbers[1]), (None, None)
        elif kind == EVAL:
            self._eval = (numbers[0], numbers[1])
        elif kind == DONE:
            self._finish(numbers[0], t)
        elif kind == RATES:
            self._rates(line, numbers, t)

    def _finish(self, took_us: int, t: int | None) -> None:
        first, into = self._prompt
        making, out = self._eval
        last = None if first is None or making is None else first + making
        self._prompt = self._eval = (None, None)
        if len(self._rows) >= MOST_KEPT:
            self.dropped += 1
            return
        row: dict[str, Any] = {
            "ended_us": t,
            "first_us": first,
            "last_us": last,
            "took_us": took_us,
        }
        row |= {"tokens_in": into, "tokens_out": out, "status": "ok"}
        row["counted"] = None if out is None else "usage"
        self._rows.append(row)

    def _rates(self, line: Reading, numbers: list[int], t: int | None) -> None:
        if line.series not in self._engines and len(self._engines) >= _MOST_ENGINES:
            return
        engine = self._engines.setdefault(line.series, _Engine())
        before = self._sums()
        into, out, engine.running, engine.waiting = numbers
        engine.tokens_in += engine.into.gain(Reading(RATE, into, clock=line.clock))
        engine.tokens_out += engine.out.gain(Reading(RATE, out, clock=line.clock))
        if t is None or len(self._readings) >= MOST_KEPT:
            return
        began = max(0, t - RATE_EVERY_S * _SECOND)
        if self._latest < began:
            self._readings.append((began, before))
        if t > self._latest:
            self._readings.append((t, self._sums()))
            self._latest = t

    def _sums(self) -> dict[str, int]:
        names = ("tokens_in", "tokens_out", "running", "waiting")
        engines = self._engines.values()
        return {name: sum(getattr(engine, name) for engine in engines) for name in names}

    def requests(self) -> list[dict[str, Any]]:
        """The requests told since the last time: of each the columns of ``RunRequests`` it tells."""
        rows, self._rows = self._rows, []
        return rows

    def readings(self) -> list[tuple[int, dict[str, int]]]:
        """The readings told since the last time: moments and columns of ``ServerTrack``."""
        readings, self._readings = self._readings, []
        return readings
