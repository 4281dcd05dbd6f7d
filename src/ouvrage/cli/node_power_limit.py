"""``ouvrage node power NODE limit``: a cap on a whole machine's power, or on each of its GPUs, set and read back.

Decides which of the two is meant, that GPUs are limited only where they stand (this machine), all of them or none, and what is said of
the saving: what a tuning that was metered under both limits showed, and that nothing is known where there was none.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.limit_port import CardLimits, Refused
from ouvrage.adapters.power_order import set_limit
from ouvrage.adapters.power_port import PowerFault
from ouvrage.adapters.power_turn import asked, turn
from ouvrage.adapters.remote_config import Remote
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.campaigning import members
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.node_power import (
    Reached,
    Record,
    confirm,
    limit_words,
    order_options,
    power,
    reached,
    refused,
)
from ouvrage.cli.output import say_json, say_text
from ouvrage.cli.tuning import cards_of, check, refusal
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.meter.limits import Driver
from ouvrage.meter.limits_guard import claim
from ouvrage.model.power import DONE, FAILED, NOTHING_TO_DO
from ouvrage.model.sites import DevicePlaced
from ouvrage.pricing.limit_saving import Saving, saving_of, saving_words
from ouvrage.pricing.tuning import Terms, finer, tuning_of

_DEADLINE_S = 30.0
_TUNED = "tune-"


@power.command()
@click.argument("watts", metavar="[WATTS|none]", required=False)
@click.option(
    "--gpus",
    metavar="WATTS",
    type=click.IntRange(1, 100_000),
    help="Limit each GPU instead; NODE is this machine.",
)
@click.option("--campaign", metavar="NAME", help="The tuning that says what it saves (the latest).")
@order_options
@click.pass_obj
def limit(
    node: str, watts: str | None, gpus: int | None, campaign: str | None, **given: Any
) -> int:
    """Show the limit of the machine's power, or set one of WATTS and see that it holds."""
    if watts is not None and gpus is not None:
        raise OuvrageError(
            "power/limit",
            "one limit at a time",
            hint="WATTS for the machine, or --gpus WATTS for its GPUs",
        )
    if gpus is not None:
        return _limit_gpus(node, gpus, campaign, **given)
    return _limit_node(reached(node), watts, **given)


def _limit_node(
    to: Reached,
    watts: str | None,
    *,
    yes: bool,
    dry_run: bool,
    why: str,
    as_json: bool,
    plain: bool,
) -> int:
    wanted = None if watts in (None, "none") else _watts(watts or "")
    try:
        now = asked(to.port.power_limit)
        if watts is None:
            said = {"node": to.node, "watts": now.watts, "least": now.least, "most": now.most}
            say_json(said) if as_json else say_text(
                f"{to.node}: power limit {limit_words(now)}\nAnother: ouvrage node power {to.node} limit WATTS"
            )
            return 0
        words = _limited(to, now.watts, wanted)
        if dry_run:
            _say(
                {"node": to.node, "before": now.watts, "would": wanted, "dry_run": True},
                f"Would {words}. Nothing was done or recorded.",
                as_json,
            )
            return 0
        confirm(f"{words[0].upper()}{words[1:]}?", yes=yes, as_json=as_json)
        began = monotonic_us()
        with turn(f"order {to.remote.address}", 5):
            record = Record(to, "limit", None, False, why)
            record.ordered()
            trouble = _set(to, wanted)
    except PowerFault as fault:
        raise refused(to, fault) from fault
    outcome = FAILED if trouble else DONE
    after = _text(now.watts if trouble else wanted)
    record.ended(outcome, _text(now.watts), after, monotonic_us() - began, trouble)
    line = f"NOT limited: {trouble}" if trouble else f"{to.node}: power limit {after}, read back."
    said = {
        "node": to.node,
        "before": now.watts,
        "after": now.watts if trouble else wanted,
        "outcome": outcome,
        "trouble": trouble,
        "dry_run": False,
        "saves": None,
    }
    more = "What it saves per unit of work is not known: meter a run under each limit (ouvrage run), and compare them."
    _say(said, f"{line}\n{more}", as_json)
    return 1 if trouble else 0


