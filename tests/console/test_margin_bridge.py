"""The bridge from revenue to margin: steps that add up, drawn to one scale, also where it ends in a loss."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from itertools import pairwise

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.books.bridge import bridge_lines, bridge_of
from ouvrage.console.margin_bridge import margin_bridge
from ouvrage.console.page import Drawing, Page, check_ours, html, with_section
from tests.books.owner import Owner, day


def owner(earned: str) -> Owner:
    made = Owner().sets_up().bare()
    made.term("channel:vast", "fee", "0.2")
    made.term("site:s", "rent", "56")
    made.state("working", day("2026-02-01"), day("2026-03-01"), channel="vast")
    made.earned(earned, day("2026-02-01"), day("2026-03-01"))
    return made


def bars(drawn: str) -> list[tuple[float, float, str]]:
    """Left edge, width and class of each row."""
    root = ET.fromstring(drawn)
    rects = root.iter("{http://www.w3.org/2000/svg}rect")
    return [(float(r.attrib["x"]), float(r.attrib["width"]), r.attrib["class"]) for r in rects]


def test_the_steps_lead_from_revenue_to_margin():
    steps = bridge_of(owner("100").sheet())
    assert [(step.name, step.amount) for step in steps] == [
        ("revenue", 100), ("channel's fee", -20), ("rent", -56), ("margin", 24),
    ]  # fmt: skip
    assert all(later.begin == step.end for step, later in pairwise(steps[:-1]))
    assert steps[-2].end == steps[-1].end
    drawn = bars(margin_bridge("b", "t", steps, "EUR"))
    assert [kind for _, _, kind in drawn] == ["pier total", "pier less", "pier less", "pier total"]
    scale = drawn[0][1] / 100
    assert [width for _, width, _ in drawn[1:]] == pytest.approx(
        [20 * scale, 56 * scale, 24 * scale], abs=0.1
    )


def test_a_loss_reaches_beyond_nothing():
    steps = bridge_of(owner("50").sheet())
    assert steps[-1].amount == Fraction(-16)
    drawn = bars(margin_bridge("b", "t", steps, "EUR"))
    zero = drawn[0][0]
    assert drawn[-1][0] + drawn[-1][1] == pytest.approx(zero, abs=0.05)
    lines = bridge_lines(steps, "EUR", True)
    assert not set("".join(lines)) & set("●◐○◌█▓▒")
    starts = [re.search("[#=]", line).start() for line in lines]  # type: ignore[union-attr]
    assert starts[-1] < starts[0]


def test_no_bridge_leads_to_what_is_not_known():
    made = Owner().sets_up()
    made.earned("100", day("2026-02-01"), day("2026-03-01"))
    with pytest.raises(OuvrageError) as refused:
        bridge_of(made.sheet())
    assert refused.value.code == "books/bridge"


def test_names_cannot_break_out_of_the_picture():
    steps = bridge_of(owner("100").sheet())
    drawn = margin_bridge("b", "<script>", steps, '"EUR<')
    assert "<script" not in drawn
    ET.fromstring(drawn)


def test_a_section_is_added_to_a_page_once_and_escaped():
    page = html(Page(title="t", headline="h", lead=()))
    drawing = Drawing(heading="a <b>", svg="<svg/>", caption="c")
    once = with_section(check_ours(page), "key", drawing, "said <i>")
    assert "a &lt;b&gt;" in once
    assert "said &lt;i&gt;" in once
    assert with_section(once, "key", drawing, "said <i>") == once
    other = with_section(once, "key", drawing, "said otherwise")
    assert "said otherwise" in other
    assert "said &lt;i&gt;" not in other
    with pytest.raises(OuvrageError):
        check_ours("<html></html>")
