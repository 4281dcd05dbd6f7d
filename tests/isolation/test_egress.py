"""What a job with a way out reaches and what it never does, against hosts of a made-up world."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters import egress
from ouvrage.base.errors import OuvrageError
from tests.support.meter import until
from tests.support.orders import Node, an_order, missing

HOST, PUBLIC, PRIVATE = "203.0.113.1", "203.0.113.10", "10.213.7.2"
SERVER = """
import socket, threading
def serve(address):
    with socket.create_server(address) as s:
        while True:
            link, _ = s.accept()
            with link: link.sendall(b"hello " * 1000)
for address in ({places}):
    threading.Thread(target=serve, args=(address,)).start()
print("ready", flush=True)
"""
TRY = """
import socket, sys
for place in sys.argv[1:]:
    host, port = place.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), 0.4) as link:
            got = 0
            while data := link.recv(65536): got += len(data)
        print(place, got)
    except OSError as error:
        print(place, "no")
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A namespace with a public and a private host in it, on a link of this machine's."""
    why = missing() or ", ".join(egress.missing())
    if why:
        pytest.skip(why)
    name = f"world{os.getpid()}"
    link = f"ovw{os.getpid() % 100000}"
    ip("netns", "add", name)
    ip("link", "add", link, "type", "veth", "peer", "name", "out", "netns", name)
    for address in (f"{HOST}/24", "10.213.7.1/24"):
        ip("addr", "add", address, "dev", link)
    ip("link", "set", link, "up")
    for address in (f"{PUBLIC}/24", "203.0.113.11/24", f"{PRIVATE}/24"):
        ip("-n", name, "addr", "add", address, "dev", "out")
    for each in ("out", "lo"):
        ip("-n", name, "link", "set", each, "up")
    ip("-n", name, "route", "add", "default", "via", HOST)
    there = ", ".join(
        f"({a!r}, {p})" for a in (PUBLIC, "203.0.113.11", PRIVATE) for p in (80, 443, 25)
    )
    here = f"({HOST!r}, 8099),"
    servers = [
        subprocess.Popen([*before, "/usr/bin/python3", "-c", SERVER.format(places=places)],
                         stdout=subprocess.PIPE)
        for before, places in ((["ip", "netns", "exec", name], there), ([], here))
    ]  # fmt: skip
    for server in servers:
        assert server.stdout and server.stdout.readline() == b"ready\n"
    node = Node(tmp_path_factory.mktemp("egress") / "agent")
    yield node
    node.close()
    for server in servers:
        server.kill()
        server.wait()
        assert server.stdout
        server.stdout.close()
    ip("netns", "delete", name)


def reached(node: Node, *places: str, named: tuple[str, ...] = ()) -> tuple[dict[str, str], dict]:
    start = an_order("/usr/bin/python3", "-c", TRY, *places, network="egress", egress=list(named))
    ended = node.run(start)
    assert ended["outcome"] == "done", ended
    assert ended["scrub"] == "clean"
    return dict(line.rsplit(" ", 1) for line in node.log(start).splitlines()), ended["used"]


def test_what_is_denied_by_default(world: Node) -> None:
    got, used = reached(
        world, f"{PUBLIC}:80", f"{PRIVATE}:80", f"{PUBLIC}:25", f"{HOST}:8099", "169.254.169.254:80",
    )  # fmt: skip
    assert got == {
        f"{PUBLIC}:80": "6000", f"{PRIVATE}:80": "no", f"{PUBLIC}:25": "no", f"{HOST}:8099": "no",
        "169.254.169.254:80": "no",
    }  # fmt: skip
    assert 6000 < used["received_bytes"] < 8000
    assert 100 < used["sent_bytes"] < 2000


def test_what_a_job_names_is_all_it_reaches(world: Node) -> None:
    places = (f"{PUBLIC}:80", f"{PUBLIC}:443", "203.0.113.11:80", "203.0.113.11:443")
    got, _ = reached(world, *places, named=(f"{PUBLIC}:443", "203.0.113.11"))
    assert list(got.values()) == ["no", "6000", "6000", "6000"]


def test_naming_what_is_denied_does_not_open_it(world: Node) -> None:
    got, used = reached(
        world, f"{PRIVATE}:80", f"{PUBLIC}:25", named=("10.0.0.0/8", f"{PUBLIC}:25")
    )
    assert set(got.values()) == {"no"}
    assert used["received_bytes"] == 0


def test_a_name_without_an_address_is_refused_in_words(world: Node) -> None:
    ended = world.run(an_order("true", network="egress", egress=["no-such-host.invalid:443"]))
    assert ended["outcome"] == "never started"
    assert "no-such-host.invalid" in ended["reason"]
    assert ended["scrub"] == "clean"


def test_a_network_goes_with_a_supervisor_that_was_killed(world: Node) -> None:
    start = an_order("sleep", "600", network="egress")
    files = world.begin(start)
    until(lambda: files.state() == "running", "it runs")
    number = files.read("network.json")["number"]
    assert number not in egress.sweep()
    lock = (files / "lock").stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        if line.split()[5].endswith(f":{lock}"):
            os.kill(int(line.split()[4]), 9)
    until(lambda: number in egress.sweep(), "it is swept")
    assert not Path(f"/run/netns/ouvrage-{number}").exists()


@pytest.mark.parametrize("wrong", ["example.org:0", "example.org:http", "1.2.3.4:99999"])
def test_a_destination_that_is_none(wrong: str) -> None:
    if egress.missing() or os.geteuid():
        pytest.skip("networks are made by root")
    with pytest.raises(OuvrageError, match="port"):
        egress.open_way([wrong])
