"""The laws over facts about work find what they are for, and nothing in what is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.fleet import ClusterPlaced
from ouvrage.model.selling import LeaseEnded, LeaseGranted, Placed
from ouvrage.model.work import AttemptEnded, AttemptOrdered, JobEnded, JobSubmitted, Peaks
from ouvrage.placement.laws import LAWS
from ouvrage.placement.spec import job_spec

SPEC = job_spec({"command": ["true"]})
NO_PEAKS = Peaks(
    memory_bytes=None, cpu_us=None, processes=None, disk_bytes=None, sent_bytes=None,
    received_bytes=None, oom_kills=None,
)  # fmt: skip


def placed(*cpus: int, devices: Sequence[str] = ()) -> Placed:
    return Placed(node="n", devices=tuple(devices), cpus=cpus, memory_mib=1, disk_mib=0)


def submitted(job: str) -> JobSubmitted:
    return JobSubmitted(job=job, org="o", project="p", user="u", offer="f", lease=None, spec=SPEC)


def ordered(attempt: str, job: str, number: int, *cpus: int, lease: str = "", **more: Any):
    return AttemptOrdered(
        attempt=attempt, job=job, number=number, lease=lease or f"l-{attempt}",
        placed=placed(*cpus, **more), why="",
    )  # fmt: skip


def over(attempt: str, job: str) -> AttemptEnded:
    return AttemptEnded(
        attempt=attempt, job=job, wall_us=1, exit_code=0, signal=None, outcome="done",
        cause="program", reason="", isolation="sandbox", peaks=NO_PEAKS, scrub="clean",
        scrub_detail="",
    )  # fmt: skip


def done(job: str) -> JobEnded:
    return JobEnded(job=job, state="done", code="job/done", reason="")


def granted(lease: str, *cpus: int, kind: str = "term", attempt: str | None = None):
    return LeaseGranted(
        lease=lease, offer="f", org="o", project="p", kind=kind, attempt=attempt,
        placed=placed(*cpus), until_us=None,
    )  # fmt: skip


def ended(lease: str, at_us: int = 9) -> LeaseEnded:
    return LeaseEnded(lease=lease, at_us=at_us, end="released", why="", billable_us=1)


def found(*values: Any) -> dict[str, list[str]]:
    records = [
        Recorded(
            seq=seq,
            recorded_at=seq,
            fact=fact_of(
                value, source="s", id=str(seq), subject="x", valid_from=5, valid_to=9,
                grade=Grade.METERED,
            ),
        )
        for seq, value in enumerate(values, 1)
    ]  # fmt: skip
    broken = {law.name: [b.found for b in law.breaches(records)] for law in LAWS}
    return {name: breaches for name, breaches in broken.items() if breaches}


def test_what_is_right_breaks_nothing() -> None:
    assert not found(
        submitted("j"),
        ordered("a", "j", 1, 0),
        granted("l-a", 0, kind="job", attempt="a"),
        over("a", "j"),
        ended("l-a"),
        ordered("b", "j", 2, 0),
        over("b", "j"),
        done("j"),
        granted("t", 0, 1),
        submitted("k"),
        ordered("c", "k", 1, 1, lease="t"),
        ended("t"),
        granted("u", 0),
        over("c", "k"),
        granted("v", 1),
    )


def by_slurm(attempt: str) -> ClusterPlaced:
    return ClusterPlaced(cluster="c", job=attempt, submit_us=1, attempt=attempt)


def test_cores_of_a_slurm_are_its_own_to_share_and_gpus_are_not() -> None:
    jobs = [submitted("j"), submitted("k")]
    cores = [ordered("a", "j", 1, 0), ordered("b", "k", 1, 0)]
    assert list(found(*jobs, *cores)) == ["work/exclusive"]
    assert not found(*jobs, *cores, by_slurm("a"), by_slurm("b"))
    gpu = [ordered(a, j, 1, 0, devices=["G"]) for a, j in (("a", "j"), ("b", "k"))]
    assert list(found(*jobs, *gpu, by_slurm("a"), by_slurm("b"))) == ["work/exclusive"]


@pytest.mark.parametrize(
    ("law", "values"),
    [
        ("work/attempts", [submitted("j"), ordered("a", "j", 1), over("a", "j"), over("a", "j")]),
        ("work/attempts", [submitted("j"), over("a", "j")]),
        ("work/jobs", [submitted("j"), ordered("a", "j", 1), ordered("b", "j", 2)]),
        ("work/jobs", [submitted("j"), ordered("a", "j", 2)]),
        ("work/jobs", [submitted("j"), done("j"), ordered("a", "j", 1)]),
        ("work/jobs", [ordered("a", "j", 1)]),
        ("work/exclusive", [granted("t", 0, 1), granted("u", 1)]),
        ("work/exclusive", [submitted("j"), granted("t", 0), ordered("a", "j", 1, 0)]),
        (
            "work/exclusive",
            [
                submitted("j"),
                granted("t", 0),
                ordered("a", "j", 1, 0, lease="t"),
                ended("t"),
                granted("u", 0),
            ],
        ),
        (
            "work/exclusive",
            [
                submitted("j"),
                submitted("k"),
                ordered("a", "j", 1, 0, devices=["G"]),
                ordered("b", "k", 1, 1, devices=["G"]),
            ],
        ),
        ("work/leases", [granted("t", 0), ended("t"), ended("t")]),
        ("work/leases", [ended("t")]),
        ("work/leases", [granted("t", 0), ended("t", at_us=4)]),
        ("work/leases", [granted("t", 0, kind="job", attempt="a")]),
    ],
)
def test_what_is_wrong_breaks_its_law(law: str, values: list[Any]) -> None:
    assert list(found(*values)) == [law]
