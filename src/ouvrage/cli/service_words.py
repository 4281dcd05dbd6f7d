"""A service in words, for whoever shows its job in a terminal.

Decides which of its figures come first: whether it is well, what it did, how long that took, what one unit of it cost. The bounds of
times are those of their buckets, so they are said as at most.
"""

from __future__ import annotations

from typing import Any

from ouvrage.cli.work_words import counted, lasted


def service_lines(found: Any) -> list[str]:
    """Lines about a job's service; none of a job that is none."""
    told = found["service"]
    if told is None:
        return []
    lines = [f"  service    {told['address']}  {_well(told)}"]
    if not told["requests"]:
        return [*lines, "  asked      not yet"]
    failed = f", {told['failed']} failed" if told["failed"] else ""
    lines.append(f"  asked      {counted(told['requests'], 'request')}{failed}{_tokens(told)}")
    names = (("first", "first byte"), ("token", "first text"), ("took", "answers"))
    times = [f"{word} {_times(told[name])}" for name, word in names if told[name]["p50_us"]]
    lines.append(f"  times      {' · '.join(times)}  (half · 95 of 100, at most)")
    if told["cost_per_unit"] is not None:
        lines.append(f"  cost       {told['cost_per_unit']} {told['currency']} per {told['unit']}")
    return lines


def _well(told: Any) -> str:
    words = {True: "well", False: "not well", None: "nobody knows yet how it does"}[told["well"]]
    restarts = told["restarts"]
    return words + (f", started again {counted(restarts, 'time')}" if restarts else "")


def _tokens(told: Any) -> str:
    """Tokens where they were told, and that some were not."""
    if not told["counted"]:
        return f", {counted(told['pieces'], 'piece')} of text" if told["pieces"] else ""
    words = f", {told['tokens_out']} tokens out and {told['tokens_in']} in"
    untold = told["requests"] - told["failed"] - told["counted"]
    return words + (f" ({counted(untold, 'answer')} told none)" if untold > 0 else "")


def _times(times: Any) -> str:
    return f"{lasted(times['p50_us'])} · {lasted(times['p95_us'])}"
