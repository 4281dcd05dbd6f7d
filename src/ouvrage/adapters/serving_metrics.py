"""A model server's metrics page (Prometheus text) as counters, gauges and buckets.

Decides which names of which server mean what; they differ by server and by version, and a table says
where each was found. Series of one name (models, engines, reasons) are added up. A page without any
name of a known server is refused. Only what stands in the table is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ouvrage.adapters.prometheus_text import series
from ouvrage.adapters.wall_meter import fetched

MOST_BYTES = 4 << 20
MOST_BUCKETS = 64
_GREATEST = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What one server calls things; the first name of several that is on its page counts.

    ``aborted`` are label values of the counter of requests that mean none was finished.
    """

    engine: str
    columns: Mapping[str, tuple[str, ...]]
    histograms: Mapping[str, tuple[str, ...]]
    aborted: tuple[str, ...] = ()


ENGINES = (
    # docs.vllm.ai, "Production Metrics" of 0.7 to 0.12 and design/metrics of V1. 0.11 renamed the
    # time per output token to the latency between tokens; some versions print both.
    Names(
        engine="vLLM",
        columns={
            "requests": ("vllm:request_success_total", "vllm:request_success"),
            "tokens_in": ("vllm:prompt_tokens_total", "vllm:prompt_tokens"),
            "tokens_out": ("vllm:generation_tokens_total", "vllm:generation_tokens"),
            "running": ("vllm:num_requests_running",),
            "waiting": ("vllm:num_requests_waiting",),
        },
        histograms={
            "first": ("vllm:time_to_first_token_seconds",),
            "gap": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
            "took": ("vllm:e2e_request_latency_seconds",),
        },
        aborted=("abort", "error"),
    ),
    # tools/server/README.md of llama.cpp, "GET /metrics" (switched on by --metrics). It counts
    # neither requests nor their times.
    Names(
        engine="llama.cpp",
        columns={
            "tokens_in": ("llamacpp:prompt_tokens_total",),
            "tokens_out": ("llamacpp:tokens_predicted_total",),
            "running": ("llamacpp:requests_processing",),
            "waiting": ("llamacpp:requests_deferred",),
        },
        histograms={},
    ),
)


class MetricsFault(Exception):
    """The page is not there, or not that of a server that is known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsReading:
    """One reading: columns as ``ServerTrack`` names them, and the upper ends of the buckets."""

    engine: str
    columns: Mapping[str, int]
    bounds_us: Mapping[str, tuple[int, ...]]


class MetricsPage:
    """The page behind a URL."""

    def __init__(self, url: str) -> None:
        self._url = url

    def read(self) -> MetricsReading:
        """A reading now. Raises ``MetricsFault``."""
        try:
            data = fetched(self._url, MOST_BYTES)
        except (OSError, ValueError) as error:
            raise MetricsFault(str(error) or type(error).__name__) from error
        return reading_of(data.decode("utf-8", "replace"))


def reading_of(text: str) -> MetricsReading:
    """What a page says. Raises ``MetricsFault`` where it names nothing that is known here."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for name, labels, value in _series(text):
        found.setdefault(name, []).append((labels, value))
    for names in ENGINES:
        columns = dict(_columns(names, found))
        if columns:
            bounds = {which: _histogram(called, found, which, columns)
                      for which, called in names.histograms.items()}  # fmt: skip
            return MetricsReading(engine=names.engine, columns=columns, bounds_us=bounds)
    raise MetricsFault("the page names no counter of a server that is known here")


def _series(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Every series: name, labels, value; what is no number, or none that can be, is passed over."""
    for name, labels, told in series(text):
        try:
            value = float(told)
        except ValueError:
            continue
        if 0 <= value < _GREATEST:
            yield name, labels, value


Found = Mapping[str, list[tuple[dict[str, str], float]]]


def _columns(names: Names, series: Found) -> Iterator[tuple[str, int]]:
    for column, called in names.columns.items():
        name = next((name for name in called if name in series), None)
        if name is None:
            continue
        bad = [v for labels, v in series[name] if _aborted(names, labels)]
        whole = sum(value for _, value in series[name])
        yield column, round(whole - sum(bad)) if column == "requests" else round(whole)
        if column == "requests":
            yield "aborted", round(sum(bad))


def _aborted(names: Names, labels: Mapping[str, str]) -> bool:
    return labels.get("finished_reason") in names.aborted


def _histogram(
    called: tuple[str, ...], series: Found, which: str, columns: dict[str, int]
) -> tuple[int, ...]:
    """The bounds of a histogram; its cumulated counts are put among the columns."""
    name = next((name for name in called if f"{name}_bucket" in series), None)
    if name is None:
        return ()
    counts: dict[float, float] = {}
    for labels, value in series[f"{name}_bucket"]:
        try:
            bound = float(labels["le"])
        except (KeyError, ValueError):
            continue
        counts[bound] = counts.get(bound, 0) + value
    ordered = sorted(counts)
    bounds = tuple(round(bound * 1_000_000) for bound in ordered[:-1])
    rising = all(b > a for a, b in zip((0, *bounds), bounds, strict=False))
    if not bounds or ordered[-1] != float("inf") or len(bounds) > MOST_BUCKETS or not rising:
        return ()
    columns.update({f"{which}_{i}": round(counts[bound]) for i, bound in enumerate(ordered)})
    return bounds
