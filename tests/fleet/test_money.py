"""What accounts would owe, beside the cluster's own billing units: every difference explained until nothing is left."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.rate_files import frozen_plan
from ouvrage.base.numbers import NANO
from ouvrage.books.fleet.bill import billed
from ouvrage.books.fleet.weights import CORES, GPUS, MEMORY, OTHER, ROUNDED, weighed, weights_of
from ouvrage.books.fleet.work import evidence_of, had_by, hollow, lost, waited, within
from ouvrage.books.known import Known
from ouvrage.model.sites import Term
from tests.fleet.fleets import DAY, START, Cluster, at

PLAN = frozen_plan("per-second")[1]
WEIGHTS = "CPU=1.0,Mem=0.25G,GRES/gpu=10.0"


def _lab() -> Cluster:
    lab = Cluster().node("n1").whole().partition("gpu", WEIGHTS).rate(PLAN)
    return lab.account("physics").account("vision", "physics").account("guests")


def _billed(lab: Cluster, terms: tuple[Known[Term], ...] = ()):
    return billed(lab.fleet, within(lab.fleet, DAY), DAY, DAY.to_us, terms)


def test_an_account_at_the_top_is_the_tenant_and_those_below_are_its_projects():
    lab = _lab().job(1, 0, 2, gpus=2).job(2, 2, 3, account="physics").job(3, 3, 4, account="guests")
    found = _billed(lab)
    assert {name: each.net for name, each in found.drafts.items()} == {
        "physics": 5 * 2_100_000_000,
        "guests": 2_100_000_000,
    }
    assert dict(found.drafts["physics"].projects) == {
        "vision": 8_400_000_000,
        "physics": 2_100_000_000,
    }
    assert found.drafts["physics"].total is None
    tax = Term(about="channel:own", name="sales_tax", value="0.2", unit="1", said_by="law")
    known = Known(
        value=tax, valid_from=0, valid_to=None, grade=lab.fleet.attempts[0].known.grade, key="t"
    )
    assert _billed(lab, (known,)).drafts["guests"].total == 2_520_000_000


def test_a_price_of_a_class_comes_first_a_later_one_holds_later_and_none_is_told():
    lab = _lab().rate(PLAN, "1", qos="low").rate(PLAN, "3", since=6)
    lab.job(1, 0, 1, qos="low").job(2, 0, 1, qos="normal").job(3, 6, 7)
    lab.job(4, 0, 1, partition="debug").job(5, 0, 1, gpus=0, cpus=8)
    found = _billed(lab)
    assert {name: nano // NANO for name, nano in found.nano.items()} == {
        "lab/1/1": 1,
        "lab/2/1": 2,
        "lab/3/1": 3,
    }
    assert [each.job for each in found.unpriced] == ["4", "5"]
    lab.rate(PLAN, "0.02", per="cpu")
    assert _billed(lab).nano["lab/5/1"] == 160_000_000


def test_a_node_that_failed_is_not_charged_and_a_job_that_runs_is_not_yet():
    lab = (
        _lab()
        .job(1, 0, 2, state="NODE_FAIL")
        .job(2, 0, 2, state="TIMEOUT")
        .job(3, 2, None, state="RUNNING")
    )
    draft = _billed(lab).drafts["physics"]
    assert draft.charged == 4_200_000_000
    assert [(each.why, each.us) for each in draft.unbilled] == [("node fail", at(2) - at(0))]


_jobs = st.lists(
    st.tuples(st.sampled_from(["vision", "guests", "physics"]), st.integers(0, 4), st.integers(1, 16), st.integers(0, 2**24),
              st.integers(0, 90), st.integers(1, 80_000)),
    max_size=8,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(_jobs)
def test_differences_are_taken_apart_until_nothing_is_left(
    jobs: list[tuple[str, int, int, int, int, int]],
):
    lab = _lab().rate(PLAN, "0.02", per="cpu")
    for number, (account, gpus, cpus, kib, billing, seconds) in enumerate(jobs):
        lab.job(
            number,
            0,
            seconds / 3600,
            gpus=gpus,
            cpus=cpus,
            account=account,
            memory_kib=kib,
            billing=billing,
        )
    found = _billed(lab)
    compared = weighed(lab.fleet, within(lab.fleet, DAY), found)
    for name, draft in found.drafts.items():
        assert draft.charged == sum(line.nano for line in draft.lines), name
    if compared is not None:
        for split in compared.splits:
            assert sum(split.parts.values()) == split.charged - split.worth
        assert sum(split.worth for split in compared.splits) == sum(
            split.charged for split in compared.splits
        )


def test_weights_name_what_they_weigh():
    assert weights_of(WEIGHTS) == {"cpu": 1, "mem": Fraction(1, 4096), "gres/gpu": 10}
    lab = _lab().job(1, 0, 1, gpus=1, cpus=4, memory_kib=4 * 1024**2, billing=15)
    lab.job(2, 0, 1, gpus=1, cpus=4, memory_kib=4 * 1024**2, billing=16, account="guests")
    compared = weighed(lab.fleet, within(lab.fleet, DAY), _billed(lab))
    assert compared is not None
    worth = compared.worth_of_unit
    assert worth == Fraction(4_200_000_000, 31)
    parts = {split.tenant: split.parts for split in compared.splits}
    assert parts["physics"] == {
        GPUS: 2_100_000_000 - 10 * worth,
        CORES: -4 * worth,
        MEMORY: -worth,
        OTHER: 0,
        ROUNDED: 0,
    }
    assert parts["guests"][OTHER] == -worth


def test_waits_failures_and_allotted_time_without_work():
    lab = _lab()
    for number in range(20):
        lab.job(number, number / 20 + 1, number / 20 + 1.05, submit=1)
    lab.job(50, 4, 6, state="FAILED", gpu_kib=0).job(51, 6, 7, state="NODE_FAIL", gpu_kib=4).job(
        52, 7, 9, cpu_us=1
    )
    attempts = within(lab.fleet, DAY)
    wait = waited(lab.fleet, [each for each in attempts if int(each.job) < 20], DAY)[0]
    assert (wait.jobs, wait.median_us, wait.p95_us) == (20, at(9 / 20) - START, at(18 / 20) - START)
    assert waited(lab.fleet, attempts[:2], DAY)[0].p95_us is None
    assert [(each.state, each.hours) for each in lost(attempts, DAY)] == [
        ("FAILED", 2),
        ("NODE_FAIL", 1),
    ]
    assert {evidence_of(lab.fleet, each) for each in attempts} == {
        "unknown",
        "no_process",
        "busy",
        "no_cpu",
    }
    found = hollow(lab.fleet, attempts, DAY)[0]
    assert (found.no_process, found.busy, found.no_cpu, found.unknown) == (2, 1, 2, 1)
    groups = had_by(lab.fleet, attempts, DAY, users=False)
    assert [(each.tenant, each.account, each.jobs) for each in groups] == [
        ("physics", "vision", 23)
    ]
