"""Into a container: a terminal, files and directories, with no more than the container's own command has."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters.podman import Podman
from ouvrage.agent import entered_ssh
from ouvrage.agent.enclosure import container_name
from ouvrage.agent.files import RESULT
from ouvrage.agent.tunnel import _let_in
from ouvrage.agent.watched import Watched
from ouvrage.wire import inside
from ouvrage.wire.inside import Done, Entry, Frames, Put, Size, Ssh, Take, Terminal, Wanted, frame
from tests.isolation.test_podman import IMAGE, contained, linked, node
from tests.support.meter import until
from tests.support.orders import Node

__all__ = ["node"]


@contextlib.contextmanager
def standing(node: Node, image: str) -> Iterator[Watched]:
    """A container that runs until its test is over."""
    script = (
        "mkdir out; echo found > out/loss.txt; ln -s /etc/passwd out/link; echo up; exec sleep 600"
    )
    own = [{"name": "OWN", "value": "mine"}]
    start = contained("sh", "-c", script, environment=own, image=image)
    files = node.begin(start, see=("/usr",))
    until(lambda: (files / "log").exists() and "up" in node.log(start), "it runs")
    yield Watched.found(node.state, files, lambda: None)
    files.ask_to_stop({"why": "cancelled", "reason": "x", "grace_us": 0})
    until((files / RESULT).exists, "its end")
    assert json.loads((files / RESULT).read_text())["scrub"] == "clean"
    assert container_name(start.attempt) not in Podman(node.state).standing()


@pytest.fixture(scope="module")
def job(node: Node) -> Iterator[Watched]:
    with standing(node, IMAGE) as made:
        yield made


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


RELAY = """
import os, socket, sys, threading
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
def told():
    while data := os.read(0, 65536):
        line.sendall(data)
    line.shutdown(socket.SHUT_WR)
threading.Thread(target=told, daemon=True).start()
while data := line.recv(65536):
    os.write(1, data)
"""


def _passed_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def typed(
    job: Watched, at: Path, *words: str, user: str = "job"
) -> subprocess.CompletedProcess[str]:
    """What OpenSSH's client says of one connection into the container, with keys made for it."""
    at.mkdir()
    for name in ("id", "host"):
        base = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(at / name)]
        subprocess.run(base, check=True, stdin=subprocess.DEVNULL)
    known = at / "known"
    known.write_text(f"work {(at / 'host.pub').read_text()}")
    wanted = Ssh(
        host_key=(at / "host").read_text(), keys=[(at / "id.pub").read_text().strip()], user=user
    )
    with socket.socket(socket.AF_UNIX) as door, _let_in(job.within()) as stream:
        door.bind(str(at / "door"))
        door.listen()
        stream.sendall(frame(inside.WANTED, Wanted(what=wanted).model_dump_json().encode()))
        frames, got = Frames(), list[tuple[int, bytes]]()
        while not got:
            got += frames.take(stream.recv(1))
        done = Done.model_validate_json(got[0][1])
        if done.code:
            return subprocess.CompletedProcess([], done.code, "", done.fault)
        (at / "relay.py").write_text(RELAY)
        proxy = f"{sys.executable} {at}/relay.py {at}/door"
        options = [f"ProxyCommand={proxy}", f"IdentityFile={at}/id", "IdentitiesOnly=yes",
                   f"UserKnownHostsFile={known}", f"User={user}"]  # fmt: skip
        line = ["ssh", "-F", "none", *(w for each in options for w in ("-o", each)), "work"]
        with subprocess.Popen(
            [*line, *words], stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as client:  # fmt: skip
            line_, _ = door.accept()
            ways = [
                threading.Thread(target=_passed_on, args=pair, daemon=True)
                for pair in ((line_, stream), (stream, line_))
            ]
            for each in ways:
                each.start()
            out, error = client.communicate(timeout=30)
        line_.close()
    return subprocess.CompletedProcess(words, client.returncode, out, error)


SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")


@pytest.mark.skipif(SSHD is None, reason="OpenSSH's server is not here")
def test_openssh_enters_a_container(job: Watched, tmp_path: Path) -> None:
    """An image that knows no user 1000 calls it as every other job does."""
    tells = "id -un; id -u; pwd; echo $OWN; grep -E '^(CapEff|NoNewPrivs|Seccomp:)' /proc/self/status; exit 5"
    said = typed(job, tmp_path / "a", tells)
    assert said.returncode == 5, said
    lines = said.stdout.splitlines()
    assert lines[:4] == ["job", "1000", "/scratch", "mine"], said
    assert [line.split()[1] for line in lines[4:7]] == ["0" * 16, "1", "2"]
    said = typed(job, tmp_path / "b", "cat /etc/shadow; ls -A /tmp", user="job")
    assert "root:" not in said.stdout
    assert terminal(job, "ls", "-A", "/tmp")[0] == ""  # nothing of it is left


@pytest.mark.skipif(SSHD is None, reason="OpenSSH's server is not here")
def test_an_image_s_own_name_for_its_user_is_told(node: Node, tmp_path: Path) -> None:
    names = "root:x:0:0::/root:/bin/sh\nubuntu:x:1000:1000::/scratch:/bin/sh\n"
    archive = linked(tmp_path / "image.tar", {"etc/passwd": names})
    Podman(node.state).make_image("localhost/named:1", archive)
    with standing(node, "localhost/named:1") as job:
        refused = typed(job, tmp_path / "a", "true")
        assert refused.stderr.startswith(
            "the job's image calls its user ubuntu: ouvrage ssh --user ubuntu"
        ), refused
        assert typed(job, tmp_path / "b", "id -un", user="ubuntu").stdout == "ubuntu\n"


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("", "no user of the number 1000"),
        ("job:x:1000:1000::/:/bin/none\n", "has no /bin/none, its user's shell"),
        ("a:x:1000:1000\nb:x:1000:1000::/:\n", "calls its user b"),
        ("job:x:1000:1000::/:\n", None),
    ],
)
def test_why_openssh_lets_nobody_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: str, why: str | None
) -> None:
    (tmp_path / "passwd").write_text(names)
    monkeypatch.setattr(entered_ssh, "_USERS", str(tmp_path / "passwd"))
    monkeypatch.setattr(entered_ssh.os, "getuid", lambda: 1000)
    said = entered_ssh._fault("/usr/sbin/sshd", "job")
    assert (said is None) if why is None else (why in str(said))
    assert "no sshd" in str(entered_ssh._fault(None, "job"))
