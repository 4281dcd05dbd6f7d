"""Balance, budgets and estimates: what may still be spent, who is warned, what is stopped, what is not known."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY
from ouvrage.books.dues.account import Account, account_of, used_up
from ouvrage.books.dues.budgets import (
    Stop,
    Warn,
    balance_steps,
    budget_steps,
    job_steps,
    may_start,
    spent_between,
    spent_of,
)
from ouvrage.books.dues.estimate import EarlierRun, estimate
from ouvrage.books.dues.lease import amount_nano, amount_text, cost_until
from ouvrage.books.dues.record import DuesRecord
from tests.dues.test_charging import OFFERS
from tests.dues.world import NOV, H, S, World, ended, lease, offer


def account(world: World, at_us: int, tax: str | None = None) -> Account:
    record: DuesRecord = world.record.of("acme-id")
    return account_of(
        record.organisations["acme-id"], [e.value for e in record.payments], record.charges,
        [e.value for e in record.invoices], record.leases, at_us, None if tax is None else Fraction(tax),
    )  # fmt: skip


def test_the_balance_is_paid_less_charged_less_running():
    world = World.begun("acme", "other")
    world.paid("10")
    world.paid("99", tenant="other")
    world.leased(2 * H)
    world.charged(NOV + 3 * H)
    world.leased(None, from_us=NOV + 4 * H)
    found = account(world, NOV + 5 * H)
    shown = {
        n: found.as_json()[n]
        for n in ("paid", "charged", "running", "balance", "left", "burn_per_hour")
    }
    assert shown == {
        "paid": "10", "charged": "0.6", "running": "0.3", "balance": "9.1", "left": "9.1", "burn_per_hour": "0.3",
    }  # fmt: skip
    # 9.1 at 0.30 an hour
    assert found.used_up_us == NOV + 5 * H + 109_200 * S


def test_tax_that_the_next_invoice_adds_is_not_there_to_be_spent():
    world = World.begun()
    world.paid("10")
    world.leased(None)
    with_tax, without = account(world, NOV + 10 * H, "0.20"), account(world, NOV + 10 * H)
    assert amount_text(with_tax.balance) == amount_text(without.balance) == "7"
    assert amount_text(with_tax.left) == "6.4"
    assert without.tax_to_come is None
    assert with_tax.used_up_us < without.used_up_us


def test_credit_lets_work_go_on_below_zero_and_prepaid_does_not():
    for billing, left in (("prepaid", "-0.3"), ("credit", "9.7")):
        world = World.begun(billing=billing)
        name = world.leased(None)
        found = account(world, NOV + H)
        assert amount_text(found.left) == left
        steps = balance_steps(found, world.record.leases)
        if billing == "prepaid":
            assert [(s.code, s.leases, s.project) for s in steps] == [("balance", (name,), None)]
            assert "prepaid balance is used up" in steps[0].words
            assert may_start(found, []) == "balance"
        else:
            assert steps == []
            assert may_start(found, []) is None


@given(st.lists(st.sampled_from(OFFERS), min_size=1, max_size=3), st.integers(1, 50 * 10**9))
@settings(max_examples=25, deadline=None)
def test_at_the_moment_of_being_used_up_it_is_and_a_second_before_it_is_not(offers, left):
    leases = [lease(each, lease=f"l{n}") for n, each in enumerate(offers)]
    now = NOV + 7 * 60 * S
    at = used_up(leases, left, now)
    spent = lambda moment: sum(cost_until(x, moment) - cost_until(x, now) for x in leases)  # noqa: E731 said twice below
    assert at is not None
    assert spent(at) >= left
    assert at == now or spent(at - S) < left


def test_what_ends_before_the_money_does_never_uses_it_up():
    held = [lease(until_us=NOV + 2 * H)]
    assert used_up(held, amount_nano("1"), NOV) is None
    assert used_up(held, amount_nano("0.6"), NOV) == NOV + 2 * H
    assert used_up([], amount_nano("1"), NOV) is None
    assert used_up([], 0, NOV) == NOV


def test_a_budget_tells_each_level_once_and_stops_at_all_of_it():
    world = World.begun()
    world.budget("3")
    name = world.leased(None)
    record = world.record
    told: dict[tuple[str, str], int] = {}
    seen = []
    for hour in range(1, 12):
        spent = spent_of(record.budgets["acme-p"], record.leases, NOV + hour * H)
        for step in budget_steps([spent], record.leases, told):
            if isinstance(step, Warn):
                told[step.project, step.period] = step.level
                seen.append((hour, step.level))
            else:
                seen.append((hour, step.code))
                assert step.leases == (name,)
    assert seen == [(5, 50), (8, 80), (10, 100), (10, "budget"), (11, "budget")]
    spent = spent_of(record.budgets["acme-p"], record.leases, NOV + 5 * H)
    assert spent.used_up_us == NOV + 10 * H
    assert (
        "50 % of the budget of 2026-11 is spent: 1.5 of 3 EUR"
        in budget_steps([spent], record.leases, {})[0].words
    )


def test_a_budget_that_only_warns_stops_nothing_and_a_lifted_one_is_none():
    world = World.begun()
    world.leased(None)
    world.budget("1", action="warn")
    (spent,) = [spent_of(world.record.budgets["acme-p"], world.record.leases, NOV + 9 * H)]
    assert [type(s) for s in budget_steps([spent], world.record.leases, {})] == [Warn]
    world.budget(None)
    assert spent_of(world.record.budgets["acme-p"], world.record.leases, NOV + 9 * H) is None


@given(st.sampled_from(OFFERS), st.integers(1, 200 * H))
@settings(max_examples=30, deadline=None)
def test_what_is_spent_by_days_adds_up_to_the_bill(of, us):
    held = lease(of, from_us=NOV + 5 * H, ended=ended(us, from_us=NOV + 5 * H))
    days = [spent_between([held], NOV + n * DAY, NOV + (n + 1) * DAY) for n in range(10)]
    assert sum(days) == cost_until(held, held.ended.at_us)


def test_a_day_begins_anew():
    world = World.begun()
    world.budget("4", period="day")
    world.leased(None)
    budget, leases = world.record.budgets["acme-p"], world.record.leases
    first, second = (spent_of(budget, leases, NOV + hours * H) for hours in (23, 25))
    assert (first.level, second.level) == (100, 0)
    assert amount_text(second.nano) == "0.3"
    assert (first.period, second.period) == ("2026-11-01", "2026-11-02")


def test_a_jobs_own_budget_counts_all_its_attempts():
    done = lease(lease="l1", ended=ended(2 * H))
    going = lease(lease="l2", attempt="a2", from_us=NOV + 3 * H)
    assert job_steps([done, going], {"j1": "1"}, NOV + 4 * H) == []
    (step,) = job_steps([done, going], {"j1": "1"}, NOV + 5 * H)
    assert (step.code, step.leases) == ("job-budget", ("l2",))
    assert isinstance(step, Stop)


def run(us: int, finished: int | None = 6, name: str = "train", **other) -> EarlierRun:
    given = {"attempt": "a", "unit": "epoch", "offer": offer(), "grade": Grade.MEASURED, **other}
    return EarlierRun(name=name, us=us, finished=finished, **given)


def test_an_estimate_is_the_middle_and_range_of_the_tenants_own_runs():
    runs = [run(3600 * S), run(1800 * S), run(7200 * S, finished=None), run(60 * S, name="other")]
    found = estimate("train", "epoch", offer(rate="0.36", name="optimised", offer="of2"), runs, NOV)
    shown = found.as_json()
    assert shown["cost"] == {"median": "0.36", "low": "0.18", "high": "0.72"}
    assert shown["cost_per_unit"] == {"median": "0.045", "low": "0.03", "high": "0.06"}
    assert (shown["runs"], shown["grade"], shown["time_grade"]) == (3, "listed", "measured")
    assert shown["seconds"] == {"median": "3600", "low": "1800", "high": "7200"}


def test_runs_on_another_configuration_are_assumed_to_take_as_long_and_said_so():
    found = estimate("train", "epoch", offer(cpus=2), [run(3600 * S)], NOV)
    assert (found.same, found.grade) == (False, Grade.ASSUMED)
    assert "other configurations" in found.why


def test_without_earlier_runs_nothing_is_known_and_nothing_is_zero():
    for runs in ([], [run(3600 * S, name="other")], [run(3600 * S, unit="token")]):
        found = estimate("train", "epoch", offer(), runs, NOV)
        assert found.cost is None
        assert found.as_json()["cost"] is None
        assert "not known" in found.why


def test_no_attempt_outlasts_its_time_limit():
    found = estimate("train", None, offer(), [run(7200 * S)], NOV, limit_us=3600 * S)
    assert found.as_json()["cost"]["high"] == "0.3"


@pytest.mark.parametrize("grade", [Grade.SIMULATED, Grade.REPORTED])
def test_an_estimate_is_worth_no_more_than_its_weakest_run(grade):
    found = estimate("train", None, offer(), [run(H), replace(run(H), grade=grade)], NOV)
    assert found.time_grade == grade
    assert found.grade == max(grade, Grade.LISTED)
