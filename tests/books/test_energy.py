"""Energy by meter first: the wall says how much, counters divide it, and nothing of it is lost."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.books.account import account
from ouvrage.books.cells import grid_of
from ouvrage.books.energy import energy_of
from ouvrage.books.laws import account_breaches, energy_breaches, statement_breaches
from ouvrage.books.pnl import BY
from ouvrage.books.tariffs import PriceBook
from ouvrage.books.used import EnergyAccount
from ouvrage.model.cash import CostBill
from ouvrage.model.meters import EnergyRead
from ouvrage.model.tariffs import Tariff, TariffBand
from tests.books.owner import DAY, HOUR, Owner, day
from tests.books.test_pnl import _asset

BEGIN = day("2026-02-01")
KWH = 3_600_000


def reads(
    owner: Owner,
    about: str,
    joules: int,
    from_us: int,
    to_us: int,
    scope: str = "wall",
    meter: str = "plug",
    covered: int | None = None,
) -> str:
    value = EnergyRead(
        meter=meter, about=about, scope=scope, energy_j=joules, method="counter",
        covered_us=to_us - from_us if covered is None else covered,
    )  # fmt: skip
    return owner.says(value, from_us, to_us, Grade.MEASURED)


def machine(gpus: int = 2, price: str = "0.25") -> Owner:
    owner = Owner().sets_up(gpus)
    owner.term("site:s", "electricity", price)
    owner.term("node:n1", "idle_power_w", "100")
    owner.term("node:n1", "load_power_w", "400")
    owner.says(_asset("n1", "0"), day("2026-01-01"))
    return owner


def taken(owner: Owner, name: str = "2026-02") -> EnergyAccount:
    period = owner.period(name)
    grid = grid_of(owner.record, "s", period)
    book = PriceBook(owner.record, "s", period.from_us, period.to_us)
    return energy_of(owner.record, grid, book)


def by_device(found: EnergyAccount) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for used in found.used:
        total[used.cell.device] = total.get(used.cell.device, Fraction(0)) + (used.energy_j or 0)
    return total


def test_a_meter_at_the_wall_counts_before_watts_and_the_rest_stays_estimated():
    owner = machine()
    owner.state("working", BEGIN, BEGIN + 2 * DAY)
    reads(owner, "node:n1", 30 * KWH, BEGIN, BEGIN + DAY)
    found = taken(owner, "2026-02-01..2026-02-03")
    assert found.metered_j == 30 * KWH
    assert found.estimated_j == 2 * 24 * 400 * 3600  # the second day, by watts
    assert Fraction(found.metered_us, found.us) == Fraction(1, 2)
    sheet = owner.pnl("2026-02-01..2026-02-03").total
    assert sheet.number("energy") == 30 + Fraction(2 * 24 * 400, 1000)
    assert sheet["energy"].grade is Grade.ASSUMED
    assert sheet["energy"].shares == {
        Grade.MEASURED: Fraction(30 * 10, 492), Grade.ASSUMED: Fraction(192, 492),
    }  # fmt: skip
    assert sheet.number("cost.electricity") == (30 + Fraction(192, 10)) * Fraction("0.25")


def test_what_the_wall_read_is_divided_by_the_gpus_own_counters_and_else_by_watts():
    owner = machine()
    owner.state("working", BEGIN, BEGIN + DAY, device="n1-gpu0")
    owner.state("free", BEGIN, BEGIN + DAY, device="n1-gpu1")
    reads(owner, "node:n1", 10 * KWH, BEGIN, BEGIN + DAY)
    assert by_device(taken(owner, "2026-02-01")) == {"n1-gpu0": 8 * KWH, "n1-gpu1": 2 * KWH}
    for device, joules in (("n1-gpu0", 3 * KWH), ("n1-gpu1", KWH)):
        reads(owner, f"device:{device}", joules, BEGIN, BEGIN + DAY, "gpu", meter=device)
    found = taken(owner, "2026-02-01")
    assert by_device(found) == {"n1-gpu0": Fraction(15, 2) * KWH, "n1-gpu1": Fraction(5, 2) * KWH}
    assert found.metered_j == 10 * KWH
    assert "counters" in found.used[0].method


def test_what_is_read_over_hours_is_divided_by_what_each_device_did_in_each_of_them():
    owner = machine()
    owner.state("working", BEGIN, BEGIN + 12 * HOUR, device="n1-gpu0")
    owner.state("free", BEGIN + 12 * HOUR, BEGIN + DAY, device="n1-gpu0")
    owner.state("free", BEGIN, BEGIN + DAY, device="n1-gpu1")
    for hour in range(24):
        at = BEGIN + hour * HOUR
        reads(owner, "node:n1", (5 if hour < 12 else 2) * KWH, at, at + HOUR)
    assert by_device(taken(owner, "2026-02-01")) == {
        "n1-gpu0": 12 * 4 * KWH + 12 * KWH, "n1-gpu1": 12 * KWH + 12 * KWH,
    }  # fmt: skip


def test_counters_of_gpus_alone_are_not_what_a_machine_takes():
    owner = machine(1)
    owner.state("working", BEGIN, BEGIN + DAY)
    reads(owner, "device:n1-gpu0", KWH, BEGIN, BEGIN + DAY, "gpu")
    assert taken(owner, "2026-02-01").metered_j == 0
    assert taken(owner, "2026-02-01").estimated_j == 24 * 400 * 3600


def test_two_inlets_are_added_and_half_of_them_is_no_machine():
    owner = machine()
    for meter in ("a", "b"):
        reads(owner, "node:n1", KWH, BEGIN, BEGIN + HOUR, meter=meter)
        reads(owner, "node:n1", KWH, BEGIN + 2 * HOUR, BEGIN + 3 * HOUR, meter=meter)
    reads(owner, "node:n1", KWH, BEGIN + HOUR, BEGIN + 2 * HOUR, meter="a")
    found = taken(owner, "2026-02-01")
    assert found.metered_j == 4 * KWH  # the hour of which b says nothing is estimated
    assert found.metered_us == 2 * 2 * HOUR


def test_another_meter_after_the_first_one_and_a_worse_place_where_the_best_is_silent():
    owner = machine()
    reads(owner, "node:n1", KWH, BEGIN, BEGIN + HOUR, meter="old")
    reads(owner, "node:n1", KWH, BEGIN + 2 * HOUR, BEGIN + 3 * HOUR, meter="new")
    reads(owner, "node:n1", 7 * KWH, BEGIN, BEGIN + 24 * HOUR, "bmc", meter="bmc")
    found = taken(owner, "2026-02-01")
    assert found.metered_j == 2 * KWH + 22 * 7 * KWH // 24
    assert found.estimated_j == 0


def test_the_part_of_a_reading_that_stands_on_nothing_is_estimated():
    owner = machine(1)
    owner.state("working", BEGIN, BEGIN + DAY)
    reads(owner, "node:n1", 3 * KWH, BEGIN, BEGIN + DAY, covered=DAY // 4)
    found = taken(owner, "2026-02-01")
    assert found.metered_j == 3 * KWH
    assert found.estimated_j == 18 * 400 * 3600


def test_a_meter_of_the_site_says_what_is_left_for_the_machines_without_one():
    owner = machine(1).sets_up(1, node="n2")
    owner.term("site:s", "pue", "1.5")
    reads(owner, "node:n1", 4 * KWH, BEGIN, BEGIN + DAY)
    reads(owner, "site:s", 10 * KWH, BEGIN, BEGIN + DAY, meter="house")
    reads(owner, "site:s", KWH, BEGIN, BEGIN + DAY, "cooling", meter="air")
    assert by_device(taken(owner, "2026-02-01")) == {"n1-gpu0": 4 * KWH, "n2-gpu0": 5 * KWH}
    sheet = owner.pnl("2026-02-01").total
    assert sheet.number("cost.electricity") == 9 * Fraction("0.25")
    assert sheet.number("cost.cooling") == Fraction("0.25")  # its meter, and no PUE beside it


def test_a_meter_before_a_machine_without_a_gpu_is_told_as_beside_every_gpu():
    owner = machine(1)
    owner.says(type(owner.record.nodes[0].value)(node="n2", site="s"))
    reads(owner, "node:n2", 2 * KWH, BEGIN, BEGIN + DAY)
    found = taken(owner, "2026-02-01")
    assert [(each.about, each.joules) for each in found.lost] == [("node:n2", 2 * KWH)]
    sheet = next(row for row in owner.pnl("2026-02-01").rows if row.object.startswith("n2/"))
    assert sheet.number("cost.electricity") == Fraction("0.5")


def two_prices(owner: Owner, export: str | None = None) -> None:
    every = {"months": tuple(range(1, 13)), "weekdays": tuple(range(7))}
    bands = tuple(
        TariffBand(name=name, hours=hours, per_kwh=price, export_per_kwh=export, **every)
        for name, hours, price in (
            ("night", tuple(range(12)), "0.1"), ("day", tuple(range(12, 24)), "0.5"),
        )
    )  # fmt: skip
    owner.says(
        Tariff(name="t", site="s", currency="EUR", zone="UTC", bands=bands, tiers=(), tax_included=True,
               standing_per_day="1", standing_per_month=None, demand_per_kw_month=None),
        day("2026-01-01"), grade=Grade.LISTED,
    )  # fmt: skip


def test_energy_is_priced_by_the_hour_in_which_it_was_used_and_standing_charges_apart():
    owner = machine(1)
    two_prices(owner)
    owner.state("working", BEGIN, BEGIN + 12 * HOUR)  # by watts: 4.8 kWh at night
    owner.state("free", BEGIN + 12 * HOUR, BEGIN + DAY)  # 1.2 kWh by day
    reads(owner, "node:n1", 3 * KWH, BEGIN + 11 * HOUR, BEGIN + 13 * HOUR)  # half of it each
    sheet = owner.pnl("2026-02-01").total
    night, noon = Fraction("4.4"), Fraction("1.1")
    assert (
        sheet.number("cost.electricity")
        == (night + Fraction("1.5")) / 10 + (noon + Fraction("1.5")) / 2
    )
    assert sheet.number("cost.standing") == 1
    assert "tariff t" in sheet["cost.electricity"].method


def test_own_solar_power_costs_what_it_would_have_earned():
    owner = machine(1)
    two_prices(owner, export="0.08")
    owner.state("working", BEGIN, BEGIN + DAY)  # 400 W
    reads(owner, "site:s", 2 * KWH, BEGIN + 12 * HOUR, BEGIN + 14 * HOUR, "solar", meter="roof")
    sheet = owner.pnl("2026-02-01").total
    used = Fraction(8, 10)  # of the 2 kWh; the rest went to the grid
    dear = Fraction(48, 10)
    expected = dear / 10 + (dear - used) / 2 + used * Fraction("0.08")
    assert sheet.number("cost.electricity") == expected


def test_carbon_is_a_figure_where_a_factor_is_given_and_unknown_otherwise():
    owner = machine(1)
    owner.state("working", BEGIN, BEGIN + DAY)
    assert owner.pnl("2026-02-01").total["carbon"].value is None
    owner.term("site:s", "carbon", "250")
    owner.term("site:s", "pue", "1.5")
    assert owner.pnl("2026-02-01").total.number("carbon") == Fraction("9.6") * Fraction("1.5") / 4


def test_a_bill_with_its_energy_gives_the_price_where_no_tariff_does():
    owner = Owner().sets_up(1)
    owner.term("node:n1", "idle_power_w", "100")
    owner.term("node:n1", "load_power_w", "100")
    bill = CostBill(number="1", about="site:s", sort="electricity", what="", amount="30", tax=None,
                    currency="EUR", energy_j=100 * KWH, due=None)  # fmt: skip
    owner.says(bill, BEGIN, day("2026-03-01"))
    assert owner.sheet().number("cost.electricity") == Fraction(28 * 24, 10) * Fraction("0.3")
    two_prices(owner)
    assert owner.sheet().number("cost.electricity") == Fraction(28 * 24, 10) * Fraction("0.3")


@st.composite
def metered_owners(draw: st.DrawFn) -> Owner:
    """Machines with plugs, counters, a house meter, cooling and sun, each with gaps of any size."""
    owner = Owner(zone=draw(st.sampled_from(("UTC", "Europe/Paris"))))
    owner.sets_up(draw(st.integers(1, 3))).sets_up(draw(st.integers(0, 2)), node="n2")
    owner.says(_asset("n1", "100"), day("2026-01-10"))
    if draw(st.booleans()):
        two_prices(owner, draw(st.sampled_from((None, "0.08"))))
    if draw(st.booleans()):
        owner.term("site:s", "pue", "1.37", from_us=BEGIN + 5 * DAY)
    places = st.sampled_from(("node:n1", "node:n2", "site:s", "device:n1-gpu0", "device:n2-gpu1"))
    for _ in range(draw(st.integers(0, 12))):
        about = draw(places)
        scopes = {
            "d": ("gpu", "wall"),
            "s": ("wall", "cooling", "solar"),
            "n": ("wall", "pdu", "bmc"),
        }
        begins = BEGIN + draw(st.integers(-40, 700)) * HOUR + draw(st.integers(0, HOUR))
        ends = begins + draw(st.integers(1, 90 * HOUR))
        joules = draw(st.integers(0, 10**9))
        covered = draw(st.sampled_from((None, (ends - begins) // 3, 0)))
        scope = draw(st.sampled_from(scopes[about[0]]))
        reads(owner, about, joules, begins, ends, scope, draw(st.sampled_from("ab")), covered)
    for _ in range(draw(st.integers(0, 5))):
        begins = BEGIN + draw(st.integers(-40, 700)) * HOUR
        state = draw(st.sampled_from(("working", "down", "free")))
        owner.state(state, begins, begins + draw(st.integers(1, 90)) * HOUR, channel="vast")
    return owner


@settings(max_examples=60, deadline=None)
@given(metered_owners())
def test_what_meters_read_is_what_was_given_to_devices_and_lost(owner):
    assert not list(energy_breaches(owner.record, "s", owner.period("2026-02")))
    made = account(owner.record, "s", owner.period("2026-02"))
    assert not list(account_breaches(made))
    for by in BY:
        assert not list(statement_breaches(owner.pnl(by=by)))


@settings(max_examples=40, deadline=None)
@given(metered_owners(), st.integers(BEGIN + 1, day("2026-03-01") - 1))
def test_what_meters_read_adds_up_over_any_cut_of_time(owner, cut):
    def read(begins: int, ends: int) -> tuple[int, int]:
        period = type(owner.period("2026-02"))(from_us=begins, to_us=ends, name="", zone="UTC")
        grid = grid_of(owner.record, "s", period)
        found = energy_of(owner.record, grid, PriceBook(owner.record, "s", begins, ends))
        return sum(found.read_j.values()), sum(part.joules for _, part in found.cooling)

    ends = day("2026-03-01")
    whole, parts = read(BEGIN, ends), [read(BEGIN, cut), read(cut, ends)]
    assert whole[1] == sum(part[1] for part in parts)
    # Each cut of what is left for machines without a meter may hide at most a joule a part.
    assert abs(whole[0] - sum(part[0] for part in parts)) <= 2
