"""Why a job does not start: stable codes, figures, and plain words made from them.

Decides how a reason is told, not which one holds. ``detail`` may be shown to the tenant: it never names another
tenant's job nor a machine; what only the owner should see stands in ``owner``. Words are made when they are asked
for, since a plan gives thousands of reasons and a person reads one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ouvrage.base.time import utc_text
from ouvrage.pricing.words import duration

Detail = Mapping[str, Any]
NOTHING: Detail = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """One job's one reason. ``code`` is a key of ``WORDS``; ``detail`` and ``owner`` are plain JSON values."""

    job: str
    code: str
    detail: Detail = field(default_factory=dict)
    owner: Detail = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The reason in a sentence that a tenant may read."""
        return WORDS[self.code](self.detail)

    def as_json(self, *, owner: bool = False) -> dict[str, Any]:
        """The reason as data; with the owner's own part on request."""
        told = {
            "job": self.job,
            "code": self.code,
            "words": self.words,
            "detail": dict(self.detail),
        }
        return {**told, "owner": dict(self.owner)} if owner else told


def amount(resource: str, count: int, gpu: str | None = None) -> str:
    """``2 GPUs (RTX4090)``, ``1 core``, ``512 MiB of memory``."""
    if resource == "gpu":
        return f"{count} {'GPU' if count == 1 else 'GPUs'}" + (f" ({gpu})" if gpu else "")
    if resource == "cpu":
        return f"{count} {'core' if count == 1 else 'cores'}"
    return f"{count} MiB of {'memory' if resource == 'memory' else 'scratch space'}"


def _when(detail: Detail) -> str:
    if detail.get("by") is not None:
        return f"; it can start at the latest at {utc_text(detail['by'])}"
    return ""


def _waits(resource: str) -> Callable[[Detail], str]:
    def words(detail: Detail) -> str:
        needed = amount(resource, detail["needed"], detail.get("gpu"))
        return f"waits for {needed}: at most {detail['free']} free on one node{_when(detail)}"

    return words


def _never(detail: Detail) -> str:
    needed = amount(detail["resource"], detail["needed"], detail.get("gpu"))
    return f"asks for {needed}; the most on any one node is {detail['most']}"


def _behind(detail: Detail) -> str:
    ahead = detail["ahead"]
    jobs = "1 job is" if ahead == 1 else f"{ahead} jobs are"
    return f"could start, but {jobs} ahead and would have to wait longer{_when(detail)}"


def _lease_behind(detail: Detail) -> str:
    ahead = detail["ahead"]
    return (
        f"waits its turn in its lease: {ahead} of your jobs {'is' if ahead == 1 else 'are'} ahead"
    )


def _lease_busy(detail: Detail) -> str:
    needed = amount(detail["resource"], detail["needed"], detail.get("gpu"))
    return f"waits for {needed} in its lease: {detail['free']} free{_when(detail)}"


def _lease_small(detail: Detail) -> str:
    needed = amount(detail["resource"], detail["needed"], detail.get("gpu"))
    return f"asks for {needed}; its lease has {detail['most']}"


def _paused(detail: Detail) -> str:
    return f"is tried again at {utc_text(detail['at'])}"


def _maintenance(detail: Detail) -> str:
    own = (
        "it has no time limit"
        if detail["limit_us"] is None
        else f"its time limit is {duration(detail['limit_us'])}"
    )
    return (
        f"would run into maintenance: {own}, and where it fits it has to have gone by"
        f" {utc_text(detail['from'])}, or waits until {utc_text(detail['to'])}"
    )


def _said(detail: Detail) -> str:
    return str(detail["words"])


WORDS: dict[str, Callable[[Detail], str]] = {
    "placement/dependency": _said,
    "placement/budget": _said,
    "placement/balance": _said,
    "placement/deadline": _said,
    "placement/held": _said,
    "placement/closed": _said,
    "placement/paused": _paused,
    "placement/lease-gone": lambda _: "the lease it was submitted into has ended",
    "placement/lease-small": _lease_small,
    "placement/lease-busy": _lease_busy,
    "placement/lease-behind": _lease_behind,
    "placement/never-fits": _never,
    "placement/never-together": lambda _: "no one node has all that it asks for",
    "placement/no-nodes": lambda _: "no machine has been enrolled yet",
    "placement/isolation": lambda d: f"no node can run it isolated by {d['isolation']}",
    "placement/not-here": lambda _: "none of the nodes that its offer may be met from is here",
    "placement/failed-everywhere": lambda _: "failed by its hardware on every node where it fits",
    "placement/fenced": lambda _: "the nodes where it fits are withheld from new work for now",
    "placement/unlisted": lambda _: "the nodes where it fits take no new work",
    "placement/notice": lambda d: f"other work was asked to make room{_when(d)}",
    "placement/maintenance": _maintenance,
    "placement/waits-gpu": _waits("gpu"),
    "placement/waits-cpu": _waits("cpu"),
    "placement/waits-memory": _waits("memory"),
    "placement/waits-disk": _waits("disk"),
    "placement/waits-together": lambda d: (
        f"each thing it needs is free, but not all on one node{_when(d)}"
    ),
    "placement/behind": _behind,
    **dict.fromkeys(
        (
            "slurm/new",
            "slurm/resources",
            "slurm/priority",
            "slurm/dependency",
            "slurm/held",
            "slurm/begin",
            "slurm/nodes",
            "slurm/reservation",
            "slurm/partition",
            "slurm/too-long",
            "slurm/too-large",
            "slurm/licenses",
            "slurm/cleaning",
            "slurm/prolog",
            "slurm/launch",
            "slurm/limit",
            "slurm/other",
            "slurm/away",
            "slurm/refused",
        ),
        _said,
    ),
}
"""Every code, and how its figures are put into words."""
