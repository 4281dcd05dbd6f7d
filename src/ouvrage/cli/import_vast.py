"""``ouvrage import vast-…``: what Vast.ai says of a host's machines.

Decides only how files and the service are asked and what is told; what an answer means is
``adapters/feeds/vast_earnings``.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.feeds.told import Told, day_text
from ouvrage.adapters.feeds.vast_earnings import (
    CURRENCY,
    Window,
    machines_in,
    read_windows,
    statements,
)
from ouvrage.adapters.feeds.vast_live import SERVICE, Service, earnings_of, key_in, service
from ouvrage.adapters.feeds.windows import counted_once
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.names import check_name
from ouvrage.base.numbers import fixed
from ouvrage.base.time import DAY
from ouvrage.cli.import_told import (
    Imported,
    counted,
    covered,
    holding,
    joined,
    missing_days,
    nodes_of,
    pairs,
    rates_needed,
    recorded,
    saved_at,
    tell,
)
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option, moment, plain_option
from ouvrage.ledger.stated import Stated
from ouvrage.model.earnings import Earning

_BACK = 30
_AT_ONCE = 10
Answer = tuple[Told, list[Window], int]
"""What a file told, its answers, and the moment it was saved."""


@click.command(name="vast-earnings")
@click.argument("files", metavar="FILE…", nargs=-1, type=click.Path(path_type=Path))
@click.option("--machine", "machines", metavar="ID=NODE", multiple=True, help="Which node it is.")
@click.option("--channel", metavar="NAME", default="vast", help="What you call the channel (vast).")
@click.option("--saved", metavar="TIME", help="When the files were saved (their own time).")
@click.option("--live", is_flag=True, help="Ask the service, day by day, instead of reading files.")
@click.option("--api-key-file", metavar="FILE", type=click.Path(path_type=Path), help="Your key.")
@click.option("--from", "begins", metavar="DAY", help="The first day to ask for (30 days ago).")
@click.option("--to", "ends", metavar="DAY", help="The day before which to stop (tomorrow).")
@click.option("--again", is_flag=True, help="Ask for days that are known as well.")
@click.option(
    "--pause", metavar="SECONDS", type=float, default=1.0, help="Before each question (1)."
)
@click.option("--url", default=SERVICE, metavar="URL", help=f"The service ({SERVICE}).")
@json_option
@plain_option
def earnings(
    files: tuple[Path, ...],
    machines: tuple[str, ...],
    channel: str,
    saved: str | None,
    live: bool,
    as_json: bool,
    plain: bool,
    **asked: Any,
) -> int:
    """Earnings of Vast.ai machines, from saved answers in JSON or from the service.

    FILE is the answer of `vastai show earnings --raw`, of one day or of many; several in one file are
    read too. Money is USD before the platform's fee. With --live one question is asked for each UTC day
    that is not known yet; the key stands in a file and is shown to the service alone.
    """
    check_name("channel", channel, "--channel vast")
    if live and not files:
        return _live(channel, pairs(machines), as_json, plain, **asked)
    if live or not files:
        raise OuvrageError(
            "import/no-file",
            "files and --live exclude one another" if live else "no file is named",
            hint="name saved answers, or --live --api-key-file FILE",
        )
    answers: list[Answer] = []
    for path in files:
        told = Told(form="vast earnings", file=str(path))
        windows = read_windows(read_text(path, "import"), told)
        answers.append((told, windows, saved_at(path, saved)))
    with opened() as ledger:
        done = _taken(ledger, answers, channel, pairs(machines))
    return tell(done, as_json, plain)


def _live(
    channel: str,
    given: dict[str, str],
    as_json: bool,
    plain: bool,
    *,
    api_key_file: Path | None,
    begins: str | None,
    ends: str | None,
    again: bool,
    pause: float,
    url: str,
) -> int:
    """Ask for each day and record what came, a few days at a time, so that a cut loses little."""
    if api_key_file is None:
        raise OuvrageError("vast/key-file", "no key", hint="--api-key-file FILE names its file")
    key, warning = key_in(api_key_file)
    asked = service(url, key, max(0.0, pause))
    today = now_us() // DAY
    first = today - _BACK if begins is None else moment(begins) // DAY
    after = min(today, (today if ends is None else moment(ends) // DAY - 1)) + 1
    with opened() as ledger:
        known = set() if again else _known_days(ledger, channel)
        days = [day for day in range(first, after) if day not in known]
        done = _asked(ledger, asked, days, channel, given)
    if warning:
        done.told[0].note(warning)
    return tell(done, as_json, plain)


def _known_days(ledger: Ledger, channel: str) -> set[int]:
    """The days of which a whole is known."""
    return {
        each.valid_from // DAY
        for each in holding(ledger, Earning.KIND)
        if each.natural.startswith(f"{channel}/") and _length(each) == DAY
    }


def _asked(
    ledger: Ledger, asked: Service, days: list[int], channel: str, given: dict[str, str]
) -> Imported:
    done = Imported(
        told=[Told(form="vast earnings", file=asked.base)], first="Nothing new to ask for"
    )
    for start in range(0, len(days), _AT_ONCE):
        answers: list[Answer] = []
        stopped: OuvrageError | None = None
        for day in days[start : start + _AT_ONCE]:
            told = Told(form="vast earnings", file=f"{asked.base} {day_text(day)}")
            try:
                text = earnings_of(asked, day)
                answers.append((told, read_windows(text, told), now_us()))
            except OuvrageError as error:
                stopped = error
                break
        if answers:
            done = _together(done, _taken(ledger, answers, channel, given))
        if stopped is not None:
            raise stopped
    return done


def _together(before: Imported, after: Imported) -> Imported:
    """Two parts of one call as one."""
    return replace(
        after,
        told=before.told + after.told,
        booked=joined(before.booked, after.booked),
        older=before.older + after.older,
    )


def _taken(ledger: Ledger, answers: list[Answer], channel: str, given: dict[str, str]) -> Imported:
    """Record what answers say; what holds of single days is counted once."""
    ids = machines_in(window for _, windows, _ in answers for window in windows)
    node_of = nodes_of(ledger, channel, ids, given, answers[0][0])
    for told, windows, saved_us in answers:
        for window in windows:
            told.stated += statements(window, node_of, channel, saved_us, told)
    every = [told for told, _, _ in answers]

    def settled(known: list[Stated], offered: list[Stated]) -> list[Stated]:
        return counted_once(known, _one_each(offered, every[0]), every[0])

    done = recorded(ledger, every, Earning.KIND, settled=settled)
    said = [each for told in every for each in told.stated]
    rates_needed(ledger, every[0], said)
    ours = [e for e in holding(ledger, Earning.KIND) if e.natural.startswith(f"{channel}/")]
    done.missing = missing_days(ours)
    done.first = _first(said, ids)
    done.more = "What it comes to: ouvrage books pnl"
    return done


def _one_each(offered: list[Stated], told: Told) -> list[Stated]:
    """Of several statements under one key in one call, the one about the longest period; else the last."""
    found: dict[str, Stated] = {}
    for each in offered:
        held = found.get(each.natural)
        if held is not None and held.id != each.id:
            told.note(
                "several files state the same day and machine: the longest, then the last, counts"
            )
            if _length(each) < _length(held):
                continue
        found[each.natural] = each
    return list(found.values())


def _length(each: Stated) -> int:
    return (each.valid_to or each.valid_from) - each.valid_from


def _first(said: list[Stated], machines: list[str]) -> str:
    amount = sum((Fraction(each.value.amount) for each in said), Fraction(0))
    count = counted(len(machines), "machine")
    return f"Vast.ai: {fixed(amount, 2)} {CURRENCY} ◐ earned by {count}, {covered(said)}"
