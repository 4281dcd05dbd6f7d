"""The rules by which a machine's next step is decided: shipped defaults, and an owner's own over them.

Decides which numbers an owner can set and what each means; the decision reads them and holds none of its
own. Every default says where it is from, and most are this program's own choice, said so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ouvrage.base.errors import OuvrageError

OURS = "a choice of this program"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A number an owner can set: its meaning, its default and where that is from, the least and the most."""

    name: str
    default: str
    unit: str
    meaning: str
    source: str
    least: str
    most: str


def _rule(name: str, default: str, unit: str, ends: str, meaning: str, source: str = OURS) -> Rule:
    least, _, most = ends.partition(" ")
    return Rule(name=name, default=default, unit=unit, meaning=meaning, source=source,
                least=least, most=most)  # fmt: skip


RULES: tuple[Rule, ...] = (
    _rule("window_days", "90", "days", "14 730", "how many of the last days are looked at"),
    _rule("least_days", "30", "days", "14 365", "days of record below which the answer is: not yet"),
    _rule("least_covered", "0.9", "1", "0 1", "share of a day's time of which a fact must say something, for it to count"),
    _rule("least_gain", "0.05", "1", "0 1", "share of revenue by which another course must be better than holding, at the low end"),
    _rule("grow_above_even", "0.10", "1", "-1 1", "how far the share sold, at its low end, must lie above break-even"),
    _rule("grow_downtime", "0.05", "1", "0 1", "share of time out of order or in maintenance above which nothing is added"),
    _rule("grow_top_tenant", "0.60", "1", "0 1", "share of hours with one tenant above which nothing is added"),
    _rule("grow_support_hours", "6", "h/month", "0 744", "support a month above which nothing is added"),
    _rule("grow_payback_months", "36", "months", "1 240", "time within which another machine must pay for itself",
          "Meta's and Microsoft's servers are written off in five to six years; resale falls after three"),
    _rule("second_sells", "0.9", "1", "0 1", "what another machine earns of what this one earns"),
    _rule("price_step", "0.10", "1", "0.01 0.5", "by how much another price is tried; also twice as much"),
    _rule("elasticity", "2.0", "1", "0.1 10", "how many per cent faster a GPU is let when its price falls by one per cent"),
    _rule("elasticity_low", "1.2", "1", "0.1 10", "the least that this may be: another price must not lose there"),
    _rule("elasticity_high", "3.0", "1", "0.1 10", "the most that this may be: another price must not lose there"),
    _rule("resale_share", "0.5", "1", "0 1", "share of depreciation that selling the machine today would save"),
    _rule("own_hours", "0.9", "1", "0 1", "share of the time for which own work would use the GPUs"),
)  # fmt: skip
Numbers = Mapping[str, float]


def rules_of(given: Mapping[str, Any], file: str = "") -> Numbers:
    """The rules with an owner's own, from the plain values of a file's ``[decide]`` table.

    Raises ``OuvrageError`` ``decide/rule``: no such rule, no number, out of bounds.
    """
    known = {rule.name: rule for rule in RULES}
    found = {rule.name: float(rule.default) for rule in RULES}
    for name, value in given.items():
        rule = known.get(name)
        if rule is None:
            raise OuvrageError(
                "decide/rule", f"there is no rule {name!r}", where=(file,) if file else (),
                hint=f"there is {', '.join(known)}",
            )  # fmt: skip
        number = _number(value)
        if number is None or not Fraction(rule.least) <= number <= Fraction(rule.most):
            raise OuvrageError(
                "decide/rule", f"{name} = {value!r} is no number from {rule.least} to {rule.most}",
                where=(file,) if file else (), hint=f"{name}: {rule.meaning}; {name} = {rule.default}",
            )  # fmt: skip
        found[name] = float(number)
    return found


def _number(value: object) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    try:
        return Fraction(value)
    except (ValueError, OverflowError):
        return None
