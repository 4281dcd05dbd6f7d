"""Who sleeps at a connection to another machine, as the kernel tells: on real sockets, and on a
``/proc`` made up where another machine is needed."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from ouvrage.adapters import socket_waits
from ouvrage.adapters.socket_waits import SocketWaits
from tests.support.meter import until

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid timeout inode\n"
ROW = "   0: {here}:9C40 {there}:1F90 {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1 0\n"
FAR, HOME, LOOP = "014DD50A", "024DD50A", "0100007F"


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Process 7 with sockets 70 (far away), 71 (itself) and 72 (not yet open) as 3, 4 and 5."""
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "n", "6", "v", "x86_64")))
    for name in ("fd", "fdinfo", "net", "task/7"):
        (tmp_path / "7" / name).mkdir(parents=True)
    rows = [(FAR, "01", 70), (LOOP, "01", 71), (FAR, "07", 72), (HOME, "01", 73)]
    table = "".join(ROW.format(here=HOME, there=t, state=s, inode=i) for t, s, i in rows)
    (tmp_path / "7/net/tcp").write_text(HEAD + table)
    for descriptor, inode in ((3, 70), (4, 71), (5, 72), (6, 73)):
        (tmp_path / "7/fd" / str(descriptor)).symlink_to(f"socket:[{inode}]")
    (tmp_path / "7/fd/0").symlink_to("/dev/null")
    (tmp_path / "7/fdinfo/9").write_text(
        "pos:\t0\ntfd:        4 events: 1\ntfd:        3 events: 1\n"
    )
    (tmp_path / "7/fdinfo/8").write_text("pos:\t0\ntfd:        4 events: 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("call", "waits"),
    [
        ("45 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f", True),  # recvfrom, far away
        ("45 0x4 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f", False),  # recvfrom, itself
        ("44 0x5 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f", False),  # sendto, not open
        ("0 0x6 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f", False),  # read, its own address
        ("0 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f", False),  # read, a file
        ("232 0x9 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f", True),  # epoll that watches both
        ("232 0x8 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f", False),  # epoll that watches itself
        ("7 0x7ffe0000 0x1 0x0 0x0 0x0 0x0 0x7ffe 0x7f", True),  # poll: any of the process
        ("230 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f", False),  # nanosleep
        ("running", False),
        ("-1 0x7ffe 0x7f", False),
        ("", False),
    ],
)
def test_calls(proc: Path, call: str, waits: bool) -> None:
    (proc / "7/task/7/syscall").write_text(f"{call}\n")
    found = SocketWaits(str(proc))
    found.begin()
    assert found.waits(7, 7) is waits
    assert found.told


def test_what_may_not_be_read_is_not_told(proc: Path) -> None:
    found = SocketWaits(str(proc))
    assert not found.waits(7, 7)
    assert not found.told


@pytest.mark.parametrize(
    ("address", "own"),
    [
        (b"0100007F", True),
        (b"014DD50A", False),
        (b"00000000000000000000000001000000", True),
        (b"0000000000000000FFFF00000100007F", True),
        (b"0000000000000000FFFF0000014DD50A", False),
        (b"B80D0120000000000000000001000000", False),
    ],
)
def test_own_addresses(address: bytes, own: bool) -> None:
    assert socket_waits._own(address) is own


def test_a_real_thread_at_a_real_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table's addresses are the machine's own; taken for another's, the thread is found."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    thread = threading.Thread(target=client.recv, args=(1,))
    thread.start()
    found = SocketWaits()
    assert not found.waits(os.getpid(), thread.native_id or 0)
    if not found.told:
        server.send(b"x")
        thread.join()
        pytest.skip("the kernel does not tell in which call a thread sleeps")
    monkeypatch.setattr(socket_waits, "_own", lambda _: False)
    monkeypatch.setattr(SocketWaits, "_look", _look_at_all)
    other = SocketWaits()

    def seen() -> bool:
        other.begin()
        return other.waits(os.getpid(), thread.native_id or 0)

    until(seen, "the thread to sleep in recv")
    server.send(b"x")
    thread.join()
    for each in (listener, client, server):
        each.close()


def _look_at_all(self: SocketWaits, pid: int) -> None:
    for line in Path(f"/proc/{pid}/net/tcp").read_bytes().splitlines()[1:]:
        self._known[line.split()[9]] = True
