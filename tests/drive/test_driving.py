"""What a platform keeps to whose places a real Slurm gives out."""

from __future__ import annotations

import time

from tests.drive.conftest import Driven
from tests.support.driven import until

LONG = ("sh", "-c", "trap 'echo told; exit 7' TERM; echo began; sleep 600 & wait")


def test_a_job_runs_once_where_slurm_put_it_and_its_cores_are_slurms(driven: Driven) -> None:
    job = driven.submit("sh", "-c", "echo hello")
    told = driven.until(job, "done", "failed")
    assert told["state"] == "done", driven.runners.words()
    numbers = driven.named(job)
    assert len(numbers) == 1
    until(lambda: driven.named(job)[0].split("|")[1] == "COMPLETED", lambda: "Slurm sees its end")
    attempt = driven.attempts(job)[0]
    assert numbers[0].split("|")[2] in ("n1", "n2")
    assert len(attempt.placed.cpus) == 1
    assert attempt.placed.memory_mib == 64


def test_what_fails_ends_at_slurm_with_the_same_code(driven: Driven) -> None:
    job = driven.submit("sh", "-c", "exit 3")
    assert driven.until(job, "failed")["last"]["exit_code"] == 3
    until(lambda: driven.named(job)[0].split("|")[1] == "FAILED", lambda: "Slurm sees its end")
    number = driven.named(job)[0].split("|")[0]
    assert "ExitCode=3:0" in driven.lab.run("scontrol", "show", "job", number)


def test_a_lost_answer_makes_no_second_job(driven: Driven) -> None:
    before = driven.relay.lost
    driven.relay.lose("/job/submit")
    job = driven.submit("sh", "-c", "echo once")
    assert driven.until(job, "done", "failed")["state"] == "done", driven.runners.words()
    assert driven.relay.lost == before + 1
    assert len(driven.named(job)) == 1
    assert driven.job(job)["attempts"] == 1


def test_a_running_job_that_is_cancelled_is_given_its_grace(driven: Driven) -> None:
    job = driven.submit(*LONG)
    driven.until(job, "running")
    driven.acme.post(f"/v1/jobs/{job}/cancel", {})
    told = driven.until(job, "cancelled")
    assert (told["last"]["outcome"], told["last"]["exit_code"]) == ("cancelled", 7)
    driven.settle()


def test_a_waiting_job_that_is_cancelled_is_taken_back_from_slurm(driven: Driven) -> None:
    with driven.closed():
        job = driven.submit("true")
        until(
            lambda: driven.explained(job)["code"] == "slurm/partition",
            lambda: str(driven.explained(job)),
        )
        assert driven.explained(job)["owner"] == {"slurm": "PartitionDown"}
        assert driven.acme.get(f"/v1/jobs/{job}/explain")["owner"] is None
        driven.cancel(job)


def test_what_is_cancelled_at_slurm_is_cancelled_here(driven: Driven) -> None:
    job = driven.submit(*LONG)
    driven.until(job, "running")
    driven.lab.run("scancel", driven.queue("%A")[0])
    told = driven.until(job, "cancelled", "failed", "waiting", "starting")
    assert (told["state"], told["last"]["outcome"]) == ("cancelled", "cancelled"), (
        driven.runners.words()
    )
    assert "cancelled at Slurm" in told["last"]["reason"]


def test_a_failed_node_is_left_and_the_job_runs_elsewhere(driven: Driven) -> None:
    job = driven.submit("sh", "-c", "[ -e /scratch/x ] && exit 0; sleep 600", checkpoint="/scratch")
    driven.until(job, "running")
    bad = driven.queue("%N")[0]
    try:
        driven.lab.run("scontrol", "update", f"NodeName={bad}", "State=DOWN", "Reason=test")
        until(
            lambda: driven.job(job)["attempts"] == 2,
            lambda: f"a second attempt\n{driven.runners.words()}",
        )
        driven.until(job, "running")
        assert driven.queue("%N") == [{"n1": "n2", "n2": "n1"}[bad]]
        first, second = driven.attempts(job)
        assert (first.outcome, first.cause) == ("hardware", "hardware")
        assert first.node != second.node
    finally:
        driven.lab.run("scontrol", "update", f"NodeName={bad}", "State=RESUME")
    driven.cancel(job)


