"""What ``ouvrage run`` understands, and every way of asking that it refuses.

All of it is checked before anything is written or started.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from ouvrage.base.errors import OuvrageError

if TYPE_CHECKING:
    from ouvrage.base.energy_price import EnergyPrice
    from ouvrage.base.price import Price
    from ouvrage.model.around import RunTopology

LIBRARIES = ("mlflow", "wandb", "tensorboard", "clearml")
_USAGE = "ouvrage run [OPTIONS] -- COMMAND [ARGUMENT ...]"
_ABOUT = """\
Run any command and keep the account of it: how long each finished unit took, where the time went
and, with a price, what it cost. The command does not notice: same output, input, exit code,
signals, terminal, directory and environment (OUVRAGE_SOCKET is added)."""
_AFTER = """\
examples:
  ouvrage run --price 0.30/h -- python -u train.py
  ouvrage run --unit step --unit-regex 'step (\\d+) ' --report out.json -- ./train

Units are found in what known tools print and in lines such as "Epoch 3/10", with --unit-regex,
or reported by the program: import ouvrage; ouvrage.unit("epoch"). A command that shows none is
itself one unit."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OuvrageError("run/usage", message, hint=f"usage: {_USAGE}")


def parser() -> argparse.ArgumentParser:
    """The parser of everything before ``--``; also what the documentation shows."""
    made = _Parser(
        prog="ouvrage run",
        usage=_USAGE,
        description=_ABOUT,
        epilog=_AFTER,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--price", metavar="0.30/h", help="what the machine costs, per s, min, h or day"
    )
    made.add_argument("--currency", metavar="EUR", help="currency of the price (EUR)")
    made.add_argument(
        "--electricity",
        metavar="0.25/kWh",
        help="what energy costs: a figure of its own, never part of the price",
    )
    made.add_argument(
        "--wall-meter",
        metavar="URL",
        help="read this smart plug as well (JSON of Shelly and Tasmota plugs)",
    )
    made.add_argument(
        "--metrics",
        metavar="URL",
        help="read a model server's Prometheus page as well (vLLM, llama.cpp)",
    )
    made.add_argument("--label", help="a name for this run, to find it by")
    made.add_argument(
        "--campaign", metavar="NAME", help="the campaign that this run is an attempt in"
    )
    _add_surroundings(made)
    made.add_argument(
        "--unit", metavar="NAME", help="which unit to count, where a command shows several"
    )
    made.add_argument(
        "--unit-regex",
        metavar="RE",
        help="a unit is finished where a line matches; its group, if any, is the unit's number",
    )
    made.add_argument("--report", metavar="FILE.json", help="write the report here as well")
    made.add_argument(
        "--log-to",
        metavar="NAME[=WHERE]",
        action="append",
        default=[],
        help="log the cost of a unit with mlflow, wandb, tensorboard or clearml when it has ended",
    )
    made.add_argument("--quiet", action="store_true", help="print no summary at the end")
    made.add_argument("--plain", action="store_true", help="words instead of marks in the summary")
    return made


def _add_surroundings(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--job",
        metavar="ID",
        help="the job that this run is a part of, on this host or several (else the launcher's)",
    )
    made.add_argument(
        "--nccl-log",
        metavar="FILE",
        action="append",
        default=[],
        help="NCCL's own INFO log (NCCL_DEBUG_FILE), read when the command has ended",
    )
    made.add_argument(
        "--nccl-tests",
        metavar="FILE",
        action="append",
        default=[],
        help="what nccl-tests measured between these GPUs",
    )
    made.add_argument(
        "--topology",
        metavar="FILE",
        help="what joins the GPUs: output of nvidia-smi topo -m (which is asked where it is here)",
    )


class Options:
    """One checked request."""

    def __init__(
        self,
        command: list[str],
        given: argparse.Namespace,
        price: Price | None,
        electricity: EnergyPrice | None,
    ) -> None:
        self.command = command
        self.price = price
        self.electricity = electricity
        self.wall_meter: str | None = given.wall_meter
        self.metrics: str | None = given.metrics
        self.label: str | None = given.label
        self.campaign: str | None = given.campaign
        self.job: str | None = given.job
        self.nccl_log: list[str] = given.nccl_log
        self.nccl_tests: list[str] = given.nccl_tests
        self.topology = None if given.topology is None else _topology(given.topology)
        self.unit: str | None = given.unit
        self.unit_regex: str | None = given.unit_regex
        self.report: str | None = given.report
        self.log_to: list[str] = given.log_to
        self.quiet: bool = given.quiet
        self.plain: bool = given.plain
        self.granted: dict[str, int] = {}
        """What of the host the command was given by whoever confines it, in place of what this process has."""

    @property
    def tells(self) -> bool:
        """Whether anything is made of the account when the command has ended."""
        return bool(self.report or self.log_to or not self.quiet)


