"""Books under bad luck: devices that left, sold time without earnings, stale rates, days that are none."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY, HOUR
from ouvrage.books.gaps import gaps
from ouvrage.books.period import period_named
from ouvrage.books.terms import CATALOGUE, rule_for
from ouvrage.model.cash import SupportTime
from ouvrage.model.offers import ExchangeRate
from ouvrage.model.sites import DevicePlaced, Node, Site
from tests.books.owner import Owner, day


def replaced() -> Owner:
    """A GPU replaced by another in its slot on 10 February."""
    owner = Owner().sets_up().bare()
    owner.says(DevicePlaced(device="new", node="n1", model="RTX 4090", slot=0), day("2026-02-10"))
    return owner


def test_a_lease_of_a_gpu_that_was_replaced_earns_nothing_on_the_one_in_its_slot():
    owner = replaced()
    owner.leases("l", day("2026-02-15"), day("2026-02-17"), about="device:n1-gpu0")
    statement = owner.pnl(by="gpu")
    assert statement.total.number("revenue.recorded") == 0
    assert any("do not all stand there" in note for note in statement.notes)
    over = replaced()
    over.leases("l", day("2026-02-09"), day("2026-02-12"), about="device:n1-gpu0")
    rows = {row.object: row for row in over.pnl(by="gpu").rows}
    assert rows["n1-gpu0/2026-02"].number("revenue.recorded") == 24
    assert rows["new/2026-02"].number("revenue.recorded") == 0


def test_time_that_somebody_had_and_nothing_paid_for_is_not_revenue_of_nothing():
    owner = Owner().sets_up().bare()
    owner.state("working", day("2026-02-01"), day("2026-03-01"), channel="vast")
    sheet = owner.sheet()
    assert sheet["revenue.total"].value is None
    assert sheet["rate.effective"].value is None
    assert sheet["margin.net"].value is None
    found = gaps(owner.record, "s", period_named("2026-02", "UTC"))
    assert found[0].what == "earnings"
    assert "--machine ID=n1" in found[0].fill
    free = Owner().sets_up().bare()
    free.state("free", day("2026-02-01"), day("2026-03-01"))
    assert free.sheet().number("revenue.total") == 0


def test_an_old_rate_is_told_once_and_not_for_every_day():
    owner = Owner().sets_up().bare()
    rate = ExchangeRate(base="EUR", quote="USD", rate="1.08", day="2026-01-01", said_by="bank")
    owner.says(rate, day("2026-01-01"), day("2026-01-02"), Grade.REPORTED)
    for number in range(28):
        begins = day("2026-02-01") + number * DAY
        owner.earned("10", begins, begins + DAY, currency="USD")
    assert len([note for note in owner.pnl().notes if "EUR" in note]) == 1


def test_what_a_machine_earned_out_of_service_is_counted_and_told():
    owner = Owner()
    owner.says(Site(site="s", currency="EUR", zone="UTC"))
    owner.says(Node(node="n1", site="s"), day("2026-01-01"), day("2026-02-10"))
    owner.says(DevicePlaced(device="g", node="n1", model="RTX 4090", slot=0), day("2026-01-01"))
    owner.bare()
    owner.earned("10", day("2026-02-20"), day("2026-02-21"))
    statement = owner.pnl()
    assert statement.total.number("revenue.recorded") == 10
    assert any("no GPU of it was in service" in note for note in statement.notes)


def test_support_for_a_tenant_is_a_cost_of_that_tenant():
    owner = Owner().sets_up(gpus=2).bare()
    owner.term("site:s", "support_price", "30")
    owner.leases("l", day("2026-02-01"), day("2026-03-01"), about="device:n1-gpu0")
    owner.says(
        SupportTime(about="node:n1", tenant="ann", duration_us=HOUR, what=""), day("2026-02-03"),
        day("2026-02-03") + HOUR,
    )  # fmt: skip
    rows = {row.object: row for row in owner.pnl(by="tenant").rows}
    assert rows["ann/2026-02"].number("cost.support") == 30
    assert rows["unsold/2026-02"].number("cost.support") == 0


def test_own_tenants_pay_no_platform_and_nothing_is_assumed_of_it():
    owner = Owner().sets_up().bare()
    owner.term("channel:vast", "fee", "0.1")
    owner.leases("l", day("2026-02-01"), day("2026-02-10"), about="device:n1-gpu0")
    owner.earned("10", day("2026-02-10"), day("2026-02-11"))
    fee = owner.sheet()["cost.fee"]
    assert (fee.value, fee.grade) == (1, Grade.REPORTED)


def test_a_power_that_nobody_knows_is_called_so_and_not_a_missing_price():
    owner = Owner().sets_up(model="Unheard 1")
    owner.term("site:s", "electricity", "0.2")
    whats = {gap.what for gap in gaps(owner.record, "s", period_named("2026-02", "UTC"))}
    assert "load_power_w" in whats
    assert "electricity" not in whats


@pytest.mark.parametrize("name", ["0001-01", "0001", "9999", "9999-12", "20260101", "2026-W40-1", "1969-12-31..1970-01-01"])  # fmt: skip
def test_a_period_outside_the_years_of_machines_is_refused(name: str):
    with pytest.raises(OuvrageError, match="no period of books"):
        period_named(name, "Europe/Paris")


def test_ends_that_nobody_read_are_called_our_judgement():
    for rule in CATALOGUE:
        if rule.low is not None and rule.name not in ("pue", "fee"):
            assert "our judgement" in rule.why, rule.name
    for model in ("RTX 4090", "A100"):
        source = rule_for("load_power_w", "node:n1", model, "EUR")
        assert source is not None
        assert "was not read" in source.source


def test_the_power_of_an_idle_machine_is_not_scaled_as_if_it_worked():
    idle = rule_for("idle_power_w", "node:n1", "H100", "EUR")
    assert idle is not None
    assert idle.default == Fraction("69.9") * Fraction(50, 30)
