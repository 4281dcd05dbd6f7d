"""Each form of catalogue with what its columns mean, which no header says."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from ouvrage.adapters.catalogues import google_pairs, gpuhunt, own, skypilot, vast
from ouvrage.adapters.catalogues.files import load_catalogue
from ouvrage.adapters.catalogues.rows import number_in
from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.model.offers import MarketReading
from ouvrage.pricing.market.filters import filtered
from ouvrage.pricing.market.gpus import MODELS, model_of, speed
from ouvrage.pricing.market.laws import READINGS_STAND
from ouvrage.pricing.market.listed import Listed, gpu_hourly, hourly
from ouvrage.pricing.market.lots import lots_of
from ouvrage.pricing.market.readings import (
    bands_of,
    changes,
    offer_facts,
    offer_id,
    percentile,
    reading_fact,
)

from . import catalogues as c


def test_amazon_has_a_row_for_each_zone_and_a_spot_price():
    found = c.parsed(c.AWS, "skypilot/aws")
    assert [(o.name, o.price, o.interruptible) for o in found.offers] == [
        ("g5.xlarge", "1.006", False),
        ("g5.xlarge", "0.41", True),
        ("p4d.24xlarge", "32.77", False),
        ("m5.large", "0.107", False),
        ("m5.large", "0.04", True),
    ]
    assert (found.rows, found.refused, found.faults) == (3, 0, [])
    first = found.offers[0]
    assert (first.provider, first.provider_kind, first.plan) == ("aws", "hyperscaler", "ec2-linux")
    assert (first.gpu, first.gpu_memory_mib, first.memory_mib) == ("A10G", 24576, 16384)
    assert (first.currency, first.tax, first.region) == ("USD", "unknown", "eu-west-1a")
    assert skypilot.NO_CURRENCY in first.quirks
    assert first.raw.startswith('{"AcceleratorCount":"1"')
    assert found.offers[2].gpu_memory_mib == 40960


def test_runpods_mib_are_gib_and_its_spot_price_is_its_price():
    found = c.parsed(c.RUNPOD, "skypilot/runpod")
    assert [o.gpu_memory_mib for o in found.offers] == [80 * 1024, 80 * 1024]
    assert not any(o.interruptible for o in found.offers)
    assert found.notes[skypilot.GIB_AS_MIB] == 2
    assert found.notes[skypilot.SPOT_IS_PRICE] == 2


def test_lambda_lists_every_type_in_every_region_and_does_not_multiply():
    found = c.parsed(c.LAMBDA, "skypilot/lambda")
    (offer,) = found.offers
    assert (offer.region, offer.gpu_memory_mib, offer.gpus) == (None, 16384, "8")
    assert (found.rows, found.merged, found.refused) == (3, 2, 0)
    assert skypilot.EVERY_REGION in found.notes
    assert skypilot.TOTAL_OF_ONE in found.notes


def test_vast_in_skypilots_form_states_the_sum_and_a_spot_price_of_nought():
    (offer,) = c.parsed(c.VAST_CSV, "skypilot/vast").offers
    assert (offer.gpu_memory_mib, offer.interruptible) == (143771, False)
    assert {skypilot.TOTAL_AS_ONE, skypilot.SPOT_IS_ZERO} <= set(offer.quirks)


def test_google_prices_host_and_gpu_in_rows_of_their_own():
    found = c.parsed(c.GCP, "skypilot/gcp")
    by = {(o.name, o.split, o.interruptible): o for o in found.offers}
    whole = by["a2-highgpu-1g", "node", False]
    assert whole.price == "3.67339"
    assert (whole.gpu, whole.gpus, whole.gpu_memory_mib, whole.vcpus) == ("A100", "1", 40960, "12")
    assert by["a2-highgpu-1g", "node", True].price == "1.26975"
    assert by["1x T4", "gpu", False].price == "0.35"
    assert by["n1-standard-4", "node", False].gpu is None
    assert by["a2-highgpu-1g", "host", False].price == "0.73948"
    assert found.notes[google_pairs.PAIRED] == 2


def test_googles_general_hosts_with_the_gpus_of_their_zone():
    found = c.parsed(c.GCP, "skypilot/gcp")
    whole = next(o for o in found.offers if o.name == "n1-standard-4 with 1x T4")
    assert (whole.price, whole.split, whole.region) == ("0.54", "node", "us-central1-a")
    assert (whole.gpu, whole.gpus, whole.gpu_memory_mib) == ("T4", "1", 15360)
    assert (whole.vcpus, whole.memory_mib) == ("4", 15360)
    assert "of which n1-standard-4 0.19 and 1x T4 0.35 USD an hour" in whole.quirks
    assert google_pairs.ATTACHED in whole.quirks
    assert len(json.loads(whole.raw)) == 2
    assert found.notes[google_pairs.ATTACHED] == 1


@pytest.mark.parametrize(
    ("host", "gpu", "zone", "may"),
    [
        ("n1-standard-16,,,16.0,60.0", "V100,1", "z", False),  # 12 vCPUs at most with one V100
        ("n1-standard-16,,,16.0,60.0", "V100,2", "z", True),
        ("n1-highmem-96,,,96.0,624.0", "V100,8", "z", True),
        ("n1-standard-96,,,96.0,360.0", "T4,1", "z", False),
        ("n1-standard-96,,,96.0,360.0", "T4,4", "z", True),
        ("n1-highmem-96,,,96.0,624.0", "P100,4", "z", False),
        ("n1-standard-4,,,4.0,15.0", "T4,3", "z", False),  # not a number in which they are sold
        ("n1-standard-4,,,,15.0", "T4,1", "z", False),  # unknown does not fit
        ("n1-standard-4,,,4.0,15.0", "T4,1", "other", False),
        ("n1-standard-4,,,4.0,15.0", "H100,1", "z", False),
        ("n2-standard-4,,,4.0,15.0", "T4,1", "z", False),
        ("g1-small,,,0.5,1.7", "T4,1", "z", False),
    ],
)
def test_only_hosts_that_may_have_such_gpus_are_joined_with_them(
    host: str, gpu: str, zone: str, may: bool
):
    rows = f"{host},r,,0.19,z,\n,{gpu},,,r,,0.35,{zone},\n"
    found = c.parsed(c.HEAD + rows, "skypilot/gcp").offers
    assert len(found) == (3 if may else 2)
    assert sum(o.split == "node" and o.gpu is not None for o in found) == may


def test_gpuhunts_rows_are_dollars_for_an_hour_of_the_instance():
    found = c.parsed(c.GPUHUNT, "gpuhunt/lambdalabs")
    assert [(o.name, o.price, o.interruptible, o.gpu) for o in found.offers] == [
        ("i1", "0.5", False, "A10"),
        ("i1", "0.2", True, "A10"),
        ("c1", "0.1", False, None),
    ]
    assert found.offers[0].provider == "lambdalabs"
    assert (found.rows, found.refused) == (5, 2)
    assert [fault.line for fault in found.faults] == [
        "offers.csv:5   gpu_name: found nothing, expected a model for 1 GPUs",
        "offers.csv:6   price: found 'cheap', expected a number",
    ]
    assert gpuhunt.GIB in found.notes


def test_vasts_answer_one_offer_a_machine_size_and_way_of_renting():
    found = c.parsed(c.VAST, "vast", "offers.json")
    got = [(o.name, o.price, o.interruptible) for o in found.offers]
    assert got == [
        ("m900 1x RTX 4090", "0.25", False),
        ("m900 1x RTX 4090", "0.2", True),
        ("m900 2x RTX 4090", "0.49", False),
        ("m901 1x RTX 4090", "0.24668", False),
    ]
    first = found.offers[0]
    assert (first.gpu_memory_mib, first.memory_mib) == (24564, 64393)
    assert (first.egress_gb, first.ingress_gb, first.storage_gb_month) == ("0.003", "0.001", "0.15")
    assert (first.provider_kind, first.tax, first.plan) == ("decentralised-host", "none", "vast")
    assert first.counterparty == "host 77 at Vast.ai"
    assert (found.rows, found.merged, found.refused) == (6, 1, 2)
    assert vast.DATACENTER in found.offers[3].quirks
    assert [f.place for f in found.faults] == ["offers[4]", "offers[5]"]


def test_own_offers_may_be_called_as_people_call_them():
    toml = """