def test_work_that_ranks_before_it_gets_its_place_after_the_notice(driven: Driven) -> None:
    driven.lab.run("sacctmgr", "-i", "-Q", "modify", "qos", "spot", "set", "GraceTime=60")
    driven.offer("spot", interruptible=True, notice_us=2_000_000, memory_mib=12_000)
    driven.offer("prime", memory_mib=12_000)
    filling = [
        driven.lab.submit(
            "sleep 600",
            "--partition=fleet",
            "--mem=45000M",
            f"--nodelist={node}",
            "--account=vision",
        )
        for node in ("n1", "n2")
    ]  # so that each node has room for one more
    spots = [driven.submit(*LONG, offer="spot") for _ in range(2)]
    for job in spots:
        driven.until(job, "running")
    assert driven.queue("%q") == ["spot", "spot"]
    prime = driven.submit("true", offer="prime")
    began = time.monotonic()
    told = driven.until(prime, "done", "failed")
    assert told["state"] == "done", f"{driven.explained(prime)}\n{driven.runners.words()}"
    assert time.monotonic() - began < 25  # and not at the end of Slurm's own grace
    ended = [each for job in spots for each in driven.job(job)["all_attempts"] if each["outcome"]]
    assert [(each["outcome"], each["exit_code"]) for each in ended] == [
        ("preempted", 7)
    ]  # it was told, and could save
    driven.cancel(*spots)
    driven.lab.run("scancel", *filling)


def test_a_withheld_node_is_drained_with_our_reason_and_other_drains_are_left(
    driven: Driven,
) -> None:
    def reasons() -> dict[str, str]:
        said = driven.lab.run("sinfo", "-h", "-N", "-p", "fleet", "-o", "%N|%t|%E")
        rows = [line.split("|") for line in said.splitlines()]
        return {name: reason if state in ("drain", "drng") else "" for name, state, reason in rows}

    driven.lab.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=fan broken")
    try:
        for name in ("n1", "n2"):
            driven.owner.post(f"/v1/nodes/{name}/fence", {"held": True, "why": "memory errors"})
        until(
            lambda: reasons() == {"n1": "ouvrage: memory errors", "n2": "fan broken"},
            lambda: str(reasons()),
        )
        job = driven.submit("true")
        until(
            lambda: driven.explained(job)["code"] == "placement/fenced",
            lambda: str(driven.explained(job)),
        )
        for name in ("n1", "n2"):
            driven.owner.post(f"/v1/nodes/{name}/fence", {"held": False})
        driven.until(job, "done")
        assert reasons() == {"n1": "", "n2": "fan broken"}
    finally:
        driven.lab.run("scontrol", "update", "NodeName=n2", "State=RESUME")
    driven.settle()


def test_a_job_after_another_waits_here_and_not_at_slurm(driven: Driven) -> None:
    first = driven.submit(*LONG, name="first")
    after = driven.submit("true", after=["first"])
    driven.until(first, "running")
    assert driven.explained(after)["code"] == "placement/dependency"
    assert len(driven.queue()) == 1
    driven.acme.post(f"/v1/jobs/{first}/cancel", {})
    driven.until(after, "refused")
    assert driven.explained(after)["code"] == "job/dependency"


def test_a_lease_is_refused_with_the_reason(driven: Driven) -> None:
    answer = driven.acme(
        "POST", "/v1/leases", {"project": "main", "offer": "small", "for_us": 3_600_000_000}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "lease/slurm")


def test_priorities_and_limits_are_slurms_too(driven: Driven) -> None:
    with driven.closed():
        jobs = [driven.submit("true", priority=p, time_limit="90m") for p in (-5, 5)]
        until(lambda: len(driven.queue()) == 2, lambda: "both wait at Slurm")
        assert sorted(driven.queue("%y %l")) == ["1005 1:32:00", "995 1:32:00"]
        driven.cancel(*jobs)
