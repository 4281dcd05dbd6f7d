"""A power cap on each of this machine's GPUs: ``ouvrage node power NODE limit --gpus WATTS``.

Decides that GPUs are limited only where they stand, all of them or none, each read back; and what is said of the saving: what a
tuning that was metered under both limits showed (``ouvrage tune``), or that nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.limit_port import CardLimits, Refused
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.campaigning import members
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.node_power import Given, Record
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
_NO_PRICES = Terms(electricity=None, rate=None, price=None)

Saved = tuple[str, Saving] | None


def limit_gpus(node: str, watts: int, campaign: str | None, given: Given) -> int:
    """Cap every GPU here at ``watts``; the exit code."""
    driver = Driver(_DEADLINE_S)
    cards = cards_of(driver, None)
    check(cards, shared=True)
    _within(cards, watts)
    with opened() as ledger:
        _stand_in(ledger, node, cards)
        saved = _saving(ledger, campaign, watts, cards)
    before = [{"gpu": card.uuid, "before_w": (card.limit_mw or 0) // 1000} for card in cards]
    said: dict[str, Any] = {
        "node": node, "wanted": watts, "cards": before, "saves": _saving_json(saved), "dry_run": given.dry_run,
    }  # fmt: skip
    words = f"limit {_gpus(cards)} of {node} to {watts} W (now {_spread(cards)})"
    if given.dry_run:
        given.say(said, f"Would {words}.\n{_saves(saved)}\nNothing was done or recorded.")
        return 0
    given.confirm(f"{words[0].upper()}{words[1:]}?")
    trouble = _set_all(node, driver, cards, watts, given.why)
    done = f"{_gpus(cards)} of {node} stand at {watts} W, read back. A restart of the machine forgets it."
    line = (
        f"NOT limited: {trouble}. Those that had been changed were put back." if trouble else done
    )
    outcome = FAILED if trouble else DONE
    given.say({**said, "outcome": outcome, "trouble": trouble}, f"{line}\n{_saves(saved)}")
    return 1 if trouble else 0


def _gpus(cards: Sequence[CardLimits]) -> str:
    return f"{len(cards)} GPU{'s' if len(cards) > 1 else ''}"


def _within(cards: Sequence[CardLimits], watts: int) -> None:
    for card in cards:
        least, most = card.least_mw or 0, card.most_mw or 0
        if not least <= watts * 1000 <= most:
            raise OuvrageError(
                "power/limit",
                f"GPU {card.index} ({card.name}) takes {least // 1000} to {most // 1000} W, not {watts} W",
                hint="name a limit that every GPU takes",
            )


def _stand_in(ledger: Ledger, node: str, cards: Sequence[CardLimits]) -> None:
    """Refuse where the books place one of these GPUs in another machine: then NODE is not this one."""
    placed = {
        value.device: value.node
        for entry in in_force(ledger.store.records(kind=DevicePlaced.KIND))
        if isinstance(value := read(entry.fact), DevicePlaced)
    }
    for card in cards:
        where = placed.get(card.uuid, node)
        if where != node:
            raise OuvrageError(
                "power/elsewhere", f"GPU {card.index} of this machine stands in {where}, not in {node}",
                hint=f"GPUs are limited where they are: run this on {node} itself",
            )  # fmt: skip


def _spread(cards: Sequence[CardLimits]) -> str:
    found = sorted({card.limit_mw // 1000 for card in cards if card.limit_mw is not None})
    return ", ".join(f"{watts} W" for watts in found)


def _set_all(node: str, driver: Driver, cards: Sequence[CardLimits], watts: int, why: str) -> str:
    """Set every card and read it back, or put all back; what went wrong. Each is recorded."""
    held = claim([card.uuid for card in cards])
    records = [Record(node, "nvml", "limit", device=card.uuid, why=why) for card in cards]
    began = monotonic_us()
    try:
        for record in records:
            record.ordered()
        trouble = _set(driver, cards, watts)
    finally:
        for each in held:
            each.close()
    took = monotonic_us() - began
    for card, record in zip(cards, records, strict=True):
        before = f"{(card.limit_mw or 0) // 1000} W"
        outcome = FAILED if trouble else NOTHING_TO_DO if card.limit_mw == watts * 1000 else DONE
        record.ended(outcome, before, "unknown" if trouble else f"{watts} W", took, trouble)
    return trouble


def _set(driver: Driver, cards: Sequence[CardLimits], watts: int) -> str:
    for place, card in enumerate(cards):
        try:
            driver.set(card.uuid, watts * 1000)
        except Refused as error:
            return str(refusal(error, f"GPU {card.index}")) + _back(driver, cards[: place + 1])
    return ""


def _back(driver: Driver, changed: Sequence[CardLimits]) -> str:
    """Put back what was changed; those that read another limit afterwards, in words."""
    lost: list[str] = []
    for card in changed:
        try:
            driver.set(card.uuid, card.limit_mw or 0)
        except Refused:
            lost.append(str(card.index))
    stands = {card.uuid: card.limit_mw for card in driver.look()} if lost else {}
    odd = [str(card.index) for card in changed if stands and stands.get(card.uuid) != card.limit_mw]
    return f"; GPU {', '.join(odd)} IS NOT BACK" if odd else ""


def _saving(ledger: Ledger, campaign: str | None, watts: int, cards: Sequence[CardLimits]) -> Saved:
    """What the latest tuning that was metered under this limit says of a unit, with the tuning's name."""
    known = members(ledger, None)
    if campaign is not None and campaign not in known:
        raise OuvrageError(
            "power/campaign",
            f"no campaign is called {campaign!r}",
            hint="ouvrage campaign lists them",
        )
    names = [campaign] if campaign else [name for name in known if name.startswith(_TUNED)]
    highest = max(card.limit_mw or 0 for card in cards)
    for name in sorted(names, key=lambda name: max(known[name]), reverse=True):
        views = [
            finer(one.view, ledger.spool(one.view.run))
            for one in ledger.assessed(list(known[name]))
        ]
        try:
            tuning = tuning_of(views, _NO_PRICES)
        except OuvrageError:
            continue  # nothing in it can be compared
        found = saving_of(tuning, Fraction(watts), Fraction(highest, 1000))
        if found is not None:
            return name, found
    return None


def _saves(found: Saved) -> str:
    if found is None:
        return "What it saves a unit of work is not known: ouvrage tune tries it out."
    return f"{found[0]}: {saving_words(found[1])}"


def _saving_json(found: Saved) -> dict[str, Any] | None:
    if found is None:
        return None
    name, saving = found
    return {
        "campaign": name, "unit": saving.unit, "limit_w": float(saving.limit_w), "before_w": float(saving.before_w),
        "joules_ratio": None if saving.joules is None else float(saving.joules),
        "seconds_ratio": float(saving.seconds), "grade": saving.grade.word,
    }  # fmt: skip
