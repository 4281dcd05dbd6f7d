"""Certificates and audits made up for tests, and the lines by which they travel."""

from __future__ import annotations

from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of
from ouvrage.ledger.lines import fact_line
from ouvrage.model.health import Audited, NodeAudited, NodeCertificate, Proof

DAY_US = 86_400_000_000
AT_US = 1_794_000_000_000_000
SOURCE = "c" * 32


def proof(passed: bool | None = True, **more: Any) -> Proof:
    values: dict[str, Any] = {
        "id": "cpu.errors", "code": "cpu_wrong_results", "actual": None if passed is None else str(int(not passed)),
        "operator": "<=", "required": "0", "unit": "results", "passed": passed, "needed": True, "how": "compared",
        "remediation": "take overclocking back",
    }  # fmt: skip
    return Proof(**{**values, **more})


def certificate(node: str = "node-1", *, passed: bool = True, **more: Any) -> NodeCertificate:
    values: dict[str, Any] = {
        "certificate": "1" * 32, "node": node, "work_class": "batch", "passed": passed, "proofs": (proof(passed),),
        "figures": (), "parts": ("disk:sda:S1", "gpu:0000:01:00.0:GPU-1"), "table": 1, "tested_us": 1_800_000_000,
        "expires_us": AT_US + 90 * DAY_US,
    }  # fmt: skip
    return NodeCertificate(**{**values, **more})


def audited(node: str = "node-1", verdict: str = "OK", **more: Any) -> NodeAudited:
    result = Audited(check="runc", verdict=verdict, rule="runc/x", reason="runc 1.0 has a way out")
    values: dict[str, Any] = {
        "audit": "2" * 32, "node": node, "verdict": verdict, "results": (result,), "table": 1,
        "expires_us": AT_US + 30 * DAY_US,
    }  # fmt: skip
    return NodeAudited(**{**values, **more})


def proof_fact(value: NodeCertificate | NodeAudited, *, at_us: int = AT_US, **more: Any) -> Fact:
    own = value.certificate if isinstance(value, NodeCertificate) else value.audit
    stated: dict[str, Any] = {
        "source": SOURCE, "id": f"{value.KIND}/{own}", "subject": f"node:{value.node}", "valid_from": at_us,
        "valid_to": value.expires_us, "grade": Grade.MEASURED,
    }  # fmt: skip
    return fact_of(value, **{**stated, **more})


def proof_line(value: NodeCertificate | NodeAudited, **more: Any) -> str:
    return fact_line(proof_fact(value, **more))
