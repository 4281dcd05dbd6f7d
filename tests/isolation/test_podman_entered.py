"""Into a container: a terminal, files and directories, with no more than the container's own command has."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters.podman import Podman
from ouvrage.agent.files import RESULT
from ouvrage.agent.tunnel import _let_in
from ouvrage.agent.watched import Watched
from ouvrage.wire import inside
from ouvrage.wire.inside import Done, Entry, Frames, Put, Size, Take, Terminal, Wanted, frame
from tests.isolation.test_podman import contained, node
from tests.support.meter import until
from tests.support.orders import Node

__all__ = ["node"]


@pytest.fixture(scope="module")
def job(node: Node) -> Iterator[Watched]:
    """A container that runs until its test is over."""
    script = (
        "mkdir out; echo found > out/loss.txt; ln -s /etc/passwd out/link; echo up; exec sleep 600"
    )
    start = contained("sh", "-c", script, environment=[{"name": "OWN", "value": "mine"}])
    files = node.begin(start, see=("/usr",))
    until(lambda: (files / "log").exists() and "up" in node.log(start), "it runs")
    yield Watched.found(node.state, files, lambda: None)
    files.ask_to_stop({"why": "cancelled", "reason": "x", "grace_us": 0})
    until((files / RESULT).exists, "its end")
    assert json.loads((files / RESULT).read_text())["scrub"] == "clean"
    assert Podman(node.state).standing() == []


def asked(job: Watched, what: Terminal | Take | Put, *more: bytes) -> list[tuple[int, bytes]]:
    """Every frame that came back."""
    with _let_in(job.within()) as stream:
        stream.sendall(frame(inside.WANTED, Wanted(what=what).model_dump_json().encode()))
        for each in more:
            stream.sendall(each)
        frames, got = Frames(), list[tuple[int, bytes]]()
        while not got or got[-1][0] != inside.DONE:
            data = stream.recv(1 << 16)
            assert data, got
            got += frames.take(data)
    return got


def terminal(job: Watched, *command: str) -> tuple[str, Done]:
    got = asked(job, Terminal(command=list(command), term="xterm", size=Size(rows=7, columns=70)))
    shown = b"".join(body for sort, body in got if sort == inside.DATA)
    return shown.decode(), Done.model_validate_json(got[-1][1])


def test_a_terminal_in_a_container(job: Watched) -> None:
    said, done = terminal(job, "sh", "-c", "tty; stty size; id -u; pwd; echo $OWN $TERM; exit 7")
    assert said.split("\r\n")[:-1] == ["/dev/pts/0", "7 70", "1000", "/scratch", "mine xterm"]
    assert done == Done(code=7)
    typed = frame(inside.DATA, b"id -u; exit 3\n")
    what = Terminal(command=[], term="dumb", size=Size(rows=9, columns=90))
    got = asked(job, what, typed)
    assert Done.model_validate_json(got[-1][1]) == Done(code=3)


def test_whoever_enters_has_no_more_than_the_container(node: Node, job: Watched) -> None:
    tells = "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Gid)' /proc/self/status; cat /proc/self/cgroup"
    said, _ = terminal(job, "sh", "-c", tells)
    told = dict(line.split(":", 1) for line in said.split("\r\n") if ":" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(told[name], 16) == 0, (name, said)
    assert (told["NoNewPrivs"].strip(), told["Seccomp"].strip()) == ("1", "2")
    assert told["Uid"].split() == told["Gid"].split() == ["1000"] * 4
    sort = "sleep 5 & cat /proc/self/cgroup /proc/1/cgroup"
    both = [line for line in terminal(job, "sh", "-c", sort)[0].split("\r\n") if line]
    assert both[: len(both) // 2] == both[len(both) // 2 :]
    tried = f"ls {node.state}; cat /etc/shadow; touch /usr/x; unshare -U true; ls -l /proc/self/fd"
    said, _ = terminal(job, "sh", "-c", tried)
    assert "root:" not in said
    assert "socket:" not in said
    assert "attempts" not in said


def test_files_and_directories_of_a_container(job: Watched, tmp_path: Path) -> None:
    got = asked(job, Take(path="out", tree=True))
    done = Done.model_validate_json(got[-1][1])
    assert (done.code, done.left, done.left_out) == (0, ["link (a link)"], 1)
    assert [Entry.model_validate_json(b).path for s, b in got if s == inside.ENTRY] == ["loss.txt"]
    assert [body for sort, body in got if sort == inside.DATA] == [b"found\n"]
    entry = frame(inside.ENTRY, Entry(path="x").model_dump_json().encode())
    data, over = frame(inside.DATA, b"new"), frame(inside.OVER)
    got = asked(job, Put(path="in", tree=True), entry, data, over)
    assert Done.model_validate_json(got[-1][1]) == Done(code=0)
    assert terminal(job, "cat", "in/x")[0] == "new"


def test_a_line_that_is_cut_ends_what_it_let_in(job: Watched) -> None:
    stream: socket.socket = _let_in(job.within())
    what = Terminal(command=["sleep", "1000.5"], term="dumb", size=Size(rows=1, columns=1))
    stream.sendall(frame(inside.WANTED, Wanted(what=what).model_dump_json().encode()))

    def sleeps() -> bool:
        found = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in job.listed()]
        return b"sleep\x001000.5\x00" in found

    until(sleeps, "the sleeper")
    stream.close()
    until(lambda: not sleeps(), "its end")
