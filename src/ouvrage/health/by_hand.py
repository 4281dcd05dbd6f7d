"""What a person did or decided about a machine, as facts: a step of a runbook, how a rung ended, a move, a window.

Decides that each is recorded under the epoch of the place that it is about, in the person's name, and that a person moves a machine only where
there is such a move and with a reason. What follows from it is ``response``'s, as from everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.health.fences import Place
from ouvrage.health.record import HealthRecord
from ouvrage.health.states import Wish, moved
from ouvrage.model.health import MaintenanceWindow, Remedy, RepairStep

LONGEST_US = 366 * 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ByHand:
    """What a person says of ``place``: a ``step`` with its ``number`` and how it went, the ``outcome`` of the rung, or a new ``state``."""

    place: Place
    rung: str
    by: str
    number: int = 0
    step: str = ""
    stepped: str | None = None
    outcome: str | None = None
    state: str | None = None
    note: str = ""


def facts_of(record: HealthRecord, said: ByHand, now_us: int) -> list[Any]:
    """The facts that say so. ``OuvrageError`` ``node/move`` where there is no such move."""
    node, device = said.place
    epoch = record.standing(said.place).epoch
    values: list[Any] = []
    if said.stepped is not None:
        values.append(
            RepairStep(
                node=node, device=device, rung=said.rung, number=said.number, step=said.step,
                outcome=said.stepped, note=said.note, by=said.by, epoch=epoch,
            )
        )  # fmt: skip
    if said.outcome is not None:
        values.append(
            Remedy(
                node=node, device=device, rung=said.rung, outcome=said.outcome, verified=None,
                dry_run=False, by=said.by, why=said.note or "by hand", epoch=epoch,
            )
        )  # fmt: skip
    if said.state is not None:
        values.append(_decided(record, said, said.state, now_us))
    return values


def _decided(record: HealthRecord, said: ByHand, state: str, now_us: int) -> Any:
    standing = record.standing(said.place)
    wish = Wish(
        to_state=state, actor=said.by, reason=said.note, evidence=(), boot=None,
        epoch=standing.epoch, at_us=now_us,
    )  # fmt: skip
    found = moved(standing, wish)
    if found.move is None:
        raise OuvrageError(
            "node/move", f"{found.why_not}",
            hint="a move needs a reason (--note TEXT); which there are: the guide on repairs",
        )  # fmt: skip
    return found.move


def window(
    window: str, node: str, from_us: int, to_us: int, why: str, by: str
) -> MaintenanceWindow:
    """A window of maintenance. ``OuvrageError`` ``maintenance/period`` where it does not end after it begins, within a year."""
    if not 0 < to_us - from_us <= LONGEST_US:
        raise OuvrageError(
            "maintenance/period", "a window ends after it begins, within a year",
            hint="--from TIME --to TIME",
        )  # fmt: skip
    return MaintenanceWindow(
        window=window, node=node, from_us=from_us, to_us=to_us, why=why, by=by, cancelled=False
    )


def called_off(record: HealthRecord, node: str, window: str, by: str) -> MaintenanceWindow:
    """A window that is not, after all. ``OuvrageError`` ``maintenance/unknown`` where the node has no such one."""
    found = record.windows.get(window)
    if found is None or found.node != node:
        raise OuvrageError(
            "maintenance/unknown", f"it has no window {window}",
            hint="ouvrage node health lists them",
        )  # fmt: skip
    return MaintenanceWindow(
        window=found.window, node=node, from_us=found.from_us, to_us=found.to_us, why=found.why,
        by=by, cancelled=True,
    )  # fmt: skip
