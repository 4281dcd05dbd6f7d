"""What a job cost on all its hosts: each host's price once, gaps and currencies said, never guessed."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ouvrage.metering.jobs import Job, job_from
from ouvrage.model.offers import ExchangeRate
from ouvrage.pricing.job_laws import job_breaches
from ouvrage.pricing.job_report import job_json, job_report, job_text
from tests.support.around import BOX_A, BOX_B, HOUR, around, member, view
from tests.support.runs import AS_OF, gpu, gpus

EPOCHS = (2.0, 3.0, 4.0, 5.0)
USD = {"amount": "7.20", "currency": "USD", "per": "h"}
RATE = ExchangeRate(base="EUR", quote="USD", rate="1.20", day="2026-11-30", said_by="a bank")


def made(*members: list[str]) -> Job:
    job = job_from("train", [view(lines) for lines in members])
    assert list(job_breaches(job)) == []
    return job


def reported(*members: list[str], rates=None):
    known = rates or {}
    return job_report(made(*members), lambda _currency, _others: known, AS_OF)


def test_a_host_is_paid_once_however_many_ranks_state_its_price():
    report = reported(
        member(1, BOX_A, ends=EPOCHS, rank=0, ranks=4),
        member(2, BOX_A, ends=EPOCHS, rank=1, ranks=4, start=1),
        member(3, BOX_B, ends=EPOCHS, rank=2, ranks=4, price={**HOUR, "amount": "7.20"}),
        member(4, BOX_B, rank=3, ranks=4, price=None, wall=12),
    )
    said = job_json(report)
    # 3.60/h is 0.001 a second: 11 s of it, and 12 s at twice the price though rank 3 states none
    assert [host["cost"] for host in said["hosts"]] == ["0.011", "0.024"]
    assert (said["cost"]["total"], said["units"]) == ("0.035", 4)
    assert said["cost_per_unit"] == {"marginal": "0.003", "all_in": "0.00875"}
    assert said["seconds_per_unit_median"] == 1


def test_a_missing_host_leaves_no_total_and_less_coverage():
    report = reported(
        *(member(n, box, ends=EPOCHS, node=n - 1, nodes=4, rank=n - 1, ranks=4)
          for n, box in ((1, BOX_A), (2, BOX_B)))
    )  # fmt: skip
    said = job_json(report)
    assert (said["nodes_stated"], said["nodes_missing"], said["missing"]) == (4, 2, [2, 3])
    assert (said["cost"]["total"], said["cost"]["known"]) == (None, "0.02")
    assert said["coverage"] == 0.5
    assert said["cost_per_unit"]["all_in"] is None
    assert "2 of 4 machines are not here (node 2, 3)" in said["unknown"]["cost.total"]
    assert job_text(report, plain=True).splitlines()[0].startswith("4 epochs on 2 hosts: at least")


def test_currencies_do_not_add_up_without_a_rate():
    members = (
        member(1, BOX_A, ends=EPOCHS, rank=0, ranks=2),
        member(2, BOX_B, ends=EPOCHS, rank=1, ranks=2, price=USD),
    )
    said = job_json(reported(*members))
    assert said["cost"]["by_currency"] == {"EUR": "0.01", "USD": "0.02"}
    assert (said["cost"]["total"], said["cost"]["known"]) == (None, None)
    assert "ouvrage fx set" in said["unknown"]["cost.total"]
    report = job_report(
        made(*members), lambda currency, _: {"USD": RATE} if currency == "EUR" else {}, AS_OF
    )
    told = job_json(report)
    assert (told["currency"], told["cost"]["total"]) == ("EUR", "0.02666666666666666666666666667")
    assert report.sheet.number("cost.total") == Fraction("0.01") + Fraction("0.02") / Fraction(
        "1.20"
    )
    assert told["cost"]["rates"][0]["said_by"] == "a bank"
    assert "1 EUR = 1.20 USD on 2026-11-30" in report.sheet["cost.total"].method


def test_two_prices_for_the_same_time_of_a_host_are_no_price():
    other = {**HOUR, "amount": "1"}
    same = reported(member(1, BOX_A), member(2, BOX_A, price=other))
    assert "for the same time" in job_json(same)["hosts"][0]["why"]
    apart = reported(member(1, BOX_A, wall=10), member(2, BOX_A, start=20, wall=36, price=other))
    assert job_json(apart)["cost"]["total"] == "0.02"


def test_without_any_price_nothing_is_nought():
    said = job_json(reported(member(1, BOX_A, price=None, ends=EPOCHS)))
    assert (said["cost"]["total"], said["currency"]) == (None, None)
    assert "states a price" in said["unknown"]["cost.total"]


def test_a_card_that_two_ranks_see_draws_its_energy_once():
    card = (gpu(), *gpus(10, power_average_mw=200_000, busy_percent=50))
    short = (gpu(), *gpus(5, power_average_mw=200_000, busy_percent=50))
    other = (
        gpu(),
        gpu(1),
        *gpus(10, power_average_mw=100_000),
        *gpus(10, 1, power_average_mw=100_000),
    )
    report = reported(
        member(1, BOX_A, rank=0, ranks=3, more=card),
        member(2, BOX_A, rank=1, ranks=3, more=short),
        member(3, BOX_B, rank=2, ranks=3, more=other),
    )
    said = job_json(report)
    assert (said["gpus"], said["gpu_time_s"]) == (3, 30)
    assert said["energy_j"] == pytest.approx(200 * 10 + 2 * 100 * 10)
    assert said["energy"]["coverage"] == pytest.approx(1)
    half = reported(member(1, BOX_A, node=0, nodes=2, more=card))
    assert job_json(half)["energy"]["coverage"] == pytest.approx(0.5)


def communication(calls: int = 100, ranks: int = 2, **changes):
    value = {
        "source": "output", "library": "2.21.5", "ranks": ranks, "nodes": 1, "heard": 2, "nvls": False,
        "rings": 2, "transports": [{"name": "P2P/CUMEM", "channels": 4, "pairs": 2}],
        "calls": [{"name": "AllReduce", "size_bytes": 1 << 20, "ranks": ranks, "calls": calls}],
    }  # fmt: skip
    return around("run.communication", **value | changes)


def test_time_in_communication_needs_calls_and_a_measurement_of_them():
    test = around(
        "run.link_test", source="t.txt", ranks=2, gpu="Test GPU",
        rows=[{"name": "AllReduce", "size_bytes": 1 << 20, "time_us": "5000.0", "bus_gb_s": "0.2"}],
    )  # fmt: skip
    nothing = job_json(reported(member(1, rank=0, ranks=2)))["communication"]
    assert (nothing["evidence"], nothing["modelled_s"]) == (False, None)
    assert "nothing is credited" in nothing["why"]
    log = job_json(reported(member(1, more=(communication(),))))["communication"]
    assert (log["evidence"], log["modelled_s"], log["transports"][0]["way"]) == (
        True,
        None,
        "GPU to GPU",
    )
    both = reported(member(1, more=(communication(), test)))
    assert both.sheet.number("communication.modelled_s") == Fraction(1, 2)
    assert both.sheet.number("communication.share_at_most") == Fraction(1, 20)
    others = job_json(reported(member(1, more=(communication(ranks=4), test))))["communication"]
    assert others["modelled_s"] is None


def test_gpu_to_gpu_is_nvlink_only_where_the_topology_leaves_nothing_else():
    def table(link: str):
        rows = [
            {"name": "GPU0", "links": ["X", link], "cpus": None, "numa": None},
            {"name": "GPU1", "links": [link, "X"], "cpus": None, "numa": None},
        ]
        return around("run.topology", source="nvidia-smi", rows=rows, nics=[])

    def words(link: str, name: str) -> str:
        way = {"transports": [{"name": name, "channels": 4, "pairs": 2}]}
        return job_text(reported(member(1, more=(communication(**way), table(link)))), plain=True)

    assert "P2P/CUMEM (NVLink) on 4 channels" in words("NV18", "P2P/CUMEM")
    assert "P2P/CUMEM (PCIe) on 4 channels" in words("PHB", "P2P/CUMEM")
    assert "SHM/direct (the host's memory) on 4 channels" in words("NV18", "SHM/direct")


def test_errors_of_gpus_are_told_once_for_all_ranks_of_a_host():
    fault = around("run.xid", 5_000_000, gpu=0, at_us=5_000_000, xid=79)
    report = reported(
        member(1, BOX_A, rank=0, ranks=2, more=(gpu(), fault)),
        member(2, BOX_A, rank=1, ranks=2, more=(gpu(), fault)),
    )
    (told,) = job_json(report)["xids"]
    assert (told["xid"], told["host"]) == (79, "box-a")
    assert "no longer answers on PCIe" in told["meaning"]
    assert "Xid 79" in job_text(report, plain=True)
