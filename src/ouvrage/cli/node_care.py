"""``ouvrage node health``, ``node repair`` and ``node maintain``: how a node stands, what a person does about it, and when it is out on purpose.

Decides where it is asked: the server that is meant; or, without one or with ``--local``, this home's own record, where a machine that stands
alone keeps it. What is said by both is the same. A runbook is walked in the terminal, or from a pipe, a line for each step.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.health_tables import runbooks, thresholds
from ouvrage.adapters.home import home, source_id
from ouvrage.adapters.known_servers import known_servers
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.base.time import DAY
from ouvrage.cli.care_words import health_words
from ouvrage.cli.options import json_option, moment, plain_option
from ouvrage.cli.output import say_json, say_text, wrote
from ouvrage.cli.talking import talk
from ouvrage.model.health import RUNGS, STATES

_ANSWERS = {
    "d": "done",
    "done": "done",
    "s": "skipped",
    "skip": "skipped",
    "f": "failed",
    "failed": "failed",
}
_LONGEST = 500

local_option = click.option(
    "--local", is_flag=True, help="This home's own record, whatever server there is."
)


@click.command()
@click.argument("name", required=False)
@click.option("--days", type=click.IntRange(1, 366), default=30, help="Over so many days (30).")
@local_option
@json_option
@plain_option
def health(name: str | None, days: int, local: bool, as_json: bool, plain: bool) -> None:
    """How a node stands and stood, how often it was there, and what a promise implies."""
    told = _asked(name, days, local)
    if as_json:
        say_json(told)
    else:
        say_text(health_words(told, plain=plain))


@click.command()
@click.argument("name", required=False)
@click.option("--device", metavar="ID", help="One GPU of it (the one that is repaired).")
@click.option("--rung", type=click.Choice(RUNGS), help="Which runbook (the next one).")
@click.option(
    "--move",
    type=click.Choice(STATES),
    help="Put it into a state instead: rma, retired, healthy, …",
)
@click.option(
    "--outcome",
    type=click.Choice(["done", "failed", "refused"]),
    help="Say how the rung ended, without walking.",
)
@click.option("--note", metavar="TEXT", default="", help="What you saw, or why.")
@local_option
@json_option
def repair(
    name: str | None, device: str | None, rung: str | None, move: str | None,
    outcome: str | None, note: str, local: bool, as_json: bool,
) -> None:  # fmt: skip
    """Walk through the runbook that is next, recording each step.

    Answer each step with done, skip or failed, and what you saw: `done fuser shows nothing`. Anything else stops; what was
    walked stays recorded.
    """
    told = _asked(name, 30, local)
    say = _sayer(told, local)
    if move is not None:
        told = say({"device": device, "state": move, "note": note})
        wrote()
        _ended(told, f"{told['name']} was put into {move}.", as_json)
        return
    device, rung = _meant(told, device, rung)
    if outcome is None:
        outcome = _walk(told, device, rung, say)
    if outcome is None:
        _ended(
            told,
            f"Stopped. What was walked is recorded: ouvrage node health {told['name']}",
            as_json,
        )
        return
    told = say({"device": device, "rung": rung, "outcome": outcome, "note": note})
    wrote()
    words = (
        "Its checks verify it now; it is free when they find it well."
        if outcome == "done"
        else "The ladder goes on with what comes next."
    )
    _ended(told, f"{rung} on {device or told['name']}: {outcome}. {words}", as_json)


@click.command()
@click.argument("name", required=False)
@click.option(
    "--from", "begins", metavar="TIME", help="When it begins: 2026-12-05T06:00:00Z (now)."
)
@click.option("--to", "ends", metavar="TIME", help="When it ends.")
@click.option("--why", metavar="TEXT", default="", help="What is done meanwhile.")
@click.option("--cancel", metavar="WINDOW", help="Call a window off.")
@local_option
@json_option
def maintain(
    name: str | None, begins: str | None, ends: str | None, why: str, cancel: str | None,
    local: bool, as_json: bool,
) -> None:  # fmt: skip
    """Take a node out of service for a while. What runs there goes on; nothing new is placed; afterwards its checks free it."""
    if cancel is None and ends is None:
        raise OuvrageError(
            "maintenance/period", "a window needs an end", hint="--to 2026-12-05T09:00:00Z"
        )
    body: dict[str, Any] = {"cancel": cancel, "why": why}
    if cancel is None:
        body |= {"from_us": moment(begins) if begins else now_us(), "to_us": moment(ends or "")}
    told = _maintained(name, body, local)
    wrote()
    if cancel is not None:
        _ended(
            told,
            f"The window is off; {told['name']} is free when its checks find it well.",
            as_json,
        )
        return
    window = told["window"]
    words = f"{told['name']} is in maintenance in that time.\nCall it off: ouvrage node maintain {told['name']} --cancel {window}"
    _ended(told, words, as_json)


def _ended(told: Mapping[str, Any], words: str, as_json: bool) -> None:
    if as_json:
        say_json(told)
    else:
        say_text(words)


def _meant(told: Mapping[str, Any], device: str | None, rung: str | None) -> tuple[str | None, str]:
    """The part and the runbook: what is next, where they are not named."""
    nexts = [each for each in told["next"] if device is None or each["device"] == device]
    if rung is None and not nexts:
        raise OuvrageError(
            "node/well", f"nothing is to be repaired on {told['name']}",
            hint="--rung RUNG walks through a runbook all the same",
        )  # fmt: skip
    if rung is None and len(nexts) > 1:
        raise OuvrageError(
            "node/which", f"{len(nexts)} parts of {told['name']} wait for a repair",
            hint="--device " + " or ".join(str(each["device"]) for each in nexts),
        )  # fmt: skip
    if not nexts:
        assert rung is not None
        return device, rung
    return device or nexts[0]["device"], rung or nexts[0]["rung"]


def _walk(
    told: Mapping[str, Any], device: str | None, rung: str, say: Callable[[dict[str, Any]], Any]
) -> str | None:
    """Step after step; how it ended, None where the person stopped."""
    steps: Sequence[str] = runbooks()[rung]
    say_text(
        f"{rung.replace('_', ' ')} on {device or told['name']}: {len(steps)} steps. Answer done, skip or failed, and what you saw."
    )
    failed = False
    for number, step in enumerate(steps, 1):
        say_text(f"\n{number}. " + step.replace("\n", "\n   "))
        answer = _answer()
        if answer is None:
            return None
        word, note = answer
        failed |= word == "failed"
        said = step.splitlines()[0][:_LONGEST]
        say(
            {
                "device": device,
                "rung": rung,
                "number": number,
                "step": said,
                "stepped": word,
                "note": note,
            }
        )
        wrote()
        if failed:
            break
    return "failed" if failed else "done"


def _answer() -> tuple[str, str] | None:
    sys.stdout.write("> ")
    sys.stdout.flush()
    line = sys.stdin.readline()
    word, _, note = line.strip().partition(" ")
    found = _ANSWERS.get(word.lower())
    return None if found is None else (found, safe(note.strip())[:_LONGEST])


def _by_server(local: bool) -> bool:
    return not local and (bool(os.environ.get("OUVRAGE_URL")) or bool(known_servers(home())))


def _asked(name: str | None, days: int, local: bool) -> dict[str, Any]:
    """A node's health as the server tells it, or as this home has it."""
    if not _by_server(local):
        return _own(name, days)
    with talk() as server:
        if name is None:
            name = _only(server)
        return server.get(f"/v1/nodes/{name}/health", days=days)["told"]


