"""``ouvrage accept RUN``: say how much of a run's work is good, and why.

Decides what may be said: no more units than the meter counted, and never without a reason. Saying it
again about the same run corrects what was said before; both stay in the ledger.
"""

from __future__ import annotations

import click

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.cli.ledger import Assessed, Ledger, known_runs, opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.ledger.kinds import fact_of
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.units import Units
from ouvrage.model.accepted import RunAccepted
from ouvrage.pricing.accepted import SORTS, countable
from ouvrage.pricing.report import report_json
from ouvrage.pricing.summary import money
from ouvrage.pricing.words import counted

_LONGEST = 500


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--units",
    type=click.IntRange(min=0),
    required=True,
    metavar="N",
    help="How many of its finished units are good; 0 rejects all of them.",
)
@click.option("--why", required=True, metavar="TEXT", help="What this judgement rests on.")
@json_option
@plain_option
def accept(run: str, units: int, why: str, as_json: bool, plain: bool) -> None:
    """Say how many finished units of RUN are accepted, and why.

    Until somebody does, a run is not judged: its exit code says how the command ended, not whether
    the work is good. Said again, it corrects what was said before.
    """  # fmt: skip
    _check_text(why)
    with opened() as ledger:
        (found,) = known_runs(ledger, [run], None)
        (before,) = ledger.assessed([found])
        new = _record(ledger, before, units, why)
        (after,) = ledger.assessed([found])
    if as_json:
        say_json(report_json(after.view, after.sheet))
        return
    say_text(_said(after, units, plain) if new else "This was said before; nothing was changed.")
    say_text(f"Correct it: ouvrage accept {after.view.code} --units N --why TEXT")


def _check_text(why: str) -> None:
    if not why.strip() or len(why) > _LONGEST or not why.isprintable():
        raise OuvrageError(
            "accept/why",
            f"a reason is printable text of 1 to {_LONGEST} characters",
            hint='--why "validation loss below 0.1 in every epoch"',
        )


def _record(ledger: Ledger, one: Assessed, accepted: int, why: str) -> bool:
    """Record the judgement, as a correction where there was one; whether it says anything new."""
    view, units = one.view, reckon(one.view).units
    if accepted > countable(units):
        raise _too_many(one, units, accepted)
    stated = RunAccepted(run=view.run, units=accepted, unit=units.name, why=why)
    said = view.acceptance
    if said and (said.units, said.unit, said.why) == (accepted, units.name, why):
        return False
    own, now = source_id(ledger.home), now_us()
    fact = fact_of(
        stated,
        source=own,
        id=f"accepted/{new_id()}",
        subject=view.run,
        valid_from=now,
        valid_to=None,
        grade=Grade.REPORTED,
        corrects=said.key if said else None,
    )
    ledger.store.append([fact], now_us=now, own_source=own)
    return True


def _too_many(one: Assessed, units: Units, accepted: int) -> OuvrageError:
    many = counted(countable(units), units.name)
    hint = "accept what was counted"
    if units.is_command:
        hint = "no unit was seen, so the command is the one; name units with --unit-regex next time"
    return OuvrageError(
        "accept/too-many",
        f"{one.view.code} finished {many}, so {accepted} cannot be accepted",
        where=(f"counted from {units.how}",),
        hint=hint,
    )


def _said(one: Assessed, accepted: int, plain: bool) -> str:
    view, sheet, units = one.view, one.sheet, reckon(one.view).units
    words = f"Accepted {accepted} of {counted(countable(units), units.name)} of {view.code}"
    each = money(sheet, "cost_per_accepted_unit", plain)
    words += f": {each} each" if each else ""
    lost = [
        f"{money(sheet, f'cost.{sort}', plain)} {sort}"
        for sort in SORTS[1:]
        if sheet.number(f"cost.{sort}")
    ]
    return f"{words}; {', '.join(lost)}." if lost else f"{words}."
