"""Terminals, files and ports inside real sandboxes: what passes, what is refused, and that nobody gets more than the job has."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters.server_client import Server
from ouvrage.adapters.stream_client import Line, dial
from ouvrage.base.errors import OuvrageError
from ouvrage.wire import inside
from ouvrage.wire.inside import Done, Frames, Put, Size, Take, Terminal, Wanted, frame
from tests.support.meter import until
from tests.support.orders import missing
from tests.support.own_node import OwnNode, own_node
from tests.support.served import SERVICE
from tests.support.server import Client
from tests.support.terminal import Person


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnNode]:
    why = missing()
    if why:
        pytest.skip(why)
    with own_node(tmp_path_factory.mktemp("node")) as made:
        yield made


@pytest.fixture(scope="module")
def ann(node: OwnNode) -> Client:
    return node.server.tenant("acme")


PS = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | sed s/PS=.*//"
PREPARED = (
    "mkdir out; echo found > out/loss.txt; ln -s /etc/passwd link; ln -s out dir; mkfifo pipe;"
    " echo ready; exec python3 -c 'SERVICE'"
)


@pytest.fixture(scope="module")
def job(node: OwnNode, ann: Client) -> Iterator[str]:
    made = node.submit(
        ann, "sh", "-c", PREPARED.replace("'SERVICE'", '"$CODE"'), port=8000,
        environment={"CODE": SERVICE, "OWN": "mine"}, name="work",
    )  # fmt: skip
    node.until_well(ann, made)
    yield made
    node.cancel(ann, made)


def line_of(node: OwnNode, who: Client, path: str) -> Line:
    return dial(Server(url=node.server.url, token=who.token), path)


def wanted(line: Line, what: Terminal | Take | Put) -> None:
    line.send(frame(inside.WANTED, Wanted(what=what).model_dump_json().encode()))


def heard(line: Line) -> tuple[bytes, Done | None]:
    frames, data, done = Frames(), b"", None
    for piece in line.pieces():
        for sort, body in frames.take(piece):
            if sort == inside.DATA:
                data += body
            elif sort == inside.DONE:
                done = Done.model_validate_json(body)
    return data, done


def terminal(node: OwnNode, who: Client, job: str, *command: str) -> tuple[str, Done | None]:
    line = line_of(node, who, f"/v1/jobs/{job}/inside")
    size = Size(rows=33, columns=111)
    wanted(line, Terminal(command=list(command), term="xterm", size=size))
    data, done = heard(line)
    line.close()
    return data.decode(), done


def test_a_terminal_is_one_inside_and_ends_with_its_code(
    node: OwnNode, ann: Client, job: str
) -> None:
    said, done = terminal(
        node, ann, job, "sh", "-c",
        "tty; stty size; id -un; pwd; echo $OWN $TERM; ps -eo pid= 2>/dev/null | wc -l; exit 7",
    )  # fmt: skip
    lines = said.split("\r\n")
    assert lines[0].startswith("/dev/pts/")
    assert lines[1:5] == ["33 111", "job", "/scratch", "mine xterm"]
    assert done == Done(code=7)
    _, done = terminal(node, ann, job, "sh", "-c", "kill -9 $$")
    assert done == Done(code=137)
    said, done = terminal(node, ann, job, "no-such-program")
    assert (said, done) == ("no-such-program: No such file or directory\r\n", Done(code=127))


def test_whoever_enters_has_no_more_than_the_job(node: OwnNode, ann: Client, job: str) -> None:
    tells = "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Gid|Groups)' /proc/self/status; cat /proc/self/cgroup"
    inner, _ = terminal(node, ann, job, "sh", "-c", tells)
    told = dict(line.split(":", 1) for line in inner.split("\r\n") if ":" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(told[name], 16) == 0, (name, inner)
    assert (told["NoNewPrivs"].strip(), told["Seccomp"].strip()) == ("1", "2")
    assert told["Uid"].split() == told["Gid"].split() == ["1000"] * 4
    assert set(told["Groups"].split()) <= {"65534", "1000"}
    own = node.state / "agent"
    tried = "; ".join(
        (
            f"ls {own}", "cat /etc/shadow", "touch /usr/x", "unshare -U true", "mount -t tmpfs x /mnt",
            "ls /proc/1/root/root", "ls -l /proc/self/fd", "env",
        )
    )  # fmt: skip
    said, _ = terminal(node, ann, job, "sh", "-c", tried)
    assert str(own) not in said.replace(f"ls: cannot access '{own}'", "")
    assert "root:" not in said
    assert "socket:" not in said
    assert "OUVRAGE_HOME" not in said
    with_limits, _ = terminal(node, ann, job, "sh", "-c", "ulimit -c; ulimit -n")
    assert with_limits.split("\r\n")[0] == "0"


def test_a_terminal_is_resized_and_typed_into(node: OwnNode, ann: Client, job: str) -> None:
    line = line_of(node, ann, f"/v1/jobs/{job}/inside")
    wanted(line, Terminal(command=[], term="dumb", size=Size(rows=10, columns=20)))
    line.send(frame(inside.SIZE, Size(rows=50, columns=60).model_dump_json().encode()))
    line.send(frame(inside.DATA, b"stty size; exit 3\n"))
    data, done = heard(line)
    assert b"50 60" in data
    assert done == Done(code=3)


def test_a_terminal_that_is_left_ends(node: OwnNode, ann: Client, job: str) -> None:
    line = line_of(node, ann, f"/v1/jobs/{job}/inside")
    wanted(line, Terminal(command=["sleep", "1000.5"], term="dumb", size=Size(rows=1, columns=1)))
    ps = ["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]
    until(lambda: "sleep 1000.5" in terminal(node, ann, job, *ps)[0], "the sleeper")
    line.close()
    until(lambda: "sleep 1000.5" not in terminal(node, ann, job, *ps)[0], "its end")


def test_much_that_is_typed_at_once_holds_nothing_up(node: OwnNode, ann: Client, job: str) -> None:
    """A program that wants to be read before it reads on, and one that reads nothing and is left."""
    line = line_of(node, ann, f"/v1/jobs/{job}/inside")
    size = Size(rows=9, columns=9)
    much = 1 << 20
    echoes = ["sh", "-c", f"stty raw -echo; echo ready; head -c {much}; exit 4"]
    wanted(line, Terminal(command=echoes, term="dumb", size=size))
    until(lambda: "head -c" in terminal(node, ann, job, "sh", "-c", PS)[0], "its start")
    for _ in range(much >> 15):
        line.send(frame(inside.DATA, b"y" * (1 << 15)))
    said, done = heard(line)
    assert (said.count(b"y"), done) == (much + 1, Done(code=4))
    line = line_of(node, ann, f"/v1/jobs/{job}/inside")
    deaf = Terminal(command=["sh", "-c", "stty raw -echo; sleep 1001.5"], term="dumb", size=size)
    wanted(line, deaf)
    until(lambda: "sleep 1001.5" in terminal(node, ann, job, "sh", "-c", PS)[0], "the sleeper")
    for _ in range(12):
        line.send(frame(inside.DATA, b"y" * (1 << 15)))
    line.close()
    until(lambda: "sleep 1001.5" not in terminal(node, ann, job, "sh", "-c", PS)[0], "its end")


def put(node: OwnNode, who: Client, job: str, path: str, data: bytes) -> Done | None:
    line = line_of(node, who, f"/v1/jobs/{job}/inside")
    wanted(line, Put(path=path, executable=True))
    line.send(frame(inside.DATA, data))
    line.send(frame(inside.OVER))
    return heard(line)[1]


def take(node: OwnNode, who: Client, job: str, path: str) -> tuple[bytes, Done | None]:
    line = line_of(node, who, f"/v1/jobs/{job}/inside")
    wanted(line, Take(path=path))
    return heard(line)


def test_files_go_in_and_out_and_links_lead_nowhere(node: OwnNode, ann: Client, job: str) -> None:
    assert take(node, ann, job, "out/loss.txt") == (b"found\n", Done(code=0))
    assert take(node, ann, job, "/scratch/out/loss.txt")[0] == b"found\n"
    data = os.urandom(200_000)
    assert put(node, ann, job, "out/new.bin", data) == Done(code=0)
    assert take(node, ann, job, "out/new.bin") == (data, Done(code=0, executable=True))
    for path in ("link", "dir/loss.txt", "../etc/passwd", "out/../../etc/passwd", "/etc/passwd",
                 "/proc/self/environ", "pipe", "out", "none", "/scratch/../etc/passwd"):  # fmt: skip
        got, done = take(node, ann, job, path)
        assert got == b"", path
        assert done is not None, path
        assert (done.code, bool(done.fault)) == (1, True), path
    for path in ("link", "dir/x", "../x", "/tmp/x", "pipe", "out", "none/x"):
        done = put(node, ann, job, path, b"x")
        assert done is not None, path
        assert (done.code, bool(done.fault)) == (1, True), path
    left, _ = terminal(node, ann, job, "sh", "-c", "ls -A . out | grep part; readlink link")
    assert left == "/etc/passwd\r\n"


def test_nonsense_ends_a_stream_and_nothing_else(node: OwnNode, ann: Client, job: str) -> None:
    for data in (b"\xff" * 100, frame(inside.DATA, b"x"), frame(inside.WANTED, b"{}"), b""):
        line = line_of(node, ann, f"/v1/jobs/{job}/inside")
        if data:
            line.send(data)
        line.end()
        got, done = heard(line)
        assert got == b""
        assert done is None or done.fault
    assert terminal(node, ann, job, "true")[1] == Done(code=0)


def test_a_port_is_reached_by_its_bytes(node: OwnNode, ann: Client, job: str) -> None:
    line = line_of(node, ann, f"/v1/jobs/{job}/ports/8000")
    line.send(b"GET /x HTTP/1.0\r\n\r\n")
    line.end()
    answer = b"".join(line.pieces())
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["target"] == "/x"
    with pytest.raises(OuvrageError) as refused:
        line_of(node, ann, f"/v1/jobs/{job}/ports/9")
    assert refused.value.code == "service/not-listening"


def test_only_its_own_people_enter_a_job(node: OwnNode, ann: Client, job: str) -> None:
    rival = node.server.tenant("rival")
    for path in ("inside", "ports/8000"):
        for who, code in (
            (rival, "job/unknown"),
            (node.owner, "right/missing"),
            (node.server.client("nonsense"), "token/unknown"),
        ):
            with pytest.raises(OuvrageError) as refused:
                line_of(node, who, f"/v1/jobs/{job}/{path}")
            assert refused.value.code == code
    terminal(node, ann, job, "true")
    trail = ann.get("/v1/audit", params={"limit": 1})["items"]
    assert (trail[0]["action"], trail[0]["target"]) == ("job.enter", job)


@pytest.fixture
def typed(node: OwnNode, ann: Client, tmp_path: Path):
    """The command as ann has it."""
    token = tmp_path / "token"
    token.write_text(f"{ann.token}\n")
    token.chmod(0o600)
    names = {"OUVRAGE_URL": node.server.url, "OUVRAGE_TOKEN_FILE": str(token)}
    environment = {**os.environ, **names, "OUVRAGE_HOME": str(tmp_path / "home")}

    def run(*words: str, **more):
        command = [sys.executable, "-m", "ouvrage", *words]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60,
            check=False, **more,
        )  # fmt: skip

    run.environment = environment
    return run


def test_the_commands_do_it_from_a_terminal_elsewhere(typed, job: str, tmp_path: Path) -> None:
    said = typed("shell", "work", "--", "sh", "-c", "read x; echo got $x; exit 5", input="word\n")
    assert (said.returncode, "got word" in said.stdout) == (5, True), said
    said = typed("cp", "work:out/loss.txt", ".")
    assert (said.returncode, said.stdout) == (0, "work:out/loss.txt → ., 6 bytes\n"), said
    assert (tmp_path / "loss.txt").read_text() == "found\n"
    assert typed("cp", "loss.txt", "work:copies.txt").returncode == 0
    refused = typed("cp", "work:link", "got")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error[cp/refused]: link: it is a link, not a file")
    assert not (tmp_path / "got").exists()
    assert typed("shell", "nothing").stderr.startswith("error[job/unknown]")


def test_a_directory_goes_in_and_comes_out(typed, job: str, tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "deep" / "empty").mkdir(parents=True)
    (source / "deep" / "data.bin").write_bytes(os.urandom(300_000))
    (source / "go.sh").write_text("#!/bin/sh\necho went\n")
    (source / "go.sh").chmod(0o755)
    (source / "passwd").symlink_to("/etc/passwd")
    said = typed("cp", "-r", "src", "work:tree")
    size = 300_000 + (source / "go.sh").stat().st_size
    told = f"src → work:tree, 2 files, {size} bytes; left out: passwd (a link)\n"
    assert (said.returncode, said.stdout) == (0, told), said
    said = typed("shell", "work", "--", "sh", "-c", "cd tree; ./go.sh; ls -A . deep; ln -s / root")
    assert said.stdout.split() == ["went", ".:", "deep", "go.sh", "deep:", "data.bin", "empty"]

    said = typed("cp", "-r", "work:tree", "back")
    told = f"work:tree → back, 2 files, {size} bytes; left out: root (a link)\n"
    assert (said.returncode, said.stdout) == (0, told), said
    back = tmp_path / "back"
    assert sorted(str(at.relative_to(back)) for at in back.rglob("*")) == [
        "deep", "deep/data.bin", "deep/empty", "go.sh",
    ]  # fmt: skip
    assert (back / "deep/data.bin").read_bytes() == (source / "deep/data.bin").read_bytes()
    assert os.access(back / "go.sh", os.X_OK)
    for words, why in (
        (("-r", "work:tree", "."), None),  # into a directory, under its own name
        (("-r", "work:tree", "back/.."), "there already"),
        (("-r", "src", "work:tree"), "there already"),
        (("-r", "work:tree/root", "root"), "it is a link, not a directory"),
        (("-r", "work:../..", "up"), "leads out of the directory"),
        (("work:tree", "got"), "it is a directory, not a file"),
        (("src", "work:got"), "src is a directory"),
        (("-r", "work:none", "got"), "it is not there"),
        (("-r", "none", "work:got"), "none is not there"),
    ):
        said = typed("cp", *words)
        assert (said.returncode, (why or "") in said.stderr) == (2 if why else 0, True), said
    assert {at.name for at in tmp_path.iterdir()} >= {"tree", "back", "src"}
    assert not [at for at in tmp_path.iterdir() if "part" in at.name or at.name in ("got", "up")]


def test_keys_go_through_as_they_are_and_the_size_follows(typed, job: str) -> None:
    words = [sys.executable, "-m", "ouvrage", "shell", "work"]
    # COLUMNS is what some other terminal had: the size is that of the person's own.
    person = Person(words, {**typed.environment, "TERM": "xterm", "COLUMNS": "100"})
    person.waits_for(b"$ ")
    person.types(b"stty size; echo re''ady\n")
    # At the prompt: while readline sets the terminal up it writes back the size that it has just read.
    person.waits_for(b"$ ", after=person.waits_for(b"ready"))
    fcntl.ioctl(person.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 41, 123, 0, 0))
    os.kill(person.pid, signal.SIGWINCH)
    person.types(b"echo sleeps; sleep 1000\n")
    person.waits_for(b"\rsleeps\r\n")
    person.types(b"\x03")
    # The new size is on its way: the shell itself waits until it is there.
    person.types(b"until stty size | grep -q 41; do :; done; stty size; exit 9\n")
    person.waits_for(b"41 123")
    assert person.leaves() == 9


def test_a_port_is_forwarded_to_this_machine(typed, job: str) -> None:
    words = [sys.executable, "-m", "ouvrage", "forward", "work", "8000:0"]
    with subprocess.Popen(words, env=typed.environment, stdout=subprocess.PIPE, text=True) as going:
        try:
            assert going.stdout is not None
            address = going.stdout.readline().split()[0]
            found: list[bytes] = []

            def ask() -> None:
                with urllib.request.urlopen(f"{address}/hello", timeout=30) as answer:
                    found.append(answer.read())

            threads = [threading.Thread(target=ask) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert [json.loads(each)["target"] for each in found] == ["/hello"] * 3
        finally:
            going.terminate()


def test_a_shell_in_a_lease_of_one_s_own(typed, node: OwnNode, ann: Client) -> None:
    lease = ann.post("/v1/leases", {"offer": "small", "project": "main"})["lease"]
    said = typed("shell", "--lease", lease, "--", "sh", "-c", "id -un; exit 4", input="")
    assert (said.returncode, said.stdout) == (4, "job\n"), said
    jobs = ann.get("/v1/jobs", params={"lease": lease})["items"]
    until(lambda: node.state_of(ann, jobs[0]["job"])["state"] == "cancelled", "its end")
    ann.post(f"/v1/leases/{lease}/release", {})
