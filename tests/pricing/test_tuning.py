"""Which power limit is cheapest: by whose account, and when it cannot be told."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from ouvrage.base.energy_price import parse_energy_price
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.price import parse_price
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.metering.spool import read_spool
from ouvrage.pricing.tuning import Terms, Tuning, finer, tuning_of
from ouvrage.pricing.tuning_text import tuning_json, tuning_lines
from tests.support.runs import busy, end, ends, gpu, gpus, header, recorded, written

NOTHING = Terms(electricity=None, rate=None, price=None)
PAID = Terms(
    electricity=parse_energy_price("0.36/kWh").in_currency(None),
    rate=None,
    price=parse_price("3.60/h"),
)


def under(
    watts: int, seconds: float, *, units: int = 12, drawn: Any = None, **more: Any
) -> RunView:
    """A run of so many equal units after a first one, on a GPU that draws its limit."""
    number = more.pop("number", watts)
    # a little apart, or every value would tie with every other
    moments = [1 + seconds * n + 0.001 * (n % 3) for n in range(units + 1)]
    length = int(moments[-1]) + 2
    columns = {"power_average_mw": watts * 1000, "power_limit_mw": watts * 1000, "busy_percent": 90}
    columns |= {"power_average_mw": drawn} if drawn else {}
    lines = written(
        header(run=f"{number:032x}"),
        *busy(length),
        gpu(),
        *gpus(length, **(columns | more)),
        ends(*moments),
        end(length),
    )
    (view,) = run_views(recorded(lines)).values()
    return finer(view, read_spool(lines))


def test_the_owner_sets_less_and_the_renter_more() -> None:
    found = tuning_of([under(300, 3.0), under(600, 2.0)], PAID)
    low, high = found.settings
    assert (low.limit_w, high.limit_w) == (300, 600)
    assert float(low.seconds().median) == pytest.approx(3, abs=0.01)
    joules = low.joules()
    assert joules is not None
    assert float(joules.median) == pytest.approx(900, rel=0.01)
    assert joules.grade is Grade.MEASURED
    owner, renter = found.owner(), found.renter()
    assert owner is not None
    assert renter is not None
    assert (owner.setting.limit_w, owner.alike) == (300, ())
    assert (renter.setting.limit_w, renter.alike) == (600, ())
    # 900 J at 0.36/kWh, and 2 s at 3.60/h
    assert float(owner.spread.median) == pytest.approx(900 * 1e-7, rel=0.01)
    assert float(renter.spread.median) == pytest.approx(0.002, rel=0.01)
    assert owner.spread.grade is renter.spread.grade is Grade.ASSUMED
    lines = tuning_lines(found, plain=True)
    assert lines[0] == (
        "A finished epoch is cheapest at 300 W for the owner, at 600 W for the renter."
    )
    assert "  owner   one epoch costs 25 % to 25 % less at 300 W than at 600 W" in lines
    assert "  renter  one epoch costs 33 % to 33 % less at 600 W than at 300 W" in lines


def test_an_hourly_rate_moves_the_owner_towards_speed() -> None:
    views = [under(300, 3.0), under(600, 2.0)]
    owner = tuning_of(views, PAID).owner()
    amortised = tuning_of(views, replace(PAID, rate=parse_price("3.60/h"))).owner()
    assert owner is not None
    assert amortised is not None
    assert (owner.setting.limit_w, amortised.setting.limit_w) == (300, 600)


def test_without_prices_it_is_energy_against_time() -> None:
    found = tuning_of([under(300, 3.0), under(600, 2.0)], NOTHING)
    owner, renter = found.owner(), found.renter()
    assert owner is not None
    assert renter is not None
    assert (owner.setting.limit_w, renter.setting.limit_w) == (300, 600)
    said = tuning_json(found)
    assert said["limits"][0]["owner_cost_per_unit"] is None
    assert said["cheapest"]["renter"]["power_limit_w"] == 600


def test_what_cannot_be_told_apart_is_said() -> None:
    alike = tuning_of([under(300, 2.0), under(301, 2.0, number=7)], PAID).renter()
    assert alike is not None
    assert alike.setting.limit_w == 301  # a tie goes to the faster card
    assert alike.alike == (300,)
    few = tuning_of([under(300, 3.0, units=2), under(600, 2.0, units=2)], PAID)
    owner = few.owner()
    assert owner is not None
    assert owner.why_alike is not None
    assert "too few" in owner.why_alike
    assert "not distinguishable" in tuning_lines(few, plain=False)[0]


def test_short_units_are_taken_together() -> None:
    (setting,) = tuning_of([under(400, 0.4, units=40)], PAID).settings
    assert len(setting.times) == 40
    assert [block.units for block in setting.blocks] == [8] * 5
    joules = setting.joules()
    assert joules is not None
    assert float(joules.median) == pytest.approx(160, rel=0.01)


def test_energy_that_was_hardly_read_is_unknown_and_not_nothing() -> None:
    dumb = under(300, 3.0, drawn=lambda second: None)
    found = tuning_of([dumb, under(600, 2.0)], PAID)
    assert found.settings[0].joules() is None
    owner = found.owner()
    assert owner is not None
    assert owner.setting.limit_w == 600
    row = next(line for line in tuning_lines(found, plain=True) if line.startswith("  300 W"))
    assert "not known" in row
    nobody = tuning_of([dumb], PAID)
    assert nobody.owner() is None
    assert tuning_lines(nobody, plain=True)[0].startswith("What the owner should set is not known")


def test_energy_read_in_most_of_the_time_is_assumed() -> None:
    holes = under(300, 3.0, units=40, drawn=lambda second: None if second % 50 == 7 else 300_000)
    (setting,) = tuning_of([holes], PAID).settings
    joules = setting.joules()
    assert joules is not None
    assert float(joules.median) == pytest.approx(900, rel=0.01)
    assert len(joules.values) < len(
        setting.blocks
    )  # a block with a hole of two seconds is not read


def test_a_run_whose_limit_changed_stands_under_none() -> None:
    moved = under(300, 3.0, power_limit_mw=lambda second: 300_000 if second < 9 else 700_000)
    found = tuning_of([moved, under(600, 2.0)], PAID)
    assert [setting.limit_w for setting in found.settings] == [600]
    (left,) = found.left_out
    assert left.why == "its power limit changed"
    assert any("left out" in line for line in tuning_lines(found, plain=True))
    with pytest.raises(OuvrageError, match="no run can be compared"):
        tuning_of([moved], PAID)


def test_repeated_runs_are_one_setting() -> None:
    runs = [under(300, 3.0, number=n) for n in (1, 2)]
    (setting,) = tuning_of(runs, PAID).settings
    assert len(setting.runs) == 2
    assert len(setting.times) == 24


def test_a_command_that_is_itself_the_unit() -> None:
    lines = written(
        header(), *busy(20), gpu(),
        *gpus(20, power_average_mw=100_000, power_limit_mw=250_000), end(20),
    )  # fmt: skip
    (view,) = run_views(recorded(lines)).values()
    (setting,) = tuning_of([finer(view, read_spool(lines))], PAID).settings
    assert setting.times == (Fraction(20),)
    joules = setting.joules()
    assert joules is not None
    assert joules.median == 2000


def test_everything_in_json_is_exact_and_named() -> None:
    found: Tuning = tuning_of([under(300, 3.0), under(600, 2.0)], PAID)
    said = tuning_json(found)
    assert said["currency"] == "EUR"
    first = said["limits"][0]
    assert first["power_limit_w"] == 300
    assert isinstance(first["joules_per_unit"]["median"], Fraction)
    assert "average-power" in first["energy_method"]
    assert Fraction(98, 100) <= first["energy_coverage"] <= 1
