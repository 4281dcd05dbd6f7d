"""The tables that a machine is audited and qualified by, as they are shipped in ``health_data``.

Decides only how TOML becomes the tables of ``health/audit`` and ``health/needs``; a row without a name that must be there is
refused with the file's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from ouvrage.adapters.health_tables import shipped, whole
from ouvrage.health.audit import COMPONENTS, AuditTable, Escape, Service
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
