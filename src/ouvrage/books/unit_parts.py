"""What a campaign cost beside its machines' time: storage, traffic, energy, tax, reserved and unused.

Decides which facts of a store are about a campaign and which part each is: charges of a cloud's bill that
are tagged with its name or named by their columns, and what the books say of the owner's own GPUs while
its runs had them. Compute on a cloud's bill is no part, since the runs have a price of their own; it is
told beside. A part of which no fact says anything is unknown, with the reason. Tax on an owner's profit is
no part of a unit: whoever works for himself makes none by it.

Columns of FOCUS and their values: https://focus.finops.org/focus-specification/v1-0/.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import decimal_text, number
from ouvrage.books.account import Account, account, money
from ouvrage.books.goodput import STATED
from ouvrage.books.known import Known
from ouvrage.books.money import converted
from ouvrage.books.period import Period
from ouvrage.books.record import OwnerRecord
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView
from ouvrage.model.cash import CostBill
from ouvrage.model.focus import FocusCharge
from ouvrage.pricing.campaign import Attempt, Campaign, covered_us
from ouvrage.pricing.energy import energy_figures

UNUSED, STORAGE, TRAFFIC, ENERGY, TAX = STATED
TAG = "campaign"
_SERVICES = {"storage": STORAGE, "networking": TRAFFIC}
_LINES = {"cost.electricity": ENERGY, "cost.cooling": ENERGY, "cost.bandwidth": TRAFFIC}
Charges = Sequence[Known[FocusCharge]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What somebody says is the campaign's: charges by column and value, and the node of its runs."""

    columns: tuple[tuple[str, str], ...] = ()
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What some facts say of one part; ``amount`` None where they cannot say it, with ``why``."""

    part: str
    amount: Fraction | None
    grade: Grade
    method: str
    facts: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Charges of the campaign that are no part: how many, and their sum where it is known."""

    charges: int
    amount: Fraction | None


def drawn(
    campaign: Campaign, record: OwnerRecord, charges: Charges, chosen: Chosen
) -> tuple[tuple[Drawn, ...], Beside]:
    """What the store says of the parts that no run shows, and the charges that are none of them."""
    ours = list(_ours(campaign, charges, chosen))
    found: list[Drawn] = []
    for part in (UNUSED, STORAGE, TRAFFIC, TAX):
        found += _billed(campaign, record, part, [o for o in ours if part_of(o[0].value) == part])
    used = [_used(attempt, campaign, record, chosen) for attempt in campaign.attempts]
    found += _energy(used)
    found += _beside_energy(used)
    rest = [each for each in ours if part_of(each[0].value) is None]
    sums = [_amount(campaign, record, *each) for each in rest]
    whole = None if None in sums else sum((s or Fraction(0) for s in sums), Fraction(0))
    return tuple(found), Beside(charges=len(rest), amount=whole)


def why_unknown(part: str, campaign: str) -> str:
    """Why nothing is known of a part of which no fact says anything."""
    if part == ENERGY:
        return "no run is known to have stood on a machine of the books, and none has a price of energy"
    return f"no charge of it is tagged {TAG}={campaign}"


def part_of(charge: FocusCharge) -> str | None:
    """Which part a charge is; None for what is none of them."""
    columns = _columns(charge)
    if charge.category.lower() == "tax":
        return TAX
    if str(columns.get("CommitmentDiscountStatus", "")).lower() == "unused":
        return UNUSED
    return _SERVICES.get(str(columns.get("ServiceCategory", "")).lower())


def _columns(charge: FocusCharge) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(charge.columns)
    return found


def _tags(columns: dict[str, Any]) -> dict[str, str]:
    """The tags of a row; none where they are not the JSON that FOCUS has them be."""
    try:
        tags = json.loads(str(columns.get("Tags") or "{}"))
    except ValueError:
        return {}
    return (
        {str(k).strip().lower(): str(v) for k, v in tags.items()} if isinstance(tags, dict) else {}
    )


Share = tuple[Known[FocusCharge], Fraction]


def _ours(campaign: Campaign, charges: Charges, chosen: Chosen) -> Iterator[Share]:
    """The campaign's charges: those tagged with its name whole, those named as far as it lasted."""
    begins, ends = _span(campaign)
    for each in charges:
        columns = _columns(each.value)
        tags = _tags(columns)
        if tags.get(TAG) == campaign.name:
            yield each, Fraction(1)
        elif chosen.columns and all(_says(columns, tags, *asked) for asked in chosen.columns):
            whole = each.end - each.valid_from
            within = min(each.end, ends) - max(each.valid_from, begins)
            if within > 0 or (not whole and begins <= each.valid_from < ends):
                yield each, Fraction(within, whole) if whole else Fraction(1)


def _says(columns: dict[str, Any], tags: dict[str, str], name: str, value: str) -> bool:
    sort, colon, tag = name.partition(":")
    if colon and sort == "tag":
        return tags.get(tag.lower()) == value
    return str(columns.get(name, "")) == value


