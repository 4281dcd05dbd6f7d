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
    node: str | None
    opportunity: float


def case_of(
    record: OwnerRecord, site: str, node: str | None, until_us: int, rules: Numbers
) -> Asked:
    """The case of a node, or of all a site's machines, as it stands at a moment.

    Raises ``OuvrageError`` ``decide/none`` where nothing is recorded, ``books/...`` as an account does.
    """
    held = record.site(site)
    zone = held.value.zone if held else "UTC"
    period = _window(record, site, node, until_us, zone, round(rules["window_days"]))
    made = account(record, site, period)
    cells = [cell for cell in made.cells if node is None or cell.node == node]
    name = node or site
    sheet = sheet_of(made, cells, f"{name}/{period.name}", None)
    days = days_of(record, site, period, node)
    about = f"node:{node}" if node else f"site:{site}"
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
        price=_price(record, made, site, node, at_us),
        own_price=float(own.value) if own and own.key and own.value else None,
        support_h=_support(record, made, node, period),
        grade=sheet["margin.net"].grade or sheet["hours.owned"].grade,
        seed=_seed(days),
    )
    return Asked(
        case=case, period=period, account=made, sheet=sheet, node=node, opportunity=case.opportunity
    )


def _window(
    record: OwnerRecord, site: str, node: str | None, until_us: int, zone: str, days: int
) -> Period:
    """The last whole days of which anything is known."""
    nodes = [
        each for each in record.nodes if each.value.site == site and node in (None, each.value.node)
    ]
    happened = (*record.earnings, *record.states, *record.leases, *record.energy)
    known = [min(each.end, until_us) for each in happened if each.valid_from < until_us]
    if not nodes or not known:
        raise OuvrageError(
            "decide/none",
            f"nothing is recorded yet of what {node or site} did or earned",
            hint="ouvrage import --help, or ouvrage own state node:NAME working --from DAY --to DAY",
        )
    after = day_of(max(known), zone)
    begun = min(each.valid_from for each in nodes)
    first = day_of(begun, zone)
    if day_start(first, zone) < begun:
        first += timedelta(days=1)
    first = min(max(first, after - timedelta(days=days)), after - timedelta(days=1))
    return span(first, after, zone, f"{first}..{after}")


def _price(
    record: OwnerRecord, made: Account, site: str, node: str | None, at_us: int
) -> float | None:
    """What the parts that stand there now cost; None where none is priced in the books' currency."""
    gone = {each.value.asset for each in record.retirements if each.valid_from <= at_us}
    devices = {
        each.value.device
        for each in record.devices
        if each.at(at_us) and node in (None, each.value.node)
    }
    ours = {f"device:{device}" for device in devices}
    ours |= {f"node:{name}" for name in made.grid.nodes if node in (None, name)}
    ours |= {f"site:{site}"} if node is None or len(made.grid.nodes) == 1 else set()
    parts = [
        each.value
        for each in record.assets
        if each.value.about in ours and each.value.asset not in gone and each.valid_from <= at_us
    ]
    if not parts or any(part.currency != made.grid.currency for part in parts):
        return None
    return float(sum((Fraction(part.price) for part in parts), Fraction(0)))


def _support(record: OwnerRecord, made: Account, node: str | None, period: Period) -> float:
    """Hours of support a month."""
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
