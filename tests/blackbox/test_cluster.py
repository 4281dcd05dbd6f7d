"""From an empty home and a cluster's exports to its calendar and to what a good hour cost."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.blackbox.home import Home
from tests.cluster.exports import export, row

EVENTS = """Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
lab|n1|2026-11-01T11:30:00|2026-11-01T14:00:00|DRAIN|new fan|root
"""
ROWS = (
    row(),
    row(JobIDRaw="1.batch", Submit="2026-11-01T10:00:00", End="2026-11-01T12:00:02"),
    row(JobIDRaw="2", State="PREEMPTED", Start="2026-11-02T00:00:00", End="2026-11-02T02:00:00"),
    row(JobIDRaw="2", State="FAILED", Start="2026-11-02T02:00:00", End="2026-11-02T03:00:00"),
    row(JobIDRaw="3", State="CANCELLED by 7", AllocTRES="gres/gpu=3,node=2", Account="bio"),
)


@pytest.fixture
def files(ouvrage: Home) -> Path:
    place = ouvrage.path.parent
    (place / "jobs.txt").write_text(export(*ROWS))
    (place / "events.txt").write_text(EVENTS)
    return place


@pytest.mark.usefixtures("files")
def test_a_cluster_s_exports_become_a_calendar_and_a_price(ouvrage: Home):
    init = ("init", "--node", "n1", "--gpus", "2", "--since", "2026-11-01", "--zone", "UTC")
    assert ouvrage.inside(*init).code == 0
    said = ouvrage.inside(
        "import", "sacct", "jobs.txt", "events.txt", "--whole", "2026-11-01..2026-11-03"
    )
    assert said.code == 0, said
    assert said.first == "3 jobs, 26.0 GPU-hours ◐; 1 event of nodes, 2026-11-01 to 2026-11-02"
    for line in (
        "  1 attempt more than jobs: they were started again",
        "  1 step ended after the job, whose own end counts",
        "  1 attempt cannot be put on nodes: no node list, or GPUs that they do not share evenly",
        "  1 of 2 nodes stand in the books; others: ouvrage own node NAME",
    ):
        assert line in said.out.splitlines()
    calendar = ouvrage.inside("books", "calendar", "--from", "2026-11-01", "--to", "2026-11-03")
    assert calendar.first == (
        "2 GPUs in 2026-11-01..2026-11-03: 96.0 h owned; 10.0 h working, 82.0 h free, 4.0 h maintenance."
    )
    good = ouvrage.inside("books", "goodput", "--price", "2.10/h", "--by", "account")
    assert good.first == (
        "one completed GPU-hour costs 3.2× the price of an hour ◐ (6.825 EUR at 2.10 EUR/h ?): "
        "30.8 % of 26.0 GPU-hours completed"
    )
    assert "bio" in good.out
    answer = ouvrage.inside("books", "goodput", "--month", "2026-11", "--gpus", "4", "--json").json
    assert answer["gpu_hours"]["idle"] == "2854"
    assert answer["bound"] == "upper"
    why = ouvrage.inside("explain", "n1/2026-11-01..2026-11-03:hours.working")
    assert "cluster.job" in why.out
    assert ouvrage.inside("verify").code == 0


@pytest.mark.usefixtures("files")
def test_replayed_shuffled_cut_and_overlapping_exports_have_one_hash(
    homes, ouvrage: Home, files: Path
):
    whole = ouvrage.inside("import", "sacct", "jobs.txt", "events.txt", "--json").json
    other = homes("other")
    rows = list(ROWS) * 2
    Random(3).shuffle(rows)
    (files / "late.txt").write_text(export(*rows[4:]))
    (files / "early.txt").write_text(export(*rows[:7]))
    other.inside("import", "sacct", "late.txt")
    other.inside("import", "sacct", "events.txt")
    said = other.inside("import", "sacct", "early.txt", "--json").json
    assert said["ledger_hash"] == whole["ledger_hash"]
    again = ouvrage.inside("import", "sacct", "early.txt", "--json").json
    assert (again["new"], again["corrected"]) == (0, 0)
    assert again["ledger_hash"] == whole["ledger_hash"]


def _sacct(name: str) -> Path:
    found = Path(os.environ.get("OUVRAGE_DATA", "nowhere")) / "sacct" / name
    if not found.is_file():
        pytest.skip(f"OUVRAGE_DATA is not set to a directory with sacct/{name} in it")
    return found


def test_real_exports_come_in(homes):
    small = _sacct("sample-sacct-output-midnight-edge-case-small.txt")
    said = homes("small").inside("import", "sacct", str(small), "--json")
    assert said.code == 0
    answer = said.json
    assert [answer[name] for name in ("rows", "jobs", "steps_after_job", "gpu_hours_unknown")] == [
        11,
        3,
        5,
        3,
    ]
    large = homes("large")
    answer = large.inside(
        "import", "sacct", str(_sacct("sample-sacct-running-output-large.txt")), "--json"
    ).json
    assert (answer["rows"], answer["new"], answer["distinct"]) == (5040, 2, 1)
    assert [fact[3] for fact in large.facts()] == ["cluster.job", "cluster.use"]
    hashes = {
        homes(name)
        .inside("import", "sacct", str(_sacct(f"sample-sacct-{name}.txt")), "--json")
        .json["ledger_hash"]
        for name in ("fake-line-break", "one-multiline", "multiple-multiline")
    }
    assert len(hashes) == 1
    broken = homes("broken").inside(
        "import", "sacct", str(_sacct("sample-sacct-output-invalid-utf8.txt"))
    )
    assert broken.code == 0
    assert r"bytes that are no UTF-8 are kept as \xNN" in broken.out
    invalid = homes("invalid").inside(
        "import", "sacct", str(_sacct("sample-sacct-output-with-invalid-lines.txt"))
    )
    assert invalid.code == 1
    assert "found '93 cells', expected 109: a part of a row" in invalid.out


def test_a_midnight_export_cut_in_two_is_the_same(homes, tmp_path: Path):
    head, *rows = (
        _sacct("sample-sacct-output-midnight-edge-case-small.txt").read_text().splitlines()
    )
    cut = homes("cut")
    for name, part in (
        ("after", [r for r in rows if "2021-04-08" in r]),
        ("before", [r for r in rows if "2021-04-07" in r]),
    ):
        (cut.path.parent / name).write_text("\n".join([head, *part]))
        said = cut.inside("import", "sacct", name, "--json").json
    whole = (
        homes("whole")
        .inside(
            "import",
            "sacct",
            str(_sacct("sample-sacct-output-midnight-edge-case-small.txt")),
            "--json",
        )
        .json
    )
    assert said["ledger_hash"] == whole["ledger_hash"]


def test_a_campaign_s_unit_by_part(ouvrage: Home):
    started = ouvrage(
        "run", "--price", "3600/h", "--campaign", "spring", "--label", "one", "--", "true"
    )
    assert started.code == 0
    assert ouvrage.inside("accept", "one", "--units", "1", "--why", "looked at it").code == 0
    said = ouvrage.inside("books", "goodput", "--campaign", "spring", "--also", "tax=1.5", "--json")
    answer = said.json
    parts = {name: float(cost) for name, cost in answer["parts"].items()}
    assert abs(sum(parts.values()) - float(answer["total"])) < 1e-9
    assert parts["tax"] == 1.5
    assert answer["not_stated"] == ["reserved unused", "storage", "traffic", "energy"]
    assert float(answer["cost_per_accepted_unit"]) == pytest.approx(float(answer["total"]))
    assert ouvrage.inside("books", "goodput", "--campaign", "spring").first.startswith(
        "spring: one accepted "
    )


def test_bad_questions_are_refused(ouvrage: Home, tmp_path: Path):
    (ouvrage.path.parent / "other.txt").write_text("1|2|3\n")
    for call, code in (
        (("books", "goodput"), "goodput/none"),
        (("books", "goodput", "--month", "2026-11", "--year", "2026"), "period/which"),
        (("books", "goodput", "--summary", "other.txt"), "goodput/columns"),
        (("books", "goodput", "--pods", "other.txt", "--summary", "other.txt"), "goodput/which"),
        (("import", "sacct", "other.txt"), "sacct/columns"),
        (("import", "sacct", "nowhere.txt"), "import/file"),
    ):
        said = ouvrage.inside(*call)
        assert said.code == 2, said
        assert f"error[{code}]" in said.err
