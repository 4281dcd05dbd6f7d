"""What a node's record comes to: how it stands, how often it was there, what a promise implies, and how it compares with its fleet.

Decides which figures stand side by side: availability between bounds, with a sick GPU counted as down; the times between faults and to
repair; RunPod's published formula; the credit that the owner's own promise implies, with the moves that say so; the lemon score of the node
and of each GPU with its interval; and how many spares the owner's own rate of faults asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.health.availability import (
    DOWN,
    Availability,
    Credit,
    Stay,
    availability,
    credit,
    runpod_reliability,
)
from ouvrage.health.fences import Place
from ouvrage.health.ladder import Step, runbook_of
from ouvrage.health.lemons import DAY_US, Mark, Score, Service, scores
from ouvrage.health.owner import Owner
from ouvrage.health.record import HealthRecord, Heard, Machine, Moved, Try, Walked
from ouvrage.health.service_level import stays
from ouvrage.health.situation import next_for, window_of
from ouvrage.health.spares import Spares, spares
from ouvrage.health.states import Standing
from ouvrage.health.tables import Thresholds
from ouvrage.model.health import HealthEvent, JobBlamed, MaintenanceWindow, Paged

LEAST_FAULTS = 3
"""Faults of one's own before a rate of one's own is believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One GPU, or the node itself where it has none, in the period."""

    found: Availability
    runpod: Fraction
    credit: Credit | None
    score: Score | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Everything about one node, for a period."""

    node: str
    machine: Machine
    from_us: int
    to_us: int
    standings: tuple[Standing, ...]
    fences: tuple[tuple[str | None, str, str], ...]
    against: tuple[Heard, ...]
    moves: tuple[Moved, ...]
    tries: tuple[tuple[Place, Try], ...]
    steps: tuple[Walked, ...]
    pages: tuple[tuple[int, Paged], ...]
    windows: tuple[MaintenanceWindow, ...]
    window: MaintenanceWindow | None
    blames: tuple[JobBlamed, ...]
    nexts: tuple[tuple[Place, Step], ...]
    parts: tuple[Part, ...]
    score: Score | None
    spares: Spares
    gpus: int
    owner: Owner


def account_of(
    record: HealthRecord, node: str, from_us: int, to_us: int, owner: Owner, bounds: Thresholds
) -> Account:
    """A node's account from ``from_us`` to ``to_us``."""
    machine = record.machine(node)
    began = max(from_us, machine.since_us or from_us)
    moves = tuple(m for m in record.moves if record.node(m.move.node) == node and m.at_us <= to_us)
    been = stays(moves, to_us)
    found_scores = {score.serial: score for score in _scores(record, to_us, bounds)}
    names = sorted(machine.devices) or [node]
    parts = tuple(_part(name, been, began, to_us, owner, found_scores.get(name)) for name in names)
    places = [place for place in record.places() if place[0] == node]
    return Account(
        node=node,
        machine=machine,
        from_us=began,
        to_us=to_us,
        standings=tuple(record.standing(place) for place in places),
        fences=tuple(
            (place[1], holder, fence.why)
            for place, by in record.held.items()
            for holder, fence in by.items()
            if place[0] == node
        ),
        against=tuple(heard for place in places for heard in record.against(place)),
        moves=moves,
        tries=tuple((place, each) for place in places for each in record.tries.get(place, ())),
        steps=tuple(each for each in record.steps if record.node(each.step.node) == node),
        pages=tuple(each for each in record.pages.values() if each[1].node in (node, None)),
        windows=tuple(w for w in record.windows.values() if w.node == node and not w.cancelled),
        window=window_of(record, node, to_us),
        blames=tuple(blame for _, blame in record.blames.values() if blame.node == node),
        nexts=tuple(_nexts(record, places, owner, to_us, bounds)),
        parts=parts,
        score=found_scores.get(node),
        spares=_spares(record, to_us, owner, bounds),
        gpus=sum(len(each.devices) for each in record.machines.values()),
        owner=owner,
    )


def _nexts(
    record: HealthRecord, places: list[Place], owner: Owner, now_us: int, bounds: Thresholds
) -> Iterator[tuple[Place, Step]]:
    """What is to be climbed next, of each place that owes a check its being well."""
    for place in places:
        if not record.owed.get(place):
            continue
        observed = record.machine(place[0]).name in owner.observed
        step = next_for(record, place, owner.turned_on, now_us, bounds, observed=observed)
        if step is not None:
            yield place, step


def _part(
    name: str, been: list[Stay], from_us: int, to_us: int, owner: Owner, score: Score | None
) -> Part:
    found = availability(name, been, from_us, to_us)
    return Part(
        found=found,
        runpod=runpod_reliability(max(1, to_us - from_us), found.down_us),
        credit=credit(found, owner.tiers) if owner.tiers else None,
        score=score,
    )


