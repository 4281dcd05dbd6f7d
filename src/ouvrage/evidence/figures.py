"""A figure: a number that can say where it comes from.

A sheet holds every figure about one object, each by its path. A figure names its method in words,
the other figures it was computed from and the facts it stands on, so that ``ouvrage explain`` can
walk from a printed number back to the ledger. Values are exact; texts are made at the edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ouvrage.base.grades import Grade, Shares, whole
from ouvrage.evidence.fact_keys import FactKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """``value`` in ``unit`` (``s``, ``EUR``, ``1`` for a ratio or count); None when not known.

    ``grade`` is the weakest among the inputs and ``shares`` the share of the value at each grade
    (both None or empty when the value is unknown). ``method`` is the rule in words, ``inputs`` are
    paths of other figures in the same sheet, ``facts`` the keys of facts used directly, ``why`` the
    reason when the value is unknown.
    """

    path: str
    value: Fraction | str | None
    unit: str
    grade: Grade | None
    shares: Shares = field(default_factory=dict)
    method: str
    inputs: tuple[str, ...] = ()
    facts: Sequence[str] = ()
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All figures about one object, as known at ``as_of`` (microseconds UTC)."""

    object: str
    as_of: int
    figures: Mapping[str, Figure]

    def __getitem__(self, path: str) -> Figure:
        return self.figures[path]

    def number(self, path: str) -> Fraction | None:
        """The value at a path when it is a number, else None."""
        value = self.figures[path].value
        return value if isinstance(value, Fraction) else None


def known(
    path: str,
    value: Fraction | int | str,
    unit: str,
    grade: Grade,
    method: str,
    *,
    inputs: Iterable[str] = (),
    facts: Iterable[str] = (),
    shares: Shares | None = None,
) -> Figure:
    """A figure with a value; without ``shares`` it stands wholly at its grade."""
    return Figure(
        path=path,
        value=value if isinstance(value, str) else Fraction(value),
        unit=unit,
        grade=grade,
        shares=whole(grade) if shares is None else shares,
        method=method,
        inputs=tuple(inputs),
        facts=facts if isinstance(facts, FactKeys) else tuple(facts),
    )


def unknown(path: str, unit: str, method: str, why: str, *, inputs: Iterable[str] = ()) -> Figure:
    """A figure whose value is not known, and why. Unknown is not zero."""
    return Figure(
        path=path, value=None, unit=unit, grade=None, method=method, inputs=tuple(inputs), why=why
    )
