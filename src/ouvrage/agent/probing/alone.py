"""A machine without a server looks after itself: a fleet of one, whose facts stand in the store of its home.

Decides what the server decides elsewhere, by the same rules (``health/response``): what is fenced, what is climbed, whom to tell. Who works on a
GPU is whoever has it open and is neither ours nor a service of the driver's. On a machine that others run, nothing is ever touched: the ladder is a person.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ouvrage.adapters.health_tables import thresholds
from ouvrage.adapters.machine_port import MachinePort, NotDone
from ouvrage.agent.probing.climbing import COMMS
from ouvrage.base.grades import Grade
from ouvrage.health.fences import Place
from ouvrage.health.owner import Owner
from ouvrage.health.record import KINDS_READ, HealthRecord, record_of
from ouvrage.health.response import Response, respond
from ouvrage.health.situation import Situation
from ouvrage.ledger.kinds import fact_of
from ouvrage.store.store import Store


def record_in(store: Store) -> HealthRecord:
    """The record of health in a home's store."""
    return record_of(entry for kind in KINDS_READ for entry in store.records(kind=kind))


def look(
    store: Store, source: str, node: str, owner: Owner, machine: MachinePort, now_us: int,
    ids: Any, *, observer: bool,
) -> tuple[Response, HealthRecord]:  # fmt: skip
    """Look once and record what follows; the response, and the record after it. ``ids`` makes new ids."""
    record = record_in(store)
    if node not in record.machines:
        return Response(), record
    situation = Situation(
        record=record,
        nodes=frozenset({node}),
        busy=frozenset(_busy(record, node, machine)),
        turned_on=owner.turned_on - {"power_cycle"},  # it would not outlast that itself
        observed=frozenset({node}) if observer or node in owner.observed else frozenset(),
    )
    found = respond(situation, now_us, thresholds())
    news = (*found.moves, *found.fences, *found.remedies, *found.pages)
    facts = [
        fact_of(
            value, source=source, id=f"{value.KIND}/node:{node}/{ids()}", subject=f"node:{node}",
            valid_from=now_us, valid_to=now_us, grade=Grade.METERED,
        )
        for value in news
    ]  # fmt: skip
    store.append(facts, now_us=now_us, own_source=source)
    return found, record_in(store) if facts else record


def _busy(record: HealthRecord, node: str, machine: MachinePort) -> Iterable[Place]:
    """The GPUs that somebody's work has open."""
    parts = {device for at, device in record.standings if at == node and device is not None}
    for device in sorted(parts | record.machine(node).devices):
        try:
            if any(not each.ours and each.name not in COMMS for each in machine.holders(device)):
                yield (node, device)
        except NotDone:
            continue  # it has no device file any more: nobody has it open
