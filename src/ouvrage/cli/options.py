"""Options that several verbs share, so that they mean the same everywhere.

Decides their names, their help and how a moment is written; what a verb does with them is its own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_us

Verb = TypeVar("Verb", bound=Callable[..., Any])


def moment(text: str) -> int:
    """Microseconds of a moment that a person wrote; a date alone is its first instant, UTC."""
    written = text if len(text) > 10 else f"{text}T00:00:00Z"
    try:
        return utc_us(written)
    except ValueError as error:
        raise OuvrageError(
            "as-of/unreadable",
            f"{text!r} is no moment: {error}",
            hint="write it in UTC: 2026-11-30T14:05:09Z, or a date: 2026-11-30",
        ) from error


class Seconds(click.FloatRange):
    """A length of time in seconds within bounds. Click's own range lets what is no number through."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number, or the refusal of a text that is none."""
        found: float = super().convert(value, param, ctx)
        if found != found:
            self.fail(f"{value!r} is no number of seconds", param, ctx)
        return found


def _as_moment(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    return None if value is None else moment(value)


def as_of_option(verb: Verb) -> Verb:
    """``--as-of``."""
    return click.option(
        "--as-of",
        metavar="TIME",
        callback=_as_moment,
        help="What was known at this moment (UTC), whatever came since.",
    )(verb)


def json_option(verb: Verb) -> Verb:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON value.")(verb)


def plain_option(verb: Verb) -> Verb:
    """``--plain``."""
    return click.option("--plain", is_flag=True, help="Say grades in words, not in marks.")(verb)


def html_option(verb: Verb) -> Verb:
    """``--html``."""
    return click.option(
        "--html",
        "html_file",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Also write a page that needs nothing else.",
    )(verb)


def period_options(verb: Verb) -> Verb:
    """``--month``, ``--year``, ``--from`` and ``--to``: a period by the clock of the site.

    The verb gets ``period``, its one name, or None where none is asked for. Raises ``OuvrageError``
    ``period/which`` where several are, or half of one.
    """
    return _period_options(verb, "A month; else the last whole one with facts.")


def this_month_options(verb: Verb) -> Verb:
    """The same options for what a platform charges: by UTC, and without any of this month so far."""
    return _period_options(verb, "A month; else this one so far.")


def _period_options(verb: Any, month_help: str) -> Any:
    @wraps(verb)
    def told(
        *args: Any,
        month: str | None,
        year: str | None,
        begins: str | None,
        ends: str | None,
        **others: Any,
    ) -> Any:
        named = [text for text in (month, year, begins and f"{begins}..{ends or ''}") if text]
        if len(named) > 1 or bool(begins) != bool(ends):
            raise OuvrageError(
                "period/which",
                "one period is asked for",
                hint="--month, --year, or --from with --to",
            )
        return verb(*args, period=named[0] if named else None, **others)

    asking: Any = told
    for option in (
        click.option("--to", "ends", metavar="DAY", help="The first day that is not in it."),
        click.option("--from", "begins", metavar="DAY", help="The first day of a period."),
        click.option("--year", metavar="YYYY", help="A year."),
        click.option("--month", metavar="YYYY-MM", help=month_help),
    ):
        asking = option(asking)
    return asking


def keep_everything() -> None:
    """Look for things that hold each other after ten million of them only.

    A verb that answers and ends keeps what it reads until then: looking through a month of a thousand
    GPUs again and again took an eighth of its time.
    """
    gc.set_threshold(10_000_000)
