"""``ouvrage node watch`` and ``node verify``: this machine's health as its agent sees it, without any server.

Decides how the view is said: whether the agent lives first, since a view that nobody writes any more says nothing; then
the worst that counts, then every check that is not well. Following it prints a line for each change and ends with Ctrl-C.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.agent.probing.heart import last_beat
from ouvrage.agent.probing.now import CheckNow, Now, now_json, read_now
from ouvrage.agent.probing.verifying import ask_to_verify
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.base.time import SECOND, utc_text
from ouvrage.cli.agent import state_meant, state_option
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, shortened, table, wrote
from ouvrage.cli.work_words import counted, lasted
from ouvrage.health.findings import weight, worst
from ouvrage.health.ladder import TO_DO, runbook_of
from ouvrage.model.health import OK, UNKNOWN

SILENT_US = 30 * SECOND
"""After this long without a beat (one comes every 5 s) the view is of the past."""
_LOOK_S = 1.0
_WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The view, and how long ago the agent's heart beat last; None where it never did, or in another boot."""

    now: Now
    silent_us: int | None

    @property
    def alive(self) -> bool:
        """Whether the view is of now."""
        return self.silent_us is not None and self.silent_us <= SILENT_US

    @property
    def verdict(self) -> str:
        """The worst that counts; UNKNOWN where nobody looks any more."""
        if not self.alive:
            return UNKNOWN
        return worst(each.verdict for each in self.now.checks if not each.shadow)


def seen_in(state: Path) -> Seen:
    """What the agent of a directory sees. Raises ``OuvrageError`` where there never was one."""
    now = read_now(state)
    if now is None:
        raise OuvrageError(
            "agent/none",
            f"no agent has looked at this machine yet ({state})",
            hint="ouvrage agent run watches it; ouvrage check all looks once",
        )
    beat = last_beat(state)
    same = beat is not None and beat["boot"] == now.boot and beat["monotonic_us"] <= monotonic_us()
    return Seen(now=now, silent_us=monotonic_us() - beat["monotonic_us"] if beat and same else None)


def seen_json(seen: Seen) -> dict[str, Any]:
    """The view with the verdict of all, and whether the agent lives."""
    return {
        "verdict": seen.verdict,
        "alive": seen.alive,
        "silent_us": seen.silent_us,
        **now_json(seen.now),
    }


def seen_words(seen: Seen, *, plain: bool) -> str:
    """Lines for a person."""
    now = seen.now
    bad = sorted(_bad(now.checks), key=lambda each: -weight(each.verdict))
    lines = [f"{_first(seen, bad)}{' (measured)' if plain else ' ●'}"]
    if bad:
        rows = [_row(each) for each in bad]
        lines += ["", table(("check", "part", "verdict", "for", "why"), rows, "<<<><")]
    silent = [each for each in now.probes if each.fault is not None]
    lines += [""] if silent else []
    lines += [
        f"  {each.name} told nothing: {shortened(each.fault or '', _WIDTH)}" for each in silent
    ]
    dropped = now.dropped
    if dropped.telemetry or dropped.facts:
        lines.append(
            f"  the disk was full: {dropped.telemetry} readings dropped, {dropped.facts} facts"
        )
    if now.observer:
        lines.append("  others run this machine: it is watched and never touched")
    return "\n".join([*lines, *_last(bad)])


def _bad(checks: Sequence[CheckNow]) -> list[CheckNow]:
    return [each for each in checks if each.verdict != OK and not each.shadow]


def _first(seen: Seen, bad: Sequence[CheckNow]) -> str:
    name = safe(seen.now.node)
    if not seen.alive:
        ago = "never in this boot" if seen.silent_us is None else f"{lasted(seen.silent_us)} ago"
        at = utc_text(seen.now.at_us)[:19]
        return f"{name} is UNKNOWN: its agent was last heard {ago}; what follows is of {at}Z"
    if not bad:
        return f"{name} is OK: {counted(len(seen.now.checks), 'check')}, none speaks against it"
    first = bad[0]
    reason = first.reasons[0] if first.reasons else first.code
    return f"{name} is {seen.verdict}: {shortened(_about(first, reason), _WIDTH)}"


