"""``ouvrage explain FIGURE``: a printed number, recomputed, down to the facts it stands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_text
from ouvrage.cli.ledger import Ledger, known_runs, opened, past
from ouvrage.cli.options import json_option, moment, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.evidence.explain import explanation
from ouvrage.evidence.figures import Sheet
from ouvrage.evidence.published import claim_called
from ouvrage.ledger.facts import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A figure's name taken apart: ``R7K2+M3QD:speed_up@2026-11-30T14:05:09Z``."""

    runs: tuple[str, ...]
    path: str | None
    as_of: int | None


def name_of(text: str) -> Name:
    """Read a figure's name; the path and the moment may be missing."""
    what, _, when = text.partition("@")
    object_, _, path = what.partition(":")
    runs = tuple(part for part in object_.split("+") if part)
    if not runs:
        raise OuvrageError(
            "figure/unreadable",
            f"{text!r} names no figure",
            hint="write it as it was printed: R7K2:cost_per_unit.marginal; "
            "ouvrage explain last lists the figures of the latest run",
        )
    return Name(runs=runs, path=path or None, as_of=moment(when) if when else None)
