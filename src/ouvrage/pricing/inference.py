"""Figures of a served language model: load, latencies, and what a million tokens cost under it.

Decides from which source a run's figures come, always one and named (requests timed by a replay,
else what the server's metrics count, else what its log says), and how cost is shared: tokens in and
tokens out each carry the whole cost in turn, since no measurement divides it between them. There is
no cost without the load beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade, Shares, weakest, weighted_shares, whole
from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.evidence.figures import Figure, Sheet, known, unknown
from ouvrage.metering.reckoning import Reckoning
from ouvrage.metering.run_view import RunView
from ouvrage.metering.serving import QUANTILES, Request, in_flight, quantile, requests_in
from ouvrage.model.serving import STATUSES

ROOT = "inference"
US = 1_000_000
MILLION = 1_000_000
NO_PRICE = "no price was given; add --price, for example --price 2/h"
SHARED = "alone carries the whole cost, so those of tokens in and out are never added"
LATENCIES = {
    "first_token_s": ("first_us", "from sending a request to its first token"),
    "between_tokens_s": ("gap_us", "mean time between the tokens of an answer"),
    "answer_s": ("took_us", "from sending a request to the end of its answer"),
}
LOG_TIMES = {
    "first_token_s": "the server's work on the prompt: its queue and the network are not in it",
    "between_tokens_s": LATENCIES["between_tokens_s"][1],
    "answer_s": "the server's work on a request: its queue and the network are not in it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """A total of tokens and how well it is known; None with the reason where it is not."""

    total: int | None
    shares: Shares
    why: str = ""

    @property
    def grade(self) -> Grade:
        """The weakest grade of its parts."""
        return max(self.shares)


def inference_figures(view: RunView, reckoning: Reckoning) -> Iterable[Figure]:
    """Every figure about a served model in the sheet of a run; none where nothing was served."""
    requests = requests_in(view.requests)
    replayed = [request for request in requests if request.via == "replay"]
    if view.load or replayed:
        yield _source(view, "replay", "requests sent and timed by this client")
        yield from _load(view)
        yield from _of_requests(view, replayed)
        yield from _steady(view, reckoning, replayed)
        return
    from ouvrage.pricing.inference_server import server_figures, servers_told

    if servers_told(view, "metrics"):
        yield _source(view, "metrics", "what the server's metrics count, read once a second")
        yield from server_figures(view, "metrics")
    elif requests:
        yield _source(view, "log", "what the server prints of each request")
        yield from _of_requests(view, requests)
    elif servers_told(view, "log"):
        yield _source(view, "log", "the mean rates that the server prints")
        yield from server_figures(view, "log")


def path_of(name: str) -> str:
    """The path of a figure about serving."""
    return f"{ROOT}.{name}"


def _source(view: RunView, source: str, method: str) -> Figure:
    facts = serving_facts(view)
    return known(path_of("source"), source, "text", view.grade, method, facts=facts)


def serving_facts(view: RunView) -> tuple[str, ...]:
    """The facts that figures about serving stand on."""
    kinds = ("run.load", "run.requests", "run.server", "run.server_window")
    return view.facts(*kinds)


def _load(view: RunView) -> Iterable[Figure]:
    load, facts = view.load, view.facts("run.load")
    if load is None:
        return
    paces = {
        "trace": f"the trace's moments x {load.speed_up}",
        "rate": f"{load.rate} a second on average",
        "concurrency": f"{load.concurrency} at once",
    }
    told = {
        "trace": (load.trace, "the file of requests, by its name"),
        "pace": (paces[load.arrivals], "when requests were to be sent"),
        "server": (load.server, "the address that was asked"),
        "model": (load.model, "the model that was asked for"),
        "endpoint": (load.endpoint, "the endpoint that was asked"),
    }
    for name, (text, method) in told.items():
        yield known(
            path_of(f"load.{name}"), text or "unnamed", "text", view.grade, method, facts=facts
        )
    for name in ("planned", "asked_in", "asked_out"):
        what = "requests planned" if name == "planned" else f"tokens {name[6:]} of all of them"
        yield known(
            path_of(f"load.{name}"), getattr(load, name), "1", view.grade, what, facts=facts
        )


def _of_requests(view: RunView, requests: Sequence[Request]) -> Iterable[Figure]:
    good = [request for request in requests if request.status == "ok"]
    yield from _counts(view, requests, good)
    for way in ("in", "out"):
        yield from _tokens(view, good, way)
    yield from _cached(view, good)
    yield from _latencies(view, good)
    yield from _concurrency(view, requests)
    yield from _lag(view, requests)
    tokens = {way: tokens_of(view, good, way) for way in ("in", "out")}
    yield from costs(view, tokens, view.wall_us, "cost.total")
    yield from _cost_of_requests(view, requests, len(good))


def _counts(
    view: RunView, requests: Sequence[Request], good: Sequence[Request]
) -> Iterable[Figure]:
    facts, grade = view.facts("run.requests", "run.load"), view.grade
    rows = {
        "requests.sent": (len(requests), "requests that were sent"),
        "requests.finished": (len(good), "requests that were answered in full"),
        "requests.failed": (len(requests) - len(good), "requests that were not"),
    }
    for status in STATUSES[1:]:
        number = sum(request.status == status for request in requests)
        if number:
            rows[f"failures.{status}"] = (number, f"requests that ended as {status}")
    for name, (value, method) in rows.items():
        yield known(path_of(name), value, "1", grade, method, facts=facts)
    yield per_second(view, "requests.per_second", path_of("requests.finished"), len(good), grade)


def per_second(
    view: RunView, name: str, of: str, amount: int | None, grade: Grade, us: int | None = None
) -> Figure:
    """An amount divided by a time, that of the whole run where no other is given."""
    method, length = "divided by the time", view.wall_us if us is None else us
    if amount is None or length <= 0:
        return unknown(path_of(name), "1/s", method, "the amount or the time is not known")
    over = "wall_s" if us is None else path_of("counted_s")
    value = Fraction(amount * US, length)
    return known(path_of(name), value, "1/s", grade, method, inputs=(of, over))


def tokens_of(view: RunView, good: Sequence[Request], way: str) -> Tokens:
    """The tokens of all answered requests, or why their number is not known."""
    told = [(getattr(request, f"tokens_{way}"), request.counted) for request in good]
    silent = sum(number is None for number, _ in told)
    if silent or not told:
        why = f"{silent} of {len(told)} answers did not say" if told else "no request was answered"
        return Tokens(total=None, shares={}, why=why)
    metered = weakest((Grade.METERED, view.grade))
    guessed = weakest((Grade.ASSUMED, view.grade))
    parts = [
        (Fraction(number or 0), whole(guessed if counted == "chunks" else metered))
        for number, counted in told
    ]
    total = sum(number or 0 for number, _ in told)
    return Tokens(total=total, shares=weighted_shares(parts) or whole(metered))


_COUNTED = {
    "in": "tokens of the prompts of answered requests, as the server counts them (usage)",
    "out": "tokens of answered requests, as the server counts them (usage); where it does not, the"
    " pieces that came, each taken for a token",
}


def _tokens(view: RunView, good: Sequence[Request], way: str) -> Iterable[Figure]:
    facts, tokens = view.facts("run.requests"), tokens_of(view, good, way)
    path, method = path_of(f"tokens_{way}"), _COUNTED[way]
    if tokens.total is None:
        for name in ("total", "p50", "p95"):
            yield unknown(f"{path}.{name}", "token", method, tokens.why)
        yield unknown(path_of(f"tokens_per_second.{way}"), "1/s", method, tokens.why)
        return
    yield known(
        f"{path}.total", tokens.total, "token", tokens.grade, method,
        facts=facts, shares=tokens.shares,
    )  # fmt: skip
    ordered = sorted(getattr(request, f"tokens_{way}") for request in good)
    for name in ("p50", "p95"):
        value = quantile(ordered, QUANTILES[name])
        yield _ranked(f"{path}.{name}", value, len(ordered), "token", tokens.grade, method, facts)
    name = f"tokens_per_second.{way}"
    yield per_second(view, name, f"{path}.total", tokens.total, tokens.grade)


def _ranked(
    path: str,
    value: int | Fraction | None,
    many: int,
    unit: str,
    grade: Grade,
    method: str,
    facts: tuple[str, ...],
) -> Figure:
    """A quantile, by nearest rank."""
    name = path.rsplit(".", 1)[1]
    words = f"{method}; {name} of {many} requests, by nearest rank"
    if value is None:
        return unknown(path, unit, words, f"{many} requests are too few for {name}")
    return known(path, value, unit, grade, words, facts=facts)


def _cached(view: RunView, good: Sequence[Request]) -> Iterable[Figure]:
    told = [request.tokens_cached for request in good if request.tokens_cached is not None]
    if told:
        method = "tokens of prompts that the server says it took from its cache"
        grade = weakest((Grade.METERED, view.grade))
        facts = view.facts("run.requests")
        yield known(path_of("tokens_in.cached"), sum(told), "token", grade, method, facts=facts)


def _latencies(view: RunView, good: Sequence[Request]) -> Iterable[Figure]:
    facts = view.facts("run.requests")
    logged = any(request.via == "log" for request in good)
    grade = weakest((Grade.METERED, view.grade)) if logged else view.grade
    for name, (column, words) in LATENCIES.items():
        method = LOG_TIMES[name] if logged else words
        values = [getattr(request, column) for request in good]
        ordered = sorted(value for value in values if value is not None)
        path = path_of(name)
        yield known(f"{path}.samples", len(ordered), "1", grade, f"requests: {method}", facts=facts)
        for which, share in QUANTILES.items():
            value = quantile(ordered, share)
            seconds = None if value is None else Fraction(value) / US
            yield _ranked(f"{path}.{which}", seconds, len(ordered), "s", grade, method, facts)


def _concurrency(view: RunView, requests: Sequence[Request]) -> Iterable[Figure]:
    facts = view.facts("run.requests")
    path, method = path_of("concurrency.mean"), "time of all requests together / wall time"
    took = sum(request.took_us or 0 for request in requests)
    if view.wall_us > 0:
        inputs = ("wall_s",)
        value = Fraction(took, view.wall_us)
        yield known(path, value, "1", view.grade, method, inputs=inputs, facts=facts)
    else:
        yield unknown(path, "1", method, "the run took no time")
    path, method = path_of("concurrency.max"), "most requests under way at one moment"
    flights = in_flight(requests)
    if flights:
        most = max(number for _, number in flights)
        yield known(path, most, "1", view.grade, method, facts=facts)
    else:
        yield unknown(path, "1", method, "the moments at which requests were sent are not known")


def _lag(view: RunView, requests: Sequence[Request]) -> Iterable[Figure]:
    facts = view.facts("run.requests")
    method = "how much later than planned this client sent a request"
    lags = sorted(
        Fraction(request.sent_us - request.scheduled_us, US)
        for request in requests
        if request.scheduled_us is not None and request.sent_us is not None
    )
    if not lags:
        return
    for name in ("p50", "p95"):
        value = quantile(lags, QUANTILES[name])
        path = path_of(f"lag_s.{name}")
        yield _ranked(path, value, len(lags), "s", view.grade, method, facts)
    yield known(
        path_of("lag_s.max"), lags[-1], "s", view.grade, f"the most of: {method}", facts=facts
    )


def costs(
    view: RunView, tokens: Mapping[str, Tokens], us: int, cost_path: str, root: str = ""
) -> Iterable[Figure]:
    """What a million tokens cost: of those in, of those out, of both; each carries all of it."""
    both = _both(tokens)
    price, base = view.started.price, f"{root or 'cost_per_million_tokens'}"
    currency = price.currency if price else "1"
    for name, held in (*tokens.items(), ("all", both)):
        path = path_of(f"{base}.{name}")
        method = f"cost / tokens {name} x 1,000,000; {SHARED}"
        if price is None or held.total is None or not held.total:
            why = NO_PRICE if price is None else held.why or "no token was counted"
            yield unknown(path, currency, method, why)
            continue
        paid = price.cost_of(us) * MILLION / held.total
        ways = ("in", "out") if name == "all" else (name,)
        inputs = (cost_path, *(path_of(f"{_totals(root)}{way}{_total(root)}") for way in ways))
        grade = weakest((Grade.ASSUMED, view.grade))
        yield known(path, paid, currency, grade, method, inputs=inputs)


def _totals(root: str) -> str:
    return "steady.tokens_" if root else "tokens_"


def _total(root: str) -> str:
    return "" if root else ".total"


def _both(tokens: Mapping[str, Tokens]) -> Tokens:
    silent = next((held for held in tokens.values() if held.total is None), None)
    if silent:
        return Tokens(total=None, shares={}, why=silent.why)
    return Tokens(total=sum(held.total or 0 for held in tokens.values()), shares={})


def _cost_of_requests(view: RunView, requests: Sequence[Request], good: int) -> Iterable[Figure]:
    price = view.started.price
    currency = price.currency if price else "1"
    path, method = path_of("cost_per_request"), "cost / answered requests"
    grade = weakest((Grade.ASSUMED, view.grade))
    if price is None or not good:
        yield unknown(path, currency, method, NO_PRICE if price is None else "none was answered")
    else:
        inputs = ("cost.total", path_of("requests.finished"))
        paid = price.cost_of(view.wall_us) / good
        yield known(path, paid, currency, grade, method, inputs=inputs)
    path = path_of("cost_of_failed")
    method = "cost x the failed requests' share of the time of all requests"
    took = [(request.status == "ok", request.took_us or 0) for request in requests]
    all_us = sum(us for _, us in took)
    if price is None or not all_us:
        yield unknown(path, currency, method, NO_PRICE if price is None else "none took any time")
        return
    share = Fraction(sum(us for fine, us in took if not fine), all_us)
    inputs, facts = ("cost.total",), view.facts("run.requests")
    paid = price.cost_of(view.wall_us) * share
    yield known(path, paid, currency, grade, method, inputs=inputs, facts=facts)


def _steady(view: RunView, reckoning: Reckoning, requests: Sequence[Request]) -> Iterable[Figure]:
    """The same between the warm-up and the last full group: ramp-up and drain left out."""
    phases = reckoning.phases
    if phases.warmup_end is None or phases.steady_end is None:
        return
    start, end = phases.warmup_end, phases.steady_end
    ended = [r for r in requests if r.status == "ok" and r.ended_us and start < r.ended_us <= end]
    if not ended or end <= start:
        return
    facts = view.facts("run.requests")
    tokens = {way: tokens_of(view, ended, way) for way in ("in", "out")}
    for way, held in tokens.items():
        path, method = (
            path_of(f"steady.tokens_{way}"),
            f"{_COUNTED[way]}, ended in the steady phase",
        )
        if held.total is None:
            yield unknown(path, "token", method, held.why)
        else:
            yield known(
                path, held.total, "token", held.grade, method, facts=facts, shares=held.shares
            )
    price = view.started.price
    path, method = path_of("steady.cost"), "price x the steady phase"
    if price is None:
        yield unknown(path, "1", method, NO_PRICE)
    else:
        paid, grade = price.cost_of(end - start), weakest((Grade.ASSUMED, view.grade))
        inputs = ("price.amount", "phases.steady_s")
        yield known(path, paid, price.currency, grade, method, inputs=inputs)
    root = "steady.cost_per_million_tokens"
    yield from costs(view, tokens, end - start, path_of("steady.cost"), root)


def inference_json(sheet: Sheet) -> dict[str, Any] | None:
    """Every figure about serving, nested as its path says; None where nothing was served."""
    found: dict[str, Any] = {}
    for path, figure in sheet.figures.items():
        if path.startswith(f"{ROOT}."):
            *above, name = path.split(".")[1:]
            held = found
            for part in above:
                held = held.setdefault(part, {})
            held[name] = _plain(figure)
    return found or None


def _plain(figure: Figure) -> float | int | str | None:
    value = figure.value
    if not isinstance(value, Fraction):
        return value
    if "cost" in figure.path:
        return decimal_text(value)
    return (
        int(value)
        if figure.unit in ("1", "token") and value.denominator == 1
        else float(fixed(value, 6))
    )
