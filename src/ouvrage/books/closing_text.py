"""A checklist and what moved since a seal, as a person reads them.

Decides words and order alone: what is open first, the widest first; what is in order last.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.books.closing import ACCEPTED, OK, OPEN, Check
from ouvrage.books.gaps_text import signed
from ouvrage.books.period import Period
from ouvrage.books.sealing import Moved
from ouvrage.model.closings import BooksClosed

_ORDER = {OPEN: 0, ACCEPTED: 1, OK: 2}
_SIGNS = {OPEN: "[ ]", ACCEPTED: "[~]", OK: "[x]"}
_MOST = 8


def checks_text(checks: Sequence[Check], period: Period, plain: bool) -> list[str]:
    """A line for each item, and below an open one what settles it."""
    ordered = sorted(checks, key=lambda check: (_ORDER[check.state], -(check.moves or 0)))
    width = min(36, max((len(check.item) for check in checks), default=0))
    lines: list[str] = []
    for check in ordered:
        sign = check.state.ljust(8) if plain else _SIGNS[check.state]
        moves = f" (could move the margin by {fixed(check.moves, 2)})" if check.moves else ""
        lines.append(f"  {sign} {safe(check.item).ljust(width)}  {safe(check.found)}{moves}")
        if check.state == ACCEPTED:
            lines.append(f"  {' ' * len(sign)} {' ' * width}  accepted: {safe(check.why)}")
        elif check.state == OPEN and check.do:
            lines.append(f"  {' ' * len(sign)} {' ' * width}  {safe(check.do)}")
    return lines


def check_json(check: Check) -> dict[str, Any]:
    """An item as ``--json`` prints it."""
    return {
        "item": check.item, "state": check.state, "found": check.found, "do": check.do,
        "why": check.why, "moves": None if check.moves is None else decimal_text(check.moves),
    }  # fmt: skip


def moved_lines(seal: BooksClosed, moved: Sequence[Moved]) -> list[str]:
    """What is said of a closed month below its statement."""
    first = f"closed: seal {seal.number} as known at {utc_text(seal.as_of_us)}, sha256 {seal.file_sha256[:16]}"
    if not moved:
        return [f"{first}; nothing has moved since"]
    parts = [_moved(each) for each in moved[:_MOST]]
    more = f" and {len(moved) - _MOST} more" if len(moved) > _MOST else ""
    return [f"{first}; since then {', '.join(parts)}{more}"]


def _moved(each: Moved) -> str:
    if each.before is None or each.after is None:
        return f"{each.path} {_value(each.before)} to {_value(each.after)}"
    return f"{each.path} {signed(each.after - each.before)} ({_value(each.before)} sealed)"


def _value(value: Fraction | None) -> str:
    return "unknown" if value is None else fixed(value, 2)


def moved_json(each: Moved) -> dict[str, Any]:
    """A figure that moved as ``--json`` prints it."""
    sides = {"sealed": each.before, "now": each.after}
    return {
        "path": each.path, "unit": each.unit,
        **{name: None if value is None else decimal_text(value) for name, value in sides.items()},
    }  # fmt: skip
