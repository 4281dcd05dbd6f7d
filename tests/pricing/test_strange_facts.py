"""Facts that somebody else wrote: whatever their numbers, a report is made and its time adds up.

What is wrong with them is for the laws to say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ouvrage.metering.laws import reckoning_breaches
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView
from ouvrage.model.runs import RunSpans, RunWaits, RunWindow, SpanSum
from ouvrage.pricing.comparison import compare
from ouvrage.pricing.report import report_json, report_text
from ouvrage.pricing.unit_cost import sheet_of
from tests.pricing.cases import standard
from tests.support.runs import AS_OF, CHEAP, OTHER_RUN, RUN, busy, end, header, marks, view_of

NUMBER = st.one_of(st.integers(-10, 10), st.integers(-(10**9), 10**12))
NOT_DRAWN = {"KIND", "VERSION", "run", "index"}
COUNTERS = [name for name in RunWindow.__dataclass_fields__ if name not in NOT_DRAWN]


@st.composite
def windows(draw: Any, index: int) -> RunWindow:
    values = {name: draw(NUMBER) for name in COUNTERS}
    values |= dict.fromkeys(draw(st.sets(st.sampled_from(COUNTERS[4:]))))
    return RunWindow(run=RUN, index=index, **values)


@st.composite
def waits(draw: Any, index: int) -> RunWaits:
    names = [name for name in RunWaits.__dataclass_fields__ if name not in NOT_DRAWN]
    values = {name: draw(NUMBER) for name in names}
    values |= dict.fromkeys(draw(st.sets(st.sampled_from(names[2:]))))
    return RunWaits(run=RUN, index=index, **values)


@st.composite
def spans(draw: Any, index: int) -> RunSpans:
    name = draw(st.sampled_from(["data", "compute", "x"]))
    told = SpanSum(name=name, count=draw(NUMBER), total_us=draw(NUMBER))
    return RunSpans(
        run=RUN,
        index=index,
        pid=1,
        tid=draw(st.integers(1, 2)),
        from_us=draw(NUMBER),
        to_us=draw(NUMBER),
        cpu_us=draw(st.none() | NUMBER),
        spans=(told,),
    )


@st.composite
def views(draw: Any) -> RunView:
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from(["head", "end", "count"]), st.integers(-3, 20), st.none()),
            max_size=6,
        )
    )
    view = view_of(header(price=CHEAP, run=OTHER_RUN), *busy(9), end(9))
    odd = marks(*[(mark, max(0, n), t) for mark, n, t in rows])
    marked = view_of(header(), odd, end(9)).marks
    moments = tuple(draw(st.none() | NUMBER) for _ in rows)
    marked = tuple(replace(one, at_us=moments, n=tuple(n for _, n, _ in rows)) for one in marked)
    assert view.ended is not None
    return replace(
        view,
        ended=replace(view.ended, wall_us=max(0, draw(NUMBER))),
        windows=tuple(draw(windows(index)) for index in range(draw(st.integers(0, 3)))),
        waits=tuple(draw(waits(index)) for index in range(draw(st.integers(0, 3)))),
        spans=tuple(draw(spans(index)) for index in range(draw(st.integers(0, 3)))),
        marks=marked,
        keys=view.keys | {"run.marks": tuple("key" for _ in marked)},
    )


@given(views())
def test_a_report_is_made_and_adds_up(view: RunView) -> None:
    sheet = sheet_of(view, AS_OF)
    assert list(reckoning_breaches(view, reckon(view))) == []
    document = report_json(view, sheet)
    assert abs(sum(document["time"].values()) - document["wall_s"]) < 1e-3
    for plain in (False, True):
        assert report_text(view, sheet, plain=plain)
    other = standard()
    if document["unit"] == "epoch" or not document["units"]:
        found = compare([(other, sheet_of(other, AS_OF)), (view, sheet)])
        assert found.text()
        assert found.json()
