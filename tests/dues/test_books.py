"""The owner's books over a platform: charges earn, invoices are owed, payments wait for the bank."""

from __future__ import annotations

from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO
from ouvrage.books.journal import Journal, journal
from ouvrage.books.laws import LAWS, journal_breaches
from ouvrage.books.period import period_named
from ouvrage.books.pnl import pnl
from ouvrage.books.reconcile import reconciled
from ouvrage.books.record import OwnerRecord, owner_record
from ouvrage.model.cash import BankLine
from tests.dues.world import NOV, H, S, World, offer

DEC = NOV + 30 * 24 * H
GPU = offer(rate="1.20", gpu="RTX 4090", gpus=1, name="gpu")


def platform() -> World:
    world = World.begun("acme", "other").in_a_site()
    world.leased(10 * H, of=GPU, devices=("GPU-1",))
    world.leased(5 * H, "other", NOV + 20 * H, of=GPU, devices=("GPU-1",))
    world.leased(2 * H, "other", NOV + 40 * H)
    world.charged(DEC)
    return world


def books(world: World) -> OwnerRecord:
    return owner_record(world.said)


def balances(world: World, month: str) -> dict[str, Fraction]:
    found: Journal = journal(books(world), "s", period_named(month, "UTC"))
    return {name: Fraction(nano, NANO) for name, nano in found.balances.items() if nano}


def test_charges_are_revenue_of_their_devices_and_leases_sell_their_hours():
    record = books(platform())
    total = pnl(record, "s", period_named("2026-11", "UTC"), "site", payback=False).total
    assert total["revenue.gpu"].value == Fraction("18.6")
    assert total["hours.working"].value == Fraction("15")
    by_tenant = pnl(record, "s", period_named("2026-11", "UTC"), "tenant", payback=False)
    assert {row.object.partition("/")[0]: row["revenue.gpu"].value for row in by_tenant.rows}.items() >= {
        "acme": Fraction(12), "other": Fraction("6.6"),
    }.items()  # fmt: skip


def test_an_invoice_turns_what_accrued_into_what_is_owed_and_a_payment_that_into_money():
    world = platform()
    invoice = world.issued()
    assert (invoice.net, invoice.tax, invoice.total) == ("12", "2.4", "14.4")
    world.issued(tenant="other")
    world.paid("20", DEC + H, reference="T-2001")
    november, december = balances(world, "2026-11"), balances(world, "2026-12")
    assert november["Assets:Accrued:Own"] == Fraction("18.6")
    assert december["Assets:Accrued:Own"] == -Fraction("18.6")
    assert december["Assets:Receivable:Acme"] == Fraction("14.4") - 20
    assert december["Assets:Receivable:Other"] == Fraction("7.92")
    assert december["Liabilities:Sales-tax"] == -Fraction("3.72")
    assert december["Assets:Received:Acme"] == 20
    for month in ("2026-11", "2026-12"):
        assert not list(journal_breaches(books(world), "s", period_named(month, "UTC")))


def test_rounding_to_cents_is_posted():
    world = World.begun().in_a_site()
    world.leased(3670 * S, of=offer(rate="0.30", gpus=1, gpu="x", name="r"), devices=("GPU-1",))
    world.charged(DEC)
    world.issued()
    found = balances(world, "2026-12")
    assert found["Assets:Receivable:Acme"] == Fraction("0.37")
    assert found["Equity:Residue"] == -Fraction("0.004166667")


def bank(world: World, amount: str, at: int, text: str) -> None:
    world.says(BankLine(account="giro", reference="r1", amount=amount, currency="EUR", counterparty="ACME SAS",
                        text=text), at, at + 24 * H, Grade.METERED)  # fmt: skip


def test_the_banks_line_of_a_payment_is_found_and_what_tenants_owe_is_told():
    world = platform()
    world.issued()
    world.issued(tenant="other")
    world.paid("14.40", DEC + H, reference="T-2001")
    bank(world, "14.40", DEC + 24 * H, "transfer T-2001")
    found = reconciled(books(world), "s", period_named("2026-12", "UTC"))
    (match,) = found.bank.matches
    assert (match.certainty, match.claims[0].name) == ("certain", "payment/acme/T-2001")
    assert found.bank.unmatched == ()
    assert [(d.who, d.name, d.amount) for d in found.receivables] == [
        ("other", "invoice/own/2026-0002", Fraction("7.92"))
    ]
    december = balances(world, "2026-12")
    assert december["Assets:Bank:Giro"] == Fraction("14.4")
    assert "Assets:Received:Acme" not in december


def test_a_credit_is_work_given_back():
    world = World.begun().in_a_site()
    long = 31 * 24 * H
    world.leased(long, of=GPU, outcome="hardware", billable=0, devices=("GPU-1",))
    record = world.record
    from dataclasses import replace

    from ouvrage.books.dues.charging import charges_due

    (lease,) = record.leases
    first = charges_due(replace(lease, ended=None), [], DEC + H)
    world.states(first)
    world.charged(DEC + 2 * 24 * H)
    total = pnl(books(world), "s", period_named("2026-11", "UTC"), "site", payback=False).total
    assert total["revenue.gpu"].value == Fraction("864")
    assert total["cost.failed"].value == Fraction("864")


def test_the_books_laws_hold_over_a_platform():
    world = platform()
    world.issued()
    world.paid("3")
    assert [b for law in LAWS for b in law.breaches(world.said)] == []
