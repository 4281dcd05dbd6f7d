"""From an empty home to what one accepted unit costs, with storage, traffic, energy and tax from facts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.blackbox.spools import price, run_id, spool

FOCUS = """BilledCost,EffectiveCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ServiceCategory,ServiceName,CommitmentDiscountStatus,ResourceId,Tags,ProviderName
3.10,3.10,EUR,Usage,2025-11-30T00:00:00Z,2025-12-01T00:00:00Z,Storage,Disks,,disk-1,"{""campaign"": ""spring""}",Cloud
0.40,0.40,EUR,Usage,2025-11-30T00:00:00Z,2025-12-01T00:00:00Z,Networking,Egress,,nat-1,"{""campaign"": ""spring""}",Cloud
0.00,1.25,EUR,Usage,2025-11-30T00:00:00Z,2025-12-01T00:00:00Z,Compute,Machines,Unused,plan-1,"{""campaign"": ""spring""}",Cloud
0.70,0.70,EUR,Tax,2025-11-01T00:00:00Z,2025-12-01T00:00:00Z,Other,VAT,,,"{""campaign"": ""spring""}",Cloud
9.00,9.00,EUR,Usage,2025-11-30T00:00:00Z,2025-12-01T00:00:00Z,Compute,Machines,,vm-1,"{""campaign"": ""spring""}",Cloud
24.00,24.00,EUR,Usage,2025-11-30T00:00:00Z,2025-12-01T00:00:00Z,Storage,Disks,,disk-2,,Cloud
5.00,5.00,EUR,Usage,2025-11-30T00:00:00Z,2025-12-01T00:00:00Z,Storage,Disks,,disk-3,"{""campaign"": ""autumn""}",Cloud
"""  # fmt: skip
BILLS = """number,sort,about,amount,tax,currency,from,to,kwh,due
E-2025-11,electricity,site:garage,160,30.40,EUR,2025-11-01,2025-11-30,1000,2025-12-20
"""
SET_UP = (
    ("init", "--currency", "EUR", "--site", "garage", "--zone", "UTC", "--node", "node-3", "--gpus", "2",
     "--model", "RTX 4090", "--price", "3600", "--bought", "2025-10-01", "--life-months", "36"),
    ("own", "term", "node:node-3", "load_power_w", "1000"),
    ("own", "state", "node:node-3", "working", "--from", "2025-11-01", "--to", "2025-12-01"),
)  # fmt: skip
WALL = Fraction(36_002_500, 10_000)
"""Seconds of the run: one to start, 3599 of work, a quarter to end."""
ASK = ("books", "goodput", "--campaign", "spring")


@pytest.fixture
def spring(ouvrage: Home) -> Home:
    """A campaign of one run of an hour, in which four of four units were accepted."""
    run = run_id(1)
    ouvrage.holds(spool(run, [899.0, 900.0, 900.0, 900.0], label="one", rate=price("2.00")), run)
    for words in (
        ("campaign", "add", "spring", "one"),
        ("accept", "one", "--units", "4", "--why", "seen"),
    ):
        done = ouvrage.inside(*words)
        assert done.code == 0, done.out + done.err
    return ouvrage


def ask(home: Home, *more: str) -> dict[str, object]:
    done = home.inside(*ASK, *more, "--json")
    assert done.code == 0, done.out + done.err
    found: dict[str, object] = done.json
    return found


def amounts(found: dict[str, object]) -> dict[str, Fraction]:
    parts = found["parts"]
    assert isinstance(parts, dict)
    return {name: Fraction(text) for name, text in parts.items()}


def near(text: str, amount: Fraction) -> bool:
    """Whether decimal text is an amount, as far as its 28 digits go."""
    return abs(Fraction(text) - amount) < Fraction(1, 10**24)


def test_what_no_fact_says_is_unknown_with_its_reason_and_never_nothing(spring: Home):
    found = ask(spring)
    assert found["not_stated"] == ["reserved unused", "storage", "traffic", "energy", "tax"]
    assert not {"storage", "energy"} & amounts(found).keys()
    told = spring.inside(*ASK).out
    assert (
        "not known, and in no sum: reserved unused, storage, traffic, tax: no charge of it is tagged campaign=spring"
        in told
    )
    assert (
        "not known, and in no sum: energy: it has no price of energy and stood on no GPU of the books"
        in told
    )
    assert amounts(ask(spring, "--also", "storage=1.5"))["storage"] == Fraction("1.5")
    taxed = ask(spring, "--also", "storage=1.5", "--also", "tax=8.5%")
    assert near(str(amounts(taxed)["tax"]), (2 * WALL / 3600 + Fraction("1.5")) * Fraction("0.085"))


def test_charges_of_a_cloud_s_bill_are_the_parts_that_their_columns_say(
    spring: Home, tmp_path: Path
):
    (tmp_path / "focus.csv").write_text(FOCUS)
    assert spring.inside("focus", "import", "focus.csv").code == 0
    found = ask(spring)
    parts = amounts(found)
    assert {name: parts[name] for name in ("storage", "traffic", "reserved unused", "tax")} == {
        "storage": Fraction("3.1"), "traffic": Fraction("0.4"), "reserved unused": Fraction("1.25"),
        "tax": Fraction("0.7"),
    }  # fmt: skip
    assert found["not_stated"] == ["energy"]
    assert found["billed_beside"] == {"charges": 1, "amount": "9"}
    sources = found["sources"]
    assert isinstance(sources, list)
    assert {each["grade"] for each in sources} == {"metered"}
    assert all(len(each["facts"]) == 1 for each in sources)
    # an hour and a quarter of a second at 2.00, of which a part is a fraction without end
    assert near(str(found["total"]), Fraction("5.45") + 2 * WALL / 3600)
    assert near(str(found["cost_per_accepted_unit"]), Fraction(str(found["total"])) / 4)
    told = spring.inside(*ASK).out
    assert "effective cost of 1 charge of a cloud's bill ◐" in told
    assert "1 more charge of it, 9.00 EUR, in no part: the runs have prices of their own" in told
    named = amounts(ask(spring, "--charges", "ResourceId=disk-2"))
    assert near(str(named["storage"]), Fraction("3.1") + 24 * WALL / 86_400)
    taxed = ask(spring, "--also", "tax=20%")
    assert near(str(taxed["total"]), Fraction("5.45") + Fraction("1.2") * 2 * WALL / 3600)
    assert (
        "20 % of the machines' price that nobody gives back"
        in spring.inside(*ASK, "--also", "tax=20%").out
    )
    both = amounts(ask(spring, "--also", "storage=1"))
    assert both["storage"] == Fraction("4.1")
    assert not set(spring.inside(*ASK, "--plain").out) & set("●◐○◌")


def test_energy_and_its_tax_come_from_the_books_of_the_machine(spring: Home, tmp_path: Path):
    (tmp_path / "bills.csv").write_text(BILLS)
    for words in (*SET_UP, ("import", "bills", "bills.csv")):
        done = spring.inside(*words)
        assert done.code == 0, done.out + done.err
    assert ask(spring)["not_stated"] == ["reserved unused", "storage", "traffic", "energy", "tax"]
    assert "(--on NODE says on which machine)" in spring.inside(*ASK).out
    found = ask(spring, "--on", "node-3")
    energy = amounts(found)["energy"]
    assert abs(energy - 2 * 1000 * WALL / 3_600_000 * Fraction("0.16")) < Fraction(1, 10**8)
    assert amounts(found)["tax"] == energy * Fraction("30.40") / 160
    assert found["grade"] == "assumed"
    told = spring.inside(*ASK, "--on", "node-3").out
    assert "by the books:" in told
    assert "the run's price is taken to be without it" in told
    assert "tax of the bills behind the energy, in proportion" in told


def test_energy_on_a_rented_machine_is_in_the_rent(spring: Home):
    for words in (
        ("rental", "start", "--label", "gpu", "--price", "3/h", "--since", "2025-11-30T10:00:00Z", "--elsewhere",
         "--campaign", "spring"),
        ("rental", "add", "gpu", "one"),
        ("rental", "stop", "gpu", "--at", "2025-11-30T13:00:00Z"),
    ):  # fmt: skip
        done = spring.inside(*words)
        assert done.code == 0, done.out + done.err
    parts = amounts(ask(spring))
    assert parts["energy"] == 0
    assert "taken to be in the rent of a rented machine" in spring.inside(*ASK).out


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--charges", "disk-1"), "goodput/charges"),
        (("--on", "node-9"), "goodput/node"),
        (("--also", "luck=1"), "goodput/also"),
        (("--also", "storage=5%"), "goodput/also"),
    ],
)
def test_what_names_nothing_is_refused(spring: Home, more: tuple[str, ...], code: str):
    done = spring.inside(*ASK, *more)
    assert done.code == 2
    assert f"error[{code}]" in done.err
    assert "hint:" in done.err


TARIFF = """name = "day-and-night"
from = 2025-10-01
[[band]]
name = "day"
hours = "6-22"
per_kwh = "0.30"
[[band]]
name = "night"
hours = "22-6"
per_kwh = "0.10"
"""
PLUG = """time,kwh
2025-11-30T10:00:00Z,100.0
2025-11-30T11:00:00Z,101.2
2025-11-30T12:00:00Z,102.4
"""


def test_the_meter_of_the_machine_and_its_tariff_give_the_energy_of_a_run(
    spring: Home, tmp_path: Path
):
    (tmp_path / "tariff.toml").write_text(TARIFF)
    (tmp_path / "plug.csv").write_text(PLUG)
    for words in (
        *SET_UP,
        ("own", "tariff", "tariff.toml"),
        (
            "import",
            "plug",
            "plug.csv",
            "--meter",
            "wall",
            "--about",
            "node:node-3",
            "--unit",
            "kWh",
        ),
    ):
        done = spring.inside(*words)
        assert done.code == 0, done.out + done.err
    found = ask(spring, "--on", "node-3")
    assert near_to(amounts(found)["energy"], Fraction("1.2") * WALL / 3600 * Fraction("0.30"))
    sources = found["sources"]
    assert isinstance(sources, list)
    (energy,) = (each for each in sources if each["part"] == "energy")
    assert (
        "read by a meter (wall), divided by watts x time x tariff day-and-night" in energy["method"]
    )
    assert "PUE" not in energy["method"]  # it is 1: nothing was added for cooling


def near_to(value: Fraction, wanted: Fraction) -> bool:
    """Whether an amount is another to the nano-unit and a little."""
    return abs(value - wanted) < Fraction(1, 10**7)