[[offer]]
name = "box"
provider = "Next Door"
gpu_model = "GeForce RTX 3090"
ram_gb = 64
price = "0.25 EUR/h"
terms = "a letter of 3 May"
counterparty = "Next Door Ltd"
bundled = ["traffic", "10 GB disk"]
date_read = 2026-10-01

[[offer]]
name = "pair"
gpu = "H100"
gpus = 2
price = 3.99
currency = "USD"
per = "gpu-h"

[[offer]]
name = "odd"
price = -1
colour = "red"
"""
    found = c.parsed(toml, "own/x", "offers.toml")
    box, pair = found.offers
    assert (box.gpu, box.memory_mib, box.price, box.currency) == ("RTX3090", 65536, "0.25", "EUR")
    assert (box.terms, box.counterparty, box.bundled) == (
        "a letter of 3 May",
        "Next Door Ltd",
        ("traffic", "10 GB disk"),
    )
    assert box.dated == "2026-10-01"
    assert (hourly(pair), gpu_hourly(pair)) == (Fraction("7.98"), Fraction("3.99"))
    (fault,) = found.faults
    assert (fault.place, fault.field) == ("offer[2]", "price")


def test_a_currency_that_nobody_states_is_said_to_be_the_houses():
    found = c.parsed("name,price\na,0.30\n", "own/x")
    assert (found.offers[0].currency, found.offers[0].price) == ("EUR", "0.30")
    assert own.NO_CURRENCY in found.notes


def test_the_same_offer_twice_is_one_and_at_two_prices_two():
    found = c.parsed("name,price\na,0.30\na,0.30\na,0.40\n", "own/x")
    assert [o.price for o in found.offers] == ["0.30", "0.40"]
    assert (found.rows, found.merged) == (3, 1)
    assert len({o.key for o in found.offers}) == 2


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("x.json", "{", "market/json"),
        ("x.json", "[" * 100_000, "market/json"),
        ("x.json", '[{"price": 1e99999999999999999999}]', "market/json"),
        ("x.toml", "price = 1e99999999999999999999", "market/toml"),
        ("x.json", '{"a": 1}', "market/form"),
        ("x.json", '[{"price": NaN}]', "market/json"),
        ("x.toml", "a = ", "market/toml"),
        ("x.csv", "a,b\n1,2\n", "market/form"),
        ("x.csv", "", "market/form"),
    ],
)
def test_what_is_no_catalogue_is_refused_whole(file: str, text: str, code: str):
    with pytest.raises(OuvrageError) as refused:
        c.parsed(text, "own/x", file)
    assert refused.value.code == code
    assert refused.value.hint


def test_a_broken_quote_costs_the_rest_of_the_file_and_is_told():
    found = c.parsed('name,price\na,0.30\n"b,0.40\nc,0.50\n', "own/x")
    assert [o.name for o in found.offers] == ["a"]
    (fault,) = found.faults
    assert fault.field == "rest of the file"
    assert found.refused == 1


@pytest.mark.parametrize(
    "text", ["", "-1", "1e99", "1e-99", "nan", "inf", "0x10", "1_000", "٣", "9" * 40, "1,5", None]
)
def test_what_is_no_number(text: str | None):
    assert number_in(text) is None


def test_numbers_are_exact_however_they_are_written():
    assert number_in("3.000E-8") == Fraction(3, 10**8)
    assert number_in(".5") == number_in("0.50") == Fraction(1, 2)
    assert number_in(True) is None


@pytest.mark.parametrize(
    ("text", "memory", "name"),
    [
        ("NVIDIA GeForce RTX 3080", None, "RTX3080"),
        ("RTX_4090", None, "RTX4090"),
        ("3080", None, "RTX3080"),
        ("A100", 81920, "A100-80GB"),
        ("A100-80GB", None, "A100-80GB"),
        ("Tesla V100", 32768, "V100-32GB"),
        ("RTX6000-Ada", None, "RTX6000Ada"),
        ("H100_SXM", 81559, "H100"),
        ("NVIDIA H100 80GB HBM3", None, "H100"),
        ("NVIDIA H100 PCIe", None, "H100-PCIe"),
        ("NVIDIA A100-SXM4-80GB", None, "A100-80GB"),
        ("NVIDIA A100 80GB PCIe", None, "A100-80GB"),
        ("NVIDIA A100-SXM4-40GB", None, "A100"),
        ("Tesla V100-SXM2-16GB", None, "V100"),
        ("NVIDIA RTX 6000 Ada Generation", None, "RTX6000Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", None, "RTXPRO6000"),
        ("NVIDIA GeForce RTX 4080 SUPER", None, "RTX4080"),
        ("Tesla T4", None, "T4"),
        ("tpu-v6e-128", None, "tpu-v6e-128"),
    ],
)
def test_one_name_a_model(text: str, memory: int | None, name: str):
    assert model_of(text, memory) == name


def test_a_ratio_of_speeds_turns_round_and_an_unknown_model_has_none():
    assert speed("RTX3080", "RTX3080") == (1, 1)
    assert speed("tpu-v6e-128", "H100") is None
    for name in MODELS:
        there, back = speed("RTX3080", name), speed(name, "RTX3080")
        assert there and back
        assert (1 / back[1], 1 / back[0]) == there


def test_the_starter_catalogue_names_a_source_and_a_day_for_every_row():
    found, _, _ = load_catalogue("starter", read_on="2026-11-30")
    assert not found.faults
    assert len(found.offers) >= 15
    assert all(o.dated and o.source and o.dated <= "2026-11-30" for o in found.offers)


def test_filters():
    listed = [Listed(o, "2026-11-01") for o in c.parsed(c.AWS, "skypilot/aws").offers]
    lots = lots_of(listed)

    def named(text: str) -> list[str]:
        return [e.offer.name for lot in filtered(lots, text, "2026-11-30") for e in lot.each()]

    assert named("gpu=a10g") == ["g5.xlarge", "g5.xlarge"]
    assert named("gpu=A10G,interruptible=no,price<=2") == ["g5.xlarge"]
    assert named("memory>=32") == ["p4d.24xlarge"]
    assert named("age<=10") == []
    assert named("kind=hyperscaler,vcpus>=96") == ["p4d.24xlarge"]
    for bad in ("gpu", "price=cheap", "colour=red", "gpu<3", "interruptible=maybe"):
        with pytest.raises(OuvrageError) as refused:
            named(bad)
        assert refused.value.code == "market/filter"


def test_bands_and_changes():
    before = c.parsed("name,gpu,price\na,H100,2\nb,H100,3\nc,H100,10\n", "own/x").offers
    after = c.parsed("name,gpu,price\na,H100,2\nb,H100,4\nd,H100,1\n", "own/x").offers
    (band,) = bands_of(before)
    assert (band.gpu, band.offers, band.p10, band.p50, band.p90) == ("H100", 3, "2", "3", "10")
    assert [(x.what, x.offer.name) for x in changes(before, after)] == [
        ("changed", "b"),
        ("new", "d"),
        ("gone", "c"),
    ]
    assert offer_id(before[0]) == offer_id(after[0])
    assert offer_id(before[1]) != offer_id(after[1])
    assert percentile([Fraction(n) for n in range(1, 11)], 90) == 9


def test_the_law_finds_a_reading_that_saw_what_is_not_there():
    found = c.parsed(c.AWS, "skypilot/aws").offers
    by_id = {offer_id(offer): offer for offer in found}
    reading = MarketReading(
        catalogue="skypilot/aws",
        form="skypilot",
        file="vms.csv",
        sha256="0" * 64,
        read_on="2026-11-30",
        rows=3,
        merged=0,
        refused=0,
        notes=(),
        seen=tuple(by_id),
        bands=bands_of(found),
    )
    facts = [*offer_facts(by_id, set(), "5" * 32), reading_fact(reading, "5" * 32)]
    wrong = [*facts[:-1], reading_fact(replace(reading, bands=()), "5" * 32)]

    def breaches(facts: list[Fact]) -> list[str]:
        records = [Recorded(seq=n, recorded_at=1, fact=fact) for n, fact in enumerate(facts, 1)]
        return [breach.found for breach in READINGS_STAND.breaches(records)]

    assert breaches(facts) == []
    assert breaches(facts[1:])[0].startswith("saw offer/")
    assert breaches(wrong) == ["its price bands are not those of the offers that it saw"]
