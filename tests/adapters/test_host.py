"""The readings of a host: its disk, its network, its cores; and a test that does not come to its end."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters import host_disk, host_network, host_speed
from ouvrage.adapters.host_disk import Budget, check_directory, disk_readings
from ouvrage.adapters.host_network import Peer, check_peer, link_readings, network_readings
from ouvrage.base.errors import OuvrageError
from ouvrage.meter.host_check import Test as HostTest
from ouvrage.meter.host_check import run_test
from ouvrage.model.hosts import HostReading

MIB = 1 << 20
SMALL = Budget(size=16 * MIB, seconds=0.2)


def by_id(found: list[HostReading]) -> dict[str, HostReading]:
    return {each.id: each for each in found}


def on_a_disk(directory: Path) -> Path:
    if host_disk._kind(os.path.realpath(directory)) in host_disk.IN_MEMORY:
        pytest.skip("the directory for tests is in memory, which is no disk")
    return directory


def test_a_disk_is_written_and_read_and_nothing_is_left(tmp_path: Path):
    found = by_id(
        disk_readings(str(on_a_disk(tmp_path)), Budget(size=20 * MIB, seconds=1, latency_s=0.1))
    )
    size = found["disk.size"]
    assert size.low is not None
    assert size.high is not None
    assert 0 < Fraction(size.low) <= Fraction(size.high)
    assert Fraction(found["disk.write"].low or 0) > 0
    assert Fraction(found["disk.read"].high or 0) > 0
    assert "20 MiB" in found["disk.write"].how
    assert found["disk.latency"].how
    assert list(tmp_path.iterdir()) == []


def test_without_a_way_past_the_cache_both_are_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(os, "O_DIRECT")
    found = by_id(
        disk_readings(str(on_a_disk(tmp_path)), Budget(size=16 * MIB, seconds=0.5, latency_s=0.1))
    )
    assert found["disk.write"].high is None
    assert found["disk.read"].low is None
    assert "the page cache may have helped" in found["disk.read"].how
    assert found["disk.latency"].low is None


def test_without_nameless_files_a_named_one_is_gone_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    opened: list[int] = []

    def refuse(path: Any, flags: int, mode: int = 0o777) -> int:
        opened.append(flags)
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return real(path, flags, mode)

    real = os.open
    monkeypatch.setattr(host_disk.os, "open", refuse)
    descriptor, _ = host_disk.nameless(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert len(opened) == 2
    os.close(descriptor)


def test_memory_is_no_disk():
    if host_disk._kind("/dev/shm") not in host_disk.IN_MEMORY:
        pytest.skip("/dev/shm is no tmpfs here")
    found = disk_readings("/dev/shm", SMALL)
    assert [(each.low, each.high) for each in found] == [(None, None)] * 3
    assert all("memory, not a disk" in each.how for each in found)


def test_the_last_of_the_space_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.statvfs(tmp_path)
    sizes = [*real]
    sizes[2], sizes[3], sizes[4] = (100 << 30) // real.f_frsize, 0, (5 << 30) // real.f_frsize
    monkeypatch.setattr(host_disk.os, "statvfs", lambda _: os.statvfs_result(sizes))
    monkeypatch.setattr(host_disk, "_kind", lambda _: "ext4")
    found = by_id(disk_readings(str(tmp_path), SMALL))
    assert found["disk.size"].high is not None
    assert found["disk.write"].low is None
    assert "5120 MiB are free" in found["disk.write"].how


def test_a_directory_that_is_none_is_refused(tmp_path: Path):
    with pytest.raises(OuvrageError) as refused:
        check_directory(str(tmp_path / "nowhere"))
    assert refused.value.code == "host/directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written_is_told(tmp_path: Path):
    tmp_path.chmod(0o500)
    assert "ermission" in by_id(disk_readings(str(tmp_path), SMALL))["disk.write"].how


def test_a_mount_over_a_mount_is_the_one_that_counts():
    mounts = b"""\
