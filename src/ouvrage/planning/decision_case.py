"""A case for a decision out of an owner's record: which days, what is agreed, how good the figures are.

Decides the window (the last whole days of which anything is known, as many as the rules say) and what of
the record belongs to the machine asked about. The bootstrap's seed follows from the days themselves, so
that the same record has the same answer in every home.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import DAY, HOUR
from ouvrage.books.account import Account, account
from ouvrage.books.days import Day, days_of
from ouvrage.books.period import Period, day_of, day_start, span
from ouvrage.books.pnl import sheet_of
from ouvrage.books.record import OwnerRecord
from ouvrage.books.scope import Scope
from ouvrage.books.terms import term
from ouvrage.evidence.figures import Sheet
from ouvrage.planning.decide import MONTH_DAYS, Case
from ouvrage.planning.rules import Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A case with the window it stands on, the account of that window and the sheet of its figures."""

    case: Case
    period: Period
    account: Account
    sheet: Sheet
    scope: Scope
    opportunity: float


def case_of(record: OwnerRecord, site: str, scope: Scope, until_us: int, rules: Numbers) -> Asked:
    """The case of a node, a class of GPU, or all a site's machines, as it stands at a moment.

    Raises ``OuvrageError`` ``decide/none`` where nothing is recorded, ``books/...`` as an account does.
    """
    held = record.site(site)
    zone = held.value.zone if held else "UTC"
    period = _window(record, site, scope, until_us, zone, round(rules["window_days"]))
    made = account(record, site, period)
    cells = [c for c in made.cells if scope.holds(c.node, c.device, made.grid.models)]
    name = scope.name(site)
    sheet = sheet_of(made, cells, f"{name}/{period.name}", None)
    days = days_of(record, site, period, scope)
    about = f"node:{scope.node}" if scope.node else f"site:{site}"
    at_us = period.to_us - 1
    tax, opportunity, own = (
        term(record, about, each, at_us) for each in ("tax", "opportunity_rate", "own_use_price")
    )
    case = Case(
        name=name,
        currency=made.grid.currency,
        zone=zone,
        days=days,
        tax=float(tax.value) if tax else 0.0,
        opportunity=float(opportunity.value) if opportunity else 0.0,
        price=_price(record, made, site, scope, at_us),
        own_price=float(own.value) if own and own.key and own.value else None,
        support_h=_support(record, made, scope, period),
        grade=sheet["margin.net"].grade or sheet["hours.owned"].grade,
        seed=_seed(days),
    )
    return Asked(
        case=case,
        period=period,
        account=made,
        sheet=sheet,
        scope=scope,
        opportunity=case.opportunity,
    )


def _window(
    record: OwnerRecord, site: str, scope: Scope, until_us: int, zone: str, days: int
) -> Period:
    """The last whole days of which anything is known."""
    there = {node for node in record.homes if _any_of(record, node, scope)}
    nodes = [each for each in record.nodes if each.value.site == site and each.value.node in there]
    happened = (*record.earnings, *record.states, *record.leases, *record.energy)
    known = [min(each.end, until_us) for each in happened if each.valid_from < until_us]
    if not nodes or not known:
        raise OuvrageError(
            "decide/none",
            f"nothing is recorded yet of what {scope.name(site)} did or earned",
            hint="ouvrage import --help, or ouvrage own state node:NAME working --from DAY --to DAY",
        )
    after = day_of(max(known), zone)
    begun = min(each.valid_from for each in nodes)
    first = day_of(begun, zone)
    if day_start(first, zone) < begun:
        first += timedelta(days=1)
    first = min(max(first, after - timedelta(days=days)), after - timedelta(days=1))
    return span(first, after, zone, f"{first}..{after}")


def _any_of(record: OwnerRecord, node: str, scope: Scope) -> bool:
    """Whether a node is, or ever held, anything of a scope."""
    if scope.gpu_class is None:
        return scope.node in (None, node)
    placed = [each.value for each in record.inside.get(node, ())]
    return any(scope.holds(node, each.device, {each.device: each.model}) for each in placed)


def _price(record: OwnerRecord, made: Account, site: str, scope: Scope, at_us: int) -> float | None:
    """What the parts that stand there now cost; None where none is priced in the books' currency.

    None as well where a machine with a price holds devices outside the scope: nobody says how much of it
    is theirs.
    """
    gone = {each.value.asset for each in record.retirements if each.valid_from <= at_us}
    standing = [each.value for each in record.devices if each.at(at_us)]
    models = {each.device: each.model for each in standing}
    inside = {True: set[str](), False: set[str]()}
    for each in standing:
        inside[scope.holds(each.node, each.device, models)].add(each.node)
    ours = {
        f"device:{each.device}" for each in standing if scope.holds(each.node, each.device, models)
    }
    ours |= {f"node:{name}" for name in made.grid.nodes if _any_of(record, name, scope)}
    whole = scope == Scope() or (len(made.grid.nodes) == 1 and scope.gpu_class is None)
    ours |= {f"site:{site}"} if whole else set()
    parts = [
        each.value
        for each in record.assets
        if each.value.about in ours and each.value.asset not in gone and each.valid_from <= at_us
    ]
    mixed = {f"node:{name}" for name in inside[True] & inside[False]}
    if (
        not parts
        or mixed & {part.about for part in parts}
        or any(part.currency != made.grid.currency for part in parts)
    ):
        return None
    return float(sum((Fraction(part.price) for part in parts), Fraction(0)))


def _support(record: OwnerRecord, made: Account, scope: Scope, period: Period) -> float:
    """Hours of support a month; of a class of GPU those of all its machines."""
    node = scope.node
    us = sum(
        each.value.duration_us
        for each in record.support
        if period.from_us <= each.valid_from < period.to_us
        and (made.grid.holds(each.value.about) or each.value.about.startswith("tenant:"))
        and (node is None or each.value.about in (f"node:{node}", f"site:{made.grid.site}")
             or each.value.about.startswith(("device:", "tenant:")))
    )  # fmt: skip
    return us / HOUR / (period.us / DAY) * MONTH_DAYS


def _seed(days: tuple[Day, ...]) -> str:
    told = (f"{day.from_us}:{day.sold}:{sum(day.lines.values(), Fraction(0))}" for day in days)
    return ";".join(told)
