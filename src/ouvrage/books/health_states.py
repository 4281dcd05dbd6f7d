"""What moves of health say about an owner's devices: down while broken, in maintenance while that is meant, with the reason.

Decides that a place is down from when it was fenced until it was found well, work that went on there included: a sick GPU is down,
as in what is promised for it. Silence and doubt say nothing about a device. Moves follow one another by their epochs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from ouvrage.books.known import Known
from ouvrage.health.availability import sort_of
from ouvrage.model.health import StateMove
from ouvrage.model.occupancy import DeviceState

Move = Known[StateMove]


def states_of_moves(
    moves: Sequence[Move],
    names: Mapping[str, str],
    nodes: Collection[str],
    devices: Collection[str],
) -> Iterator[Known[DeviceState]]:
    """States of devices on ``nodes`` that the books know. ``names`` are those of the platform's nodes by their ids."""
    places: dict[tuple[str, str | None], list[Move]] = {}
    for each in moves:
        node = names.get(each.value.node, each.value.node)
        if node in nodes:
            places.setdefault((node, each.value.device), []).append(each)
    for (node, device), found in places.items():
        for first, sort, end in _spells(found):
            if sort not in ("down", "maintenance") or (end is not None and end <= first.valid_from):
                continue
            known = device in devices
            state = DeviceState(
                device=device if known else None, node=None if known else node,
                count=None if known or device is None else 1, state=sort,
                cause=first.value.reason[:200], channel=None, tenant=None, lease=None,
            )  # fmt: skip
            yield Known(
                value=state, valid_from=first.valid_from, valid_to=end, grade=first.grade,
                key=first.key,
            )  # fmt: skip


def _spells(moves: Sequence[Move]) -> Iterator[tuple[Move, str, int | None]]:
    """Each stretch of one sort: the move that began it, its sort, and when it ended (None: it lasts)."""
    ordered = sorted(moves, key=lambda each: each.value.epoch)
    groups = [
        (next(group), sort)
        for sort, group in groupby(ordered, key=lambda each: sort_of(each.value.to_state))
    ]
    for at, (first, sort) in enumerate(groups):
        last = at == len(groups) - 1
        yield first, sort, None if last else groups[at + 1][0].valid_from
