"""``ouvrage import vast-…``: what Vast.ai says of a host's machines.

Decides only how files and the service are asked and what is told; what an answer means is
``adapters/feeds/vast_earnings``.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from ouvrage.adapters.feeds.told import Told
from ouvrage.adapters.feeds.vast_earnings import (
    CURRENCY,
    Window,
    machines_in,
    read_windows,
    statements,
)
from ouvrage.adapters.feeds.windows import counted_once
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import fixed
from ouvrage.cli.import_told import (
    Imported,
    covered,
    holding,
    missing_days,
    nodes_of,
    pairs,
    recorded,
    saved_at,
    tell,
)
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option
from ouvrage.ledger.stated import Stated
from ouvrage.model.earnings import Earning

Answer = tuple[Told, list[Window], int]
"""What a file told, its answers, and the moment it was saved."""


@click.command(name="vast-earnings")
@click.argument("files", metavar="FILE…", nargs=-1, type=click.Path(path_type=Path))
@click.option("--machine", "machines", metavar="ID=NODE", multiple=True, help="Which node it is.")
@click.option("--channel", metavar="NAME", default="vast", help="What you call the channel (vast).")
@click.option("--saved", metavar="TIME", help="When the files were saved (their own time).")
@json_option
def earnings(
    files: tuple[Path, ...],
    machines: tuple[str, ...],
    channel: str,
    saved: str | None,
    as_json: bool,
) -> int:
    """Earnings of Vast.ai machines, from saved answers in JSON.

    FILE is the answer of `vastai show earnings --raw`, of one day or of many; several in one file are
    read too. Money is USD before the platform's fee.
    """
    if not files:
        raise OuvrageError("import/no-file", "no file is named", hint="name a saved answer")
    answers: list[Answer] = []
    for path in files:
        told = Told(form="vast earnings", file=str(path))
        windows = read_windows(read_text(path, "import"), told)
        answers.append((told, windows, saved_at(path, saved)))
    with opened() as ledger:
        done = _taken(ledger, answers, channel, pairs(machines))
    return tell(done, as_json)


def _taken(
    ledger: Ledger, answers: list[Answer], channel: str, given: dict[str, str]
) -> Imported:
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
            told.note("several files state the same day and machine: the longest, then the last, counts")
            if _length(each) < _length(held):
                continue
        found[each.natural] = each
    return list(found.values())


def _length(each: Stated) -> int:
    return (each.valid_to or each.valid_from) - each.valid_from


def _first(said: list[Stated], machines: list[str]) -> str:
    amount = sum((Fraction(each.value.amount) for each in said), Fraction(0))
    count = "1 machine" if len(machines) == 1 else f"{len(machines)} machines"
    return f"Vast.ai: {fixed(amount, 2)} {CURRENCY} ◐ earned by {count}, {covered(said)}"