def read_options(arguments: Sequence[str]) -> Options:
    """Read and check a command line. Raises ``OuvrageError``; ``--help`` ends the program."""
    arguments = list(arguments)
    if "--" in arguments:
        at = arguments.index("--")
        before, command = arguments[:at], arguments[at + 1 :]
        given = parser().parse_args(_joined(before))
    elif "--help" in arguments or "-h" in arguments:
        parser().parse_args(["--help"])
        raise AssertionError("--help ends the program")
    else:
        raise OuvrageError(
            "run/no-separator",
            "-- is missing: what stands after it is the command",
            hint=f"usage: {_USAGE}",
        )
    if not command:
        raise OuvrageError("run/no-command", "nothing stands after --", hint=f"usage: {_USAGE}")
    _check_texts(given)
    return Options(command, given, _price(given), _electricity(given))


def _joined(arguments: list[str]) -> list[str]:
    """``--price -3/h`` as ``--price=-3/h``: a negative price is refused as one, by name."""
    joined: list[str] = []
    for argument in arguments:
        if (
            joined[-1:] in (["--price"], ["--electricity"])
            and argument.startswith("-")
            and argument[1:2].isdigit()
        ):
            joined[-1] = f"{joined[-1]}={argument}"
        else:
            joined.append(argument)
    return joined


def _topology(path: str) -> RunTopology:
    from ouvrage.meter.surroundings import topology_file

    return topology_file(path)


def _price(given: argparse.Namespace) -> Price | None:
    if given.price is None:
        if given.currency is not None and given.electricity is None:
            raise OuvrageError(
                "run/currency-alone",
                "--currency says nothing without --price",
                hint="--price 0.30/h --currency EUR",
            )
        return None
    from ouvrage.base.price import parse_price

    return parse_price(given.price, given.currency)


def _check_libraries(asked: list[str]) -> None:
    for text in asked:
        if text.partition("=")[0] not in LIBRARIES:
            raise OuvrageError(
                "run/log-to",
                f"--log-to {text!r} is not known",
                hint=f"one of {', '.join(LIBRARIES)}; with a place: tensorboard=runs/a",
            )


def _electricity(given: argparse.Namespace) -> EnergyPrice | None:
    if given.electricity is None:
        return None
    from ouvrage.base.energy_price import parse_energy_price

    return parse_energy_price(given.electricity).in_currency(given.currency)


def _check_names(given: argparse.Namespace) -> None:
    if given.campaign is not None:
        from ouvrage.base.names import check_campaign

        check_campaign(given.campaign)
    if given.job is not None:
        from ouvrage.base.names import check_job

        check_job(given.job)


def _check_texts(given: argparse.Namespace) -> None:
    for name in ("label", "unit"):
        text = getattr(given, name)
        if text is not None and (not text.strip() or len(text) > 200 or not text.isprintable()):
            raise OuvrageError(
                f"run/{name}", f"--{name} {text!r} is not a name", hint="some printable characters"
            )
    _check_names(given)
    if given.report is not None and not given.report:
        raise OuvrageError("run/report", "--report names no file", hint="--report out/report.json")
    if given.report is not None and os.path.isdir(given.report):
        raise OuvrageError(
            "run/report",
            f"--report {given.report!r} is a directory",
            hint="--report out/report.json",
        )
    if given.label == "last":
        raise OuvrageError(
            "run/label",
            "--label last names no run: `last` is always the latest one",
            hint="another name",
        )
    _check_libraries(given.log_to)
    metrics = given.metrics
    if metrics is not None and not (
        metrics.startswith(("http://", "https://")) and metrics.isprintable() and "@" not in metrics
    ):
        raise OuvrageError(
            "run/metrics",
            f"--metrics {metrics!r} is no address of a metrics page, or holds a password",
            hint="--metrics http://127.0.0.1:8000/metrics",
        )
    wall = given.wall_meter
    if wall is not None and not (wall.startswith(("http://", "https://")) and wall.isprintable()):
        raise OuvrageError(
            "run/wall-meter",
            f"--wall-meter {wall!r} is no address of a plug",
            hint="--wall-meter 'http://192.168.1.20/rpc/Switch.GetStatus?id=0'",
        )
    if given.unit_regex is not None:
        from ouvrage.metering.recognise import compile_unit_regex

        compile_unit_regex(given.unit_regex)
