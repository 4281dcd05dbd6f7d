"""An owner made up for tests: facts of a machine, and the record that the books make of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY, HOUR, utc_us
from ouvrage.books.period import Period, period_named
from ouvrage.books.pnl import Statement, pnl
from ouvrage.books.record import OwnerRecord, owner_record
from ouvrage.evidence.figures import Sheet
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.earnings import Earning, OwnerLease
from ouvrage.model.occupancy import DeviceState
from ouvrage.model.sites import DevicePlaced, Node, Site, Term

START = utc_us("2026-01-01T00:00:00Z")
NOW = utc_us("2027-01-01T00:00:00Z")


@dataclass
class Owner:
    """Facts as they are stated, one after the other; ``said`` numbers them."""

    zone: str = "UTC"
    said: list[Recorded] = field(default_factory=list)

    def says(
        self,
        value: Any,
        from_us: int = START,
        to_us: int | None = None,
        grade: Grade = Grade.REPORTED,
        *,
        corrects: str | None = None,
    ) -> str:
        """State something; the key of the fact."""
        seq = len(self.said) + 1
        fact = fact_of(
            value, source="owner", id=f"{seq:05d}", subject="x", valid_from=from_us, valid_to=to_us,
            grade=grade, corrects=corrects,
        )  # fmt: skip
        self.said.append(Recorded(seq=seq, recorded_at=NOW, fact=fact))
        return fact.key

    def sets_up(
        self, gpus: int = 1, node: str = "n1", site: str = "s", model: str = "RTX 4090"
    ) -> Owner:
        """A site in euros with a machine of so many GPUs."""
        if not any(isinstance(_value(r), Site) for r in self.said):
            self.says(Site(site=site, currency="EUR", zone=self.zone))
        self.says(Node(node=node, site=site))
        for slot in range(gpus):
            self.says(DevicePlaced(device=f"{node}-gpu{slot}", node=node, model=model, slot=slot))
        return self

    def term(
        self, about: str, name: str, value: str, from_us: int = START, grade: Grade = Grade.REPORTED
    ) -> str:
        return self.says(
            Term(about=about, name=name, value=value, unit="", said_by="me"), from_us, grade=grade
        )

    def earned(
        self, amount: str, from_us: int, to_us: int, about: str = "node:n1", **other: Any
    ) -> str:
        """A channel says what was earned."""
        given: dict[str, Any] = {
            "channel": "vast", "component": "gpu", "currency": "EUR", "fee": None, "sold_us": None,
            "list_price": None, "tenant": None, "document": None, **other,
        }  # fmt: skip
        return self.says(
            Earning(about=about, amount=amount, **given), from_us, to_us, Grade.METERED
        )

    def state(
        self, state: str, from_us: int, to_us: int, grade: Grade = Grade.METERED, **other: Any
    ) -> str:
        """What a device (or ``node``, or ``count`` of them) was doing."""
        given: dict[str, Any] = {
            "device": None, "node": None, "count": None, "cause": "", "channel": None, "tenant": None,
            "lease": None, **other,
        }  # fmt: skip
        if given["device"] is None and given["node"] is None:
            given["node"] = "n1"
        return self.says(DeviceState(state=state, **given), from_us, to_us, grade)

    def leases(
        self, lease: str, from_us: int, to_us: int, price: str = "1", count: int = 1, **other: Any
    ) -> str:
        given: dict[str, Any] = {
            "about": "node:n1", "tenant": "ann", "channel": "own", "list_price": None, "currency": "EUR",
            **other,
        }  # fmt: skip
        return self.says(OwnerLease(lease=lease, count=count, price=price, **given), from_us, to_us)

    def bare(self) -> Owner:
        """Without costs of its own: no power, no price, so that revenue can be looked at alone."""
        from ouvrage.model.assets import Asset

        for name in ("idle_power_w", "load_power_w", "electricity"):
            about = "site:s" if name == "electricity" else "node:n1"
            self.term(about, name, "0")
        self.says(
            Asset(asset="a", about="site:s", what="all", price="0", currency="EUR", method="straight-line",
                  life_months=60, life_hours=None, declining_share=None, residual="0", warranty_until=None)
        )  # fmt: skip
        return self

    @property
    def record(self) -> OwnerRecord:
        return owner_record(self.said)

    def period(self, name: str) -> Period:
        return period_named(name, self.zone)

    def pnl(self, name: str = "2026-02", by: str = "node") -> Statement:
        return pnl(self.record, "s", self.period(name), by)

    def sheet(self, name: str = "2026-02") -> Sheet:
        return self.pnl(name).total


def _value(entry: Recorded) -> Any:
    from ouvrage.ledger.kinds import read

    return read(entry.fact)


def day(text: str) -> int:
    return utc_us(f"{text}T00:00:00Z")


def total(sheets: Iterable[Sheet], path: str) -> Fraction:
    return sum((Fraction(sheet[path].value or 0) for sheet in sheets), Fraction(0))


__all__ = ["DAY", "HOUR", "START", "Owner", "day", "total"]
