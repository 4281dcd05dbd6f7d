"""What a host showed, held to what was promised: bounds, names, offers, runs, and the law."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from fractions import Fraction

import pytest

from ouvrage.adapters.catalogues.forms import read_catalogue
from ouvrage.adapters.catalogues.rows import Context
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.ledger.kinds import fact_of, read
from ouvrage.metering.run_view import RunView
from ouvrage.model.gpus import RunDevice, RunGpuWindow
from ouvrage.model.hosts import HostChecked, HostLine, HostReading, reading
from ouvrage.model.runs import Host, RunStarted
from ouvrage.pricing.market.host_checks import (
    check_fault,
    held_to,
    host_readings,
    notices,
    outcome_of,
    run_readings,
)
from ouvrage.pricing.market.host_text import check_json, headline, line_json, readings_in
from ouvrage.pricing.market.laws import HOST_CHECKS_STAND
from ouvrage.pricing.market.promises import promise, promised
from tests.support.facts import SOURCE, recorded

HOST = Host(
    cpu_model="AMD EPYC 7543 32-Core Processor",
    cpus_online=64,
    cpus_allowed=8,
    cpu_quota_ppm=None,
    memory_bytes=64 << 30,
    memory_limit_bytes=31 << 30,
    kernel="6.1.0",
)
CONTEXT = Context(catalogue="own", file="offers.json", read_on="2026-11-30")


def line(id: str, value: str, *found: HostReading) -> HostLine:
    return next(each for each in held_to([promise(id, value, "test")], found) if each.id == id)


def between(id: str, unit: str, low: str | None, high: str | None, part: str | None = None):
    bounds = (None if bound is None else Fraction(bound) for bound in (low, high))
    return reading(id, unit, "as a test says", *bounds, part=part)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        ("500", "500", "held"),
        ("450", "450", "held"),  # two measurements of one disk differ by a tenth
        ("449", "449", "broken"),
        ("480", None, "held"),
        ("100", None, "unknown"),
        (None, "100", "broken"),
        (None, "600", "unknown"),
        ("100", "600", "unknown"),
        ("100", "449.9", "broken"),
        (None, None, "unknown"),
    ],
)
def test_a_promise_is_held_only_where_the_worse_bound_holds_it(low, high, outcome):
    found = line("disk.read", "500", between("disk.read", "MB/s", low, high))
    assert (found.outcome, found.operator, found.margin_percent) == (outcome, ">=", 10)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [("100", "100", "held"), ("110", "110", "held"), ("111", "111", "broken"),
     ("50", None, "unknown"), ("200", None, "broken"), (None, "90", "held"), (None, "200", "unknown")],
)  # fmt: skip
def test_an_upper_promise_is_the_other_way_round(low, high, outcome):
    found = line("disk.latency", "100", between("disk.latency", "us", low, high))
    assert (found.outcome, found.operator) == (outcome, "<=")


def test_nothing_read_nothing_promised_and_another_unit_are_unknown():
    assert line("net.down", "100").outcome == "unknown"
    (bare,) = held_to([], [between("disk.read", "MB/s", "5", "5")])
    assert (bare.promised, bare.outcome) == (None, "unknown")
    other = line("disk.read", "5", between("disk.read", "GB/s", "5", "5"))
    assert (other.outcome, other.reason) == ("unknown", "read in GB/s, promised in MB/s")


def test_several_gpus_are_as_good_as_the_worst():
    good, bad = (
        between("gpu.power_limit", "W", watts, watts, part)
        for watts, part in (("350", "GPU 0"), ("220", "GPU 1"))
    )
    found = line("gpu.power_limit", "350", good, bad)
    assert (found.outcome, found.part, found.low) == ("broken", "GPU 1", "220")
    assert line("gpu.power_limit", "350", good, good).outcome == "held"


@pytest.mark.parametrize(
    ("sold", "driver", "memory_gib", "outcome"),
    [
        ("RTX3080", "NVIDIA GeForce RTX 3080", 10, "held"),
        ("RTX3080", "NVIDIA GeForce RTX 3060", 12, "broken"),
        ("H100", "NVIDIA H100 80GB HBM3", 80, "held"),
        ("H100", "NVIDIA H100 PCIe", 80, "broken"),
        ("A100-80GB", "NVIDIA A100 PCIe", 80, "held"),
        ("A100-80GB", "NVIDIA A100 PCIe", 40, "broken"),
        ("RTX4090", "NVIDIA GeForce RTX 4090 D", 24, "unknown"),
        ("RTX4090", "NVIDIA GeForce GTX 1650", 4, "broken"),
        ("Some GPU", "some gpu", 4, "held"),
    ],
)
def test_a_gpu_is_known_by_its_name_and_its_memory(sold, driver, memory_gib, outcome):
    found = held_to(
        [promise("gpu.model", sold, "gpu")],
        [
            reading("gpu.model", "", "", text=driver, part="GPU 0"),
            reading("gpu.memory", "GiB", "", memory_gib, memory_gib, part="GPU 0"),
        ],
    )
    assert found[0].outcome == outcome


def test_a_cpu_is_known_by_words_that_stand_in_its_name():
    of = [each for each in host_readings(HOST) if each.id == "cpu.model"]
    assert line("cpu.model", "epyc 7543", *of).outcome == "held"
    assert line("cpu.model", "Xeon", *of).outcome == "broken"


def offers_of(rows: list[dict[str, object]]):
    return read_catalogue(json.dumps(rows), CONTEXT).offers


def test_an_offer_of_ones_own_promises_what_its_row_says():
    row = {
        "name": "box", "price": 0.30, "vcpus": 4, "ram": 16, "gpu": "RTX 3080", "disk": 200,
        "gpu_memory": 10, "disk_read_mb_s": 500, "pcie_generation": 4, "power_limit_w": 320.0,
        "cpu_model": " EPYC  7543 ", "net_down_mbit_s": 0,
    }  # fmt: skip
    (offer,) = offers_of([row])
    told = {each.id: (each.operator, each.value, each.unit) for each in promised(offer)}
    assert told == {
        "cpu.allowed": (">=", "4", "cores"),
        "cpu.delivered": (">=", "4", "cores"),
        "cpu.model": ("contains", "EPYC 7543", ""),
        "memory.limit": (">=", "16", "GiB"),
        "disk.size": (">=", "200", "GB"),
        "disk.read": (">=", "500", "MB/s"),
        "gpu.count": (">=", "1", ""),
        "gpu.model": ("is", "RTX3080", ""),
        "gpu.memory": (">=", "10", "GiB"),
        "gpu.pcie_generation": (">=", "4", ""),
        "gpu.power_limit": (">=", "320", "W"),
    }


def test_vasts_own_readings_are_promises_and_a_share_of_a_gpu_is_one_gpu():
    row = {
        "machine_id": 7, "gpu_name": "RTX 4090", "num_gpus": 1, "gpu_ram": 24564, "dph_total": 0.4,
        "cpu_cores_effective": 24, "cpu_ram": 64393, "disk_bw": 2545.29, "inet_down": 105.9,
        "inet_up": 77.7, "pci_gen": 4.0, "cpu_name": "AMD EPYC 7702",
    }  # fmt: skip
    (offer,) = offers_of([row])
    told = {each.id: each.value for each in promised(offer)}
    assert told["disk.read"] == "2545.29"
    assert (told["net.down"], told["net.up"]) == ("105.9", "77.7")
    assert (told["gpu.pcie_generation"], told["cpu.model"]) == ("4", "AMD EPYC 7702")
    share = {each.id: each.value for each in promised(replace(offer, gpus="0.5"))}
    assert share["gpu.count"] == "1"
    assert "gpu.memory" not in share
    assert promised(replace(offer, raw="[")) == promised(replace(offer, raw="[]"))


def test_a_promise_that_is_no_number_is_refused_with_its_place():
    parsed = read_catalogue('[{"name": "a", "price": 1, "disk_read_mb_s": "fast"}]', CONTEXT)
    assert not parsed.offers
    assert (
        parsed.faults[0].line == "offers.json:[0]   disk_read_mb_s: found 'fast', expected a number"
    )


RUN = "c" * 32
DEVICE = RunDevice(
    run=RUN, gpu=0, chosen=True, index=0, uuid="GPU-1", name="NVIDIA GeForce RTX 3080", serial=None,
    pci=None, driver="575", memory_bytes=10 << 30, power_limit_mw=220_000,
    power_limit_default_mw=320_000, clock_sm_max_mhz=1710, pcie_generation_max=4, pcie_width_max=16,
    mig=0, ecc=None,
)  # fmt: skip
NONE_OF_A_WINDOW = dict.fromkeys(field.name for field in fields(RunGpuWindow)) | {
    "run": RUN, "gpu": 0, "from_us": 0, "to_us": 10_000_000, "covered_us": 10_000_000,
    "busy_covered_us": 10_000_000, "reasons": (), "pcie_width_min": 16,
}  # fmt: skip


def view(*windows: tuple[int, int], devices: tuple[RunDevice, ...] = (DEVICE,)) -> RunView:
    started = RunStarted(
        run=RUN, label=None, command=("true",), cwd="/", started_us=0, price=None, unit=None,
        period_us=1_000_000, host=replace(HOST, cpu_quota_ppm=3_500_000), meter="0",
    )  # fmt: skip
    cut = tuple(
        RunGpuWindow(
            **NONE_OF_A_WINDOW
            | {"index": n, "busy_us": busy * 100_000, "pcie_generation_min": generation}
        )
        for n, (busy, generation) in enumerate(windows)
    )
    return RunView(
        run=RUN, source=SOURCE, started=started, windows=(), marks=(), spans=(), ended=None,
        samples=None, keys={}, devices=devices, gpu_windows=cut,
    )  # fmt: skip


def generation(found: RunView, sold: str) -> tuple[str, str | None, str | None]:
    one = line("gpu.pcie_generation", sold, *run_readings(found))
    return one.outcome, one.low, one.high


def test_a_run_alone_can_be_held_to_an_offer():
    promises = [promise(id, value, "") for id, value in (
        ("cpu.allowed", "4"), ("memory.limit", "32"), ("gpu.model", "RTX3080"),
        ("gpu.power_limit", "320"), ("disk.read", "500"),
    )]  # fmt: skip
    found = {each.id: each for each in held_to(promises, run_readings(view((90, 4))))}
    assert (found["cpu.allowed"].outcome, found["cpu.allowed"].low) == ("broken", "3.5")
    assert (found["memory.limit"].outcome, found["memory.limit"].low) == ("held", "31")
    assert found["gpu.model"].outcome == "held"
    assert found["gpu.power_limit"].outcome == "broken"
    assert (found["disk.read"].outcome, found["disk.read"].reason) == ("unknown", "not read")
    assert not any(each.id.startswith("gpu.") for each in run_readings(view(devices=())))


def test_a_link_counts_while_its_card_is_busy():
    assert generation(view((90, 1), (90, 4)), "4") == ("held", "4", "4")
    assert generation(view((90, 1), (90, 3), (0, 1)), "4") == ("broken", "3", "3")
    assert generation(view((0, 1)), "4") == ("unknown", "1", "4")
    assert generation(view((0, 1)), "5") == ("broken", "1", "4")
    assert generation(view((0, 4)), "4") == ("held", "4", "4")
    assert generation(view(), "4")[0] == "unknown"


def test_the_first_busy_window_may_still_hold_the_reading_from_before_the_load():
    assert generation(view((0, 1), (90, 1), (0, 1)), "4") == ("unknown", "1", "4")


def test_what_stands_out_is_told_though_nobody_promised_otherwise():
    said = notices([*run_readings(view((90, 3), (90, 3))), reading("cpu.steal", "%", "", 7, 7)])
    assert said == [
        "GPU 0: GPU power limit 220 W, of 320 W that the card has",
        "GPU 0: PCIe generation 3, of 4 that the card has",
        "the hypervisor gave this machine's cores to others for 7 % of the time",
    ]
    assert (
        notices(run_readings(view((0, 1), devices=(replace(DEVICE, power_limit_mw=320_000),))))
        == []
    )


def checked(*readings: HostReading, **promises: str) -> HostChecked:
    told = tuple(promise(id.replace("__", "."), value, "") for id, value in promises.items())
    return HostChecked(
        check="d" * 32, machine=SOURCE, started_us=0, took_us=2_500_000, long=False, offer="box",
        provider="B", offer_fact=None, host=HOST, readings=readings, promises=told,
        lines=held_to(told, readings),
    )  # fmt: skip


def facts(value: HostChecked):
    return recorded(
        fact_of(
            value, source=SOURCE, id="x", subject=SOURCE, valid_from=0, valid_to=1,
            grade=Grade.MEASURED,
        )
    )  # fmt: skip


def test_a_recorded_check_must_say_what_its_readings_say():
    value = checked(between("disk.read", "MB/s", "400", "400"), disk__read="500")
    assert outcome_of(value.lines) == "broken"
    entries = facts(value)
    assert read(entries[0].fact) == value
    assert HOST_CHECKS_STAND.breaches(entries) == []
    kinder = replace(value, lines=(replace(value.lines[0], outcome="held"),))
    (breach,) = HOST_CHECKS_STAND.breaches(facts(kinder))
    assert breach.found == "its lines are not those of its readings and promises"
    assert check_fault(replace(value, readings=(replace(value.readings[0], low="x"),)))
    assert check_fault(replace(value, lines=(replace(value.lines[0], outcome="good"),)))


def test_a_check_in_words_and_as_json():
    value = checked(
        between("disk.read", "MB/s", "400", "400"), *host_readings(HOST),
        disk__read="500", cpu__allowed="8", net__up="10",
    )  # fmt: skip
    assert headline(value, Grade.MEASURED, False) == (
        "The host is not what was promised (B, box): disk read; not known: network up."
    )
    told = line_json(next(each for each in value.lines if each.id == "disk.read"), Grade.MEASURED)
    assert (told["actual"], told["promised"], told["operator"]) == (400, 500, ">=")
    assert (told["unit"], told["outcome"]) == ("MB/s", "broken")
    kept = json.loads(json.dumps(check_json(value, Grade.MEASURED)))
    assert readings_in(kept, "host.json") == (0, value.readings)
    for spoilt in ({}, [], kept | {"checked_at": 3}, kept | {"readings": [{"id": "x"}]}, kept | {
        "readings": [kept["readings"][0] | {"low": "1e999"}]
    }):  # fmt: skip
        with pytest.raises(OuvrageError) as refused:
            readings_in(spoilt, "host.json")
        assert refused.value.code == "host/unreadable"
