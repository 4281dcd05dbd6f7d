"""``ouvrage import vast-machines`` and ``vast-invoices``: what was rented when, and what was paid out.

Decides only whose machine it is, when a file was saved and what is told; what letters, samples and rows
mean is decided in ``adapters/feeds``.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import click

from ouvrage.adapters.feeds.moments import moment_in_name
from ouvrage.adapters.feeds.told import Told
from ouvrage.adapters.feeds.vast_invoices import CURRENCY, read_invoices
from ouvrage.adapters.feeds.vast_machines import (
    Maintenance,
    Snapshot,
    maintained,
    read_machines,
    statements,
    tracks_of,
)
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.names import check_name
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import HOUR, MINUTE
from ouvrage.cli.booking import book
from ouvrage.cli.import_told import (
    Imported,
    counted,
    covered,
    fresh,
    holding,
    nodes_of,
    pairs,
    rates_needed,
    recorded,
    saved_at,
    tell,
    values,
)
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.ledger.stated import Stated
from ouvrage.model.earnings import ChannelInvoice
from ouvrage.model.occupancy import DeviceState
from ouvrage.model.sites import DevicePlaced
from ouvrage.pricing.rates.quantity import duration_us

Read = tuple[Told, list[Snapshot], list[Maintenance]]


@click.command(name="vast-machines")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--machine", "machines", metavar="ID=NODE", multiple=True, help="Which node it is.")
@click.option("--channel", metavar="NAME", default="vast", help="What you call the channel (vast).")
@click.option("--every", metavar="TIME", default="10 min", help="How often it was saved (10 min).")
@click.option(
    "--saved", metavar="TIME", help="When the files were saved (their name, or own time)."
)
@json_option
@plain_option
def machines_(
    files: tuple[Path, ...],
    machines: tuple[str, ...],
    channel: str,
    every: str,
    saved: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Which GPUs of Vast.ai machines were rented, from lists saved from time to time.

    FILE is the answer of `vastai show machines --raw` (or `show maints --raw`), with its moment in its
    name, beside it as `at`, or as the file's own time. A state holds until the next list if that comes
    within twice --every; what lies between is unknown otherwise.
    """
    check_name("channel", channel, "--channel vast")
    limit_us = 2 * _every(every)
    reads: list[Read] = []
    for path in files:
        told = Told(form="vast machines", file=str(path))
        saved_us = moment_in_name(path.name) if saved is None else None
        at_us = saved_at(path, saved) if saved_us is None else saved_us
        reads.append((told, *read_machines(read_text(path, "import"), told, at_us)))
    with opened() as ledger:
        done = _occupied(ledger, reads, channel, pairs(machines), limit_us)
    return tell(done, as_json, plain)


def _every(text: str) -> int:
    try:
        found = duration_us(text)
    except ValueError as error:
        raise OuvrageError(
            "import/every", f"{text!r} is {error}", hint="--every '10 min'"
        ) from error
    if not MINUTE // 60 <= found <= 24 * HOUR:
        raise OuvrageError("import/every", f"{text!r} is no pace of polling", hint="1 s to 24 h")
    return found


def _occupied(
    ledger: Ledger, reads: list[Read], channel: str, given: dict[str, str], limit_us: int
) -> Imported:
    every = [told for told, _, _ in reads]
    by_machine: dict[str, list[tuple[Told, Snapshot]]] = {}
    for told, snapshots, _ in reads:
        for each in snapshots:
            by_machine.setdefault(each.machine, []).append((told, each))
    windows = [(told, window) for told, _, found in reads for window in found]
    ids = sorted({*by_machine, *(window.machine for _, window in windows)}, key=int)
    node_of = nodes_of(ledger, channel, ids, given, every[0])
    known = holding(ledger, DeviceState.KIND)
    said: list[Stated] = []
    for machine, seen in by_machine.items():
        said += _machine(ledger, known, channel, machine, node_of[machine], seen, limit_us)
    closed, older = fresh(
        known, [maintained(window, node_of[window.machine], channel) for _, window in windows]
    )
    done = Imported(told=every, booked=book(ledger, [*said, *closed], typed=True), older=older)
    gpus = {node_of[m]: len(seen[0][1].gpus) for m, seen in by_machine.items()}
    held = sum(_device_us(each, gpus) for each in said if each.value.state == "held")
    gaps = sum(s.value.state == "unknown" for s in said)
    if gaps:
        every[0].note("nothing is known between two lists that lie too far apart", gaps)
    times = sum(len(seen) for seen in by_machine.values())
    done.first = (
        f"Vast.ai: {counted(len(ids), 'machine')} seen {counted(times, 'time')}, {covered(said)}; "
        f"{held / HOUR:.1f} GPU-hours rented ◐"
    )
    done.more = "What the GPUs did: ouvrage books calendar"
    return done


def _device_us(each: Stated, gpus: Mapping[str, int]) -> int:
    """Device time of a statement: of its device, of so many devices, or of all of a node's."""
    count = 1 if each.value.device else each.value.count or gpus[each.value.node]
    return count * ((each.valid_to or each.valid_from) - each.valid_from)


def _machine(
    ledger: Ledger,
    known: list[Stated],
    channel: str,
    machine: str,
    node: str,
    seen: list[tuple[Told, Snapshot]],
    limit_us: int,
) -> list[Stated]:
    """A machine's GPUs, each by itself where the owner has said which stands in which slot."""
    devices = {
        each.slot: each.device
        for each in values(ledger, DevicePlaced.KIND)
        if each.node == node and each.slot is not None
    }
    gpus = max(len(each.gpus) for _, each in seen)
    kept = [each for _, each in seen if len(each.gpus) == gpus]
    for told, each in seen:
        if len(each.gpus) != gpus:
            told.fault(each.place, "num_gpus", str(len(each.gpus)), f"{gpus}, as in other lists")
    said: list[Stated] = []
    for track in tracks_of(channel, machine, node, devices, gpus):
        said += statements(track, channel, kept, known, limit_us, seen[0][0])
    return said


@click.command(name="vast-invoices")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--channel", metavar="NAME", default="vast", help="What you call the channel (vast).")
@json_option
@plain_option
def invoices(files: tuple[Path, ...], channel: str, as_json: bool, plain: bool) -> int:
    """Payouts of Vast.ai to a host, from saved answers in JSON.

    FILE is the answer of `vastai show invoices-v1 --invoices --raw`. What was earned, invoiced and paid is
    kept apart: that money came is said by a line of the bank.
    """
    check_name("channel", channel, "--channel vast")
    every: list[Told] = []
    for path in files:
        told = Told(form="vast invoices", file=str(path))
        read_invoices(read_text(path, "import"), told, channel)
        every.append(told)
    with opened() as ledger:
        done = recorded(ledger, every, ChannelInvoice.KIND)
        said = {each.natural: each for told in every for each in told.stated}
        rates_needed(ledger, every[0], list(said.values()))
    total = sum((Fraction(each.value.net) for each in said.values()), Fraction(0))
    done.first = f"Vast.ai: {counted(len(said), 'payout')} of {decimal_text(total)} {CURRENCY} ◐, {covered(said.values())}"
    done.more = "What has come: ouvrage import bank FILE, then ouvrage books reconcile"
    return tell(done, as_json, plain)
