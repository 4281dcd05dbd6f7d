"""The ledger as a verb sees it: opened, with every finished run brought in, and runs by name.

Decides which facts stand behind one answer: those of the runs asked about, as known at a moment.
Where no moment is given it is the last one at which anything about these runs was recorded, so the
same question has the same answer, and its figures the same names, until something new is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import home
from ouvrage.base.errors import OuvrageError
from ouvrage.base.ids import code_of
from ouvrage.base.time import utc_text
from ouvrage.cli.naming import FIRST_RUN, RunName, run_called
from ouvrage.cli.output import say_text, wrote
from ouvrage.evidence.figures import Sheet
from ouvrage.ledger.facts import Recorded
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.metering.spool import Spool
from ouvrage.metering.whole_spool import read_lines
from ouvrage.model.runs import RunStarted
from ouvrage.store.intake import IntakeReport, bring_in
from ouvrage.store.samples import read_sealed
from ouvrage.store.store import Store, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed:
    """One run with its figures, and the records they stand on."""

    view: RunView
    sheet: Sheet
    records: tuple[Recorded, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """An open store, the home it belongs to, and what was just brought into it."""

    home: Path
    store: Store
    intake: IntakeReport

    def names(self, as_of: int | None = None) -> list[RunName]:
        """Every run as it can be called, as known at a moment."""
        views = run_views(self.store.records(kind=RunStarted.KIND, as_of=as_of)).values()
        return [
            RunName(run=view.run, label=view.started.label, started_us=view.started.started_us)
            for view in views
        ]

    def find(self, text: str, as_of: int | None = None) -> str:
        """The id of the run a person means. A running one has no figures yet, and that is said."""
        names = self.names(as_of)
        running = [
            RunName(run=live.run, label=live.label, started_us=live.started_us)
            for live in self.intake.running
            if as_of is None
        ]
        run = run_called(text, [*names, *running])
        if any(name.run == run for name in running):
            raise OuvrageError(
                "run/running",
                f"{code_of(run)} is still running; it is reported when it ends",
                hint="ouvrage runs shows how far it is",
            )
        return run

    def spool(self, run: str) -> Spool | None:
        """Everything that a run's meter wrote, raw samples included, where this home has it."""
        data = read_sealed(self.home, run)
        return None if data is None else read_lines(data)

    def records(self, runs: Sequence[str], as_of: int | None) -> list[Recorded]:
        """Every record about these runs."""
        return [r for run in runs for r in self.store.records(subject=run, as_of=as_of)]

    def assessed(self, runs: Sequence[str], as_of: int | None = None) -> list[Assessed]:
        """These runs with their figures, all as known at one moment."""
        records = [tuple(self.records([run], as_of)) for run in runs]
        moment = as_of if as_of is not None else max(r.recorded_at for per in records for r in per)
        return [_assessed(run, per, moment) for run, per in zip(runs, records, strict=True)]


def _assessed(run: str, records: tuple[Recorded, ...], as_of: int) -> Assessed:
    from ouvrage.pricing.unit_cost import sheet_of  # most verbs need no rate plans

    view = run_views(records)[run]
    return Assessed(view=view, sheet=sheet_of(view, as_of), records=records)


@contextmanager
def opened() -> Iterator[Ledger]:
    """The ledger of this home, or of ``OUVRAGE_STORE``, with every finished run brought in."""
    place = home()
    with open_store(os.environ.get("OUVRAGE_STORE") or place / "ouvrage.db") as store:
        before = store.head().seq
        try:
            intake = bring_in(place, store, now_us())
            for note in intake.broken:
                say_text(f"warning: {note}", err=True)
            yield Ledger(home=place, store=store, intake=intake)
        except OuvrageError:
            if _grew(store, before):
                wrote()
            raise


def _grew(store: Store, before: int) -> bool:
    """Whether anything was recorded since; taken to be so where the store cannot be asked."""
    try:
        return store.head().seq != before
    except OuvrageError:
        return True


def past(as_of: int | None, ledger: Ledger) -> int | None:
    """The moment, closed so that nothing is recorded before it later, or refused if yet to come."""
    return None if as_of is None else ledger.store.moment(as_of, now_us=now_us())


def known_runs(ledger: Ledger, texts: Sequence[str], as_of: int | None) -> list[str]:
    """The ids of the runs that some arguments name, refused where there is none to name."""
    if not ledger.names(as_of) and as_of is not None:
        raise OuvrageError(
            "run/none", f"no run was known at {utc_text(as_of)}", hint="ouvrage runs lists them"
        )
    if not ledger.names() and not ledger.intake.running:
        raise OuvrageError("run/none", "there are no runs yet", hint=FIRST_RUN)
    return [ledger.find(text, as_of) for text in texts]
