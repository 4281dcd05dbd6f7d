"""How much of what was paid for was good: clusters, published summaries, pods with fractions of a GPU."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.adapters.feeds.told import Told
from ouvrage.adapters.feeds.traces import read_nodes, read_pods, read_summary
from ouvrage.base.errors import OuvrageError
from ouvrage.books.goodput import cluster_goodput
from ouvrage.books.period import period_named
from ouvrage.books.pods import Pod, PodNode, pod_use
from tests.blackbox.home import home_in
from tests.cluster.exports import attempts, row


def data(*names: str) -> list[Path]:
    found = [Path(os.environ.get("OUVRAGE_DATA", "nowhere")) / name for name in names]
    if not all(path.is_file() for path in found):
        pytest.skip(f"OUVRAGE_DATA is not set to a directory with {' and '.join(names)} in it")
    return found


def test_parts_add_up_and_the_multiple_is_all_over_completed():
    found = cluster_goodput(
        attempts(
            row(), row(JobIDRaw="2", State="FAILED"), row(JobIDRaw="3", State="CANCELLED by 5"),
            row(JobIDRaw="4", State="OUT_OF_MEMORY"), row(JobIDRaw="5", State="TIMEOUT"),
            row(JobIDRaw="6", State="RUNNING", End="Unknown", ElapsedRaw="7200"),
            row(JobIDRaw="7", AllocTRES=""),
        )
    )  # fmt: skip
    assert found.hours == {"completed": 8, "failed": 16, "cancelled": 8, "timeout": 8, "going": 8}
    assert (found.share, found.multiple, found.unknown) == (Fraction(1, 6), 6, 1)
    assert found.waited_us == 3_600_000_000


def test_a_period_cuts_and_what_was_paid_and_not_used_is_idle():
    day = period_named("2026-11-02", "UTC")
    night = row(Start="2026-11-01T22:00:00", End="2026-11-02T02:00:00")
    found = cluster_goodput(attempts(night, row(JobIDRaw="2")), day, 8)
    assert found.hours == {"completed": 8, "idle": 184}
    assert found.multiple == 24
    with pytest.raises(OuvrageError) as caught:
        cluster_goodput(
            attempts(row(Start="2026-11-02T00:00:00", End="2026-11-03T00:00:00")), day, 3
        )
    assert caught.value.code == "goodput/capacity"


def test_nothing_completed_is_no_price():
    found = cluster_goodput(attempts(row(State="FAILED")))
    assert (found.share, found.multiple) == (0, None)
    assert cluster_goodput(()).share is None


def test_acme_s_completed_hours_cost_a_multiple(tmp_path: Path):
    (path,) = data("acme/cluster_summary.csv")
    found = dict(read_summary(path.read_text(), Told(form="trace", file="f")))
    multiples = {name: each and each.multiple for name, each in found.items()}
    assert {name: each and round(each, 1) for name, each in multiples.items()} == {
        "Seren": Fraction(47, 10), "Kalos": Fraction(16, 5), "Philly": Fraction(31, 10),
        "Helios": Fraction(2), "PAI": None,
    }  # fmt: skip
    said = home_in(tmp_path, "home").inside("books", "goodput", "--summary", str(path))
    assert said.code == 0
    assert said.first.startswith("Seren: one completed GPU-hour costs 4.7× the price of an hour")
    assert "Kalos: one completed GPU-hour costs 3.2×" in said.out
    assert (
        "an upper bound: a job that failed or was cancelled may have left a checkpoint" in said.out
    )


def test_openb_s_pods_hold_exactly_their_fractions(tmp_path: Path):
    pods, nodes = data("openb/openb_pod_list_default.csv", "openb/openb_node_list_gpu_node.csv")
    told = Told(form="trace", file="f")
    use = pod_use(read_pods(pods.read_text(), told), read_nodes(nodes.read_text(), told))
    assert not told.faults
    assert round(use.held, 3) == Fraction("51470.674")
    assert (use.scheduled, use.never, use.fractions) == (7255, 897, 3078)
    assert use.idle is not None
    assert use.there is not None
    assert use.idle + use.held == use.there
    assert use.peak <= 6212
    assert not use.over
    home = home_in(tmp_path, "home")
    said = home.inside(
        "books", "goodput", "--pods", str(pods), "--nodes", str(nodes), "--price", "1/h"
    )
    assert said.code == 0
    assert said.first == (
        "51470.674 GPU-hours ◐ held by 7255 pods, 51470.67 EUR at 1 EUR/h; "
        "897 were never placed and cost nothing"
    )


def test_more_fractions_than_a_node_has_are_told():
    ours = [
        Pod(name=str(i), phase="Running", milli=600, begins=i * 10, ends=i * 10 + 15, node="n")
        for i in range(2)
    ]
    use = pod_use(ours, [PodNode(name="n", gpus=1)])
    assert use.over == ("all nodes: 1.2 of 1 GPUs", "n: 1.2 of 1 GPUs")
    after = Pod(name="2", phase="Running", milli=1000, begins=15, ends=20, node="n")
    assert not pod_use([ours[0], after], [PodNode(name="n", gpus=1)]).over


def test_bad_rows_of_a_trace_are_told():
    head = "name,num_gpu,gpu_milli,pod_phase,deletion_time,scheduled_time\n"
    told = Told(form="trace", file="f")
    bad = ("a,1,1000,Running,5,9", "b,1,2000,Running,9,5", "c,x,1,Running,9,5", "d,1,1,Running,,5")
    assert not read_pods(head + "\n".join(bad), told)
    assert [fault.place for fault in told.faults] == ["2", "3", "4", "5"]
    with pytest.raises(OuvrageError) as caught:
        read_nodes(head, Told(form="trace", file="f"))
    assert caught.value.code == "goodput/columns"


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 1000), st.integers(0, 99), st.integers(0, 99)),
        max_size=8,
    )
)
def test_idle_and_held_are_what_is_there(shapes: list[tuple[int, int, int, int]]):
    pods = [
        Pod(name="p", phase="Running", milli=gpus * milli, begins=at, ends=at + many, node=None)
        for gpus, milli, at, many in shapes
    ]
    use = pod_use(pods, [PodNode(name="n", gpus=40)])
    assert use.there is not None
    assert use.idle is not None
    assert use.held + use.idle == use.there
    assert use.idle >= 0
    assert not use.over
