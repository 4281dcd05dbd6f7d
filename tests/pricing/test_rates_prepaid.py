"""A balance paid in advance: the last instant it covers, what ends then, and what is charged no more."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.time import SECOND, utc_text
from ouvrage.pricing.rates.bill import Bill
from tests.pricing.rating import T0, at, bill, own

PREPAID = 'currency = "USD"\nprepaid = {{ negative = "stops", stop_below = "{below}" }}'
METERED = 'part = "compute"\nmeter = { starts = ["active"], stops = ["stopped", "terminated"] }\n'
STORAGE = """
[[version.rule]]
name = "volume"
part = "storage"
of = ["storage"]
price = "0.01/GB-h"
states = { stopped = "2" }
"""


def plan(increment: str = "1 s", below: str = "10 s", more: str = "", price: str = "3.6/h"):
    rule = f'{METERED}price = "{price}"\nincrement = "{increment}"\n{more}'
    return own(rule, PREPAID.format(below=below))


def paid(amount: str, seconds: float = 0) -> str:
    return f"account,deposit,{at(seconds)},{amount},USD"


def pod(start: float, end: float, name: str = "pod") -> list[str]:
    return [f"{name},active,{at(start)},,", f"{name},terminated,{at(end)},,"]


def stops(found: Bill) -> list[tuple[float, str, tuple[str, ...]]]:
    return [
        ((s.at - T0) / SECOND, "deleted" if s.deleted else "stopped", s.resources)
        for s in found.stops
    ]


def test_it_stops_while_ten_seconds_are_left_in_the_balance():
    found = bill(plan(), [paid("1"), *pod(0, 7200)])
    # 1 USD pays for 1,000 s at 3.60 an hour: stopped 10 s before that, exactly.
    assert stops(found)[0] == (990.0, "stopped", ("pod",))
    assert found.total == Fraction("0.99")
    assert found.balance is not None
    assert found.balance.left == Fraction("0.01")
    assert not found.not_run  # the row that ended it ends it still


def test_increments_decide_how_far_a_balance_goes():
    # 0.06 a minute begun: sixteen minutes are paid, and the seventeenth cannot begin within 10 s.
    found = bill(plan("60 s"), [paid("1"), *pod(0, 7200)])
    assert stops(found)[0] == (950.0, "stopped", ("pod",))
    assert found.total == Fraction("0.96")
    assert stops(bill(plan("60 s", "0 s"), [paid("1"), *pod(0, 7200)]))[0][0] == 960.0
    assert stops(bill(plan("1 h"), [paid("1"), *pod(0, 7200)]))[0][0] == 0.0


def test_what_starts_later_did_not_run():
    lines = [paid("1"), "pod,active," + at(0) + ",,", f"pod,stopped,{at(600)},,", *pod(700, 900)]
    lines += [*pod(2000, 3000), *pod(2500, 2600, "other")]
    found = bill(plan(), lines)
    assert stops(found) == [(2190.0, "stopped", ("pod",))]
    ended = found.stops[0].at
    assert [(n.resource, n.event, n.since) for n in found.not_run if n.resource == "other"] == [
        ("other", "active", ended)
    ]
    assert f"not run: balance exhausted at {utc_text(ended)}" in found.not_run[0].words
    assert all(charge.resource != "other" for charge in found.charges)


def test_another_deposit_lets_things_run_again():
    lines = [paid("1"), *pod(0, 2000, "a"), paid("1", 3000), *pod(3000, 3500, "b")]
    found = bill(plan(), lines)
    assert stops(found)[0] == (990.0, "stopped", ("a",))
    assert found.total == Fraction("0.99") + Fraction("0.5")
    assert not found.not_run


def test_what_is_kept_costs_on_until_nothing_is_left():
    lines = [f"pod,storage,{at(0)},36,GB", paid("1"), *pod(0, 72000)]
    found = bill(plan(more=STORAGE), lines)
    # 0.001 a second for the pod and 0.0001 for its volume; then 0.0002 for the stopped volume.
    (stopped, _, _), (deleted, what, who) = stops(found)
    assert stopped == 899.0  # 909 s cost 0.9999, 910 s 1.001
    assert (what, who) == ("deleted", ("pod",))
    left = 1 - Fraction(899) * Fraction("0.0011")
    assert abs(Fraction(deleted) - 899 - left / Fraction("0.0002")) <= Fraction(1, 10**5)
    assert 1 - Fraction(1, 10**9) < found.total <= 1


def test_a_balance_that_may_be_owed_stops_nothing_and_says_when_it_was_used_up():
    found = bill("vast", [paid("1"), *pod(0, 7200)], rate="3.6/h")
    assert not found.stops
    assert found.total == Fraction("7.2")
    assert found.balance is not None
    assert found.balance.spent_at == T0 + 1000 * SECOND


def test_without_a_deposit_nobody_knows_the_balance():
    found = bill("runpod", pod(0, 7200), rate="3.6/h")
    assert (found.stops, found.balance, found.total) == ((), None, Fraction("7.2"))


def test_what_a_machine_is_made_of_is_known_from_its_beginning():
    lines = [
        paid("1"),
        *pod(0, 7200),
        f"pod,sku,{at(7000)},,h100-sxm",
        f"pod,gpus,{at(7000)},2,GPU",
    ]
    found = bill("runpod", lines)
    per_second = Fraction("3.49") * 2 / 3600
    whole = (1 / per_second).__floor__()
    assert stops(found)[0][0] == whole - 10
    assert found.total == (whole - 10) * per_second


@settings(max_examples=100, deadline=None)
@given(
    cents=st.integers(1, 500),
    start=st.integers(0, 5000),
    length=st.integers(1, 20_000),
    second=st.integers(1, 20_000),
    increment=st.sampled_from(["1 s", "60 s", "300 s"]),
    below=st.sampled_from([0, 10, 77]),
)
def test_never_more_than_was_paid_and_never_stopped_too_early(
    cents: int, start: int, length: int, second: int, increment: str, below: int
):
    used = plan(increment, f"{below} s")
    deposit = Fraction(cents, 100)
    lines = [*pod(start, start + length, "a"), *pod(start + 500, start + 500 + second, "b")]
    found = bill(used, [paid(str(cents / 100)), *lines])
    plain = bill(used, lines)
    first = 2 * {"1 s": 1, "60 s": 60, "300 s": 300}[increment] * Fraction("0.001")
    if not found.stops:
        assert found.total == plain.total <= deposit
        return
    assert found.total <= max(deposit, first)
    cut = found.stops[0].at - T0
    held = {"a": (start, start + length), "b": (start + 500, start + 500 + second)}
    running = [n for n, (s, e) in held.items() if s * SECOND <= cut < e * SECOND]
    assert set(found.stops[0].resources) == set(running)
    # One microsecond later, the time that must be covered is no longer covered.
    step = {"1 s": 1, "60 s": 60, "300 s": 300}[increment] * SECOND
    until = cut + 1 + below * SECOND
    cost = sum(
        (
            -(-(min(until, e * SECOND if e * SECOND <= cut + 1 else until) - s * SECOND) // step)
            * step
            * Fraction("0.001")
            / SECOND
            for s, e in held.values()
            if s * SECOND <= cut + 1
        ),
        Fraction(0),
    )
    assert cost > deposit
