"""The page docs/reference/verdicts.md: the score, who was taken for what, and every run.

Says the machine in words and names no host, user or path.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from bench.verdicts.injections import modern
from bench.verdicts.scoring import CROWDED, Outcome, Score, confusion, score

HEAD = """# Verdicts, scored

Written by `python -m bench.verdicts --write`, as root. Real programs run under `ouvrage run` while the
kernel holds them up in a known way; the verdict of each report is set against the one that was
stated before the run. The programs, what is injected and why which verdict is
expected stand in `bench/verdicts/cases.py`, where the development set, on which rules may be tried,
is another one. *Unknown* counts as not right; a control, of which nothing can be known from outside, is counted apart."""


def page(outcomes: Sequence[Outcome], impossible: dict[str, str]) -> str:
    """The whole page."""
    scored = [outcome for outcome in outcomes if not outcome.case.control]
    controls = [outcome for outcome in outcomes if outcome.case.control]
    quiet = [outcome for outcome in scored if not outcome.disturbed]
    parts = [HEAD, _machine(), "## Score", _scores(scored, quiet, controls)]
    parts += ["## Expected and found", _confusion(scored)]
    parts += ["## What was not right", _not_right(outcomes)]
    if impossible:
        parts.append("## What could not be injected on this machine")
        parts.append("\n".join(f"- {what}: {why}" for what, why in impossible.items()))
    parts += ["## Every run", _runs(outcomes)]
    return "\n\n".join(parts) + "\n"


def words(name: Score) -> str:
    """``45 of 48 right (94 %, 95 % interval 83–98 %), 2 unknown, 1 wrong``."""
    span = f"{100 * name.low:.0f}–{100 * name.high:.0f} %"
    return (
        f"{name.right} of {name.total} right ({100 * name.share:.0f} %, 95 % interval {span}),"
        f" {name.unknown} unknown, {name.wrong} wrong"
    )


def _machine() -> str:
    day = datetime.now(timezone.utc).date()
    groups = "control groups version 2" if modern() else "control groups version 1"
    return (
        f"Measured on {day} on {os.cpu_count()} cores of {_model()}, "
        f"Linux {platform.release().partition('-')[0]}, {groups}, "
        f"Python {platform.python_version()}."
    )


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "an unknown processor"


def _scores(
    scored: Sequence[Outcome], quiet: Sequence[Outcome], controls: Sequence[Outcome]
) -> str:
    held = sum(outcome.mark == "right" for outcome in controls)
    lines = [f"- held-out set: **{words(score(scored))}**"]
    disturbed = len(scored) - len(quiet)
    if disturbed:
        without = f"; without them: {words(score(quiet))}" if quiet else ""
        lines.append(
            f"- {disturbed} of the runs were disturbed: other programs used more than "
            f"{100 * CROWDED:.0f} % of the machine meanwhile{without}"
        )
    lines.append(f"- controls that were rightly left unnamed: {held} of {len(controls)}")
    lines.append(
        "- the runs take precedence over other programs by their priority, so that a busy machine "
        "delays them little"
    )
    return "\n".join(lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _confusion(scored: Sequence[Outcome]) -> str:
    names, told = confusion(scored)
    rows = [
        [f"`{row}`", *(str(told.get((row, name), "·")) for name in names)]
        for row in names
        if any(told.get((row, name)) for name in names)
    ]
    return _table(["expected ↓ found →", *(f"`{name}`" for name in names)], rows)


def _not_right(outcomes: Sequence[Outcome]) -> str:
    lines = [
        f"- `{o.case.program}` with {o.case.cause}: expected `{o.case.expected}` because {o.case.why}; "
        f"found `{o.verdict}`: {o.evidence} ({_shares(o)})"
        for o in outcomes
        if o.mark != "right"
    ]
    return "\n".join(lines) or "Nothing."


def _shares(outcome: Outcome) -> str:
    told = sorted(outcome.times.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in told if share >= 0.01)


def _runs(outcomes: Sequence[Outcome]) -> str:
    rows = [
        [
            f"`{o.case.program}`", o.case.cause, f"`{o.case.expected}`", f"`{o.verdict}`",
            f"{100 * o.share:.0f} %", o.mark + (" (control)" if o.case.control else ""),
            f"{100 * o.others:.0f} %" + (" disturbed" if o.disturbed else ""),
        ]
        for o in outcomes
    ]  # fmt: skip
    return _table(["program", "injected", "expected", "found", "share", "", "others"], rows)
