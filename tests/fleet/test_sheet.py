"""Every figure of a fleet's report has a name, what it was made from adds up to it, and the way back ends at rows of accounting."""

from __future__ import annotations

from fractions import Fraction

from ouvrage.adapters.rate_files import frozen_plan
from ouvrage.base.numbers import NANO
from ouvrage.base.time import HOUR
from ouvrage.books.fleet.report import fleet_report
from ouvrage.books.fleet.sheet import fleet_sheet
from ouvrage.evidence.figures import Sheet
from tests.fleet.fleets import DAY, Cluster, at

WEIGHTS = "CPU=1.0,GRES/gpu=10.0"


def lab() -> Cluster:
    made = (
        Cluster()
        .whole()
        .partition("gpu", WEIGHTS)
        .account("physics")
        .account("vision", "physics")
        .account("guests")
    )
    made.node("n1").node("n2", 2).rate(frozen_plan("per-second")[1])
    made.job(1, 2, 6, "n1", 4, submit=1, billing=41).job(
        2, 6, 7, "n1,n2", 2, state="FAILED", submit=6
    )
    made.job(
        3, 10, 11, "n2", 1, account="guests", user="gil", state="NODE_FAIL", submit=8, gpu_kib=0
    )
    made.job(4, None, None, None, 4, state="PENDING", submit=12)
    return made.event("n2", "DRAIN", 12, 14).reserved("n1", 20, 22)  # fmt: skip


def sums(sheet: Sheet, path: str) -> Fraction:
    return sum((sheet.number(each) or Fraction(0) for each in sheet[path].inputs), Fraction(0))


def test_what_a_figure_is_made_from_adds_up_to_it() -> None:
    found = fleet_report(lab().fleet, DAY, None, ())
    sheet = fleet_sheet(found, "fleet/lab/2026-11-01", at(30))
    assert sheet.number("hours.owned") == Fraction(found.time.owned_us, HOUR) == 24 * 6
    totals = [path for path in sheet.figures if path.startswith(("hours.", "causes.", "owes."))]
    totals += [path for path in sheet.figures if path.endswith(".gpu_hours") and sheet[path].inputs]
    assert len(totals) > 12
    for path in totals:
        assert sums(sheet, path) == sheet.number(path), path
    for name, us in found.time.by_state().items():
        assert sheet.number(f"hours.{name}") == Fraction(us, HOUR)
    assert sheet.number("accounts.vision.gpu_hours") == 16 + 2
    assert sheet.number("accounts.vision.completed_share") == Fraction(16, 18)
    assert sheet.number("lost.NODE_FAIL.cost") == 0
    assert sheet.number("owes.physics") == Fraction("37.8")
    assert sum(found.billed.nano.values()) == 37_800_000_000 == NANO * Fraction("37.8")


def test_the_way_back_ends_at_what_was_stated() -> None:
    made = lab()
    sheet = fleet_sheet(fleet_report(made.fleet, DAY, None, ()), "fleet/lab/2026-11-01", at(30))
    stated = {each.key for ours in made.said.values() for each in ours}

    def behind(path: str) -> set[str]:
        figure = sheet[path]
        return set(figure.facts).union(*(behind(each) for each in figure.inputs))

    for path, figure in sheet.figures.items():
        assert behind(path) <= stated, path
        assert behind(path) or not figure.value, path
    mine = {e.key for e in made.said[type(made.fleet.attempts[0].known.value)] if e.value.account == "guests"}  # fmt: skip
    assert set(sheet["accounts.guests.failed"].facts) == mine
    assert any(key.startswith("ClusterRate") for key in behind("owes.physics"))
    assert not {"n1"} & {
        path.split(".")[1] for path in sheet["causes.maintenance.drain-fan"].inputs
    }