def _scores(record: HealthRecord, now_us: int, bounds: Thresholds) -> list[Score]:
    """Every node and GPU against those of its sort: nodes with nodes, GPUs with GPUs."""
    nodes, gpus, served = [], [], []
    served_gpus: list[Service] = []
    for node, machine in record.machines.items():
        since = now_us if machine.since_us is None else machine.since_us
        served.append(Service(serial=node, from_us=since, to_us=now_us))
        served_gpus += [
            Service(serial=device, from_us=since, to_us=now_us) for device in machine.devices
        ]
    for node, devices, at_us, sort in marks_of(record, now_us):
        nodes.append(Mark(serial=node, at_us=at_us, sort=sort))
        gpus += [Mark(serial=device, at_us=at_us, sort=sort) for device in devices]
    return [*scores(nodes, served, now_us, bounds), *scores(gpus, served_gpus, now_us, bounds)]


Marked = tuple[str, tuple[str, ...], int, str]
"""A node, its GPUs that something speaks against, when, and which sort of ``lemons.WEIGHTS``."""


def marks_of(record: HealthRecord, now_us: int) -> list[Marked]:
    """What speaks against whom, and when, up to a moment: what lemon scores are made of."""
    found: list[Marked] = [
        (record.node(each.move.node), _devices(each.move.device), each.at_us, "fence")
        for each in record.moves
        if each.move.to_state == "fenced"
    ]
    for node, faults in record.faults.items():
        known = record.machine(node).devices
        found += [
            (node, _devices(said.device if said.device in known else None), at_us, "xid")
            for _, at_us, said in faults
            if isinstance(said, HealthEvent)
        ]
    found += [
        (record.node(blame.node), (), at_us, "single_node_failure")
        for at_us, blame in record.blames.values()
        if blame.cause == "hardware"
    ]
    found += [
        (each.node, each.devices, each.at_us, each.sort)
        for each in record.failed.values()
        if each.at_us <= now_us
    ]
    return [*found, *_down_days(record, now_us)]


def _devices(device: str | None) -> tuple[str, ...]:
    return () if device is None else (device,)


_UNDER_REPAIR = DOWN - {"awaiting_hands", "rma"}
"""Down by itself: how long a person or a part is waited for says nothing of the machine."""


def _down_days(record: HealthRecord, now_us: int) -> Iterator[Marked]:
    """A mark for each whole day that a repair took, at that day's end."""
    by_node: dict[str, list[Moved]] = {}
    for each in record.moves:
        by_node.setdefault(record.node(each.move.node), []).append(each)
    for node, moves in by_node.items():
        since: dict[str | None, int] = {}
        for stay in stays(moves, now_us):
            if stay.state not in _UNDER_REPAIR:
                since.pop(stay.device, None)
                continue
            began = since.setdefault(stay.device, stay.from_us)
            first, last = (stay.from_us - began) // DAY_US, (stay.to_us - began) // DAY_US
            for day in range(first, last):
                yield node, _devices(stay.device), began + (day + 1) * DAY_US, "down_day"


def _spares(record: HealthRecord, now_us: int, owner: Owner, bounds: Thresholds) -> Spares:
    """Spare GPUs for the whole fleet, by its own rate once it has faults enough to have one."""
    days, faults = 0.0, 0
    parts = sum(len(machine.devices) for machine in record.machines.values())
    for machine in record.machines.values():
        since = now_us if machine.since_us is None else machine.since_us
        days += len(machine.devices) * max(0, now_us - since) / DAY_US
    faults = sum(1 for _, own, _, sort in marks_of(record, now_us) if sort == "fence" and own)
    rate = 1000 * faults / days if days > 0 and faults >= LEAST_FAULTS else None
    return spares(parts, rate, float(owner.hardware_share), float(owner.days_away), bounds)


def account_plain(account: Account) -> dict[str, Any]:
    """An account as JSON holds it: shares as decimal texts of at most six places, times in microseconds."""
    return {
        "node": account.node,
        "name": account.machine.name,
        "from_us": account.from_us,
        "to_us": account.to_us,
        "boot": account.machine.boot,
        "epoch": account.machine.moves,
        "states": [_state(each) for each in account.standings],
        "fences": [
            {"device": device, "holder": holder, "why": why}
            for device, holder, why in account.fences
        ],
        "against": [_against(heard) for heard in account.against],
        "next": [_next(place, step) for place, step in account.nexts],
        "windows": [_window(each, account.window) for each in account.windows],
        "parts": [_part_plain(part, account) for part in account.parts],
        "score": _score(account.score),
        "spares": _spares_plain(account),
        "promise": share_text(account.owner.promise),
        "turned_on": sorted(account.owner.turned_on),
        "moves": [_move(each) for each in account.moves],
        "remedies": [_remedy(place, each) for place, each in account.tries],
        "steps": [_step(each) for each in account.steps],
        "pages": [
            {"at_us": at_us, "words": page.words, "runbook": page.runbook}
            for at_us, page in account.pages
        ],
        "blames": [_blame(each) for each in account.blames],
    }


