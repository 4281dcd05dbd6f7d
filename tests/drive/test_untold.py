"""What is kept to where a server, a controller, an accounting or a runner dies in the middle."""

from __future__ import annotations

import os
import signal

from ouvrage.store.platform.slurm_jobs import change_slurm_job, open_slurm_jobs
from tests.drive.conftest import Driven
from tests.drive.test_driving import LONG
from tests.support.driven import PLACES_USER, until


def _row(driven: Driven, job: str):
    with driven.server.platform.reading() as connection:
        rows = open_slurm_jobs(connection, job)
    return rows[0] if rows else None


def test_a_server_that_died_before_the_answer_finds_its_job_again(driven: Driven) -> None:
    with driven.closed():
        job = driven.submit("true")
        until(lambda: bool(driven.queue()), lambda: "it waits at Slurm")
        before = driven.queue()
        row = _row(driven, job)
        with (
            driven.server.platform.writing() as tx
        ):  # as it stands when a server dies between the request and its answer
            change_slurm_job(tx.connection, row.attempt, state="asked", number=None)
        until(lambda: _row(driven, job).state == "queued", lambda: "it was found")
        assert driven.queue() == before
    assert driven.until(job, "done")["attempts"] == 1
    assert len(driven.named(job)) == 1


def test_what_was_never_asked_for_is_asked_for_once_no_request_can_be_under_way(
    driven: Driven,
) -> None:
    with driven.closed():
        job = driven.submit("true")
        until(lambda: bool(driven.queue()), lambda: "it waits at Slurm")
        row = _row(driven, job)
        number = int(driven.queue("%A")[0])
        driven.lab.run(
            "scontrol", "update", f"JobId={number}", "JobName=lost"
        )  # the controller forgot it
        with driven.server.platform.writing() as tx:
            change_slurm_job(
                tx.connection, row.attempt, state="asked", number=None, asked_us=tx.now_us
            )
        driven.server.platform.wakes.tell("engine")
        assert _row(driven, job).state == "asked"  # the request may be under way
        assert driven.explained(job)["code"] == "slurm/away"
        with driven.server.platform.writing() as tx:
            change_slurm_job(tx.connection, row.attempt, asked_us=tx.now_us - 61_000_000)
        until(lambda: len(driven.named(job)) == 1, lambda: "it was asked for again")
        driven.lab.run("scancel", str(number))
    assert driven.until(job, "done")["attempts"] == 1
    driven.settle()


def test_a_second_job_of_one_attempt_is_taken_back(driven: Driven) -> None:
    with driven.closed():
        job = driven.submit("true")
        until(lambda: bool(driven.queue()), lambda: "it waits at Slurm")
        row = _row(driven, job)
        driven.lab.run(
            "sbatch", f"--uid={PLACES_USER}", "--account=acme-main", "--partition=fleet", f"--job-name=ouvrage:{row.attempt}",
            "--chdir=/", "--output=/dev/null", text="#!/bin/sh\nsleep 600\n",
        )  # fmt: skip
        until(lambda: len(driven.queue()) == 1, lambda: f"one is left: {driven.queue()}")
        assert driven.queue("%A") == [str(_row(driven, job).number)]
    driven.until(job, "done")


def test_a_controller_that_was_killed_starts_nothing_twice(driven: Driven) -> None:
    """It may have forgotten what it had not saved, revive what was over, and give the same numbers again."""
    long = driven.submit(*LONG)
    driven.until(long, "running")
    driven.lab.kill("slurmctld")
    job = driven.submit("echo", "hello")
    driven.lab.start("slurmctld")
    assert driven.until(job, "done")["attempts"] == 1
    driven.until(long, "running")
    *before, last = driven.attempts(long)
    assert [each.outcome for each in before] == ["preempted"] * len(before)
    assert not last.over
    until(
        lambda: len(driven.queue()) == 1,
        lambda: f"nothing but it is at Slurm: {driven.queue('%j %T')}",
    )
    driven.cancel(long)


def test_accounting_that_is_away_changes_nothing(driven: Driven) -> None:
    driven.lab.kill("slurmdbd")
    try:
        job = driven.submit("echo", "hello")
        driven.until(job, "done")
        long = driven.submit(*LONG)
        driven.until(long, "running")
        driven.lab.run("scancel", driven.queue("%A")[0])
        told = driven.until(
            long, "cancelled", "waiting", "starting", "failed"
        )  # nobody says yet why it ended
        assert told["last"]["outcome"] in ("cancelled", "preempted")
    finally:
        driven.lab.start("slurmdbd")
    if told["state"] != "cancelled":
        driven.cancel(long)
    driven.settle()


def test_a_runner_that_was_killed_finds_the_place_and_goes_on(driven: Driven) -> None:
    job = driven.submit("sh", "-c", "echo began; until [ -e /scratch/go ]; do sleep 0.2; done")
    driven.until(job, "running")
    name = driven.queue("%N")[0]
    os.kill(driven.runners.running[name].pid, signal.SIGKILL)
    driven.runners.running[name].wait()
    driven.runners.start(name)
    driven.acme.post(f"/v1/jobs/{job}/cancel", {})
    assert driven.until(job, "cancelled")["attempts"] == 1
    driven.settle()


def test_a_batch_job_that_is_killed_ends_its_attempt_at_once(driven: Driven) -> None:
    job = driven.submit(*LONG)
    driven.until(job, "running")
    number = driven.queue("%A")[0]
    driven.lab.run("scancel", "--batch", "--signal=KILL", number)
    until(lambda: driven.attempts(job)[0].over, lambda: driven.runners.words())
    first = driven.attempts(job)[0]
    assert (first.outcome, first.cause) == ("preempted", "platform")
    assert first.reason == "its place was taken back"
    driven.until(job, "running")  # it is tried again
    driven.cancel(job)


def test_a_bad_token_is_doubted_and_replaced(driven: Driven) -> None:
    driven.engine.credential._token = "not one"
    driven.engine.credential._until_us = 2**62
    job = driven.submit("echo", "hello")
    assert driven.until(job, "done")["attempts"] == 1


def test_what_slurm_does_not_take_waits_with_its_words_and_is_asked_again(driven: Driven) -> None:
    user = (
        "sacctmgr",
        "-i",
        "-Q",
        "modify",
        "user",
        "where",
        f"name={PLACES_USER}",
        "account=acme-main",
        "set",
    )
    driven.lab.run(*user, "MaxSubmitJobs=0")
    job = driven.submit("echo", "hello")
    until(
        lambda: driven.explained(job)["code"] == "slurm/refused", lambda: str(driven.explained(job))
    )
    assert "Slurm does not take it" in driven.explained(job)["words"]
    driven.lab.run(*user, "MaxSubmitJobs=-1")
    assert driven.until(job, "done")["attempts"] == 1
    driven.settle()
