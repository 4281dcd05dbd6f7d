"""Answers of Vast.ai in the form that its interface has, made up anew."""

from __future__ import annotations

import json
from collections.abc import Mapping

DAY = 20399  # 2025-11-07
PARTS = ("gpu_earn", "sto_earn", "bwu_earn", "bwd_earn")


def row(key: str, who: int, *amounts: float | str) -> dict[str, object]:
    given = [*amounts, 0, 0, 0, 0][:4]
    return {key: who, **dict(zip(PARTS, given, strict=True))}


def answer(
    first: int,
    last: int,
    machines: Mapping[int, tuple[float, ...]],
    days: Mapping[int, tuple[float, ...]],
) -> str:
    """One answer; sums of ``days`` need not be those of ``machines``: a filter was used."""
    totals = [sum(float((*v, 0, 0, 0, 0)[i]) for v in days.values()) for i in range(4)]
    value = {
        "sday": first,
        "eday": last,
        "summary": dict(
            zip(("total_gpu", "total_stor", "total_bwu", "total_bwd"), totals, strict=True)
        ),
        "current": {"balance": 0.04, "service_fee": 0.0, "total": 0.04, "credit": 0.0},
        "per_machine": [row("machine_id", m, *v) for m, v in machines.items()],
        "per_day": [row("day", d, *v) for d, v in days.items()],
    }
    return json.dumps(value)


def one_machine(days: Mapping[int, tuple[float, ...]], machine: int = 35798) -> str:
    """A window of one machine whose total is what its days add up to."""
    sums = [round(sum((*v, 0, 0, 0, 0)[i] for v in days.values()), 6) for i in range(4)]
    return answer(min(days), max(days), {machine: tuple(sums)}, days)