def _span(campaign: Campaign) -> tuple[int, int]:
    """From the first start of anything in a campaign to the last end."""
    times = [
        (a.view.started.started_us, a.view.started.started_us + a.view.wall_us)
        for a in campaign.attempts
    ]
    times += [(r.account.time.from_us, r.account.time.to_us) for r in campaign.rented]
    return min((t[0] for t in times), default=0), max((t[1] for t in times), default=0)


def _amount(
    campaign: Campaign, record: OwnerRecord, each: Known[FocusCharge], share: Fraction
) -> Fraction | None:
    """What a charge comes to in the campaign's currency; None where it is null or there is no rate."""
    text = each.value.effective or each.value.billed
    if text is None:
        return None
    try:
        whole = converted(
            record, text, each.value.currency, campaign.currency, each.valid_from, each
        )
    except OuvrageError:
        return None
    return whole.amount * share


def _billed(
    campaign: Campaign, record: OwnerRecord, part: str, ours: Sequence[Share]
) -> Iterator[Drawn]:
    if not ours:
        return
    sums = [_amount(campaign, record, *each) for each in ours]
    missing = sum(amount is None for amount in sums)
    why = f"{missing} of {len(ours)} charges have no cost, or no rate into {campaign.currency} is known"
    shared = " in the campaign's time" if any(share != 1 for _, share in ours) else ""
    yield Drawn(
        part=part,
        amount=None if missing else sum((s or Fraction(0) for s in sums), Fraction(0)),
        grade=weakest(each.grade for each, _ in ours),
        method=f"effective cost of {len(ours)} charge{'s' * (len(ours) != 1)} of a cloud's bill{shared}",
        facts=tuple(each.key for each, _ in ours),
        why=why if missing else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Used:
    """What one attempt took beside its machine's time; ``energy`` None where nobody can say, with why."""

    code: str
    energy: Drawn
    others: tuple[Drawn, ...] = ()


def _used(attempt: Attempt, campaign: Campaign, record: OwnerRecord, chosen: Chosen) -> _Used:
    view = attempt.view
    accounts = [each for each in campaign.accounts if view.run in each.time.shares]
    outside = Fraction(view.wall_us - covered_us(view, accounts), view.wall_us or 1)
    if accounts and not outside:
        rent = Drawn(part=ENERGY, amount=Fraction(0), grade=Grade.ASSUMED,
                     method="taken to be in the rent of a rented machine")  # fmt: skip
        return _Used(code=attempt.code, energy=rent)
    own = _own(view, record, chosen, campaign.currency)
    metered = _metered(view, campaign.currency)
    energy = metered or (own[0] if own else None) or _nowhere(view, chosen, record)
    if energy.amount is not None and outside != 1:
        energy = Drawn(part=ENERGY, amount=energy.amount * outside, grade=energy.grade, facts=energy.facts,
                       method=f"{energy.method}, for its time outside a rent")  # fmt: skip
    return _Used(code=attempt.code, energy=energy, others=tuple(own[1:]) if outside == 1 else ())


def _nowhere(view: RunView, chosen: Chosen, record: OwnerRecord) -> Drawn:
    why = "it has no price of energy and stood on no GPU of the books"
    if chosen.node is None and record.homes:
        why += " (--on NODE says on which machine)"
    return Drawn(part=ENERGY, amount=None, grade=view.grade, method="", why=why)


def _metered(view: RunView, currency: str) -> Drawn | None:
    """The run's own meters at the price that was stated for it."""
    if view.electricity is None or view.electricity.currency != currency:
        return None
    figures = {figure.path: figure for figure in energy_figures(view, reckon(view))}
    cost = figures["cost_of_energy.total"]
    if cost.value is None or cost.grade is None:
        return None
    facts = view.facts("run.electricity", "run.energy_window", "run.gpu_window")
    return Drawn(
        part=ENERGY, amount=Fraction(cost.value), grade=cost.grade, method=cost.method, facts=facts
    )


def _own(view: RunView, record: OwnerRecord, chosen: Chosen, currency: str) -> list[Drawn]:
    """What the books say of the owner's GPUs while a run had them: energy first, then traffic and tax."""
    begins = view.started.started_us
    devices, node, guessed = devices_of(view, record, chosen.node)
    site = record.homes[node][-1].value.site if node in record.homes else None
    held = record.site(site) if site else None
    if not devices or held is None or not view.wall_us:
        return []
    period = Period(
        from_us=begins, to_us=begins + view.wall_us, name=view.code, zone=held.value.zone
    )
    made = account(record, held.value.site, period)
    why = next((w for d, w in made.unknown.get("electricity", {}).items() if d in devices), "")
    energy = _line(made, devices, ENERGY, record, currency, guessed)
    if why or energy is None:
        none = why or "the books have no energy of its GPUs in its time"
        return [Drawn(part=ENERGY, amount=None, grade=view.grade, method="", why=none)]
    traffic = _line(made, devices, TRAFFIC, record, currency, guessed)
    found = [energy, *([traffic] if traffic is not None and traffic.amount else [])]
    return [*found, *(tax for each in found if (tax := _tax(each, record)) is not None)]


def devices_of(
    view: RunView, record: OwnerRecord, named: str | None
) -> tuple[frozenset[str], str, bool]:
    """The owner's GPUs that a run had, their node, and whether that they were all of it is assumed.

    By their UUID or serial number; else by their index in the machine of the run's job or the one named.
    """
    at_us = view.started.started_us
    chosen = [each for each in view.devices if each.chosen]
    known = {name for each in chosen for name in (each.uuid, each.serial) if name}
    found = {device: [p for p in record.placed.get(device, ()) if p.at(at_us)] for device in known}
    by_name = {device: placed[-1].value.node for device, placed in found.items() if placed}
    if by_name:
        return frozenset(by_name), next(iter(by_name.values())), False
    hosts = [job.host_name for job in view.around.get("run.job", ())]
    node = named or next((host for host in hosts if host in record.homes), "")
    inside = [p.value for p in record.inside.get(node, ()) if p.at(at_us)]
    indices = {each.index for each in chosen}
    by_slot = frozenset(p.device for p in inside if p.slot is not None and p.slot in indices)
    return (by_slot, node, False) if by_slot else (frozenset(p.device for p in inside), node, True)


def _line(
    made: Account,
    devices: frozenset[str],
    part: str,
    record: OwnerRecord,
    currency: str,
    guessed: bool,
) -> Drawn | None:
    ours = [
        h
        for (line, cell), h in made.sums.items()
        if _LINES.get(line) == part and cell.device in devices
    ]
    if not ours:
        return None
    total = sum(held.nano for held in ours)
    methods = list(dict.fromkeys(m for held in ours if held.nano for m in held.methods))
    facts = tuple(dict.fromkeys(key for held in ours for key in held.keys))
    grade = weakest(
        [*(g for held in ours for g in held.by_grade), *([Grade.ASSUMED] if guessed else [])]
    )
    known = Known(
        value=None, valid_from=made.grid.period.from_us, valid_to=None, grade=grade, key=""
    )
    text, begins = decimal_text(money(total)), made.grid.period.from_us
    try:
        amount = converted(record, text, made.grid.currency, currency, begins, known).amount
    except OuvrageError as error:
        return Drawn(part=part, amount=None, grade=grade, method="", why=error.message)
    words = "; ".join(methods[:2]) + (f" and {len(methods) - 2} more" if len(methods) > 2 else "")
    whole = f", all {len(devices)} GPUs of the machine" if guessed else ""
    return Drawn(
        part=part,
        amount=amount,
        grade=grade,
        method=f"by the books: {words}{whole}; the run's price is taken to be without it",
        facts=facts,
    )


def _tax(each: Drawn, record: OwnerRecord) -> Drawn | None:
    """The tax that the bills behind an amount state, in proportion to it."""
    bills: list[Known[CostBill]] = [b for b in record.bills if b.key in each.facts and b.value.tax]
    asked = sum((number(b.value.amount) for b in bills), Fraction(0))
    if not asked or each.amount is None:
        return None
    share = sum((number(b.value.tax or "0") for b in bills), Fraction(0)) / asked
    return Drawn(
        part=TAX, amount=each.amount * share, grade=weakest([each.grade, *(b.grade for b in bills)]),
        method=f"tax of the bills behind the {each.part}, in proportion", facts=tuple(b.key for b in bills),
    )  # fmt: skip


def _energy(used: Sequence[_Used]) -> Iterator[Drawn]:
    """The energy of all attempts together; not known where that of one is not."""
    if not used:
        return
    silent = [each for each in used if each.energy.amount is None]
    if len(silent) == len(used) and all(not each.energy.facts for each in used):
        yield Drawn(
            part=ENERGY, amount=None, grade=Grade.ASSUMED, method="", why=silent[0].energy.why
        )
        return
    yield _together([each.energy for each in used],
                    f"of {silent[0].code}: {silent[0].energy.why}" if silent else "")  # fmt: skip


def _beside_energy(used: Sequence[_Used]) -> Iterator[Drawn]:
    for part in (TRAFFIC, TAX):
        ours = [each for one in used for each in one.others if each.part == part]
        if ours:
            yield _together(ours, next((each.why for each in ours if each.amount is None), ""))


def _together(parts: Sequence[Drawn], why: str) -> Drawn:
    methods = dict.fromkeys(each.method for each in parts if each.method)
    return Drawn(
        part=parts[0].part,
        amount=None if why else sum((each.amount or Fraction(0) for each in parts), Fraction(0)),
        grade=weakest(each.grade for each in parts),
        method="; ".join(methods),
        facts=tuple(dict.fromkeys(key for each in parts for key in each.facts)),
        why=why,
    )
