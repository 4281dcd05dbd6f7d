"""The shipped rules, and short ways to a log's findings."""

from __future__ import annotations

from collections.abc import Sequence

from ouvrage.adapters.health_tables import thresholds, xid_table
from ouvrage.health.xid import Rules, check_log
from ouvrage.model.health import CheckResult

RULES = Rules(xids=xid_table(), bounds=thresholds())
BOUNDS = RULES.bounds


def xid(
    code: int,
    rest: str = "pid=1234, name=python, told",
    pci: str = "PCI:0000:9b:00",
    at: float = 100.0,
) -> str:
    """A line of the driver as dmesg prints it."""
    return f"[{at:12.6f}] NVRM: Xid ({pci}): {code}, {rest}"


def judged(*lines: str) -> Sequence[CheckResult]:
    return check_log(lines, RULES)


def one(*lines: str) -> CheckResult:
    results = judged(*lines)
    assert len(results) == 1, results
    return results[0]
