"""Pages need nothing but themselves, are well formed, and show runs of every outcome."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from ouvrage.console.comparison_page import comparison_page
from ouvrage.console.page import bound, html
from ouvrage.console.run_page import run_page
from ouvrage.ledger.facts import Recorded
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.metering.spool import facts_of, read_spool
from ouvrage.metering.windows import Columns
from ouvrage.model.runs import RunSamples
from ouvrage.pricing.comparison import compare
from ouvrage.pricing.unit_cost import sheet_of
from tests.blackbox.spools import price, run_id, spool

AS_OF = 1_764_600_000_000_000
VOID = {"meta", "br", "link", "img", "input", "hr"}


def view_of(text: str) -> tuple[RunView, Columns]:
    read = read_spool(text.splitlines(keepends=True))
    sealed = RunSamples(run=read.run, sha256="0" * 64, size_bytes=1, samples=1)
    facts = facts_of(read, sealed=sealed)
    records = [Recorded(seq=i, recorded_at=AS_OF, fact=fact) for i, fact in enumerate(facts, 1)]
    return run_views(records)[read.run], read.columns


def page_of(text: str, *, raw: bool = True) -> str:
    view, columns = view_of(text)
    return html(run_page(view, sheet_of(view, AS_OF), columns if raw else None))


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(page: str) -> str:
    parser = Balanced()
    parser.feed(page)
    assert not parser.open
    for picture in re.findall(r"<svg.*?</svg>", page, re.S):
        ET.fromstring(picture)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert not re.search(r"<script|<link|<img|<iframe|@import|\bon\w+=", page)
    addresses = set(re.findall(r'[a-z]+://[^\s"<]+', page))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    return page


RUNS = {
    "completed": {},
    "lost": {"ended": False},
    "failed": {"exit_code": 1},
    "unpriced": {"rate": None},
    "one unit": {"units": [3.0]},
    "no unit": {"units": []},
    "many": {"units": [0.01] * 3000},
    "never waited": {"waiting": 0.0},
    "hostile": {"label": "</title><script>x</script>\x1b", "command": ["a", "&<b>'\""]},
}


@pytest.mark.parametrize("changes", RUNS.values(), ids=list(RUNS))
@pytest.mark.parametrize("raw", [True, False])
def test_a_page_for_every_outcome(changes: dict, raw: bool):
    given = {"units": [1.2, 1.0, 1.0, 1.1, 0.9], "rate": price("0.30"), **changes}
    units = given.pop("units")
    page = check(page_of(spool(run_id(1), units, **given), raw=raw))
    assert "Where the time went" in page
    assert len(page) < 400_000


def test_figures_carry_their_grade_and_name():
    page = page_of(spool(run_id(1), [1.0] * 6, rate=price("0.30")))
    cost = re.search(
        r'title="ouvrage explain ([^"]+:cost_per_unit.marginal@[^"]+)">([^<]+) <abbr class="mark" '
        r'title="assumed">\?',
        page,
    )
    assert cost
    assert cost[2].endswith(" EUR")


def test_the_same_run_is_the_same_page():
    text = spool(run_id(1), [1.0] * 6, rate=price("0.30"))
    assert page_of(text) == page_of(text)


def test_samples_that_are_missing_leave_a_gap():
    text = spool(run_id(1), [20.0], rate=price("0.30"))
    view, columns = view_of(text)
    kept = [i for i, t in enumerate(columns.times) if not 5_000_000 < t < 12_000_000]
    thin = Columns(
        times=[columns.times[i] for i in kept],
        values={name: [held[i] for i in kept] for name, held in columns.values.items()},
    )
    page = html(run_page(view, sheet_of(view, AS_OF), thin))
    assert "no samples for 7.0 s" in check(page)


COMPARED = {
    "two": (["0.30", "0.36"], [2.0, 1.5]),
    "three": (["0.30", "0.36", "0.50"], [2.0, 1.5, 1.4]),
    "unpriced": ([None, None], [2.0, 1.5]),
    "half priced": (["0.30", None], [2.0, 1.5]),
    "cheaper and faster": (["0.36", "0.30"], [2.0, 1.5]),
}


@pytest.mark.parametrize(("rates", "seconds"), COMPARED.values(), ids=list(COMPARED))
def test_a_page_for_every_comparison(rates: list[str | None], seconds: list[float]):
    views = []
    for number, (rate, each) in enumerate(zip(rates, seconds, strict=True), 1):
        stated = price(rate) if rate else None
        text = spool(run_id(number), [each] * 6, label=f"<run {number}>", rate=stated)
        view, _ = view_of(text)
        views.append((view, sheet_of(view, AS_OF)))
    comparison = compare(views)
    page = check(html(comparison_page(comparison)))
    assert "Where the time of one epoch went" in page
    assert page.count("<circle") >= sum(rate is not None for rate in rates)


def test_the_bridge_adds_up():
    views = []
    for number, (rate, each) in enumerate((("0.30", 2.0), ("0.36", 1.5)), 1):
        view, _ = view_of(spool(run_id(number), [each] * 6, rate=price(rate)))
        views.append((view, sheet_of(view, AS_OF)))
    page = html(comparison_page(compare(views)))
    # 0.30/h x 2 s = 0.000166…; x 1.2 adds a fifth of it; then 0.5 s less at 0.36/h takes 0.00005.
    assert "+ 0.000033" in page
    assert "− 0.000050" in page


def test_numbers_stay_with_their_signs_and_units():
    assert bound("− 25.8 % of 3 s, × 2") == "−\u00a025.8\u00a0% of 3\u00a0s, ×\u00a02"
