"""``ouvrage today``: what needs a person on the platform, what is under way, what there is to sell, and the money of today.

Decides only how it is printed: the server says the same on its first page. One request to ``/v1/today``.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.money_words import short
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.cli.talking import talk


@click.command()
@json_option
def today(as_json: bool) -> None:
    """What needs you, what is under way, what there is to sell, and the money of today.

    The owner's side sees all machines and what all tenants owe; a tenant their own organisation's work and money.
    """
    with talk() as server:
        found = server.get("/v1/today")
    if as_json:
        say_json(found)
    else:
        say_text("\n".join(safe(line) for line in _lines(found)))


def _lines(found: Any) -> list[str]:
    needs = found["needs"]
    said = f"{len(needs)} need you" if len(needs) != 1 else "1 needs you"
    first = "Nothing needs you" if not needs else said
    lines = [f"{first}; {found['running']} running, {found['waiting']} waiting"]
    lines += [f"  {_need(each)}" for each in needs[:20]]
    if len(needs) > 20:
        lines.append(f"  and {len(needs) - 20} more: --json")
    held = found["capacity"]
    if held is not None:
        lines.append(
            f"machines  {held['nodes_here']} of {held['nodes']} here; {held['cores_free']} of {held['cores']} cores free; "
            f"{held['gpus_leased']} of {held['gpus']} GPUs leased"
        )
    for each in found["money"] or ():
        charged, running, burn = (
            short(each[name], each["currency"]) for name in ("charged", "running", "burn_per_hour")
        )
        lines.append(f"money     {charged} charged today, {running} running, {burn} an hour now")
    return [*lines, "What runs: ouvrage job list      What it costs: ouvrage usage"]


def _need(each: Any) -> str:
    name = each["device"] or each["name"]
    if each["what"] == "node-away":
        return f"{name} is not heard of since {utc_text(each['since_us'])[:16]}: ouvrage node show {name}"
    if each["what"] == "fence":
        return f"{name} is held back from new work: {each['why']}"
    if each["what"] == "balance":
        return f"{name}: the balance {each['why']}"
    return f"{name} {each['state']}: {each['why']}"
