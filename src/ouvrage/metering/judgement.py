"""What people say about a run: how many of its units they accept, and what it was an attempt at.

Decides which statement counts where there are several: the latest made, whoever made it. These
facts come from any source, unlike those of the meter, and never touch the grade of what was
measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ouvrage.base.grades import Grade
from ouvrage.base.names import is_campaign
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.model.accepted import RunAccepted, RunCampaign

SAID_KINDS = (RunAccepted.KIND, RunCampaign.KIND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """``units`` of the run are accepted, counted as ``unit``, because of ``why``.

    ``key`` and ``grade`` are those of the fact that says so, ``stated_us`` is when it was said.
    """

    units: int
    unit: str
    why: str
    key: str
    grade: Grade
    stated_us: int


def acceptance_of(said: Iterable[Recorded]) -> Acceptance | None:
    """The latest acceptance among facts in force about one run; None where nobody judged it."""
    stated = [(entry, read(entry.fact)) for entry in said]
    judged = [(entry.fact, value) for entry, value in stated if isinstance(value, RunAccepted)]
    if not judged:
        return None
    fact, value = max(judged, key=lambda each: (each[0].valid_from, each[0].id, each[0].source))
    return Acceptance(
        units=value.units,
        unit=value.unit,
        why=value.why,
        key=fact.key,
        grade=fact.grade,
        stated_us=fact.valid_from,
    )


def campaigns_of(said: Iterable[Recorded]) -> tuple[str, ...]:
    """The campaigns that facts in force about one run name, as far as they are names of one."""
    stated = (read(entry.fact) for entry in said)
    names = {value.campaign for value in stated if isinstance(value, RunCampaign)}
    return tuple(sorted(name for name in names if is_campaign(name)))
