"""What is told of a machine's health, to whom, and what is still on its way: the part that only decides.

Decides what is worth a message: a verdict that became WARN or CRITICAL, UNKNOWN for ten minutes, and that it is OK again
where something else was told before. All that changed at one look is one message. A message has its id before it is sent
and keeps it at every try, so that whoever hears it twice knows; the oldest is never overtaken by a newer one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ouvrage.agent.probing.now import CheckNow, Now
from ouvrage.base.time import DAY, MINUTE, SECOND
from ouvrage.health.findings import weight, worst
from ouvrage.health.ladder import TO_DO, runbook_of
from ouvrage.model.health import CRITICAL, OK, UNKNOWN, WARN

UNKNOWN_US = 10 * MINUTE
GIVEN_UP_US = 7 * DAY
EVENT = "node.health"
_FIRST_US, _LAST_US = 10 * SECOND, 10 * MINUTE
_MOST_WAITING = 1000
Told = Mapping[str, str]
"""By check and part, the last verdict that was told and was not OK."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message on its way: ``left`` are the channels that have not taken it; ``due_us`` when it is tried again."""

    message: dict[str, Any]
    left: tuple[str, ...]
    tries: int = 0
    due_us: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What was told and what waits; kept on the disk. ``given_up`` counts messages that nobody took in a week."""

    told: Told = field(default_factory=dict[str, str])
    waiting: tuple[Waiting, ...] = ()
    given_up: int = 0


def place_of(check: CheckNow) -> str:
    """The check and its part as one word."""
    return f"{check.check} {check.device or ''}".strip()


def worth(now: Now, least: str = WARN) -> dict[str, CheckNow]:
    """What could be told of a view: by check and part, whatever is at least ``least``, UNKNOWN only when it lasts."""
    bar = weight(CRITICAL) if least == CRITICAL else weight(WARN)
    return {
        place_of(each): each
        for each in now.checks
        if not each.shadow
        and each.verdict != OK
        and weight(each.verdict) >= bar
        and (each.verdict != UNKNOWN or now.at_us - each.since_us >= UNKNOWN_US)
    }


def news_of(desk: Desk, now: Now, channels: tuple[str, ...], least: str = WARN) -> Desk:
    """The desk with one message more where anything changed since the last one."""
    found = worth(now, least)
    grown = [each for place, each in found.items() if desk.told.get(place) != each.verdict]
    well = {place_of(c) for c in now.checks if c.verdict == OK and not c.shadow}
    gone = {place_of(c) for c in now.checks}
    over = [place for place in desk.told if place in well or place not in gone]
    if not grown and not over:
        return desk
    changes = [_change(each, desk.told.get(place_of(each), OK)) for each in grown]
    changes += [_over(place, desk.told[place], now) for place in over]
    kept = {place: verdict for place, verdict in desk.told.items() if place not in over}
    told = {**kept, **{place_of(each): each.verdict for each in grown}}
    seed = (
        f"{now.node}/{now.boot}/{now.at_us}/{sorted((c['place'], c['verdict']) for c in changes)}"
    )
    message = {
        "id": hashlib.sha256(seed.encode()).hexdigest()[:32],
        "event": EVENT,
        "at_us": now.at_us,
        "node": now.node,
        "verdict": worst([OK, *told.values()]),
        "changes": sorted(changes, key=lambda c: (-weight(c["verdict"]), c["place"])),
    }
    return sent_later(replace(desk, told=told), message, channels)


def sent_later(desk: Desk, message: dict[str, Any], channels: tuple[str, ...]) -> Desk:
    """The desk with a message for every channel; the oldest go where very many wait."""
    waiting = (*desk.waiting, Waiting(message=message, left=channels))
    lost = max(0, len(waiting) - _MOST_WAITING)
    return replace(desk, waiting=waiting[lost:], given_up=desk.given_up + lost)


def _change(check: CheckNow, was: str) -> dict[str, Any]:
    return {
        "place": place_of(check),
        "check": check.check,
        "device": check.device,
        "verdict": check.verdict,
        "was": was,
        "code": check.code,
        "action": check.action,
        "to_do": TO_DO.get(check.action, ""),
        "runbook": runbook_of(check.action),
        "since_us": check.since_us,
        "reasons": list(check.reasons[:5]),
    }


def _over(place: str, was: str, now: Now) -> dict[str, Any]:
    check, _, device = place.partition(" ")
    return {
        "place": place, "check": check, "device": device or None, "verdict": OK, "was": was,
        "code": "", "action": "none", "to_do": "", "runbook": None, "since_us": now.at_us, "reasons": [],
    }  # fmt: skip


def tried(each: Waiting, faults: Mapping[str, str], now_us: int) -> Waiting:
    """A message after a try: the channels that did not take it, and when they are asked again."""
    pause = min(_LAST_US, _FIRST_US * 2 ** min(each.tries, 10))
    said = "; ".join(f"{channel}: {why}" for channel, why in faults.items())
    return replace(
        each, left=tuple(faults), tries=each.tries + 1, due_us=now_us + pause, said=said[:500]
    )


def is_over(each: Waiting, now_us: int) -> bool:
    """Whether nobody is to hear it any more: all did, or it is a week old."""
    return not each.left or now_us - int(each.message["at_us"]) > GIVEN_UP_US


def words_of(message: Mapping[str, Any]) -> tuple[str, str]:
    """A message's subject and text, as a person reads it in a mail."""
    changes = message["changes"]
    if not changes:
        return f"{message['node']}: a test", "Alerts of this machine reach you. Nothing is wrong."
    first = changes[0]
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    lines = [
        f"{each['place']}: {each['verdict']} (was {each['was']})"
        + (f", {each['reasons'][0]}" if each["reasons"] else "")
        + (f"\n    do: {each['to_do']}" if each["to_do"] else "")
        + (f"\n    how: docs/runbooks/{each['runbook']}.md" if each["runbook"] else "")
        for each in changes
    ]
    tail = ["", "Now: ouvrage node watch --once", f"This message is {message['id']}."]
    return (
        f"{message['node']}: {first['place']} is {first['verdict']}{more}",
        "\n".join([*lines, *tail]),
    )
