"""``ouvrage check``: is this machine well? One check or all, for a person, a prolog or a timer.

Decides what is read for which check and how a result is said. The exit code is the verdict (0 OK, 1 WARN, 2 CRITICAL,
3 UNKNOWN); whatever goes wrong in the check itself is 3, so that a mistyped path never drains a node. Nothing
is recorded and nothing is repaired.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.health_tables import thresholds, xid_table
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.cli.check_parts import CHECKS, Asked, is_absent
from ouvrage.cli.check_words import check_json, check_words
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_error, say_json, say_text
from ouvrage.health.findings import together
from ouvrage.health.xid import Rules
from ouvrage.model.health import UNKNOWN, VERDICTS, CheckResult
from ouvrage.pricing.rates.quantity import duration_us

OWN_ERROR = VERDICTS.index(UNKNOWN)
SAVED = ("smart", "xid", "gpu")
BY_NAME_ALONE = ("bmc",)
"""Left out of ``all``: a prolog would ask a slow and fragile BMC at the start of every job."""
ALL = "all"


class Check(click.Command):
    """A command of which every error of its own ends with 3, whatever else it would end with."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """The context, or the refusal of a usage that is none."""
        as_json = "--json" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.exceptions.Exit:
            raise
        except OuvrageError as error:
            raise click.exceptions.Exit(_own_error(error, as_json)) from error
        except click.ClickException as error:
            words = error.format_message().rstrip(".")
            refused = OuvrageError("check/usage", words, hint="ouvrage check --help")
            raise click.exceptions.Exit(_own_error(refused, as_json)) from error

    def invoke(self, ctx: click.Context) -> Any:
        """The verdict's exit code, or 3."""
        as_json = bool(ctx.params.get("as_json"))
        try:
            return super().invoke(ctx)
        except OuvrageError as error:
            return _own_error(error, as_json)
        except Exception as error:  # noqa: BLE001 -- whatever it is, it must not read as a sick node
            words = f"{type(error).__name__}: {error}"[:300]
            return _own_error(OuvrageError("check/internal", words), as_json)


def _own_error(error: OuvrageError, as_json: bool) -> int:
    if as_json:
        value: dict[str, Any] = {"verdict": UNKNOWN, "evidence": [], "action": "look"}
        say_json({**value, **error.as_json()})
    else:
        say_error(error, as_json=False)
    return OWN_ERROR


def _as_us(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        return duration_us(value)
    except ValueError as error:
        raise OuvrageError(
            "check/since", f"{value!r} is no length of time", hint="--since 2h"
        ) from error


@click.command("check", cls=Check)
@click.argument("name", metavar="NAME|all")
@click.option(
    "--from",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Judge a saved file instead of this machine: smartctl's JSON, a kernel log, a page of metrics.",
)
@click.option(
    "--since",
    metavar="TIME",
    callback=_as_us,
    help="Leave out lines of the kernel's log older than this: 2h, once a repair was verified.",
)
@click.option("--expect", metavar="N", type=click.IntRange(0), help="How many GPUs must be there.")
@click.option(
    "--path",
    "paths",
    metavar="DIR",
    multiple=True,
    help="A mount that must be there, with room on it.",
)
@click.option(
    "--memory", metavar="GIB", type=click.IntRange(1), help="How much memory must be there."
)
@click.option(
    "--node", metavar="NAME", help="This machine's name: in remote.toml, in its inventory."
)
@click.option("--proc", metavar="DIR", default="/proc", help="Stands in for /proc.")
@click.option("--sys", metavar="DIR", default="/sys", help="Stands in for /sys.")
@click.option("--etc", metavar="DIR", default="/etc", help="Stands in for /etc (its fstab).")
@click.option("--var", metavar="DIR", default="/var", help="Stands in for /var (its packages).")
@click.option("--kmsg", metavar="FILE", default="/dev/kmsg", help="Stands in for /dev/kmsg.")
@click.option(
    "--state",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the agent keeps what this machine is made of (agent/ in the home).",
)
@json_option
@plain_option
def check(name: str, file: Path | None, as_json: bool, plain: bool, **asked: Any) -> int:
    """Is this machine well?

    \b
    NAME is one of smart, xid, gpu, space, mounts, memory, edac, time, inventory; or all; or bmc.
    Exit code: 0 OK, 1 WARN, 2 CRITICAL, 3 UNKNOWN and every error of the check's own.

    Nothing is recorded, nothing repaired. A saved file counts as of this boot.
    """  # fmt: skip
    names = _names(name, file)
    rules = Rules(xids=xid_table(), bounds=thresholds())
    # One spoilt byte must not hide a fault in a long log; a report or a page with one is another thing.
    errors = "replace" if name == "xid" else "strict"
    text = None if file is None else read_text(file, "check", errors=errors)
    given = Asked(rules=rules, text=text, **asked)
    parts = {each: _graded(CHECKS[each](given), file is not None) for each in names}
    whole = _whole(name, parts)
    try:
        if as_json:
            say_json(check_json(whole, parts))
        else:
            say_text(check_words(whole, parts, plain=plain))
    except BrokenPipeError:
        # The reader went away, the verdict stands: Python's own end must not make another code of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except OuvrageError as error:
        # No room for its words, such as on a full /run: a sick node must not pass a prolog by that.
        with suppress(OuvrageError):
            say_error(error, as_json=False)
    return VERDICTS.index(whole.verdict)


def _names(name: str, file: Path | None) -> list[str]:
    """Which checks to run. Raises ``OuvrageError``."""
    if name != ALL and name not in CHECKS:
        raise OuvrageError(
            "check/name", f"no check is called {name!r}", hint=f"one of {', '.join(CHECKS)}; or all"
        )
    if file is not None and name not in SAVED:
        raise OuvrageError(
            "check/from", f"{name} reads no saved file", hint=f"--from goes with {', '.join(SAVED)}"
        )
    return [each for each in CHECKS if each not in BY_NAME_ALONE] if name == ALL else [name]


def _graded(results: Sequence[CheckResult], saved: bool) -> list[CheckResult]:
    """What a saved file says is somebody's word; what was read here was measured here."""
    grade = Grade.REPORTED if saved else Grade.MEASURED
    return [replace(each, grade=grade) for each in results]


def _whole(name: str, parts: Mapping[str, Sequence[CheckResult]]) -> CheckResult:
    """All as one; a check that has nothing to look at here is no reason for a verdict."""
    wholes = [together(each, results) for each, results in parts.items()]
    if len(wholes) == 1:
        return wholes[0]
    looked = [each for each in wholes if not is_absent(each)]
    return together(name, looked or wholes)
