"""Whether a sleeping thread waits at a connection to another machine.

The kernel tells in which call a thread sleeps and with which descriptor; that descriptor's socket
stands in the table of TCP connections with the address of its other end. In ``epoll`` it is asked
what is watched; in ``poll`` and ``select``, whose list lies in the program's own memory, which is
never read, any connection that the process has open counts. Connections of the machine with itself
are none. What may not be read (another user's process, a hardened kernel) is not told.
"""

from __future__ import annotations

import os

from ouvrage.adapters.kept_file import KeptFile, Room

_X86 = {
    "descriptor": {0, 1, 19, 20, 40, 42, 44, 45, 46, 47, 299, 307},
    "epoll": {232, 281, 441},
    "poll": {7, 23, 270, 271},
}
_GENERIC = {
    "descriptor": {63, 64, 65, 66, 71, 203, 206, 207, 211, 212, 243, 269},
    "epoll": {22, 441},
    "poll": {72, 73},
}
_CALLS = {"x86_64": _X86, "aarch64": _GENERIC, "riscv64": _GENERIC}
"""Numbers of the calls that wait at a descriptor, from the kernel's tables for each processor:
read, write, readv, writev, sendfile, connect, sendto, recvfrom, sendmsg, recvmsg, recvmmsg,
sendmmsg; epoll_wait, epoll_pwait, epoll_pwait2; poll, select, pselect6, ppoll."""

_MOST_DESCRIPTORS = 64
_TABLE_SIZE = 65_536
_MOST_KNOWN = 512
_OPEN = (b"01", b"02")
"""Established, and waiting for the other end to accept."""


class SocketWaits:
    """Asked thread by thread; ``told`` is whether the kernel lets us know at all."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._calls = _CALLS.get(os.uname().machine, {})
        self._known: dict[bytes, bool] = {}
        self._may_look = True
        self.told = False

    def begin(self) -> None:
        """A new sample: the table of connections may be read once more."""
        self._may_look = True
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()

    def waits(self, pid: int, tid: int) -> bool:
        """Whether this thread sleeps at a connection to another machine."""
        data = KeptFile(f"{self._root}/{pid}/task/{tid}/syscall", Room(0), 256).read()
        if data is None or not self._calls:
            return False
        self.told = True
        words = data.split(None, 2)
        if len(words) < 3 or not words[0].isdigit():
            return False
        number, first = int(words[0]), int(words[1], 16)
        kind = next((name for name, numbers in self._calls.items() if number in numbers), None)
        return kind is not None and any(
            self._remote(pid, descriptor) for descriptor in self._descriptors(pid, kind, first)
        )

    def _descriptors(self, pid: int, kind: str, first: int) -> list[int]:
        if kind == "descriptor":
            return [first]
        if kind == "epoll":
            data = KeptFile(f"{self._root}/{pid}/fdinfo/{first}", Room(0)).read() or b""
            watched = [line.split() for line in data.splitlines() if line.startswith(b"tfd:")]
            return [int(words[1]) for words in watched[:_MOST_DESCRIPTORS]]
        try:
            names = os.listdir(f"{self._root}/{pid}/fd")
        except OSError:
            return []
        return [int(name) for name in names[:_MOST_DESCRIPTORS]]

    def _remote(self, pid: int, descriptor: int) -> bool:
        try:
            target = os.readlink(f"{self._root}/{pid}/fd/{descriptor}")
        except OSError:
            return False
        if not target.startswith("socket:["):
            return False
        inode = target[8:-1].encode()
        if inode not in self._known and self._may_look:
            self._may_look = False
            self._look(pid)
        return self._known.get(inode, False)

    def _look(self, pid: int) -> None:
        for name in ("tcp", "tcp6"):
            path = f"{self._root}/{pid}/net/{name}"
            data = KeptFile(path, Room(0), _TABLE_SIZE).read() or b""
            for line in data.splitlines()[1:]:
                words = line.split(None, 10)
                if len(words) > 10 and words[3] in _OPEN:
                    here, there = words[1].partition(b":")[0], words[2].partition(b":")[0]
                    self._known[words[9]] = here != there and not _own(there)


def _own(address: bytes) -> bool:
    """Whether an address as the kernel's table writes it (words in the machine's order) is local."""
    if len(address) == 8:
        return address.endswith(b"7F")
    mapped = address.startswith(b"0000000000000000FFFF0000") and address.endswith(b"7F")
    return mapped or address == b"00000000000000000000000001000000"
