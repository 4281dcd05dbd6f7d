"""Versions that follow one another: each begins where the one before ends.

Decides which version rules a moment, and refuses plans with a gap, an overlap or a version that ends
before it begins. Usage that no version covers is refused too, and never priced by a neighbour.
"""

from __future__ import annotations

from itertools import pairwise

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_text
from ouvrage.pricing.rates.places import Located
from ouvrage.pricing.rates.plan import Plan, Version, day_text


def check_versions(name: str, versions: tuple[Version, ...], file: Located) -> None:
    """Refuse versions that do not meet."""
    for index, version in enumerate(versions):
        start, end = version.valid_from, version.valid_until
        if start is not None and end is not None and end <= start:
            raise _refusal(
                "rate-plan/period",
                f"{name} has a version that ends on {day_text(end)}, no later than it begins",
                (file.where(("version", index, "valid_until")),),
                "valid_until is the first moment at which the version no longer holds",
            )
    for index, (before, after) in enumerate(pairwise(versions)):
        if before.valid_until is None or after.valid_from is None:
            raise _open(name, index, before, file)
        if before.valid_until != after.valid_from:
            raise _unmet(name, index, before.valid_until, after.valid_from, file)


def _open(name: str, index: int, before: Version, file: Located) -> OuvrageError:
    at = index if before.valid_until is None else index + 1
    key = "valid_until" if before.valid_until is None else "valid_from"
    return _refusal(
        "rate-plan/overlap",
        f"{name} has two versions and one has no {key}, so both would hold at once",
        (file.where(("version", at, key)),),
        f"set {key} to the moment at which one version follows the other",
    )


def _unmet(name: str, index: int, until: int, since: int, file: Located) -> OuvrageError:
    where = (
        file.where(("version", index, "valid_until")),
        file.where(("version", index + 1, "valid_from")),
    )
    early, late = day_text(min(until, since)), day_text(max(until, since))
    meet = f"the two versions must meet; set valid_from to {day_text(until)}"
    if until < since:
        message = f"{name} has no rule from {early} to {late}"
        hint = f"{meet}, or add a plan for the days between"
        return _refusal("rate-plan/gap", message, where, hint)
    return _refusal(
        "rate-plan/overlap", f"{name} has two rules from {early} to {late}", where, meet
    )


def _refusal(code: str, message: str, where: tuple[str, ...], hint: str) -> OuvrageError:
    return OuvrageError(code, message, where=where, hint=hint)


def holds(version: Version, at: int) -> bool:
    """Whether a version rules a moment; periods are half-open."""
    early = version.valid_from is not None and at < version.valid_from
    return not early and (version.valid_until is None or at < version.valid_until)


def check_covered(plan: Plan, first: int, last: int, where: tuple[str, ...]) -> None:
    """Refuse usage that begins before the first version or goes on after the last one."""
    start, end = plan.versions[0].valid_from, plan.versions[-1].valid_until
    at = first if start is not None and first < start else last
    if (start is not None and first < start) or (end is not None and last > end):
        raise OuvrageError(
            "rate-plan/not-valid",
            f"{plan.name} says nothing about {utc_text(at)}; it holds {_whole(plan)}",
            where=where,
            hint="ouvrage rates list shows the plans and when they hold",
        )


def _whole(plan: Plan) -> str:
    start, end = plan.versions[0].valid_from, plan.versions[-1].valid_until
    since = "" if start is None else f"from {day_text(start)}"
    until = "" if end is None else f"until {day_text(end)}"
    return " ".join(part for part in (since, until) if part)
