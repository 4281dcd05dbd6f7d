"""From an empty directory to a tenant's finished job, as owner and tenant type it, with the real runner and its sandbox."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.blackbox.home import COMMAND, Home, Said
from tests.support.machine_tree import Machine
from tests.support.orders import missing


@pytest.fixture
def state(tmp_path: Path, ouvrage: Home) -> Iterator[Path]:
    why = missing()
    if why:
        pytest.skip(why)
    directory = tmp_path / "state"
    yield directory
    if (directory / "server.pid").exists():
        ouvrage("down", "--state", str(directory))


def _up(ouvrage: Home, state: Path, listen: str = "127.0.0.1:0") -> Home:
    said = ouvrage("up", "--state", str(state), "--listen", listen, "--detach")
    assert said.code == 0, said.err
    url = (state / "server.url").read_text().strip()
    names = {"OUVRAGE_URL": url, "OUVRAGE_TOKEN_FILE": str(state / "owner.token")}
    return replace(ouvrage, environment={**ouvrage.environment, **names})


def _good(said: Said) -> Said:
    assert said.code == 0, said.err
    return said


def _until(home: Home, *arguments: str, holds: Callable[[Said], bool]) -> Said:
    """Ask again until it is so; the node joins, and jobs run, in their own time."""
    for _ in range(200):
        said = home(*arguments)
        if holds(said):
            return said
    raise AssertionError(said)


def test_from_an_offer_to_a_finished_job(ouvrage: Home, state: Path, tmp_path: Path) -> None:
    owner = _up(ouvrage, state)
    _until(owner, "node", "list", "--json", holds=lambda said: len(said.json) == 1)
    refused = owner("job", "submit", "--offer", "standard", "--", "true")
    assert (refused.code, "error[offer/unknown]" in refused.err) == (2, True)
    assert refused.err.splitlines()[-1] == "nothing was written"
    made = _good(
        owner(
            "offer", "create", "standard", "--cpus", "1", "--memory", "256MiB", "--price", "0.30/h"
        )
    )
    assert made.first == "standard is for sale at 0.30 EUR/h ○: 1 core, 256 MiB, 1 GiB scratch"
    assert "(listed)" in owner("offer", "list", "--plain").out

    (tmp_path / "in.txt").write_text("seven\n")
    script = "cat data/in.txt; mkdir out; wc -c < data/in.txt > out/size; for i in 1 2 3; do echo line $i; done"
    done = owner(
        "job", "submit", "--offer", "standard", "--input", "data/in.txt=in.txt",
        "--output", "out/size=size", "--follow", "--name", "first", "--", "sh", "-c", script,
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.code, done.out) == (0, "seven\nline 1\nline 2\nline 3\n"), done.err
    assert "it ended by itself with success" in done.err
    assert _good(owner("job", "logs", "first")).out == done.out
    _good(owner("job", "fetch", "first", "--to", str(tmp_path / "got")))
    assert (tmp_path / "got" / "size").read_text().strip() == "6"
    failed = owner(
        "job", "submit", "--offer", "standard", "--follow", "--", "sh", "-c", "echo no; exit 3"
    )
    assert (failed.code, failed.out) == (1, "no\n")
    shown = _good(owner("job", "show", "last", "--json")).json
    assert (shown["state"], shown["last"]["exit_code"], shown["last"]["outcome"]) == (
        "failed",
        3,
        "failed",
    )
    assert owner("job", "list").first == "2 jobs: 1 done, 1 failed"
    leases = _good(owner("lease", "list", "--json")).json
    assert {lease["kind"] for lease in leases} == {"job"}
    assert all(lease["billable_us"] > 0 for lease in leases)
    _plan_asks_the_server_what_stands_there(owner, tmp_path, "standard")
    # Each attempt is a run of the same id, and everything holds.
    books = replace(ouvrage, environment={**ouvrage.environment, "OUVRAGE_HOME": str(state)})
    runs = _good(books("report", shown["last"]["attempt"], "--json")).json
    assert runs["run"] == shown["last"]["attempt"]
    verified = books("verify")
    assert verified.code == 0, verified.out


def _into(owner: Home, lease: str, name: str, *command: str) -> str:
    """Submit a job into a lease; its id."""
    said = owner("job", "submit", "--lease", lease, "--name", name, "--json", "--", *command)
    return _good(said).json["job"]


def _is(state: str) -> Callable[[Said], bool]:
    return lambda said: said.json["state"] == state


TICKS = "until [ -e /scratch/never ]; do sleep 0.05; n=$((n+1)); echo tick $n; [ $n -lt 400 ] || exit 0; done"


def test_a_lease_of_ones_own_a_queue_in_it_and_a_restart_in_between(
    ouvrage: Home, state: Path
) -> None:
    owner = _up(ouvrage, state)
    _until(owner, "node", "list", "--json", holds=lambda said: len(said.json) == 1)
    terms = ("--cpus", "1", "--memory", "128MiB", "--price", "0.10/h")
    _good(owner("offer", "create", "small", *terms))
    lease = _good(owner("lease", "take", "small", "--for", "1h", "--json")).json["code"]
    first = _into(owner, lease, "long", "sh", "-c", TICKS)
    second = _into(owner, lease, "next", "echo", "hello")
    _until(owner, "job", "show", "long", "--json", holds=_is("running"))
    why = _good(owner("job", "explain", "next", "--json")).json
    assert why["code"] in ("placement/lease-busy", "placement/lease-behind")
    following = subprocess.Popen(
        [*COMMAND, "job", "logs", "-f", "long"], env=dict(owner.environment), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )  # fmt: skip
    assert following.stdout is not None
    seen = following.stdout.readline()
    url = (state / "server.url").read_text().strip()
    os.kill(int((state / "server.pid").read_text()), signal.SIGKILL)
    owner = _up(ouvrage, state, url.removeprefix("http://"))
    cancel = ("job", "cancel", "long", "--why", "enough")
    assert "told to stop" in _until(owner, *cancel, holds=lambda said: said.code == 0).out
    seen += following.stdout.read()  # to its end
    following.stdout.close()
    assert following.wait(60) == 0
    ticks = [int(line.split()[1]) for line in seen.splitlines() if line.startswith(b"tick")]
    assert ticks == list(range(1, len(ticks) + 1))
    assert len(ticks) > 1
    _until(owner, "job", "show", second, "--json", holds=_is("done"))
    assert owner("job", "show", first, "--json").json["state"] == "cancelled"
    assert "has ended" in _good(owner("lease", "release", lease)).first
    assert owner("node", "unlist", "nobody").code == 2
    _good(owner("down", "--state", str(state)))
    books = replace(ouvrage, environment={**ouvrage.environment, "OUVRAGE_HOME": str(state)})
    verified = books("verify")
    assert verified.code == 0, verified.out


def _plan_asks_the_server_what_stands_there(owner: Home, tmp_path: Path, offer: str) -> None:
    """A patch plan of the node: free while nothing runs on it, in the way once a job does."""
    node = owner("node", "list", "--json").json[0]["name"]
    Machine(tmp_path / "tree", node=node).write()
    (tmp_path / "apt.txt").write_text("Inst runc [1.1] (1.2 Debian-Security:12/stable [amd64])\n")
    window = ("--from", "2020-01-01", "--to", "2090-01-01", "--why", "runc")
    tree = ("--root", str(tmp_path / "tree"), "--updates", str(tmp_path / "apt.txt"))
    asked = ("node", "patch", "plan", node, *tree, *window)
    free = _good(owner.inside(*asked))
    assert "nothing stands on it by then" in free.first
    assert "leases       asked of the server" in free.out
    _good(owner("job", "submit", "--offer", offer, "--", "sleep", "600"))
    busy = _until(owner, *asked, holds=lambda said: said.code == 1)
    assert "1 in the way of the window" in busy.first
    assert "no end is known" in busy.out
