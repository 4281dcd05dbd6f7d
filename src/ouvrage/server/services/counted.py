"""Units that attempts finished, by their runs where those are here, else by the last that their runners said.

Decides that a run's own count is measured, as is what passed through to a service, and a runner's word the platform's own record. An attempt that marked no unit has none:
its job as a whole is not taken for one here, since its cost stands beside it anyway.
"""

from __future__ import annotations

from collections.abc import Collection

from ouvrage.base.grades import Grade
from ouvrage.books.dues.invoice import Counted
from ouvrage.ledger.kinds import read
from ouvrage.metering.run_view import run_views
from ouvrage.metering.service_use import Tally
from ouvrage.metering.units import units_of
from ouvrage.model.work import ServiceUsed
from ouvrage.store.platform.dues import attempts_called
from ouvrage.store.store import Store
from ouvrage.store.transaction import Connection


def counted(store: Store, connection: Connection, attempts: Collection[str]) -> dict[str, Counted]:
    """By attempt, what it finished; one that nobody counted is not there."""
    found: dict[str, Counted] = {}
    for each in attempts_called(connection, attempts):
        by_run = _of_service(store, each.attempt) or _of_run(store, each.attempt)
        said = each.progress or {}
        if by_run is not None:
            found[each.attempt] = by_run
        elif said.get("unit") and said.get("units"):
            found[each.attempt] = Counted(
                unit=str(said["unit"]), finished=int(said["units"]), grade=Grade.METERED
            )
    return found


def _of_service(store: Store, attempt: str) -> Counted | None:
    """What a service was asked, where it is one."""
    total = Tally()
    for each in store.records(subject=attempt, kind=ServiceUsed.KIND):
        total.add(read(each.fact))
    unit, finished = total.unit
    if not finished:
        return None
    return Counted(unit=unit, finished=finished, grade=Grade.MEASURED)


def _of_run(store: Store, attempt: str) -> Counted | None:
    view = run_views(store.records(subject=attempt)).get(attempt)
    if view is None:
        return None
    units = units_of(view)
    if units.is_command or not units.finished:
        return None
    return Counted(unit=units.name, finished=units.finished, grade=view.grade)
