"""Facts about serving that somebody else wrote: a report is made, and its costs are their tokens'."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.console.page import html
from ouvrage.console.run_page import run_page
from ouvrage.evidence.laws import sheet_breaches
from ouvrage.metering.run_view import RunView
from ouvrage.metering.serving import serving_fault
from ouvrage.model.serving import (
    COUNTED,
    REQUEST_COLUMNS,
    STATUSES,
    RunRequests,
    RunServer,
    RunServerWindow,
)
from ouvrage.pricing.laws import cost_breaches
from ouvrage.pricing.report import report_json, report_text
from ouvrage.pricing.unit_cost import sheet_of
from tests.support.runs import AS_OF, CHEAP, RUN, S, end, header, view_of

NUMBER = st.none() | st.integers(0, 50) | st.integers(0, 10**13)
TEXTS = {"status": st.sampled_from(STATUSES), "counted": st.sampled_from([*COUNTED, None])}
LENGTHS = ("covered_us", "gauges_covered_us")


@st.composite
def requests(draw: Any, index: int) -> RunRequests:
    many = draw(st.integers(0, 4))
    columns: dict[str, Any] = {
        name: tuple(draw(TEXTS.get(name, NUMBER)) for _ in range(many)) for name in REQUEST_COLUMNS
    }
    via = draw(st.sampled_from(["replay", "log"]))
    return RunRequests(run=RUN, index=index, via=via, **columns)


@st.composite
def windows(draw: Any, index: int) -> RunServerWindow:
    counts = st.lists(st.integers(0, 9), max_size=4).map(tuple)
    values: dict[str, Any] = {}
    for name in RunServerWindow.__dataclass_fields__:
        if name.endswith("_counts"):
            values[name] = draw(counts)
        elif name in LENGTHS:
            values[name] = draw(st.integers(0, S))
        elif name not in ("KIND", "VERSION", "run", "server", "index", "from_us", "to_us"):
            values[name] = draw(NUMBER) if name not in ("samples", "resets") else 0
    edges = {"from_us": index * S, "to_us": (index + 1) * S}
    return RunServerWindow(run=RUN, server=draw(st.integers(0, 1)), index=index, **edges, **values)


@st.composite
def views(draw: Any) -> RunView:
    view = view_of(header(price=draw(st.sampled_from([CHEAP, None]))), end(draw(st.integers(0, 9))))
    told = tuple(draw(requests(index)) for index in range(draw(st.integers(0, 2))))
    seen = tuple(draw(windows(index)) for index in range(draw(st.integers(0, 3))))
    bounds = draw(st.sampled_from([(), (5,), (5, 9)]))
    server = RunServer(
        run=RUN, server=0, engine="vLLM", via=draw(st.sampled_from(["metrics", "log"])), where="",
        first_bounds_us=bounds, gap_bounds_us=bounds, took_bounds_us=bounds,
    )  # fmt: skip
    assert [serving_fault(value) for value in (*told, *seen, server)] == [None] * (
        len(told) + len(seen) + 1
    )
    keys = {"run.requests": ("key",), "run.server": ("key",), "run.server_window": ("key",)}
    return replace(
        view, requests=told, servers=(server,), server_windows=seen, keys={**view.keys, **keys}
    )


@settings(max_examples=25, deadline=None)
@given(views())
def test_a_report_is_made_of_any_serving(view: RunView) -> None:
    sheet = sheet_of(view, AS_OF)
    assert list(cost_breaches(view, sheet)) == []
    keys = {key for held in view.keys.values() for key in held}
    assert list(sheet_breaches(sheet, keys)) == []
    assert json.dumps(report_json(view, sheet))
    for plain in (False, True):
        assert report_text(view, sheet, plain=plain)
    assert "</html>" in html(run_page(view, sheet, None))
