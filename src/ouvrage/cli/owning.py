"""An owner's words as statements: sites, nodes, devices, terms, parts, loans, leases, states.

Decides how an amount and a day are written, what each statement's natural key is (so that saying the
same again changes nothing and saying something else corrects it), and which words are refused. A
person's word is ``reported``; what stands in for a word not given is ``assumed``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.names import check_name
from ouvrage.base.numbers import decimal_text
from ouvrage.base.price import CURRENCY_SIGNS
from ouvrage.base.time import utc_text
from ouvrage.books.period import day_named, day_start, zone_of
from ouvrage.books.terms import RULES
from ouvrage.cli.booking import Stated
from ouvrage.health.parts import KINDS
from ouvrage.model.assets import DEPRECIATION, LOANS, Asset, AssetPart, AssetRetired, Loan
from ouvrage.model.earnings import OwnerLease
from ouvrage.model.occupancy import STATES, DeviceState
from ouvrage.model.sites import DevicePlaced, Node, Site, Term

_AMOUNT = re.compile(
    r"(?P<sign>[$€£])?\s*(?P<number>[0-9]*\.?[0-9]+)\s*(?P<percent>%)?\s*(?P<currency>[A-Z]{3})?"
    r"\s*(?:/\s*(?P<per>[A-Za-z]+))?"
)
_SORTS = ("site", "node", "device", "channel", "tenant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The site whose books a statement goes into: its currency and the clock of its days."""

    site: str
    currency: str
    zone: str

    def moment(self, text: str) -> int:
        """The beginning of a day in the site's zone, or a moment written with its zone."""
        from ouvrage.cli.options import moment

        if "T" in text:
            day(text[:10])
            return moment(text)
        return day_start(day(text), self.zone)


def day(text: str) -> date:
    """A day as people write it in data: ``2026-11-07``."""
    try:
        return day_named(text)
    except ValueError as error:
        raise OuvrageError(
            "own/day", f"{text!r} is no day of books: {error}", hint="write it as 2026-11-07"
        ) from error


def check_zone(zone: str) -> None:
    """Raise ``OuvrageError`` ``site/zone`` for a zone that this machine does not know."""
    zone_of(zone)


def check_currency(currency: str) -> None:
    """Raise ``OuvrageError`` ``site/currency`` for a text that is no currency code."""
    if not re.fullmatch("[A-Z]{3}", currency):
        raise OuvrageError(
            "site/currency", f"{currency!r} is no currency code", hint="write it as EUR or USD"
        )


def amount(text: object, unit: str, currency: str, what: str) -> str:
    """Decimal text of an amount in a term's unit: ``0.25``, ``0.25/kWh``, ``15 %``, ``$40/month``.

    Raises ``OuvrageError`` ``own/amount``: unreadable, in another currency, per something else.
    """
    wanted = unit.replace("CUR", currency)
    example = {"1": "0.15 or 15 %", "h": "2", "W": "350", "month": "48"}.get(unit, f"0.25 {wanted}")
    match = _AMOUNT.fullmatch(str(text).strip())
    if not match:
        raise _no_amount(what, text, "is no amount", example)
    named = match["currency"] or CURRENCY_SIGNS.get(match["sign"] or "")
    if named is not None and named != currency:
        raise _no_amount(what, text, f"is in {named}; these books are in {currency}", example)
    per = wanted.partition("/")[2]
    if match["per"] is not None and match["per"].lower() != per.lower():
        raise _no_amount(what, text, f"is per {match['per']}, not per {per or 'nothing'}", example)
    if match["percent"] and unit != "1":
        raise _no_amount(what, text, "is a share, not an amount", example)
    number = Fraction(Decimal(match["number"]))
    return decimal_text(number / 100 if match["percent"] else number)


def _no_amount(what: str, text: object, found: str, example: str) -> OuvrageError:
    return OuvrageError("own/amount", f"{what}: {text!r} {found}", hint=f"write it as {example}")


