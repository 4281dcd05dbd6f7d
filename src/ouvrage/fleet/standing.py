"""How a member stands: what Slurm says of it, held to what the fleet's files say and to what it is and has proved today.

Decides which differences are told and in whose words. Nothing here moves a node: a machine that would not join today is named, and
stays until its owner removes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ouvrage.fleet.joining import Refusal
from ouvrage.model.bringup import FleetMember

_GRES = re.compile(r"gres/gpu\S* count reported lower than configured \((\d+) < (\d+)\)")
_RELEASE = re.compile(r"(\d+)\.(\d+)")
_LIES = "INVALID_REG"
_BAD = (
    "DOWN",
    "DRAIN",
    "FAIL",
    "FAILING",
    "ERROR",
    _LIES,
    "NOT_RESPONDING",
    "UNKNOWN",
    "POWERED_DOWN",
)
_BEHIND = 2
"""How many releases a node may be behind its controller (https://slurm.schedmd.com/quickstart_admin.html#upgrade, before 24.11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSaid:
    """What Slurm says of a node: its state's words, the reason given for it, its daemon's version (None: not told), its GPUs."""

    state: tuple[str, ...]
    reason: str
    version: str | None
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A member, what Slurm says of it in a word, and everything that is wrong with it."""

    member: FleetMember
    state: str
    wrong: tuple[str, ...]


def said_of(pairs: Mapping[str, str], gpus: int) -> NodeSaid:
    """A node of ``scontrol show nodes`` by its names and values; ``gpus`` is what its ``Gres`` amounts to."""
    state = pairs.get("State", "UNKNOWN").strip()
    words = tuple(each.strip("*~#$@^!%-") for each in state.split("+"))
    silent = ("NOT_RESPONDING",) if "*" in state else ()
    return NodeSaid(
        state=(*words, *silent), reason=pairs.get("Reason", "").partition(" [")[0].strip(),
        version=pairs.get("Version") or None, gpus=gpus,
    )  # fmt: skip


def standing_of(
    member: FleetMember, said: NodeSaid | None, why_not: Sequence[Refusal], now: FleetMember,
    controller: str | None, *, asked: bool,
) -> Standing:  # fmt: skip
    """How a member stands. ``said`` None: Slurm does not list it, or (not ``asked``) does not answer.

    ``why_not`` are the reasons why it would not join today, ``now`` what its last inventory makes of it,
    ``controller`` the controller's release.
    """
    wrong: list[str] = []
    if said is not None:
        wrong += _of_slurm(member, said, controller)
    elif asked:
        wrong.append("Slurm does not know it: its controller has not read the files yet")
    wrong += _changed(member, now)
    wrong += [f"{each.about}: {each.words}" for each in why_not]
    state = said.state[0].lower() if said is not None else "not known" if asked else "not asked"
    if said is not None and "DRAIN" in said.state[1:]:
        state += ", drained"
    return Standing(member=member, state=state, wrong=tuple(wrong))


def _of_slurm(member: FleetMember, said: NodeSaid, controller: str | None) -> Iterator[str]:
    fewer = _GRES.search(said.reason)
    if fewer and _LIES in said.state:
        yield f"it promised {fewer[2]} GPUs and its slurmd finds {fewer[1]}"
    elif any(word in _BAD for word in said.state):
        words = " ".join(word.lower().replace("_", " ") for word in said.state if word in _BAD)
        yield f"{words}: {said.reason}" if said.reason else words
    if said.gpus != len(member.gpus):
        yield f"Slurm has it with {said.gpus} GPUs, the fleet's files with {len(member.gpus)}: its controller has old files"
    if controller is not None and said.version is not None:
        yield from _skew(said.version, controller)


def _skew(node: str, controller: str) -> Iterator[str]:
    """A node may be some releases older than its controller, and never newer."""
    own, other = _release(node), _release(controller)
    if own is None or other is None or own == other:
        return
    if own > other:
        yield f"its Slurm {node} is newer than the controller's {controller}: the controller goes first"
    elif _apart(own, other) > _BEHIND:
        yield f"its Slurm {node} is more than {_BEHIND} releases behind the controller's {controller}"


def _release(version: str) -> tuple[int, int] | None:
    found = _RELEASE.match(version)
    return (int(found[1]), int(found[2])) if found else None


def _apart(older: tuple[int, int], newer: tuple[int, int]) -> int:
    """Releases between two, which came every nine months to 24.05 and come every six since."""
    months = (newer[0] - older[0]) * 12 + newer[1] - older[1]
    return -(-months // 9)


def _changed(member: FleetMember, today: FleetMember) -> Iterator[str]:
    """In what its last inventory makes another node of it than the files say."""
    for name, words in (("sockets", "sockets"), ("cores", "cores a socket"), ("memory_mib", "MiB")):
        have, now = getattr(member, name), getattr(today, name)
        if have != now:
            yield f"its inventory has {now} {words} now, the fleet's files {have}: ouvrage fleet upgrade"
    if len(today.gpus) != len(member.gpus):
        yield f"its inventory has {len(today.gpus)} GPUs now, the fleet's files {len(member.gpus)}: ouvrage fleet upgrade"
