"""What is drawn from facts for the parts of a unit's cost that no run shows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ouvrage.base.canonical import canonical
from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY, utc_us
from ouvrage.books.known import Known
from ouvrage.books.record import OwnerRecord, owner_record
from ouvrage.books.unit_parts import Chosen, Drawn, devices_of, drawn
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.model.focus import FocusCharge
from ouvrage.model.offers import ExchangeRate
from ouvrage.model.sites import DevicePlaced
from ouvrage.pricing.campaign import Campaign, campaign_of
from tests.books.owner import Owner, day
from tests.support.runs import (
    AS_OF,
    CHEAP,
    Line,
    busy,
    end,
    ends,
    gpu,
    gpus,
    header,
    recorded,
    written,
)

ELECTRICITY: Line = {"k": "electricity", "amount": "0.25", "currency": "EUR"}
NOTHING = owner_record(())


def a_run(*lines: Line, **changes: Any) -> RunView:
    """A run of 40 seconds."""
    (view,) = run_views(
        recorded(written(header(price=CHEAP, **changes), *busy(40), *lines, end(40)))
    ).values()
    return view


def of(*views: RunView) -> Campaign:
    return campaign_of("spring", views, (), AS_OF)


def charge(
    service: str, cost: str | None, *, currency: str = "EUR", **columns: str
) -> Known[FocusCharge]:
    tags = canonical({"Campaign ": "spring"})
    value = FocusCharge(
        provider="Cloud", category="Usage", charge_class=None, currency=currency, billed="1", effective=cost,
        listed=None, contracted=None, list_unit_price=None, pricing_quantity=None, pricing_unit=None,
        consumed_quantity=None, columns=canonical({"ServiceCategory": service, "Tags": tags, **columns}),
    )  # fmt: skip
    at = utc_us("2025-11-30T00:00:00Z")
    return Known(
        value=value,
        valid_from=at,
        valid_to=at + DAY,
        grade=Grade.METERED,
        key=f"k/{service}/{cost}",
    )


def part(found: tuple[Drawn, ...], name: str) -> Drawn:
    (one,) = (each for each in found if each.part == name)
    return one


def test_a_run_s_own_meters_at_its_own_price_are_its_energy():
    watts = gpus(40, 0, energy_mj=lambda t: 300 * 1000 * t, busy_percent=50)
    view = a_run(gpu(0), *watts, ELECTRICITY, ends(10, 20))
    found = part(drawn(of(view), NOTHING, (), Chosen())[0], "energy")
    assert found.amount == Fraction(300 * 40, 3_600_000) / 4
    assert "what was metered" in found.method
    assert found.facts


def test_energy_of_which_one_attempt_s_is_not_known_is_not_known():
    watts = gpus(40, 0, energy_mj=lambda t: 300 * 1000 * t, busy_percent=50)
    metered, silent = a_run(gpu(0), *watts, ELECTRICITY), a_run(run="0" * 31 + "2")
    found = part(drawn(of(metered, silent), NOTHING, (), Chosen())[0], "energy")
    assert found.amount is None
    assert "it has no price of energy and stood on no GPU of the books" in found.why


def owner_with(device: str, slot: int | None = None) -> OwnerRecord:
    owner = Owner().sets_up(0)
    owner.says(
        DevicePlaced(device=device, node="n1", model="RTX 4090", slot=slot), day("2024-01-01")
    )
    return owner.record


def test_a_gpu_is_known_by_its_uuid_by_its_index_in_a_named_machine_or_as_all_of_it():
    view = a_run(gpu(0))
    uuid = view.devices[0].uuid
    assert uuid
    at = view.started.started_us
    assert devices_of(view, owner_with(uuid), None) == ({uuid}, "n1", False)
    assert devices_of(view, owner_with("mine", 0), "n1") == ({"mine"}, "n1", False)
    assert devices_of(view, owner_with("mine"), "n1") == ({"mine"}, "n1", True)
    assert devices_of(view, owner_with("mine"), None)[0] == frozenset()
    assert at > day("2024-01-01")


def test_a_charge_in_another_currency_needs_a_rate_and_one_without_a_cost_is_unknown():
    view = a_run()
    dollars = [charge("Storage", "2", currency="USD")]
    lacking = part(drawn(of(view), NOTHING, dollars, Chosen())[0], "storage")
    assert lacking.amount is None
    assert "no rate into EUR is known" in lacking.why
    owner = Owner()
    owner.says(
        ExchangeRate(base="EUR", quote="USD", rate="1.25", day="2025-11-28", said_by="me"),
        day("2025-11-28"),
    )
    assert part(drawn(of(view), owner.record, dollars, Chosen())[0], "storage").amount == Fraction(
        8, 5
    )
    listed = [charge("Storage", None), charge("Storage", "2")]
    assert part(drawn(of(view), NOTHING, listed, Chosen())[0], "storage").amount == 3


@pytest.mark.parametrize("tags", ["NULL", "not json", "[1]", '{"campaign": "autumn"}'])
def test_charges_of_others_are_no_part(tags: str):
    found, beside = drawn(of(a_run()), NOTHING, [charge("Storage", "2", Tags=tags)], Chosen())
    assert [each.part for each in found] == ["energy"]
    assert beside.charges == 0
