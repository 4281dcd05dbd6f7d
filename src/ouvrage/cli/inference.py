"""``ouvrage inference replay``: put a recorded load on a server and say what a million tokens cost.

Decides what a load may be (a trace's own moments, sped up; a rate; so many at once) and which ways
of asking are refused before anything is sent. The requests are timed by ``meter.replay``, the
figures are those of any run: ``ouvrage report``, ``explain``, ``compare`` and ``run export`` take
it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.base.names import check_campaign
from ouvrage.base.price import Price, parse_price
from ouvrage.base.text import safe
from ouvrage.base.time import SECOND
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_text
from ouvrage.metering.arrivals import Arrival, at_rate, read_arrivals, sped_up
from ouvrage.pricing.rates.quantity import duration_us
from ouvrage.pricing.words import duration

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_MOST_TIMES = 1_000_000
_LONGEST_WAIT_US = 7 * 86_400 * SECOND


@click.group()
def inference() -> None:
    """What does a served language model cost a million tokens, under which load?

    \b
    A server that you start:   ouvrage run --price 2/h --metrics URL -- vllm serve …
    A server that is running:  ouvrage inference replay TRACE --server URL --price 2/h
    """


@inference.command()
@click.argument("trace", type=_FILE)
@click.option("--server", required=True, metavar="URL", help="Where it is: http://127.0.0.1:8000")
@click.option("--price", metavar="2/h", help="What the server's machine costs: per s, min, h, day.")
@click.option("--currency", metavar="EUR", help="Currency of the price (EUR).")
@click.option("--model", metavar="NAME", help="The model to ask; else the first that it names.")
@click.option("--chat", is_flag=True, help="Ask /v1/chat/completions, not /v1/completions.")
@click.option("--speed-up", metavar="X", help="The trace's moments, so many times as fast (1).")
@click.option("--rate", metavar="N", help="So many requests a second, instead of its moments.")
@click.option(
    "--concurrency", metavar="N", type=click.IntRange(1, 1024), help="So many at once, always."
)
@click.option("--limit", metavar="N", type=click.IntRange(1), help="The first N requests.")
@click.option("--for", "lasting", metavar="10min", help="Send nothing after this time.")
@click.option("--timeout", metavar="120s", default="120s", help="The longest answer (120s).")
@click.option("--api-key-file", metavar="FILE", type=_FILE, help="A key to send, never kept.")
@click.option("--label", help="A name for this run, to find it by.")
@click.option("--campaign", metavar="NAME", help="The campaign that this run is an attempt in.")
@json_option
@plain_option
@click.pass_context
def replay(context: click.Context, trace: Path, as_json: bool, plain: bool, **asked: object) -> int:
    """Put the load of TRACE on a server, and say what a million tokens cost under it.

    TRACE is a CSV with the columns TIMESTAMP,ContextTokens,GeneratedTokens (as the Azure LLM
    inference traces) or at_s,tokens_in,tokens_out, or JSON lines of the latter. Requests are sent
    at its moments, whether or not earlier ones are answered. Ctrl-C keeps what was measured.
    """
    wanted = _Asked(trace=trace, **asked)  # pyright: ignore[reportArgumentType] -- click's own types
    return _replay(wanted, as_json=as_json, plain=plain)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """The command line, checked as it is read."""

    trace: Path
    server: str
    price: str | None
    currency: str | None
    model: str | None
    chat: bool
    speed_up: str | None
    rate: str | None
    concurrency: int | None
    limit: int | None
    lasting: str | None
    timeout: str
    api_key_file: Path | None
    label: str | None
    campaign: str | None

    def checked_price(self) -> Price | None:
        """The price, or the refusal of one that says nothing."""
        if self.price is None and self.currency is not None:
            raise OuvrageError(
                "run/currency-alone", "--currency says nothing without --price",
                hint="--price 2/h --currency EUR",
            )  # fmt: skip
        return None if self.price is None else parse_price(self.price, self.currency)

    def key(self) -> str | None:
        """The key in the file: its first line."""
        if self.api_key_file is None:
            return None
        words = self.api_key_file.read_text("utf-8", "replace").split()
        if len(words) != 1 or not words[0].isascii():
            raise OuvrageError(
                "inference/key", f"{self.api_key_file} holds no key", hint="one word, nothing else"
            )
        return words[0]


def _replay(asked: _Asked, *, as_json: bool, plain: bool) -> int:
    from ouvrage.adapters.openai_server import checked_url
    from ouvrage.meter.calibration import acquainted
    from ouvrage.meter.load_run import Load, put_on
    from ouvrage.meter.replay import Plan

    _check_one_pace(asked)
    url, price, key = checked_url(asked.server), asked.checked_price(), asked.key()
    speed_up, rate = _times("--speed-up", asked.speed_up), _times("--rate", asked.rate)
    timeout = _lasting("--timeout", asked.timeout)
    until = None if asked.lasting is None else _lasting("--for", asked.lasting)
    if asked.campaign is not None:
        check_campaign(asked.campaign)
    data = asked.trace.read_bytes()
    arrivals = _arrivals(data, asked, speed_up, rate)
    endpoint = acquainted(url, asked.model, chat=asked.chat, key=key, timeout_us=timeout)
    load = Load(
        command=("ouvrage", *(safe(word) for word in sys.argv[1:])),
        trace=safe(asked.trace.name),
        trace_sha256=sha256(data).hexdigest(),
        speed_up=None if rate or asked.concurrency else speed_up or Fraction(1),
        rate=rate,
        price=price,
        label=asked.label,
        campaign=asked.campaign,
    )
    plan = Plan(
        arrivals=arrivals, concurrency=asked.concurrency, until_us=until, timeout_us=timeout
    )
    told = _Told()
    done = put_on(endpoint, plan, load, told.tell)
    told.over()
    return _summary(done, as_json=as_json, plain=plain)


def _summary(done: object, *, as_json: bool, plain: bool) -> int:
    from ouvrage.adapters.clock import now_us
    from ouvrage.meter.load_run import Done
    from ouvrage.meter.summary import Summary

    assert isinstance(done, Done)
    summary = Summary(done.lines, now_us())
    say_text(summary.json() if as_json else summary.text(plain=plain).rstrip("\n"))
    if done.interrupted:
        return 130
    return 0 if done.succeeded else 1


def _check_one_pace(asked: _Asked) -> None:
    given = {"--speed-up": asked.speed_up, "--rate": asked.rate, "--concurrency": asked.concurrency}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise OuvrageError(
            "inference/two-paces", f"{' and '.join(named)} are two ways to time the same requests",
            hint="--speed-up keeps the trace's moments, --rate and --concurrency replace them",
        )  # fmt: skip
    label = asked.label
    if label is not None and (not label.isprintable() or not label.strip() or label == "last"):
        raise OuvrageError("run/label", f"--label {label!r} names no run", hint="another name")


def _times(name: str, text: str | None) -> Fraction | None:
    if text is None:
        return None
    try:
        value = Decimal(text)
        # Compared before it becomes a fraction: 1e999999999 as one fills the memory.
        proper = value.is_finite() and Decimal(1) / _MOST_TIMES <= value <= _MOST_TIMES
    except (InvalidOperation, ValueError):
        value, proper = Decimal(0), False
    if not proper or len(text) > 40:
        raise OuvrageError(
            "inference/pace",
            f"{name} {text[:40]!r} is no positive number from 0.000001 to {_MOST_TIMES}",
            hint=f"{name} 10",
        )
    return Fraction(value)


def _lasting(name: str, text: str) -> int:
    try:
        length = duration_us(text)
    except ValueError as error:
        raise OuvrageError(
            "inference/duration", f"{name} {text!r} is {error}", hint=f"{name} 90s"
        ) from error
    if not 0 < length <= _LONGEST_WAIT_US:
        raise OuvrageError(
            "inference/duration", f"{name} {text!r} is no time up to 7 days", hint=f"{name} 90s"
        )
    return length


def _arrivals(
    data: bytes, asked: _Asked, speed_up: Fraction | None, rate: Fraction | None
) -> list[Arrival]:
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise OuvrageError(
            "trace/row", "the row is not UTF-8 text", where=(f"{asked.trace}:{number}",),
            hint="mend or remove the row; nothing was sent",
        ) from error  # fmt: skip
    arrivals = read_arrivals(lines, str(asked.trace))[: asked.limit]
    return at_rate(arrivals, rate) if rate else sped_up(arrivals, speed_up or Fraction(1))


class _Told:
    """Says on a terminal how far it is; into a file nothing is said."""

    def __init__(self) -> None:
        self._drawn = False

    def tell(self, progress: object) -> None:
        """One line that replaces the one before."""
        from ouvrage.meter.replay import Progress

        if not sys.stderr.isatty() or not isinstance(progress, Progress):
            return
        words = [f"{progress.sent} of {progress.planned} sent", f"{progress.under_way} under way"]
        if progress.failed:
            words.append(f"{progress.failed} failed")
        if progress.late_us > SECOND:
            words.append(f"{duration(progress.late_us)} late")
        if progress.due_us is not None and progress.due_us > progress.now_us:
            words.append(f"the last is due in {duration(progress.due_us - progress.now_us)}")
        sys.stderr.write(f"\r\x1b[K{', '.join(words)}")
        sys.stderr.flush()
        self._drawn = True

    def over(self) -> None:
        """Take the line away."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
