"""Whether a machine has what a class of work needs: readings held to needs, one proof each.

Decides how a need grows with the GPUs, that several parts are as good as the worst of them, and that what was not measured is
not proved: a need that must be there and was not tried keeps the certificate from passing. Needs themselves are data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text
from ouvrage.model.health import Proof
from ouvrage.model.hosts import HostReading

AT_LEAST, AT_MOST = OPERATORS = (">=", "<=")
PER = ("machine", "gpu", "gpu_gib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One thing that can be proved: its failure's ``code``, its words, how it is compared, what to do where it fails."""

    id: str
    code: str
    words: str
    unit: str
    operator: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """``base`` + ``value`` times what it is ``per``, no less than ``least`` and no more than ``most``.

    ``needed``: a certificate is not passed while it was not tried.
    """

    classes: tuple[str, ...]
    check: str
    value: Fraction
    base: Fraction
    per: str
    least: Fraction | None
    most: Fraction | None
    needed: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedTable:
    """Classes of work with their words, what can be proved, needs, bounds, and levels of service in percent."""

    version: int
    as_of: str
    classes: Mapping[str, str]
    tests: Mapping[str, Test]
    needs: tuple[Need, ...]
    bounds: Mapping[str, Fraction]
    levels: tuple[Fraction, ...]

    def of(self, work_class: str) -> dict[str, Need]:
        """The need of each check for a class; a later row takes an earlier one's place. ``OuvrageError`` for none."""
        if work_class not in self.classes:
            raise OuvrageError(
                "qualify/class",
                f"no class of work is called {work_class!r}",
                hint=f"--for one of {', '.join(self.classes)}",
            )
        mine = [need for need in self.needs if need.classes == ("*",) or work_class in need.classes]
        return {need.check: need for need in mine}


def proofs(table: NeedTable, work_class: str, readings: Sequence[HostReading]) -> tuple[Proof, ...]:
    """Each need of a class held to what was read of a machine, in the order of the table's tests."""
    needs = table.of(work_class)
    size = _size(readings)
    return tuple(_proof(test, needs[id], size, readings) for id, test in table.tests.items() if id in needs)  # fmt: skip


def passed(found: Sequence[Proof]) -> bool:
    """Whether nothing failed and nothing that is needed was left out."""
    return all(each.passed or (each.passed is None and not each.needed) for each in found)


def _size(readings: Sequence[HostReading]) -> dict[str, Fraction]:
    """How many GPUs there are, and how much memory they have together; a machine of which none was read has one.

    Else a need for each of no GPUs would be no need at all.
    """
    count = next((Fraction(r.low) for r in readings if r.id == "gpu.count" and r.low), Fraction(0))
    memory = sum((Fraction(r.low) for r in readings if r.id == "gpu.memory" and r.low), Fraction(0))
    return {"machine": Fraction(1), "gpu": max(Fraction(1), count), "gpu_gib": memory}


def required(need: Need, size: Mapping[str, Fraction]) -> Fraction:
    """What a machine of this size must have."""
    value = need.base + need.value * size[need.per]
    if need.least is not None:
        value = max(value, need.least)
    return value if need.most is None else min(value, need.most)


def _proof(
    test: Test, need: Need, size: Mapping[str, Fraction], readings: Sequence[HostReading]
) -> Proof:
    wanted = required(need, size)
    actual, how, held = _worst(test, wanted, [r for r in readings if r.id == test.id])
    return Proof(
        id=test.id,
        code=test.code,
        actual=None if actual is None else decimal_text(actual),
        operator=test.operator,
        required=decimal_text(wanted),
        unit=test.unit,
        passed=held,
        needed=need.needed,
        how=how,
        remediation=test.remedy,
    )


def _worst(
    test: Test, wanted: Fraction, found: Sequence[HostReading]
) -> tuple[Fraction | None, str, bool | None]:
    """The worst part's value, how it was found, and whether it holds; the last None where it can't be told."""
    if not found:
        return None, "not tried", None
    judged = [_held(test, wanted, each) for each in found]
    order = {False: 0, None: 1, True: 2}
    held, value, each = min(judged, key=lambda j: (order[j[0]], _badness(test, j[1])))
    part = f"{each.part}: " if each.part else ""
    return value, f"{part}{each.how}", held


def _badness(test: Test, value: Fraction | None) -> Fraction:
    if value is None:
        return Fraction(0)
    return value if test.operator == AT_LEAST else -value


def _held(
    test: Test, wanted: Fraction, each: HostReading
) -> tuple[bool | None, Fraction | None, HostReading]:
    """Held where even the worse bound keeps it, broken where even the better one does not."""
    low = None if each.low is None else Fraction(each.low)
    high = None if each.high is None else Fraction(each.high)
    if test.operator == AT_LEAST:
        worse, better, up = low, high, 1
    else:
        worse, better, up = high, low, -1
    if worse is not None and up * worse >= up * wanted:
        return True, worse, each
    if better is not None and up * better < up * wanted:
        return False, better, each
    return None, worse if worse is not None else better, each
