"""What a unit cost, against amounts worked out by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.evidence.figures import Sheet
from ouvrage.evidence.laws import sheet_breaches
from ouvrage.ledger.facts import Recorded
from ouvrage.metering.run_view import run_views
from ouvrage.pricing.laws import cost_breaches
from ouvrage.pricing.report import report_json
from ouvrage.pricing.unit_cost import sheet_of
from tests.support.runs import (
    AS_OF,
    CHEAP,
    Line,
    S,
    busy,
    end,
    ends,
    header,
    marks,
    recorded,
    spans,
    view_of,
    written,
)


def sheet(*lines: Line, seconds: int = 36, exit_code: int = 0, **changes: Any) -> Sheet:
    view = view_of(header(**changes), *busy(seconds), *lines, end(seconds, exit_code))
    return sheet_of(view, AS_OF)


class TestByHand:
    """Units end at 6, 10, 14, 18, 23, 27, 31: laps of 4, 4, 4, 5, 4, 4 s at 0.30 an hour."""

    SHEET = sheet(ends(6, 10, 14, 18, 23, 27, 31), price=CHEAP)

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("wall_s", 36),
            ("units", 7),
            ("seconds_per_unit.median", 4),
            ("seconds_per_unit.low", 4),  # ranks 1 and 6 of six
            ("seconds_per_unit.high", 5),
            ("seconds_per_unit.confidence", Fraction(31, 32)),
            ("price.amount", Fraction(3, 10)),
            ("cost.total", Fraction(3, 1000)),  # 0.30 x 36 / 3600
            ("cost_per_unit.marginal", Fraction(1, 3000)),  # 0.30 x 4 / 3600
            ("cost_per_unit.low", Fraction(1, 3000)),
            ("cost_per_unit.high", Fraction(1, 2400)),  # 0.30 x 5 / 3600
            ("cost_per_unit.all_in", Fraction(3, 7000)),
            ("phases.startup_s", 6),
            ("phases.warmup_s", 0),
            ("phases.steady_s", 25),
            ("phases.rest_s", 5),
            ("coverage", 1),
        ],
    )
    def test_figures(self, path: str, value: Fraction | int) -> None:
        assert self.SHEET.number(path) == value

    def test_grades(self) -> None:
        assert self.SHEET["seconds_per_unit.median"].grade is Grade.MEASURED
        assert self.SHEET["cost_per_unit.marginal"].grade is Grade.ASSUMED  # its price was typed
        assert self.SHEET["cost_per_unit.marginal"].shares == {Grade.ASSUMED: 1}


def test_worth_is_the_share_of_the_steady_phase_times_the_median() -> None:
    loop = [spans(t, t + 1, cpu=0.6, data=0.25) for t in range(36)]
    found = sheet(ends(4, 8, 12, 16, 20, 24, 28, 32), *loop, price=CHEAP)
    assert found.number("worth.seconds_per_unit") == 1  # a quarter of 4 s
    assert found.number("worth.cost_per_unit") == Fraction(1, 12_000)  # 0.30 x 1 / 3600
    assert found["worth.seconds_per_unit"].grade is Grade.MEASURED
    assert found["worth.cost_per_unit"].grade is Grade.ASSUMED


def test_all_in_counts_units_that_could_not_be_timed() -> None:
    found = sheet(marks(*(("end", n, None) for n in range(1, 7))), price=CHEAP)
    assert found.number("cost_per_unit.all_in") == Fraction(1, 2000)
    assert found["cost_per_unit.marginal"].value is None
    assert found["cost_per_unit.marginal"].why == "no unit could be timed"


def test_without_a_price_costs_are_unknown_and_not_nothing() -> None:
    found = sheet(ends(6, 10, 14))
    for path in ("cost.total", "cost_per_unit.marginal", "cost_per_unit.all_in", "price.amount"):
        assert found[path].value is None
        assert "--price" in (found[path].why or "")
    assert found.number("seconds_per_unit.median") == 4


def test_a_price_of_nothing_costs_nothing() -> None:
    free = {"amount": "0", "currency": "EUR", "per": "h"}
    assert sheet(ends(6, 10, 14), price=free).number("cost_per_unit.marginal") == 0


def test_no_finished_unit_leaves_the_whole_cost_unshared() -> None:
    found = sheet(exit_code=1, price=CHEAP)
    assert found.number("cost.total") == Fraction(3, 1000)
    assert found["cost_per_unit.all_in"].value is None
    assert found["cost_per_unit.all_in"].why == "no unit finished"


def test_energy_is_unknown_and_says_why() -> None:
    assert sheet()["energy_j"].value is None
    assert sheet()["energy_j"].why


def test_time_carries_the_share_that_was_measured() -> None:
    loop = [spans(t, t + 1, cpu=0.6, data=0.25) for t in range(18)]
    computing = sheet(ends(4, 8), *loop)["time.computing"]
    # 18 x 0.75 s told by spans, 18 x 0.9 s inferred from samples
    assert computing.value == Fraction(297, 10)
    assert computing.grade is Grade.ASSUMED
    assert computing.shares == {Grade.MEASURED: Fraction(5, 11), Grade.ASSUMED: Fraction(6, 11)}


def test_a_simulated_fact_taints_every_figure() -> None:
    entries = recorded(written(header(price=CHEAP), *busy(36), ends(6, 10, 14), end(36)))
    tainted = [_simulated(entry) if entry.seq == 2 else entry for entry in entries]
    (view,) = run_views(tainted).values()
    found = sheet_of(view, AS_OF)
    grades = {figure.grade for figure in found.figures.values() if figure.value is not None}
    assert grades == {Grade.SIMULATED}
    assert report_json(view, found)["grade"] == "simulated"


def _simulated(entry: Recorded) -> Recorded:
    fact = entry.fact
    return Recorded(
        seq=entry.seq,
        recorded_at=entry.recorded_at,
        fact=type(fact)(
            source=fact.source,
            id=fact.id,
            kind=fact.kind,
            version=fact.version,
            subject=fact.subject,
            valid_from=fact.valid_from,
            valid_to=fact.valid_to,
            grade=Grade.SIMULATED,
            payload=fact.payload,
        ),
    )


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["head", "end", "count"]),
        st.integers(0, 9),
        st.one_of(st.none(), st.integers(0, 30)),
    ),
    max_size=12,
)
PRICES = st.none() | st.builds(
    lambda amount, per: {"amount": amount, "currency": "EUR", "per": per},
    st.sampled_from(["0", "0.30", "3.49", "1000000"]),
    st.sampled_from(["s", "min", "h", "day"]),
)


@given(ROWS, PRICES, st.sampled_from([0, 1, None]), st.integers(0, 30), st.booleans())
def test_every_sheet_stands(
    rows: list[tuple[str, int, int | None]],
    price: dict[str, str] | None,
    exit_code: int | None,
    seconds: int,
    closed: bool,
) -> None:
    lines = [header(price=price), *busy(seconds), marks(*rows)]
    lines += [spans(0, seconds, 1, data=seconds / 4)] if seconds else []
    lines += [end(seconds, exit_code)] if closed else []
    entries = recorded(written(*lines))
    (view,) = run_views(entries).values()
    found = sheet_of(view, AS_OF)
    keys = {entry.fact.key for entry in entries}
    assert list(sheet_breaches(found, keys)) == []
    assert list(cost_breaches(view, found)) == []
    document = report_json(view, found)
    assert sum(document["time"].values()) == pytest.approx(document["wall_s"])
    assert document["wall_s"] == view.wall_us / S
