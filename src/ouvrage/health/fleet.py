"""How many machines automation may take out: a bound an hour, and a stop when it would be too many.

Decides which of the wanted fences are set now. One check that is wrong, or a service that is slow at boot, makes most of
a fleet look sick at once: then nothing more is fenced and a person is paged. Fences that people or schedulers set
are not counted, nor is a machine that automation has fenced already.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ouvrage.health.tables import Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """A machine that automation fenced, when, and whether the fence still stands."""

    node: str
    at_us: int
    held: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Which machines may be fenced now and which wait; ``page`` is what a person is told, None for nothing.

    ``stopped``: automation fences nothing more until that person has looked.
    """

    now: tuple[str, ...]
    waiting: tuple[str, ...]
    page: str | None
    stopped: bool = False


def cap(nodes: int, bounds: Thresholds) -> int:
    """How many machines automation may fence in an hour: a tenth of them, one at least."""
    return max(1, math.floor(nodes * bounds["fleet.cap_share"] / 100))


def stop(nodes: int, bounds: Thresholds) -> int:
    """At how many machines automation stops: a fifth, and two at least, so that one sick machine of two is fenced."""
    return max(2, math.ceil(nodes * bounds["fleet.stop_share"] / 100))


def allowed(
    wanting: Mapping[str, str],
    fenced: Sequence[Fenced],
    nodes: int,
    now_us: int,
    bounds: Thresholds,
) -> Allowed:
    """Which of the machines in ``wanting`` (with the rule that wants it, the gravest first) may be fenced.

    ``fenced`` are automation's fences, those that were let go within the window included; ``nodes`` is the fleet.
    """
    held = {each.node for each in fenced if each.held}
    lately = {f.node for f in fenced if now_us - f.at_us < bounds.us("fleet.cap_window")}
    new = [node for node in wanting if node not in held]
    if not new:
        return Allowed(now=(), waiting=(), page=None)
    out, most = len(held) + len(new), stop(nodes, bounds)
    if out >= most:
        return Allowed(now=(), waiting=tuple(new), page=_stopped(wanting, out, nodes), stopped=True)
    left = max(0, cap(nodes, bounds) - len(lately))
    # One that was fenced and freed within the window is in the count already.
    now = [node for at, node in enumerate(new) if node in lately or at < left]
    waiting = tuple(node for node in new if node not in now)
    page = None if not waiting else (
        f"{len(waiting)} more machines want a fence; automation sets at most {cap(nodes, bounds)} an hour"
    )  # fmt: skip
    return Allowed(now=tuple(now), waiting=waiting, page=page)


def _stopped(wanting: Mapping[str, str], out: int, nodes: int) -> str:
    rule, count = Counter(wanting.values()).most_common(1)[0]
    return (
        f"{out} of {nodes} machines would be out, {count} of them by {rule}:"
        " automation fences nothing more until a person has looked"
    )