def _set(to: Reached, wanted: int | None) -> str:
    """Set it and read it back; what went wrong, or nothing."""
    try:
        set_limit(to.port, wanted)
    except PowerFault as fault:
        return str(fault)
    return ""


def _watts(text: str) -> int:
    number = text.removesuffix("W").removesuffix("w").strip()
    if not number.isdecimal() or not number.isascii() or not 0 < int(number[:7]) <= 100_000:
        raise OuvrageError(
            "power/limit", f"{text!r} is no power", hint="whole watts (800), or none"
        )
    return int(number)


def _text(watts: int | None) -> str:
    return "none" if watts is None else f"{watts} W"


def _limited(to: Reached, before: int | None, wanted: int | None) -> str:
    if wanted is None:
        return f"take the power limit of {to.node} away (now {_text(before)})"
    return f"limit {to.node} to {wanted} W (now {_text(before)})"


def _say(said: dict[str, Any], words: str, as_json: bool) -> None:
    say_json(said) if as_json else say_text(words)


def _limit_gpus(
    node: str,
    watts: int,
    campaign: str | None,
    *,
    yes: bool,
    dry_run: bool,
    why: str,
    as_json: bool,
    plain: bool,
) -> int:
    driver = Driver(_DEADLINE_S)
    cards = cards_of(driver, None)
    check(cards, shared=True)
    _within(cards, watts)
    with opened() as ledger:
        _stand_in(ledger, node, cards)
        saving = _saving(ledger, campaign, watts, cards)
    words = f"limit {len(cards)} GPUs of {node} to {watts} W (now {_spread(cards)})"
    if dry_run:
        said = {
            "node": node,
            "would": watts,
            "cards": _cards_json(cards),
            "saves": _saving_json(saving),
            "dry_run": True,
        }
        _say(said, f"Would {words}.\n{_saves(saving)}\nNothing was done or recorded.", as_json)
        return 0
    confirm(f"{words[0].upper()}{words[1:]}?", yes=yes, as_json=as_json)
    outcome, trouble = _set_all(node, driver, cards, watts, why)
    line = (
        f"NOT limited: {trouble}"
        if trouble
        else f"{len(cards)} GPUs of {node} stand at {watts} W, read back."
    )
    more = (
        "A restart of the machine forgets it."
        if not trouble
        else "Those that had been changed were put back."
    )
    said = {
        "node": node,
        "watts": watts,
        "cards": _cards_json(cards),
        "outcome": outcome,
        "trouble": trouble,
        "saves": _saving_json(saving),
        "dry_run": False,
    }
    _say(said, f"{line} {more}\n{_saves(saving)}", as_json)
    return 1 if trouble else 0


def _within(cards: Sequence[CardLimits], watts: int) -> None:
    for card in cards:
        least, most = card.least_mw or 0, card.most_mw or 0
        if not least <= watts * 1000 <= most:
            raise OuvrageError(
                "power/limit", f"GPU {card.index} ({card.name}) takes {least // 1000} to {most // 1000} W, not {watts} W",
                hint="name a limit that every GPU takes",
            )  # fmt: skip


def _stand_in(ledger: Ledger, node: str, cards: Sequence[CardLimits]) -> None:
    """Refuse where the books place one of these GPUs in another machine: then NODE is not this one."""
    placed = {
        value.device: value.node
        for entry in in_force(ledger.store.records(kind=DevicePlaced.KIND))
        if isinstance(value := read(entry.fact), DevicePlaced)
    }
    for card in cards:
        if placed.get(card.uuid, node) != node:
            raise OuvrageError(
                "power/elsewhere", f"GPU {card.index} of this machine stands in {placed[card.uuid]}, not in {node}",
                hint=f"GPUs are limited where they are: run this on {node} itself",
            )  # fmt: skip


