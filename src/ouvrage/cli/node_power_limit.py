"""``ouvrage node power NODE limit``: a cap on a whole machine's power, shown, or set and read back.

Decides which of the two caps is meant (a machine's, or its GPUs': ``node_power_gpus``), and that a limit counts only once the
machine itself says that it holds. What it saves a unit of work is not known here, and said to be: no run tells under which
limit of its machine it was metered.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.power_order import set_limit
from ouvrage.adapters.power_port import PowerFault
from ouvrage.adapters.power_turn import asked, turn
from ouvrage.adapters.remote_config import ordered_at
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.node_power import (
    Given,
    Reached,
    Record,
    limit_words,
    order_options,
    power,
    reached,
    refused,
)
from ouvrage.cli.node_power_gpus import limit_gpus
from ouvrage.model.power import DONE, FAILED

_MORE = "What it saves a unit of work is not known: meter the work under each limit, and ouvrage compare the runs."


@power.command()
@click.argument("watts", metavar="[WATTS|none]", required=False)
@click.option("--gpus", metavar="WATTS", type=click.IntRange(1, 100_000),
              help="Limit each GPU instead; NODE is this machine.")  # fmt: skip
@click.option("--campaign", metavar="NAME", help="The tuning that says what it saves (the latest).")
@order_options
@click.pass_obj
def limit(
    node: str, watts: str | None, gpus: int | None, campaign: str | None, **given: Any
) -> int:
    """Show the limit of the machine's power, or set one of WATTS and see that it holds."""
    asked_for = Given(**given)
    if gpus is not None:
        if watts is not None:
            raise OuvrageError(
                "power/limit", "one limit at a time",
                hint="WATTS for the machine, or --gpus WATTS for its GPUs",
            )  # fmt: skip
        return limit_gpus(node, gpus, campaign, asked_for)
    to = reached(node)
    wanted = None if watts in (None, "none") else _watts(watts or "")
    try:
        return _show(to, asked_for) if watts is None else _limit(to, wanted, asked_for)
    except PowerFault as fault:
        raise refused(to, fault) from fault


def _show(to: Reached, given: Given) -> int:
    now = asked(to.port.power_limit)
    said = {"node": to.node, "watts": now.watts, "least": now.least, "most": now.most}
    more = f"Another: ouvrage node power {to.node} limit WATTS"
    given.say(said, f"{to.node}: power limit {limit_words(now)}\n{more}")
    return 0


def _limit(to: Reached, wanted: int | None, given: Given) -> int:
    before = asked(to.port.power_limit).watts
    words = f"limit {to.node} to {_text(wanted)} (now {_text(before)})"
    said: dict[str, Any] = {
        "node": to.node,
        "before": before,
        "wanted": wanted,
        "dry_run": given.dry_run,
    }
    if given.dry_run:
        given.say(said, f"Would {words}. Nothing was done or recorded.")
        return 0
    given.confirm(f"{words[0].upper()}{words[1:]}?")
    began = monotonic_us()
    with turn(ordered_at(to.remote), 5):
        record = Record(to.node, to.remote.kind, "limit", why=given.why)
        record.ordered()
        trouble = _trouble(to, wanted)
    outcome, after = (FAILED, "unknown") if trouble else (DONE, _text(wanted))
    record.ended(outcome, _text(before), after, monotonic_us() - began, trouble)
    line = (
        f"{to.node}: NOT limited: {trouble}"
        if trouble
        else f"{to.node}: power limit {after}, read back."
    )
    given.say({**said, "outcome": outcome, "trouble": trouble, "saves": None}, f"{line}\n{_MORE}")
    return 1 if trouble else 0


def _trouble(to: Reached, wanted: int | None) -> str:
    """Set it and read it back; what went wrong, or nothing."""
    try:
        set_limit(to.port, wanted)
    except PowerFault as fault:
        return str(fault)
    return ""


def _watts(text: str) -> int:
    number = text.removesuffix("W").removesuffix("w").strip()
    if not (number.isdecimal() and number.isascii()) or not 0 < int(number[:7]) <= 100_000:
        raise OuvrageError(
            "power/limit", f"{text!r} is no power", hint="whole watts (800), or none"
        )
    return int(number)


def _text(watts: int | None) -> str:
    return "none" if watts is None else f"{watts} W"
