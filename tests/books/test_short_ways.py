"""Ways that were made short because a thousand GPUs took too long: each equals the long one exactly."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import split_whole
from ouvrage.books import calendar as calendars
from ouvrage.books import wall
from ouvrage.books.account import account
from ouvrage.books.calendar import node_calendar
from ouvrage.evidence.fact_keys import FactKeys
from ouvrage.ledger.facts import Fact, Recorded, line_of
from ouvrage.ledger.kinds import fact_of, rows_of, values_of
from ouvrage.ledger.view import in_force, lines_in_force
from ouvrage.model.meters import EnergyRead
from ouvrage.model.records import Withdrawal
from tests.books.owner import HOUR, Owner, day
from tests.books.test_energy import BEGIN, machine, reads, taken, two_prices

HOURS = 24 * 3
_ODD = ("hole", "part", "late", "other", "worse", "double")
PERIOD = "2026-02-01..2026-02-04"


def told(owner: Owner) -> tuple[object, ...]:
    found = taken(owner, PERIOD)
    used = [
        (each.cell, each.from_us, each.read, each.method, each.us, each.priced, each.joules, each.cost,
         sorted(each.keys))
        for each in found.used
    ]  # fmt: skip
    return used, found.lost, found.read_j, found.metered_us, found.us


@st.composite
def hourly_owners(draw: st.DrawFn) -> Owner:
    """Machines read every hour, with holes, cut and overlapping hours, worse grades and other meters."""
    owner = machine(draw(st.integers(1, 5)), draw(st.sampled_from(("0.25", "0.3333333"))))
    if draw(st.booleans()):
        two_prices(owner)
    if draw(st.booleans()):
        owner.term("node:n1", "load_power_w", "417.3", from_us=BEGIN + 31 * HOUR)
    odd = draw(st.dictionaries(st.integers(0, HOURS), st.sampled_from(_ODD), max_size=4))
    shift = draw(st.sampled_from((0, 1, HOUR // 3)))
    for hour in range(-1, HOURS + 1):
        begins, what = BEGIN + hour * HOUR - shift, odd.get(hour)
        joules = draw(st.integers(0, 5_000_000))
        if what == "hole":
            continue
        value = EnergyRead(
            meter="other" if what == "other" else "plug", about="node:n1",
            scope="pdu" if what == "double" else "wall", energy_j=joules, method="counter",
            covered_us=HOUR // 2 if what == "part" else HOUR,
        )  # fmt: skip
        late = HOUR // 4 if what == "late" else 0
        grade = Grade.REPORTED if what == "worse" else Grade.METERED
        owner.says(value, begins + late, begins + late + HOUR, grade)
    for _ in range(draw(st.integers(0, 12))):
        begins = BEGIN + draw(st.integers(-HOUR, HOURS * HOUR))
        owner.state(
            draw(st.sampled_from(("working", "held", "free", "down"))), begins,
            begins + draw(st.integers(1, 40 * HOUR)), node=None,
            device=f"n1-gpu{draw(st.integers(0, 4))}", channel="vast",
        )  # fmt: skip
    return owner


@settings(max_examples=150, deadline=None)
@given(hourly_owners())
def test_running_sums_give_each_device_what_walking_every_reading_gives(owner):
    short = told(owner)
    with (
        patch.object(wall.Running, "over", lambda *_: None),
        patch.object(wall, "_in_turn", lambda *_: None),
    ):
        assert told(owner) == short


def test_running_sums_are_used_where_a_meter_reads_on_and_on():
    owner = machine(2)
    owner.state("working", BEGIN, BEGIN + 5 * HOUR // 2, node=None, device="n1-gpu0")
    for hour in range(24):
        reads(owner, "node:n1", 1001 + hour, BEGIN + hour * HOUR, BEGIN + (hour + 1) * HOUR)
    with patch.object(wall.Running, "over", side_effect=AssertionError):
        try:
            taken(owner, "2026-02-01..2026-02-02")
        except AssertionError:
            return
    raise AssertionError("the long way was taken")


@settings(max_examples=100, deadline=None)
@given(hourly_owners())
def test_statements_in_turn_give_the_calendar_that_weighing_them_gives(owner):
    short = node_calendar(owner.record, "n1", owner.period(PERIOD))
    with patch.object(calendars, "_in_turn", lambda *_: None):
        assert node_calendar(owner.record, "n1", owner.period(PERIOD)) == short


def slow_split(total: int, weights: list[int]) -> list[int]:
    shares = [divmod(total * weight, sum(weights)) for weight in weights]
    parts = [part for part, _ in shares]
    order = sorted(range(len(parts)), key=lambda i: (-shares[i][1], i))
    for i in order[: total - sum(parts)]:
        parts[i] += 1
    return parts


@given(st.integers(-(10**9), 10**9), st.lists(st.integers(0, 7), min_size=1, max_size=9))
def test_a_split_by_weights_that_repeat_is_the_one_part_by_part(total, weights):
    if sum(weights):
        assert split_whole(total, weights) == slow_split(total, weights)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-1, 9), st.booleans()), max_size=10))
def test_lines_in_force_are_the_records_in_force(made):
    records = []
    for seq, (number, target, gone) in enumerate({each[0]: each for each in made}.values()):
        fact = Fact(
            source="s", id=f"{number:02}", kind=Withdrawal.KIND if gone else "k", version=1, subject="x",
            valid_from=seq, valid_to=None, grade=Grade.METERED, payload="{}",
            corrects=f"s/{target:02}" if target >= 0 else None,
        )  # fmt: skip
        records.append(Recorded(seq=seq, recorded_at=0, fact=fact))
    lines = [line_of(record) for record in records]
    assert {line.key for line in lines_in_force(lines)} == {r.fact.key for r in in_force(records)}


def test_rows_are_read_as_strictly_as_values():
    value = EnergyRead(
        meter="m", about="node:n", scope="wall", energy_j=5, method="counter", covered_us=1
    )
    good = fact_of(
        value, source="s", id="1", subject="x", valid_from=0, valid_to=1, grade=Grade.METERED
    ).payload
    payloads = [
        good, " " + good, good.replace("5", "5.0"), good.replace("5", "true"), good[:-1], good + "1",
        good.replace("meter", "other"), good.replace("{", '{"more":1,'), "[]", "7",
    ]  # fmt: skip
    rows = list(rows_of(EnergyRead, payloads, "energy_j"))
    assert rows == [("m", "node:n", "wall", 5, "counter", 1)] * 2 + [None] * 8
    assert list(values_of("meter.energy", 1, payloads)) == [value] * 2 + [None] * 8
    assert list(values_of("meter.energy", 99, payloads)) == [None] * 10


def test_keys_are_told_once_in_order_and_only_when_asked():
    walked: list[str] = []

    class Late:
        def __iter__(self):
            walked.append("walked")
            return iter(("b", "a"))

    keys = FactKeys(("a",), Late())
    keys.add(FactKeys(("c", "a")))
    assert walked == []
    assert tuple(keys) == ("a", "b", "c")
    assert (keys[0], keys[1:], len(keys), keys == ("a", "b", "c")) == ("a", ("b", "c"), 3, True)
    keys.add(("d",))
    assert list(keys) == ["a", "b", "c", "d"]
    assert walked == ["walked"]


def test_a_figure_of_the_statement_still_names_every_reading():
    owner = machine(2)
    said = [
        reads(owner, "node:n1", 1000, BEGIN + hour * HOUR, BEGIN + (hour + 1) * HOUR)
        for hour in range(24 * 28)
    ]
    sheet = owner.sheet()
    assert set(said) <= set(sheet["cost.electricity"].facts)
    made = account(owner.record, "s", owner.period("2026-02"))
    assert made.grid.period.to_us == day("2026-03-01")
