"""What an owner agreed or assumes: the names of terms, what each means, and what stands in for it.

Decides which term holds for an object at a moment: its own, else that of the node or site it stands
in, else a default. A default is ``assumed``, names what was read and its date or says that it is our
judgement, and has a low and a high end, so that a figure made from it can say how far it may be wrong.
A sum of money that nobody stated is
assumed to be zero only where many owners pay none, and that is said too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import number
from ouvrage.base.text import safe
from ouvrage.books.power import OTHER_IDLE, WALL_IDLE, WALL_LOAD, WALL_MOST, board_of
from ouvrage.books.record import FOR_EVER, Known, OwnerRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TermRule:
    """A term: ``about`` which objects, in which ``unit`` (``CUR`` is the site's currency), ``meaning``.

    ``default`` stands in where nobody states it (None: then it is unknown), ``source`` says where the
    default is from. ``low`` and ``high`` are how far the truth may be from an assumed value, and
    ``why`` the reason; both None where an end cannot be given.
    """

    name: str
    about: tuple[str, ...]
    unit: str
    meaning: str
    default: Fraction | None
    source: str
    low: Fraction | None
    high: Fraction | None
    why: str


def _rule(
    name: str,
    about: str,
    unit: str,
    meaning: str,
    *,
    default: str | None,
    source: str,
    ends: tuple[str, str] | None,
    why: str,
) -> TermRule:
    low, high = (None, None) if ends is None else (Fraction(ends[0]), Fraction(ends[1]))
    return TermRule(
        name=name,
        about=tuple(about.split()),
        unit=unit,
        meaning=meaning,
        default=None if default is None else Fraction(default),
        source=source,
        low=low,
        high=high,
        why=why,
    )


NOTHING = "nothing is assumed to be paid until it is stated"
_UPTIME = "Uptime Institute's global survey of data centres: 1.58 on average in 2023"

CATALOGUE: tuple[TermRule, ...] = (
    _rule(
        "electricity", "site", "CUR/kWh", "price of a kilowatt-hour, where there is no tariff",
        default=None, source="", ends=None, why="",
    ),
    _rule(
        "spot_factor", "site", "1", "by what a supplier multiplies the market's price",
        default="1", source="the market's own price, until it is stated", ends=None, why="",
    ),
    _rule(
        "spot_addition", "site", "CUR/kWh", "what the supplier, the grid and the state add to the market's price",
        default="0", source=NOTHING, ends=None, why="",
    ),
    _rule(
        "carbon", "site", "g/kWh", "carbon dioxide of a kilowatt-hour used at the site",
        default=None, source="", ends=None, why="",
    ),
    _rule(
        "pue", "site node", "1", "energy of the whole site over that of its machines",
        default="1", source="our judgement: no cooling of its own; CodeCarbon and CEEMS have 1 as a default too (2025)",
        ends=("1", "1.58"), why=_UPTIME,
    ),
    _rule(
        "cooling_metered", "site node", "1", "1 where a meter reads the cooling, so that PUE is left out",
        default="0", source="no meter of cooling is recorded", ends=None, why="",
    ),
    _rule(
        "rent", "site node", "CUR/month", "rent of the place",
        default="0", source=NOTHING, ends=("0", "50"), why="our judgement: a corner of a rented room",
    ),
    _rule(
        "bandwidth", "site node", "CUR/month", "line to the internet",
        default="0", source=NOTHING, ends=("0", "60"), why="our judgement: a line of its own for the machine",
    ),
    _rule(
        "insurance", "site node", "CUR/month", "insurance of the equipment",
        default="0", source=NOTHING, ends=("0", "20"), why="our judgement: a policy for electronics",
    ),
    _rule(
        "equipment_lease", "site node", "CUR/month", "rate of a lease of the equipment",
        default="0", source=NOTHING, ends=None, why="",
    ),
    _rule(
        "fee", "channel", "1", "share of earnings that a channel keeps",
        default="0.24", source="", ends=("0.10", "0.30"),
        why="published fees: Clore 10 %, Hyperbolic 10 %, RunPod 24 % (since withdrawn), cloudgpu.app 25 %, "
        "FarmGPU 30 %",
    ),
    _rule(
        "payout_fee", "channel", "CUR", "charge for each payout",
        default="0", source=NOTHING, ends=("0", "5"), why="our judgement: a transfer abroad",
    ),
    _rule(
        "tax", "site", "1", "share of a profit after interest that is taxed",
        default="0", source=NOTHING, ends=("0", "0.30"), why="our judgement: rates on profits of the smallest firms",
    ),
    _rule(
        "sales_tax", "channel tenant", "1", "tax that is added to what tenants are charged",
        default=None, source="", ends=None, why="",
    ),
    _rule(
        "support_price", "site node", "CUR/h", "what an hour of the owner's time is worth",
        default="0", source="own time is not paid until a price is stated", ends=("0", "30"),
        why="our judgement: what somebody else would ask",
    ),
    _rule(
        "support_hours_month", "site node", "h", "support in a month in which none is logged",
        default="0", source="only logged time counts until a number is stated", ends=("0", "2"),
        why="our judgement: reboots, tickets and updates of one machine",
    ),
    _rule(
        "idle_power_w", "device node", "W", "power at the wall of one GPU with its share of the machine, idle",
        default=None, source="", ends=None, why="",
    ),
    _rule(
        "load_power_w", "device node", "W", "power at the wall of one GPU with its share of the machine, working",
        default=None, source="", ends=None, why="",
    ),
    _rule(
        "psu_w", "node", "W", "what a machine's power supplies give together, as their labels say",
        default=None, source="", ends=None, why="",
    ),
    _rule(
        "circuit_w", "site node", "W", "what the circuit carries that a machine hangs on",
        default=None, source="", ends=None, why="",
    ),
    _rule(
        "expected_life_months", "site node device", "month", "life of a part whose life is not stated",
        default="60", source="Meta's annual report for 2022, as quoted: servers five years", ends=("36", "72"),
        why="Alphabet and Microsoft six years (reports for 2022, as quoted); three, our judgement",
    ),
    _rule(
        "own_use_price", "site node device", "CUR/h", "price at which the owner's own use of a GPU counts",
        default="0", source="own use earns nothing until a price is stated", ends=None, why="",
    ),
    _rule(
        "opportunity_rate", "site", "1", "share a year that tied-up money would earn elsewhere",
        default="0.03", source="our judgement: an ordinary deposit", ends=("0", "0.06"), why="our judgement: from no interest to that of bonds",
    ),
    _rule(
        "stake", "channel", "CUR", "money that a channel keeps as a stake or collateral",
        default="0", source=NOTHING, ends=None, why="",
    ),
)  # fmt: skip
RULES = {rule.name: rule for rule in CATALOGUE}

_ELECTRICITY = {
    "EUR": (
        "0.285", "0.113", "0.402", "Eurostat, households in the EU, second half of 2023: 28.5 c/kWh",
        "the cheapest and the dearest country of the same statistics, Hungary and Germany",
    ),
    "USD": (
        "0.1545", "0.0799", "0.2891", "EIA, residential, United States, January 2024: 15.45 c/kWh",
        "EIA: 7.99 in North Dakota (all customers, January 2024), 28.91 in Massachusetts (residential, to July 2024)",
    ),
}  # fmt: skip
_FEES = {
    "own": ("0", "tenants of one's own pay no platform"),
    "own-use": ("0", "one's own use pays no platform"),
    "akash": ("0", "Akash takes gas, not a share (provider documentation, 2026)"),
    "clore": ("0.10", "Clore's documentation of host fees (2026): 10 %"),
    "hyperbolic": ("0.10", "Hyperbolic's pricing page (2026): 10 %"),
    "runpod": ("0.24", "RunPod's documentation, since withdrawn: 24 %"),
}
_OTHER_FEE = "the middle of five published fees from 10 to 30 %; this channel publishes none"


@lru_cache(maxsize=4096)
def rule_for(name: str, about: str, model: str | None, currency: str) -> TermRule | None:
    """The rule of a term with the default for this channel, this GPU or this currency.

    None for a name that is no term.
    """
    rule = RULES.get(name)
    if rule is None:
        return None
    if name == "electricity" and currency in _ELECTRICITY:
        default, low, high, source, why = _ELECTRICITY[currency]
        return _with(rule, Fraction(default), source, (Fraction(low), Fraction(high)), why)
    if name == "fee":
        default, source = _FEES.get(about.partition(":")[2], ("0.24", _OTHER_FEE))
        ends = (rule.low, rule.high) if source == _OTHER_FEE else None
        return _with(rule, Fraction(default), source, ends, rule.why)
    if name in ("idle_power_w", "load_power_w"):
        return _power_rule(rule, model)
    return rule


def _power_rule(rule: TermRule, model: str | None) -> TermRule:
    board = board_of(model)
    if rule.name == "idle_power_w":
        idle, source = (board.idle, board.source) if board and board.idle else OTHER_IDLE
        ends = (idle, idle * 3)
        why = "the GPU's sensor alone; three times it, our judgement of a machine that idles badly"
        return _with(rule, idle * WALL_IDLE[0], f"{source}; {WALL_IDLE[1]}", ends, why)
    if board is None:
        return _with(rule, None, f"no power is known here for {safe(model or 'a GPU')}", None, "")
    ends = (board.load, board.load * WALL_MOST)
    why = "the GPU alone at its limit; 2.2 times it at the wall (the dearer of two public reports)"
    return _with(rule, board.load * WALL_LOAD[0], f"{board.source}; {WALL_LOAD[1]}", ends, why)


def _with(
    rule: TermRule,
    default: Fraction | None,
    source: str,
    ends: tuple[Fraction | None, Fraction | None] | None,
    why: str,
) -> TermRule:
    low, high = (None, None) if ends is None else ends
    return TermRule(
        name=rule.name, about=rule.about, unit=rule.unit, meaning=rule.meaning,
        default=default, source=source, low=low, high=high, why=why,
    )  # fmt: skip


def term(record: OwnerRecord, about: str, name: str, at_us: int) -> Known[Fraction] | None:
    """The term that holds for ``about`` at a moment: its own, that of its node or site, the default.

    None where nobody stated it and nothing can be assumed.
    """
    for place in line_of(record, about, at_us):
        found = stated(record, place, name, at_us)
        if found is not None:
            return found
    return default_of(record, about, name, at_us)


def stated(record: OwnerRecord, about: str, name: str, at_us: int) -> Known[Fraction] | None:
    """The term stated about this very object that holds at a moment, the latest to begin."""
    for each in reversed(record.terms.get((about, name), ())):
        if each.at(at_us):
            return Known(
                value=number(each.value.value),
                valid_from=each.valid_from,
                valid_to=each.valid_to,
                grade=each.grade,
                key=each.key,
                said_by=each.said_by,
            )
    return None


def default_of(record: OwnerRecord, about: str, name: str, at_us: int) -> Known[Fraction] | None:
    """What is assumed where nobody states a term, or None."""
    rule = rule_for(name, about, _model(record, about, at_us), currency_of(record, about, at_us))
    if rule is None:
        raise OuvrageError("term/unknown", f"there is no term {name!r}", hint=", ".join(RULES))
    if rule.default is None:
        return None
    return Known(
        value=rule.default,
        valid_from=-FOR_EVER,
        valid_to=None,
        grade=Grade.ASSUMED,
        key="",
        said_by=rule.source,
    )


def pieces(
    record: OwnerRecord, about: str, name: str, from_us: int, to_us: int
) -> Iterator[tuple[int, int, Known[Fraction] | None]]:
    """The term over a period, cut where another one begins or ends to hold."""
    cuts = {from_us, to_us}
    for place in {about, *line_of(record, about, from_us), *line_of(record, about, to_us - 1)}:
        for each in record.terms.get((place, name), ()):
            cuts |= {at for at in (each.valid_from, each.end) if from_us < at < to_us}
    ordered = sorted(cuts)
    for begins, ends in pairwise(ordered):
        yield begins, ends, term(record, about, name, begins)


class TermBook:
    """The terms of a record over one period, each looked up once: asked for at many moments."""

    def __init__(self, record: OwnerRecord, from_us: int, to_us: int) -> None:
        self._record = record
        self._span = (from_us, max(to_us, from_us + 1))
        self._held: dict[tuple[str, str], tuple[list[int], list[Known[Fraction] | None]]] = {}

    def at(self, about: str, name: str, at_us: int) -> Known[Fraction] | None:
        """What ``term`` says at a moment; one outside the period is looked up anew."""
        if not self._span[0] <= at_us < self._span[1]:
            return term(self._record, about, name, at_us)
        begins, held = self._looked_up(about, name)
        return held[bisect_right(begins, at_us) - 1] if len(held) > 1 else held[0]

    def edges(self, about: str, names: Sequence[str]) -> list[int]:
        """Where any of some terms of an object begins to hold, inside the period."""
        return [at for name in names for at in self._looked_up(about, name)[0][1:]]

    def _looked_up(self, about: str, name: str) -> tuple[list[int], list[Known[Fraction] | None]]:
        held = self._held.get((about, name))
        if held is None:
            found = list(pieces(self._record, about, name, *self._span))
            held = ([begins for begins, _, _ in found], [each for _, _, each in found])
            self._held[about, name] = held
        return held


def line_of(record: OwnerRecord, about: str, at_us: int) -> tuple[str, ...]:
    """An object and what it stands in at a moment: ``device:X``, ``node:N``, ``site:S``."""
    sort, _, name = about.partition(":")
    if sort == "device":
        placed = _last(record.placed.get(name, ()), at_us)
        return (about, *(line_of(record, f"node:{placed.value.node}", at_us) if placed else ()))
    if sort == "node":
        node = _last(record.homes.get(name, ()), at_us)
        return (about, f"site:{node.value.site}") if node else (about,)
    return (about,)


def _last(entries: Sequence[Known[T]], at_us: int) -> Known[T] | None:
    """The last of some entries that hold at a moment; else the last one."""
    held = next((each for each in reversed(entries) if each.at(at_us)), None)
    return held or (entries[-1] if entries else None)


def currency_of(record: OwnerRecord, about: str, at_us: int) -> str:
    """The currency of the site in which an object stands; of the first site for a channel."""
    places = [place for place in line_of(record, about, at_us) if place.startswith("site:")]
    sites = [record.site(place[5:]) for place in places] or list(record.sites[:1])
    return next((site.value.currency for site in sites if site), "")


def _model(record: OwnerRecord, about: str, at_us: int) -> str | None:
    """The model of a device, or of the first device of a node."""
    sort, _, name = about.partition(":")
    placed = _last((record.placed if sort == "device" else record.inside).get(name, ()), at_us)
    return placed.value.model if placed else None
