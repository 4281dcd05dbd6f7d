"""Comparisons whose figures are known beforehand, and the verdict in words and JSON."""

from __future__ import annotations

import html
import itertools
import json
from collections.abc import Sequence

import pytest

from tests.blackbox.home import Home
from tests.blackbox.spools import price, run_id, spool

JITTER = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005, 1.0, 0.99, 1.01)


def units(seconds: float, jitter: Sequence[float] = JITTER) -> list[float]:
    return [seconds * each for each in jitter]


def two(ouvrage: Home, standard: list[float], optimised: list[float], prices: str = "0.30 0.36"):
    rates = prices.split()
    for number, (label, seconds) in enumerate((("standard", standard), ("optimised", optimised))):
        rate = price(rates[number]) if rates else None
        run = run_id(number + 1)
        ouvrage.holds(spool(run, seconds, label=label, rate=rate, started_us=number), run)


CASES = [
    # 2.0 s at 0.30 against 1.5 s at 0.36: 1.333 times as fast, 1.20 needed.
    (2.0, 1.5, "0.30 0.36", "optimised", "The dearer host is the better buy: 10.0 % less"),
    # 2.0 s against 1.9 s: 1.053 times as fast, 1.20 needed.
    (2.0, 1.9, "0.30 0.36", "standard", "The dearer host loses: standard costs 12.3 % less"),
    # Exactly at the break-even nothing can be told.
    (2.4, 2.0, "0.30 0.36", None, "Not distinguishable"),
    (2.0, 1.5, "0.30 0.30", "optimised", "optimised is the better buy at the same price: 25.0 %"),
    (1.5, 2.0, "0.36 0.30", "standard", "The dearer host is the better buy: 10.0 % less"),
]


@pytest.mark.parametrize(("before", "after", "prices", "cheaper", "verdict"), CASES)
def test_the_verdict_is_computed(
    ouvrage: Home, before: float, after: float, prices: str, cheaper: str | None, verdict: str
):
    two(ouvrage, units(before), units(after), prices)
    said = ouvrage.inside("compare", "standard", "optimised", "--report", "report.json")
    assert said.code == 0
    assert said.first.startswith(verdict), said.first
    report = json.loads((ouvrage.path.parent / "report.json").read_text())
    by_label = {run["label"]: run["run"] for run in report["runs"]}
    found = report["comparison"]
    assert found["cheaper"] == (by_label[cheaper] if cheaper else None)
    rates = [float(rate) for rate in prices.split()]
    assert found["speed_up"] == pytest.approx(before / after, rel=1e-6)
    assert found["price_ratio"] == pytest.approx(rates[1] / rates[0], rel=1e-6)
    assert found["break_even_speed_up"] == found["price_ratio"]


def test_noise_that_hides_the_difference_is_told(ouvrage: Home):
    noisy = (0.6, 1.4, 0.7, 1.3, 1.0, 0.65, 1.35, 0.9, 1.1)
    two(ouvrage, units(2.0, noisy), units(1.5, noisy))
    said = ouvrage.inside("compare", "standard", "optimised")
    assert said.first.startswith("Not distinguishable")


def test_too_few_units_are_told(ouvrage: Home):
    two(ouvrage, [2.0, 2.0], [1.5, 1.5])
    said = ouvrage.inside("compare", "standard", "optimised", "--json")
    assert said.json["comparison"]["cheaper"] is None
    assert "too few" in said.json["comparison"]["why_not"]


def test_without_a_price_only_time_is_compared(ouvrage: Home):
    two(ouvrage, units(2.0), units(1.5), "")
    said = ouvrage.inside("compare", "standard", "optimised")
    assert said.code == 0
    assert said.first.startswith("No verdict on money")
    assert "EUR" not in said.out


def test_three_runs_have_a_best_one(ouvrage: Home):
    two(ouvrage, units(2.0), units(1.5))
    ouvrage.holds(
        spool(run_id(3), units(1.0), label="third", rate=price("0.36"), started_us=3), run_id(3)
    )
    said = ouvrage.inside("compare", "standard", "optimised", "third")
    assert said.first.startswith("third is the best buy")
    assert (
        len(ouvrage.inside("compare", "last", "standard", "optimised", "--json").json["runs"]) == 3
    )


def test_the_published_claim_stays_a_claim(ouvrage: Home):
    two(ouvrage, units(2.0), units(1.5))
    said = ouvrage.inside("compare", "standard", "optimised", "--claim", "clearml-2023")
    assert "as published by ClearML on 29 March 2023 ○" in said.out
    assert "0.0106 → 0.0096 USD per epoch at 0.30 → 0.36 USD/h" in said.out
    assert "127.2 → 96.0 s" in said.out
    claim = ouvrage.inside("compare", "standard", "optimised", "--claim", "clearml-2023", "--json")
    published = claim.json["comparison"]["published"]
    assert published["grade"] == "reported"
    assert published["speed_up"] == pytest.approx(1.325)
    assert published["break_even_speed_up"] == pytest.approx(1.2)
    explained = ouvrage.inside("explain", "clearml-2023:speed_up", "--json").json
    kinds = [fact["kind"] for fact in _facts(explained)]
    assert set(kinds) == {"evidence.claim"}


def _facts(explained: dict) -> list[dict]:
    return [
        *explained["facts"],
        *itertools.chain.from_iterable(_facts(part) for part in explained["inputs"]),
    ]


def test_page_and_command_say_the_same(ouvrage: Home):
    two(ouvrage, units(2.0), units(1.5))
    said = ouvrage.inside("compare", "standard", "optimised", "--html", "page.html")
    page = (ouvrage.path.parent / "page.html").read_text()
    for line in said.out.splitlines()[:-1]:
        assert html.escape(line).replace("&#x27;", "&#39;") in page
    assert said.out.splitlines()[-1] == "Whole report: page.html"