27 1 254:0 / / rw - ext4 /dev/vda rw
28 27 0:25 / /data rw - overlay overlay rw
29 28 0:26 / /data/a\\040b rw shared:1 - tmpfs tmpfs rw
30 28 0:27 / /data/a\\040b rw - nfs4 server:/ rw
broken
"""
    kinds = [host_disk._kind(path, mounts) for path in ("/", "/data/x", "/data/a b/c", "/database")]
    assert kinds == ["ext4", "overlay", "nfs4", "ext4"]
    assert "over a network" in host_disk._Place("/mnt", "nfs4", 1, 1).words


def test_cores_are_what_processes_got(monkeypatch: pytest.MonkeyPatch):
    found = by_id(host_speed.cpu_readings(0.05, 0.2))
    allowed = len(os.sched_getaffinity(0))
    low, high = (
        Fraction(found["cpu.delivered"].low or 0),
        Fraction(found["cpu.delivered"].high or 0),
    )
    assert 0 < low <= allowed * Fraction(11, 10)
    assert low <= high
    assert Fraction(found["cpu.thread"].low or 0) > 0
    # somebody else's work beside it: what is missing may be theirs
    taken = iter((0, 10**9))
    monkeypatch.setattr(host_speed, "_visible_cpu_us", lambda _: next(taken))
    beside = by_id(host_speed.cpu_readings(0.01, 0.05))["cpu.delivered"]
    assert Fraction(beside.high or 0) > Fraction(beside.low or 0)
    assert "other processes here took" in beside.how


def test_memory_is_copied(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host_speed, "_COPY_BYTES", 8 << 20)
    assert Fraction(host_speed.memory_readings(0.01)[0].low or 0) > 0
    monkeypatch.setattr(host_speed, "memory_field", lambda *_: 64 << 20)
    assert "only 64 MiB" in host_speed.memory_readings(0.01)[0].how


def test_the_link_as_the_kernel_lists_it(tmp_path: Path):
    for name, speed, hardware in (
        ("eth0", "25000\n", True),
        ("eth1", "-1\n", True),
        ("veth", "10000\n", False),
    ):
        place = tmp_path / "class" / "net" / name
        place.mkdir(parents=True)
        (place / "speed").write_text(speed)
        if hardware:
            (place / "device").mkdir()
    assert [(each.part, each.low) for each in link_readings(str(tmp_path))] == [("eth0", "25000")]
    assert link_readings(str(tmp_path / "none")) == []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    size = 4 << 20
    posts = True

    def do_GET(self) -> None:
        self.send_response(200 if self.size else 404)
        self.send_header("Content-Length", str(self.size))
        self.end_headers()
        self.wfile.write(bytes(self.size))

    def do_POST(self) -> None:
        left = int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, 1 << 16)))
        self.send_response(200 if self.posts else 405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@pytest.fixture
def peer() -> Iterator[str]:
    with Quiet(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/big"
        server.shutdown()
        thread.join()


def test_what_comes_through_to_a_peer_is_the_least_that_the_network_can(peer: str):
    found = by_id(network_readings(Peer(url=peer), 0.2))
    for each in found.values():
        assert each.low is not None
        assert each.high is None
        assert "the peer may be the slower one" in each.how
    fast = by_id(network_readings(Peer(url=peer, mbit=10**9), 0.2))
    assert all(each.low == each.high is not None for each in fast.values())


def test_a_peer_that_does_not_do_it_leaves_it_unknown(peer: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Handler, "size", 0)
    monkeypatch.setattr(Handler, "posts", False)
    found = by_id(network_readings(Peer(url=peer), 0.1))
    assert found["net.down"].low is None
    assert "a GET was answered 404" in found["net.down"].how
    assert "a POST was answered 405" in found["net.up"].how


def test_nobody_is_asked_unless_named_and_nobody_there_is_told(monkeypatch: pytest.MonkeyPatch):
    assert [each.how for each in network_readings(None, 9)] == [host_network.NO_PEER] * 2
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        assert "refused" in network_readings(Peer(url=url), 0.1)[0].how
    for url in ("ftp://x/", "http:///", "box"):
        with pytest.raises(OuvrageError) as refused:
            check_peer(Peer(url=url))
        assert refused.value.code == "host/peer"


def test_a_test_that_hangs_is_left_at_its_deadline():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        began = time.monotonic()
        found = run_test(
            HostTest(
                name="network", words="", settings={"url": url, "mbit": None, "seconds": 60},
                deadline_s=0.7, ids=("net.down", "net.up"),
            )
        )  # fmt: skip
    assert time.monotonic() - began < 5
    assert [(each.id, each.how) for each in found] == [
        ("net.down", "no answer within 0.7 s"),
        ("net.up", "no answer within 0.7 s"),
    ]


def test_a_test_that_dies_is_told():
    broken = HostTest(name="disk", words="", settings={}, deadline_s=10, ids=("disk.read",))
    (only,) = run_test(broken)
    assert only.how == "the test ended with 1 and without an answer"
