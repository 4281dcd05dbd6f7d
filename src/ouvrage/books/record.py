"""Everything known about an owner at one moment, decoded from facts in force, and nothing more.

Decides which facts are an owner's and sorts them by kind; what they mean together is decided by the
calendar, the costs and the statement. Each keeps the key of its fact and its grade, so that every
figure made from it can say where it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from ouvrage.base.grades import Grade
from ouvrage.books.dues.record import DUES_KINDS, NOTHING, DuesRecord, dues_of_lines
from ouvrage.books.known import FOR_EVER, Known, by_kind, known_of
from ouvrage.ledger.facts import GRADES, Line, Recorded, line_of
from ouvrage.ledger.kinds import KINDS, rows_of
from ouvrage.model.assets import Asset, AssetPart, AssetRetired, Loan
from ouvrage.model.cash import BankLine, CostBill, PaymentMatched, SupportTime
from ouvrage.model.cluster import ClusterJobRow, ClusterNodeEvent, ClusterWhole
from ouvrage.model.earnings import ChannelInvoice, Earning, OwnerLease
from ouvrage.model.health import StateMove
from ouvrage.model.meters import EnergyRead
from ouvrage.model.occupancy import DeviceState
from ouvrage.model.offers import ExchangeRate
from ouvrage.model.plans import OwnerPlan
from ouvrage.model.records import Withdrawal
from ouvrage.model.sites import DevicePlaced, Node, Site, Term
from ouvrage.model.tariffs import SpotPrices, Tariff

T = TypeVar("T")
K = TypeVar("K")


class MeterRead(NamedTuple):
    """An ``EnergyRead`` with its period, grade and key: there are more of these than of all others."""

    meter: str
    about: str
    scope: str
    energy_j: int
    method: str
    covered_us: int
    valid_from: int
    valid_to: int | None
    grade: Grade
    key: str

    @property
    def end(self) -> int:
        """``valid_to``, or a moment after any other."""
        return FOR_EVER if self.valid_to is None else self.valid_to

    @property
    def keys(self) -> tuple[str, ...]:
        """The fact's key, as figures take it."""
        return (self.key,)

    def meets(self, from_us: int, to_us: int) -> bool:
        """Whether it holds at any moment of a period."""
        return self.valid_from < to_us and from_us < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRecord:
    """The facts of an owner by kind, each in order of time; ``terms`` by what they are about and name.

    What a cluster's accounting, a platform's leases and moves of health say of the owner's nodes stands among the ``states``, a platform's
    charges among the ``earnings``; ``tenants`` is what its tenants owe.
    ``placed`` are placings by device, ``inside`` by node, ``homes`` nodes by name. ``as_of`` is the
    latest moment at which any of them was recorded, 0 where there is none.
    """

    sites: tuple[Known[Site], ...] = ()
    nodes: tuple[Known[Node], ...] = ()
    devices: tuple[Known[DevicePlaced], ...] = ()
    terms: Mapping[tuple[str, str], tuple[Known[Term], ...]]
    assets: tuple[Known[Asset], ...] = ()
    asset_parts: tuple[Known[AssetPart], ...] = ()
    retirements: tuple[Known[AssetRetired], ...] = ()
    loans: tuple[Known[Loan], ...] = ()
    states: tuple[Known[DeviceState], ...] = ()
    leases: tuple[Known[OwnerLease], ...] = ()
    earnings: tuple[Known[Earning], ...] = ()
    invoices: tuple[Known[ChannelInvoice], ...] = ()
    bills: tuple[Known[CostBill], ...] = ()
    payments: tuple[Known[BankLine], ...] = ()
    by_hand: tuple[Known[PaymentMatched], ...] = ()
    support: tuple[Known[SupportTime], ...] = ()
    energy: tuple[MeterRead, ...] = ()
    tariffs: tuple[Known[Tariff], ...] = ()
    spots: tuple[Known[SpotPrices], ...] = ()
    rates: tuple[Known[ExchangeRate], ...] = ()
    plans: tuple[Known[OwnerPlan], ...] = ()
    cluster_rows: tuple[Known[ClusterJobRow], ...] = ()
    cluster_events: tuple[Known[ClusterNodeEvent], ...] = ()
    cluster_whole: tuple[Known[ClusterWhole], ...] = ()
    moves: tuple[Known[StateMove], ...] = ()
    placed: Mapping[str, tuple[Known[DevicePlaced], ...]]
    inside: Mapping[str, tuple[Known[DevicePlaced], ...]]
    homes: Mapping[str, tuple[Known[Node], ...]]
    as_of: int = 0
    tenants: DuesRecord = NOTHING

    def site(self, name: str) -> Known[Site] | None:
        """The site of a name, as last stated."""
        return next((each for each in reversed(self.sites) if each.value.site == name), None)

    def with_term(
        self,
        about: str,
        name: str,
        value: Fraction,
        *,
        like: Known[Any] | None = None,
        said_by: str,
    ) -> OwnerRecord:
        """The record as it would be had this term been that.

        For ever, to ask what it would move; or, ``like`` a fact, for its time, grade and key.
        """
        stated = Term(about=about, name=name, value=_text(value), unit="", said_by=said_by)
        instead = Known(
            value=stated,
            valid_from=like.valid_from if like else -FOR_EVER,
            valid_to=like.valid_to if like else None,
            grade=like.grade if like else Grade.ASSUMED,
            key=like.key if like else "",
            said_by=said_by,
        )
        before = self.terms.get((about, name), ()) if like else ()
        return replace(self, terms={**self.terms, (about, name): (*before, instead)})


