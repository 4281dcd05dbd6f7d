"""``ouvrage books goodput --campaign``: what one accepted unit cost, by part, with what facts say of each.

Decides how parts are told: what runs and rentals show, what bills and the books say beside them, what was
stated on the command line, and what nobody knows, with the reason. Figures are made in ``books``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.adapters.feeds.told import amount_in
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import decimal_text, fixed, significant
from ouvrage.base.text import safe
from ouvrage.books.goodput import PARTS, STATED, parts_of
from ouvrage.books.known import Known
from ouvrage.books.unit_parts import TAX, Beside, Chosen, Drawn, drawn, why_unknown
from ouvrage.cli.book_ledger import books_of
from ouvrage.cli.campaigning import campaign_found
from ouvrage.cli.import_told import counted
from ouvrage.cli.ledger import Ledger, past
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.model.focus import FocusCharge
from ouvrage.model.records import Withdrawal
from ouvrage.pricing.campaign import Campaign
from ouvrage.pricing.words import mark

_GOOD = ("compute", "waits", "start-up", "unexplained")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCost:
    """A campaign's cost by part. ``found`` are what facts or the command line say of further parts.

    ``unknown`` says of the others why not; ``beside`` are charges that are no part.
    """

    campaign: Campaign
    parts: dict[str, Fraction]
    found: tuple[Drawn, ...]
    unknown: dict[str, str]
    beside: Beside
    node: str | None

    @property
    def total(self) -> Fraction:
        """Everything that is known."""
        return sum(self.parts.values(), Fraction(0))

    @property
    def units(self) -> int:
        """Accepted units of one sort; 0 where there are several sorts."""
        return self.campaign.units_accepted if self.campaign.unit else 0

    @property
    def goodput(self) -> Fraction | None:
        """The share of accepted work's own time in all that was paid."""
        good = sum((self.parts[name] for name in _GOOD), Fraction(0))
        return good / self.total if self.total else None

    @property
    def grade(self) -> Grade:
        """The weakest grade of anything in the sum."""
        used = (each.grade for each in self.found if each.amount is not None)
        return weakest([self.campaign.grade, *used])


