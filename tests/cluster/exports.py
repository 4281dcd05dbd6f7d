"""Exports of a cluster made up for tests: rows of ``sacct`` with the columns that are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from ouvrage.adapters.feeds.sacct import read_sacct
from ouvrage.adapters.feeds.told import Told
from ouvrage.books.cluster_jobs import Attempt, attempts_of
from ouvrage.books.known import Known
from ouvrage.ledger.stated import Stated

COLUMNS = (
    "JobIDRaw", "Cluster", "State", "Submit", "Start", "End", "ElapsedRaw", "AllocTRES", "NodeList", "Account",
)  # fmt: skip
USUAL = {
    "JobIDRaw": "1", "Cluster": "lab", "State": "COMPLETED", "Submit": "2026-11-01T09:00:00",
    "Start": "2026-11-01T10:00:00", "End": "2026-11-01T12:00:00", "ElapsedRaw": "",
    "AllocTRES": "billing=4,cpu=8,gres/gpu=4,node=2", "NodeList": "n[1-2]", "Account": "physics",
}  # fmt: skip


def row(**cells: str) -> str:
    """A line of an export; a column that is not named has what is usual."""
    return "|".join({**USUAL, **cells}[name] for name in COLUMNS)


def export(*rows: str) -> str:
    """A file with its line of names."""
    return "\n".join(["|".join(COLUMNS), *rows]) + "\n"


def read(text: str, zone: str = "UTC") -> tuple[list[Stated], Told]:
    """What a text states, and what could not be read."""
    told = Told(form="sacct", file="jobs.txt")
    return read_sacct(text, told, zone, None, None), told


def known(said: Sequence[Stated]) -> list[Known]:
    """Statements as the books know them."""
    return [
        Known(value=s.value, valid_from=s.valid_from, valid_to=s.valid_to, grade=s.grade, key=s.id)
        for s in said
    ]


def attempts(*rows: str, zone: str = "UTC") -> tuple[Attempt, ...]:
    """The attempts that some rows make."""
    said, told = read(export(*rows), zone)
    assert not told.faults, told.faults
    return attempts_of(known(said))
