"""GPU time of pods that hold fractions of a GPU, and what the nodes had left.

Decides that a pod holds its fraction from its placing to its removal, whatever it did with it, that one never placed holds and costs
nothing, and that what was idle is what was there less what was held, exactly. Where pods hold more
than there is, at any moment, that is told and never cut to fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

_MILLI_HOUR = 1000 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """``milli`` thousandths of GPUs from ``begins`` to ``ends`` (seconds); never placed without ``begins``."""

    name: str
    phase: str
    milli: int
    begins: int | None
    ends: int | None
    node: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNode:
    """A node with so many GPUs."""

    name: str
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUse:
    """GPU-hours held, there and idle (the latter two None without nodes), and the most held at a moment.

    ``over`` names what held more than there is: ``node: held of there``.
    """

    held: Fraction
    by_phase: dict[str, Fraction]
    scheduled: int
    never: int
    fractions: int
    there: Fraction | None
    idle: Fraction | None
    peak: Fraction
    over: tuple[str, ...]


def pod_use(pods: Sequence[Pod], nodes: Sequence[PodNode]) -> PodUse:
    """What pods held of some nodes, from the first placing to the last removal."""
    placed = [(pod, pod.begins, pod.ends) for pod in pods if pod.begins is not None]
    by_phase: dict[str, Fraction] = {}
    for pod, begins, ends in placed:
        hours = Fraction(pod.milli * ((ends or begins) - begins), _MILLI_HOUR)
        by_phase[pod.phase] = by_phase.get(pod.phase, Fraction(0)) + hours
    held = sum(by_phase.values(), Fraction(0))
    span = (
        max((ends or begins for _, begins, ends in placed), default=0)
        - min((begins for _, begins, _ in placed), default=0)
    )  # fmt: skip
    gpus = sum(node.gpus for node in nodes)
    there = Fraction(gpus * span, 3600) if nodes else None
    peak = _peak([pod for pod, _, _ in placed])
    return PodUse(
        held=held, by_phase=by_phase, scheduled=len(placed), never=len(pods) - len(placed),
        fractions=sum(bool(pod.milli % 1000) for pod in pods), there=there,
        idle=None if there is None else there - held, peak=Fraction(peak, 1000),
        over=tuple(_over([pod for pod, _, _ in placed], nodes, peak)),
    )  # fmt: skip


def _peak(pods: Iterable[Pod]) -> int:
    """The most thousandths held at one moment; what ends at a moment makes room for what begins."""
    changes: list[tuple[int, int]] = []
    for pod in pods:
        if pod.begins is not None and pod.ends is not None and pod.ends > pod.begins:
            changes += [(pod.begins, pod.milli), (pod.ends, -pod.milli)]
    held = most = 0
    for _, change in sorted(changes):
        held += change
        most = max(most, held)
    return most


def _over(pods: Sequence[Pod], nodes: Sequence[PodNode], peak: int) -> Iterable[str]:
    there = {node.name: node.gpus * 1000 for node in nodes}
    if nodes and peak > sum(there.values()):
        yield f"all nodes: {peak / 1000:g} of {sum(there.values()) / 1000:g} GPUs"
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node is not None:
            by_node.setdefault(pod.node, []).append(pod)
    for name, ours in sorted(by_node.items()):
        most = _peak(ours)
        if name in there and most > there[name]:
            yield f"{name}: {most / 1000:g} of {there[name] / 1000:g} GPUs"