def chosen_of(charges: Sequence[str], node: str | None) -> Chosen:
    """``COLUMN=VALUE`` of each of some texts, and the machine of the runs."""
    columns: list[tuple[str, str]] = []
    for text in charges:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise OuvrageError(
                "goodput/charges", f"{text!r} names no charges",
                hint="--charges ResourceId=disk-1 or --charges tag:project=spring",
            )  # fmt: skip
        columns.append((name, value))
    return Chosen(columns=tuple(columns), node=node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Also:
    """What somebody states beside the facts: amounts of parts, and a tax as a share of what is paid."""

    parts: tuple[Drawn, ...] = ()
    tax: Fraction = Fraction(0)


def also_of(texts: Sequence[str]) -> Also:
    """``PART=AMOUNT`` of each of some texts, ``tax=20%`` among them."""
    found: list[Drawn] = []
    tax = Fraction(0)
    for text in texts:
        part, _, amount = text.partition("=")
        share = part == TAX and amount.endswith("%")
        value = amount_in(amount.removesuffix("%") if share else amount)
        if part not in STATED or value is None or value < 0:
            raise OuvrageError(
                "goodput/also", f"{text!r} states no part of a cost",
                hint=f"--also storage=12.50 or --also tax=20%, with one of {', '.join(STATED)}",
            )  # fmt: skip
        if share:
            tax += Fraction(value) / 100
            continue
        found.append(
            Drawn(
                part=part, amount=Fraction(value), grade=Grade.ASSUMED, method="stated with --also"
            )
        )
    return Also(parts=tuple(found), tax=tax)


def unit_cost_of(
    ledger: Ledger, name: str, also: Also, chosen: Chosen, as_of: int | None
) -> UnitCost:
    """The cost of a campaign as known at a moment. Raises ``OuvrageError`` ``campaign/...``."""
    campaign = campaign_found(ledger, name, past(as_of, ledger)).campaign
    record = books_of(ledger, as_of).record
    if chosen.node is not None and chosen.node not in record.homes:
        raise OuvrageError(
            "goodput/node", f"no machine is called {chosen.node!r}",
            hint=f"there is {', '.join(sorted(record.homes)) or 'none; ouvrage init'}",
        )  # fmt: skip
    said, beside = drawn(campaign, record, _charges(ledger, past(as_of, ledger)), chosen)
    parts = parts_of(campaign)
    told = (*also.parts, *_taxed(also, parts, said))
    found = (*said, *told)
    unknown: dict[str, str] = {}
    for part in STATED:
        ours = [each for each in found if each.part == part]
        why = next((each.why for each in ours if each.amount is None), "")
        stated = any(each in told for each in ours)
        if not ours or (why and not stated):
            unknown[part] = why or why_unknown(part, campaign.name)
        else:
            parts[part] = sum((each.amount or Fraction(0) for each in ours), Fraction(0))
    used = tuple(each for each in found if each.part in parts)
    return UnitCost(
        campaign=campaign, parts=parts, found=used, unknown=unknown, beside=beside, node=chosen.node
    )


def _taxed(also: Also, parts: Mapping[str, Fraction], said: Sequence[Drawn]) -> Iterator[Drawn]:
    """A tax that is stated as a share: of all that is known, or of the machines' price alone where facts
    state the tax of the rest, so that nothing is taxed twice.
    """
    if not also.tax:
        return
    by_facts = any(each.part == TAX and each.amount is not None for each in said)
    others = () if by_facts else (*said, *also.parts)
    price = sum(parts.values(), Fraction(0))
    beside = sum((d.amount or Fraction(0) for d in others if d.part != TAX), Fraction(0))
    of_what = "the machines' price" if by_facts else "what is paid"
    words = (
        f"{decimal_text(also.tax * 100)} % of {of_what} that nobody gives back, stated with --also"
    )
    yield Drawn(part=TAX, amount=(price + beside) * also.tax, grade=Grade.ASSUMED, method=words)


def _charges(ledger: Ledger, as_of: int | None) -> list[Known[FocusCharge]]:
    kinds = (FocusCharge.KIND, Withdrawal.KIND)
    records = [r for kind in kinds for r in ledger.store.records(kind=kind, as_of=as_of)]
    return [
        Known(
            value=value, valid_from=r.fact.valid_from, valid_to=r.fact.valid_to, grade=r.fact.grade,
            key=r.fact.key,
        )
        for r in in_force(records)
        if isinstance(value := read(r.fact), FocusCharge)
    ]  # fmt: skip


def unit_cost_json(found: UnitCost) -> dict[str, Any]:
    """A campaign's cost as ``--json`` prints it, every amount exact."""
    campaign, unknown = found.campaign, [each.code for each in found.campaign.unknown]
    total, share = found.total, found.goodput
    return {
        "campaign": campaign.name,
        "unit": campaign.unit,
        "units_accepted": campaign.units_accepted,
        "currency": campaign.currency,
        "total": None if unknown else decimal_text(total),
        "grade": found.grade.word,
        "parts": {name: decimal_text(cost) for name, cost in found.parts.items()},
        "sources": [
            {"part": d.part, "amount": None if d.amount is None else decimal_text(d.amount),
             "grade": d.grade.word, "method": d.method, "facts": list(d.facts)}
            for d in found.found
        ],
        "cost_per_accepted_unit": (
            decimal_text(total / found.units) if found.units and not unknown else None
        ),
        "goodput": None if unknown or share is None else decimal_text(share),
        "not_stated": list(found.unknown),
        "why_unknown": dict(found.unknown),
        "billed_beside": {
            "charges": found.beside.charges,
            "amount": None if found.beside.amount is None else decimal_text(found.beside.amount),
        },
        "cost_unknown": unknown,
    }  # fmt: skip


def unit_cost_lines(found: UnitCost, plain: bool) -> list[str]:
    """A campaign's cost as a person reads it."""
    campaign, total, units = found.campaign, found.total, found.units
    worth, currency = mark(found.grade, plain), campaign.currency
    first = f"{campaign.name}: nothing was accepted of work that cost {fixed(total, 2)} {currency}{worth}"
    if campaign.unknown:
        codes = ", ".join(each.code for each in campaign.unknown)
        first = f"{campaign.name}: the cost of {codes} is not known, and so no unit's"
    elif units:
        share = "unknown" if found.goodput is None else f"{fixed(found.goodput * 100, 1)} %"
        first = (
            f"{campaign.name}: one accepted {campaign.unit} costs {significant(total / units, 4)} "
            f"{currency}{worth}, of which {share} is its own work"
        )
    lines = [first]
    for name, cost in found.parts.items():
        if cost or name == "compute" or name in STATED:
            share = f"{fixed(cost / total * 100, 1)} %" if total else ""
            per = f"{significant(cost / units, 4):>12} each" if units else ""
            lines.append(
                f"  {name:<15} {fixed(cost, 4):>12} {currency} {share:>8}{per}   {_how(found, name, plain)}"
            )
    whys: dict[str, list[str]] = {}
    for part, why in found.unknown.items():
        whys.setdefault(why, []).append(part)
    lines += [
        f"  not known, and in no sum: {', '.join(parts)}: {why}" for why, parts in whys.items()
    ]
    if found.unknown:
        lines.append("  what you know yourself is stated so: --also storage=12.50")
    if found.beside.charges:
        much = (
            "" if found.beside.amount is None else f", {fixed(found.beside.amount, 2)} {currency}"
        )
        many = counted(found.beside.charges, "more charge")
        lines.append(f"  {many} of it{much}, in no part: the runs have prices of their own")
    return [
        safe(line) for line in [*lines, f"By attempt: ouvrage report --campaign {campaign.name}"]
    ]


def _how(found: UnitCost, name: str, plain: bool) -> str:
    if name in PARTS:
        return PARTS[name]
    ours = [each for each in found.found if each.part == name and each.amount is not None]
    return "; ".join(f"{each.method}{mark(each.grade, plain)}" for each in ours)
