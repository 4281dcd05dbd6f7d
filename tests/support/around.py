"""Lines of a spool about what surrounds a run, and jobs made of such runs."""

from __future__ import annotations

from typing import Any

from ouvrage.metering.run_view import RunView
from tests.support import runs

BOX_A, BOX_B, BOX_C = "a" * 16, "b" * 16, "c" * 16
NAMES = {BOX_A: "box-a", BOX_B: "box-b", BOX_C: "box-c"}
HOUR = {"amount": "3.60", "currency": "EUR", "per": "h"}


def around(kind: str, t: int = 0, **value: Any) -> dict[str, Any]:
    return {"k": "around", "kind": kind, "t": t, "value": value}


def job(host: str = BOX_A, name: str = "train", **changes: Any) -> dict[str, Any]:
    value: dict[str, Any] = {"job": name, "via": "--job", "host": host, "host_name": NAMES[host]}
    value |= dict.fromkeys(("node", "nodes", "rank", "local_rank", "ranks", "restart"))
    return around("run.job", **value | changes)


def member(
    number: int,
    host: str = BOX_A,
    *,
    ends: tuple[float, ...] = (),
    start: float = 0,
    wall: float = 10,
    price: dict[str, str] | None = HOUR,
    more: tuple[dict[str, Any], ...] = (),
    exit_code: int = 0,
    **place: Any,
) -> list[str]:
    """One run of a job: units 1, 2 … that end at these seconds, begun ``start`` seconds after the first."""
    run = f"{number:032x}"
    lines = [
        runs.header(run=run, source=f"{number:032x}", price=price,
                    started_us=runs.STARTED + round(start * runs.S)),
        job(host, **place),
        *runs.busy(int(wall)),
        *more,
    ]  # fmt: skip
    if ends:
        lines.append(runs.ends(*ends))
    return runs.written(*lines, runs.end(wall, exit_code))


def view(lines: list[str]) -> RunView:
    from ouvrage.metering.run_view import run_views

    (found,) = run_views(runs.recorded(lines)).values()
    return found
