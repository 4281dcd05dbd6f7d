"""The account of a month as it was made, to be told again without going over all its readings.

Decides what of an account is kept (what was posted in each cell, and the time in it), and which later
facts leave it standing: a state, a reading or an earning of another time. Any other fact may change it, and
it is then made anew. What is kept names no facts: whoever asks for these has the account made from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ouvrage.base.grades import Grade, grade_of
from ouvrage.books.account import Account, by_cell
from ouvrage.books.cells import Cell, Sum, Sums, grid_of
from ouvrage.books.known import DAILY, FOR_EVER
from ouvrage.books.period import Period
from ouvrage.books.record import BOOK_KINDS, OwnerRecord
from ouvrage.books.revenue import OWN_USE
from ouvrage.ledger.facts import Line

FORM = 1
"""What is kept in another form, or by another version, is not read."""
OTHERS = tuple(kind for kind in BOOK_KINDS if kind not in DAILY)


def may_be_kept(record: OwnerRecord, asked: Period, passed: Period) -> bool:
    """Whether an account of a period depends on nothing that another time's daily facts can change.

    Whole months and years that have passed: tiers and peaks count these. Depreciation by hours looks at the
    work of all time, and a plan is compared with each stretch.
    """
    whole = re.fullmatch("[0-9]{4}(-[0-9]{2})?", asked.name) is not None
    by_hours = any(each.value.method == "hours" for each in record.assets)
    return whole and passed == asked and not by_hours and not record.plans


def stands(line: Line, period: Period) -> bool:
    """Whether what is kept of a period still holds when a fact is known too."""
    if line.kind not in DAILY or line.corrects is not None or OWN_USE in line.payload:
        return False
    ends = FOR_EVER if line.valid_to is None else line.valid_to
    return not (line.valid_from < period.to_us and period.from_us < ends)


def kept_of(made: Account) -> dict[str, Any]:
    """An account as a JSON value, without its facts."""
    cells = {cell: number for number, cell in enumerate(made.cells)}
    methods: dict[str, int] = {}
    sums = [
        [
            line, cells[cell], held.nano, _by_grade(held.by_grade),
            [methods.setdefault(method, len(methods)) for method in held.methods],
        ]
        for (line, cell), held in made.sums.items()
    ]  # fmt: skip
    times = [
        [cells[cell], dict(states), _by_grade(made.graded[cell])]
        for cell, states in made.hours.items()
    ]
    return {
        "cells": [list(cell) for cell in cells], "methods": list(methods), "sums": sums, "times": times,
        "unknown": made.unknown, "notes": list(made.notes), "earning": sorted(made.earning),
        "covered": {device: list(each) for device, each in made.covered.items()},
    }  # fmt: skip


def _by_grade(found: Mapping[Any, int]) -> list[list[Any]]:
    return [[None if grade is None else grade.word, much] for grade, much in found.items()]


def account_of(kept: Mapping[str, Any], record: OwnerRecord, site: str, period: Period) -> Account:
    """The account that was kept; ``record`` needs no facts of the ``DAILY`` kinds."""
    cells = [Cell(*each) for each in kept["cells"]]
    grades: dict[str | None, Any] = {grade.word: grade for grade in Grade} | {None: None}
    sums: Sums = {}
    for line, cell, nano, by_grade, methods in kept["sums"]:
        sums[line, cells[cell]] = Sum(
            nano=nano,
            by_grade={grade_of(word): much for word, much in by_grade},
            methods=dict.fromkeys(kept["methods"][number] for number in methods),
        )
    grid = grid_of(record, site, period)
    return Account(
        record=record,
        grid=grid,
        sums=sums,
        hours={cells[cell]: states for cell, states, _ in kept["times"]},
        graded={
            cells[cell]: {grades[word]: us for word, us in graded}
            for cell, _, graded in kept["times"]
        },
        facts={},
        unknown=kept["unknown"],
        notes=tuple(kept["notes"]),
        lines=by_cell(sums),
        earning=frozenset(kept["earning"]),
        placed={device: record.placed.get(device, ()) for device in grid.models},
        covered={device: (told, owned) for device, (told, owned) in kept["covered"].items()},
    )
