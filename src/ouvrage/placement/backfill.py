"""Nodes kept for the first jobs that cannot start yet, and what may run on them meanwhile.

Decides that a node is kept for one job at most, from when at the latest it can start there, and that another job goes
before it only if it has gone by then or takes nothing that is needed then. So no job that starts out of turn makes the
promised moment later. Where nothing says when enough will be free, only what the job has enough of already may be used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ouvrage.placement.places import Amounts, Room, amounts_of, asked
from ouvrage.placement.snapshot import Needs, Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A node kept for ``job``: by ``at_us`` at the latest (None: nothing says when) it can start there.

    ``spare`` is what it does not need at that moment; it shrinks as others take of it.
    """

    job: Waiting
    room: Room
    at_us: int | None
    spare: Amounts

    def allows(self, needs: Needs, model: str, by_us: int | None) -> bool:
        """Whether something that fits now and has gone by ``by_us`` leaves the promise as good as it was."""
        return self._gone_by(by_us) or _within(needs, model, self.spare)

    def taken(self, needs: Needs, model: str, by_us: int | None) -> None:
        """Remember what was given out under the promise."""
        if not self._gone_by(by_us):
            self.spare.add(amounts_of(needs, model), -1)

    def _gone_by(self, by_us: int | None) -> bool:
        return by_us is not None and self.at_us is not None and by_us <= self.at_us


def _within(needs: Needs, model: str, spare: Amounts) -> bool:
    """Whether each thing that is taken at all is there; what is not taken may be short already."""
    return (
        needs.gpus <= max(0, spare.gpus.get(model, 0))
        and needs.cpus <= max(0, spare.cpus)
        and needs.memory_mib <= max(0, spare.memory_mib)
        and needs.disk_mib <= max(0, spare.disk_mib)
    )


def earliest(
    room: Room, needs: Needs, now_us: int, lasts_us: int | None = None
) -> tuple[int, Amounts] | None:
    """From when at the latest ``needs`` fit into a room for so long (None: for ever), and what is free then; None where nothing says."""
    for at, free in room.later(now_us):
        model = free.model_for(needs)
        if model is not None:
            spare = free.copy()
            spare.add(amounts_of(needs, model), -1)
            return room.node.clear_from(at, lasts_us), spare
    return None


def promise(
    job: Waiting, rooms: Iterable[Room], now_us: int, lasts_us: int | None = None
) -> Promise | None:
    """Keep for a job the room where it can start soonest; of several without a known moment, the fullest in what it needs."""
    best: tuple[tuple[int, int, int, str], Promise] | None = None
    for room in rooms:
        found = earliest(room, job.needs, now_us, lasts_us)
        spare = _left(room.free, job.needs) if found is None else found[1]
        at = None if found is None else found[0]
        missing = [max(0, n - room.free.of(r, job.needs.gpu)) for r, n in asked(job.needs).items()]
        rank = (2**63 if at is None else at, missing[0], missing[1], room.node.node)
        if best is None or rank < best[0]:
            best = (rank, Promise(job=job, room=room, at_us=at, spare=spare))
    return best and best[1]


def _left(free: Amounts, needs: Needs) -> Amounts:
    """What there is more than enough of now, whichever model its GPUs will be of."""
    return Amounts(
        gpus={model: max(0, count - needs.gpus) for model, count in free.gpus.items()},
        cpus=max(0, free.cpus - needs.cpus),
        memory_mib=max(0, free.memory_mib - needs.memory_mib),
        disk_mib=max(0, free.disk_mib - needs.disk_mib),
    )
