"""``ouvrage unit-cost``: what an epoch, and a reached target, cost at each power limit.

Decides how two trace files and two prices are read and refused; the figures are made by
``pricing/power_traces.py``. Nothing is recorded: a trace is somebody else's measurement.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ouvrage.base.energy_price import EnergyPrice, parse_energy_price
from ouvrage.base.errors import OuvrageError
from ouvrage.base.price import Price, parse_price
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import exact_json_text, say_text
from ouvrage.pricing.power_traces import read_power_trace, read_train_trace
from ouvrage.pricing.trace_report import TraceReport

_FILE: Any = click.Path(dir_okay=False, path_type=Path)


@click.command("unit-cost")
@click.option(
    "--power-trace",
    metavar="FILE",
    type=_FILE,
    required=True,
    help="Seconds and mean watts an epoch, one configuration and power limit a row.",
)
@click.option(
    "--train-trace",
    metavar="FILE",
    type=_FILE,
    help="The epoch at which a run reached a target, or nan, one run and target a row.",
)
@click.option("--electricity", metavar="0.25/kWh", required=True, help="What energy costs.")
@click.option(
    "--rate",
    metavar="0/h",
    required=True,
    help="What the machine costs by time: rent, or an owner's amortisation.",
)
@click.option("--currency", metavar="EUR", help="Currency of both prices (EUR).")
@click.option("--all", "every_target", is_flag=True, help="Every target, not only the hardest.")
@json_option
@plain_option
def unit_cost(
    power_trace: Path,
    train_trace: Path | None,
    electricity: str,
    rate: str,
    currency: str | None,
    every_target: bool,
    as_json: bool,
    plain: bool,
) -> None:
    """Which power limit and batch size finish an epoch, or reach a target, for the least money?

    Reads traces with the columns of the Zeus traces (NSDI 2023). The cost of a target holds what
    the runs cost that never reached it. --json prints every figure unrounded.
    """  # fmt: skip
    energy = parse_energy_price(electricity)
    report = TraceReport(
        per_kwh=energy.per_kwh,
        rate=_rate(rate, energy, currency),
        configurations=tuple(read_power_trace(_lines(power_trace), str(power_trace))),
        trials=_trials(train_trace),
    )
    if not report.configurations:
        raise OuvrageError("trace/empty", f"{power_trace} holds no row", hint="nothing to compare")
    if as_json:
        say_text(exact_json_text(report.json()))
    else:
        say_text("\n".join(report.lines(every_target=every_target, plain=plain)))


def _trials(path: Path | None) -> Any:
    return None if path is None else tuple(read_train_trace(_lines(path), str(path)))


def _rate(text: str, energy: EnergyPrice, currency: str | None) -> Price:
    """The rate, in the one currency that both prices and ``--currency`` allow."""
    named = energy.in_currency(currency).currency if energy.currency else currency
    try:
        return parse_price(text, named)
    except OuvrageError as error:
        hint = "write an amount per unit of time: --rate 0/h"
        raise OuvrageError(error.code, error.message, hint=hint) from error


def _lines(path: Path) -> list[str]:
    """The lines of a file. One that is no UTF-8 is refused by its number."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OuvrageError(
            "trace/not-read", f"{path} cannot be read: {error.strerror}", hint="name a CSV file"
        ) from error
    lines: list[str] = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(True), 1):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError:
            raise OuvrageError(
                "trace/row", "the line is not UTF-8 text", where=(f"{path}:{number}",),
                hint="mend or remove the line; nothing was read",
            ) from None  # fmt: skip
    return lines
