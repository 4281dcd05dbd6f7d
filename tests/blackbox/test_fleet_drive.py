"""From an empty directory to a job that a real Slurm placed and our sandbox executed, as owner and tenant type it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.blackbox.home import Home, Said
from tests.blackbox.platform_home import platform_of
from tests.support.driven import (
    PLACES_USER,
    Runners,
    partition_of_ours,
    runners,
    server_toml,
    until,
)
from tests.support.orders import missing
from tests.support.slurm import Slurm


@pytest.fixture
def fleet(ouvrage: Home, lab: Slurm, tmp_path: Path) -> Iterator[tuple[Home, Runners]]:
    why = missing()
    if why:
        pytest.skip(why)
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    with ExitStack() as ends:
        rest = ends.enter_context(partition_of_ours(lab))
        (state / "server.toml").write_text(server_toml(lab, rest))
        owner = ends.enter_context(platform_of(ouvrage, state, "--no-runner"))
        tokens = [_good(owner("node", "enrol", "--json")).json["secret"] for _ in range(2)]
        url = owner.environment["OUVRAGE_URL"]
        working = ends.enter_context(runners(lab, tmp_path, url, tokens))
        until(lambda: len(owner("node", "list", "--json").json) == 2, lambda: working.words())
        yield owner, working


def _good(said: Said) -> Said:
    assert said.code == 0, said.err
    return said


def _until(home: Home, working: Runners, *arguments: str, holds: Callable[[Said], bool]) -> Said:
    for _ in range(100):
        said = home(*arguments)
        if holds(said):
            return said
    raise AssertionError(f"{said}\n{working.words()}")


def test_a_job_is_placed_by_slurm_and_runs_in_the_sandbox(fleet: tuple[Home, Runners]) -> None:
    owner, working = fleet
    lab = working.lab
    _good(
        owner(
            "offer", "create", "standard", "--cpus", "1", "--memory", "128MiB", "--price", "3.60/h"
        )
    )
    done = owner(
        "job", "submit", "--offer", "standard", "--follow", "--name", "first", "--", "sh", "-c", "id -u; echo hello; exit 0"
    )  # fmt: skip
    assert (done.code, done.out.splitlines()[-1]) == (0, "hello"), f"{done.err}\n{working.words()}"
    assert done.out.splitlines()[0] == "1000"  # the user of our sandbox, not Slurm's
    shown = _good(owner("job", "show", "first", "--json")).json
    query = ("sacct", "-X", "-n", "-P", "-o", "User,Account,Partition,State,NodeList,ExitCode", f"--name=ouvrage:{shown['last']['attempt']}", "-S", "now-1hours")  # fmt: skip
    until(lambda: "COMPLETED" in lab.run(*query), lambda: "accounting has its end")
    user, account, partition, _, node, code = lab.run(*query).strip().split("|")
    assert (user, partition, code) == (PLACES_USER, "fleet", "0:0")
    assert node in ("n1", "n2")
    assert account.endswith("-main")
    assert "EUR" in _good(owner("usage")).out
    _cancelled(owner, working)
    books = replace(
        owner,
        path=working.at / "state",
        environment={
            **owner.environment,
            **lab.environment,
            "OUVRAGE_HOME": str(working.at / "state"),
        },
    )
    _plain_jobs_are_billed_and_ours_not_twice(books, working, shown["last"]["attempt"])
    verified = books("verify")
    assert verified.code == 0, verified.out


def _cancelled(owner: Home, working: Runners) -> None:
    _good(owner("job", "submit", "--offer", "standard", "--name", "long", "--", "sleep", "600"))
    show = ("job", "show", "long", "--json")
    _until(owner, working, *show, holds=lambda said: said.json["state"] == "running")
    _good(owner("job", "cancel", "long"))
    said = _until(owner, working, *show, holds=lambda said: said.json["state"] == "cancelled")
    assert said.json["last"]["outcome"] == "cancelled"
    queue = ("squeue", "-h", "-u", PLACES_USER)
    until(lambda: not working.lab.run(*queue).strip(), lambda: "its place is free")


def _plain_jobs_are_billed_and_ours_not_twice(books: Home, working: Runners, attempt: str) -> None:
    """What people submit with sbatch comes from accounting; what held our places is there too, and is a lease already."""
    lab = working.lab
    plain = lab.submit("sleep 2", "--partition=fleet", "--account=vision")
    lab.finished([plain])
    lab.settled()
    _good(books("fleet", "adopt", "--since", "1h"))
    _good(books("fleet", "rate", "fleet", "--per", "cpu", "--price", "3600/h"))
    today = datetime.now(timezone.utc).date()
    period = f"{today - timedelta(days=1)}..{today + timedelta(days=2)}"
    report = _good(books("fleet", "report", "--json", "--period", period)).json
    assert len(report["own"]) == 2
    billed = {each["account"]: each for each in report["accounts"]}
    assert {"vision"} <= billed.keys()
    assert report["drafts"].keys() == {
        "physics"
    }  # the tenant of the plain job's account, and not the platform's own
    told = _good(books("fleet", "report", "--period", period)).out
    assert "2 jobs held places for this platform's own attempts" in told
    placed = [str(fact) for fact in books.facts() if fact[3] == "cluster.placed"]
    assert len(placed) == 2
    assert any(attempt in fact for fact in placed)
