"""Figures of a served model from what its server counts about itself: metrics, or rates in a log.

Decides which windows are added up (those of every server that told in the chosen way), and that a
cost stands on the time in which its tokens were counted, not on the whole run: a server that was
still loading had counted nothing yet. Quantiles come from histograms, so each has the ends of its
bucket as its range; beyond the last bucket only a least value is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest, whole
from ouvrage.evidence.figures import Figure, known, unknown
from ouvrage.metering.run_view import RunView
from ouvrage.metering.serving import QUANTILES, Within, bucket_quantile
from ouvrage.model.serving import RunServer, RunServerWindow
from ouvrage.pricing.inference import Tokens, costs, path_of, per_second

US = 1_000_000
HISTOGRAMS = {
    "first_token_s": ("first", "the server's time to first token"),
    "between_tokens_s": ("gap", "the server's time between tokens"),
    "answer_s": ("took", "the server's time of a whole request"),
}
NOT_TOLD = "the server does not count it"
NO_TIMES = {
    "log": "the mean rates in a log tell no times; add --metrics URL",
    "metrics": "the server has no such histogram",
}


def servers_told(view: RunView, via: str) -> list[RunServer]:
    """The servers that told in this way, and of which at least one window is known."""
    told = {window.server for window in view.server_windows if window.covered_us}
    return [server for server in view.servers if server.via == via and server.server in told]


def server_figures(view: RunView, via: str) -> Iterable[Figure]:
    """Everything that the servers told in one way."""
    servers = servers_told(view, via)
    numbers = {server.server for server in servers}
    windows = [window for window in view.server_windows if window.server in numbers]
    facts = view.facts("run.server", "run.server_window")
    grade = weakest((Grade.METERED, view.grade))
    counted = _counted_us(windows, len(servers))
    engine = " and ".join(sorted({server.engine for server in servers}))
    yield known(path_of("engine"), engine, "text", grade, "by the names it uses", facts=facts)
    yield known(
        path_of("counted_s"), Fraction(counted, US), "s", grade,
        "time in which its counters were read when due and did not fall back", facts=facts,
    )  # fmt: skip
    yield from _totals(view, windows, facts, grade, counted)
    yield from _gauges(windows, facts, grade)
    for name, (which, method) in HISTOGRAMS.items():
        yield from _histogram(servers, windows, name, which, method, via, facts, grade)
    yield from _cost(view, windows, counted, grade)


def _counted_us(windows: Sequence[RunServerWindow], servers: int) -> int:
    """The time that the counters cover; of several servers their mean."""
    return sum(window.covered_us for window in windows) // max(1, servers)


def _sum(windows: Iterable[RunServerWindow], name: str) -> int | None:
    values = [value for window in windows if (value := getattr(window, name)) is not None]
    return sum(values) if values else None


def _totals(
    view: RunView,
    windows: Sequence[RunServerWindow],
    facts: tuple[str, ...],
    grade: Grade,
    counted: int,
) -> Iterable[Figure]:
    rows = {
        "requests.finished": ("requests", "1", "requests that the server counts as done"),
        "requests.failed": ("aborted", "1", "requests that it counts as aborted"),
        "tokens_in.total": ("tokens_in", "token", "tokens of prompts, as the server counts them"),
        "tokens_out.total": ("tokens_out", "token", "tokens made, as the server counts them"),
    }
    rates = {
        "requests.finished": "requests.per_second",
        "tokens_in.total": "tokens_per_second.in",
        "tokens_out.total": "tokens_per_second.out",
    }
    for name, (column, unit, method) in rows.items():
        value, grounds = _sum(windows, column), facts
        if value is None and column == "requests":
            value, grounds, method = _access_log(view)
        if value is None:
            yield unknown(path_of(name), unit, method, NOT_TOLD)
        else:
            yield known(path_of(name), value, unit, grade, method, facts=grounds)
        if name in rates:
            yield per_second(view, rates[name], path_of(name), value, grade, counted)


def _access_log(view: RunView) -> tuple[int | None, tuple[str, ...], str]:
    """Requests by the lines that the server printed when it answered them."""
    pairs = zip(view.marks, view.facts("run.marks"), strict=True)
    held = [(m, key) for m, key in pairs if m.name == "request" and m.via.startswith("line:")]
    method = "requests that the server counts as done; here the lines of its access log"
    number = sum(sum(marks.n) for marks, _ in held)
    return (number if held else None), tuple(key for _, key in held), method


def _gauges(
    windows: Sequence[RunServerWindow], facts: tuple[str, ...], grade: Grade
) -> Iterable[Figure]:
    covered = sum(window.gauges_covered_us for window in windows)
    for root, column, words in (
        ("concurrency", "running", "requests that the server works on"),
        ("waiting", "waiting", "requests that wait in its queue"),
    ):
        total = _sum(windows, f"{column}_us")
        most = [v for w in windows if (v := getattr(w, f"{column}_max")) is not None]
        path, method = path_of(f"{root}.mean"), f"{words}, mean of the readings over time"
        if total is None or not covered:
            yield unknown(path, "1", method, NOT_TOLD)
        else:
            yield known(path, Fraction(total, covered), "1", grade, method, facts=facts)
        path, method = path_of(f"{root}.max"), f"{words}, most at any reading"
        if most:
            yield known(path, max(most), "1", grade, method, facts=facts)
        else:
            yield unknown(path, "1", method, NOT_TOLD)


def _histogram(
    servers: Sequence[RunServer],
    windows: Sequence[RunServerWindow],
    name: str,
    which: str,
    method: str,
    via: str,
    facts: tuple[str, ...],
    grade: Grade,
) -> Iterable[Figure]:
    shapes = {getattr(server, f"{which}_bounds_us") for server in servers} - {()}
    path = path_of(name)
    if len(shapes) != 1:
        why = "its servers have different buckets" if shapes else NO_TIMES[via]
        for part in ("samples", *QUANTILES):
            yield unknown(f"{path}.{part}", "1" if part == "samples" else "s", method, why)
        return
    (bounds,) = shapes
    counts = [0] * (len(bounds) + 1)
    for window in windows:
        for index, count in enumerate(getattr(window, f"{which}_counts")[: len(counts)]):
            counts[index] += count
    yield known(f"{path}.samples", sum(counts), "1", grade, f"observations: {method}", facts=facts)
    for part, share in QUANTILES.items():
        found = bucket_quantile(bounds, counts, share)
        yield from _within(f"{path}.{part}", found, sum(counts), method, facts, grade)


def _within(
    path: str,
    found: Within | None,
    many: int,
    method: str,
    facts: tuple[str, ...],
    grade: Grade,
) -> Iterable[Figure]:
    """A quantile of a histogram and the ends of its bucket."""
    words = f"{method}, of {many} observations in a histogram"
    inside = f"{words}: within its bucket as if spread evenly, so anything from _low to _high"
    name = path.rsplit(".", 1)[1]
    if found is None:
        yield unknown(path, "s", words, f"{many} observations are too few for {name}")
        return
    low = known(
        f"{path}_low", found.low / US, "s", grade, f"{words}: lower end of its bucket", facts=facts
    )
    if found.value is None or found.high is None:
        why = f"more than {float(found.low / US):g} s: the last bucket has no end"
        yield unknown(path, "s", inside, why)
        yield low
        return
    guess = weakest((Grade.ASSUMED, grade))
    yield known(path, found.value / US, "s", guess, inside, facts=facts)
    yield low
    high = f"{words}: upper end of its bucket"
    yield known(f"{path}_high", found.high / US, "s", grade, high, facts=facts)


def _cost(
    view: RunView, windows: Sequence[RunServerWindow], counted: int, grade: Grade
) -> Iterable[Figure]:
    price = view.started.price
    path, method = path_of("cost_of_counted"), "price x the time in which its counters were read"
    if price is None:
        yield unknown(path, "1", method, "no price was given; add --price, for example --price 2/h")
    else:
        inputs = ("price.amount", path_of("counted_s"))
        guess = weakest((Grade.ASSUMED, view.grade))
        paid = price.cost_of(counted)
        yield known(path, paid, price.currency, guess, method, inputs=inputs)
    tokens = {
        way: Tokens(total=_sum(windows, f"tokens_{way}"), shares=whole(grade), why=NOT_TOLD)
        for way in ("in", "out")
    }
    yield from costs(view, tokens, counted, path_of("cost_of_counted"))