def _about(check: CheckNow, reason: str) -> str:
    if check.device is None or check.device in reason:
        return f"{check.check}: {reason}"
    return f"{check.check} {check.device}: {reason}"


def _row(each: CheckNow) -> list[str]:
    held = " (held until verified)" if each.latched else ""
    reason = each.reasons[0] if each.reasons else each.code
    since = lasted(max(0, now_us() - each.since_us))
    return [
        each.check, safe(each.device or ""), f"{each.verdict}{held}", since, shortened(reason, _WIDTH),
    ]  # fmt: skip


def _last(bad: Sequence[CheckNow]) -> list[str]:
    if not bad:
        return ["", "more   --json shows the evidence; ouvrage node watch follows it"]
    lines = [""]
    if bad[0].action in TO_DO and bad[0].action != "none":
        lines.append(f"what to do   {TO_DO[bad[0].action]}")
    page = runbook_of(bad[0].action)
    lines += [f"how          docs/runbooks/{page}.md"] if page else []
    return [*lines, "more         --json shows the evidence; repaired? ouvrage node verify"]


@click.command("watch")
@state_option
@click.option("--once", is_flag=True, help="Say how it is now, and end.")
@json_option
@plain_option
def watch(state: Path | None, once: bool, as_json: bool, plain: bool) -> None:
    """How this machine is, by its own agent; then each change, until Ctrl-C. No server is asked."""
    place = state_meant(state)
    seen = seen_in(place)
    if as_json:
        say_json(seen_json(seen))
        return
    say_text(seen_words(seen, plain=plain))
    sys.stdout.flush()
    while not once:
        time.sleep(_LOOK_S)
        before, seen = seen, seen_in(place)
        for line in changes(before, seen):
            say_text(line)
        sys.stdout.flush()


def changes(before: Seen, now: Seen) -> list[str]:
    """A line for each verdict that became another one, and for an agent that fell silent or came back."""
    at = utc_text(now.now.at_us)[11:19]
    held = {(each.check, each.device): each for each in before.now.checks}
    lines = [
        f"{at}  {was.verdict if (was := held.get((each.check, each.device))) else 'new'} → "
        f"{each.verdict}  {shortened(_about(each, each.reasons[0] if each.reasons else ''), _WIDTH)}"
        for each in now.now.checks
        if (was := held.get((each.check, each.device))) is None or was.verdict != each.verdict
    ]
    if before.alive != now.alive:
        lines.append(f"{at}  the agent {'is back' if now.alive else 'is silent'}")
    return lines


@click.command("verify")
@state_option
@click.option("--device", metavar="ID", help="One part of it alone: a GPU, a drive, an interface.")
@click.option("--gone", is_flag=True, help="The part was taken out: watch it no longer.")
@json_option
def verify(state: Path | None, device: str | None, gone: bool, as_json: bool) -> None:
    """Say that this machine, or a part of it, was repaired: it is looked at anew.

    What is CRITICAL stays so until a look after this word finds it well; the word alone opens nothing.
    """  # fmt: skip
    place = state_meant(state)
    if gone and device is None:
        raise OuvrageError("verify/gone", "which part is gone?", hint="--device ID")
    seen = seen_in(place)
    ask_to_verify(place, device, gone=gone)
    wrote()
    what = safe(device or seen.now.node)
    if as_json:
        say_json({"node": seen.now.node, "device": device, "gone": gone, "alive": seen.alive})
    elif gone:
        say_text(f"{what} is watched no longer.")
    else:
        soon = "within its probes' intervals" if seen.alive else "once its agent runs again"
        say_text(f"{what} is looked at anew, {soon}.\nThen: ouvrage node watch --once")
