"""Rentals for the verbs that state, show or sum them: found by name, with the runs on them.

Decides which runs are looked at: those that began before the rental's end and belong to its machine,
or are named by it. A run that has not ended counts as working up to the moment asked about.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ouvrage.adapters.web_address import address_fault
from ouvrage.base.errors import OuvrageError
from ouvrage.base.ids import CODE_LENGTH, normal_code
from ouvrage.base.time import utc_text
from ouvrage.cli.ledger import Ledger
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.metering.rental_view import (
    RENTAL_KINDS,
    RentalView,
    Stay,
    end_of,
    rental_views,
    stay_of,
)
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.model.records import Withdrawal
from ouvrage.model.runs import RunStarted
from ouvrage.pricing.rental_cost import RentalAccount, account_of
from ouvrage.store.samples import write_whole

FIRST = "ouvrage rental start --price 0.44/h, as soon as the machine is paid for"


def rental_records(ledger: Ledger, as_of: int | None) -> list[Recorded]:
    """Every record that states a rental, and the withdrawals that may concern one."""
    kinds = (*RENTAL_KINDS, Withdrawal.KIND)
    return [entry for kind in kinds for entry in ledger.store.records(kind=kind, as_of=as_of)]


def rentals(ledger: Ledger, as_of: int | None = None) -> dict[str, RentalView]:
    """Every rental by id, as known at a moment."""
    return rental_views(rental_records(ledger, as_of))


def rental_called(text: str, views: dict[str, RentalView]) -> RentalView:
    """The rental that a person means: by id, code, label (its latest), or ``last``."""
    held = list(views.values())
    if not held:
        raise OuvrageError("rental/none", "no rental is recorded yet", hint=FIRST)
    if text == "last":
        return held[-1]
    wanted = text.removeprefix("rental/")
    code = normal_code(wanted)
    found = [view for view in held if wanted == view.rental]
    if not found and len(code) >= CODE_LENGTH:
        found = [view for view in held if view.code == code]
    found = found or [view for view in held if view.started.label == text][-1:]
    if len(found) == 1:
        return found[0]
    raise OuvrageError(
        "rental/ambiguous" if found else "rental/unknown",
        f"{text!r} names {len(found)} rentals" if found else f"no rental is called {text!r}",
        where=tuple(_line(view) for view in (found or held[-3:])),
        hint="name it by its whole id" if found else "ouvrage rental show lists them",
    )


def open_rental(text: str | None, views: dict[str, RentalView]) -> RentalView:
    """The rental named, or without a name the only one that is still paid for."""
    if text is not None:
        return rental_called(text, views)
    held = [view for view in views.values() if view.ended_us is None]
    if len(held) == 1:
        return held[0]
    if held:
        raise OuvrageError(
            "rental/which", f"{len(held)} rentals are being paid for",
            where=tuple(_line(view) for view in held), hint="name one of them",
        )  # fmt: skip
    raise OuvrageError("rental/none-open", "no rental is being paid for", hint=FIRST)


def _line(view: RentalView) -> str:
    began = utc_text(view.started.started_us)[:16] + "Z"
    return f"{view.code}  {view.rental}  {began}  {view.started.label or ''}".rstrip()


def run_starts(ledger: Ledger, as_of: int | None) -> list[tuple[str, RunStarted]]:
    """(source, start) of every run that has ended."""
    entries = in_force(ledger.store.records(kind=RunStarted.KIND, as_of=as_of))
    read_all = [(entry.fact.source, read(entry.fact)) for entry in entries]
    return [(source, start) for source, start in read_all if isinstance(start, RunStarted)]


def runs_on(ledger: Ledger, view: RentalView, as_of: int) -> list[RunView]:
    """The ended runs that may have stood on the rented machine while it was paid for."""
    until = view.until(as_of)
    wanted = [
        start.run
        for source, start in run_starts(ledger, as_of)
        if view.holds(start.run, source) and start.started_us < until
    ]
    views = (run_views(ledger.records([run], as_of)).get(run) for run in wanted)
    return [
        found for found in views if found is not None and end_of(found) > view.started.started_us
    ]


def accounted(ledger: Ledger, view: RentalView, as_of: int, *, live: bool) -> RentalAccount:
    """The account of a rental at a moment; with ``live`` runs still going count as working."""
    ended = runs_on(ledger, view, as_of)
    going = _running(ledger, view, as_of) if live else []
    facts = [key for run in ended for key in run.facts("run.started", "run.ended")]
    return account_of(
        view,
        [*map(stay_of, ended), *going],
        as_of,
        running=[stay.run for stay in going],
        run_facts=facts,
    )


def _running(ledger: Ledger, view: RentalView, as_of: int) -> Sequence[Stay]:
    return [
        Stay(run=live.run, from_us=live.started_us, to_us=as_of)
        for live in ledger.intake.running
        if live.spool is not None and view.holds(live.run, live.spool.source)
    ]


def check_channels(webhook: str | None, label: str | None) -> None:
    """Raise ``OuvrageError`` where an alarm could not be posted, or a label is no name."""
    fault = address_fault(webhook) if webhook is not None else None
    if fault:
        told = repr(webhook) if webhook and "@" not in webhook else "the address"
        raise OuvrageError(
            "rental/webhook", f"{told} cannot be posted to: {fault}",
            hint="--webhook https://example.org/hook",
        )  # fmt: skip
    if label is not None and (
        not label.strip() or len(label) > 200 or not label.isprintable() or label == "last"
    ):
        raise OuvrageError(
            "rental/label", f"--label {label!r} is not a name", hint="some printable characters"
        )


def keep_channels(place: Path, found: str, channels: dict[str, str | None]) -> None:
    """Keep where a rental's alarms go, readable by the owner of the home alone."""
    write_whole(channels_file(place, found), (json.dumps(channels) + "\n").encode())


def channels_file(place: Path, found: str) -> Path:
    """The file that says where a rental's alarms go."""
    return place / "alarms" / f"{found}.json"
