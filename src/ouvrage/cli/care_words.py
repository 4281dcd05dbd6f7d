"""A node's health as text: how it stands and why, what is next, what was; then figures.

Decides the order: the state and what is held against it first, then what comes next and how, then each GPU's time, then the record. The
last line is the way to more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ouvrage.cli.output import table
from ouvrage.cli.work_words import counted, lasted, moment

_MOST = 12
_SORTED = (
    "retired", "rma", "awaiting_hands", "fenced", "draining", "repairing", "maintenance", "verifying",
    "unknown", "suspect", "healthy",
)  # fmt: skip
"""States, the worst first."""


def health_words(told: Mapping[str, Any], *, plain: bool) -> str:
    """All of it."""
    lines = [first_line(told), *_against(told), *_nexts(told), *_windows(told)]
    lines += ["", _times(told), *_credits(told), *_comparison(told), *_blames(told)]
    if told["moves"]:
        lines += ["", _moves(told["moves"][-_MOST:])]
    if told["remedies"] or told["steps"]:
        lines += ["", *_tried(told)]
    return "\n".join([*lines, "", _more(told)])


def first_line(told: Mapping[str, Any]) -> str:
    """How it stands, in a line."""
    states = sorted(told["states"], key=lambda each: _SORTED.index(each["state"]))
    nothing: Mapping[str, Any] = {"state": "unknown", "device": None, "since_us": None}
    worst = states[0] if states else nothing
    part = f" {worst['device']}" if worst["device"] else ""
    since = f" since {moment(worst['since_us'])}" if worst["since_us"] else ""
    held = sorted({each["holder"] for each in told["fences"]})
    kept = f"; held back by {', '.join(held)}" if held else ""
    return f"{told['name']}{part} is {worst['state'].replace('_', ' ')}{since}{kept}"


def _against(told: Mapping[str, Any]) -> Iterator[str]:
    for each in told["against"]:
        part = f"{each['device']}: " if each["device"] else ""
        yield f"  {part}{each['check']} is {each['verdict']} ({each['code']}) since {moment(each['at_us'])}"


def _nexts(told: Mapping[str, Any]) -> Iterator[str]:
    for each in told["next"]:
        how = "by a person" if each["by_hand"] else "by itself"
        page = f"; runbook: docs/runbooks/{each['runbook']}.md" if each["runbook"] else ""
        yield f"  next: {each['rung'].replace('_', ' ')}, {how} ({each['why']}){page}"


def _windows(told: Mapping[str, Any]) -> Iterator[str]:
    for each in told["windows"]:
        if each["open"] or each["to_us"] > told["to_us"]:
            word = "in maintenance" if each["open"] else "maintenance"
            yield f"  {word} {moment(each['from_us'])} to {moment(each['to_us'])}: {each['why']} ({each['window']})"


def _times(told: Mapping[str, Any]) -> str:
    head = (
        "part",
        "up",
        "down",
        "maintenance",
        "unknown",
        "available",
        "faults",
        "between faults",
        "to repair",
        "RunPod's",
    )
    rows = [
        [
            each["device"] or told["name"],
            lasted(each["up_us"]), lasted(each["down_us"]), lasted(each["maintenance_us"]),
            lasted(each["unknown_us"]), between(each["least"], each["most"]), str(each["faults"]),
            lasted(each["between_faults_us"]), lasted(each["to_repair_us"]), percent(each["runpod"]),
        ]
        for each in told["parts"]
    ]  # fmt: skip
    title = f"{moment(told['from_us'])} to {moment(told['to_us'])}; a sick GPU counts as down"
    return f"{title}\n{table(head, rows, '<>>>>>>>>>')}"


def between(least: str | None, most: str | None) -> str:
    """A share that lies between two."""
    if least is None or most is None:
        return "–"
    return percent(least) if least == most else f"{percent(least)} to {percent(most)}"


def percent(share: str | None) -> str:
    """A share as percent, cut and not rounded: 0.999999 is not 100 %."""
    if share is None:
        return "–"
    whole, _, parts = share.partition(".")
    digits = int(whole + (parts + "000000")[:6]) // 10
    return f"{digits // 1000}.{digits % 1000:03d} %"


def _credits(told: Mapping[str, Any]) -> Iterator[str]:
    if told["promise"] is not None:
        yield f"  promised: {percent(told['promise'])}"
    for each in told["parts"]:
        given = each["credit"]
        if given is not None:
            at_most = (
                ""
                if given["percent"] == given["at_most"]
                else f", {given['at_most']} % if the silence was down"
            )
            yield f"  credit for {each['device'] or told['name']}: {given['percent']} % of its price{at_most} ({counted(len(given['evidence']), 'move').lower()} as evidence)"


def _comparison(told: Mapping[str, Any]) -> Iterator[str]:
    scored = [(told["name"], told["score"])]
    scored += [(each["device"], each["score"]) for each in told["parts"] if each["device"]]
    for name, score in scored:
        if score is None:
            continue
        word = "  LEMON" if score["lemon"] else ""
        yield (
            f"  score of {name}: {score['per_1000_days']} faults in 1000 days ({score['low']} to {score['high']});"
            f" the others {score['others']}{word}"
        )
    spares = told["spares"]
    if spares["gpus"]:
        basis = (
            "a share of them: too few faults so far for a rate"
            if spares["assumed"]
            else f"they suffice {percent(spares['enough'])} of the time"
        )
        yield f"  spares: keep {spares['count']} for {counted(spares['gpus'], 'GPU')} ({basis})"


def _blames(told: Mapping[str, Any]) -> Iterator[str]:
    for each in told["blames"][-_MOST:]:
        paid = ", billed: credit it" if each["cause"] == "hardware" and each["billed"] else ""
        yield f"  job {each['job'][-6:]} failed by {each['cause']} ({each['percent']} % sure): {each['why']}{paid}"


def _moves(moves: Sequence[Mapping[str, Any]]) -> str:
    head = ("when (UTC)", "part", "from", "to", "by", "why")
    rows = [
        [
            moment(m["at_us"]),
            m["device"] or "all of it",
            m["from"],
            m["to"],
            m["actor"],
            m["reason"],
        ]
        for m in moves
    ]
    return table(head, rows, "<<<<<<")


def _tried(told: Mapping[str, Any]) -> Iterator[str]:
    words = {True: ", verified", False: ", did not help", None: ""}
    for each in told["remedies"][-_MOST:]:
        how = "would have been climbed" if each["dry_run"] else f"{each['outcome']} by {each['by']}"
        yield f"  {moment(each['at_us'])}  {each['rung'].replace('_', ' ')}: {how}{words[each['verified']]} ({each['why']})"
    for each in told["steps"][-_MOST:]:
        note = f": {each['note']}" if each["note"] else ""
        yield f"  {moment(each['at_us'])}  step {each['number']} of {each['rung'].replace('_', ' ')}, {each['outcome']} by {each['by']}{note}"


def _more(told: Mapping[str, Any]) -> str:
    name = told["name"]
    if told["next"]:
        return f"Walk through it: ouvrage node repair {name}      All of it: ouvrage node health {name} --json"
    return f"All of it: ouvrage node health {name} --json      Out of service: ouvrage node maintain {name} --to TIME"
