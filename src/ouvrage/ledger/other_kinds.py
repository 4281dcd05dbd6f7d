"""The kinds of facts that do not tell of a run: one line each.

Decides nothing but the list. It stands apart from ``kinds`` because a meter, which knows runs alone,
must not wait for all of these to be made.
"""

from __future__ import annotations

from ouvrage.model import (
    assets,
    cash,
    closings,
    cluster,
    earnings,
    focus,
    meters,
    occupancy,
    rentals,
    sites,
    tariffs,
)
from ouvrage.model.bills import Bill
from ouvrage.model.claims import Claim, ComparisonClaim
from ouvrage.model.hosts import HostChecked
from ouvrage.model.observations import Observation, Question, Search
from ouvrage.model.offers import ExchangeRate, MarketOffer, MarketReading
from ouvrage.model.records import Conflict, Withdrawal

OTHER_KINDS: tuple[type, ...] = (
    rentals.RentalStarted,
    rentals.RentalEnded,
    rentals.RentalRun,
    rentals.RentalCampaign,
    rentals.RentalAlarm,
    ComparisonClaim,
    Claim,
    Observation,
    Search,
    Question,
    Conflict,
    Withdrawal,
    Bill,
    MarketOffer,
    MarketReading,
    ExchangeRate,
    HostChecked,
    sites.Site,
    sites.Node,
    sites.DevicePlaced,
    sites.Term,
    assets.Asset,
    assets.AssetRetired,
    assets.Loan,
    occupancy.DeviceState,
    earnings.Earning,
    earnings.ChannelInvoice,
    earnings.OwnerLease,
    earnings.ChannelMachine,
    cash.CostBill,
    cash.BankLine,
    cash.SupportTime,
    meters.EnergyRead,
    meters.MeterReading,
    tariffs.Tariff,
    tariffs.SpotPrices,
    closings.ItemAccepted,
    closings.BooksClosed,
    closings.BooksReopened,
    focus.FocusCharge,
    cluster.ClusterJobRow,
    cluster.ClusterNodeEvent,
    cluster.ClusterWhole,
)