def _only(server: Any) -> str:
    names = [each["name"] for each in server.every("/v1/nodes")]
    if len(names) == 1:
        return names[0]
    raise OuvrageError(
        "node/which", f"{len(names)} nodes are there", hint="name one: ouvrage node list"
    )


def _sayer(told: Mapping[str, Any], local: bool) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """How a person's word is recorded."""
    if not _by_server(local):
        return lambda said: _own_repair(told["node"], said)

    def say(said: dict[str, Any]) -> dict[str, Any]:
        with talk() as server:
            return server.post(f"/v1/nodes/{told['name']}/repair", said)["told"]

    return say


def _maintained(name: str | None, body: dict[str, Any], local: bool) -> dict[str, Any]:
    if not _by_server(local):
        return _own_window(name, body)
    with talk() as server:
        return server.post(f"/v1/nodes/{name or _only(server)}/maintenance", body)["told"]


# Without a server: this home's store.


def _own_record() -> tuple[Any, Any]:
    from ouvrage.agent.probing.alone import record_in
    from ouvrage.store.store import open_store

    path = home() / "ouvrage.db"
    if not path.exists():
        raise OuvrageError(
            "node/none", "this home has no record of a machine, and no server is named",
            hint="ouvrage agent run watches this machine; ouvrage login URL signs in to a server",
        )  # fmt: skip
    store = open_store(path)
    return store, record_in(store)


def _own_node(record: Any, name: str | None) -> str:
    known = sorted(record.machines)
    if name is None and len(known) == 1:
        return known[0]
    if name is None or record.node(name) not in record.machines:
        hint = (
            f"known are {', '.join(known)}" if known else "ouvrage agent run watches this machine"
        )
        raise OuvrageError("node/unknown", f"no node {name or 'is meant'} is known here", hint=hint)
    return record.node(name)


def _own(name: str | None, days: int) -> dict[str, Any]:
    from ouvrage.adapters.health_owner import owner_in
    from ouvrage.health.account import account_of, account_plain

    store, record = _own_record()
    with store:
        node, now = _own_node(record, name), now_us()
        account = account_of(record, node, now - days * DAY, now, owner_in(home()), thresholds())
        return account_plain(account)


def _own_repair(node: str, said: dict[str, Any]) -> dict[str, Any]:
    from ouvrage.health.by_hand import ByHand, facts_of

    store, record = _own_record()
    with store:
        rung = said.get("rung") or "person"
        rest = {k: v for k, v in said.items() if k not in ("device", "rung")}
        word = ByHand(place=(node, said.get("device")), rung=rung, by=_who(), **rest)
        for value in facts_of(record, word, now_us()):
            _put(store, value, node)
    return _own(node, 30)


def _own_window(name: str | None, body: dict[str, Any]) -> dict[str, Any]:
    from ouvrage.health.by_hand import called_off, window

    store, record = _own_record()
    with store:
        node = _own_node(record, name)
        made = (
            called_off(record, node, body["cancel"], _who())
            if body["cancel"] is not None
            else window(new_id(), node, body["from_us"], body["to_us"], body["why"], _who())
        )
        _put(store, made, node)
    return {**_own(node, 30), "window": made.window}


def _put(store: Any, value: Any, node: str) -> None:
    from ouvrage.ledger.kinds import fact_of

    now, source = now_us(), source_id(home())
    fact = fact_of(
        value, source=source, id=f"{value.KIND}/node:{node}/{new_id()}", subject=f"node:{node}",
        valid_from=now, valid_to=now, grade=Grade.REPORTED,
    )  # fmt: skip
    store.append([fact], now_us=now, own_source=source)


def _who() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "operator"
