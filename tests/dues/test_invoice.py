"""Invoices: every charge once, adding up to the cent, numbered without gaps, corrected by credit notes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.books.dues.invoice import (
    Counted,
    credit_note,
    credits_for,
    draft,
    issued,
    to_issue,
    to_pay,
)
from ouvrage.books.dues.laws import LAWS
from ouvrage.books.dues.lease import amount_nano, amount_text, cost_until
from ouvrage.books.period import period_named
from ouvrage.console.invoice_view import shown
from ouvrage.console.invoice_words import Language
from ouvrage.model.dues import TenantInvoice
from tests.dues.test_charging import OFFERS
from tests.dues.world import NOV, H, S, World

DEC = NOV + 30 * 24 * H
NOVEMBER = period_named("2026-11", "UTC")


def breaches(world: World) -> list[str]:
    return [f"{b.law}: {b.where}: {b.found}" for law in LAWS for b in law.breaches(world.said)]


def busy() -> World:
    world = World.begun("acme", "other")
    world.leased(3670 * S)
    world.leased(2 * H, from_us=NOV + 5 * H, job="test")
    world.leased(H, from_us=NOV + 9 * H, outcome="hardware", billable=0)
    world.leased(7 * H, tenant="other")
    world.charged(DEC)
    return world


def test_an_invoice_adds_up_and_says_what_the_work_cost():
    world = busy()
    units = {f"{1:032x}": Counted(unit="epoch", finished=6, grade=Grade.MEASURED)}
    found = draft(world.record, "acme-id", NOVEMBER, units, DEC)
    assert [amount_text(line.nano) for line in found.lines] == ["0.305833333", "0.6"]
    assert [amount_text(v or 0) for v in (found.charged, found.rounding, found.net, found.tax, found.total)] == [
        "0.905833333", "0.004166667", "0.91", "0.18", "1.09",
    ]  # fmt: skip
    train, test = found.work
    assert (train.name, train.us, train.unit, train.finished) == ("train", 3670 * S, "epoch", 6)
    assert amount_text(round(train.per_unit or 0)) == "0.050972222"
    assert (test.unit, test.finished, test.per_unit) == (None, None, None)
    assert [(u.why, u.us) for u in found.unbilled] == [("hardware", H)]
    assert found.projects == (("acme-vision", amount_nano("0.905833333")),)
    assert found.grade is Grade.METERED


def test_invoices_are_numbered_over_all_tenants_and_hold_each_charge_once():
    world = busy()
    first, second = world.issued(), world.issued(tenant="other")
    assert (first.number, second.number) == ("2026-0001", "2026-0002")
    assert (first.total, second.total) == ("1.09", "2.52")
    assert breaches(world) == []
    with pytest.raises(OuvrageError) as refused:
        world.issued()
    assert refused.value.code == "invoice/empty"


def test_less_than_a_cent_goes_onto_the_next_invoice():
    world = World.begun("acme")
    world.leased(40 * S)
    world.charged(NOV + H)
    small = draft(world.record, "acme-id", NOVEMBER, {}, NOV + H)
    assert (amount_text(small.charged), small.net, small.too_small) == ("0.003333333", 0, True)
    words = shown(small, Language(code="en"))
    assert (
        words.headline
        == "Draft invoice: 0.003333333\xa0EUR, less than 0.01\xa0EUR for November 2026"
    )
    assert any("go onto the next one" in note for note in words.notes)
    assert "moins de 0,01\xa0EUR" in shown(small, Language(code="fr")).headline
    with pytest.raises(OuvrageError) as refused:
        world.issued()
    assert refused.value.code == "invoice/below-a-cent"
    world.leased(40 * S, from_us=NOV + 2 * H)
    world.charged(DEC)
    fact = world.issued()
    assert (fact.net, fact.rounding, len(fact.charges)) == ("0.01", "0.003333334", 2)
    assert breaches(world) == []


def test_an_issued_invoice_is_made_again_as_it_was_whatever_came_since():
    world = busy()
    fact = world.issued()
    known = world.record.invoices[0]
    first = issued(world.record, known, {})
    world.leased(9 * H, from_us=NOV + 20 * H)
    world.charged(DEC + H)
    world.paid("5", DEC + 2 * H)
    assert issued(world.record, known, {}).lines == first.lines
    assert first.total == amount_nano(fact.total)
    assert (first.period.name, first.number, first.prepaid) == ("2026-11", "2026-0001", 0)
    assert world.draft().total == to_pay(amount_nano("3.24"), "EUR")


def test_what_was_paid_before_is_taken_from_what_is_due():
    world = busy()
    world.paid("1.00")
    fact = world.issued()
    found = issued(world.record, world.record.invoices[0], {})
    assert (amount_text(found.prepaid), amount_text(found.due or 0)) == ("1", "0.09")
    world.paid("100", NOV + H)
    assert issued(world.record, world.record.invoices[0], {}).due == 0
    assert fact.total == "1.09"


def test_a_draft_shows_what_still_runs_beside_the_total():
    world = busy()
    world.leased(None, from_us=NOV + 20 * H)
    found = world.draft(at_us=NOV + 22 * H)
    assert amount_text(found.running) == "0.6"
    assert amount_text(found.net) == "0.91"


def test_a_credit_note_gives_back_what_an_invoice_asked_for():
    world = busy()
    world.issued()
    wrong = world.record.invoices[0]
    made = credits_for(world.record, wrong.value, "the wrong project was charged")
    world.states(made)
    note = credit_note(world.record, wrong, made, DEC + H)
    fact = to_issue(note, [e.value for e in world.record.invoices], "cn", DEC + H)
    world.says(fact, wrong.valid_from, wrong.valid_to)
    assert (fact.number, fact.net, fact.tax, fact.total, fact.credits) == (
        "2026-0002", "-0.91", "-0.18", "-1.09", wrong.value.invoice,
    )  # fmt: skip
    assert breaches(world) == []
    assert world.charged(DEC + 2 * H) == []
    with pytest.raises(OuvrageError) as refused:
        credits_for(world.record, wrong.value, "again")
    assert refused.value.code == "invoice/nothing-left"


def test_what_is_simulated_is_never_invoiced():
    world = World.begun()
    world.leased(H, grade=Grade.SIMULATED)
    world.charged(DEC)
    assert world.draft().grade is Grade.SIMULATED
    with pytest.raises(OuvrageError) as refused:
        world.issued()
    assert refused.value.code == "invoice/simulated"


def test_an_invoice_waits_until_somebody_states_the_tax():
    world = World.begun(tax=None)
    world.leased(H)
    world.charged(DEC)
    found = world.draft()
    assert (found.tax, found.total) == (None, None)
    with pytest.raises(OuvrageError) as refused:
        world.issued()
    assert refused.value.code == "invoice/tax-not-stated"


@pytest.mark.parametrize(
    ("amount", "currency", "paid"),
    [("0.905", "EUR", "0.91"), ("-0.905", "EUR", "-0.91"), ("0.9049999", "EUR", "0.9"), ("0.5", "JPY", "1"),
     ("1.0005", "KWD", "1.001")],
)  # fmt: skip
def test_amounts_are_paid_in_what_the_currency_has(amount, currency, paid):
    assert amount_text(to_pay(amount_nano(amount), currency)) == paid


@st.composite
def months(draw: st.DrawFn) -> World:
    """Tenants with leases and payments; charged, invoiced and credited at odd moments."""
    world = World.begun("acme", "other")
    at = NOV
    for _ in range(draw(st.integers(1, 10))):
        at += draw(st.integers(1, 5 * 24 * H))
        tenant = draw(st.sampled_from(["acme", "other"]))
        match draw(st.sampled_from(["lease", "failed", "charge", "pay", "invoice", "credit"])):
            case "lease":
                world.leased(
                    draw(st.integers(1, 40 * 24 * H)), tenant, at, of=draw(st.sampled_from(OFFERS))
                )
            case "failed":
                world.leased(draw(st.integers(1, 99 * H)), tenant, at, "hardware", billable=0)
            case "pay":
                world.paid(str(draw(st.integers(1, 500))), at, tenant)
            case "charge":
                world.charged(at)
            case "invoice":
                _invoice(world, tenant, at)
            case _:
                _credit(world, at)
    world.charged(at + 60 * 24 * H)
    return world


def _invoice(world: World, tenant: str, at: int) -> None:
    month = period_named("2026", "UTC")
    found = draft(world.record, f"{tenant}-id", month, {}, at)
    if found.lines:
        fact = to_issue(found, [e.value for e in world.record.invoices], f"i{at}", at)
        world.says(fact, month.from_us, month.to_us)


def _credit(world: World, at: int) -> None:
    for wrong in [e for e in world.record.invoices if e.value.credits is None][:1]:
        try:
            made = credits_for(world.record, wrong.value, "wrong")
        except OuvrageError:  # given back before
            return
        world.states(made)
        note = credit_note(world.record, wrong, made, at)
        fact = to_issue(note, [e.value for e in world.record.invoices], f"n{at}", at)
        world.says(fact, wrong.valid_from, wrong.valid_to)


@given(months())
@settings(max_examples=80, deadline=None)
def test_the_laws_hold_whatever_is_leased_paid_invoiced_and_given_back(world):
    assert breaches(world) == []
    for each in world.record.leases:
        told = sum(
            amount_nano(c.amount) for c in world.charges if c.lease == each.lease and not c.credits
        )
        if each.ended and each.ended.at_us <= NOV + 60 * 24 * H and not each.unbilled:
            assert told == cost_until(each, each.ended.at_us)


def tampered(world: World, kind: type, **other) -> World:
    """The same facts with the first of a kind stating something else."""
    for index, entry in enumerate(world.said):
        from ouvrage.ledger.kinds import fact_of, read

        value = read(entry.fact)
        if isinstance(value, kind):
            old = entry.fact
            fact = fact_of(replace(value, **other), source=old.source, id=old.id, subject="x",
                           valid_from=old.valid_from, valid_to=old.valid_to, grade=old.grade)  # fmt: skip
            world.said[index] = replace(entry, fact=fact)
            return world
    raise AssertionError(kind)


@pytest.mark.parametrize(
    ("law", "other"),
    [
        ("dues/invoices-add-up", {"net": "0.92"}),
        ("dues/invoices-add-up", {"rounding": "0"}),
        ("dues/invoices-add-up", {"tax": "0.19", "total": "1.10"}),
        ("dues/invoices-add-up", {"charges": ("none",)}),
        ("dues/numbered", {"number": "2026-0003"}),
        ("dues/balance", {"total": "1.10"}),
    ],
)
def test_an_invoice_that_was_tampered_with_is_found(law, other):
    world = busy()
    world.issued()
    assert law in {
        text.partition(": ")[0] for text in breaches(tampered(world, TenantInvoice, **other))
    }


def test_a_charge_on_two_invoices_or_twice_in_time_or_not_of_the_plan_is_found():
    from ouvrage.model.dues import LeaseCharge

    world = busy()
    world.issued()
    twice = replace(world.record.invoices[0].value, invoice="x", number="2026-0002")
    world.says(twice, NOV, DEC)
    first = world.record.charges[0]
    world.says(replace(first.value, charge="again", amount="0.1"), first.valid_from, first.valid_to)
    found = {text.partition(": ")[0] for text in breaches(world)}
    assert {"dues/invoiced-once", "dues/no-overlap", "dues/as-the-plan-says"} <= found
    other = tampered(busy(), LeaseCharge, amount="-1")
    assert "dues/credits" in {text.partition(": ")[0] for text in breaches(other)}
