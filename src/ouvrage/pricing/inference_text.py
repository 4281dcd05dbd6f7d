"""A served model in the words of a run's summary.

Decides that cost and load stand in one breath: no cost of a million tokens is told without the
requests a second and the number in flight under which it holds. What the answers lacked, and
whether this client kept up, stands beside the latencies.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ouvrage.base.text import safe
from ouvrage.evidence.figures import Sheet
from ouvrage.metering.serving import QUANTILES
from ouvrage.model.serving import STATUSES
from ouvrage.pricing.words import mark, percent, rounded

_LATE = Fraction(1, 10)
_LATENCIES = (
    ("first token", "first_token_s"),
    ("between tokens", "between_tokens_s"),
    ("whole answer", "answer_s"),
)


def serves(sheet: Sheet) -> bool:
    """Whether there is anything to say about serving."""
    return "inference.source" in sheet.figures


def replays(sheet: Sheet) -> bool:
    """Whether the run is a load that was put on a server."""
    return serves(sheet) and sheet["inference.source"].value == "replay"


def pace_of(sheet: Sheet) -> str | None:
    """Which load was put on a server: its trace and its pace; None where none was."""
    if "inference.load.trace" not in sheet.figures:
        return None
    told = [str(sheet[f"inference.load.{name}"].value) for name in ("trace", "pace")]
    return safe(", ".join(told))


def _number(sheet: Sheet, name: str) -> Fraction | None:
    path = f"inference.{name}"
    return sheet.number(path) if path in sheet.figures else None


def _said(sheet: Sheet, name: str, plain: bool, unit: str = "") -> str | None:
    """A figure with its unit and mark; None where it is not known."""
    value = _number(sheet, name)
    if value is None:
        return None
    text = str(value) if value.denominator == 1 else rounded(value)
    return f"{text}{unit}{mark(sheet[f'inference.{name}'].grade, plain)}"


def inference_answer(sheet: Sheet, plain: bool) -> str:
    """What a million tokens cost under this load: the first line of a replay."""
    under = load_words(sheet, plain)
    name, what = "cost_per_million_tokens", "all-in"
    paid = _money(sheet, f"{name}.out", plain)
    first = _said(sheet, "first_token_s.p50", plain, " s")
    late = _number(sheet, "first_token_s.p95")
    words = f"first token after {first}" if first else "first tokens could not be timed"
    words += f" (p95 {rounded(late)})" if first and late is not None else ""
    if not _number(sheet, "requests.finished"):
        return f"No request was answered {under}"
    if paid is None:
        return f"{_said(sheet, 'requests.finished', plain)} requests answered {under}; {words}"
    prompt = _money(sheet, f"{name}.in", plain)
    other = f", or a million in {prompt}" if prompt else ""
    return f"A million tokens out cost {paid} {what}{other}, {under}; {words}"


def load_words(sheet: Sheet, plain: bool) -> str:
    """``at 3.1 requests/s with 12.4 in flight``."""
    rate, flight = _number(sheet, "requests.per_second"), _number(sheet, "concurrency.mean")
    words = [f"at {rounded(rate)} requests/s"] if rate is not None else []
    if flight is not None:
        words.append(f"with {rounded(flight)} in flight")
    return " ".join(words) or "under a load that is not known"


def _money(sheet: Sheet, name: str, plain: bool) -> str | None:
    value, path = _number(sheet, name), f"inference.{name}"
    if value is None:
        return None
    return f"{rounded(value)} {sheet[path].unit}{mark(sheet[path].grade, plain)}"


def inference_rows(sheet: Sheet, plain: bool) -> Iterator[tuple[str, str]]:
    """Pairs of what a line is about and what it says."""
    if not serves(sheet):
        return
    yield "load", _load(sheet, plain)
    yield "tokens", _tokens(sheet, plain)
    for name, root in _LATENCIES:
        words = _latency(sheet, root, plain)
        if words:
            yield name, words
    yield from _cost(sheet, plain)
    yield from _failures(sheet, plain)
    yield from _client(sheet, plain)
    yield "told by", _source(sheet)


def _load(sheet: Sheet, plain: bool) -> str:
    words: list[str] = []
    pace = pace_of(sheet)
    if pace:
        words.append(pace)
    done = _said(sheet, "requests.finished", plain)
    rate = _number(sheet, "requests.per_second")
    if done is not None and rate is not None:
        words.append(f"{done} requests answered, {rounded(rate)}/s")
    mean, most = _said(sheet, "concurrency.mean", plain), _number(sheet, "concurrency.max")
    if mean is not None:
        words.append(f"{mean} in flight on average" + (f" (most {most})" if most else ""))
    waiting = _said(sheet, "waiting.mean", plain)
    if waiting is not None:
        words.append(f"{waiting} waiting (most {_number(sheet, 'waiting.max')})")
    return "; ".join(words) or "not told"


def _tokens(sheet: Sheet, plain: bool) -> str:
    words: list[str] = []
    for way in ("in", "out"):
        total = _said(sheet, f"tokens_{way}.total", plain)
        if total is None:
            words.append(f"{way} not known: {sheet[f'inference.tokens_{way}.total'].why}")
            continue
        rate = _number(sheet, f"tokens_per_second.{way}")
        shape = [
            f"{name} {rounded(value)}"
            for name in ("p50", "p95")
            if (value := _number(sheet, f"tokens_{way}.{name}")) is not None
        ]
        each = f", {' '.join(shape)} a request" if shape else ""
        words.append(f"{total} {way}" + (f" ({rounded(rate)}/s{each})" if rate else ""))
    cached = _number(sheet, "tokens_in.cached")
    if cached:
        words.append(f"{cached} of those in came from its cache")
    return "; ".join(words)


def _latency(sheet: Sheet, root: str, plain: bool) -> str | None:
    """``0.21 s ● p50, 0.80 p95``; the quantiles of a histogram with the ends of their buckets."""
    samples = _number(sheet, f"{root}.samples")
    if not samples:
        return None
    words: list[str] = []
    for name in QUANTILES:
        low, high = (_number(sheet, f"{root}.{name}_{end}") for end in ("low", "high"))
        said = _said(sheet, f"{root}.{name}", plain, " s")
        if said is not None and low is not None and high is not None:
            to = " to " if plain else "–"
            said += f" ({rounded(low)}{to}{rounded(high)})"
        elif said is None and low is not None:
            said = f"more than {rounded(low)} s"
        if said is not None:
            words.append(f"{name} {said}")
    return f"{', '.join(words)}, of {samples}"


def _cost(sheet: Sheet, plain: bool) -> Iterator[tuple[str, str]]:
    for row, root in (
        ("cost of a million", "cost_per_million_tokens"),
        ("  in steady state", "steady.cost_per_million_tokens"),
    ):
        told = [
            f"{paid} {words}"
            for name, words in (("in", "in"), ("out", "out"), ("all", "of both"))
            if (paid := _money(sheet, f"{root}.{name}", plain)) is not None
        ]
        if told:
            alone = "; each alone carries the whole cost" if not root.startswith("steady") else ""
            yield row, f"{' or '.join(told)}{alone}"


def _failures(sheet: Sheet, plain: bool) -> Iterator[tuple[str, str]]:
    failed = _number(sheet, "requests.failed")
    if not failed:
        return
    named = [
        f"{number} {status}"
        for status in STATUSES[1:]
        if (number := _number(sheet, f"failures.{status}"))
    ]
    sent = _number(sheet, "requests.sent")
    words = f"{failed}" + (f" of {sent}" if sent else "")
    words += f": {', '.join(named)}" if named else ""
    paid = _money(sheet, "cost_of_failed", plain)
    yield "not answered", words + (f"; their share of the time cost {paid}" if paid else "")


def _client(sheet: Sheet, plain: bool) -> Iterator[tuple[str, str]]:
    most, usual = _number(sheet, "lag_s.max"), _number(sheet, "lag_s.p95")
    if most is None:
        return
    if (most if usual is None else usual) > _LATE:
        words = f"fell behind: up to {rounded(most)} s later than the load asks for"
        yield "this client", f"{words}, so the server had less to do"
    else:
        yield "this client", f"kept up: at most {_said(sheet, 'lag_s.max', plain, ' s')} late"


def _source(sheet: Sheet) -> str:
    method = sheet["inference.source"].method
    counted, wall = _number(sheet, "counted_s"), sheet.number("wall_s")
    engine = sheet.figures.get("inference.engine")
    words = f"{engine.value}: {method}" if engine else method
    if counted is not None and wall:
        words += f", {percent(counted / wall)} of the run"
    return words