def about_of(text: str) -> str:
    """An object as statements name it: ``site:garage``, ``node:n1``, ``device:GPU-8f31``."""
    sort, colon, name = text.partition(":")
    if not colon or sort not in _SORTS:
        raise OuvrageError(
            "own/about",
            f"{text!r} names nothing that a statement can be about",
            hint="write it as site:garage, node:node-1, device:node-1-gpu0 or channel:vast",
        )
    check_name(sort, name, f"{sort}:{name or 'name'}")
    return text


def site_stated(place: Place, at_us: int) -> Stated:
    """A site, from a moment on."""
    check_name("site", place.site, "--site garage")
    check_currency(place.currency)
    check_zone(place.zone)
    value = Site(site=place.site, currency=place.currency, zone=place.zone)
    return _stated(f"own/site/{place.site}", value, f"site:{place.site}", at_us, None)


def node_stated(node: str, site: str, from_us: int, to_us: int | None, again: str = "") -> Stated:
    """A machine in service; ``again`` is the day on which it came back, empty for its first time."""
    check_name("node", node, "--node node-1")
    if node == site:
        raise OuvrageError(
            "node/name", f"{node} is the name of the site too",
            hint="figures are named by either, so choose another: --node node-1",
        )  # fmt: skip
    return _stated(
        f"own/node/{node}{again and '/' + again}",
        Node(node=node, site=site),
        f"node:{node}",
        from_us,
        to_us,
    )


def device_stated(placed: DevicePlaced, from_us: int, to_us: int | None, again: str = "") -> Stated:
    """A GPU in its machine; ``again`` is the day on which it came back, empty for its first time."""
    check_name("device", placed.device, "node-1-gpu0")
    natural = f"own/device/{placed.device}/{placed.node}{again and '/' + again}"
    return _stated(natural, placed, f"device:{placed.device}", from_us, to_us)


def term_stated(
    place: Place, about: str, name: str, value: object, *, from_us: int, since: str, said_by: str
) -> Stated:
    """A term of an object; ``since`` is the day it begins, empty where it always held."""
    rule = RULES.get(name)
    sort = about_of(about).partition(":")[0]
    if rule is None or sort not in rule.about:
        fitting = ", ".join(n for n, r in RULES.items() if sort in r.about)
        raise OuvrageError(
            "term/unknown", f"a {sort} has no term {name!r}", hint=f"a {sort} has: {fitting}"
        )
    text = amount(value, rule.unit, place.currency, name)
    if rule.unit == "1" and name in ("fee", "tax") and Fraction(text) > 1:
        raise OuvrageError(
            "own/amount", f"{name}: {value} is more than all of it",
            hint=f"write a share: 0.15 or 15 %, not {value}",
        )  # fmt: skip
    if name == "pue" and Fraction(text) < 1:
        raise OuvrageError("own/amount", f"pue: {value} is below 1", hint="a PUE is 1 or more")
    unit = rule.unit.replace("CUR", place.currency)
    term = Term(about=about, name=name, value=text, unit=unit, said_by=said_by)
    return _stated(f"own/term/{about}/{name}{since and '/' + since}", term, about, from_us, None)


def assumed(stated: Stated) -> Stated:
    """The same statement as an assumption."""
    return Stated(
        natural=stated.natural, value=stated.value, subject=stated.subject,
        valid_from=stated.valid_from, valid_to=stated.valid_to, grade=Grade.ASSUMED,
    )  # fmt: skip


def asset_stated(asset: Asset, bought_us: int) -> Stated:
    """A part that was bought."""
    check_name("asset", asset.asset, "node-1")
    if asset.method not in DEPRECIATION:
        raise OuvrageError(
            "own/depreciation", f"{asset.method!r} is no way to depreciate",
            hint=", ".join(DEPRECIATION),
        )  # fmt: skip
    _check_months(asset.asset, asset.life_months)
    if Fraction(asset.residual) > Fraction(asset.price):
        raise OuvrageError(
            "own/residual", f"{asset.asset} is worth {asset.residual} at the end and {asset.price} now",
            hint="the residual value is below the price",
        )  # fmt: skip
    return _stated(f"own/asset/{asset.asset}", asset, asset.about, bought_us, None)


