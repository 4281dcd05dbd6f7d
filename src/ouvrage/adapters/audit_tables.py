"""The tables that a machine is audited and qualified by, as they are shipped in ``health_data``.

Decides only how TOML becomes the tables of ``health/audit`` and ``health/needs``; a row without a name that must be there is
refused with the file's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from ouvrage.adapters.health_tables import shipped, whole
from ouvrage.health.audit import COMPONENTS, AuditTable, Escape, Service
from ouvrage.health.needs import OPERATORS, PER, Need, NeedTable, Test
from ouvrage.model.health import VERDICTS


@cache
def audit_table() -> AuditTable:
    """What this version holds against a machine."""
    return audit_table_in("host_audit.toml", shipped("host_audit.toml"))


def audit_table_in(file: str, text: str) -> AuditTable:
    """The table in a TOML text. Raises ``OuvrageError`` ``health/table``."""
    return whole(file, text, _audit_table)


def _audit_table(data: Mapping[str, Any]) -> AuditTable:
    services = [Service(**row) for row in data["service"]]
    bounds = {row["name"]: Fraction(row["value"]) for row in data["bound"]}
    table = AuditTable(
        version=data["version"],
        as_of=data["as_of"],
        escapes=tuple(_escape(row) for row in data["escape"]),
        services={(each.protocol, each.port): each for each in services},
        valid_days=bounds["valid_days"],
    )
    odd = [each.verdict for each in (*table.escapes, *services) if each.verdict not in VERDICTS]
    if odd or len(table.services) < len(services):
        raise ValueError(f"verdict {odd[0]}" if odd else "a port stands there twice")
    return table


def _escape(row: Mapping[str, Any]) -> Escape:
    if row["component"] not in COMPONENTS or not row["fixed"]:
        raise ValueError(f"{row['cve']}: component {row['component']}, fixed in {row['fixed']}")
    rest = {name: value for name, value in row.items() if name not in ("fixed", "mended")}
    return Escape(fixed=tuple(row["fixed"]), mended=tuple(row.get("mended", ())), **rest)


@cache
def need_table() -> NeedTable:
    """What each class of work needs, in this version."""
    return need_table_in("work_classes.toml", shipped("work_classes.toml"))


def need_table_in(file: str, text: str) -> NeedTable:
    """The needs in a TOML text. Raises ``OuvrageError`` ``health/table``."""
    return whole(file, text, _need_table)


def _need_table(data: Mapping[str, Any]) -> NeedTable:
    tests = [Test(**row) for row in data["check"]]
    table = NeedTable(
        version=data["version"],
        as_of=data["as_of"],
        classes={row["name"]: row["words"] for row in data["class"]},
        tests={each.id: each for each in tests},
        needs=tuple(_need(row) for row in data["need"]),
        bounds={row["name"]: Fraction(row["value"]) for row in data["bound"]},
        levels=tuple(Fraction(row["percent"]) for row in data["level"]),
    )
    _check_needs(table, tests)
    return table


def _check_needs(table: NeedTable, tests: Sequence[Test]) -> None:
    if len(table.tests) < len(tests) or len({each.code for each in tests}) < len(tests):
        raise ValueError("an id or a code stands there twice")
    odd = [each.id for each in tests if each.operator not in OPERATORS]
    odd += [need.check for need in table.needs if need.check not in table.tests or need.per not in PER]  # fmt: skip
    odd += [name for need in table.needs for name in need.classes if name not in {"*", *table.classes}]  # fmt: skip
    if odd:
        raise ValueError(f"{odd[0]} is not known")


def _need(row: Mapping[str, Any]) -> Need:
    return Need(
        classes=tuple(row["classes"]),
        check=row["check"],
        value=Fraction(row["value"]),
        base=Fraction(row.get("base", "0")),
        per=row.get("per", "machine"),
        least=Fraction(row["least"]) if "least" in row else None,
        most=Fraction(row["most"]) if "most" in row else None,
        needed=row.get("needed", True),
        source=row["source"],
    )
