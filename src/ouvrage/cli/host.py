"""``ouvrage host``: is this the machine that was promised?

Decides what may be asked of a check, and that its result is recorded; nothing outside this machine is
contacted unless a server is named. How things are read is the meter's, what they mean ``pricing.market``'s.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from ouvrage.adapters.clock import monotonic_us, new_id, now_us
from ouvrage.adapters.home import source_id
from ouvrage.adapters.host_disk import check_directory
from ouvrage.adapters.host_network import Peer, check_peer
from ouvrage.adapters.profile_files import seconds_in
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.host_book import HeldTo, host_checks, is_file, offer_in_file, offer_in_market
from ouvrage.cli.ledger import Ledger, known_runs, opened, past
from ouvrage.cli.options import as_of_option, json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.ledger.kinds import fact_of
from ouvrage.meter.host_check import Plan, check_host
from ouvrage.meter.host_gpus import Load
from ouvrage.model.hosts import BROKEN, HostChecked
from ouvrage.pricing.market.host_checks import held_to, outcome_of, run_readings
from ouvrage.pricing.market.host_text import HEAD, check_json, closing, headline, rows, took

LOAD_S = 20
LONGEST_LOAD_S = 3600
Tell = Callable[[str], None]


@click.group()
def host() -> None:
    """Is this the machine that was promised, and what is it?

    \b
    Begin:  ouvrage host check
    Then:   ouvrage host check --offer offer.toml
    """


def _offer_options(verb: Any) -> Any:
    verb = click.option("--name", metavar="NAME", help="Which offer of the file (name or key).")(
        verb
    )
    return click.option(
        "--offer",
        "which",
        metavar="WHICH",
        help="What was promised: a file of offers, a kept quote, or an imported offer's name.",
    )(verb)


@host.command("check")
@_offer_options
@click.option("--long", is_flag=True, help="Measure longer, and memory and disk latency too.")
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    default=".",
    help="A directory on the disk that the work will use (this one).",
)
@click.option(
    "--network-peer", "url", metavar="URL", help="A server to measure against (GET, POST)."
)
@click.option(
    "--peer-mbit", "mbit", metavar="N", type=click.IntRange(1), help="How fast its own line is."
)
@click.option(
    "--load-command", "load", metavar="CMD", help="Your own load, to read GPUs under; ended after."
)
@click.option("--load-time", metavar="TIME", help=f"How long the load is watched ({LOAD_S}s).")
@json_option
@plain_option
def check(which: str | None, name: str | None, as_json: bool, plain: bool, **asked: Any) -> int:
    """Measure this host, and hold it to an offer.

    Takes seconds: CPUs allowed and delivered, memory, the disk under --dir by a file without a name of at most
    256 MiB, the GPUs at rest. --long takes half a minute and writes up to 2 GiB. No server is
    contacted but --network-peer. The exit code is 1 where a promise is broken; what could not be told is not
    taken as held.
    """
    plan = _plan(**asked)
    today = utc_text(now_us())[:10]
    offer = offer_in_file(which, name, today) if which and is_file(which) else None
    if which and offer is None:
        with opened() as ledger:
            offer = offer_in_market(ledger, which)
    tell = _progress(as_json)
    value = _checked(plan, offer, tell)
    tell("")
    with opened() as ledger:
        value = replace(value, machine=source_id(ledger.home))
        _record(ledger, value)
    _say(value, Grade.MEASURED, as_json, plain)
    return 1 if outcome_of(value.lines) == BROKEN else 0


def _plan(
    *, long: bool, directory: str, url: str | None, mbit: int | None, load: str | None,
    load_time: str | None,
) -> Plan:  # fmt: skip
    check_directory(directory)
    peer = None if url is None else Peer(url=url, mbit=mbit)
    if peer is not None:
        check_peer(peer)
    if (load is None and load_time is not None) or (url is None and mbit is not None):
        raise OuvrageError(
            "host/alone",
            "--load-time goes with --load-command, and --peer-mbit with --network-peer",
            hint="ouvrage host check --help",
        )
    refused = OuvrageError(
        "host/load-time", f"{load_time!r} is no duration up to an hour", hint="--load-time 20s"
    )
    asked = LOAD_S if load_time is None else seconds_in(load_time, refused)
    if not 0 < asked <= LONGEST_LOAD_S:
        raise refused
    seconds = float(asked)
    return Plan(
        directory=os.path.abspath(directory),
        long=long,
        peer=peer,
        load=None if load is None else Load(command=load, seconds=seconds),
    )


def _progress(as_json: bool) -> Tell:
    """Says on a terminal what is being measured, in one line that is gone at the end."""
    if as_json or not sys.stderr.isatty():
        return lambda _: None

    def tell(words: str) -> None:
        sys.stderr.write(f"\r\x1b[K{f'measuring: {words} …' if words else ''}")
        sys.stderr.flush()

    return tell


def _checked(plan: Plan, offer: HeldTo | None, tell: Tell) -> HostChecked:
    started, began = now_us(), monotonic_us()
    try:
        found, readings = check_host(plan, tell)
    except KeyboardInterrupt:
        tell("")
        raise
    value = HostChecked(
        check=new_id(),
        machine="",
        started_us=started,
        took_us=monotonic_us() - began,
        long=plan.long,
        offer=None,
        provider=None,
        offer_fact=None,
        host=found,
        readings=tuple(readings),
        promises=(),
        lines=held_to((), readings),
    )
    return value if offer is None else _held_to(value, offer)


def _record(ledger: Ledger, value: HostChecked) -> None:
    fact = fact_of(
        value,
        source=value.machine,
        id=f"{value.check}/host",
        subject=value.machine,
        valid_from=value.started_us,
        valid_to=value.started_us + value.took_us,
        grade=Grade.MEASURED,
    )
    ledger.store.append([fact], now_us=now_us(), own_source=value.machine)


@host.command("show")
@_offer_options
@click.option("--run", metavar="RUN", help="The host as this run saw it, in place of a check.")
@json_option
@plain_option
@as_of_option
def show(
    which: str | None,
    name: str | None,
    run: str | None,
    as_json: bool,
    plain: bool,
    as_of: int | None,
) -> int:
    """The last check again, without measuring; --offer holds what was read to another offer.

    With --run what that run saw at its start and while it worked: cores, memory, GPUs, links.
    """
    today = utc_text(now_us())[:10]
    with opened() as ledger:
        as_of = past(as_of, ledger)
        value, grade = _seen(ledger, run, as_of) if run else (_last(ledger, as_of), Grade.MEASURED)
        if which is not None:
            file = is_file(which)
            held = offer_in_file(which, name, today) if file else offer_in_market(ledger, which)
            value = _held_to(value, held)
    _say(value, grade, as_json, plain)
    return 1 if outcome_of(value.lines) == BROKEN else 0


def _last(ledger: Ledger, as_of: int | None) -> HostChecked:
    found = host_checks(ledger, as_of)
    if not found:
        raise OuvrageError(
            "host/none", "no host was checked yet", hint="ouvrage host check --offer FILE"
        )
    return found[-1]


def _seen(ledger: Ledger, run: str, as_of: int | None) -> tuple[HostChecked, Grade]:
    """What a run saw of its host, in the form of a check that was held to nothing."""
    (found,) = ledger.assessed(known_runs(ledger, [run], as_of), as_of)
    view = found.view
    readings = tuple(run_readings(view))
    value = HostChecked(
        check=view.run,
        machine=view.source,
        started_us=view.started.started_us,
        took_us=view.wall_us,
        long=False,
        offer=None,
        provider=None,
        offer_fact=None,
        host=view.started.host,
        readings=readings,
        promises=(),
        lines=held_to((), readings),
    )
    return value, view.grade


def _held_to(value: HostChecked, offer: HeldTo) -> HostChecked:
    return replace(
        value,
        offer=offer.name,
        provider=offer.provider,
        offer_fact=offer.fact,
        promises=offer.promises,
        lines=held_to(offer.promises, value.readings),
    )


def _say(value: HostChecked, grade: Grade, as_json: bool, plain: bool) -> None:
    if as_json:
        say_json(check_json(value, grade))
        return
    drawn = table(HEAD, rows(value, grade, plain), "<<<<<").split("\n")
    say_text(
        "\n".join(
            [
                headline(value, grade, plain),
                "",
                *(safe(f"  {line}") for line in drawn),
                *closing(value),
                "",
                f"{utc_text(value.started_us)[:19]}Z, {took(value)}, recorded as "
                f"{code_of(value.check)}.  {_next(value)}",
            ]
        )
    )


def _next(value: HostChecked) -> str:
    if value.offer is None:
        return "Hold it to an offer: ouvrage host show --offer FILE"
    return "With a run and its quote: ouvrage quote verify RUN --quote FILE"