def asset_part_stated(part: AssetPart, about: str, bought_us: int) -> Stated:
    """Which parts of a machine an asset is, and who sold it."""
    for slot in part.slots:
        kind, colon, place = slot.partition(":")
        if not colon or kind not in KINDS or not place:
            raise OuvrageError(
                "own/slot", f"{slot!r} names no place of a part",
                hint=f"KIND:PLACE as ouvrage node inventory prints them; KIND is {', '.join(KINDS)}",
            )  # fmt: skip
    return _stated(f"own/part/{part.asset}", part, about, bought_us, None)


_MOST_MONTHS = 1200


def _check_months(name: str, months: int | None) -> None:
    if months is not None and months > _MOST_MONTHS:
        raise OuvrageError(
            "own/months", f"{name}: {months} months is longer than a century",
            hint=f"at most {_MOST_MONTHS} months",
        )  # fmt: skip


def retired_stated(retired: AssetRetired, about: str, at_us: int) -> Stated:
    """A part that left use."""
    return _stated(f"own/retire/{retired.asset}", retired, about, at_us, at_us)


def loan_stated(loan: Loan, from_us: int) -> Stated:
    """Money borrowed."""
    check_name("loan", loan.loan, "node-1")
    if loan.shape not in LOANS:
        raise OuvrageError(
            "own/loan", f"{loan.shape!r} is no shape of a loan", hint=", ".join(LOANS)
        )
    _check_months(loan.loan, loan.months)
    if loan.months < 1 or not Fraction(loan.principal):
        raise OuvrageError(
            "own/loan", f"{loan.loan}: {loan.principal} over {loan.months} months is no loan",
            hint="a loan is of some money, for a month or more",
        )  # fmt: skip
    return _stated(f"own/loan/{loan.loan}", loan, loan.about, from_us, None)


def lease_stated(lease: OwnerLease, from_us: int, to_us: int | None) -> Stated:
    """A lease of devices to a tenant."""
    for what, name in (
        ("lease", lease.lease),
        ("tenant", lease.tenant),
        ("channel", lease.channel),
    ):
        check_name(what, name, "spring")
    if to_us is not None and to_us <= from_us:
        raise OuvrageError(
            "own/period", f"lease {lease.lease} ends before it begins, or as it begins",
            hint="name a later day for the end: a day is its first moment",
        )  # fmt: skip
    return _stated(f"own/lease/{lease.lease}", lease, lease.about, from_us, to_us)


def state_stated(state: DeviceState, from_us: int, to_us: int) -> Stated:
    """What a device, or every device of a node, was doing for a while."""
    if state.state not in STATES:
        raise OuvrageError(
            "own/state", f"{state.state!r} is no state of a device", hint=", ".join(STATES)
        )
    if to_us <= from_us:
        raise OuvrageError("own/state", "it ends before it begins", hint="--from TIME --to TIME")
    about = f"device:{state.device}" if state.device else f"node:{state.node}"
    who = "".join(f"/{name}" for name in (state.channel, state.tenant) if name)
    natural = f"own/state/{about}/{utc_text(from_us)[:19]}Z/{state.state}{who}"
    return _stated(natural, state, about, from_us, to_us)


def _stated(natural: str, value: Any, subject: str, from_us: int, to_us: int | None) -> Stated:
    if to_us is not None and to_us < from_us:
        raise OuvrageError(
            "own/period", f"{natural.partition('/')[2]} ends before it begins",
            hint="name a later day for the end",
        )  # fmt: skip
    return Stated(
        natural=natural, value=value, subject=subject, valid_from=from_us, valid_to=to_us,
        grade=Grade.REPORTED,
    )  # fmt: skip