def _spread(cards: Sequence[CardLimits]) -> str:
    found = sorted({card.limit_mw // 1000 for card in cards if card.limit_mw is not None})
    return ", ".join(f"{watts} W" for watts in found)


def _cards_json(cards: Sequence[CardLimits]) -> list[dict[str, Any]]:
    return [
        {"gpu": card.uuid, "before_w": None if card.limit_mw is None else card.limit_mw // 1000}
        for card in cards
    ]


def _set_all(
    node: str, driver: Driver, cards: Sequence[CardLimits], watts: int, why: str
) -> tuple[str, str]:
    """Set every card and read it back; where one refuses, the others go back. Each is recorded."""
    to = Reached(
        remote=Remote(node=node, kind="nvml", address="", settings={}, where=""), port=None
    )  # pyright: ignore[reportArgumentType]  # nothing is reached: the driver is here
    held = claim([card.uuid for card in cards])
    records = {card.uuid: Record(to, "limit", card.uuid, False, why) for card in cards}
    changed: list[CardLimits] = []
    trouble, began = "", monotonic_us()
    try:
        for record in records.values():
            record.ordered()
        for card in cards:
            changed.append(card)
            driver.set(card.uuid, watts * 1000)
    except Refused as error:
        trouble = str(refusal(error, f"GPU {changed[-1].index}"))
        trouble += _back(driver, changed)
    finally:
        for each in held:
            each.close()
    for card in cards:
        before = _text((card.limit_mw or 0) // 1000)
        same = card.limit_mw == watts * 1000
        outcome = FAILED if trouble else NOTHING_TO_DO if same else DONE
        after = before if trouble else _text(watts)
        records[card.uuid].ended(outcome, before, after, monotonic_us() - began, trouble)
    return (FAILED if trouble else DONE), trouble


def _back(driver: Driver, changed: Sequence[CardLimits]) -> str:
    """Put back what was changed; what did not go back, in words."""
    lost: list[str] = []
    for card in changed:
        try:
            driver.set(card.uuid, card.limit_mw or 0)
        except Refused:
            lost.append(str(card.index))
    return f"; GPU {', '.join(lost)} IS NOT BACK" if lost else ""


def _saving(
    ledger: Ledger, campaign: str | None, watts: int, cards: Sequence[CardLimits]
) -> tuple[str, Saving] | None:
    """What the latest tuning that was metered under both limits says of a unit, with the tuning's name."""
    before = {card.limit_mw for card in cards}
    if len(before) != 1:
        return None
    known = members(ledger, None)
    if campaign is not None and campaign not in known:
        raise OuvrageError(
            "power/campaign",
            f"no campaign is called {campaign!r}",
            hint="ouvrage campaign lists them",
        )
    names = [campaign] if campaign else [name for name in known if name.startswith(_TUNED)]
    names.sort(key=lambda name: max(known[name]), reverse=True)
    for name in names:
        views = [
            finer(one.view, ledger.spool(one.view.run))
            for one in ledger.assessed(list(known[name]))
        ]
        try:
            tuning = tuning_of(views, Terms(electricity=None, rate=None, price=None))
        except OuvrageError:
            continue  # nothing in it can be compared
        found = saving_of(tuning, Fraction(watts), Fraction(next(iter(before)) or 0, 1000))
        if found is not None:
            return name, found
    return None


def _saves(found: tuple[str, Saving] | None) -> str:
    if found is None:
        return "What it saves per unit of work is not known: ouvrage tune tries it out."
    return f"{found[0]}: {saving_words(found[1])}."


def _saving_json(found: tuple[str, Saving] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    name, saving = found
    return {
        "campaign": name, "unit": saving.unit, "limit_w": float(saving.limit_w), "before_w": float(saving.before_w),
        "joules_ratio": None if saving.joules is None else float(saving.joules), "seconds_ratio": float(saving.seconds),
        "grade": saving.grade.word,
    }  # fmt: skip
