"""``ouvrage explain FIGURE``: a printed number, recomputed, down to the facts it stands on.

Decides which sheet of figures a name belongs to: a run's, a comparison's, a claim's, a rental's, a
campaign's, a job's, a cluster's, or one of the books. A name without a path lists the sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from ouvrage.adapters.clock import now_us
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_text
from ouvrage.cli.comparing import compared
from ouvrage.cli.ledger import Ledger, known_runs, opened, past
from ouvrage.cli.options import json_option, moment, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.evidence.claims import claims_in
from ouvrage.evidence.explain import exact_text, explanation, valued
from ouvrage.evidence.figures import Figure, Sheet
from ouvrage.evidence.published import CLAIMS, entry_sheet
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.view import in_force
from ouvrage.metering.rental_view import rental_views
from ouvrage.pricing.campaign_sheet import campaign_sheet
from ouvrage.pricing.rental_cost import rental_sheet
from ouvrage.pricing.words import mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A figure's name taken apart: ``R7K2+M3QD:speed_up@2026-11-30T14:05:09Z``."""

    objects: tuple[str, ...]
    path: str | None
    as_of: int | None


def name_of(text: str) -> Name:
    """Read a figure's name; the path and the moment may be missing."""
    what, _, when = text.partition("@")
    whose, _, path = what.partition(":")
    objects = tuple(whose.split("+"))
    if not all(objects):
        raise OuvrageError(
            "figure/unreadable",
            f"{text!r} names no figure",
            hint="write it as it was printed, such as R7K2:cost_per_unit.marginal; "
            "ouvrage explain last lists the figures of the latest run",
        )
    return Name(objects=objects, path=path or None, as_of=moment(when) if when else None)


@click.command()
@click.argument("figure", metavar="FIGURE")
@json_option
@plain_option
def explain(figure: str, as_json: bool, plain: bool) -> None:
    """Where FIGURE comes from: how it was made, and the facts it stands on.

    \b
    R7K2:cost_per_unit.marginal   one figure of a run
    R7K2+M3QD:speed_up            one of a comparison
    R7K2                          every figure of a run, with its name
    rental/K3M9:cost.held         one of a rental
    campaign/NAME:cost.total      one of a campaign
    job/ID:cost_per_unit.all_in   one of a job over several hosts
    node-1/2026-11:margin.net     one of the books: a node, GPU, site, channel or tenant
    fleet/NAME/2026-11:hours.free one of a cluster that ouvrage fleet adopt read
    claim/NAME:value              what somebody states, with its grade

    With @TIME at the end: as known then. A figure is computed anew from the facts each time.
    """
    name = name_of(figure)
    with opened() as ledger:
        sheet, records = sheet_called(ledger, name)
    if name.path is None:
        _list(sheet, as_json=as_json, plain=plain)
        return
    found = explanation(sheet, name.path, records)
    if as_json:
        say_json(found.json())
    else:
        say_text("\n".join(found.lines(plain=plain)))


def sheet_called(ledger: Ledger, name: Name) -> tuple[Sheet, Sequence[Recorded]]:
    """The figures of a run, a comparison, a claim, a rental, a campaign or a job, and their records."""
    as_of = past(name.as_of, ledger)
    one_object = name.objects[0] if len(name.objects) == 1 else ""
    if one_object in CLAIMS or one_object.startswith("claim/"):
        return _claimed(ledger, one_object.removeprefix("claim/"), as_of)
    if one_object.startswith(("campaign/", "rental/", "job/")):
        return _spending(ledger, one_object, as_of)
    if one_object.startswith("fleet/"):
        from ouvrage.cli.fleet_report import fleet_figures

        return fleet_figures(ledger, one_object, as_of)
    found = _booked(ledger, one_object, as_of)
    if found is not None:
        return found
    runs = known_runs(ledger, name.objects, as_of)
    if len(runs) > 1:
        found = compared(ledger, runs, None, as_of)
        return found.comparison.sheet, found.records
    (one,) = ledger.assessed(runs, as_of)
    return one.sheet, one.records


def _booked(
    ledger: Ledger, text: str, as_of: int | None
) -> tuple[Sheet, Sequence[Recorded]] | None:
    """The figures of ``OBJECT/PERIOD`` of the books, or None where the name is none of theirs."""
    from ouvrage.cli.book_ledger import book_sheet

    found = book_sheet(ledger, text, as_of) if text else None
    if found is None and "/" in text:
        raise OuvrageError(
            "figure/unknown",
            f"the books hold nothing called {text!r}",
            hint="ouvrage books pnl --by node shows what they hold",
        )
    return found


def _spending(ledger: Ledger, text: str, as_of: int | None) -> tuple[Sheet, Sequence[Recorded]]:
    """The figures of ``rental/CODE``, ``campaign/NAME`` or ``job/ID``."""
    from ouvrage.cli import campaigning, jobs, renting

    sort, _, called = text.partition("/")
    if sort == "job":
        held = jobs.job_found(ledger, called, as_of)
        return held.report.sheet, held.records
    if sort == "campaign":
        found = campaigning.campaign_found(ledger, called, as_of)
        return campaign_sheet(found.campaign), found.records
    records = renting.rental_records(ledger, as_of)
    view = renting.rental_called(called, rental_views(records))
    at = now_us() if as_of is None else as_of
    account = renting.accounted(ledger, view, at, live=as_of is None)
    return rental_sheet(account), [*records, *ledger.records(list(account.time.shares), as_of)]


def _claimed(ledger: Ledger, name: str, as_of: int | None) -> tuple[Sheet, Sequence[Recorded]]:
    """The figures of the claim of this name, and the records about it."""
    records = ledger.store.records(subject=name, as_of=as_of)
    entries = claims_in(in_force(records))
    if not entries:
        recording = f"ouvrage compare RUN RUN --claim {name} records it"
        raise OuvrageError(
            "claim/not-recorded",
            f"the claim {name} is not in this ledger" + (" as known then" if as_of else ""),
            hint=recording
            if name in CLAIMS
            else "ouvrage evidence list shows the claims there are",
        )
    moment_ = as_of if as_of is not None else max(entry.recorded_at for entry in records)
    sheet = entry_sheet(entries[-1], moment_)
    if not sheet.figures:
        raise OuvrageError(
            "figure/unknown",
            f"the claim {name} states no number",
            hint=f"ouvrage evidence show {name}",
        )
    return sheet, records


def _list(sheet: Sheet, *, as_json: bool, plain: bool) -> None:
    """Every figure of a sheet with the name to explain it by."""
    when = utc_text(sheet.as_of)
    figures = list(sheet.figures.values())
    if as_json:
        say_json(
            {
                "object": sheet.object,
                "as_of": when,
                "figures": [_figure_json(sheet, figure, when) for figure in figures],
            }
        )
        return
    rows = [
        (f"{sheet.object}:{figure.path}", valued(figure) + mark(figure.grade, plain))
        for figure in figures
    ]
    say_text(table(("figure", f"as known at {when}"), rows, "<<"))
    say_text(f"\nWhere one comes from: ouvrage explain {rows[0][0]}")


def _figure_json(sheet: Sheet, figure: Figure, when: str) -> dict[str, str | None]:
    return {
        "name": f"{sheet.object}:{figure.path}@{when}",
        "value": exact_text(figure),
        "unit": figure.unit,
        "grade": figure.grade.word if figure.grade is not None else None,
        "why": figure.why,
    }
