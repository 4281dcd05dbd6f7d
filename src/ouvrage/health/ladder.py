"""The ladder of remedies: which rung comes next, and when a person has to come.

Decides by what was tried since the last time that it was verified well: a rung is climbed twice at most, one that could not be
done is not tried again, five ladders in a week are enough. A rung that its owner has not turned on is only said;
saying it does not lead to the next. On a machine that others run, the ladder is a person.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ouvrage.health.tables import Thresholds
from ouvrage.model.health import RUNGS

TO_DO = {
    "restart_job": "start the job again; the machine is not at fault",
    "gpu_reset": "keep new work away, let it end, reset the GPU",
    "reboot": "keep new work away, let it end, reboot the machine",
    "power_cycle": "keep new work away, take the machine's power away and give it back",
    "diagnostic": "keep new work away, let it end, run a diagnostic",
    "replace": "keep new work away, replace the part",
    "person": "a person has to look",
    "drain": "keep new work away and let what runs end",
    "update_software": "update driver or firmware in the next window",
    "look": "look at it in the next window",
}
"""Every action but ``none`` in words."""

AUTOMATIC = ("gpu_reset", "reboot", "power_cycle", "diagnostic")
"""Rungs that automation can climb, once its owner has turned them on."""

BY_HAND = ("replace", "person")

ONCE = frozenset({"gpu-lost", "gpu-missing", "xid-79"})
"""Rules after which a rung that did not help is not climbed again: what a reboot does not find, power may."""


def runbook_of(action: str) -> str | None:
    """The name of the page that tells a person how a rung is climbed; None for what is no rung."""
    return action.replace("_", "-") if action in RUNGS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A rung that was tried: how it ended, and whether it was verified well afterwards (None: not checked)."""

    rung: str
    at_us: int
    outcome: str
    verified: bool | None
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What comes next. ``dry_run``: only to be said. ``hands``: a person has to do it, or to turn the rung on."""

    rung: str
    dry_run: bool
    hands: bool
    why: str


def next_step(
    action: str,
    history: Sequence[Tried],
    now_us: int,
    turned_on: Collection[str],
    bounds: Thresholds,
    *,
    rule: str = "",
    observer: bool = False,
) -> Step | None:
    """The rung to climb for an action that a check asks for; None where it asks for none.

    ``rule`` is the rule that asked. ``history`` is everything tried on this part, oldest first; dry runs climb nothing.
    """
    if action not in RUNGS or action == "restart_job":
        return None
    if observer:
        return _hands("person", "this machine is run by others: a person is told")
    real = [each for each in history if not each.dry_run and each.at_us <= now_us]
    ladders = _ladders(real)
    open_ = ladders[-1] if ladders and ladders[-1][-1].verified is not True else []
    begun = [each for each in ladders if now_us - each[0].at_us < bounds.us("ladder.window")]
    if not open_ and len(begun) >= bounds["ladder.most"]:
        days = bounds.us("ladder.window") // 86_400_000_000
        return _hands("person", f"{len(begun)} ladders within {days} days: repairs do not last")
    rung = _climbed(action, open_, 1 if rule in ONCE else int(bounds["ladder.tries"]))
    if rung in BY_HAND:
        return _hands(rung, "what can be done without a person was done" if open_ else f"{action}")
    if rung not in turned_on:
        return Step(rung=rung, dry_run=True, hands=True, why=f"{rung} is not turned on")
    return Step(rung=rung, dry_run=False, hands=False, why=_why(rung, open_))


def _hands(rung: str, why: str) -> Step:
    return Step(rung=rung, dry_run=False, hands=True, why=why)


def _ladders(tried: Sequence[Tried]) -> list[list[Tried]]:
    """What was tried, one list a ladder: a verified rung ends one."""
    ladders: list[list[Tried]] = []
    for each in tried:
        if not ladders or ladders[-1][-1].verified is True:
            ladders.append([])
        ladders[-1].append(each)
    return ladders


def _climbed(action: str, open_: Sequence[Tried], tries: int) -> str:
    """The lowest rung, not below what is asked for nor below what was tried, that may be tried once more."""
    at = RUNGS.index(action)
    if open_:
        at = max(at, *(RUNGS.index(each.rung) for each in open_))
    while at < len(RUNGS) - 1:
        mine = [each for each in open_ if each.rung == RUNGS[at]]
        spent = len(mine) >= tries or any(each.outcome in ("failed", "refused") for each in mine)
        if not spent:
            break
        at += 1
    return RUNGS[at]


def _why(rung: str, open_: Sequence[Tried]) -> str:
    if not open_:
        return "the first rung"
    last = open_[-1]
    return (
        f"{last.rung} was {last.outcome} and did not help"
        if last.rung != rung
        else f"{rung} once more"
    )
