"""How a check's result is said: the verdict first, then why, then what to do; or one JSON value.

Decides words and order alone. Every kind of action has a page of its own (``docs/runbooks``), named in the last lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ouvrage.base.text import safe
from ouvrage.cli.check_parts import is_absent
from ouvrage.cli.output import shortened, table
from ouvrage.health.findings import together
from ouvrage.health.ladder import TO_DO, runbook_of
from ouvrage.model.health import OK, CheckResult

Parts = Mapping[str, Sequence[CheckResult]]
_SHOWN = 8
_WIDTH = 150


def check_json(whole: CheckResult, parts: Parts) -> dict[str, Any]:
    """The whole result; ``parts`` hold one entry for each disk, GPU or check."""
    return {
        **_one(whole),
        "parts": [_one(each) for results in parts.values() for each in results],
    }


def _one(result: CheckResult) -> dict[str, Any]:
    return {
        "check": result.check,
        "device": result.device,
        "verdict": result.verdict,
        "action": result.action,
        "at_drain": result.at_drain,
        "reasons": list(result.reasons),
        "evidence": [{"name": item.name, "value": item.value} for item in result.evidence],
        "rule": result.rule,
        "grade": result.grade.word,
    }


def check_words(
    whole: CheckResult, parts: Parts, *, plain: bool, rules: str = "docs/reference/xid.md"
) -> str:
    """Lines for a person; the first one is the verdict. ``rules`` names the page that has them."""
    grade = f"({whole.grade.word})" if plain else whole.grade.mark
    lines = [f"{whole.verdict} {grade} {safe(_first(whole))}"]
    lines += [f"  {shortened(reason, _WIDTH)}" for reason in whole.reasons[1:_SHOWN]]
    if len(whole.reasons) > _SHOWN:
        lines.append(f"  and {len(whole.reasons) - _SHOWN} more")
    if len(parts) > 1:
        lines += ["", table(("check", "verdict", "why"), _rows(parts), "<<<")]
    lines += ["", *_to_do(whole, rules)]
    return "\n".join(lines)


def _first(whole: CheckResult) -> str:
    if whole.check == "all" and whole.verdict == OK:
        return "every check that this machine has something for is well"
    about = f"{whole.check}: " if whole.check != "all" else ""
    device = whole.device
    reason = whole.reasons[0]
    return f"{about}{device}: {reason}" if device and device not in reason else f"{about}{reason}"


def _rows(parts: Parts) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    for name, results in parts.items():
        one = together(name, results)
        verdict = "not here" if is_absent(one) else one.verdict
        rows.append((name, verdict, shortened(one.reasons[0], _WIDTH)))
    return rows


def _to_do(whole: CheckResult, rules: str) -> list[str]:
    lines: list[str] = []
    if whole.action != "none":
        lines.append(f"what to do   {TO_DO[whole.action]}")
    if whole.at_drain != "none":
        lines.append(f"when idle    {TO_DO[whole.at_drain]}")
    page = runbook_of(whole.action) or runbook_of(whole.at_drain)
    if page is not None:
        lines.append(f"how          docs/runbooks/{page}.md")
    lines.append(f"more         --json shows the evidence; the rules: {rules}")
    return lines
