"""What the books need of a proven machine: floor, headroom and heat, and that none of it is known without a meter."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ouvrage.adapters.audit_tables import need_table
from ouvrage.base.grades import Grade
from ouvrage.books.known import Known
from ouvrage.books.proven import Owned, figures, headroom
from ouvrage.books.record import OwnerRecord
from ouvrage.health.service_level import Promise
from ouvrage.model.hosts import HostReading, reading
from ouvrage.model.sites import Node, Site, Term
from tests.support.proofs import AT_US

BOUNDS = need_table().bounds
NOTHING = Promise(percent=None, how="no record")


def _known(value: Any) -> Known[Any]:
    return Known(value=value, valid_from=0, valid_to=None, grade=Grade.REPORTED, key="k", said_by="the owner")  # fmt: skip


def _owned(channel: str | None = None, **terms: str) -> Owned:
    """A machine at a site; ``terms`` as ``site_electricity="0.30"``."""
    held: dict[tuple[str, str], tuple[Any, ...]] = {}
    for word, value in terms.items():
        sort, _, name = word.partition("_")
        about = {"site": "site:home", "node": "node:rig", "channel": f"channel:{channel}"}[sort]
        held[about, name] = (_known(Term(about=about, name=name, value=value, unit="x", said_by="the owner")),)  # fmt: skip
    record = OwnerRecord(
        sites=(_known(Site(site="home", currency="EUR", zone="UTC")),),
        nodes=(_known(Node(node="rig", site="home")),),
        terms=held,
        placed={}, inside={}, homes={"rig": (_known(Node(node="rig", site="home")),)},
    )  # fmt: skip
    return Owned(record=record, node="rig", site="home", currency="EUR", channel=channel, at_us=AT_US)  # fmt: skip


def _wall(mean: int, most: int) -> list[HostReading]:
    return [reading("power.wall", "W", "the plug", mean, mean), reading("power.wall_most", "W", "the plug", most, most)]  # fmt: skip


def _value(found: Any, name: str) -> tuple[str | None, str, str]:
    return next((f.value, f.grade, f.how) for f in found if f.name == name)


def test_the_floor_is_power_with_cooling_over_what_the_channel_leaves():
    owned = _owned("vast", site_electricity="0.25", site_pue="1.4", channel_fee="0.20")
    floor = _value(figures(_wall(800, 900), owned, NOTHING), "price_floor")
    assert floor[:2] == ("0.35", "reported")  # 0.8 x 0.25 x 1.4 / 0.8
    assert floor[2] == "0.8000 kWh/h x 0.25 EUR/kWh x PUE 1.4, / 0.8 that vast leaves"
    own = _value(figures(_wall(800, 900), _owned(site_electricity="0.25"), NOTHING), "price_floor")
    assert own[:2] == ("0.2", "assumed"), "a PUE that nobody stated is assumed"


def test_without_a_meter_a_book_or_a_price_it_is_not_known():
    owned = _owned(site_electricity="0.25")
    none = [reading("power.wall", "W", "no meter"), reading("power.wall_most", "W", "no meter")]
    for found in (figures(none, owned, NOTHING), figures([], owned, NOTHING)):
        assert {each.value for each in found} == {None}
        assert all(each.how for each in found)
    assert "ouvrage init" in _value(figures(_wall(1, 1), None, NOTHING), "price_floor")[2]
    all_kept = _owned("x", site_electricity="0.25", channel_fee="1")
    assert _value(figures(_wall(1, 1), all_kept, NOTHING), "price_floor")[2] == "the channel keeps everything"  # fmt: skip


def test_supplies_and_circuit_are_held_to_the_most_that_was_read():
    owned = _owned(node_psu_w="1000", site_circuit_w="1000")
    found = {each.id: each for each in headroom(_wall(700, 850), owned, BOUNDS)}
    assert found["power.psu_left"].low == "150"
    assert Fraction(found["power.circuit_left"].low or 0) == -50, "four fifths of a circuit for hours"  # fmt: skip
    unknown = {each.id: each.low for each in headroom(_wall(700, 850), _owned(), BOUNDS)}
    assert unknown == {"power.psu_left": None, "power.circuit_left": None}


def test_what_can_be_promised_goes_in_as_it_is():
    found = figures([], None, Promise(percent=Fraction("99.5"), how="a year"))
    assert _value(found, "service_level") == ("99.5", "measured", "a year")
