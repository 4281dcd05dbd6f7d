"""Pictures are valid XML, carry their words, and survive hostile labels and odd numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.console import pictures as p
from ouvrage.console import svg

HOSTILE = "<script>alert('x')</script> & \"q\" \x00\x1b[31m \ud800 \uffff ]]>"
SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ET.Element:
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert (root.get("aria-labelledby") or "").split() == ids[:2]
    assert root.findtext(f"{SVG}title")
    return root


def part(key: str, seconds: float, label: str | None = None) -> p.Part:
    return p.Part(
        key=key,
        words=label or key,
        seconds=seconds,
        label=f"{key} {seconds} s" if label is None else label,
    )


def bars(seconds: list[float]) -> list[p.Bar]:
    ends = [sum(seconds[: i + 1]) for i in range(len(seconds))]
    return [
        p.Bar(n=i + 1, end_s=end, seconds=s, warm_up=i == 0)
        for i, (s, end) in enumerate(zip(seconds, ends, strict=True))
    ]


def line(**changes: object) -> p.Timeline:
    given_: dict[str, object] = {
        "wall_s": 3.0,
        "cores_allowed": 2.0,
        "steps": (
            p.Step(from_s=0, to_s=1, cores=1.5),
            p.Step(from_s=1, to_s=2.5, cores=None),
            p.Step(from_s=2.5, to_s=3, cores=0.0),
        ),
        "phases": (("start-up", 0.0, 0.5), ("steady", 0.5, 3.0)),
        "bars": tuple(bars([1.0, 1.5])),
        "unit": "epoch",
    }
    return p.Timeline(**{**given_, **changes})  # type: ignore[arg-type] -- keys are fields


def test_a_strip_draws_each_part_to_scale_and_labels_it():
    root = parsed(
        p.strips(
            "s",
            "Where the time went",
            [p.Strip(name="", note="", length=1, parts=(part("computing", 3), part("unknown", 1)))],
        )
    )
    widths = [float(rect.get("width") or 0) for rect in root.iter(f"{SVG}rect")]
    assert widths[0] == pytest.approx(3 * widths[1], abs=0.05)
    assert {"computing 3 s", "unknown 1 s"} <= {t.text for t in root.iter(f"{SVG}text")}


def test_strips_of_two_runs_compare_by_length():
    parts = (part("computing", 1),)
    root = parsed(
        p.strips(
            "s",
            "t",
            [
                p.Strip(name="a", note="2 s", length=1, parts=parts),
                p.Strip(name="b", note="1 s", length=0.5, parts=parts),
            ],
        )
    )
    long, short = (float(rect.get("width") or 0) for rect in root.iter(f"{SVG}rect"))
    assert long == pytest.approx(2 * short, abs=0.05)


@given(st.lists(st.tuples(st.floats(0, 880), st.text(max_size=30)), max_size=8))
def test_labels_never_overlap_their_neighbours(feet: list[tuple[float, str]]):
    ordered = sorted(feet)
    rows = svg.place_labels(ordered, 880)
    taken: dict[int, list[tuple[float, float]]] = {}
    for (foot, words), (row, to_left) in zip(ordered, rows, strict=True):
        if row == len(ordered):
            continue
        room = svg.text_width(words) + 14
        start, end = (foot - room, foot) if to_left else (foot, foot + room)
        assert start >= 0
        assert end <= 880
        for other_start, other_end in taken.setdefault(row, []):
            assert end <= other_start or other_end <= start
        taken[row].append((start, end))


def test_hostile_words_stay_words():
    shapes = [
        p.strips(
            "s",
            HOSTILE,
            [p.Strip(name=HOSTILE, note=HOSTILE, length=1, parts=(part("unknown", 1, HOSTILE),))],
        ),
        p.timeline("t", HOSTILE, line(unit=HOSTILE, phases=((HOSTILE, 0.0, 3.0),))),
        p.bridge("b", HOSTILE, [p.Pier(name=HOSTILE, begin=0, end=1, label=HOSTILE, total=True)]),
    ]
    for shape in shapes:
        root = parsed(shape)
        assert not list(root.iter(f"{SVG}script"))
        assert "<script" not in shape


def test_a_gap_is_drawn_as_a_gap_and_not_as_idle():
    root = parsed(p.timeline("t", "Cores", line()))
    gaps = [rect for rect in root.iter(f"{SVG}rect") if rect.get("fill") == "url(#p-gap)"]
    assert [gap.findtext(f"{SVG}title") for gap in gaps] == ["no samples for 1.5 s"]


def test_a_run_without_length_or_samples_still_draws():
    parsed(p.timeline("t", "Cores", line(wall_s=0.0, steps=(), phases=(), bars=())))


def test_the_median_is_drawn_where_the_bars_say():
    middle = p.Interval(name="median", value=2.0, low=1.9, high=2.1, label="median 2 s")
    root = parsed(p.unit_bars("u", "Seconds", bars([4.0, 2.0, 2.0]), middle, "epoch"))
    (band,) = (r for r in root.iter(f"{SVG}rect") if r.get("class") == "band")
    (drawn,) = (r for r in root.iter(f"{SVG}path") if r.get("class") == "middle")
    y = float((drawn.get("d") or "").split(",")[1].split("H")[0])
    top = float(band.get("y") or 0)
    assert top < y < top + float(band.get("height") or 0)


def test_many_units_share_columns():
    root = parsed(p.unit_bars("u", "Seconds", bars([1.0] * 5000), None, "step"))
    assert len(list(root.iter(f"{SVG}rect"))) <= p.MOST_BARS
    assert len(p.timeline("t", "Cores", line(bars=tuple(bars([0.1] * 5000))))) < 200_000


def test_equal_values_have_a_scale_too():
    same = p.Interval(name="a", value=0.0, low=None, high=None, label="0")
    parsed(p.intervals("i", "Cost", [same, same]))


@pytest.mark.parametrize(
    ("top", "expected"),
    [(0, [0]), (1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (3.9, [0, 1, 2, 3]), (64, [0, 20, 40, 60])],
)
def test_ticks_are_round(top: float, expected: list[float]):
    assert svg.ticks(top) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (45, "45 s"), (120, "2 min"), (150, "2:30 min"), (7200, "2 h"), (9000, "2:30 h")],
)
def test_clock_text(seconds: float, words: str):
    assert svg.clock_text(seconds) == words


@pytest.mark.parametrize("wall_s", [0.0, 0.2, 3.0, 38.0, 600.0, 86400.0, 1e7])
def test_clock_ticks_stay_few_and_inside(wall_s: float):
    marks = svg.clock_ticks(wall_s)
    assert marks[0] == 0
    assert len(marks) <= 9
    assert max(marks) <= wall_s