def _against(heard: Heard) -> dict[str, Any]:
    said = heard.verdict
    return {
        "id": heard.id, "device": said.device, "check": said.check, "verdict": said.verdict,
        "code": said.code, "action": said.action, "at_us": heard.at_us,
        "runbook": runbook_of(said.action),
    }  # fmt: skip


def _next(place: Place, step: Step) -> dict[str, Any]:
    return {
        "device": place[1], "rung": step.rung, "by_hand": step.hands, "why": step.why,
        "runbook": runbook_of(step.rung),
    }  # fmt: skip


def _window(window: MaintenanceWindow, open_: MaintenanceWindow | None) -> dict[str, Any]:
    return {
        "window": window.window, "from_us": window.from_us, "to_us": window.to_us,
        "why": window.why, "by": window.by,
        "open": open_ is not None and window.window == open_.window,
    }  # fmt: skip


def _spares_plain(account: Account) -> dict[str, Any]:
    found = account.spares
    return {
        "gpus": account.gpus, "count": found.count, "assumed": found.assumed,
        "waiting": f"{found.waiting:.3f}",
        "enough": None if found.enough is None else f"{found.enough:.4f}",
    }  # fmt: skip


def _move(moved: Moved) -> dict[str, Any]:
    move = moved.move
    return {
        "id": moved.id, "at_us": moved.at_us, "device": move.device, "from": move.from_state,
        "to": move.to_state, "actor": move.actor, "reason": move.reason,
        "evidence": list(move.evidence), "epoch": move.epoch,
    }  # fmt: skip


def _remedy(place: Place, tried: Try) -> dict[str, Any]:
    remedy = tried.remedy
    return {
        "at_us": tried.at_us, "device": place[1], "rung": remedy.rung, "outcome": remedy.outcome,
        "verified": remedy.verified, "dry_run": remedy.dry_run, "by": remedy.by, "why": remedy.why,
    }  # fmt: skip


def _step(walked: Walked) -> dict[str, Any]:
    step = walked.step
    return {
        "at_us": walked.at_us, "device": step.device, "rung": step.rung, "number": step.number,
        "step": step.step, "outcome": step.outcome, "note": step.note, "by": step.by,
    }  # fmt: skip


def _blame(blame: JobBlamed) -> dict[str, Any]:
    return {
        "job": blame.job, "attempt": blame.attempt, "cause": blame.cause,
        "percent": blame.percent, "why": blame.why, "billed": blame.billed,
        "evidence": list(blame.evidence),
    }  # fmt: skip


def _state(standing: Standing) -> dict[str, Any]:
    return {
        "device": standing.device, "state": standing.state, "since_us": standing.since_us or None,
        "epoch": standing.epoch,
    }  # fmt: skip


def _part_plain(part: Part, account: Account) -> dict[str, Any]:
    found, given = part.found, part.credit
    return {
        "device": None if found.device == account.node else found.device,
        "up_us": found.up_us, "down_us": found.down_us, "maintenance_us": found.maintenance_us,
        "unknown_us": found.unknown_us, "faults": found.faults,
        "least": share_text(found.least), "most": share_text(found.most),
        "between_faults_us": _whole(found.between_faults_us),
        "to_repair_us": _whole(found.to_repair_us), "runpod": share_text(part.runpod),
        "evidence": list(found.evidence),
        "credit": None if given is None else {
            "percent": share_text(given.percent), "at_most": share_text(given.at_most),
            "evidence": list(given.evidence),
        },
        "score": _score(part.score),
    }  # fmt: skip


def _score(score: Score | None) -> dict[str, Any] | None:
    if score is None:
        return None
    return {
        "per_1000_days": f"{score.rate:.3f}", "low": f"{score.low:.3f}",
        "high": f"{score.high:.3f}", "others": f"{score.fleet:.3f}",
        "factor": None if score.factor is None else f"{score.factor:.2f}",
        "days": f"{score.days:.2f}", "lemon": score.lemon,
    }  # fmt: skip


def share_text(share: Fraction | None) -> str | None:
    """A share as a decimal text, cut after six places: a promise is never rounded up to being kept."""
    if share is None:
        return None
    millionths = share.numerator * 1_000_000 // share.denominator
    text = f"{millionths // 1_000_000}.{millionths % 1_000_000:06d}".rstrip("0")
    return text.rstrip(".")


def _whole(us: Fraction | None) -> int | None:
    return None if us is None else int(us)