def _text(value: Fraction) -> str:
    """Text from which the same number is read again, whether or not its decimal form ends."""
    return f"{value.numerator}/{value.denominator}"


_FIELDS: dict[type, str] = {
    Site: "sites",
    Node: "nodes",
    DevicePlaced: "devices",
    Term: "terms",
    Asset: "assets",
    AssetPart: "asset_parts",
    AssetRetired: "retirements",
    Loan: "loans",
    DeviceState: "states",
    OwnerLease: "leases",
    Earning: "earnings",
    ChannelInvoice: "invoices",
    CostBill: "bills",
    BankLine: "payments",
    PaymentMatched: "by_hand",
    SupportTime: "support",
    EnergyRead: "energy",
    Tariff: "tariffs",
    SpotPrices: "spots",
    ExchangeRate: "rates",
    OwnerPlan: "plans",
    ClusterJobRow: "cluster_rows",
    ClusterNodeEvent: "cluster_events",
    ClusterWhole: "cluster_whole",
    StateMove: "moves",
}
OWNER_KINDS: tuple[str, ...] = tuple(kind.KIND for kind in _FIELDS)
"""The kinds of facts that the books read; withdrawals may concern any of them."""
BOOK_KINDS: tuple[str, ...] = tuple(dict.fromkeys((*OWNER_KINDS, *DUES_KINDS, Withdrawal.KIND)))


def owner_record(records: Iterable[Recorded]) -> OwnerRecord:
    """The owner's facts among some records, those that nothing corrected or withdrew."""
    return record_of_lines([line_of(entry) for entry in records if entry.fact.kind in BOOK_KINDS])


def record_of_lines(ours: Sequence[Line]) -> OwnerRecord:
    """``owner_record`` from lines of ``BOOK_KINDS``, as a store reads them."""
    found: dict[str, list[Any]] = {name: [] for name in _FIELDS.values()}
    tenants = dues_of_lines(ours)
    for (kind, version), lines in by_kind(ours).items():
        if KINDS.get((kind, version)) is EnergyRead:
            found["energy"] += _meter_reads(lines)
        elif (known := KINDS.get((kind, version))) in _FIELDS:
            found[_FIELDS[known]] += known_of(kind, version, lines)
    nodes = {each.value.node for each in found["nodes"]}
    rows, events = found["cluster_rows"], found["cluster_events"]
    for each in (rows, events, found["cluster_whole"]):
        _put_in_order(each)
    if rows or events:
        from ouvrage.books.cluster_states import states_of

        found["states"] += states_of(rows, events, found["cluster_whole"], nodes)
    if tenants is not NOTHING:
        _add_platform(found, tenants)
    if found["moves"]:
        from ouvrage.books.health_states import states_of_moves

        devices = {each.value.device for each in found["devices"]}
        found["states"] += states_of_moves(found["moves"], tenants.nodes, nodes, devices)
    for each in found.values():
        _put_in_order(each)
    terms = _grouped(found.pop("terms"), lambda value: (value.about, value.name))
    kept: dict[str, Any] = {name: tuple(each) for name, each in found.items()}
    as_of = max((line.recorded_at for line in ours), default=0)
    return OwnerRecord(
        terms=terms,
        as_of=as_of,
        tenants=tenants,
        placed=_grouped(kept["devices"], lambda value: value.device),
        inside=_grouped(kept["devices"], lambda value: value.node),
        homes=_grouped(kept["nodes"], lambda value: value.node),
        **kept,
    )


def _add_platform(found: dict[str, list[Any]], tenants: DuesRecord) -> None:
    """Add what a platform's leases say. Most owners have none, and need not wait for its rate plans."""
    from ouvrage.books.dues import earned

    devices = {each.value.device for each in found["devices"]}
    found["states"] += earned.states_of(tenants, devices)
    found["earnings"] += earned.earnings_of(tenants, devices)


def _grouped(entries: Iterable[Known[T]], key: Callable[[T], K]) -> dict[K, tuple[Known[T], ...]]:
    found: dict[K, list[Known[T]]] = {}
    for each in entries:
        found.setdefault(key(each.value), []).append(each)
    return {name: tuple(each) for name, each in found.items()}


def _put_in_order(entries: list[Any]) -> None:
    """By time, then key; two sorts of plain numbers and texts take less than one of pairs."""
    entries.sort(key=attrgetter("key"))
    entries.sort(key=attrgetter("valid_from"))


def _meter_reads(lines: Sequence[Line]) -> Iterator[MeterRead]:
    rows = rows_of(EnergyRead, [line.payload for line in lines], "energy_j")
    for line, row in zip(lines, rows, strict=True):
        if row is not None:
            more = (line.valid_from, line.valid_to, GRADES[line.grade], line.key)
            yield MeterRead._make((*row, *more))
