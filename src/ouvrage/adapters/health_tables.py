"""The tables of health rules as they are shipped: ``health_data/xid.toml``, ``thresholds.toml`` and ``runbooks.toml``.

Decides only how TOML becomes the tables of ``health/tables``; a row without a name that must be there is refused with
the file's name. They are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ouvrage.adapters.toml_text import load_toml
from ouvrage.base.errors import OuvrageError
from ouvrage.health.tables import (
    MODES,
    SORTS,
    Action,
    Debounce,
    NvlinkRule,
    OneProgram,
    Recovery,
    Repeat,
    Source,
    Threshold,
    Thresholds,
    Xid,
    XidTable,
)
from ouvrage.model.health import ACTIONS, VERDICTS

Made = TypeVar("Made")
_US = 1_000_000
_SHIPPED = Path(__file__).resolve().parent.parent / "health_data"
"""By its path: a reader of package data weighs more than a megabyte in the watch, which lives as long as the machine."""


@cache
def xid_table() -> XidTable:
    """The table of Xid codes that this version ships."""
    return xid_table_in("xid.toml", shipped("xid.toml"))


@cache
def thresholds() -> Thresholds:
    """The thresholds that this version ships."""
    return thresholds_in("thresholds.toml", shipped("thresholds.toml"))


@cache
def runbooks() -> Mapping[str, tuple[str, ...]]:
    """The steps of each rung's runbook, as this version ships them."""
    name = "runbooks.toml"
    return whole(name, shipped(name), lambda data: {
        row["rung"]: tuple(row["steps"]) for row in data["runbook"]
    })  # fmt: skip


def shipped(name: str) -> str:
    """The text of a table that this version ships."""
    return (_SHIPPED / name).read_text("utf-8")


def whole(file: str, text: str, make: Callable[[Mapping[str, Any]], Made]) -> Made:
    """What ``make`` makes of a TOML text. Raises ``OuvrageError`` ``health/table`` where it is no such table."""
    data = load_toml(file, text, "health/table")
    try:
        return make(data)
    except (KeyError, TypeError, ValueError) as error:
        raise OuvrageError(
            "health/table",
            f"{file} is no table of health rules: {type(error).__name__} {error}",
            where=(file,),
            hint="compare it with the one that is shipped",
        ) from error


def xid_table_in(file: str, text: str) -> XidTable:
    """The table in a TOML text. Raises ``OuvrageError`` ``health/table``."""
    return whole(file, text, _xid_table)


def thresholds_in(file: str, text: str) -> Thresholds:
    """The thresholds in a TOML text. Raises ``OuvrageError`` ``health/table``."""
    return whole(file, text, _thresholds)


def _xid_table(data: Mapping[str, Any]) -> XidTable:
    actions = {row["name"]: _action(row) for row in data["action"]}
    codes: dict[int, Xid] = {}
    for row in data["xid"]:
        for code in row["codes"]:
            if code in codes:
                raise ValueError(f"code {code} stands in two rows")
            codes[code] = _xid(code, row)
    table = XidTable(
        version=data["version"],
        as_of=data["as_of"],
        codes=dict(sorted(codes.items())),
        actions=actions,
        recoveries={row["value"]: Recovery(**row) for row in data["recovery"]},
        repeats=tuple(_repeat(row) for row in data["repeat"]),
        nvlink=_nvlink(data["nvlink5"]),
        one_program=_one_program(data["one_program"]),
        sources=tuple(Source(**row) for row in data["source"]),
    )
    _check_names(table)
    return table


def _check_names(table: XidTable) -> None:
    named = [
        *(xid.action for xid in table.codes.values()),
        *(recovery.action for recovery in table.recoveries.values()),
        *(repeat.action for repeat in table.repeats),
        table.nvlink.fatal,
        table.nvlink.nonfatal,
        "unknown",
        "ask",
    ]
    # Those of NVLink 5 have no action of their own: the line decides.
    missing = {name for name in named if name != "decode"} - table.actions.keys()
    if missing:
        raise ValueError(f"no action is called {', '.join(sorted(missing))}")


def _action(row: Mapping[str, Any]) -> Action:
    made = Action(at_drain=row.get("at_drain", "none"), **_without(row, "at_drain"))
    if made.verdict not in VERDICTS or made.fence not in ("none", "drain", "now"):
        raise ValueError(f"action {made.name}: verdict {made.verdict}, fence {made.fence}")
    if not {made.rung, made.at_drain} <= set(ACTIONS):
        raise ValueError(f"action {made.name}: rung {made.rung}, at_drain {made.at_drain}")
    return made


def _without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def _xid(code: int, row: Mapping[str, Any]) -> Xid:
    return Xid(
        code=code,
        meaning=row["meaning"],
        sort=row["class"],
        action=row["action"],
        scope=row["scope"],
        note=row.get("note", ""),
        elsewhere=row.get("elsewhere", {}),
        dispute=row.get("dispute", ""),
    )


def _repeat(row: Mapping[str, Any]) -> Repeat:
    if row["mode"] not in MODES or row["same"] not in ("gpu", "place"):
        raise ValueError(f"repeat {row['name']}: mode {row['mode']}, same {row['same']}")
    rest = _without(row, "codes", "window_s")
    return Repeat(codes=frozenset(row["codes"]), window_us=row["window_s"] * _US, **rest)


def _nvlink(row: Mapping[str, Any]) -> NvlinkRule:
    rest = _without(row, "inspect_subcodes")
    return NvlinkRule(inspect_subcodes=frozenset(row["inspect_subcodes"]), **rest)


def _one_program(row: Mapping[str, Any]) -> OneProgram:
    return OneProgram(
        codes=frozenset(row["codes"]), gpus=row["gpus"], within_us=row["within_s"] * _US
    )


def _thresholds(data: Mapping[str, Any]) -> Thresholds:
    rows = [Threshold(value=Fraction(row["value"]), **_without(row, "value"))
            for row in data["threshold"]]  # fmt: skip
    names = {row.name for row in rows}
    if len(names) < len(rows):
        raise ValueError("a threshold stands there twice")
    rules = tuple(_debounce(row) for row in data["rule"])
    if not rules or rules[-1].pattern != "*":
        raise ValueError("the last rule must fit every name")
    return Thresholds(
        version=data["version"],
        as_of=data["as_of"],
        all={row.name: row for row in rows},
        rules=rules,
    )


def _debounce(row: Mapping[str, Any]) -> Debounce:
    if (
        row["sort"] not in SORTS
        or row["mode"] not in MODES
        or row["becomes"] not in ("", *VERDICTS)
    ):
        raise ValueError(f"rule {row['pattern']}: {row['sort']}, {row['mode']}, {row['becomes']}")
    rest = _without(row, "after", "becomes")
    return Debounce(after_us=row["after"] * _US, becomes=row["becomes"] or None, **rest)
