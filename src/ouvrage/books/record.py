"""Everything known about an owner at one moment, decoded from facts in force, and nothing more.

Decides which facts are an owner's and sorts them by kind; what they mean together is decided by the
calendar, the costs and the statement. Each keeps the key of its fact and its grade, so that every
figure made from it can say where it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

from ouvrage.base.grades import Grade
from ouvrage.books.cluster_states import states_of
from ouvrage.books.known import FOR_EVER, Known
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import Unread, read
from ouvrage.ledger.view import in_force
from ouvrage.model.assets import Asset, AssetRetired, Loan
from ouvrage.model.cash import BankLine, CostBill, PaymentMatched, SupportTime
from ouvrage.model.cluster import ClusterJobRow, ClusterNodeEvent, ClusterWhole
from ouvrage.model.earnings import ChannelInvoice, Earning, OwnerLease
from ouvrage.model.meters import EnergyRead
from ouvrage.model.occupancy import DeviceState
from ouvrage.model.offers import ExchangeRate
from ouvrage.model.plans import OwnerPlan
from ouvrage.model.records import Withdrawal
from ouvrage.model.sites import DevicePlaced, Node, Site, Term
from ouvrage.model.tariffs import SpotPrices, Tariff

T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRecord:
    """The facts of an owner by kind, each in order of time; ``terms`` by what they are about and name.

    What a cluster's accounting says of the owner's nodes stands among the ``states``.
    ``placed`` are placings by device, ``inside`` by node, ``homes`` nodes by name. ``as_of`` is the
    latest moment at which any of them was recorded, 0 where there is none.
    """

    sites: tuple[Known[Site], ...] = ()
    nodes: tuple[Known[Node], ...] = ()
    devices: tuple[Known[DevicePlaced], ...] = ()
    terms: Mapping[tuple[str, str], tuple[Known[Term], ...]]
    assets: tuple[Known[Asset], ...] = ()
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
    energy: tuple[Known[EnergyRead], ...] = ()
    tariffs: tuple[Known[Tariff], ...] = ()
    spots: tuple[Known[SpotPrices], ...] = ()
    rates: tuple[Known[ExchangeRate], ...] = ()
    plans: tuple[Known[OwnerPlan], ...] = ()
    cluster_rows: tuple[Known[ClusterJobRow], ...] = ()
    cluster_events: tuple[Known[ClusterNodeEvent], ...] = ()
    cluster_whole: tuple[Known[ClusterWhole], ...] = ()
    placed: Mapping[str, tuple[Known[DevicePlaced], ...]]
    inside: Mapping[str, tuple[Known[DevicePlaced], ...]]
    homes: Mapping[str, tuple[Known[Node], ...]]
    as_of: int = 0

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
}
OWNER_KINDS: tuple[str, ...] = tuple(kind.KIND for kind in _FIELDS)
"""The kinds of facts that the books read; withdrawals may concern any of them."""
BOOK_KINDS: tuple[str, ...] = (*OWNER_KINDS, Withdrawal.KIND)


def owner_record(records: Iterable[Recorded]) -> OwnerRecord:
    """The owner's facts among some records, those that nothing corrected or withdrew."""
    ours = [entry for entry in records if entry.fact.kind in BOOK_KINDS]
    found: dict[str, list[Known[Any]]] = {name: [] for name in _FIELDS.values()}
    for known in _decoded(ours):
        found[_FIELDS[type(known.value)]].append(known)
    nodes = {each.value.node for each in found["nodes"]}
    rows, events = found["cluster_rows"], found["cluster_events"]
    found["states"] += states_of(rows, events, found["cluster_whole"], nodes)
    for each in found.values():
        each.sort(key=lambda known: (known.valid_from, known.key))
    terms = _grouped(found.pop("terms"), lambda value: (value.about, value.name))
    kept: dict[str, Any] = {name: tuple(each) for name, each in found.items()}
    as_of = max((entry.recorded_at for entry in ours), default=0)
    return OwnerRecord(
        terms=terms,
        as_of=as_of,
        placed=_grouped(kept["devices"], lambda value: value.device),
        inside=_grouped(kept["devices"], lambda value: value.node),
        homes=_grouped(kept["nodes"], lambda value: value.node),
        **kept,
    )


def _grouped(entries: Iterable[Known[T]], key: Callable[[T], K]) -> dict[K, tuple[Known[T], ...]]:
    found: dict[K, list[Known[T]]] = {}
    for each in entries:
        found.setdefault(key(each.value), []).append(each)
    return {name: tuple(each) for name, each in found.items()}


def _decoded(records: Iterable[Recorded]) -> Iterator[Known[Any]]:
    for entry in in_force(records):
        value = read(entry.fact)
        if not isinstance(value, Unread):
            yield Known(
                value=value,
                valid_from=entry.fact.valid_from,
                valid_to=entry.fact.valid_to,
                grade=entry.fact.grade,
                key=entry.fact.key,
                said_by=getattr(value, "said_by", ""),
            )
